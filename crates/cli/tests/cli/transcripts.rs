//! The transcripts of `testkit`, against the real binary.

use sabir_testkit::play_scripts;

#[test]
fn the_real_binary_plays_every_script_that_needs_no_sources() {
    let folder = tempfile::TempDir::new().unwrap();
    play_scripts(
        |script| !script.needs_stand_in,
        |script| Box::new(script.program(env!("CARGO_BIN_EXE_sabir"), folder.path(), &[])),
    );
}
