//! Changes of single members of an object; everything else keeps its bytes.

use bytestring::ByteString;

use crate::id::write_json_string;
use crate::raw::Raw;

impl Raw {
    /// This object with some of its members changed: each of `changes` names a member and the JSON
    /// text of its new value, or `None` to leave it out. A new member comes last.
    pub fn with_members(&self, changes: &[(&str, Option<&str>)]) -> Self {
        changed(&self.named_members().unwrap_or_default(), changes)
    }
}

/// An object that has these members, some of them changed as [`Raw::with_members`] says.
pub(crate) fn changed(members: &[(ByteString, Raw)], changes: &[(&str, Option<&str>)]) -> Raw {
    let size = members.iter().map(|(name, value)| name.len() + value.text().len() + 4);
    let mut out = Vec::with_capacity(size.sum::<usize>() + 64);
    write_changed(members, changes, &mut out);
    Raw::written(out)
}

/// Appends `json`, an object, with some of its members changed.
pub(crate) fn with_members(json: &Raw, changes: &[(&str, Option<&str>)], out: &mut Vec<u8>) {
    write_changed(&json.named_members().unwrap_or_default(), changes, out);
}

/// Appends an object that has these members, some of them changed: each of `changes` names a member
/// and its new value, or `None` to leave it out. A new member comes last.
pub(crate) fn write_changed(
    members: &[(ByteString, Raw)],
    changes: &[(&str, Option<&str>)],
    out: &mut Vec<u8>,
) {
    let kept = members.iter().filter_map(|(name, value)| {
        match changes.iter().find(|(changed, _)| *changed == &**name) {
            Some((_, new)) => new.map(|new| (&**name, new)),
            None => Some((&**name, value.text())),
        }
    });
    let is_new = |name: &str| !members.iter().any(|(known, _)| &**known == name);
    let added = changes.iter().filter(|(name, _)| is_new(name));
    let added = added.filter_map(|(name, new)| new.map(|new| (*name, new)));
    out.push(b'{');
    for (nth, (name, value)) in kept.chain(added).enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        write_json_string(name, out);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
}
