//! Load on a stdio server: requests one after the other, or pipelined.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::Instant;

use super::Measured;
use super::exchange::{Ask, Checker, Era, FIRST_ID, Template};

/// The standard input and output of a server.
pub struct Pipe {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Pipe {
    /// Takes the streams of a server and performs the handshake of the legacy era.
    pub fn open(server: &mut Child, era: Era) -> io::Result<Self> {
        let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
            return Err(io::Error::other("the streams of the server are not piped"));
        };
        let mut pipe = Self { input, output: BufReader::with_capacity(1 << 20, output) };
        if era == Era::Legacy {
            let initialize = concat!(
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"#,
                r#""protocolVersion":"2025-11-25","capabilities":{},"#,
                r#""clientInfo":{"name":"bench","version":"1.0.0"}}}"#,
                "\n"
            );
            pipe.input.write_all(initialize.as_bytes())?;
            pipe.line()?;
            let ready = concat!(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "\n");
            pipe.input.write_all(ready.as_bytes())?;
        }
        Ok(pipe)
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line)?;
        if line.pop().is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    }

    /// Sends `count` requests, each after the answer to the previous one.
    pub fn sequential(&mut self, era: Era, ask: &Ask, count: u64) -> Result<Measured, String> {
        let failed = |error: io::Error| format!("pipe error: {error}");
        let mut request = line_of(ask, era);
        let mut checker = Checker::new(ask.clone());
        let mut latencies = Vec::new();
        let start = Instant::now();
        for id in FIRST_ID..FIRST_ID + count {
            let sent = Instant::now();
            self.input.write_all(request.with(id)).map_err(failed)?;
            let answer = self.line().map_err(failed)?;
            latencies.push(u32::try_from(sent.elapsed().as_nanos()).unwrap_or(u32::MAX));
            checker.check(id, &answer)?;
        }
        Ok(Measured::new(latencies, start.elapsed()))
    }

    /// Sends `count` requests without waiting for answers, which may arrive in any order.
    pub fn pipelined(&mut self, era: Era, ask: &Ask, count: u64) -> Result<Measured, String> {
        let failed = |error: io::Error| format!("pipe error: {error}");
        let (input, output) = (&mut self.input, &mut self.output);
        let mut request = line_of(ask, era);
        let mut all = Vec::new();
        for id in FIRST_ID..FIRST_ID + count {
            all.extend_from_slice(request.with(id));
        }
        let start = Instant::now();
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || input.write_all(&all));
            let answers = Answers { output, checker: Checker::new(ask.clone()), count };
            let read = answers.read();
            writer.join().map_err(|_| "the writing thread panicked")?.map_err(failed)?;
            read
        })?;
        let time = start.elapsed();
        Ok(Measured { answers: usize::try_from(count).unwrap_or(0), time, latencies: Vec::new() })
    }
}

/// Reads the answers to pipelined requests.
struct Answers<'a> {
    output: &'a mut BufReader<ChildStdout>,
    checker: Checker,
    count: u64,
}

impl Answers<'_> {
    fn read(mut self) -> Result<(), String> {
        let mut seen = vec![false; usize::try_from(self.count).unwrap_or(0)];
        let (mut input, mut at) = (vec![0; 4 << 20], 0);
        let mut left = self.count;
        while left > 0 {
            let read = self.output.read(&mut input[at..]).map_err(|error| error.to_string())?;
            if read == 0 {
                return Err(format!("the server ended before it answered {left} requests"));
            }
            let (mut begin, end) = (0, at + read);
            while let Some(length) = memchr::memchr(b'\n', &input[begin..end]) {
                let line = &input[begin..begin + length];
                begin += length + 1;
                let id = id_of(line).ok_or("an answer has no id")?;
                self.checker.check(id, line)?;
                let slot = id.checked_sub(FIRST_ID).and_then(|nth| usize::try_from(nth).ok());
                match slot.and_then(|nth| seen.get_mut(nth)) {
                    Some(seen) if !*seen => *seen = true,
                    _ => {
                        return Err(format!(
                            "unexpected answer to request {id} (answered before, or never sent)"
                        ));
                    }
                }
                left -= 1;
            }
            input.copy_within(begin..end, 0);
            at = end - begin;
        }
        Ok(())
    }
}

/// Finds the id of an answer.
fn id_of(line: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(line, br#""id":"#)? + 5;
    let digits = line[at..].trim_ascii_start();
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

fn line_of(ask: &Ask, era: Era) -> Template {
    Template::new(format!("{}\n", ask.message(era)).into_bytes(), FIRST_ID)
}
