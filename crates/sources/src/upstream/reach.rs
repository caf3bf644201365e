//! How an upstream is reached: a program on its standard streams, or a URL.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sabir_client::{ChildTransport, HttpTarget, OpenError, Program, Transport};
use sabir_supervisor::{GracePeriod, Supervisor};

/// How long a program may take to exit after SIGTERM.
pub const EXIT_TIME: Duration = Duration::from_secs(2);

/// How an upstream is reached.
#[derive(Clone, Debug)]
pub enum Reach {
    /// A program that speaks on its standard streams.
    Program {
        /// Its absolute path, or its name in the search path.
        program: PathBuf,
        /// The arguments after its name.
        arguments: Vec<String>,
        /// Variables beside those that every upstream gets.
        env: Vec<(String, String)>,
        /// The absolute path of the working directory.
        cwd: PathBuf,
    },
    /// A URL.
    Web(WebTarget),
}

/// A URL, and the headers of requests to it.
#[derive(Clone)]
pub struct WebTarget {
    target: Box<HttpTarget>,
    url: String,
}

/// A URL or a header that is not valid.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadTarget(String);

impl WebTarget {
    /// A URL with headers, whose values are secret.
    pub fn new(url: &str, headers: Vec<(String, String)>) -> Result<Self, BadTarget> {
        let bad = |error: OpenError| BadTarget(error.to_string());
        let mut target = HttpTarget::new(url).map_err(bad)?;
        target.check().map_err(bad)?;
        for (name, value) in headers {
            target = target.with_header(&name, &value).map_err(bad)?;
        }
        Ok(Self { target: Box::new(target), url: url.to_owned() })
    }
}

impl std::fmt::Debug for WebTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WebTarget").field(&self.url).finish()
    }
}

impl Reach {
    /// Tells this server from others, without secrets.
    pub fn identity(&self) -> String {
        match self {
            Self::Program { program, arguments, cwd, .. } => {
                format!("{}\0{}\0{}", program.display(), arguments.join("\0"), cwd.display())
            }
            Self::Web(target) => target.url.clone(),
        }
    }

    /// A transport of its own for each instance. A program that is not there fails when it is
    /// started: it must not keep others from being served.
    pub(super) fn transport(&self, supervisor: &Supervisor) -> Arc<dyn Transport> {
        match self {
            Self::Web(target) => (*target.target).clone().transport(),
            Self::Program { program, arguments, env, cwd } => {
                let env = environment(env);
                let search = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
                let found = which::which_in(program, search, cwd);
                let program = Program {
                    path: found.unwrap_or_else(|_| program.clone()),
                    args: arguments.iter().map(Into::into).collect(),
                    env,
                    cwd: cwd.clone(),
                    grace: GracePeriod { after_stdin: EXIT_TIME, after_term: EXIT_TIME },
                };
                Arc::new(ChildTransport::new(supervisor.clone(), program))
            }
        }
    }
}

/// The variables of our own environment that every upstream gets, as other clients of MCP do it, and
/// what package runners need. No other variable is passed on: it may be a secret.
const INHERITED: [&str; 13] = [
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "TZ",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
];
const INHERITED_PREFIXES: [&str; 5] = ["LC_", "XDG_", "npm_config_", "UV_", "PIP_"];

fn environment(own: &[(String, String)]) -> Vec<(OsString, OsString)> {
    let is_inherited = |name: &str| {
        INHERITED.contains(&name)
            || INHERITED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let inherited = std::env::vars_os().filter(|(name, _)| {
        let is_own = own.iter().any(|(known, _)| name == known.as_str());
        !is_own && name.to_str().is_some_and(is_inherited)
    });
    inherited.chain(own.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}
