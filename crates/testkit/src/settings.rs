//! The settings of a script: lines of TOML as in a `sabir.toml`, as far as scripts need them. The
//! program reads the same lines by itself.

use sabir_engine::Settings;
use sabir_session::{MissingMethod, NullId, RequireReady, ToolFailure, UnknownTool};
use sabir_wire::Revision;
use serde_json::Value;

/// A setting that is unknown or invalid in a script.
#[derive(Debug)]
pub struct BadSetting(pub String);

/// Takes over one line, such as `dialect.null_id = "answer"`.
pub fn apply_setting(settings: &mut Settings, line: &str) -> Result<(), BadSetting> {
    let bad = || BadSetting(line.to_owned());
    let (key, value) = line.split_once('=').ok_or_else(bad)?;
    // Strings, numbers and booleans are the same in TOML as in JSON.
    let value: Value = serde_json::from_str(value.trim()).map_err(|_| bad())?;
    let text = value.as_str();
    let dialect = &mut settings.dialect;
    match key.trim() {
        "server.name" => settings.server.name = text.ok_or_else(bad)?.to_owned(),
        "server.version" => settings.server.version = text.ok_or_else(bad)?.to_owned(),
        "server.instructions" => settings.instructions = text.map(str::to_owned),
        "dialect.revision" => {
            let revision = text.and_then(Revision::parse).ok_or_else(bad)?;
            dialect.revision = Some(revision);
        }
        "dialect.unknown_tool" => {
            dialect.unknown_tool = match (value.as_i64(), text) {
                (Some(-32602), _) => UnknownTool::InvalidParams,
                (Some(-32601), _) => UnknownTool::MethodNotFound,
                (_, Some("result")) => UnknownTool::Result,
                _ => return Err(bad()),
            }
        }
        "dialect.tool_failure" => {
            dialect.tool_failure = match (value.as_i64(), text) {
                (Some(-32603), _) => ToolFailure::InternalError,
                (_, Some("result")) => ToolFailure::Result,
                _ => return Err(bad()),
            }
        }
        "dialect.require_ready" => {
            dialect.require_ready = Some(match text {
                Some("none") => RequireReady::None,
                Some("tools") => RequireReady::Tools,
                Some("all") => RequireReady::All,
                _ => return Err(bad()),
            });
        }
        "dialect.missing_method" => {
            dialect.missing_method = match value.as_i64() {
                Some(-32600) => MissingMethod::InvalidRequest,
                Some(-32700) => MissingMethod::ParseError,
                _ => return Err(bad()),
            }
        }
        "dialect.null_id" => {
            dialect.null_id = match text {
                Some("refuse") => NullId::Refuse,
                Some("answer") => NullId::Answer,
                _ => return Err(bad()),
            }
        }
        "dialect.flat_server_info" => {
            dialect.flat_server_info = value.as_bool().ok_or_else(bad)?;
        }
        _ => return Err(bad()),
    }
    Ok(())
}
