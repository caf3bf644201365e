//! Checks that the placeholders of a definition match its input.

use std::collections::BTreeSet;

use super::{Input, code, nearest};
use crate::command::definition::{DefinitionError, Location};
use crate::command::template::{CommandLine, Piece, Stdin, TextTemplate, Use, UseKind};

impl Input {
    /// All mismatches between this input and the placeholders of a command, in the order of `run`.
    pub fn mismatches(
        &self,
        line: &CommandLine,
        stdin: &Stdin,
        folder: Option<&TextTemplate>,
    ) -> Vec<DefinitionError> {
        let mut found = Vec::new();
        let mut used = BTreeSet::new();
        let in_stdin = match stdin {
            Stdin::Text(template) => Some(template.uses()),
            Stdin::Empty | Stdin::Json => None,
        };
        let in_folder = folder.into_iter().flat_map(TextTemplate::uses);
        for one in line.uses().chain(in_stdin.into_iter().flatten()).chain(in_folder) {
            used.insert(one.name);
            found.extend(self.mismatch(&one));
        }
        found.extend(self.two_lists(line));
        found.extend(code::placeholders(line));
        let in_line: BTreeSet<&str> = line.uses().map(|one| one.name).collect();
        for name in line.allow_dash.iter().filter(|name| !in_line.contains(&***name)) {
            let message = format!("`{name}` is not used in `run`");
            let near = nearest(name, in_line.iter().copied());
            found.push(DefinitionError::new(Location::AllowDash, message).did_you_mean(near));
        }
        // A misspelled placeholder is one mistake, not two.
        if !matches!(stdin, Stdin::Json)
            && used.iter().all(|name| self.properties.contains_key(*name))
        {
            found.extend(self.unused(&used, "`run` or `stdin`"));
        }
        found
    }

    /// All mismatches between this input and the placeholders of these texts.
    pub fn mismatches_in_texts(&self, texts: &[&TextTemplate]) -> Vec<DefinitionError> {
        let uses = || texts.iter().flat_map(|text| text.uses());
        let mut found: Vec<_> = uses().filter_map(|one| self.mismatch(&one)).collect();
        found.extend(self.unused(&uses().map(|one| one.name).collect(), "a `text`"));
        found
    }

    /// Numbers in a place where a negative one would be refused, because it starts with a dash.
    pub fn refused_numbers(&self, line: &CommandLine) -> Vec<DefinitionError> {
        let arguments = line.groups.iter().flat_map(|group| &group.arguments);
        let refused = arguments.filter_map(|argument| {
            let Some(Piece::Value { name, .. }) = argument.text.first() else { return None };
            let is_safe = argument.after_dashes || line.allow_dash.contains(name);
            if is_safe || !self.may_be_negative(name) {
                return None;
            }
            let what = format!("a negative `{name}` is refused: it would look like an option");
            let hint = format!(
                "give it `minimum = 0`, write \"--\" before it, or set allow_dash = [\"{name}\"]"
            );
            Some(DefinitionError::new(Location::Text(argument.place, None), what).hint(hint))
        });
        refused.collect()
    }

    fn may_be_negative(&self, name: &str) -> bool {
        let property = &self.schema["properties"][name];
        let is_number = property["type"] == "integer" || property["type"] == "number";
        let least = [&property["minimum"], &property["exclusiveMinimum"]];
        let is_bounded = least.iter().any(|least| least.as_f64().is_some_and(|least| least >= 0.0));
        is_number && !is_bounded && property.get("enum").is_none()
    }

    fn unused(&self, used: &BTreeSet<&str>, place: &str) -> impl Iterator<Item = DefinitionError> {
        let unused = self.properties.keys().filter(|name| !used.contains(&***name));
        unused.map(move |name| {
            let error = DefinitionError::new(Location::Argument(name.clone(), None), "is not used");
            error.hint(format!("use `{{{name}}}` in {place}"))
        })
    }

    fn mismatch(&self, one: &Use<'_>) -> Option<DefinitionError> {
        let Use { name, kind, place } = *one;
        let error =
            |message: String| Some(DefinitionError::new(Location::Text(place, None), message));
        let Some(property) = self.properties.get(name) else {
            let near = nearest(name, self.properties.keys().map(|name| &**name));
            let unknown = error(format!("unknown argument `{name}`")).filter(|_| !self.open);
            let hint = format!("add it: input = {{ {name} = \"string\" }}");
            return unknown.map(|error| error.hint(hint).did_you_mean(near));
        };
        let is = |kind: &str| property.types.iter().any(|known| known == kind);
        let typed = !property.types.is_empty();
        let optional = !property.required && !self.defaults.contains_key(name);
        match kind {
            UseKind::Required if optional => {
                let hint = format!("write `{{{name}?}}`, give it a default, or require it");
                error(format!("`{name}` is optional")).map(|error| error.hint(hint))
            }
            // A required argument can still be null, which counts as absent.
            UseKind::Optional if property.required && typed && !is("null") => {
                let hint = format!("write `{{{name}}}`, or make it optional");
                error(format!("`{name}` is required")).map(|error| error.hint(hint))
            }
            UseKind::Switch if typed && !is("boolean") => {
                error(format!("`{{{name}?…}}` needs an argument of type boolean"))
            }
            _ => None,
        }
    }

    fn two_lists(&self, line: &CommandLine) -> Vec<DefinitionError> {
        let is_list = |name: &str| {
            self.properties.get(name).is_some_and(|property| property.types == ["array"])
        };
        let mut found = Vec::new();
        for group in &line.groups {
            let mut lists = group.uses().filter(|one| is_list(one.name));
            let Some(first) = lists.next() else { continue };
            if let Some(second) = lists.find(|one| one.name != first.name) {
                let message = format!(
                    "`{}` and `{}` are both lists (expected one list per argument or group)",
                    first.name, second.name
                );
                found.push(DefinitionError::new(Location::Text(second.place, None), message));
            }
        }
        found
    }
}
