//! The memory that requests, answers and queues may use together.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::limits::Limit;

/// A number of bytes that may be in use at once.
///
/// An eighth of it is reserved for small requests, so that they are served while long bodies and
/// answers fill the rest. The answers that a caller has not read are limited to a quarter, and one
/// answer more.
#[derive(Debug)]
pub struct Memory {
    used: AtomicUsize,
    limit: AtomicUsize,
    /// Bytes of answers to callers. The share of a caller gives its place; callers whose shares are
    /// a multiple of [`PLACES`] apart have one place, and a quarter together.
    answers: [AtomicUsize; PLACES],
}

/// The number of places for callers.
const PLACES: usize = 1024;

/// The largest amount that counts as small, in bytes.
const SMALL: usize = 64 << 10;

/// A shorter text is not counted: short texts are bounded by their number.
const UNCOUNTED: usize = 1 << 10;

/// The budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryFull {
    /// The whole budget.
    #[error("the server has no memory left for this request (limit {0} bytes); try again later")]
    Whole(usize),
    /// The share of the caller.
    #[error(
        "the server has no memory left for more answers to this client (limit {0} bytes), which has \
         not read the last ones; try again later"
    )]
    Share(usize),
}

/// The budget of this process: a quarter of the memory of the machine or of its control group, until
/// [`Memory::set_limit`].
pub fn memory() -> &'static Memory {
    static MEMORY: OnceLock<Memory> = OnceLock::new();
    MEMORY.get_or_init(|| Memory::new(available() / 4))
}

impl Memory {
    /// A budget of `limit` bytes.
    pub const fn new(limit: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            answers: [const { AtomicUsize::new(0) }; PLACES],
        }
    }

    /// Changes the limit. Memory that is in use stays in use.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// The limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// The number of bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Refuses a request of the caller `share` if no memory is left, even for small requests, or if
    /// the caller's unread answers fill a quarter.
    pub fn check(&self, share: u64) -> Result<(), MemoryFull> {
        let limit = self.limit();
        let answers = self.place(share).map_or(0, |place| place.load(Ordering::Relaxed));
        match answers >= (limit / 4).max(1) {
            true => Err(reached(MemoryFull::Share(limit / 4))),
            false if self.used() >= limit => Err(reached(MemoryFull::Whole(limit))),
            false => Ok(()),
        }
    }

    /// `None` for share 0, which is that of a caller who is alone.
    fn place(&self, share: u64) -> Option<&AtomicUsize> {
        let place = usize::try_from(share % PLACES as u64).ok()?;
        self.answers.get(place).filter(|_| share != 0)
    }

    /// Takes bytes until the result is dropped.
    pub fn take(&'static self, bytes: usize) -> Result<Hold, MemoryFull> {
        let mut hold = self.take_anyway(0);
        hold.grow(bytes).map(|()| hold)
    }

    /// The same, for an answer to the caller `share`.
    pub fn take_for(&'static self, share: u64, bytes: usize) -> Result<Hold, MemoryFull> {
        self.check(share)?;
        Ok(self.take(bytes)?.answering(self.place(share)))
    }

    /// The same, however much is in use: for data that exists already and cannot be refused.
    pub fn take_anyway(&'static self, bytes: usize) -> Hold {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Hold { memory: self, answers: None, bytes }
    }

    /// The same, for an answer to the caller `share`.
    pub fn take_anyway_for(&'static self, share: u64, bytes: usize) -> Hold {
        self.take_anyway(bytes).answering(self.place(share))
    }

    /// The same text, counted as long as any part of it exists.
    pub fn count(&'static self, text: Bytes) -> Bytes {
        self.count_for(0, text)
    }

    /// The same for a short text that waits among many others, and for its overhead of `beside`
    /// bytes.
    pub fn count_short_for(&'static self, share: u64, text: Bytes, beside: usize) -> Bytes {
        match text.len() < UNCOUNTED {
            true => self.take_anyway_for(share, text.len() + beside).keep(text),
            false => text,
        }
    }

    /// The same, for an answer to the caller `share`.
    pub fn count_for(&'static self, share: u64, text: Bytes) -> Bytes {
        match text.len() < UNCOUNTED {
            true => text,
            false => self.take_anyway_for(share, text.len()).keep(text),
        }
    }
}

fn reached(full: MemoryFull) -> MemoryFull {
    Limit::Memory.reach(full);
    full
}

/// Bytes that are in use until this is dropped.
#[derive(Debug)]
pub struct Hold {
    memory: &'static Memory,
    /// The counter of a caller's answers, if this is one.
    answers: Option<&'static AtomicUsize>,
    bytes: usize,
}

impl Hold {
    fn answering(mut self, answers: Option<&'static AtomicUsize>) -> Self {
        self.answers = answers;
        self.count(self.bytes);
        self
    }

    fn count(&self, more: usize) {
        if let Some(answers) = self.answers {
            answers.fetch_add(more, Ordering::Relaxed);
        }
    }

    fn discount(&self, less: usize) {
        self.memory.used.fetch_sub(less, Ordering::Relaxed);
        if let Some(answers) = self.answers {
            answers.fetch_sub(less, Ordering::Relaxed);
        }
    }

    /// Takes more bytes.
    pub fn grow(&mut self, more: usize) -> Result<(), MemoryFull> {
        self.grow_as(more, self.bytes.saturating_add(more) <= SMALL)
    }

    /// The same for data that may become long, even while it is short.
    pub fn grow_long(&mut self, more: usize) -> Result<(), MemoryFull> {
        self.grow_as(more, false)
    }

    fn grow_as(&mut self, more: usize, is_small: bool) -> Result<(), MemoryFull> {
        let Memory { used, limit, .. } = self.memory;
        let limit = limit.load(Ordering::Relaxed);
        let most = if is_small { limit } else { limit - limit / 8 };
        let fits = |used: usize| used.checked_add(more).filter(|sum| *sum <= most);
        match used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => {
                self.bytes += more;
                self.count(more);
                Ok(())
            }
            Err(_) => Err(reached(MemoryFull::Whole(limit))),
        }
    }

    /// Gives some of the bytes back.
    pub fn shrink(&mut self, less: usize) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        self.discount(less);
    }

    /// Gives back all but `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.shrink(self.bytes.saturating_sub(bytes));
    }

    /// Takes over the bytes of another, of the same budget and for the same caller.
    pub fn absorb(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// A text that holds these bytes as long as any part of it exists.
    pub fn keep(self, text: Bytes) -> Bytes {
        Bytes::from_owner(Kept { text, _hold: self })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.discount(self.bytes);
    }
}

struct Kept {
    text: Bytes,
    _hold: Hold,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

/// The memory of the machine, or of the control group if that is less.
fn available() -> usize {
    // If the size is unknown, a small machine is assumed.
    let machine = machine().unwrap_or(4 << 30);
    control_group().map_or(machine, |group| group.min(machine))
}

fn machine() -> Option<usize> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1 << 10)
}

/// The lowest limit of the control group of this process and of those above it.
fn control_group() -> Option<usize> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(limit_of_group).min()
}

fn limit_of_group(line: &str) -> Option<usize> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let folders = std::path::Path::new(path).ancestors();
    let folders = folders.map(|folder| folder.strip_prefix("/").unwrap_or(folder));
    let limits = folders.filter_map(|folder| {
        let limit = std::path::Path::new(root).join(folder).join(file);
        std::fs::read_to_string(limit).ok()?.trim().parse().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limit: usize) -> &'static Memory {
        Box::leak(Box::new(Memory::new(limit)))
    }

    #[test]
    fn what_is_dropped_can_be_taken_again() {
        let memory = budget(1000);
        let mut hold = memory.take(600).unwrap();
        assert_eq!(memory.take(401).unwrap_err(), MemoryFull::Whole(1000));
        hold.grow(400).unwrap();
        assert!(memory.check(0).is_err() && hold.grow(1).is_err());
        drop(hold);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn an_eighth_is_kept_for_small_things() {
        let memory = budget(8 << 20);
        let mut long = memory.take(7 << 20).unwrap();
        assert!(long.grow(1).is_err() && memory.take(SMALL + 1).is_err());
        let mut begun = memory.take(0).unwrap();
        assert!(begun.grow_long(1).is_err());
        let small: Vec<_> = (0..16).map(|_| memory.take(SMALL).unwrap()).collect();
        assert!(memory.check(0).is_err() && memory.take(1).is_err());
        drop(small);
        assert_eq!(memory.used(), 7 << 20);
    }

    #[test]
    fn a_caller_has_a_quarter_and_one_answer_more() {
        let memory = budget(1 << 20);
        let quarter = memory.limit() / 4;
        let mut first = memory.take_for(7, quarter - 1).unwrap();
        let long = memory.count_for(7, Bytes::from(vec![b'x'; 3000]));
        assert_eq!(memory.take_for(7, 1).unwrap_err(), MemoryFull::Share(quarter));
        assert_eq!(memory.check(7), Err(MemoryFull::Share(quarter)));
        // Other callers have the rest. Share 0 (stdio) has no limit of its own.
        let _others = [memory.take_for(8, quarter).unwrap(), memory.take_for(0, quarter).unwrap()];
        assert_eq!(memory.check(0), Ok(()));
        // Memory that is given back can be used again.
        drop(long);
        assert_eq!(memory.check(7), Ok(()));
        first.grow(1).unwrap();
        assert!(memory.check(7).is_err());
        first.shrink(1);
        first.absorb(memory.take_for(7, 1).unwrap());
        assert!(memory.check(7).is_err());
        drop(first);
        assert_eq!((memory.check(7), memory.used()), (Ok(()), 2 * quarter));
    }

    #[test]
    fn a_text_is_counted_as_long_as_a_part_of_it_exists() {
        let memory = budget(10);
        let text = memory.count(Bytes::from(vec![b'x'; 5000]));
        let part = text.slice(4000..4001);
        drop(text);
        assert_eq!((memory.used(), memory.check(0)), (5000, Err(MemoryFull::Whole(10))));
        drop(part);
        assert_eq!(memory.used(), 0);
        let short = memory.count(Bytes::from(vec![b'x'; UNCOUNTED - 1]));
        assert_eq!((memory.used(), short.len()), (0, UNCOUNTED - 1));
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(available() > 64 << 20);
        assert!(memory().limit() <= machine().unwrap_or(usize::MAX) / 4);
    }
}
