//! A search by meaning, with an endpoint of our own that knows a few words.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sabir_articles::{Settings, Store};
use sabir_sources::articles::{Appearance, Embeddings, Services};
use serde_json::{Value, json};

use crate::shop::{Shop, said};
use crate::support::{Home, LONG, ready};

/// Words of the same meaning share a number of the vector.
const MEANINGS: [&[&str]; 3] =
    [&["car", "automobile", "vehicle"], &["sea", "ocean", "walrus"], &["bread", "bakery", "loaf"]];

fn vector(text: &str) -> Vec<f32> {
    let text = text.to_lowercase();
    let count =
        |words: &&[&str]| words.iter().map(|word| text.matches(word).count()).sum::<usize>();
    MEANINGS.iter().map(|words| count(words) as f32).chain([0.1]).collect()
}

/// An endpoint with the API of OpenAI. It refuses texts with the word "unbearable".
#[derive(Clone, Default)]
struct Endpoint {
    /// The passages that got vectors, and the requests.
    passages: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    /// Whether it leaves requests without an answer.
    hangs: Arc<AtomicBool>,
}

impl Endpoint {
    /// Its URL.
    fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let endpoint = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (endpoint, stream) = (endpoint.clone(), stream.unwrap());
                std::thread::spawn(move || endpoint.serve(stream));
            }
        });
        url
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        loop {
            let mut length = 0;
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                let lower = line.to_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                assert!(!lower.starts_with("authorization:") || line.contains("Bearer secret"));
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            self.requests.fetch_add(1, Ordering::SeqCst);
            if self.hangs.load(Ordering::SeqCst) {
                continue;
            }
            let (status, answer) = self.answer(&serde_json::from_slice(&body).unwrap());
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            let _ = (&stream).write_all(format!("{head}{answer}").as_bytes());
        }
    }

    fn answer(&self, question: &Value) -> (&'static str, String) {
        assert_eq!(question["model"], "few-words");
        let texts: Vec<&str> =
            question["input"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        if texts.iter().any(|text| text.contains("unbearable")) {
            return ("400 Bad Request", "{}".to_owned());
        }
        let passages = texts.iter().filter(|text| text.contains('\n')).count();
        self.passages.fetch_add(passages, Ordering::SeqCst);
        // In another order than the texts: clients must use the index.
        let data: Vec<Value> = (0..texts.len())
            .rev()
            .map(|at| json!({"index": at, "embedding": vector(texts[at])}))
            .collect();
        ("200 OK", json!({ "data": data }).to_string())
    }
}

fn home() -> Home {
    Home::new(&[
        ("c/garage.md", "# Garage\n\n## Cars\n\nA car needs oil, and every car needs new tires.\n"),
        (
            "c/beach.md",
            "# Beach\n\n## Walrus\n\nThe walrus rests near the sea for the whole day.\n",
        ),
        ("c/road.md", "# Road\n\n## Rules\n\nAn automobile may stop here for some minutes only.\n"),
        ("c/odd.md", "# Odd\n\n## Odd\n\nThis text is unbearable for the model, it is refused.\n"),
    ])
}

fn settings(home: &Home) -> Settings {
    Settings { model: Some("few-words".to_owned()), ..home.settings() }
}

fn meaning_shop(store: Store, url: &str) -> Shop {
    let embeddings = Embeddings::new(url, "few-words", Some("secret")).unwrap();
    let services = Services { embeddings: Some(Arc::new(embeddings)), git: None };
    Shop::with_services(store, Appearance::default(), services)
}

/// Searches until the result is as wanted: the vectors are made in the background.
async fn search_until(shop: &Shop, query: &str, fits: impl Fn(&str) -> bool) -> String {
    let start = Instant::now();
    loop {
        let found = said(shop, "search_articles", json!({ "query": query })).await;
        if fits(&found) {
            return found;
        }
        assert!(start.elapsed() < LONG, "{found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn articles_are_found_by_meaning_and_their_vectors_are_kept() {
    let (home, cache) = (home(), tempfile::TempDir::new().unwrap());
    let endpoint = Endpoint::default();
    let url = endpoint.start();
    let settings = Settings { cache: Some(cache.path().to_owned()), ..settings(&home) };
    let shop = meaning_shop(ready(settings.clone()), &url);
    // No article has the word.
    let found =
        search_until(&shop, "vehicle ", |it| it.contains("c/garage") && it.contains("c/road"));
    let found = found.await;
    let at = |id: &str| found.find(id).unwrap_or(usize::MAX);
    assert!(at("c/garage") < at("c/beach") && at("c/road") < at("c/beach"), "{found}");
    assert!(found.contains("`cars`"), "the section is named: {found}");
    // One that has the word, and is near in meaning, is first.
    let found = search_until(&shop, "automobile ", |it| it.contains("c/garage")).await;
    assert!(found.contains("\n1. Road (`c/road`"), "{found}");
    let made = endpoint.passages.load(Ordering::SeqCst);
    assert!(made >= 3, "{made}");
    drop(shop);

    // A second server loads the stored vectors, and requests those of queries only.
    let shop = meaning_shop(ready(settings), &url);
    let found = search_until(&shop, "ocean ", |it| it.contains("c/beach")).await;
    assert!(found.contains("\n1. Beach (`c/beach`"), "{found}");
    assert_eq!(endpoint.passages.load(Ordering::SeqCst), made);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_does_not_wait_for_an_endpoint_that_is_down() {
    let home = home();
    let endpoint = Endpoint::default();
    endpoint.hangs.store(true, Ordering::SeqCst);
    let shop = meaning_shop(ready(settings(&home)), &endpoint.start());
    for _ in 0..20 {
        let found = said(&shop, "search_articles", json!({"query": "walrus"})).await;
        assert!(found.contains("\n1. Beach (`c/beach`"), "{found}");
    }
    // Requests are made for the passages and the first query; then none for a while.
    let requests = endpoint.requests.load(Ordering::SeqCst);
    assert!(requests <= 6, "{requests} requests for 20 searches");
    // No endpoint listens at all.
    let shop = meaning_shop(ready(settings(&home)), "http://127.0.0.1:9/v1");
    let found = said(&shop, "search_articles", json!({"query": "walrus"})).await;
    assert!(found.contains("\n1. Beach (`c/beach`"), "{found}");
}
