//! How access tokens are got: `auth` of an `[[upstream]]`, and the logins of users at APIs.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use etcetera::BaseStrategy as _;
use sabir_client::{ClientKey, Grant, OAuth, OAuthSettings, Registration, SubjectType};
use sabir_cluster::Cluster;
use sabir_sources::login::{Connect, LoginServer, UserAuth, Vault};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::file::Seal;
use super::mistake::{Mistake, Mistakes, Place, Text};

/// `auth` as a table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    kind: Option<String>,
    header: Option<String>,
    env: Option<String>,
    shared: bool,
    issuer: Option<String>,
    scopes: Vec<String>,
    client_id: Option<String>,
    client_secret_env: Option<String>,
    private_key_env: Option<String>,
    algorithm: Option<String>,
    folder: Option<String>,
    audience: Option<String>,
    token_type: Option<String>,
    provider: Option<Provider>,
}

/// `provider`: who gives assertions (ID-JAG) for the tokens of callers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Provider {
    token_url: String,
    client_id: String,
    client_secret_env: Option<String>,
}

/// What `auth` says.
#[derive(Clone, Debug)]
pub(super) enum Settled {
    /// A header with a secret.
    Header(String, String),
    /// Access tokens.
    Tokens(Box<AuthPlan>),
}

/// How access tokens are got. Nothing is opened yet.
#[derive(Clone, Debug)]
pub(crate) struct AuthPlan {
    pub(super) settings: OAuthSettings,
    pub(super) folder: PathBuf,
    /// The file names the folder.
    pub(super) has_folder: bool,
    pub(super) key: Option<[u8; 32]>,
    pub(super) is_shared: bool,
    pub(super) place: Place,
}

const EXPECTED: &str = "\"oauth\", or a table with `kind` or `header`";

/// Settles `auth`.
pub(super) fn settle(
    written: &Spanned<Value>,
    seal: &Seal,
    owner: &str,
    text: &Text<'_>,
) -> Result<Settled, Mistake> {
    let wrong = |reason: String| text.mistake(written.span(), format!("{owner}: auth: {reason}"));
    let table = match written.get_ref() {
        Value::String(kind) => Table { kind: Some(kind.clone()), ..Table::default() },
        Value::Table(table) => Table::deserialize(table.clone())
            .map_err(|error| wrong(error.message().trim().to_owned()))?,
        _ => return Err(wrong(format!("invalid value (expected {EXPECTED})"))),
    };
    if let Some(header) = &table.header {
        let env = table.env.as_deref().filter(|_| table.kind.is_none());
        let env = env.ok_or_else(|| wrong("`header` without `env` (expected both)".into()))?;
        return Ok(Settled::Header(header.clone(), secret(env, text).map_err(wrong)?));
    }
    let grant = grant(&table, text).map_err(wrong)?;
    let mut settings = OAuthSettings::new(grant.clone());
    settings.subject_type = subject_type(&table).map_err(wrong)?;
    settings.audience.clone_from(&table.audience);
    settings.issuer.clone_from(&table.issuer);
    settings.scopes.clone_from(&table.scopes);
    if let Some(env) = &table.private_key_env {
        let algorithm = table.algorithm.as_deref().unwrap_or("ES256");
        let pem = secret(env, text).map_err(wrong)?;
        settings.key = Some(ClientKey::from_pem(&pem, algorithm).map_err(wrong)?);
    }
    let client_secret = table.client_secret_env.as_deref();
    let client_secret = client_secret.map(|name| secret(name, text)).transpose();
    let client_secret = client_secret.map_err(wrong)?;
    // A secret is for one authorization server: the upstream must not choose which.
    if (client_secret.is_some() || grant == Grant::Assertion) && table.issuer.is_none() {
        let expected = "the authorization server that may see the secret";
        return Err(wrong(format!("no `issuer` (expected {expected})")));
    }
    settings.client = table.client_id.map(|id| Registration::new(id, client_secret));
    if grant == Grant::Assertion {
        let env =
            table.env.as_deref().ok_or_else(|| wrong("no `env` with the assertion".into()))?;
        settings.subject = Some(secret(env, text).map_err(wrong)?);
    }
    Ok(Settled::Tokens(Box::new(AuthPlan {
        settings,
        folder: folder(table.folder.as_deref(), text).ok_or_else(|| wrong(NO_FOLDER.into()))?,
        has_folder: table.folder.is_some(),
        key: key(seal, text),
        // Our own credentials are the same for all callers.
        is_shared: table.shared || !(grant == Grant::Code || grant.exchanges()),
        place: text.place(written.span()),
    })))
}

/// The mistake without a folder for credentials.
pub(super) const NO_FOLDER: &str = "no home folder for credentials (expected `folder`)";

fn secret(name: &str, text: &Text<'_>) -> Result<String, String> {
    let value = text.variable(name).and_then(|value| value.into_string().ok());
    value.ok_or_else(|| format!("environment variable `{name}` is not set"))
}

/// What `kind` says.
fn grant(table: &Table, text: &Text<'_>) -> Result<Grant, String> {
    let grant = match (table.kind.as_deref(), &table.provider) {
        (Some("oauth"), None) => Grant::Code,
        (Some("client_credentials"), None) => Grant::ClientCredentials,
        (Some("assertion"), None) => Grant::Assertion,
        (Some("exchange"), None) => Grant::Exchange,
        (Some("exchange"), Some(Provider { token_url, client_id, client_secret_env })) => {
            let client_secret = client_secret_env.as_deref();
            let client_secret = client_secret.map(|name| secret(name, text)).transpose()?;
            let client = Registration::new(client_id, client_secret);
            Grant::Enterprise { token_endpoint: token_url.clone(), client }
        }
        (Some(kind), Some(_)) => {
            return Err(format!("`provider` with `kind = \"{kind}\"` (expected \"exchange\")"));
        }
        _ => return Err(format!("invalid value (expected {EXPECTED})")),
    };
    if grant != Grant::Code && table.client_id.is_none() {
        return Err("no `client_id` (expected the name that we have there)".into());
    }
    if !grant.exchanges() && (table.audience.is_some() || table.token_type.is_some()) {
        return Err("`audience` and `token_type` belong to `kind = \"exchange\"`".into());
    }
    if grant.exchanges() && table.shared {
        return Err("`shared` with `kind = \"exchange\"` (expected each caller's own token)".into());
    }
    // The callers' tokens are sent there: the upstream must not choose.
    if grant.exchanges() && table.issuer.is_none() {
        let expected = "the authorization server that may see the callers' tokens";
        return Err(format!("no `issuer` (expected {expected})"));
    }
    Ok(grant)
}

fn subject_type(table: &Table) -> Result<SubjectType, String> {
    match table.token_type.as_deref() {
        None | Some("access_token") => Ok(SubjectType::AccessToken),
        Some("id_token") => Ok(SubjectType::IdToken),
        Some("jwt") => Ok(SubjectType::Jwt),
        Some(other) => {
            let expected = "\"access_token\", \"id_token\" or \"jwt\"";
            Err(format!("invalid `token_type` `{other}` (expected {expected})"))
        }
    }
}

/// The folder of credentials: by default, in the user's data folder.
pub(super) fn folder(written: Option<&str>, text: &Text<'_>) -> Option<PathBuf> {
    data_folder(written, "credentials", text)
}

/// The folder that is written, or the one of this name in the user's data folder.
pub(super) fn data_folder(written: Option<&str>, name: &str, text: &Text<'_>) -> Option<PathBuf> {
    if let Some(path) = written {
        return Some(text.resolve(path));
    }
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.data_dir().join("sabir").join(name))
}

/// The key of `[seal]`, if there is one. If it is wrong, that is reported where it is settled.
pub(super) fn key(seal: &Seal, text: &Text<'_>) -> Option<[u8; 32]> {
    let value = text.variable(seal.key_env.as_ref()?.get_ref())?.into_string().ok()?;
    STANDARD.decode(value.trim()).ok()?.try_into().ok()
}

impl AuthPlan {
    /// Opens the place where credentials are kept, which is the store of the cluster unless the file
    /// names a folder. Callers log in on the page, if there is one.
    pub(super) fn open(
        &self,
        connect: Option<Arc<dyn Connect>>,
        cluster: Option<&Cluster>,
    ) -> Result<UserAuth, Mistake> {
        let vault = match cluster.filter(|_| !self.has_folder) {
            Some(cluster) => Vault::shared(cluster.clone()),
            None => Vault::open(&self.folder, self.key).map_err(|error| {
                let folder = self.folder.display();
                self.mistake(format!("cannot keep credentials in {folder}: {error}"))
            })?,
        };
        let (settings, is_shared) = (self.settings.clone(), self.is_shared);
        Ok(UserAuth { settings, vault, is_shared, connect })
    }

    /// A mistake at the place of `auth`.
    fn mistake(&self, what: String) -> Mistake {
        self.place.clone().mistake(what)
    }
}

/// A server whose access tokens are kept.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(super) server: LoginServer,
    pub(super) plan: AuthPlan,
}

impl Login {
    /// What users call the server.
    pub(crate) fn name(&self) -> &str {
        &self.server.name
    }

    /// Whether a person has to log in.
    pub(crate) fn needs_person(&self) -> bool {
        self.plan.settings.grant == Grant::Code
    }

    /// The credentials of the user at the terminal.
    pub(crate) fn open(
        &self,
        redirect_uri: &str,
        cluster: Option<&Cluster>,
    ) -> Result<Arc<OAuth>, Mistakes> {
        let opened = self.plan.open(None, cluster)?.local(&self.server, redirect_uri);
        Ok(opened.map_err(|error| self.plan.mistake(error.to_string()))?)
    }

    /// Whether the tokens of callers are exchanged.
    pub(crate) fn exchanges(&self) -> bool {
        self.plan.settings.grant.exchanges()
    }
}
