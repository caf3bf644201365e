use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use sabir_outbound::{Error, HttpClient, Limits, Redirects};

use crate::server::{Server, get, local, text};

fn to(status: StatusCode, location: &str) -> Response<Full<Bytes>> {
    let response = Response::builder().status(status).header(header::LOCATION, location);
    response.body(Full::default()).unwrap()
}

/// Answers with the request that arrived.
fn describe(request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let mut names: Vec<_> = request.headers().keys().map(|name| name.as_str()).collect();
    names.retain(|name| !["host", "accept-encoding", "content-length"].contains(name));
    names.sort_unstable();
    text(&format!("{} {} {}", request.method(), request.uri().path(), names.join(",")))
}

async fn post(client: &HttpClient, url: &str) -> Result<(StatusCode, Bytes), Error> {
    let mut key = HeaderValue::from_static("secret");
    key.set_sensitive(true);
    let request = Request::post(url)
        .header("authorization", "Bearer secret")
        .header("x-key", key)
        .header("x-other", "1")
        .body(Bytes::from_static(b"{}"))
        .unwrap();
    let response = client.send(request, &Limits::default()).await?;
    Ok((response.status(), response.into_body().read().await?))
}

#[tokio::test]
async fn redirects_are_returned_unless_they_are_asked_for() {
    let server = Server::start(|_| to(StatusCode::TEMPORARY_REDIRECT, "/b")).await;
    let (status, _) = post(&local(Redirects::Never), &server.url("/a")).await.unwrap();
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
}

#[tokio::test]
async fn each_status_keeps_or_changes_the_method() {
    let server = Server::start(|request| match request.uri().path() {
        "/302" => to(StatusCode::FOUND, "/end"),
        "/303" => to(StatusCode::SEE_OTHER, "/end"),
        "/308" => to(StatusCode::PERMANENT_REDIRECT, "/end"),
        _ => describe(&request),
    })
    .await;
    let client = local(Redirects::SameOrigin);
    let kept = "authorization,x-key,x-other";
    for (path, status, body) in [
        ("/302", 302, String::new()),
        ("/303", 200, format!("GET /end {kept}")),
        ("/308", 200, format!("POST /end {kept}")),
    ] {
        let (found, text) = post(&client, &server.url(path)).await.unwrap();
        assert_eq!((found.as_u16(), &*text), (status, body.as_bytes()), "{path}");
    }
    let followed = get(&client, &server.url("/302"), &Limits::default()).await.unwrap();
    assert_eq!(followed, "GET /end ");
}

#[tokio::test]
async fn another_origin_is_refused_or_gets_no_secrets() {
    let other = Server::start(|request| describe(&request)).await;
    let target = other.url("/end");
    let server = Server::start(move |_| to(StatusCode::TEMPORARY_REDIRECT, &target)).await;
    let error = post(&local(Redirects::SameOrigin), &server.url("/")).await.unwrap_err();
    assert!(error.to_string().ends_with("(it leads to another origin)"), "{error}");
    let (_, body) = post(&local(Redirects::Follow), &server.url("/")).await.unwrap();
    assert_eq!(body, "POST /end x-other");
}

#[tokio::test]
async fn a_redirect_to_a_forbidden_address_is_refused() {
    for (target, expected) in [
        ("https://169.254.169.254/latest/meta-data", "it is not a public address"),
        ("http://10.0.0.1/", "plain http to `10.0.0.1`"),
        ("file:///etc/passwd", "invalid URL"),
    ] {
        let server = Server::start(move |_| to(StatusCode::FOUND, target)).await;
        let client = local(Redirects::Follow);
        let error = get(&client, &server.url("/"), &Limits::default()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{target}: {error}");
    }
}

#[tokio::test]
async fn a_ring_of_redirects_ends() {
    let server = Server::start(|_| to(StatusCode::FOUND, "/")).await;
    let client = local(Redirects::Follow);
    let error = get(&client, &server.url("/"), &Limits::default()).await.unwrap_err();
    assert!(error.to_string().ends_with("(too many redirects (limit 10))"), "{error}");
}
