//! The binary is hardened: position-independent, and its relocations are read-only before `main`.

use std::process::Command;

#[test]
fn the_binary_is_position_independent_with_full_relro() {
    // The linker needs binutils, so `readelf` is there.
    let binary = env!("CARGO_BIN_EXE_sabir");
    let output = Command::new("readelf").args(["-hldW", binary]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let has =
        |words: &[&str]| text.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(&["Type:", "DYN"]), "not position-independent");
    assert!(has(&["GNU_RELRO"]), "no RELRO segment");
    assert!(has(&["(FLAGS)", "BIND_NOW"]) || has(&["(FLAGS_1)", "NOW"]), "RELRO is not full");
}
