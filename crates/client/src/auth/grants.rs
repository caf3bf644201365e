//! The grants: a code, our own credentials, an assertion, an exchange.

use super::AuthError;
use super::challenge::Challenge;
use super::discovery::Found;
use super::identity::{Form, Registration, registration_request};
use super::keep::Kept;
use super::metadata::ServerMetadata;
use super::oauth::{OAuth, lock};
use super::proof::{ALGORITHM, ProofKey};
use super::request::Asked;
use super::settings::Grant;
use super::tokens::{TokenAnswer, Tokens, now};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ASSERTION: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const OFFLINE: &str = "offline_access";

impl OAuth {
    /// The scopes to request: those that the token has already and those that the server names.
    pub(super) fn scopes(&self, found: &Found, held: &[String]) -> Vec<String> {
        let named = match self.settings.scopes.is_empty() {
            true => &found.scopes,
            false => &self.settings.scopes,
        };
        let mut scopes = held.to_vec();
        scopes.extend(named.iter().filter(|scope| !held.contains(scope)).cloned());
        let offers = found.metadata.scopes_supported.iter().any(|scope| scope == OFFLINE);
        let is_login = self.settings.grant == Grant::Code;
        if is_login && offers && !scopes.iter().any(|scope| scope == OFFLINE) {
            scopes.push(OFFLINE.to_owned());
        }
        scopes
    }

    /// Prepares a login.
    pub(super) async fn ask(
        &self,
        challenge: &Challenge,
        held: &[String],
    ) -> Result<Asked, AuthError> {
        let found = self.discover(challenge).await?;
        let scopes = self.scopes(&found, held);
        let Found { metadata, resource, .. } = found;
        self.web.check(metadata.authorization_endpoint()?)?;
        let client = self.registration(&metadata).await?;
        let algorithms = &metadata.dpop_signing_alg_values_supported;
        let is_bound = challenge.wants_proof && algorithms.iter().any(|name| name == ALGORITHM);
        let redirect = self.settings.redirect_uri.clone();
        let mut asked = Asked::new(metadata, client, redirect, resource, scopes)?;
        if is_bound {
            asked.key = Some(ProofKey::generate()?.write());
        }
        Ok(asked)
    }

    /// Redeems the code of a login.
    pub(super) async fn redeem(&self, asked: &Asked, query: &str) -> Result<Tokens, AuthError> {
        let code = asked.code(query)?;
        let form = Form::new("authorization_code")
            .with("code", code)
            .with("redirect_uri", &asked.redirect_uri)
            .with("code_verifier", &asked.verifier)
            .with_resource(&asked.resource);
        let key = asked.key.as_deref().map(ProofKey::read).transpose()?;
        let answer = self.request(form, &asked.client, &asked.metadata, key.as_ref()).await;
        if answer.as_ref().is_err_and(AuthError::is_invalid_client) {
            let issuer = &asked.metadata.issuer;
            self.change(|kept| kept.remove_registration(issuer, &asked.client)).await?;
        }
        let answer = answer?;
        let is_bound = answer.is_bound();
        let mut tokens = answer.into_tokens(
            asked.metadata.clone(),
            asked.client.clone(),
            asked.resource.clone(),
            asked.scopes.clone(),
            now(),
        );
        tokens.key = asked.key.clone().filter(|_| is_bound);
        Ok(tokens)
    }

    /// Gets a token without a person.
    pub(super) async fn without_person(
        &self,
        client: Registration,
        metadata: ServerMetadata,
        resource: String,
        scopes: Vec<String>,
    ) -> Result<Tokens, AuthError> {
        let subject = || lock(&self.subject).clone().ok_or(AuthError::NoSubject);
        let form = match &self.settings.grant {
            Grant::Code => return Err(AuthError::LoginNeeded),
            Grant::ClientCredentials => Form::new("client_credentials"),
            Grant::Assertion => Form::new(ASSERTION).with("assertion", subject()?),
            Grant::Exchange => Form::new(EXCHANGE)
                .with("subject_token", subject()?)
                .with("subject_token_type", self.settings.subject_type.urn())
                .with("requested_token_type", ACCESS_TOKEN)
                .with_some("audience", self.settings.audience.as_deref()),
            Grant::Enterprise { token_endpoint, client } => {
                let assertion =
                    self.id_jag(token_endpoint, client, subject()?, &metadata, &resource, &scopes);
                Form::new(ASSERTION).with("assertion", assertion.await?)
            }
        };
        let form = form.with_resource(&resource).with_scopes(&scopes);
        let answer = self.request(form, &client, &metadata, None).await?;
        Ok(answer.into_tokens(metadata, client, resource, scopes, now()))
    }

    /// Exchanges the subject for an assertion (ID-JAG) at its identity provider.
    async fn id_jag(
        &self,
        token_endpoint: &str,
        client: &Registration,
        subject: String,
        metadata: &ServerMetadata,
        resource: &str,
        scopes: &[String],
    ) -> Result<String, AuthError> {
        let provider =
            ServerMetadata { issuer: token_endpoint.to_owned(), ..ServerMetadata::default() };
        let form = Form::new(EXCHANGE)
            .with("requested_token_type", ID_JAG)
            .with("audience", &metadata.issuer)
            .with("resource", resource)
            .with("subject_token", subject)
            .with("subject_token_type", self.settings.subject_type.urn())
            .with_scopes(scopes)
            .signed(client, None, &provider)?;
        Ok(self.web.token(token_endpoint, &form, None).await?.access_token)
    }

    /// Gets the next token without a person; `None` if a person must log in. The credentials are
    /// locked, and `kept` is their current state.
    pub(super) async fn renew(
        &self,
        old: &Tokens,
        kept: &mut Kept,
    ) -> Result<Option<Tokens>, AuthError> {
        // The operator may have changed the secret, and may have registered us anew.
        let client = self.settings.client.as_ref().unwrap_or(&old.client);
        if client.client_id == old.client.client_id {
            let key = old.key.as_deref().map(ProofKey::read).transpose()?;
            for token in old.refresh_tokens(now()) {
                let form = Form::new("refresh_token")
                    .with("refresh_token", &token)
                    .with_resource(&old.resource);
                match self.request(form, client, &old.metadata, key.as_ref()).await {
                    Ok(answer) => return Ok(Some(old.renewed(answer, &token, now()))),
                    Err(error) if error.is_invalid_grant() => {}
                    // Without the registration that we made, its refresh tokens are worthless.
                    Err(error) if error.is_invalid_client() && client.redirect_uri.is_some() => {
                        kept.remove_registration(&old.metadata.issuer, client);
                        self.keep.save(kept).await.map_err(AuthError::Keep)?;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        if self.settings.grant == Grant::Code {
            return Ok(None);
        }
        let (metadata, resource) = (old.metadata.clone(), old.resource.clone());
        let client = self.registration_in(kept, &metadata).await?;
        self.without_person(client, metadata, resource, old.scopes.clone()).await.map(Some)
    }

    async fn request(
        &self,
        form: Form,
        client: &Registration,
        metadata: &ServerMetadata,
        key: Option<&ProofKey>,
    ) -> Result<TokenAnswer, AuthError> {
        let form = form.signed(client, self.settings.key.as_ref(), metadata)?;
        let answer = self.web.token(metadata.token_endpoint()?, &form, key).await?;
        answer.check(key.is_some())?;
        Ok(answer)
    }

    /// Our registration at an authorization server, if we have one.
    fn known_registration(
        &self,
        metadata: &ServerMetadata,
        kept: &Kept,
    ) -> Result<Option<Registration>, AuthError> {
        if let Some(client) = &self.settings.client {
            // The registration of an operator is never used at another authorization server.
            return match &kept.registered_at {
                Some(issuer) if *issuer != metadata.issuer => Err(AuthError::Untrusted(format!(
                    "the client `{}` is registered at `{issuer}`, and the server trusts `{}` now",
                    client.client_id, metadata.issuer
                ))),
                _ => Ok(Some(client.clone())),
            };
        }
        if let Some(document) = &self.settings.document
            && metadata.client_id_metadata_document_supported
        {
            return Ok(Some(Registration::new(document, None)));
        }
        let ours = kept.registrations.get(&metadata.issuer);
        let redirect = Some(&self.settings.redirect_uri);
        Ok(ours.filter(|client| client.redirect_uri.as_ref() == redirect).cloned())
    }

    /// Our registration at an authorization server; registers if there is none.
    pub(super) async fn registration(
        &self,
        metadata: &ServerMetadata,
    ) -> Result<Registration, AuthError> {
        let _locked = self.keep.lock().await.map_err(AuthError::Keep)?;
        let mut kept = self.keep.load().await.map_err(AuthError::Keep)?;
        self.registration_in(&mut kept, metadata).await
    }

    /// The same while the credentials are locked.
    async fn registration_in(
        &self,
        kept: &mut Kept,
        metadata: &ServerMetadata,
    ) -> Result<Registration, AuthError> {
        if let Some(known) = self.known_registration(metadata, kept)? {
            if self.settings.client.is_some() && kept.registered_at.is_none() {
                kept.registered_at = Some(metadata.issuer.clone());
                self.keep.save(kept).await.map_err(AuthError::Keep)?;
            }
            return Ok(known);
        }
        let Some(endpoint) = &metadata.registration_endpoint else {
            let issuer = &metadata.issuer;
            let reason = format!("`{issuer}` registers no clients (expected a client id of ours)");
            return Err(AuthError::Untrusted(reason));
        };
        let request = registration_request(&self.settings, metadata);
        let mut registration = self.web.register(endpoint, &request).await?;
        registration.redirect_uri = Some(self.settings.redirect_uri.clone());
        kept.registrations.insert(metadata.issuer.clone(), registration.clone());
        self.keep.save(kept).await.map_err(AuthError::Keep)?;
        Ok(registration)
    }
}
