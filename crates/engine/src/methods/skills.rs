//! Skills. Spec: the extension `io.modelcontextprotocol/skills`.

use sabir_wire::types::Skill;
use sabir_wire::{Problem, ReadFolder};

use super::attempt::relayed;
use super::{Reply, declared};
use crate::context::MethodContext;

pub(crate) fn get(context: &MethodContext, uri: &str) -> Reply {
    declared(context.catalog.capabilities().skills, "skills/get")?;
    let skill = context.catalog.skill(uri);
    let skill = skill.ok_or_else(|| Problem::Params(format!("unknown skill: {uri}").into()))?;
    Ok(relayed("skills/get", skill.got(context.catalog.cache(), context.from.revision)))
}

/// A page of a folder. The cursor is the number of entries before it.
pub(crate) fn read_folder(context: &MethodContext, read: &ReadFolder) -> Reply {
    declared(context.catalog.capabilities().skills, "resources/directory/read")?;
    let Some(children) = context.catalog.folder(&read.uri) else {
        return Err(Problem::Params(format!("not a folder of a skill: {}", read.uri).into()));
    };
    let begin = match read.cursor.as_deref().map(str::parse::<usize>) {
        None => 0,
        Some(Ok(begin)) if begin < children.len() => begin,
        Some(_) => return Err(Problem::Params("invalid or expired cursor".into())),
    };
    let limit = context.engine.settings.engine_limits.page_size.max(1);
    let end = children.len().min(begin + limit);
    let next = (end < children.len()).then(|| end.to_string());
    let page = Skill::folder(&children[begin..end], next.as_deref(), context.from.revision);
    Ok(relayed("resources/directory/read", page))
}
