use http::Request;

use super::*;

fn guard(address: &str, change: impl FnOnce(&mut Settings)) -> Guard {
    let mut settings = Settings { address: address.parse().unwrap(), ..Settings::default() };
    change(&mut settings);
    Guard::new(&settings)
}

fn local() -> Guard {
    guard("127.0.0.1:7331", |_| {})
}

fn head(pairs: &[(&str, &str)]) -> Parts {
    let request = pairs.iter().fold(Request::builder(), |r, (name, value)| r.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

fn status(guard: &Guard, pairs: &[(&str, &str)]) -> u16 {
    let head = head(pairs);
    let checked = guard.check_origin(head.uri.authority(), head.version, &head.headers);
    checked.err().map_or(200, |refusal| refusal.status.as_u16())
}

#[test]
fn a_local_server_is_called_by_local_names_only() {
    for host in [
        "localhost",
        "LocalHost:7331",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.9.9.9",
        "[::1]",
        "[::1]:80",
    ] {
        assert_eq!(status(&local(), &[("host", host)]), 200, "{host}");
    }
    for host in [
        "evil.example.com",
        "localhost.evil.example.com",
        "127.0.0.1.evil.example.com",
        "192.168.0.1",
        "[::2]",
        "",
        "localhost@evil.example.com",
    ] {
        assert_eq!(status(&local(), &[("host", host)]), 403, "{host}");
    }
    assert_eq!(status(&local(), &[]), 400);
    assert_eq!(status(&local(), &[("host", "localhost"), ("host", "evil.example.com")]), 403);
}

#[test]
fn a_foreign_origin_alone_is_refused() {
    let origin = |origin| status(&local(), &[("host", "localhost"), ("origin", origin)]);
    for good in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:80"] {
        assert_eq!(origin(good), 200, "{good}");
    }
    for bad in [
        "null",
        "",
        "http://evil.example.com",
        "http://localhost.evil.example.com",
        "file://localhost",
        "http://localhost:80.evil.example.com",
        "http://evil.example.com:80@localhost",
    ] {
        assert_eq!(origin(bad), 403, "{bad}");
    }
}

#[test]
fn lists_let_others_in() {
    let listed = guard("127.0.0.1:7331", |settings| {
        settings.origins = vec!["https://App.example.com".into()];
        settings.hosts = vec!["mcp.example.com".into(), "other.example.com:8080".into()];
    });
    let from = |host, origin| status(&listed, &[("host", host), ("origin", origin)]);
    assert_eq!(from("mcp.example.com:443", "https://app.example.com"), 200);
    assert_eq!(from("other.example.com:8080", "http://localhost"), 200);
    assert_eq!(from("other.example.com:8081", "http://localhost"), 403);
    assert_eq!(from("localhost", "http://app.example.com"), 403);
    let all = guard("127.0.0.1:7331", |settings| settings.origins = vec!["*".into()]);
    assert_eq!(status(&all, &[("host", "localhost"), ("origin", "http://any.example")]), 200);
}

#[test]
fn a_public_server_knows_no_origin_of_its_own() {
    let public = guard("0.0.0.0:80", |_| {});
    assert_eq!(status(&public, &[("host", "anything.example.com")]), 200);
    let local_page = [("host", "anything.example.com"), ("origin", "http://localhost")];
    assert_eq!(status(&public, &local_page), 403);
    let named = guard("0.0.0.0:80", |settings| settings.hosts = vec!["mcp.example.com".into()]);
    assert_eq!(status(&named, &[("host", "localhost")]), 403);
    assert_eq!(status(&named, &[("host", "mcp.example.com")]), 200);
}

#[test]
fn a_client_must_take_both_kinds_of_answer() {
    let accepts = |value: &str| {
        let both = ["application/json", "text/event-stream"];
        check_accept(&head(&[("accept", value)]).headers, &both).is_ok()
    };
    for good in [
        "application/json, text/event-stream",
        "text/event-stream;q=0.5,application/json",
        "*/*",
        "application/*, text/*",
        "Application/JSON, Text/Event-Stream",
    ] {
        assert!(accepts(good), "{good}");
    }
    for bad in [
        "application/json",
        "text/event-stream",
        "text/html",
        "application/json, text/event-stream;q=0",
        "",
    ] {
        assert!(!accepts(bad), "{bad}");
    }
    assert!(check_accept(&HeaderMap::new(), &["application/json"]).is_ok());
}

#[test]
fn a_body_must_be_said_to_be_json() {
    let is_json = |value| check_content_type(&head(&[("content-type", value)]).headers).is_ok();
    assert!(is_json("application/json") && is_json("Application/Json; charset=utf-8"));
    assert!(!is_json("text/plain") && !is_json("application/jsonx") && !is_json(""));
    assert!(check_content_type(&HeaderMap::new()).is_err());
}

#[test]
fn the_head_has_a_limit() {
    let head = head(&[("a", "12345")]);
    // The path `/`, and the line with its colon, blank and line end.
    let size = 1 + 1 + 5 + 4;
    assert!(check_size(&head, size).is_ok());
    assert_eq!(check_size(&head, size - 1).unwrap_err().status.as_u16(), 431);
}
