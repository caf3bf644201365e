//! What the tools take and give, as JSON Schemas.
//!
//! Written by hand, and plain: an object at the root, no `$ref`, no combinations, because clients
//! hand them to models whose makers understand different halves of the language.

use serde_json::{Value, json};

/// Categories that are named in a schema. A folder with more says that there are categories, and
/// its errors say which.
pub(super) const MOST_NAMED: usize = 100;

/// `list_articles`. `categories`: those that there are; `None` if they are not known, or too many.
pub(super) fn list_input(categories: Option<&[String]>) -> Value {
    let mut category = json!({"type": "string", "description": "Filter by content category"});
    if let Some(names) = categories {
        category["enum"] = json!(names);
    }
    let mut properties = json!({
        "category": category,
        "limit": {
            "type": "number",
            "description": "Maximum number of articles to return (50 if left out, 1000 at most)",
        },
    });
    // A folder without categories does not ask for one.
    if let (Some([]), Some(properties)) = (categories, properties.as_object_mut()) {
        properties.remove("category");
    }
    json!({"type": "object", "properties": properties})
}

/// `get_article`.
pub(super) fn get_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "slug": {
                "type": "string",
                "description": "Article slug (filename without extension), or category/slug",
            },
            "section": {
                "type": "string",
                "description": "Return only this section: an id from the article's list of sections",
            },
        },
        "required": ["slug"],
    })
}

/// `search_articles`.
pub(super) fn search_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "Search query: words, a question, or a \"phrase in quotes\"",
            },
            "include_content": {
                "type": "boolean",
                "description": "Include full markdown content in results",
                "default": false,
            },
        },
        "required": ["query"],
    })
}

/// What `list_articles` gives.
pub(super) fn list_output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "articles": {
                "type": "array",
                "description": "Newest first",
                "items": object(summary(), SUMMARY),
            },
            "total": {"type": "integer", "description": "How many articles there are"},
            "indexing": indexing(),
        },
        "required": ["articles", "total"],
    })
}

/// What `get_article` gives.
pub(super) fn get_output() -> Value {
    let properties = with(
        summary(),
        json!({
            "content": {"type": "string", "description": "Markdown, without the frontmatter"},
            "section": section("The section that content is, if one was asked for"),
            "sections": {
                "type": "array",
                "description": "The sections that can be asked for",
                "items": section("A section"),
            },
            "frontmatter": {"type": "object", "description": "What stands above the text"},
        }),
    );
    object(properties, &[SUMMARY, &["content", "sections", "frontmatter"]].concat())
}

/// What `search_articles` gives.
pub(super) fn search_output() -> Value {
    let snippet = json!({
        "type": "object",
        "description": "The place in the text that matches best",
        "properties": {
            "text": {"type": "string"},
            "words": {
                "type": "array",
                "description": "The words that match, as they are written there",
                "items": {"type": "string"},
            },
            "section": section("The section that it stands in"),
        },
        "required": ["text", "words"],
    });
    let hit = with(
        summary(),
        json!({
            "score": {"type": "number", "description": "Comparable within one search only"},
            "snippet": snippet,
            "content": {"type": "string", "description": "Markdown, if it was asked for"},
        }),
    );
    let correction = json!({
        "type": "object",
        "properties": {
            "word": {"type": "string"},
            "takenFor": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["word", "takenFor"],
    });
    json!({
        "type": "object",
        "properties": {
            "hits": {
                "type": "array",
                "description": "Best first",
                "items": object(hit, &[SUMMARY, &["score"]].concat()),
            },
            "total": {"type": "integer", "description": "How many articles match"},
            "corrections": {
                "type": "array",
                "description": "Words that stand in no article and were taken for others",
                "items": correction,
            },
            "indexing": indexing(),
        },
        "required": ["hits", "total"],
    })
}

/// What every article has.
const SUMMARY: &[&str] = &["id", "slug", "title", "tags", "lastModified", "size", "uri"];

fn summary() -> Value {
    json!({
        "id": {"type": "string", "description": "category/slug: what get_article takes"},
        "category": {"type": "string"},
        "slug": {"type": "string"},
        "title": {"type": "string"},
        "description": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "status": {"type": "string"},
        "publishedDate": {"type": "string", "description": "As the author says"},
        "lastUpdated": {"type": "string", "description": "As the author says"},
        "lastModified": {"type": "string", "description": "When the file was written (RFC 3339)"},
        "size": {"type": "integer", "description": "Bytes of the whole content"},
        "uri": {"type": "string", "description": "The article as a resource"},
    })
}

fn section(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": {
            "id": {"type": "string"},
            "title": {"type": "string"},
            "level": {"type": "integer", "description": "Of the heading; 0 stands above the first"},
            "size": {"type": "integer", "description": "In bytes, subsections included"},
        },
        "required": ["id", "title", "level", "size"],
    })
}

fn indexing() -> Value {
    json!({
        "type": "object",
        "description": "The folder is still being read: more may come",
        "properties": {
            "done": {"type": "integer", "description": "Files read"},
            "total": {"type": "integer", "description": "Files found"},
        },
        "required": ["done", "total"],
    })
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn with(mut properties: Value, more: Value) -> Value {
    if let (Value::Object(all), Value::Object(more)) = (&mut properties, more) {
        all.extend(more);
    }
    properties
}

#[cfg(test)]
mod tests {
    use sabir_registry::Checker;
    use sabir_wire::Raw;

    use super::*;
    use sabir_articles::{Indexing, List, Search};

    #[test]
    fn an_answer_that_is_not_complete_fits_too() {
        let indexing = Some(Indexing { done: 1, total: 2 });
        let list = List { articles: Vec::new(), total: 0, indexing };
        let search = Search { hits: Vec::new(), total: 0, corrections: Vec::new(), indexing };
        for (schema, value) in [(list_output(), json!(list)), (search_output(), json!(search))] {
            let checker = Checker::for_results(&Raw::of(&schema).unwrap()).unwrap();
            assert_eq!(checker.check(&Raw::of(&value).unwrap()), Ok(()));
            assert!(value["indexing"]["total"] == 2, "{value}");
        }
    }

    #[test]
    fn categories_are_named_as_far_as_they_are_known() {
        let category =
            |names: Option<&[String]>| list_input(names)["properties"]["category"].take();
        assert_eq!(category(Some(&["a".into()]))["enum"], json!(["a"]));
        assert_eq!(category(None).get("enum"), None);
        assert_eq!(category(None)["type"], "string");
        assert_eq!(category(Some(&[])), Value::Null);
    }
}
