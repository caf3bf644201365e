//! `sabir openapi`: prints the tools that an API would be offered as, and what is left out.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sabir_openapi::{Description, Method};
use sabir_outbound::{HttpClient, Policy};
use sabir_sources::http::{Catalog, Choice, Loader, Location, Offered, tools};
use serde_json::{Value, json};
use tokio::runtime;

use crate::args::OpenApi;
use crate::config;
use crate::report::Failure;

/// How many lines of one list are printed. The rest is counted.
const MAX_LINES: usize = 200;

pub(crate) fn run(args: &OpenApi) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let mut out = String::new();
    for (loader, choice) in sources(args)? {
        let start = Instant::now();
        let description = runtime.block_on(loader.load());
        let description = description
            .map_err(|reason| Failure::new(format!("cannot read {}: {reason}", args.path)))?;
        let catalog = Catalog::new(&description, &choice);
        if args.json {
            out += &format!("{}\n", figures(&description, &catalog, &choice, start));
        } else {
            out += &table(&description, &catalog, &choice);
        }
    }
    // A closed pipe is ignored.
    let _ = std::io::stdout().write_all(out.as_bytes());
    Ok(())
}

/// What is read, and how it is offered: a description, or those of a configuration.
fn sources(args: &OpenApi) -> Result<Vec<(Loader, Choice)>, Failure> {
    let path = Path::new(&args.path);
    let methods = methods(&args.methods)?;
    let file = if path.is_dir() { path.join(config::FILE_NAME) } else { path.to_owned() };
    if file.extension().is_some_and(|end| end == "toml") {
        let apis = config::apis(&file)?.into_iter().map(|api| (api.loader, api.choice));
        let mut apis: Vec<_> = apis.collect();
        if let Some(methods) = methods {
            apis.iter_mut().for_each(|(_, choice)| choice.methods.clone_from(&methods));
        }
        return Ok(apis);
    }
    let is_url = ["http://", "https://"].iter().any(|scheme| args.path.starts_with(scheme));
    let location = match is_url {
        true => Location::Url(args.path.clone()),
        false => Location::File(PathBuf::from(path)),
    };
    // The person who types a URL may reach what this machine reaches.
    let client = is_url.then(|| HttpClient::new(Policy::trusting())).transpose();
    let client = client.map_err(|error| Failure::new(error.to_string()))?;
    let usual = Choice::default();
    let choice = Choice { methods: methods.unwrap_or(usual.methods), ..usual };
    Ok(vec![(Loader { location, client, cache: None }, choice)])
}

fn methods(written: &[String]) -> Result<Option<Vec<Method>>, Failure> {
    if written.iter().any(|method| method == "*") {
        return Ok(Some(Method::ALL.to_vec()));
    }
    let parse = |name: &String| {
        let unknown = || format!("unknown method `{name}` (expected e.g. GET, POST or *)");
        Method::parse(name).ok_or_else(|| Failure::new(unknown()))
    };
    let methods = written.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    Ok((!methods.is_empty()).then_some(methods))
}

/// The definitions and the figures as JSON.
fn figures(description: &Description, catalog: &Catalog, choice: &Choice, start: Instant) -> Value {
    let definitions: Vec<Value> = tools(catalog, description, &choice.prefix)
        .into_iter()
        .map(|tool| {
            let schema: Value = tool.input_schema.read().unwrap_or_default();
            let mut definition =
                json!({ "name": tool.name, "description": tool.description, "inputSchema": schema });
            if let Some(output) = tool.output_schema.and_then(|output| output.read::<Value>().ok()) {
                definition["outputSchema"] = output;
            }
            definition
        })
        .collect();
    let left_out: Vec<_> =
        catalog.left_out.iter().map(|one| json!([one.key, one.reason])).collect();
    let problems: Vec<_> = catalog.problems.iter().map(ToString::to_string).collect();
    json!({
        "title": description.title(),
        "operations": catalog.listed.len() + catalog.left_out.len(),
        "offered": catalog.listed.len(),
        "search": matches!(catalog.offered, Offered::Search),
        "bytes": Value::from(definitions.clone()).to_string().len(),
        "seconds": start.elapsed().as_secs_f64(),
        "left_out": left_out,
        "problems": problems,
        "tools": definitions,
    })
}

fn table(description: &Description, catalog: &Catalog, choice: &Choice) -> String {
    let mut rows = vec![["tool", "operation", "arguments", "bytes"].map(str::to_owned)];
    match &catalog.offered {
        Offered::Tools(tools) => rows.extend(tools.iter().map(|(name, operation)| {
            let arguments: Vec<_> = operation.argument_names().collect();
            let bytes = operation.size() + name.len();
            let shown = sabir_openapi::shortened(&arguments.join(", "), 60);
            [name.clone(), operation.entry.key(), shown, bytes.to_string()]
        })),
        Offered::Search => {
            for tool in tools(catalog, description, &choice.prefix) {
                let schema: Value = tool.input_schema.read().unwrap_or_default();
                let names = schema["properties"]
                    .as_object()
                    .map(|names| names.keys().map(String::as_str).collect::<Vec<_>>().join(", "));
                let about = tool.description.unwrap_or_default();
                let bytes = tool.name.len() + about.len() + tool.input_schema.text().len();
                let of = format!("{} operations", catalog.listed.len());
                rows.push([tool.name, of, names.unwrap_or_default(), bytes.to_string()]);
            }
        }
    }
    let mut out = columns(&rows);
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in &catalog.left_out {
        reasons.entry(&one.reason).or_default().push(&one.key);
    }
    for (reason, keys) in reasons {
        out += &format!("\nleft out, {reason}: {}\n", keys.len());
        out += &lines(keys.into_iter());
    }
    if !catalog.problems.is_empty() {
        out += &format!("\nproblems: {}\n", catalog.problems.len());
        let problems: Vec<_> = catalog.problems.iter().map(ToString::to_string).collect();
        out += &lines(problems.iter().map(String::as_str));
    }
    out
}

fn lines<'t>(mut texts: impl ExactSizeIterator<Item = &'t str>) -> String {
    let rest = texts.len().saturating_sub(MAX_LINES);
    let mut out: String =
        texts.by_ref().take(MAX_LINES).map(|text| format!("  {text}\n")).collect();
    if rest > 0 {
        out += &format!("  and {rest} more\n");
    }
    out
}

/// Rows in columns; the last column is aligned to the right.
fn columns(rows: &[[String; 4]]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let mut out = String::new();
    for [tool, operation, arguments, bytes] in rows {
        let [a, b, c, d] = widths;
        out += &format!("{tool:a$}  {operation:b$}  {arguments:c$}  {bytes:>d$}\n");
    }
    out
}
