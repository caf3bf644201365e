//! Calls whose caller has not logged in at the upstream.

use sabir_client::AuthError;
use sabir_registry::{Ask, Context};
use sabir_wire::Problem;

use super::instance::Instance;
use super::parked::State;
use super::server::Upstream;
use crate::login::{MissingLogin, missing_login};

impl Upstream {
    /// The questions to the caller that must precede the call; `None` if it can be made now.
    pub(super) async fn ask_login(
        &self,
        instance: &Instance,
        context: &Context,
        state: Option<&State>,
    ) -> Result<Option<Ask>, Problem> {
        let Some((auth, credentials)) = self.reach.auth().zip(instance.credentials.as_ref()) else {
            return Ok(None);
        };
        let was_asked = matches!(state, Some(State::Login));
        let name = &self.settings.name;
        let reason = match missing_login(name, auth, credentials, context, was_asked).await {
            None => return Ok(None),
            Some(MissingLogin::Ask(questions)) => {
                let state = State::Login.write();
                return Ok(Some(Ask { questions, state, ..Ask::default() }));
            }
            Some(MissingLogin::Words(reason)) => reason,
            Some(MissingLogin::NoPage) => {
                self.describe_failure(instance, &AuthError::LoginNeeded.to_string())
            }
        };
        Err(Problem::ToolFailed(reason.into()))
    }
}
