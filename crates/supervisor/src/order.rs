//! What Sabir and its keepers say to each other, as bytes.
//!
//! Down goes an [`Order`]: what to start and how patiently to end it. Up come [`Word`]s of eight
//! bytes each. There is no order to end a child: closing the line says that, and a crash says it
//! just as well.
//!
//! An order is a length and then strings that each end in a NUL, the form in which `execve` takes
//! them anyway; so a string with a NUL in it cannot be sent, and is refused here.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// What to start, and how patiently to end it.
///
/// `program` and `cwd` are absolute: the keeper's own folder is `/`, and it looks nothing up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The file to run. No shell, no search path.
    pub program: PathBuf,
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// The whole environment: the child inherits nothing.
    pub env: Vec<(OsString, OsString)>,
    /// The folder that the child starts in.
    pub cwd: PathBuf,
    /// Whether the child's standard input is a pipe to us; otherwise it is empty.
    pub stdin: bool,
    /// How long each step of ending it may take.
    pub patience: Patience,
}

/// How long a child is given after each step of ending it. More than a year is a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the closing of its standard input to SIGTERM.
    pub after_stdin: Duration,
    /// From SIGTERM to SIGKILL.
    pub after_term: Duration,
}

impl Default for Patience {
    /// Right for a program that serves its standard input: it should leave when that closes.
    fn default() -> Self {
        Self { after_stdin: Duration::from_secs(2), after_term: Duration::from_secs(2) }
    }
}

/// Longer times are taken as this: clocks overflow.
pub const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The largest order, in bytes. Linux itself takes at most 6 MiB of arguments and environment.
/// A larger one is refused before anything is started.
pub(crate) const MAX_ORDER: usize = 8 << 20;

/// Why an order cannot be put into bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadOrder {
    /// A string contains a NUL byte.
    Nul,
    /// It is larger than [`MAX_ORDER`].
    TooLarge,
}

impl Order {
    /// The order as bytes, with its length in front. If it should `announce`, the keeper says
    /// [`Word::Started`]; otherwise the first that one hears of the program is its end.
    pub(crate) fn encode(&self, announce: bool) -> Result<Vec<u8>, BadOrder> {
        let mut out = vec![0; 4];
        let number = |n: u128| OsString::from(n.to_string());
        put(&mut out, self.program.as_os_str())?;
        put(&mut out, self.cwd.as_os_str())?;
        put(&mut out, &number(u128::from(announce)))?;
        put(&mut out, &number(u128::from(self.stdin)))?;
        for time in [self.patience.after_stdin, self.patience.after_term] {
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
        if length > MAX_ORDER {
            return Err(BadOrder::TooLarge);
        }
        out[..4].copy_from_slice(&(length as u32).to_le_bytes());
        Ok(out)
    }

    /// Reads what [`Order::encode`] wrote, without the length: the order, and whether to announce.
    /// `None`: it did not write that.
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
        let patience = Patience { after_stdin, after_term };
        Some((Self { program, args, env, cwd, stdin, patience }, announce))
    }
}

fn put(out: &mut Vec<u8>, string: &OsStr) -> Result<(), BadOrder> {
    if string.as_bytes().contains(&0) {
        return Err(BadOrder::Nul);
    }
    out.extend_from_slice(string.as_bytes());
    out.push(0);
    Ok(())
}

/// What a keeper tells Sabir.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// I am a keeper, and wait for orders.
    Ready,
    /// The child runs, under this process id.
    Started(i32),
    /// The system refused to start it, with this error number.
    NotStarted(i32),
    /// The child left with this code; what it left behind is being ended.
    Exited(i32),
    /// The child was ended by this signal; what it left behind is being ended.
    Signalled(i32),
    /// Nothing of it is left: not the child, not its descendants, no zombie. I wait for orders.
    Gone,
    /// The same, and I leave.
    GoneToo,
}

impl Word {
    pub(crate) const SIZE: usize = 8;

    pub(crate) fn encode(self) -> [u8; Self::SIZE] {
        let (tag, number) = match self {
            Self::Ready => (1u32, 0),
            Self::Started(pid) => (2, pid),
            Self::NotStarted(errno) => (3, errno),
            Self::Exited(code) => (4, code),
            Self::Signalled(signal) => (5, signal),
            Self::Gone => (6, 0),
            Self::GoneToo => (7, 0),
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
            7 => Self::GoneToo,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            program: "/bin/echo".into(),
            args: vec!["".into(), "two\nlines".into(), OsString::from_vec(vec![0xff, 0x2d])],
            env: vec![("A".into(), "".into()), ("B".into(), "=".into())],
            cwd: "/".into(),
            stdin: true,
            patience: Patience {
                after_stdin: Duration::from_millis(7),
                after_term: Duration::ZERO,
            },
        }
    }

    #[test]
    fn an_order_comes_out_as_it_went_in() {
        let bare = Order { args: vec![], env: vec![], stdin: false, ..order() };
        for (order, announce) in [(order(), true), (bare, false)] {
            let bytes = order.encode(announce).unwrap();
            let (length, body) = bytes.split_at(4);
            assert_eq!(u32::from_le_bytes(length.try_into().unwrap()) as usize, body.len());
            assert_eq!(Order::decode(body), Some((order, announce)));
        }
    }

    #[test]
    fn patience_without_end_is_a_year() {
        let patience = Patience { after_stdin: Duration::MAX, after_term: YEAR };
        let bytes = Order { patience, ..order() }.encode(true).unwrap();
        let year = Patience { after_stdin: YEAR, after_term: YEAR };
        assert_eq!(Order::decode(&bytes[4..]).unwrap().0.patience, year);
    }

    #[test]
    fn a_nul_and_an_order_too_large_are_refused() {
        let nul = Order { args: vec!["a\0b".into()], ..order() };
        assert_eq!(nul.encode(true), Err(BadOrder::Nul));
        let rest = Order { args: vec!["".into()], ..order() }.encode(true).unwrap().len() - 4;
        let fits = |n: usize| Order { args: vec!["x".repeat(n).into()], ..order() }.encode(true);
        assert_eq!(fits(MAX_ORDER - rest).map(|bytes| bytes.len()), Ok(MAX_ORDER + 4));
        assert_eq!(fits(MAX_ORDER - rest + 1), Err(BadOrder::TooLarge));
    }

    #[test]
    fn broken_orders_are_not_understood() {
        let bytes = order().encode(true).unwrap();
        let body = &bytes[4..];
        for cut in 0..body.len() {
            // Cut between two variables it is a shorter order; anywhere else it is none.
            if let Some((shorter, _)) = Order::decode(&body[..cut]) {
                assert!(shorter.env.len() < 2, "cut at {cut}: {shorter:?}");
            }
        }
        assert_eq!(Order::decode(b""), None);
    }

    #[test]
    fn a_word_comes_out_as_it_went_in() {
        for word in [
            Word::Ready,
            Word::Started(1 << 22),
            Word::NotStarted(2),
            Word::Exited(-1),
            Word::Signalled(9),
            Word::Gone,
            Word::GoneToo,
        ] {
            assert_eq!(Word::decode(word.encode()), Some(word));
        }
        assert_eq!(Word::decode([0; 8]), None);
    }
}
