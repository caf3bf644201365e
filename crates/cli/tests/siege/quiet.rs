//! A quiet client: how long it waits for something small while an attack goes on.

use std::thread;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::server::Server;

/// How long a quiet client may wait while an attack goes on, on a busy machine, with a binary that is
/// not optimized.
const MOST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });

/// What 99 of 100 requests stay below, unless three times the wait without an attack is longer.
const P99: Duration = Duration::from_millis(if cfg!(debug_assertions) { 20_000 } else { 100 });

/// How long each request took, in order of time.
pub(crate) struct Waits(Vec<Duration>);

impl Waits {
    fn percentile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() - 1) * percent / 100]
    }

    /// The cells of a table: the number of requests, p50, p99 and the longest.
    pub(crate) fn cells(&self) -> String {
        let ms = |percent| format!("{:.1} ms", self.percentile(percent).as_secs_f64() * 1e3);
        format!("{} | {} | {} | {}", self.0.len(), ms(50), ms(99), ms(100))
    }

    /// Prints them, and checks that no request waited too long.
    pub(crate) fn check(&self, what: &str) {
        println!("| quiet client | {what} | {} |", self.cells());
        self.check_longest(what);
    }

    /// Checks that 99 of 100 requests were served nearly as without an attack.
    pub(crate) fn check_beside(&self, none: &Self, what: &str) {
        let (p99, limit) = (self.percentile(99), P99.max(3 * none.percentile(99)));
        assert!(p99 <= limit, "{what}: p99 of a quiet client is {p99:?} (limit {limit:?})");
    }

    pub(crate) fn check_longest(&self, what: &str) {
        let longest = self.percentile(100);
        assert!(longest < MOST, "{what}: a quiet client waited for {longest:?}");
    }
}

/// Asks for something small every few milliseconds while `attack` runs.
pub(crate) fn quiet_during(server: &Server, attack: impl FnOnce() + Send) -> Waits {
    let address = server.address;
    thread::scope(|threads| {
        let attacking = threads.spawn(attack);
        let mut waits = Vec::new();
        let mut quiet = Client::connect(address);
        loop {
            let is_over = attacking.is_finished();
            let began = Instant::now();
            assert_eq!(quiet.read("text://small"), "small");
            waits.push(began.elapsed());
            if is_over {
                attacking.join().unwrap();
                waits.sort_unstable();
                return Waits(waits);
            }
            thread::sleep(Duration::from_millis(5));
        }
    })
}
