//! Vectors of texts, by any endpoint with the embeddings API of OpenAI.
//!
//! A search waits only briefly for the vector of its query, and not at all while the endpoint is
//! known to be down. Passages get their vectors in the background.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Request, StatusCode};
use sabir_articles::{Passage, Store};
use sabir_outbound::{HttpClient, Limits, Policy};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout};

/// How long a search waits for the vector of its query.
const QUERY_TIME: Duration = Duration::from_millis(1500);

/// How long a batch of passages may take.
const BATCH_TIME: Duration = Duration::from_secs(60);

/// The passages of one request.
const BATCH: usize = 32;

/// The longest answer in bytes.
const ANSWER: u64 = 32 << 20;

/// How long no request is sent after a failure. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// How often to check whether the folder has been read.
const WAIT: Duration = Duration::from_millis(250);

/// How often to check for changes that were not announced.
const LOOK: Duration = Duration::from_secs(60);

/// An endpoint, and its model.
#[derive(Debug)]
pub struct Embeddings {
    client: HttpClient,
    url: String,
    model: String,
    /// `Bearer` and the key.
    authorization: Option<HeaderValue>,
    breaker: Mutex<Breaker>,
}

/// A circuit breaker for the endpoint.
#[derive(Debug, Default)]
struct Breaker {
    /// Failures in a row.
    failures: u32,
    /// No request is sent before.
    not_before: Option<Instant>,
}

/// Why there are no vectors.
#[derive(Debug)]
enum Failure {
    /// The endpoint does not take these texts.
    Refused(String),
    /// The endpoint does not answer, or its answer is unusable.
    Down(String),
}

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    input: &'a [&'a str],
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Datum>,
}

#[derive(Deserialize)]
struct Datum {
    index: usize,
    embedding: Vec<f32>,
}

impl Embeddings {
    /// An endpoint: the URL of its API (`https://…/v1`), or of its embeddings. The error is for the
    /// operator.
    pub fn new(url: &str, model: &str, key: Option<&str>) -> Result<Self, String> {
        let base = url.trim_end_matches('/');
        let path = if base.ends_with("/embeddings") { "" } else { "/embeddings" };
        let url = format!("{base}{path}");
        let client = HttpClient::new(Policy::trusting()).map_err(|error| error.to_string())?;
        client.check(&url).map_err(|error| error.to_string())?;
        let authorization = key.map(|key| {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.trim()));
            value.map(|mut value| {
                value.set_sensitive(true);
                value
            })
        });
        let authorization = authorization.transpose();
        let authorization =
            authorization.map_err(|_| "the key has a character that no header can have")?;
        let (model, breaker) = (model.to_owned(), Mutex::default());
        Ok(Self { client, url, model, authorization, breaker })
    }

    /// The vector of a query, if it arrives in time.
    pub(super) async fn of_query(&self, query: &str) -> Option<Vec<f32>> {
        if !self.may_ask() {
            return None;
        }
        let vectors = self.embed(&[query], QUERY_TIME).await;
        self.note(&vectors);
        vectors.ok()?.pop()
    }

    /// Gives passages their vectors, now and after each change, until the store is closed.
    pub(super) async fn fill(self: Arc<Self>, store: Weak<Store>) {
        let Some(mut changes) = store.upgrade().map(|store| store.changes()) else { return };
        loop {
            let Some(open) = store.upgrade() else { return };
            if open.indexing().is_some() {
                drop(open);
                sleep(WAIT).await;
                continue;
            }
            let missing = tokio::task::spawn_blocking(move || open.missing_vectors(BATCH));
            match missing.await {
                Ok(Ok(missing)) if !missing.is_empty() => {
                    if self.may_ask() {
                        self.fill_batch(&store, missing).await;
                    } else {
                        sleep(self.pause()).await;
                    }
                }
                Err(_) => return, // the runtime is ending
                _ => {
                    // An error of the channel is a missed change, or the end of the store.
                    let _ = timeout(LOOK, changes.recv()).await;
                }
            }
        }
    }

    async fn fill_batch(&self, store: &Weak<Store>, missing: Vec<Passage>) {
        let texts: Vec<&str> = missing.iter().map(|passage| passage.text.as_str()).collect();
        let embedded = self.embed(&texts, BATCH_TIME).await;
        self.note(&embedded);
        match embedded {
            Ok(vectors) => {
                keep(store, missing.iter().map(|it| it.key).zip(vectors).collect()).await;
            }
            Err(Failure::Down(_)) => {}
            // One of them is refused: they are sent one by one.
            Err(Failure::Refused(_)) => {
                for Passage { key, text } in missing {
                    match self.embed(&[&text], BATCH_TIME).await {
                        Ok(vectors) => {
                            keep(store, vectors.into_iter().map(|it| (key, it)).collect()).await
                        }
                        Err(Failure::Refused(reason)) => {
                            tracing::debug!(%reason, "a passage has no vector");
                            store.upgrade().inspect(|store| store.refuse_vector(key));
                        }
                        Err(Failure::Down(_)) => return,
                    }
                }
            }
        }
    }

    /// The vectors of texts, in their order.
    async fn embed(&self, texts: &[&str], time: Duration) -> Result<Vec<Vec<f32>>, Failure> {
        let answering = self.ask(texts, time);
        let late = |_| Failure::Down(format!("no answer within {time:?}"));
        let (status, body) = timeout(time, answering).await.map_err(late)??;
        if !status.is_success() {
            let said = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            let reason = format!("{status}: {said}");
            return Err(match status {
                StatusCode::BAD_REQUEST
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::UNPROCESSABLE_ENTITY => Failure::Refused(reason),
                _ => Failure::Down(reason),
            });
        }
        let wrong =
            |reason: String| Failure::Down(format!("not an answer of an embeddings API: {reason}"));
        let mut answer: Answer =
            serde_json::from_slice(&body).map_err(|error| wrong(error.to_string()))?;
        answer.data.sort_by_key(|datum| datum.index);
        let is_whole = answer.data.iter().map(|datum| datum.index).eq(0..texts.len());
        match is_whole {
            true => Ok(answer.data.into_iter().map(|datum| datum.embedding).collect()),
            false => Err(wrong(format!("{} texts, {} vectors", texts.len(), answer.data.len()))),
        }
    }

    async fn ask(&self, texts: &[&str], time: Duration) -> Result<(StatusCode, Bytes), Failure> {
        let down = |error: &dyn std::fmt::Display| Failure::Down(error.to_string());
        let question = Question { model: &self.model, input: texts };
        let question = serde_json::to_vec(&question).map_err(|error| down(&error))?;
        let mut request = Request::post(&self.url).header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(question.into()).map_err(|error| down(&error))?;
        let limits = Limits { head: time, idle: Some(time), total: Some(time), body: ANSWER };
        let response = self.client.send(request, &limits).await.map_err(|error| down(&error))?;
        let status = response.status();
        Ok((status, response.into_body().read().await.map_err(|error| down(&error))?))
    }

    /// Whether the endpoint may be asked now. After a failure, one request at a time probes whether
    /// the endpoint answers again.
    fn may_ask(&self) -> bool {
        let mut breaker = self.lock();
        let now = Instant::now();
        match breaker.not_before {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                breaker.not_before = Some(now + FIRST_PAUSE);
                true
            }
        }
    }

    /// Notes whether the endpoint answers. The operator is told once.
    fn note<T>(&self, result: &Result<T, Failure>) {
        let mut breaker = self.lock();
        match result {
            Err(Failure::Down(reason)) => {
                if breaker.failures == 0 {
                    let url = &self.url;
                    tracing::warn!(
                        "no vectors from {url}, so articles are searched by words only: {reason}"
                    );
                }
                let pause = FIRST_PAUSE.saturating_mul(1 << breaker.failures.min(10));
                breaker.failures = breaker.failures.saturating_add(1);
                breaker.not_before = Some(Instant::now() + pause.min(LONGEST_PAUSE));
            }
            Ok(_) | Err(Failure::Refused(_)) => {
                if breaker.failures > 0 {
                    tracing::info!("{} answers again", self.url);
                }
                *breaker = Breaker::default();
            }
        }
    }

    /// The current pause after a failure.
    fn pause(&self) -> Duration {
        let until = self.lock().not_before;
        let pause = until.map(|until| until.saturating_duration_since(Instant::now()));
        pause.unwrap_or_default().max(Duration::from_millis(100))
    }

    fn lock(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn keep(store: &Weak<Store>, vectors: Vec<(u64, Vec<f32>)>) {
    let Some(store) = store.upgrade() else { return };
    let kept = tokio::task::spawn_blocking(move || store.add_vectors(vectors)).await;
    // The other error is the end of the runtime.
    if let Ok(Err(error)) = kept {
        tracing::warn!(%error, "cannot keep the vectors of articles on the disk");
    }
}
