//! Servers that demand tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, header};
use sabir_client::{
    AuthError, Client, ClientConfig, Grant, HttpTarget, InMemory, Keep, Keeping, Kept, Locked,
    OAuth, OAuthSettings, Registration, Visit, Visiting,
};
use sabir_outbound::{Addresses, HttpClient, Limits, PlainHttp, Policy};
use sabir_testkit::Provider;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

/// A person who agrees to everything.
#[derive(Debug)]
struct Person(&'static str);

impl Visit for Person {
    fn visit(&self, mut url: Url) -> Visiting<'_> {
        Box::pin(async move {
            url.query_pairs_mut().append_pair("user", self.0);
            let policy = Policy {
                addresses: Addresses::PublicAndLoopback,
                plain_http: PlainHttp::Loopback,
                ..Policy::default()
            };
            let request = Request::get(url.as_str()).body(Bytes::new()).unwrap();
            let sent = HttpClient::new(policy).unwrap().send(request, &Limits::default()).await;
            let sent = sent.unwrap();
            let place = sent.headers()[header::LOCATION].to_str().unwrap();
            Ok(Url::parse(place).unwrap().query().unwrap_or_default().to_owned())
        })
    }
}

fn credentials(
    provider: &Provider,
    keep: Arc<dyn Keep>,
    settings: OAuthSettings,
) -> (HttpTarget, Arc<OAuth>) {
    let target = HttpTarget::new(&*provider.url).unwrap();
    let auth = Arc::new(OAuth::new(&provider.url, target.http.clone(), settings, keep).unwrap());
    (HttpTarget { auth: Some(auth.clone()), ..target }, auth)
}

fn person(name: &'static str) -> OAuthSettings {
    let mut settings = OAuthSettings::new(Grant::Code);
    settings.redirect_uri = "http://127.0.0.1:9/callback".into();
    settings.visit = Some(Arc::new(Person(name)));
    settings
}

fn client(target: HttpTarget) -> Client {
    Client::without_answers(target.transport(), ClientConfig::default())
}

async fn who(client: &Client, expected: &str) -> String {
    let reply = client.call_tool("whoami", json!({ "as": expected })).await.unwrap();
    format!("{:?}", reply.content)
}

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_person_logs_in_once_for_all_calls() {
    let provider = Provider::start(LONG).await.unwrap();
    let keep = Arc::new(InMemory::default());
    let ann = client(credentials(&provider, keep.clone(), person("ann")).0);
    assert_eq!(ann.list_tools().await.unwrap().len(), 1);
    assert!(who(&ann, "ann").await.contains("ann"));
    // Another process with the same credentials needs no person.
    let mut settings = person("nobody");
    settings.visit = None;
    let again = client(credentials(&provider, keep, settings).0);
    assert!(who(&again, "ann").await.contains("ann"));
    let issued = provider.issued();
    assert_eq!((issued.registrations, issued.logins, issued.mixed_up), (1, 1, 0), "{issued:?}");
}

#[tokio::test]
async fn without_a_person_a_call_says_what_is_needed() {
    let provider = Provider::start(LONG).await.unwrap();
    let mut settings = person("ann");
    settings.visit = None;
    let (target, auth) = credentials(&provider, Arc::new(InMemory::default()), settings);
    assert!(!auth.is_ready().await);
    let failed = client(target).list_tools().await.unwrap_err();
    assert_eq!(failed.auth(), Some(&AuthError::LoginNeeded), "{failed}");
    // The login in two steps, as a page does it.
    let login = auth.begin_login().await.unwrap();
    let query = Person("ann").visit(login.url.clone()).await.unwrap();
    assert!(auth.finish_login(&login, "code=x&state=wrong").await.is_err());
    auth.finish_login(&login, &query).await.unwrap();
    assert!(auth.is_ready().await);
    auth.forget().await.unwrap();
    assert!(!auth.is_ready().await);
}

#[tokio::test]
async fn our_own_credentials_need_no_person() {
    let provider = Provider::start(LONG).await.unwrap();
    let mut settings = OAuthSettings::new(Grant::ClientCredentials);
    settings.client = Some(Registration::new("service", Some("secret".into())));
    let service = client(credentials(&provider, Arc::new(InMemory::default()), settings).0);
    assert!(who(&service, "service").await.contains("service"));
}

/// The operator replaces logins by credentials of the service. The kept token, which has expired, is
/// then renewed with a client that was never used before.
#[tokio::test]
async fn credentials_that_replace_logins_renew_the_kept_token() {
    let provider = Provider::start(Duration::from_secs(1)).await.unwrap();
    let keep = Arc::new(InMemory::default());
    let ann = client(credentials(&provider, keep.clone(), person("ann")).0);
    assert!(who(&ann, "ann").await.contains("ann"));
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let mut settings = OAuthSettings::new(Grant::ClientCredentials);
    settings.client = Some(Registration::new("service", Some("secret".into())));
    let service = client(credentials(&provider, keep, settings).0);
    let called = tokio::time::timeout(Duration::from_secs(10), who(&service, "service")).await;
    assert!(called.expect("the credentials are not locked twice").contains("service"));
}

/// A token endpoint that knows no client.
async fn forgetful_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 4096]).await;
            let body = r#"{"error":"invalid_client"}"#;
            let length = body.len();
            let head = "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length:";
            let _ = socket.write_all(format!("{head} {length}\r\n\r\n{body}").as_bytes()).await;
        }
    });
    url
}

/// Changes the kept credentials, as JSON.
async fn change(keep: &InMemory, change: impl FnOnce(&mut Value)) {
    let mut kept = serde_json::to_value(keep.load().await.unwrap()).unwrap();
    change(&mut kept);
    keep.save(&serde_json::from_value(kept).unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_registration_that_the_server_has_forgotten_is_replaced() {
    let provider = Provider::start(LONG).await.unwrap();
    let keep = Arc::new(InMemory::default());
    let ann = client(credentials(&provider, keep.clone(), person("ann")).0);
    assert!(who(&ann, "ann").await.contains("ann"));
    let endpoint = forgetful_endpoint().await;
    change(&keep, |kept| {
        kept["tokens"]["expires"] = 1.into();
        kept["tokens"]["metadata"]["token_endpoint"] = endpoint.into();
    })
    .await;
    let mut absent = person("ann");
    absent.visit = None;
    let failed = client(credentials(&provider, keep.clone(), absent).0).list_tools().await;
    let failed = failed.unwrap_err();
    assert_eq!(failed.auth(), Some(&AuthError::LoginNeeded), "{failed}");
    let (target, auth) = credentials(&provider, keep, person("ann"));
    assert!(who(&client(target), "ann").await.contains("ann"));
    let issued = provider.issued();
    assert_eq!((issued.registrations, issued.logins), (2, 2), "{issued:?}");
    // Some servers show an unknown client only an error page. An operator then logs out.
    auth.forget().await.unwrap();
    auth.begin_login().await.unwrap();
    assert_eq!(provider.issued().registrations, 3);
}

#[tokio::test]
async fn a_token_that_is_refused_early_is_renewed_once() {
    let provider = Provider::start(LONG).await.unwrap();
    let ann = client(credentials(&provider, Arc::new(InMemory::default()), person("ann")).0);
    assert!(who(&ann, "ann").await.contains("ann"));
    provider.revoke();
    let calls = (0..50).map(|_| who(&ann, "ann"));
    for text in futures_util::future::join_all(calls).await {
        assert!(text.contains("ann"));
    }
    let issued = provider.issued();
    assert_eq!((issued.logins, issued.refreshes_of("ann")), (1, 1), "{issued:?}");
    assert_eq!(issued.reused, 0, "{issued:?}");
}

/// A place that cannot be written now.
#[derive(Debug, Default)]
struct ReadOnly {
    place: InMemory,
    is_full: AtomicBool,
}

impl Keep for ReadOnly {
    fn lock(&self) -> Keeping<'_, Locked> {
        self.place.lock()
    }

    fn load(&self) -> Keeping<'_, Kept> {
        self.place.load()
    }

    fn save<'a>(&'a self, kept: &'a Kept) -> Keeping<'a, ()> {
        match self.is_full.load(Ordering::SeqCst) {
            true => Box::pin(async { Err("it is full".to_owned()) }),
            false => self.place.save(kept),
        }
    }
}

#[tokio::test]
async fn a_renewed_token_that_cannot_be_kept_is_used_and_kept_later() {
    let provider = Provider::start(LONG).await.unwrap();
    let keep = Arc::new(ReadOnly::default());
    let ann = client(credentials(&provider, keep.clone(), person("ann")).0);
    assert!(who(&ann, "ann").await.contains("ann"));
    let kept = async || {
        let kept = serde_json::to_value(keep.load().await.unwrap()).unwrap();
        kept["tokens"]["access"].clone()
    };
    let old = kept().await;
    provider.revoke();
    keep.is_full.store(true, Ordering::SeqCst);
    assert!(who(&ann, "ann").await.contains("ann"));
    assert_eq!(kept().await, old);
    keep.is_full.store(false, Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_secs(15);
    while kept().await == old {
        assert!(Instant::now() < deadline, "it is never kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Another process needs no person, and does not use the old refresh token.
    let mut absent = person("ann");
    absent.visit = None;
    assert!(who(&client(credentials(&provider, keep, absent).0), "ann").await.contains("ann"));
    let issued = provider.issued();
    assert_eq!((issued.logins, issued.reused), (1, 0), "{issued:?}");
}

/// Two users, one server, tokens that expire meanwhile: a user's token is never sent for the other,
/// and each token is renewed once, however many calls wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_users_and_tokens_that_expire() {
    const ROUNDS: usize = 3;
    let provider = Provider::start(Duration::from_secs(3)).await.unwrap();
    let ann = client(credentials(&provider, Arc::new(InMemory::default()), person("ann")).0);
    let bob = client(credentials(&provider, Arc::new(InMemory::default()), person("bob")).0);
    for round in 0..ROUNDS {
        let (ann, bob) = (&ann, &bob);
        let calls = (0..200).map(|n| async move {
            let (client, name) = if n % 2 == 0 { (ann, "ann") } else { (bob, "bob") };
            who(client, name).await.contains(name)
        });
        let right = futures_util::future::join_all(calls).await.into_iter().filter(|r| *r).count();
        assert_eq!(right, 200, "round {round}");
        tokio::time::sleep(Duration::from_millis(2400)).await;
    }
    let issued = provider.issued();
    assert_eq!((issued.calls, issued.mixed_up), (200 * ROUNDS, 0), "{issued:?}");
    assert_eq!((issued.logins, issued.reused), (2, 0), "{issued:?}");
    for user in ["ann", "bob"] {
        assert!(issued.refreshes_of(user) >= ROUNDS - 1, "{issued:?}");
    }
    assert_eq!(issued.early, 0, "{issued:?}");
}

#[tokio::test]
async fn a_token_is_exchanged_and_never_sent_to_the_server() {
    let provider = Provider::start(LONG).await.unwrap();
    let exchange = |subject: Option<&str>, issuer: &str| {
        let mut settings = OAuthSettings::new(Grant::Exchange);
        settings.client = Some(Registration::new("sabir", Some("secret".into())));
        settings.issuer = Some(issuer.to_owned());
        settings.subject = subject.map(str::to_owned);
        client(credentials(&provider, Arc::new(InMemory::default()), settings).0)
    };
    let issuer = provider.url.strip_suffix("/mcp").unwrap();
    let ann = exchange(Some("subject-of-ann"), issuer);
    for _ in 0..3 {
        assert!(who(&ann, "ann").await.contains("ann"));
    }
    let anonymous = exchange(None, issuer).list_tools().await.unwrap_err();
    assert_eq!(anonymous.auth(), Some(&AuthError::NoSubject), "{anonymous}");
    // The server names another issuer than the one that may see the token.
    let elsewhere = exchange(Some("subject-of-ann"), "https://as.example").list_tools().await;
    let refused = elsewhere.unwrap_err().to_string();
    assert!(refused.contains("expected `https://as.example`"), "{refused}");
    let strange = exchange(Some("stranger"), issuer).list_tools().await.unwrap_err();
    assert!(strange.to_string().contains("invalid_grant"), "{strange}");
    let issued = provider.issued();
    assert_eq!((issued.exchanges, issued.foreign, issued.mixed_up), (2, 0, 0), "{issued:?}");
}
