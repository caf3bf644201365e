//! Whether the placeholders of a command and its input agree.

use std::collections::BTreeSet;

use super::{Input, nearest};
use crate::command::template::{CommandLine, Place, Stdin, TextTemplate, Use, UseKind};

/// Something in which the placeholders and the input do not agree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// A placeholder that names no argument.
    #[error("{place}: there is no argument `{name}`{}", hint(near))]
    Unknown {
        /// Where it stands.
        place: Place,
        /// What it names.
        name: String,
        /// The argument that was probably meant.
        near: Option<String>,
    },
    /// `{name}` where the argument may be absent.
    #[error(
        "{place}: `{name}` may be absent; write `{{{name}?}}`, give it a default, or require it"
    )]
    MayBeAbsent {
        /// Where it stands.
        place: Place,
        /// What it names.
        name: String,
    },
    /// `{name?}` where the argument is always there.
    #[error("{place}: `{name}` is never absent; write `{{{name}}}`, or make it optional")]
    NeverAbsent {
        /// Where it stands.
        place: Place,
        /// What it names.
        name: String,
    },
    /// `{name?text}` where the argument is not true or false.
    #[error("{place}: `{{{name}?…}}` needs an argument of type boolean")]
    NotASwitch {
        /// Where it stands.
        place: Place,
        /// What it names.
        name: String,
    },
    /// Two lists that would have to repeat the same argument.
    #[error("{place}: `{first}` and `{second}` are lists; only one can repeat this")]
    TwoLists {
        /// Where the second stands.
        place: Place,
        /// The one that comes first.
        first: String,
        /// The other one.
        second: String,
    },
    /// An argument that reaches nobody.
    #[error("input.{name}: is used nowhere; put `{{{name}}}` into {into}")]
    Unused {
        /// The argument.
        name: String,
        /// Where it could be used.
        into: &'static str,
    },
    /// `allow_dash` names no argument of the command line.
    #[error("allow_dash: `{name}` stands nowhere in `run`{}", hint(near))]
    DashUnused {
        /// What it names.
        name: String,
        /// The argument that was probably meant.
        near: Option<String>,
    },
}

fn hint(near: &Option<String>) -> String {
    near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

impl Input {
    /// Every way in which the placeholders and this input do not agree, in the order of `run`.
    pub fn disagreements(&self, line: &CommandLine, stdin: &Stdin) -> Vec<Disagreement> {
        let mut found = Vec::new();
        let mut used = BTreeSet::new();
        let in_stdin = match stdin {
            Stdin::Text(template) => Some(template.uses()),
            Stdin::Empty | Stdin::Json => None,
        };
        for one in line.uses().chain(in_stdin.into_iter().flatten()) {
            used.insert(one.name);
            found.extend(self.disagreement(&one));
        }
        found.extend(self.two_lists(line));
        let in_line: BTreeSet<&str> = line.uses().map(|one| one.name).collect();
        for name in line.allow_dash.iter().filter(|name| !in_line.contains(&***name)) {
            let near = nearest(name, in_line.iter().copied());
            found.push(Disagreement::DashUnused { name: name.clone(), near });
        }
        if !matches!(stdin, Stdin::Json) {
            found.extend(self.unused(&used, "`run` or `stdin`"));
        }
        found
    }

    /// Every way in which the placeholders of these texts and this input do not agree.
    pub fn disagreements_in_texts(&self, texts: &[&TextTemplate]) -> Vec<Disagreement> {
        let uses = || texts.iter().flat_map(|text| text.uses());
        let mut found: Vec<_> = uses().filter_map(|one| self.disagreement(&one)).collect();
        found.extend(self.unused(&uses().map(|one| one.name).collect(), "a `text`"));
        found
    }

    fn unused(
        &self,
        used: &BTreeSet<&str>,
        into: &'static str,
    ) -> impl Iterator<Item = Disagreement> {
        let unused = self.properties.keys().filter(|name| !used.contains(&***name));
        unused.map(move |name| Disagreement::Unused { name: name.clone(), into })
    }

    fn disagreement(&self, one: &Use<'_>) -> Option<Disagreement> {
        let (place, name) = (one.place, one.name.to_owned());
        let Some(property) = self.properties.get(one.name) else {
            let near = nearest(one.name, self.properties.keys().map(|name| &**name));
            return (!self.open).then_some(Disagreement::Unknown { place, name, near });
        };
        let is = |kind: &str| property.types.iter().any(|known| known == kind);
        let said = !property.types.is_empty();
        let absent = !property.required && !self.defaults.contains_key(one.name);
        match one.kind {
            UseKind::Required if absent => Some(Disagreement::MayBeAbsent { place, name }),
            // A required argument can still be null, which is the same as absent.
            UseKind::Optional if property.required && said && !is("null") => {
                Some(Disagreement::NeverAbsent { place, name })
            }
            UseKind::Switch if said && !is("boolean") => {
                Some(Disagreement::NotASwitch { place, name })
            }
            _ => None,
        }
    }

    fn two_lists(&self, line: &CommandLine) -> Vec<Disagreement> {
        let is_list = |name: &str| {
            self.properties.get(name).is_some_and(|property| property.types == ["array"])
        };
        let mut found = Vec::new();
        for unit in &line.units {
            let mut lists = unit.uses().filter(|one| is_list(one.name));
            let Some(first) = lists.next() else { continue };
            if let Some(second) = lists.find(|one| one.name != first.name) {
                let place = second.place;
                let (first, second) = (first.name.to_owned(), second.name.to_owned());
                found.push(Disagreement::TwoLists { place, first, second });
            }
        }
        found
    }
}
