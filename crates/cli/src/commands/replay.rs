//! `sabir replay`: plays the clients' side of a recording against a server.
//!
//! Each client gets a link of its own. Its messages are sent in the order of the recording, each
//! after everything that the client had received before it has arrived again: so an answer is never
//! late.

mod played; // one client
mod renamed; // ids that this server gives out instead of the recorded ones

use std::collections::HashMap;

use sabir_client::RawLink;
use sabir_observe::{Difference, Event, EventKind, Recording, Rules};

use self::played::Played;
use self::renamed::{Renamed, VOLATILE};
use super::check::count;
use super::target::{Reached, Target};
use crate::args::Replay;
use crate::escape::escaped_lines;
use crate::report::{Failure, print_text};

pub(crate) fn run(args: &Replay) -> Result<(), Failure> {
    let target = match (&args.against, &*args.command) {
        (Some(target), []) => Target::Written(target),
        (None, []) => Target::Written("."),
        (None, command) => Target::Command(command),
        (Some(_), _) => {
            return Err(Failure::usage("two targets (expected one of --against, -- COMMAND)"));
        }
    };
    let failed = |error| Failure::new(format!("{}: {error}", args.file.display()));
    let recording = Recording::open(&args.file).map_err(failed)?;
    super::block_on(async {
        let reached = Reached::new(&target, &args.header, None).await?;
        if recording.head.reloads {
            reached.allow_changes();
        }
        let mut player = Player::new(&reached, args);
        let mut played = Ok(());
        for event in recording {
            played = match event.map_err(failed) {
                Ok(event) => player.play(&event).await,
                Err(failure) => Err(failure),
            };
            if played.is_err() {
                break;
            }
        }
        let ended = player.finish();
        reached.close().await;
        played.and(ended)
    })
}

struct Player<'a> {
    reached: &'a Reached,
    args: &'a Replay,
    rules: Rules,
    links: HashMap<u64, Played>,
    renamed: Renamed,
    clients: usize,
    requests: usize,
    differences: usize,
    masked: usize,
}

impl<'a> Player<'a> {
    fn new(reached: &'a Reached, args: &'a Replay) -> Self {
        let volatile = VOLATILE.iter().map(|name| (*name).to_owned());
        let ignored = args.ignore.iter().cloned().chain(volatile).collect();
        Self {
            reached,
            args,
            rules: Rules { ignored },
            links: HashMap::new(),
            renamed: Renamed::default(),
            clients: 0,
            requests: 0,
            differences: 0,
            masked: 0,
        }
    }

    async fn play(&mut self, event: &Event) -> Result<(), Failure> {
        match event.event {
            EventKind::Open if event.peer.as_deref() == Some("client") => {
                let opened = RawLink::open(&*self.reached.transport()).await;
                let link = opened.map_err(|error| Failure::new(error.to_string()))?;
                self.clients += 1;
                self.links.insert(event.link, Played::new(event.link, link));
            }
            EventKind::Received => {
                if let Some(played) = self.links.get_mut(&event.link) {
                    self.requests += usize::from(played.send(event, &self.renamed));
                    self.masked += event.masked;
                }
            }
            EventKind::Sent => {
                let Some(played) = self.links.get_mut(&event.link) else { return Ok(()) };
                let timeout = self.args.timeout;
                let compared = played.expect(event, &mut self.renamed, &self.rules, timeout).await;
                if let Some((what, differences)) = compared {
                    self.report(&what, &differences);
                }
            }
            EventKind::Close => {
                if let Some(played) = self.links.remove(&event.link) {
                    self.leave(&played);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A message of the server that is not in the recording is a difference, too.
    fn leave(&mut self, played: &Played) {
        for (what, difference) in played.unexpected() {
            self.report(&what, &[difference]);
        }
    }

    fn report(&mut self, what: &str, differences: &[Difference]) {
        if differences.is_empty() {
            return;
        }
        self.differences += differences.len();
        let lines: String = differences.iter().map(|one| format!("  {one}\n")).collect();
        print_text(&escaped_lines(&format!("{what}\n{lines}")));
    }

    fn finish(mut self) -> Result<(), Failure> {
        for played in std::mem::take(&mut self.links).into_values() {
            self.leave(&played);
        }
        let Self { clients, requests, differences, masked, .. } = self;
        let found = match differences {
            0 => "no differences".to_owned(),
            some => count(some, "difference"),
        };
        let (clients, requests) = (count(clients, "client"), count(requests, "request"));
        print_text(&format!("{clients}, {requests}: {found}\n"));
        if masked > 0 {
            let masked = count(masked, "value");
            print_text(&format!("the recording has masked {masked}: the mask was sent instead\n"));
        }
        if differences > 0 { Err(Failure::Silent) } else { Ok(()) }
    }
}
