//! The token of the command line, and keeping secrets from the other programs of the user.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sabir::{NamedToken, Token};

use crate::args::Serve;
use crate::config::{Settings, TOKEN_CHARACTERS};
use crate::report::Failure;

/// The environment variable that contains a token.
pub(super) const VARIABLE: &str = "SABIR_TOKEN";

/// The environment variable with the token of the console.
pub(super) const CONSOLE_VARIABLE: &str = "SABIR_CONSOLE_TOKEN";

/// The variables with secrets that no file names: tokens, and headers for collectors (OTLP).
const SECRETS: [&str; 5] = [
    VARIABLE,
    CONSOLE_VARIABLE,
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
];

/// The largest file that can contain a token, in bytes. A larger one is refused.
const MAX_FILE: u64 = 4096;

/// The token of `--token`, `--token-file` or the environment variable, in this order.
pub(super) fn token(args: &Serve) -> Result<Option<NamedToken>, Failure> {
    let (origin, secret) = match (&args.token, &args.token_file) {
        (Some(secret), _) => ("--token".to_owned(), secret.clone()),
        (None, Some(path)) => (path.display().to_string(), read(path)?),
        (None, None) => match std::env::var_os(VARIABLE) {
            Some(secret) => (VARIABLE.to_owned(), secret.to_string_lossy().into_owned()),
            None => return Ok(None),
        },
    };
    let token = Token::new(&secret).ok_or_else(|| {
        Failure::new(format!("invalid token in {origin} (expected {TOKEN_CHARACTERS})"))
    })?;
    Ok(Some(NamedToken::new("token", token)))
}

/// Reads a file with one line.
fn read(path: &Path) -> Result<String, Failure> {
    let unreadable = |reason: &dyn std::fmt::Display| {
        Failure::new(format!("cannot read the token in {}: {reason}", path.display()))
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
    if text.len() as u64 > MAX_FILE {
        return Err(unreadable(&format!("the file is too large (limit {MAX_FILE} bytes)")));
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Closes this process to the other processes of the user if it has secrets: they can read neither
/// its memory nor its environment, unless they are root. Without secrets it can be inspected.
pub(super) fn protect(settings: &Settings, token: Option<&NamedToken>) -> Result<(), Failure> {
    let has_secrets = token.is_some()
        || settings.has_secrets
        || !settings.http.tokens.is_empty()
        || settings.sources.iter().any(|source| source.login().is_some())
        || settings.tls.is_some()
        || SECRETS.iter().any(|name| std::env::var_os(name).is_some());
    #[cfg(target_os = "linux")]
    if has_secrets {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .map_err(|error| Failure::new(format!("cannot protect the secrets: {error}")))?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = has_secrets;
    Ok(())
}
