//! A quiet client: how long it waits for something small while an attack goes on.

use std::thread;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::server::Server;

/// How long a quiet client may wait while an attack goes on, on a machine that does much else, and
/// in a binary that is not optimized. The table of docs/limits.md has what was measured.
const MOST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });

/// How long each request took, in order of time.
pub(crate) struct Waits(Vec<Duration>);

impl Waits {
    fn percentile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() - 1) * percent / 100]
    }

    /// Prints a row of the table of docs/limits.md, and checks that nobody was stopped.
    pub(crate) fn check(&self, what: &str) {
        let ms = |percent| format!("{:.1} ms", self.percentile(percent).as_secs_f64() * 1e3);
        let (p50, p99, max) = (ms(50), ms(99), ms(100));
        println!("| quiet client | {what} | {} | {p50} | {p99} | {max} |", self.0.len());
        assert!(self.percentile(100) < MOST, "{what}: a quiet client waited for {max}");
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
