//! A transcript, played against a player.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::Value;

use crate::matching::difference;
use crate::player::{CallNumber, Event, Player};
use crate::transcript::{Step, Transcript};

/// Plays a script to its end.
///
/// # Panics
/// If the connection differs from the script, with the connection up to there and the difference.
#[track_caller]
pub fn play(player: &mut dyn Player, script: &str) {
    play_with(player, &Transcript::parse(script));
}

/// Plays a transcript to its end.
///
/// # Panics
/// If the connection differs from it, with the connection up to there and the difference.
#[track_caller]
pub fn play_with(player: &mut dyn Player, transcript: &Transcript) {
    let mut names = Names::default();
    for (line, step) in &transcript.steps {
        if let Err(difference) = take(player, step, &mut names) {
            panic!("{}", report(transcript, *line, &difference));
        }
    }
    let last = transcript.lines.len();
    if let Some(event) = player.event().filter(|_| player.sees_inside()) {
        let what = format!("and then, unexpected: {}", names.describe(&event));
        panic!("{}", report(transcript, last, &what));
    }
    if let Some(left) = player.leave().first() {
        let what = format!("and then, unexpected: < {}", text(left));
        panic!("{}", report(transcript, last, &what));
    }
}

/// The calls by the names that the script gives them.
#[derive(Default)]
struct Names(HashMap<String, CallNumber>);

impl Names {
    fn call(&self, name: &str) -> Result<CallNumber, String> {
        self.0.get(name).copied().ok_or_else(|| format!("no call {name} was started"))
    }

    fn of(&self, call: CallNumber) -> String {
        let name = self.0.iter().find(|(_, number)| **number == call);
        name.map_or_else(|| "(a call without a name)".to_owned(), |(name, _)| name.clone())
    }

    fn describe(&self, event: &Event) -> String {
        match event {
            Event::Start(call) => format!("! start {}", self.of(*call)),
            Event::Abort(call) => format!("! abort {}", self.of(*call)),
            Event::Ready => "! ready".into(),
            Event::Close => "! close".into(),
        }
    }

    /// Gives a call its name; a call that begins again keeps the one it has.
    fn give(&mut self, name: &str, call: CallNumber) -> Result<(), String> {
        if self.0.iter().any(|(other, number)| *number == call && other != name) {
            return Err(format!("the call that began is {}", self.of(call)));
        }
        self.0.insert(name.to_owned(), call);
        Ok(())
    }
}

fn take(player: &mut dyn Player, step: &Step, names: &mut Names) -> Result<(), String> {
    let disturbs =
        matches!(step, Step::Pass(_) | Step::Finish(..) | Step::Notify(..) | Step::Change(_));
    if let Some(early) = player.said_too_much().filter(|_| disturbs) {
        return Err(format!("before that, unexpected: < {}", text(&early)));
    }
    match step {
        Step::Say(frame) => player.say(frame),
        Step::EndInput => player.end_input(),
        Step::Hear(expected) => {
            let Some(frame) = player.hear() else { return Err("nothing was said".into()) };
            let Ok(found) = serde_json::from_slice::<Value>(&frame) else {
                return Err(format!("no JSON was said: {}", text(&frame)));
            };
            if let Some(difference) = difference(expected, &found) {
                return Err(format!("< {}\n    {difference}", text(&frame)));
            }
        }
        Step::Start(name) => match expect(player)? {
            Event::Start(call) => names.give(name, call)?,
            other => return Err(names.describe(&other)),
        },
        Step::Abort(name) => same(&Event::Abort(names.call(name)?), player, names)?,
        Step::Ready if !player.sees_inside() => {}
        Step::Ready => same(&Event::Ready, player, names)?,
        Step::Close => same(&Event::Close, player, names)?,
        Step::Notify(name, note) => player.note(names.call(name)?, note.clone()),
        Step::Finish(name, ending) => player.finish(names.call(name)?, ending.clone()),
        Step::Change(topic) => player.change(topic.clone()),
        Step::Pass(time) => player.pass(*time),
    }
    Ok(())
}

fn expect(player: &mut dyn Player) -> Result<Event, String> {
    player.event().ok_or_else(|| "nothing happened".to_owned())
}

fn same(expected: &Event, player: &mut dyn Player, names: &Names) -> Result<(), String> {
    let event = expect(player)?;
    if event == *expected { Ok(()) } else { Err(names.describe(&event)) }
}

fn text(frame: &Bytes) -> String {
    String::from_utf8_lossy(frame).into_owned()
}

fn report(transcript: &Transcript, line: usize, difference: &str) -> String {
    let mut report = String::from("the connection went another way\n\n");
    let before = transcript.lines.iter().take(line).filter(|line| !line.is_empty());
    for said in before {
        report.push_str(&format!("    {said}\n"));
    }
    match transcript.lines.get(line) {
        Some(expected) => report.push_str(&format!(" -  {expected}\n +  {difference}\n")),
        None => report.push_str(&format!(" +  {difference}\n")),
    }
    report
}
