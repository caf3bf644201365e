//! Skills. Spec: the extension `io.modelcontextprotocol/skills`.

use std::sync::Arc;

use sabir_registry::{Catalog, FolderCall, Outcome as SourceOutcome, Source};
use sabir_wire::types::{Skill, SkillFiles};
use sabir_wire::{Problem, ReadFolder};

use super::attempt::{plain_context, relayed};
use super::{Reply, declared};
use crate::context::{Answering, MethodContext};

pub(crate) fn get(context: &MethodContext, uri: &str) -> Reply {
    declared(context.catalog.capabilities().skills, "skills/get")?;
    let skill = context.catalog.skill(uri);
    let skill = skill.ok_or_else(|| Problem::Params(format!("unknown skill: {uri}").into()))?;
    Ok(relayed("skills/get", skill.got(context.catalog.cache(), context.from.revision)))
}

const READ_FOLDER: &str = "resources/directory/read";

/// A page of a folder. The contents of a generated skill's folder may be known to its source only.
pub(crate) fn read_folder(context: MethodContext, read: ReadFolder) -> Answering {
    let catalog = &context.catalog;
    let asks_source = catalog.folder(&read.uri).is_none() && is_generated(catalog, &read.uri);
    match catalog.resource(&read.uri).filter(|_| asks_source) {
        Some(found) => read_from_source(context, read, found.source()),
        None => read_known_folder(&context, &read).into(),
    }
}

/// Whether a URI is that of the folder of a generated skill, or of something in it.
fn is_generated(catalog: &Catalog, uri: &str) -> bool {
    let ends = uri.match_indices('/').map(|(at, _)| at).chain([uri.len()]);
    let mains = ends.map(|end| format!("{}/SKILL.md", &uri[..end]));
    let mut skills = mains.filter_map(|main| catalog.skill(&main));
    skills.any(|skill| skill.files == SkillFiles::Dynamic)
}

fn read_from_source(
    context: MethodContext,
    read: ReadFolder,
    source: &Arc<dyn Source>,
) -> Answering {
    let revision = context.from.revision;
    let ReadFolder { uri, cursor, .. } = read;
    let answer = source.read_folder(FolderCall { uri, cursor, context: plain_context(context) });
    Answering::Running(Box::pin(async move {
        let page = match answer.await {
            Ok(SourceOutcome::Done(children)) => Ok(Skill::folder(&children, None, revision)),
            Ok(SourceOutcome::Relayed(page)) => Ok(page),
            // This request has no place for answers.
            Ok(SourceOutcome::NeedInput(_)) => {
                let reason =
                    "the folder cannot be read before a question is answered: read a file of it";
                Err(Problem::Internal(reason.into()))
            }
            Err(problem) => Err(problem),
        };
        page.map(|page| relayed(READ_FOLDER, page)).into()
    }))
}

/// A page of a folder whose contents are known. The cursor is the number of entries before it.
fn read_known_folder(context: &MethodContext, read: &ReadFolder) -> Reply {
    declared(context.catalog.capabilities().skills, READ_FOLDER)?;
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
    Ok(relayed(READ_FOLDER, page))
}
