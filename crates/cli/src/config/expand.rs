//! References to variables in values, as clients of MCP write them.
//!
//! `${NAME}` and `${env:NAME}` are environment variables, `${NAME:-text}` has a default; Cursor and
//! VS Code also write `${workspaceFolder}`, `${userHome}` and `${pathSeparator}`.

use super::mistake::Text;

/// Replaces all references in `value` of a file. Or says what is wrong.
pub(super) fn expand(value: &str, text: &Text<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut left = value;
    while let Some(start) = left.find("${") {
        out.push_str(&left[..start]);
        let reference = &left[start + 2..];
        let end = reference.find('}').ok_or_else(|| "`${` without `}`".to_owned())?;
        out.push_str(&resolve(&reference[..end], text)?);
        left = &reference[end + 1..];
    }
    out.push_str(left);
    Ok(out)
}

fn resolve(reference: &str, text: &Text<'_>) -> Result<String, String> {
    let folder = text.folder();
    let base = folder.file_name().unwrap_or_default();
    match reference {
        "workspaceFolder" => return Ok(folder.display().to_string()),
        "workspaceFolderBasename" => return Ok(base.to_string_lossy().into()),
        "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.into()),
        "userHome" => return variable("HOME", None, text),
        _ => {}
    }
    if reference.starts_with("input:") {
        return Err(format!("`${{{reference}}}` asks the user of VS Code, which is not there"));
    }
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(legal) {
        return Err(format!("unknown reference `${{{reference}}}`"));
    }
    variable(name, default, text)
}

fn variable(name: &str, default: Option<&str>, text: &Text<'_>) -> Result<String, String> {
    let value = text.variable(name).and_then(|value| value.into_string().ok());
    // As in a shell, the default also replaces an empty value.
    let value = value.filter(|value| default.is_none() || !value.is_empty());
    let value = value.or_else(|| default.map(str::to_owned));
    value.ok_or_else(|| format!("environment variable `{name}` is not set"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn references_are_replaced() {
        let home = std::env::var("HOME").unwrap();
        let text = Text::new(Path::new("/a/b/sabir.toml"), "");
        for (value, expected) in [
            ("plain $5 {x}", "plain $5 {x}".to_owned()),
            ("${HOME}/x${env:HOME}", format!("{home}/x{home}")),
            ("${SABIR_NO_SUCH:-a:-b}!", "a:-b!".to_owned()),
            ("${workspaceFolder}/${workspaceFolderBasename}${/}c", "/a/b/b/c".to_owned()),
            ("${userHome}", home.clone()),
        ] {
            assert_eq!(expand(value, &text).as_ref(), Ok(&expected), "{value}");
        }
        for (value, reason) in [
            ("${SABIR_NO_SUCH}", "environment variable `SABIR_NO_SUCH` is not set"),
            ("${HOME", "`${` without `}`"),
            ("${input:key}", "`${input:key}` asks the user of VS Code, which is not there"),
            ("${command:x}", "unknown reference `${command:x}`"),
        ] {
            assert_eq!(expand(value, &text).unwrap_err(), reason);
        }
    }
}
