//! How the binary is linked. It is started anew for every client, so it must start fast.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("PROFILE", "release") {
        return;
    }
    // It shall not move 30,000 pointers first, each of them on a page that has to be copied: that
    // was a quarter of a cold start. The price is that its own code lies at a fixed address, as
    // that of Go programs does; heap, stacks and libraries still do not.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    // Nor load a library for unwinding, where the compiler has the same one to be built in.
    if is("CARGO_CFG_TARGET_ENV", "gnu") && env::var("HOST") == env::var("TARGET") && has_unwinder()
    {
        println!("cargo::rustc-link-lib=gcc_eh");
    }
}

fn has_unwinder() -> bool {
    let asked = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    // Only what was found has a path.
    asked.is_ok_and(|asked| Path::new(String::from_utf8_lossy(&asked.stdout).trim()).is_absolute())
}
