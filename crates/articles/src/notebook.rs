//! Jupyter notebooks as Markdown: the text of their cells, without their outputs.

use serde::Deserialize;

#[derive(Deserialize)]
struct Notebook {
    cells: Vec<Cell>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    source: Source,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    language_info: LanguageInfo,
}

#[derive(Default, Deserialize)]
struct LanguageInfo {
    #[serde(default)]
    name: String,
}

/// A text, or its lines.
struct Source(String);

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Array(lines) => {
                lines.iter().filter_map(|line| line.as_str()).collect()
            }
            value => value.as_str().unwrap_or_default().to_owned(),
        };
        Ok(Self(text))
    }
}

/// The Markdown of a notebook. A file that is not a notebook stays as it is.
pub(crate) fn markdown(file: &str) -> String {
    let Ok(notebook) = serde_json::from_str::<Notebook>(file) else { return file.to_owned() };
    let language = &notebook.metadata.language_info.name;
    let cells = notebook.cells.iter().map(|Cell { cell_type, source: Source(text) }| {
        let text = text.trim_end();
        match cell_type.as_str() {
            "code" => format!("```{language}\n{text}\n```\n"),
            _ => format!("{text}\n"),
        }
    });
    cells.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_markdown() {
        let file = r##"{"cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "text"]},
            {"cell_type": "code", "source": "x = 1\n", "outputs": [{"text": "secret"}]}],
            "metadata": {"language_info": {"name": "python"}}}"##;
        assert_eq!(markdown(file), "# Title\ntext\n\n```python\nx = 1\n```\n");
        assert_eq!(markdown("not JSON"), "not JSON");
    }
}
