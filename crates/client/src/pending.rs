//! The memory of messages from a server, while they arrive and until they are dropped.

use bytes::Bytes;
use sabir_budget::{Hold, memory};

/// Shorter messages are not counted: the number of calls bounds them.
const COUNTED: usize = 16 << 10;

/// The bytes of a message that is not complete.
#[derive(Debug)]
pub(crate) struct Pending {
    hold: Hold,
    size: usize,
}

impl Pending {
    pub(crate) fn new() -> Self {
        Self { hold: memory().take_anyway(0), size: 0 }
    }

    /// More bytes have arrived. Refused if the process has no memory for them.
    pub(crate) fn add(&mut self, more: usize) -> Result<(), String> {
        self.resize(self.size + more)
    }

    /// The size is now `size` bytes. Refused if the process has no memory for them.
    pub(crate) fn resize(&mut self, size: usize) -> Result<(), String> {
        let (before, now) = (self.counted(), counted(size));
        if now > before {
            self.hold.grow(now - before).map_err(|full| full.to_string())?;
        } else {
            self.hold.shrink(before - now);
        }
        self.size = size;
        Ok(())
    }

    /// Like [`Self::resize`], for bytes that cannot be refused.
    pub(crate) fn resize_anyway(&mut self, size: usize) {
        let (before, now) = (self.counted(), counted(size));
        self.hold.absorb(memory().take_anyway(now.saturating_sub(before)));
        self.hold.shrink(before.saturating_sub(now));
        self.size = size;
    }

    /// The message, which holds the memory until it is dropped.
    pub(crate) fn keep(self, message: Bytes) -> Bytes {
        if self.counted() == 0 { message } else { self.hold.keep(message) }
    }

    fn counted(&self) -> usize {
        counted(self.size)
    }
}

/// The same message, counted until it is dropped.
pub(crate) fn count(message: Bytes) -> Bytes {
    if message.len() < COUNTED { message } else { memory().count(message) }
}

fn counted(size: usize) -> usize {
    if size < COUNTED { 0 } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_memory_until_it_is_dropped() {
        // Other tests count in the same memory, but less than a gigabyte.
        const LONG: usize = 1 << 30;
        let is_taken = || memory().used() >= LONG;
        let mut pending = Pending::new();
        pending.resize_anyway(100);
        assert_eq!(pending.counted(), 0);
        pending.resize_anyway(LONG);
        assert!(is_taken());
        let message = pending.keep(Bytes::from(vec![b'x'; 100]));
        let part = message.slice(10..20);
        drop(message);
        assert!(is_taken());
        drop(part);
        assert!(!is_taken());
        let mut pending = Pending::new();
        assert!(pending.add(usize::MAX / 2).unwrap_err().contains("no memory left"));
        assert_eq!(pending.counted(), 0);
    }
}
