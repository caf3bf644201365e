//! Calls whose caller has not logged in at the server.

use std::sync::Arc;
use std::time::Duration;

use sabir_client::OAuth;
use sabir_registry::Context;
use sabir_wire::types::{Elicit, Question};
use tokio::time::Instant;

use super::auth::UserAuth;

/// The key of the only question.
const KEY: &str = "login";
/// How long a call waits for a person who has agreed to log in.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often to check whether the person has logged in.
const PAUSE: Duration = Duration::from_millis(250);

/// The response to a caller without a login.
pub(crate) enum MissingLogin {
    /// The client is asked to open the page.
    Ask(Vec<(String, Question)>),
    /// The client cannot open pages, or its user did not log in: a text with the link.
    Words(String),
    /// No page is served for this caller.
    NoPage,
}

/// The response to a caller who must first log in at the server of that name; `None` if the call
/// can be made. Waits for a caller who `was_asked` and has agreed.
pub(crate) async fn missing_login(
    name: &str,
    auth: &UserAuth,
    credentials: &Arc<OAuth>,
    context: &Context,
    was_asked: bool,
) -> Option<MissingLogin> {
    if credentials.is_ready().await {
        return None;
    }
    if was_asked {
        let answer = context.answers.iter().find(|(key, _)| key == KEY);
        let action = answer.and_then(|(_, answer)| answer.member("action"));
        let has_agreed = action.is_none_or(|action| action.text() == "\"accept\"");
        let is_done = has_agreed
            && tokio::select! {
                is_done = wait(credentials) => is_done,
                () = context.call.cancelled() => false,
            };
        if is_done {
            return None;
        }
    }
    let Some(link) = auth.link(name, &context.caller, credentials) else {
        return Some(MissingLogin::NoPage);
    };
    if context.capabilities.elicitation_url && !was_asked {
        let message = format!("`{name}` needs your own login there. Log in on this page.");
        let question = Question::Elicit(Elicit::url(message, link));
        return Some(MissingLogin::Ask(vec![(KEY.to_owned(), question)]));
    }
    Some(MissingLogin::Words(format!(
        "`{name}` needs the user's own login there: ask the user to open {link} and to log in, then \
         repeat the call"
    )))
}

async fn wait(credentials: &OAuth) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        tokio::time::sleep(PAUSE).await;
        if credentials.is_ready().await {
            return true;
        }
    }
    false
}
