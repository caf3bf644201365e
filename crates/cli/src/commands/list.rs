//! `sabir list`: what any MCP server offers.

use std::sync::Arc;

use comfy_table::{ContentArrangement, Table, presets};
use sabir_client::{CallError, Client, NoAnswers};
use sabir_wire::types::{Prompt, Resource, ResourceTemplate, Tool};
use sabir_wire::{Code, Raw, Revision, WriteJson};

use super::target::{Connected, Target};
use crate::args::List;
use crate::escape::escaped;
use crate::report::{Failure, print_text};

pub(crate) fn run(args: &List) -> Result<(), Failure> {
    let target = match (&args.target, &*args.command) {
        (Some(target), []) => Target::Written(target),
        (None, []) => Target::Written("."),
        (None, command) => Target::Command(command),
        (Some(_), _) => {
            return Err(Failure::new("two targets (expected one of TARGET, -- COMMAND)"));
        }
    };
    super::block_on(async {
        let connected = Connected::new(&target, &args.header, None, Arc::new(NoAnswers)).await?;
        let listed = Listed::of(&connected.client).await;
        let title = connected.client.server().map(|info| server_line(&info));
        connected.close().await;
        let listed = listed.map_err(|error| Failure::new(error.to_string()))?;
        let text = match (args.names, args.json) {
            (true, _) => listed.names(),
            (false, true) => listed.json(),
            (false, false) => listed.table(title.as_deref()),
        };
        print_text(&format!("{}\n", text.trim_end()));
        Ok(())
    })
}

/// Everything that a server offers.
struct Listed {
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
}

impl Listed {
    async fn of(client: &Client) -> Result<Self, CallError> {
        Ok(Self {
            tools: or_none(client.list_tools().await)?,
            prompts: or_none(client.list_prompts().await)?,
            resources: or_none(client.list_resources().await)?,
            templates: or_none(client.list_templates().await)?,
        })
    }

    fn json(&self) -> String {
        fn list<T: WriteJson>(name: &str, items: &[T]) -> String {
            let items: Vec<_> = items.iter().map(|item| item.to_raw(Revision::NEWEST)).collect();
            let items: Vec<_> = items.iter().map(Raw::text).collect();
            format!("\"{name}\":[{}]", items.join(","))
        }
        // The items are JSON as the server wrote it, with numbers that no program could hold.
        let all = [
            list("tools", &self.tools),
            list("prompts", &self.prompts),
            list("resources", &self.resources),
            list("resourceTemplates", &self.templates),
        ];
        format!("{{{}}}", all.join(","))
    }

    /// The names of the tools, for completions of a shell.
    fn names(&self) -> String {
        let names: Vec<_> = self.tools.iter().map(|tool| clean(&tool.name)).collect();
        names.join("\n")
    }

    fn table(&self, server: Option<&str>) -> String {
        let mut text = server.map(|server| format!("{server}\n")).unwrap_or_default();
        let mut section = |title: &str, rows: Vec<[String; 3]>| {
            if !rows.is_empty() {
                text.push_str(&format!("\n{title}\n{}\n", format_rows(rows)));
            }
        };
        let tools = self.tools.iter().map(|tool| {
            [clean(&tool.name), arguments(&tool.input_schema), brief(&tool.description)]
        });
        section("Tools", tools.collect());
        let prompts = self.prompts.iter().map(|prompt| {
            let arguments = prompt.arguments.iter();
            let arguments = arguments.map(|argument| optional(&argument.name, !argument.required));
            let arguments: Vec<_> = arguments.collect();
            [clean(&prompt.name), arguments.join(" "), brief(&prompt.description)]
        });
        section("Prompts", prompts.collect());
        let kind = |mime: &Option<String>| clean(mime.as_deref().unwrap_or_default());
        let resources = self.resources.iter().map(|resource| {
            [clean(&resource.uri), kind(&resource.mime_type), brief(&resource.description)]
        });
        let templates = self
            .templates
            .iter()
            .map(|one| [clean(&one.uri_template), kind(&one.mime_type), brief(&one.description)]);
        section("Resources", resources.chain(templates).collect());
        if text.trim().lines().count() <= 1 {
            text.push_str("\nnothing is offered\n");
        }
        text
    }
}

/// A server without the capability has no items of this kind.
fn or_none<T>(listed: Result<Vec<T>, CallError>) -> Result<Vec<T>, CallError> {
    match listed {
        Err(CallError::Rpc(error)) if error.code == Code::METHOD_NOT_FOUND => Ok(Vec::new()),
        other => other,
    }
}

fn server_line(info: &sabir_client::ServerInfo) -> String {
    let meta = info.discovered.meta.as_ref();
    let server = meta.and_then(|meta| meta.member("io.modelcontextprotocol/serverInfo"));
    let text = |name: &str| {
        let member = server.as_ref().and_then(|server| server.member(name));
        member.and_then(|member| member.read::<String>().ok()).unwrap_or_default()
    };
    let line = format!("{} {} (protocol {})", text("name"), text("version"), info.revision);
    clean(line.trim_start())
}

fn format_rows(rows: Vec<[String; 3]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some((_, width)) = console::Term::stdout().size_checked() {
        table.set_width(width);
    }
    table.add_rows(rows);
    table.trim_fmt()
}

/// The names of the arguments; those that may be absent in brackets.
fn arguments(schema: &Raw) -> String {
    let required = schema.member("required").and_then(|names| names.read::<Vec<String>>().ok());
    let required = required.unwrap_or_default();
    let properties = schema.member("properties").map(|all| all.members()).unwrap_or_default();
    let names = properties.iter().map(|(name, _)| optional(name, !required.contains(name)));
    names.collect::<Vec<_>>().join(" ")
}

fn optional(name: &str, is_optional: bool) -> String {
    let name = clean(name);
    if is_optional { format!("[{name}]") } else { name }
}

/// The first line of a description.
fn brief(description: &Option<String>) -> String {
    let line = description.as_deref().unwrap_or_default().trim().lines().next();
    clean(line.unwrap_or_default())
}

/// Text of a server for a table.
pub(super) fn clean(text: &str) -> String {
    escaped(text).into_owned()
}
