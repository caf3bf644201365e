//! The credentials for a server: whose they are, and where they are kept.

use std::sync::Arc;

use sabir_client::{AuthError, Grant, InMemory, Keep, OAuth, OAuthSettings};
use sabir_outbound::HttpClient;
use sabir_wire::Caller;

use super::vault::Vault;

/// How the access tokens for a server are obtained, and whose they are.
#[derive(Clone, Debug)]
pub struct UserAuth {
    /// How a token is obtained.
    pub settings: OAuthSettings,
    /// Where tokens are kept.
    pub vault: Vault,
    /// All callers use the credentials of the user who started the process, instead of their own.
    pub is_shared: bool,
    /// The page on which callers log in, if there is one.
    pub connect: Option<Arc<dyn Connect>>,
}

/// A server at which users log in.
#[derive(Clone, Debug)]
pub struct LoginServer {
    /// Its name for users.
    pub name: String,
    /// Its URL. Credentials are bound to it and to the name.
    pub url: String,
    /// Reaches it.
    pub http: HttpClient,
}

/// A page on which callers log in at other servers.
pub trait Connect: std::fmt::Debug + Send + Sync + 'static {
    /// Where the authorization servers send people back to.
    fn redirect_uri(&self) -> String;

    /// The URL of a document about us, for authorization servers that read such documents.
    fn document(&self) -> Option<String>;

    /// A link with which only this caller can log in; `None` if a browser cannot prove that it is
    /// the caller's.
    fn link(&self, caller: &Caller, server: &str, credentials: &Arc<OAuth>) -> Option<String>;
}

/// The owner of credentials: the issuer and the name of a caller, and the caller's token if that is
/// exchanged. Credentials obtained with one token are never used for another, which may allow less.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct User {
    issuer: Box<str>,
    subject: Box<str>,
    token: Option<Arc<str>>,
}

impl User {
    /// A caller.
    pub(crate) fn of(caller: &Caller) -> Self {
        Self { issuer: caller.issuer().into(), subject: caller.subject().into(), token: None }
    }

    /// Whether the token of the caller is exchanged.
    #[cfg(feature = "upstreams")]
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The user who started the process.
    pub(crate) fn local() -> Self {
        Self::of(&Caller::local())
    }
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("User").field(&self.issuer).field(&self.subject).finish()
    }
}

impl UserAuth {
    /// The owner of the credentials that the calls of a caller use. A caller who is not
    /// authenticated has none of their own.
    pub(crate) fn user(&self, caller: &Caller) -> Result<User, AuthError> {
        if self.settings.grant.exchanges() {
            let token = caller.token().ok_or(AuthError::NoSubject)?;
            return Ok(User { token: Some(token.clone()), ..User::of(caller) });
        }
        Ok(match self.is_shared || !caller.is_vouched_for() {
            true => User::local(),
            false => User::of(caller),
        })
    }

    /// The credentials of a user at a server.
    pub(crate) fn credentials(
        &self,
        server: &LoginServer,
        user: &User,
    ) -> Result<Arc<OAuth>, AuthError> {
        let mut settings = self.settings.clone();
        if let Some(connect) = &self.connect {
            settings.redirect_uri = connect.redirect_uri();
            settings.document = connect.document();
        }
        self.open(server, user, settings)
    }

    /// The credentials of the user who runs this process, for a login whose answer goes to
    /// `redirect_uri`.
    pub fn local(&self, server: &LoginServer, redirect_uri: &str) -> Result<Arc<OAuth>, AuthError> {
        let mut settings = self.settings.clone();
        redirect_uri.clone_into(&mut settings.redirect_uri);
        self.open(server, &User::local(), settings)
    }

    fn open(
        &self,
        server: &LoginServer,
        user: &User,
        mut settings: OAuthSettings,
    ) -> Result<Arc<OAuth>, AuthError> {
        let LoginServer { name, url, http } = server;
        let keep: Arc<dyn Keep> = match settings.grant.exchanges() {
            false => self.vault.slot((&user.issuer, &user.subject), name, url),
            true => Arc::new(InMemory::default()),
        };
        match &user.token {
            Some(token) => settings.subject = Some(token.to_string()),
            // Without a caller, the catalog of the server is listed with our own credentials.
            None if settings.grant.exchanges() => settings.grant = Grant::ClientCredentials,
            None => {}
        }
        Ok(Arc::new(OAuth::new(url, http.clone(), settings, keep)?))
    }

    /// A link with which a caller can log in at the server of that name; `None` if there is no such
    /// page for the caller.
    pub(crate) fn link(
        &self,
        name: &str,
        caller: &Caller,
        credentials: &Arc<OAuth>,
    ) -> Option<String> {
        let is_personal = self.user(caller).is_ok_and(|user| user != User::local());
        self.connect.as_ref().filter(|_| is_personal)?.link(caller, name, credentials)
    }
}
