//! A queue in which callers take turns: first in, first out for one caller, round robin over all.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// A bounded queue in which callers take turns.
///
/// When it is full, a caller who has far fewer items in it than another displaces the newest item of
/// the caller who has most. So one caller cannot fill it.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    lines: FxHashMap<u64, VecDeque<(u64, T)>>,
    /// The callers who have items; the first is next.
    order: VecDeque<u64>,
    len: usize,
    limit: usize,
    last_ticket: u64,
}

/// An item's place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The caller of the item.
    pub(crate) share: u64,
    ticket: u64,
}

impl<T> Turns<T> {
    /// A queue of at most `limit` items.
    pub(crate) fn new(limit: usize) -> Self {
        Self { lines: FxHashMap::default(), order: VecDeque::new(), len: 0, limit, last_ticket: 0 }
    }

    /// The number of waiting items.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds an item of the caller `share`. Returns its place, and the item that it displaced, if
    /// any; the item itself if the queue is full.
    pub(crate) fn push(&mut self, share: u64, item: T) -> Result<(Place, Option<T>), T> {
        let mut displaced = None;
        if self.len >= self.limit {
            let own = self.lines.get(&share).map_or(0, VecDeque::len);
            let longest = self.lines.iter().max_by_key(|(_, line)| line.len());
            match longest {
                Some((greedy, line)) if line.len() > own + 1 => {
                    let greedy = *greedy;
                    displaced = self.lines.get_mut(&greedy).and_then(VecDeque::pop_back);
                    self.len -= 1;
                }
                _ => return Err(item),
            }
        }
        self.last_ticket += 1;
        let place = Place { share, ticket: self.last_ticket };
        let line = self.lines.entry(share).or_default();
        if line.is_empty() {
            self.order.push_back(share);
        }
        line.push_back((place.ticket, item));
        self.len += 1;
        Ok((place, displaced.map(|(_, item)| item)))
    }

    /// Takes the next item out.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.pop_of(|_| true).map(|(_, item)| item)
    }

    /// Takes out the next item of a caller that `may` accepts, with the caller's share.
    pub(crate) fn pop_of(&mut self, may: impl Fn(u64) -> bool) -> Option<(u64, T)> {
        let at = self.order.iter().position(|share| may(*share))?;
        let share = self.order.remove(at)?;
        let line = self.lines.get_mut(&share)?;
        let (_, item) = line.pop_front()?;
        if line.is_empty() {
            self.lines.remove(&share);
        } else {
            self.order.push_back(share);
        }
        self.len -= 1;
        Some((share, item))
    }

    /// Takes out the item at `place`, if it is still there.
    pub(crate) fn remove(&mut self, place: Place) -> Option<T> {
        let line = self.lines.get_mut(&place.share)?;
        let at = line.binary_search_by_key(&place.ticket, |(ticket, _)| *ticket).ok()?;
        let (_, item) = line.remove(at)?;
        if line.is_empty() {
            self.lines.remove(&place.share);
            self.order.retain(|share| *share != place.share);
        }
        self.len -= 1;
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_take_turns_and_each_is_served_in_order() {
        let mut turns = Turns::new(9);
        for item in ["a1", "a2", "a3", "b1", "c1", "c2"] {
            let share = u64::from(item.as_bytes()[0]);
            assert_eq!(turns.push(share, item).unwrap().1, None);
        }
        let order: Vec<_> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(order, ["a1", "b1", "c1", "a2", "c2", "a3"]);
        assert_eq!(turns.len(), 0);
    }

    #[test]
    fn a_full_queue_displaces_the_newest_of_who_has_most_and_refuses_the_others() {
        let mut turns = Turns::new(4);
        for item in 0..4 {
            turns.push(1, item).unwrap();
        }
        assert_eq!(turns.push(1, 4), Err(4));
        assert_eq!(turns.push(2, 20).unwrap().1, Some(3));
        assert_eq!(turns.push(2, 21).unwrap().1, Some(2));
        assert_eq!(turns.push(2, 22), Err(22), "both have two");
        assert!(matches!(turns.push(3, 30).unwrap().1, Some(1 | 21)));
        assert_eq!(turns.len(), 4);
        assert_eq!(turns.push(3, 31), Err(31), "two is not far more than one");
    }

    #[test]
    fn an_item_that_leaves_makes_room() {
        let mut turns = Turns::new(2);
        let (first, _) = turns.push(1, 1).unwrap();
        turns.push(1, 2).unwrap();
        assert_eq!(turns.remove(first), Some(1));
        assert_eq!(turns.remove(first), None);
        let (third, _) = turns.push(7, 3).unwrap();
        assert_eq!(turns.remove(third), Some(3));
        assert_eq!((turns.pop(), turns.pop()), (Some(2), None));
    }

    #[test]
    fn a_caller_can_be_passed_over() {
        let mut turns = Turns::new(9);
        turns.push(1, "a").unwrap();
        turns.push(2, "b").unwrap();
        assert_eq!(turns.pop_of(|share| share != 1), Some((2, "b")));
        assert_eq!(turns.pop_of(|share| share != 1), None);
        assert_eq!(turns.pop(), Some("a"));
    }
}
