//! How an upstream is reached: a program on its standard streams, or a URL.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sabir_client::{AuthError, ChildTransport, HttpTarget, OAuth, OpenError, Program, Transport};
use sabir_supervisor::{GracePeriod, Supervisor};
use sabir_wire::Caller;

use crate::login::{LoginServer, User, UserAuth};

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
    auth: Option<Box<UserAuth>>,
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
        Ok(Self { target: Box::new(target), url: url.to_owned(), auth: None })
    }

    /// Adds a header, whose value is secret.
    pub fn add_header(&mut self, name: &str, value: &str) -> Result<(), BadTarget> {
        let target = (*self.target).clone().with_header(name, value);
        *self.target = target.map_err(|error| BadTarget(error.to_string()))?;
        Ok(())
    }

    fn with_auth(self, auth: UserAuth) -> Self {
        Self { auth: Some(Box::new(auth)), ..self }
    }
}

impl std::fmt::Debug for WebTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WebTarget").field(&self.url).finish()
    }
}

impl Reach {
    /// The same, with access tokens, if it is a URL.
    #[must_use]
    pub fn with_auth(self, auth: UserAuth) -> Self {
        match self {
            Self::Web(target) => Self::Web(target.with_auth(auth)),
            program @ Self::Program { .. } => program,
        }
    }

    /// A text that identifies this server, without secrets.
    pub fn identity(&self) -> String {
        match self {
            Self::Program { program, arguments, cwd, .. } => {
                format!("{}\0{}\0{}", program.display(), arguments.join("\0"), cwd.display())
            }
            Self::Web(target) => target.url.clone(),
        }
    }

    /// The server at which users log in, under that name; `None` if it is a program.
    pub fn login_server(&self, name: &str) -> Option<LoginServer> {
        let Self::Web(WebTarget { target, .. }) = self else { return None };
        let (url, http) = (target.url.clone(), target.http.clone());
        Some(LoginServer { name: name.to_owned(), url, http })
    }

    /// How its access tokens are obtained; `None` if it needs none.
    pub(super) fn auth(&self) -> Option<&UserAuth> {
        match self {
            Self::Web(target) => target.auth.as_deref(),
            Self::Program { .. } => None,
        }
    }

    /// The owner of the credentials that the calls of a caller use; `None` if there are none.
    pub(super) fn user(&self, caller: &Caller) -> Result<Option<User>, AuthError> {
        self.auth().map(|auth| auth.user(caller)).transpose()
    }

    pub(super) fn needs_credentials(&self) -> bool {
        self.auth().is_some()
    }

    /// The credentials of a user; `None` if the upstream needs none.
    pub(super) fn credentials(
        &self,
        name: &str,
        user: &User,
    ) -> Result<Option<Arc<OAuth>>, AuthError> {
        let auth = self.auth().zip(self.login_server(name));
        auth.map(|(auth, server)| auth.credentials(&server, user)).transpose()
    }

    /// The program that it runs, if that file does not exist.
    pub fn missing_program(&self) -> Option<&Path> {
        let Self::Program { program, env, cwd, .. } = self else { return None };
        find(program, &environment(env), cwd).is_none().then_some(program.as_path())
    }

    /// The transport, by its name in OpenTelemetry.
    pub(super) fn network(&self) -> &'static str {
        match self {
            Self::Program { .. } => "pipe",
            Self::Web(_) => "tcp",
        }
    }

    /// A new transport for one instance. A missing program fails only when it is started, so that
    /// other sources are still served.
    pub(super) fn transport(
        &self,
        supervisor: &Supervisor,
        credentials: Option<Arc<OAuth>>,
    ) -> Arc<dyn Transport> {
        match self {
            Self::Web(target) => {
                HttpTarget { auth: credentials, ..(*target.target).clone() }.transport()
            }
            Self::Program { program, arguments, env, cwd } => {
                let env = environment(env);
                let program = Program {
                    path: find(program, &env, cwd).unwrap_or_else(|| program.clone()),
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

/// The file of a program, by the search path of its own environment.
fn find(program: &Path, env: &[(OsString, OsString)], cwd: &Path) -> Option<PathBuf> {
    let search = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
    which::which_in(program, search, cwd).ok()
}

/// The variables of our own environment that every upstream gets: those that other MCP clients pass
/// on, and those that package runners need. No other variable is passed on: it may be a secret.
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
