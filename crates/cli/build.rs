//! How the binary is linked.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    // A program that is started anew for every client shall not move 30,000 pointers first, each of
    // them on a page that has to be copied: that was a quarter of a cold start. The price is that
    // its own code lies at a fixed address, as that of Go programs does; heap, stacks and libraries
    // still do not.
    if is("CARGO_CFG_TARGET_OS", "linux") && is("PROFILE", "release") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
