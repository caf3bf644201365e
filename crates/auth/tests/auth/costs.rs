//! The cost of tokens. These are measurements, which are meaningless without optimizations: run
//! them alone, and read their output: `cargo test --release -p sabir-auth --test auth costs --
//! --nocapture --test-threads 1`

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sabir_auth::{ResourceServer, Settings};
use sabir_transports::http::Authenticate as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::issuer::{Issuer, rsa};
use crate::server::{POST, RESOURCE, call_of_who, start, start_open};

/// Calls in one measurement, and measurements. The lowest counts: all others were disturbed.
const CALLS: usize = 1000;
const ROUNDS: usize = 60;

/// Whether anything can be measured.
fn is_measured() -> bool {
    if cfg!(debug_assertions) {
        println!("not measured: built without optimizations (add --release)");
    }
    !cfg!(debug_assertions)
}

/// A request with this line of its head.
fn request(line: &str) -> Vec<u8> {
    let (head, body) = (POST.replace('\n', "\r\n"), call_of_who());
    let length = body.len();
    format!("{head}\r\nhost: localhost\r\n{line}content-length: {length}\r\n\r\n{body}").into()
}

async fn connect(address: SocketAddr, from: Ipv4Addr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let stream = socket.connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends the same bytes again and again, and knows how long the answer is.
struct Repeater {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Repeater {
    async fn new(address: SocketAddr, from: Ipv4Addr, line: &str) -> Self {
        let mut stream = connect(address, from).await;
        let request = request(line);
        stream.write_all(&request).await.unwrap();
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).await.unwrap();
        answer.truncate(length);
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        Self { stream, request, answer }
    }

    async fn call(&mut self) {
        self.stream.write_all(&self.request).await.unwrap();
        self.stream.read_exact(&mut self.answer).await.unwrap();
    }

    async fn measure(&mut self) -> Duration {
        let began = Instant::now();
        for _ in 0..CALLS {
            self.call().await;
        }
        began.elapsed()
    }

    /// The time that 99 of 100 calls take at most.
    async fn p99(&mut self) -> Duration {
        let mut times = Vec::new();
        for _ in 0..4 * CALLS {
            let began = Instant::now();
            self.call().await;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        times[times.len() * 99 / 100]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_a_known_token_costs_hardly_more_than_one_without() {
    if !is_measured() {
        return;
    }
    let key = rsa();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let line = format!("authorization: Bearer {}\r\n", key.sign(&issuer.claims()));
    let address = start(&issuer).await;
    // Its first call fetches the keys.
    let mut with = Repeater::new(address, Ipv4Addr::LOCALHOST, &line).await;
    let mut without = Repeater::new(start_open().await, Ipv4Addr::LOCALHOST, "").await;
    let (mut best_with, mut best_without) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        best_without = best_without.min(without.measure().await);
        best_with = best_with.min(with.measure().await);
    }
    let ratio = best_with.as_secs_f64() / best_without.as_secs_f64();
    let each = |total: Duration| total / CALLS as u32;
    println!(
        "known: {:?} with a token, {:?} without: {ratio:.3}",
        each(best_with),
        each(best_without)
    );
    assert!(ratio <= 1.15);
}

#[tokio::test]
async fn a_token_that_is_seen_for_the_first_time_is_checked_at_once() {
    if !is_measured() {
        return;
    }
    let key = rsa();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let server = ResourceServer::new(&Settings::new(RESOURCE, issuer.url())).unwrap();
    let token = |nth: usize| {
        format!("Bearer {}", key.sign(&issuer.claims_with(json!({ "jti": nth.to_string() }))))
    };
    // The keys are fetched with the first.
    assert!(server.authenticate(Some(token(0).as_bytes())).await.is_ok());
    let mut times: Vec<_> = (1..500)
        .map(|nth| {
            let token = token(nth);
            let began = Instant::now();
            let known = server.known(Some(token.as_bytes()));
            let time = began.elapsed();
            assert!(known.is_some_and(|known| known.is_ok()));
            time
        })
        .collect();
    times.sort_unstable();
    println!(
        "first seen: median {:?}, p99 {:?}",
        times[times.len() / 2],
        times[times.len() * 99 / 100]
    );
    assert!(times[times.len() / 2] <= Duration::from_micros(300));
}

/// Sends 10,000 bad tokens a second, all different, and counts the answers.
async fn flood(
    address: SocketAddr,
    good: String,
    sent: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
) {
    const PER_TICK: usize = 10;
    let (message, _) = good.rsplit_once('.').unwrap();
    let (mut reader, mut writer) = connect(address, Ipv4Addr::LOCALHOST).await.into_split();
    tokio::spawn(async move {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = reader.read(&mut buffer).await {
            let heads =
                buffer[..length].windows(9).filter(|window| *window == b"HTTP/1.1 ").count();
            answered.fetch_add(heads, Ordering::Relaxed);
        }
    });
    let mut tick = tokio::time::interval(Duration::from_millis(1));
    loop {
        tick.tick().await;
        let mut bytes = Vec::new();
        for _ in 0..PER_TICK {
            let nth = sent.fetch_add(1, Ordering::Relaxed) as u64;
            let signature = URL_SAFE_NO_PAD.encode(nth.to_le_bytes().repeat(32));
            bytes.extend(request(&format!("authorization: Bearer {message}.{signature}\r\n")));
        }
        writer.write_all(&bytes).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_tokens_of_one_address_do_not_slow_down_another() {
    if !is_measured() {
        return;
    }
    let key = rsa();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let address = start(&issuer).await;
    let good = key.sign(&issuer.claims());
    let line = format!("authorization: Bearer {good}\r\n");
    let mut caller = Repeater::new(address, Ipv4Addr::new(127, 0, 0, 2), &line).await;
    caller.p99().await;
    let mut quiet = Duration::MAX;
    for _ in 0..3 {
        quiet = quiet.min(caller.p99().await);
    }
    let (sent, answered) = (Arc::default(), Arc::<AtomicUsize>::default());
    let flooding = tokio::spawn(flood(address, good, sent, answered.clone()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (began, before) = (Instant::now(), answered.load(Ordering::Relaxed));
    let mut flooded = Duration::MAX;
    for _ in 0..3 {
        flooded = flooded.min(caller.p99().await);
    }
    let rate = answered.load(Ordering::Relaxed) - before;
    let rate = rate as f64 / began.elapsed().as_secs_f64();
    flooding.abort();
    println!(
        "bad tokens: {rate:.0}/s answered; p99 of another {quiet:?} before, {flooded:?} meanwhile"
    );
    assert!(flooded <= quiet * 3 / 2, "another caller waits more than half as long again");
}
