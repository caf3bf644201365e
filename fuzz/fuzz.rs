//! The fuzz targets. `SABIR_FUZZ_TARGET` says which one runs; the arguments are libFuzzer's options.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use sabir_sources::command;
use sabir_testkit::fuzz;

/// Each panics where a promise is broken.
type Target = fn(&[u8]);

/// Their names are those of the folders with inputs.
const TARGETS: &[(&str, Target)] = &[
    ("client_words", fuzz::client_words),
    ("envelope", fuzz::envelope),
    ("frontmatter", sabir_articles::fuzzing::frontmatter),
    ("headers", fuzz::headers),
    ("http_head", fuzz::http_head),
    ("lines", fuzz::lines),
    ("parsed_request", fuzz::parsed_request),
    ("schema", fuzz::schema),
    ("sections", sabir_articles::fuzzing::sections),
    ("session", fuzz::session),
    ("templates", command::fuzzing::templates),
];

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, _) in TARGETS {
        assert!(corpus.join(name).is_dir(), "fuzz target `{name}` has no inputs");
    }
    let wanted = std::env::var("SABIR_FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(name, _)| *name == wanted);
    found.unwrap_or_else(|| panic!("no fuzz target `{wanted}`")).1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
