//! The members of an object, read and written in the order of their author.

use super::extra::{Extra, Member};
use super::{Invalid, ReadJson, WriteJson, with_members};
use crate::id::{Id, write_json_string};
use crate::raw::Raw;
use crate::revision::Features;

/// A type that is an object on the wire.
pub trait Object: Sized {
    /// Takes the members that the type knows.
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid>;

    /// Writes the members that the type knows, as far as the revision has them.
    fn write_members(&self, writer: &mut MemberWriter<'_>);

    /// The members that the type does not know.
    fn extra(&self, to: &Features) -> &Extra;

    /// The JSON to write instead of members, for a kind of object that is not known.
    fn whole(&self) -> Option<&Raw> {
        None
    }
}

/// A value that is several members of an object.
pub(crate) trait Flat: Sized {
    fn read_flat(members: &mut MemberReader) -> Result<Self, Invalid>;
    fn write_flat(&self, writer: &mut MemberWriter<'_>);
}

/// Defines a type that is an object on the wire. Each field has, after its type, how its member is
/// read and written (a method of [`MemberReader`] and [`MemberWriter`]), the member's name, and where
/// needed:
/// - `via W`: the type that is read and written instead, a wrapper of a `Cow` of the field;
/// - `as (e)`: the value that is written instead of the field;
/// - `if c`: the condition under which a revision has the member.
///
/// The names between the bars are those of the value and the revision's [`Features`] in `e` and
/// `c`. A `result` names its kind where the revision requires it.
macro_rules! object {
    (
        $(#[$attribute:meta])*
        $type:ident $(|$value:ident, $to:ident|)? $(result $kind:literal)? {
            $(
                $(#[$doc:meta])*
                $field:ident: $field_type:ty = $mode:ident $name:literal
                    $(via $via:ident)? $(as ($as:expr))? $(if $condition:expr)?;
            )*
        }
    ) => {
        $(#[$attribute])*
        pub struct $type {
            $($(#[$doc])* pub $field: $field_type,)*
            /// Members that this type does not know.
            pub extra: $crate::Extra,
        }

        impl $crate::json::Object for $type {
            fn read_members(
                members: &mut $crate::json::MemberReader,
            ) -> Result<Self, $crate::json::Invalid> {
                $(members.result_type($kind)?;)?
                Ok(Self {
                    $($field: $crate::json::object!(@read members, $mode, $name $(, $via)?),)*
                    extra: members.rest(),
                })
            }

            fn write_members(&self, writer: &mut $crate::json::MemberWriter<'_>) {
                $(
                    let ($value, $to) = (self, writer.to);
                    let _ = $value;
                )?
                $(writer.result_type($kind);)?
                $(if true $(&& $condition)? {
                    writer.$mode(
                        $name,
                        $crate::json::object!(@write self.$field $(, via $via)? $(, as $as)?),
                    );
                })*
            }

            fn extra(&self, _: &$crate::Features) -> &$crate::Extra {
                &self.extra
            }
        }
    };
    (@read $members:ident, $mode:ident, $name:literal) => {
        $members.$mode($name)?
    };
    (@read $members:ident, $mode:ident, $name:literal, $via:ident) => {
        $members.$mode::<$via<'_>>($name)?.0.into_owned()
    };
    (@write $value:ident.$field:ident) => {
        &$value.$field
    };
    (@write $value:ident.$field:ident, via $via:ident) => {
        &$via(std::borrow::Cow::Borrowed(&$value.$field))
    };
    (@write $value:ident.$field:ident, as $as:expr) => {
        $as
    };
}
pub(crate) use object;

/// The members of an object that is read.
pub struct MemberReader {
    whole: Raw,
    members: Vec<Member>,
}

impl MemberReader {
    pub(crate) fn new(json: &Raw) -> Result<Self, Invalid> {
        let members = json.named_members().ok_or_else(|| Invalid::new("an object"))?;
        let unknown = |(name, value)| Member { name, text: Some(value), is_known: false };
        Ok(Self { whole: json.clone(), members: members.into_iter().map(unknown).collect() })
    }

    /// Reads a member that is always written.
    pub(crate) fn required<T: ReadJson>(&mut self, name: &str) -> Result<T, Invalid> {
        self.take(name)
    }

    /// Reads a member that is written if it has a value.
    pub(crate) fn optional<T: ReadJson>(&mut self, name: &str) -> Result<T, Invalid> {
        self.take(name)
    }

    /// Reads the metadata of a result.
    pub(crate) fn result_meta(&mut self, name: &str) -> Result<Option<Raw>, Invalid> {
        self.take(name)
    }

    /// Reads a value that is several members.
    pub(crate) fn flat<T: Flat>(&mut self, _name: &str) -> Result<T, Invalid> {
        T::read_flat(self)
    }

    /// Skips the kind of a result, which follows from its type.
    pub(crate) fn result_type(&mut self, _kind: &str) -> Result<(), Invalid> {
        self.known("resultType", false).map(drop)
    }

    /// Reads the member `name`. `null` is absent, where the member may be absent.
    pub(crate) fn take<T: ReadJson>(&mut self, name: &str) -> Result<T, Invalid> {
        let text = self.known(name, T::keeps_text())?;
        match (text, T::absent()) {
            (None, None) => Err(Invalid::missing(name)),
            (None, Some(absent)) => Ok(absent),
            (Some(text), Some(absent)) if text.is_null() => Ok(absent),
            (Some(text), _) => T::read_json(&text).map_err(|error| error.in_member(name)),
        }
    }

    /// The member `name` as it is, even if it is `null`.
    pub(crate) fn maybe(&mut self, name: &str) -> Result<Option<Raw>, Invalid> {
        self.known(name, false)
    }

    /// The member `name`, which stays unknown.
    pub(crate) fn peek(&self, name: &str) -> Option<&Raw> {
        let member = self.members.iter().find(|member| &*member.name == name);
        member.and_then(|member| member.text.as_ref())
    }

    /// The whole object. Its members are not kept separately.
    pub(crate) fn take_whole(&mut self) -> Raw {
        self.members.clear();
        self.whole.clone()
    }

    /// The members that were not taken, and the order of all members.
    pub(crate) fn rest(&mut self) -> Extra {
        Extra::new(std::mem::take(&mut self.members))
    }

    fn known(&mut self, name: &str, keep_text: bool) -> Result<Option<Raw>, Invalid> {
        let mut found = self.members.iter_mut().filter(|member| &*member.name == name);
        let Some(member) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(Invalid::new("a single member of that name").in_member(name));
        }
        member.is_known = true;
        Ok(if keep_text { member.text.clone() } else { member.text.take() })
    }
}

/// Writes the members of an object.
pub struct MemberWriter<'w> {
    /// The features of the revision.
    pub(crate) to: &'static Features,
    out: &'w mut Vec<u8>,
    /// The server that every result names, while a result is written.
    server: Option<&'w Raw>,
    pass: Pass<'w>,
    is_first: bool,
}

/// The members to write. An object that was read is written in one pass per member, in their order.
#[derive(Clone, Copy)]
enum Pass<'w> {
    All,
    One(&'w Member),
    /// The members that were absent when the object was read.
    Rest(&'w Extra),
}

/// Writes an object; a result names `server` where the revision requires it.
pub(crate) fn write_object(
    object: &impl Object,
    to: &'static Features,
    server: Option<&Raw>,
    out: &mut Vec<u8>,
) {
    if let Some(whole) = object.whole() {
        return out.extend_from_slice(whole.as_bytes());
    }
    let extra = object.extra(to);
    out.push(b'{');
    let mut writer = MemberWriter { to, out, server, pass: Pass::All, is_first: true };
    for member in extra.members() {
        match &member.text {
            Some(text) if !member.is_known => {
                writer.comma();
                write_json_string(&member.name, writer.out);
                writer.out.push(b':');
                writer.out.extend_from_slice(text.as_bytes());
            }
            _ => {
                writer.pass = Pass::One(member);
                object.write_members(&mut writer);
            }
        }
    }
    if !extra.members().is_empty() {
        writer.pass = Pass::Rest(extra);
    }
    object.write_members(&mut writer);
    out.push(b'}');
}

impl MemberWriter<'_> {
    /// Writes a member that is always there.
    pub(crate) fn required(&mut self, name: &str, value: &(impl WriteJson + ?Sized)) {
        self.member(name, value, value.is_none());
    }

    /// Writes a member that is a word of the protocol.
    pub(crate) fn word(&mut self, name: &str, word: &'static str) {
        self.required(name, &Word(word));
    }

    /// Writes a member, if it has a value.
    pub(crate) fn optional(&mut self, name: &str, value: &(impl WriteJson + ?Sized)) {
        self.member(name, value, value.is_default());
    }

    /// Writes a member, if there is a value.
    pub(crate) fn maybe(&mut self, name: &str, value: Option<&(impl WriteJson + ?Sized)>) {
        if let Some(value) = value {
            self.required(name, value);
        }
    }

    fn member(&mut self, name: &str, value: &(impl WriteJson + ?Sized), is_left_out: bool) {
        match self.pass {
            Pass::All if !is_left_out => {}
            Pass::Rest(extra) if !is_left_out && !extra.has(name) => {}
            Pass::One(member) if &*member.name == name && !value.is_none() => {
                if let Some(text) = member.text.as_ref().filter(|text| value.still_says(text)) {
                    self.name(name);
                    return self.out.extend_from_slice(text.as_bytes());
                }
            }
            _ => return,
        }
        self.name(name);
        value.write_json(self.to, self.out);
    }

    /// Writes the kind of the result, where the revision requires it.
    pub(crate) fn result_type(&mut self, kind: &'static str) {
        if self.to.stateless {
            self.word("resultType", kind);
        }
    }

    /// Writes a value that is several members.
    pub(crate) fn flat(&mut self, _name: &str, value: &impl Flat) {
        value.write_flat(self);
    }

    /// The metadata of a result: its own, and the name of the server.
    pub(crate) fn result_meta(&mut self, name: &str, own: &Option<Raw>) {
        self.subscription_meta(name, own, None);
    }

    /// The same for the result of a subscription, which names the request that opened it.
    pub(crate) fn subscription_meta(&mut self, name: &str, own: &Option<Raw>, opened: Option<&Id>) {
        let server = self.server.filter(|_| self.to.stateless);
        self.optional(name, &ResultMeta { server, subscription: opened, own: own.as_ref() });
    }

    /// Writes the name of a known member, which has no escapes.
    fn name(&mut self, name: &str) {
        self.comma();
        Word(name).write_json(self.to, self.out);
        self.out.push(b':');
    }

    fn comma(&mut self) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.push(b',');
        }
    }
}

/// A word that has no escapes.
struct Word<'a>(&'a str);

impl WriteJson for Word<'_> {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend_from_slice(self.0.as_bytes());
        out.push(b'"');
    }
}

/// The key of the server's name in the metadata of a result.
pub(crate) const SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// The key of the request that opened a subscription, in all messages on its stream.
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The metadata of a result. In a relayed result, our name replaces that of its server.
struct ResultMeta<'a> {
    server: Option<&'a Raw>,
    subscription: Option<&'a Id>,
    own: Option<&'a Raw>,
}

impl WriteJson for ResultMeta<'_> {
    fn is_none(&self) -> bool {
        self.server.is_none() && self.subscription.is_none() && self.own.is_none()
    }

    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        let own = match (self.own, self.server, self.subscription) {
            (Some(own), None, None) if to.stateless => return own.write_json(to, out),
            (None, Some(server), None) => {
                out.push(b'{');
                Word(SERVER).write_json(to, out);
                out.push(b':');
                server.write_json(to, out);
                return out.push(b'}');
            }
            (own, ..) => own.cloned().unwrap_or_default(),
        };
        let subscription = self.subscription.map(|id| id.to_string());
        let changes =
            [(SERVER, self.server.map(Raw::text)), (SUBSCRIPTION, subscription.as_deref())];
        with_members(&own, &changes, out);
    }
}

impl<T: Object> ReadJson for T {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        Self::read_members(&mut MemberReader::new(json)?)
    }
}

impl<T: Object> WriteJson for T {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        write_object(self, to, None, out);
    }
}
