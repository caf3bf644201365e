use super::*;
use crate::store::tests::{
    a_list_keeps_the_newest_items, a_record_expires, a_record_is_replaced_by_compare_and_set,
    counts_are_shared_and_all_or_nothing,
};

#[tokio::test]
async fn the_own_address_is_that_of_the_way_to_the_server() {
    for url in
        ["redis://127.0.0.1:1", "redis+sentinel://127.0.0.1/main", "redis+cluster://127.0.0.1:1"]
    {
        // Nothing is sent, so no server has to listen there.
        let own = Redis::new(url, "a").unwrap().own_address().await.unwrap();
        assert_eq!(own, Some(IpAddr::from([127, 0, 0, 1])), "{url}");
    }
    let local = Redis::new("redis+unix:///nowhere", "a").unwrap();
    assert_eq!(local.own_address().await.unwrap(), None);
}

#[tokio::test]
async fn a_node_that_was_too_slow_to_hear_everything_is_told_so() {
    let Ok(url) = std::env::var("SABIR_TEST_REDIS") else { return };
    let redis = Redis::new(&url, "slow").unwrap();
    let mut heard = redis.listen();
    // Messages before it listens do not arrive, and do not count as missed.
    while heard.try_recv().is_err() {
        redis.send(To::All, b"hello").await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..4 * FOR_ALL {
        redis.send(To::All, b"news").await.unwrap();
    }
    let mut gaps = 0;
    while let Ok(Some(received)) = tokio::time::timeout(Duration::from_secs(1), heard.recv()).await
    {
        gaps += usize::from(received == Received::Gap);
    }
    assert_eq!(gaps, 1);
}

/// `./test cluster` gives the URL of an empty server.
#[tokio::test]
async fn a_redis_server_does_what_every_store_must_do() {
    let Ok(url) = std::env::var("SABIR_TEST_REDIS") else { return };
    let redis = Redis::new(&url, "a").unwrap();
    a_record_is_replaced_by_compare_and_set(&redis).await;
    a_list_keeps_the_newest_items(&redis).await;
    counts_are_shared_and_all_or_nothing(&redis, tokio::time::sleep).await;
    a_record_expires(&redis, tokio::time::sleep).await;
}

#[tokio::test]
async fn a_node_without_an_inbox_is_not_gone_right_after_an_interruption() {
    let Ok(url) = std::env::var("SABIR_TEST_REDIS") else { return };
    let redis = Redis::new(&url, "early").unwrap();
    let _heard = redis.listen();
    let told = async || redis.send(To::Node("nobody"), b"?").await;
    assert!(told().await.is_err(), "its inbox may be opened again in a moment");
    let deadline = Instant::now() + ALIVE + BLOCK;
    while told().await.is_err() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(told().await, Ok(false));
    let killed: Result<i64, _> = redis.ask(cmd("CLIENT").arg(&["KILL", "TYPE", "normal"])).await;
    assert!(killed.unwrap() >= 1);
    assert!(told().await.is_err(), "inboxes may have expired meanwhile");
}

#[tokio::test]
async fn a_node_that_is_slow_to_receive_keeps_its_inbox() {
    let Ok(url) = std::env::var("SABIR_TEST_REDIS") else { return };
    let redis = Redis::new(&url, "busy").unwrap();
    let _heard = redis.listen();
    while redis.send(To::Node("busy"), b"hello").await != Ok(true) {}
    for _ in 0..2 * WAITING {
        redis.send(To::Node("busy"), b"news").await.unwrap();
    }
    tokio::time::sleep(ALIVE + Duration::from_secs(1)).await;
    assert_eq!(redis.send(To::Node("busy"), b"more").await, Ok(true));
}

#[tokio::test]
async fn messages_that_were_read_leave_the_inbox() {
    let Ok(url) = std::env::var("SABIR_TEST_REDIS") else { return };
    let redis = Redis::new(&url, "tidy").unwrap();
    let mut heard = redis.listen();
    while redis.send(To::Node("tidy"), b"hello").await != Ok(true) {}
    assert_eq!(heard.recv().await, Some(Received::Message(Bytes::from_static(b"hello"))));
    let deadline = Instant::now() + Duration::from_secs(5);
    while redis.ask::<i64>(cmd("XLEN").arg(inbox_key("tidy"))).await.unwrap() > 0 {
        assert!(Instant::now() < deadline, "they are kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_error_of_one_command_does_not_stop_the_others() {
    let Ok(url) = std::env::var("SABIR_TEST_REDIS") else { return };
    let redis = Redis::new(&url, "a").unwrap();
    let _: String = redis.ask(cmd("SET").arg(&["sabir:text", "text", "PX", "1000"])).await.unwrap();
    assert!(redis.ask::<i64>(cmd("INCR").arg("sabir:text")).await.is_err());
    assert_eq!(redis.ping().await, Ok(()));
}

#[test]
fn only_states_of_the_server_stop_all_requests() {
    let server = |kind| RedisError::from((ErrorKind::Server(kind), ""));
    let other = |code: &str| ::redis::make_extension_error(code.to_owned(), None);
    for error in [
        RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe)),
        server(ServerErrorKind::BusyLoading),
        server(ServerErrorKind::ClusterDown),
        server(ServerErrorKind::ReadOnly),
        other("BUSY"),
    ] {
        assert!(is_away(&error), "{error}");
    }
    for error in [
        server(ServerErrorKind::ResponseError),
        server(ServerErrorKind::ExecAbort),
        other("OOM"),
        other("WRONGTYPE"),
    ] {
        assert!(!is_away(&error), "{error}");
    }
}
