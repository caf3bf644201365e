//! APIs at which each user logs in: a call has the token of its caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sabir_client::{AuthError, OAuth};
use sabir_registry::{Ask, Context};
use sabir_wire::Raw;

use crate::login::{LoginServer, MissingLogin, User, UserAuth, missing_login};

/// Users whose credentials are in memory. When full, all are forgotten: they are read again from
/// where they are kept.
const MAX_KNOWN: usize = 1024;

/// The logins of users at an API.
#[derive(Debug)]
pub struct UserLogin {
    auth: UserAuth,
    server: LoginServer,
    known: Mutex<HashMap<User, Arc<OAuth>>>,
}

impl UserLogin {
    /// Logins at a server.
    pub fn new(auth: UserAuth, server: LoginServer) -> Self {
        Self { auth, server, known: Mutex::default() }
    }

    /// The credentials that the calls of a caller use.
    pub(super) fn credentials(&self, context: &Context) -> Result<Arc<OAuth>, String> {
        let user = self.auth.user(&context.caller).map_err(|error| self.describe(&error))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(credentials) = known.get(&user) {
            return Ok(credentials.clone());
        }
        let credentials = self.auth.credentials(&self.server, &user);
        let credentials = credentials.map_err(|error| self.describe(&error))?;
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(user, credentials.clone());
        Ok(credentials)
    }

    /// The questions to the caller that must precede the call; `None` if it can be made now. The
    /// error is for the model.
    pub(super) async fn ask(
        &self,
        credentials: &Arc<OAuth>,
        context: &Context,
    ) -> Result<Option<Ask>, String> {
        let name = &self.server.name;
        // No other question is ever asked, so any state is that of this one.
        let was_asked = context.state.is_some();
        match missing_login(name, &self.auth, credentials, context, was_asked).await {
            None => Ok(None),
            Some(MissingLogin::Ask(questions)) => {
                let state = Some(Raw::empty_object());
                Ok(Some(Ask { questions, state, ..Ask::default() }))
            }
            Some(MissingLogin::Words(reason)) => Err(reason),
            Some(MissingLogin::NoPage) => Err(self.describe(&AuthError::LoginNeeded)),
        }
    }

    /// The reason why the token is missing.
    pub(super) fn describe(&self, error: &AuthError) -> String {
        let name = &self.server.name;
        match error {
            AuthError::LoginNeeded => {
                format!("`{name}`: {error} (run `sabir upstream login {name}`)")
            }
            error => format!("`{name}`: {error}"),
        }
    }
}
