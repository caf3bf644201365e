//! The members of an object that its type does not know.

use std::sync::Arc;

use bytestring::ByteString;

use crate::raw::Raw;

/// The unknown members of an object that was read, the order of all its members, and the spelling of
/// its numbers. Empty, and without an allocation, for a value that was not read.
///
/// Two are equal if they have the same unknown members in the same order. The order of the known
/// members and the spelling of numbers do not make values different.
#[derive(Clone, Debug, Default)]
pub struct Extra(Option<Arc<Vec<Member>>>);

/// A member of an object that was read.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: ByteString,
    /// The value, unless the type holds all of it.
    pub(super) text: Option<Raw>,
    /// Whether the type has a field for it.
    pub(super) is_known: bool,
}

impl Extra {
    /// An empty one.
    pub const NONE: Self = Self(None);

    /// An empty one, borrowed.
    pub(crate) fn none() -> &'static Self {
        static NONE: Extra = Extra::NONE;
        &NONE
    }

    /// Whether the value was not read, and has no unknown members.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The unknown member `name`.
    pub fn get(&self, name: &str) -> Option<&Raw> {
        self.unknown().find(|member| member.0 == name).map(|member| member.1)
    }

    /// Adds the unknown member `name`, or replaces it. A name that the type has a field for would be
    /// written twice.
    pub fn set(&mut self, name: &str, value: Raw) {
        let is_it = |member: &&mut Member| !member.is_known && &*member.name == name;
        let members = Arc::make_mut(self.0.get_or_insert_default());
        match members.iter_mut().find(is_it) {
            Some(member) => member.text = Some(value),
            None => members.push(Member { name: name.into(), text: Some(value), is_known: false }),
        }
    }

    /// A copy in memory of its own; empty if it would exceed `limit` bytes.
    #[must_use]
    pub fn compact(&self, limit: usize) -> Self {
        let size = |member: &Member| {
            member.name.len() + member.text.as_ref().map_or(0, |text| text.text().len())
        };
        let is_plain = self.members().iter().all(|member| member.text.is_none());
        if is_plain || self.members().iter().map(size).sum::<usize>() > limit {
            return Self::NONE;
        }
        let compact = |member: &Member| Member {
            name: ByteString::from(&*member.name),
            text: member.text.as_ref().map(Raw::compact),
            is_known: member.is_known,
        };
        Self::new(self.members().iter().map(compact).collect())
    }

    /// The same without the text of the known member `name`.
    pub(crate) fn without_text(&self, name: &str) -> Self {
        let mut extra = self.clone();
        let members = extra.0.as_mut().map(Arc::make_mut).into_iter().flatten();
        let known = members.filter(|member| member.is_known && &*member.name == name);
        known.for_each(|member| member.text = None);
        extra
    }

    /// Has these members, all of them unknown.
    pub(crate) fn unknown_members(members: impl Iterator<Item = (ByteString, Raw)>) -> Self {
        let member = |(name, text)| Member { name, text: Some(text), is_known: false };
        Self::new(members.map(member).collect())
    }

    pub(super) fn new(members: Vec<Member>) -> Self {
        Self((!members.is_empty()).then(|| Arc::new(members)))
    }

    /// All members, in their order.
    pub(super) fn members(&self) -> &[Member] {
        self.0.as_ref().map_or(&[], |members| members.as_slice())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.members().iter().any(|member| &*member.name == name)
    }

    /// The unknown members, in their order.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&str, &Raw)> {
        let unknown = self.members().iter().filter(|member| !member.is_known);
        unknown.filter_map(|member| Some((&*member.name, member.text.as_ref()?)))
    }
}

impl PartialEq for Extra {
    fn eq(&self, other: &Self) -> bool {
        self.unknown().eq(other.unknown())
    }
}

impl Eq for Extra {}
