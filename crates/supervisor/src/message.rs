//! The messages between Sabir and its monitors, as bytes.
//!
//! Sabir sends a [`StartRequest`]; the monitor answers with [`Report`]s of eight bytes each.
//! Closing the socket is the request to stop the program, so that a crash of Sabir stops it, too.
//!
//! A request is a length followed by NUL-terminated strings, the form that `execve` takes. A string
//! that contains a NUL byte therefore cannot be sent and is refused here.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// The program to start, and how to stop it.
///
/// `program` and `cwd` must be absolute: the monitor runs in `/` and searches no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartRequest {
    /// The file to execute. Neither a shell nor a search path is used.
    pub program: PathBuf,
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// The whole environment: the program inherits nothing.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Whether the program's standard input is a pipe to us; otherwise it is empty.
    pub stdin: bool,
    /// How long each step of stopping the program may take.
    pub grace: GracePeriod,
}

/// How long a program may take to exit after each step of stopping it. Longer than a year counts
/// as a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracePeriod {
    /// From closing its standard input to SIGTERM.
    pub after_stdin: Duration,
    /// From SIGTERM to SIGKILL.
    pub after_term: Duration,
}

impl Default for GracePeriod {
    /// Two seconds each: right for a program that exits when its standard input closes.
    fn default() -> Self {
        Self { after_stdin: Duration::from_secs(2), after_term: Duration::from_secs(2) }
    }
}

impl GracePeriod {
    /// The longest time that stopping may take, up to SIGKILL.
    pub fn total(self) -> Duration {
        self.after_stdin.min(YEAR) + self.after_term.min(YEAR)
    }
}

/// The longest grace period: longer durations overflow clocks.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The largest request in bytes; larger ones are refused. Linux allows at most 6 MiB of arguments
/// and environment.
pub(crate) const MAX_REQUEST: usize = 8 << 20;

/// Why a request cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncodeError {
    /// A string contains a NUL byte.
    Nul,
    /// The request is larger than [`MAX_REQUEST`].
    TooLarge,
}

impl StartRequest {
    /// Encodes the request, with its length in front. With `announce` the monitor reports
    /// [`Report::Started`]; without it the first report is the program's exit.
    pub(crate) fn encode(&self, announce: bool) -> Result<Vec<u8>, EncodeError> {
        let mut out = vec![0; 4];
        let number = |n: u128| OsString::from(n.to_string());
        put(&mut out, self.program.as_os_str())?;
        put(&mut out, self.cwd.as_os_str())?;
        put(&mut out, &number(u128::from(announce)))?;
        put(&mut out, &number(u128::from(self.stdin)))?;
        for time in [self.grace.after_stdin, self.grace.after_term] {
            put(&mut out, &number(time.min(YEAR).as_millis()))?;
        }
        put(&mut out, &number(self.args.len() as u128))?;
        for arg in &self.args {
            put(&mut out, arg)?;
        }
        for (name, value) in &self.env {
            put(&mut out, name)?;
            put(&mut out, value)?;
        }
        let length = out.len() - 4;
        if length > MAX_REQUEST {
            return Err(EncodeError::TooLarge);
        }
        out[..4].copy_from_slice(&(length as u32).to_le_bytes());
        Ok(out)
    }

    /// Decodes a request without its length, and whether to announce the start. `None` if the
    /// bytes are not a request.
    pub(crate) fn decode(body: &[u8]) -> Option<(Self, bool)> {
        let mut strings = body.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let mut next = || strings.next().map(|bytes| OsString::from_vec(bytes.to_vec()));
        let program = next()?.into();
        let cwd = next()?.into();
        let mut number = || next()?.to_str()?.parse::<u64>().ok();
        let announce = number()? == 1;
        let stdin = number()? == 1;
        let after_stdin = Duration::from_millis(number()?);
        let after_term = Duration::from_millis(number()?);
        let count = number()?;
        let args = (0..count).map(|_| next()).collect::<Option<_>>()?;
        let mut env = Vec::new();
        while let Some(name) = next() {
            env.push((name, next()?));
        }
        let grace = GracePeriod { after_stdin, after_term };
        Some((Self { program, args, env, cwd, stdin, grace }, announce))
    }
}

fn put(out: &mut Vec<u8>, string: &OsStr) -> Result<(), EncodeError> {
    if string.as_bytes().contains(&0) {
        return Err(EncodeError::Nul);
    }
    out.extend_from_slice(string.as_bytes());
    out.push(0);
    Ok(())
}

/// A message from a monitor to Sabir.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The monitor runs and waits for requests.
    Ready,
    /// The program runs with this process id.
    Started(i32),
    /// The system refused to start the program, with this error number.
    NotStarted(i32),
    /// The program exited with this code; its remaining descendants are being stopped.
    Exited(i32),
    /// The program was killed by this signal; its remaining descendants are being stopped.
    Signalled(i32),
    /// No process of the program is left, not even a zombie. The monitor waits for requests.
    Gone,
    /// No process of the program is left, and the monitor exits.
    GoneAndExiting,
}

impl Report {
    pub(crate) const SIZE: usize = 8;

    pub(crate) fn encode(self) -> [u8; Self::SIZE] {
        let (tag, number) = match self {
            Self::Ready => (1u32, 0),
            Self::Started(pid) => (2, pid),
            Self::NotStarted(errno) => (3, errno),
            Self::Exited(code) => (4, code),
            Self::Signalled(signal) => (5, signal),
            Self::Gone => (6, 0),
            Self::GoneAndExiting => (7, 0),
        };
        let mut out = [0; Self::SIZE];
        out[..4].copy_from_slice(&tag.to_le_bytes());
        out[4..].copy_from_slice(&number.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let [a, b, c, d, number @ ..] = bytes;
        let number = i32::from_le_bytes(number);
        Some(match u32::from_le_bytes([a, b, c, d]) {
            1 => Self::Ready,
            2 => Self::Started(number),
            3 => Self::NotStarted(number),
            4 => Self::Exited(number),
            5 => Self::Signalled(number),
            6 => Self::Gone,
            7 => Self::GoneAndExiting,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> StartRequest {
        StartRequest {
            program: "/bin/echo".into(),
            args: vec!["".into(), "two\nlines".into(), OsString::from_vec(vec![0xff, 0x2d])],
            env: vec![("A".into(), "".into()), ("B".into(), "=".into())],
            cwd: "/".into(),
            stdin: true,
            grace: GracePeriod {
                after_stdin: Duration::from_millis(7),
                after_term: Duration::ZERO,
            },
        }
    }

    #[test]
    fn a_request_is_decoded_as_it_was_encoded() {
        let bare = StartRequest { args: vec![], env: vec![], stdin: false, ..request() };
        for (request, announce) in [(request(), true), (bare, false)] {
            let bytes = request.encode(announce).unwrap();
            let (length, body) = bytes.split_at(4);
            assert_eq!(u32::from_le_bytes(length.try_into().unwrap()) as usize, body.len());
            assert_eq!(StartRequest::decode(body), Some((request, announce)));
        }
    }

    #[test]
    fn a_grace_period_is_at_most_a_year() {
        let grace = GracePeriod { after_stdin: Duration::MAX, after_term: YEAR };
        let bytes = StartRequest { grace, ..request() }.encode(true).unwrap();
        let year = GracePeriod { after_stdin: YEAR, after_term: YEAR };
        assert_eq!(StartRequest::decode(&bytes[4..]).unwrap().0.grace, year);
    }

    #[test]
    fn a_nul_byte_and_a_request_over_the_limit_are_refused() {
        let nul = StartRequest { args: vec!["a\0b".into()], ..request() };
        assert_eq!(nul.encode(true), Err(EncodeError::Nul));
        let rest =
            StartRequest { args: vec!["".into()], ..request() }.encode(true).unwrap().len() - 4;
        let fits =
            |n: usize| StartRequest { args: vec!["x".repeat(n).into()], ..request() }.encode(true);
        assert_eq!(fits(MAX_REQUEST - rest).map(|bytes| bytes.len()), Ok(MAX_REQUEST + 4));
        assert_eq!(fits(MAX_REQUEST - rest + 1), Err(EncodeError::TooLarge));
    }

    #[test]
    fn truncated_requests_are_not_decoded() {
        let bytes = request().encode(true).unwrap();
        let body = &bytes[4..];
        for cut in 0..body.len() {
            // Cut between two variables it is a valid shorter request; anywhere else it is invalid.
            if let Some((shorter, _)) = StartRequest::decode(&body[..cut]) {
                assert!(shorter.env.len() < 2, "cut at {cut}: {shorter:?}");
            }
        }
        assert_eq!(StartRequest::decode(b""), None);
    }

    #[test]
    fn a_report_is_decoded_as_it_was_encoded() {
        for report in [
            Report::Ready,
            Report::Started(1 << 22),
            Report::NotStarted(2),
            Report::Exited(-1),
            Report::Signalled(9),
            Report::Gone,
            Report::GoneAndExiting,
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        assert_eq!(Report::decode([0; 8]), None);
    }
}
