//! HTML as Markdown, written from its tokens.
//!
//! No tree is built: the work and the memory grow with the bytes of the file, however deep its
//! elements are nested and even if they are never closed. Parts that readers do not see are left
//! out: scripts, styles, navigation. The title (of a page without a heading), the description and
//! the language become frontmatter.

use std::collections::BTreeMap;

use html5gum::{DefaultEmitter, HtmlString, Spanned, Token, Tokenizer};

/// Elements that are left out with their contents.
const LEFT_OUT: [&str; 11] = [
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas",
    "select", "button",
];

/// The classes of the marks behind headings that link to them: `¶`.
const HEADING_MARKS: [&str; 5] =
    ["headerlink", "hash-link", "doc-anchor", "anchor-link", "anchorjs-link"];

/// Left out, too, unless the page has nothing else.
const NAVIGATION: &str = "nav";

/// The limit of open emphases and links in a line. Further ones are plain text.
const MOST_OPEN: usize = 32;

/// The deepest list that is indented. Deeper ones are indented like it.
const DEEPEST_LIST: usize = 6;

/// The longest address of a link or an image. Longer ones are left out: they are data.
const LONGEST_ADDRESS: usize = 2048;

type Attributes = BTreeMap<HtmlString, Spanned<HtmlString, ()>>;

/// The Markdown of a page. Frontmatter above the page is kept, and then it is the only one.
pub(crate) fn markdown(file: &str) -> String {
    if let Some((matter, page)) = split_matter(file) {
        return format!("{matter}{}", convert(page).text);
    }
    let page = convert(file);
    let title = page.title.filter(|_| !page.has_heading);
    let fields = [("title", title), ("description", page.description), ("lang", page.language)];
    let fields: Vec<String> = fields
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.filter(|value| !value.is_empty())?)))
        // A string of JSON is one of YAML.
        .map(|(key, value)| format!("{key}: {}\n", serde_json::Value::from(value)))
        .collect();
    match fields.is_empty() {
        true => page.text,
        false => format!("---\n{}---\n\n{}", fields.concat(), page.text),
    }
}

/// The frontmatter above a page, with its fences, and the page.
fn split_matter(file: &str) -> Option<(&str, &str)> {
    let rest = file.strip_prefix("---\n")?;
    let end = file.len() - rest.len() + rest.find("\n---\n")? + "\n---\n".len();
    Some(file.split_at(end))
}

fn convert(file: &str) -> Page {
    let page = Writer::run(file, true);
    match page.text.trim().is_empty() {
        // A page without a word but its navigation, or one that never closes it.
        true => Writer::run(file, false),
        false => page,
    }
}

/// A converted page.
#[derive(Debug, Default)]
struct Page {
    text: String,
    has_heading: bool,
    title: Option<String>,
    description: Option<String>,
    language: Option<String>,
}

/// An emphasis, a code or a link that is open.
struct Open {
    mark: &'static str,
    address: Option<String>,
    /// Written before its first word, so that an element without words leaves nothing.
    is_written: bool,
}

#[derive(Default)]
struct Writer {
    page: Page,
    leaves_out_navigation: bool,
    /// The element that is left out, and how many of its name are open.
    left_out: Option<(String, usize)>,
    in_title: bool,
    /// The text of a preformatted block, and its language.
    code: Option<(String, String)>,
    /// The lists around, each with its next number, if it has numbers.
    lists: Vec<Option<u32>>,
    open: Vec<Open>,
    /// The number of tables around, the cells of the row, and whether the head was written.
    tables: usize,
    cells: usize,
    has_head: bool,
    /// The anchor of the heading that is open.
    anchor: Option<String>,
    /// The id of the section around, before its first word.
    section_id: Option<String>,
    /// Line ends that come before the next word, and whether a space does.
    gap: usize,
    space: bool,
    /// The start of the next line.
    marker: String,
}

impl Writer {
    fn run(file: &str, leaves_out_navigation: bool) -> Page {
        let mut writer = Self { leaves_out_navigation, ..Self::default() };
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        for Ok(token) in Tokenizer::new_with_emitter(file, emitter) {
            match token {
                Token::StartTag(tag) => {
                    let name = String::from_utf8_lossy(&tag.name).into_owned();
                    writer.start(&name, &tag.attributes, tag.self_closing);
                }
                Token::EndTag(tag) => writer.end(&String::from_utf8_lossy(&tag.name)),
                Token::String(text) => writer.text(&String::from_utf8_lossy(&text)),
                Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
            }
        }
        writer.end("pre");
        if !writer.page.text.is_empty() {
            writer.page.text.push('\n');
        }
        writer.page
    }

    fn start(&mut self, name: &str, attributes: &Attributes, is_closed: bool) {
        if let Some((left_out, depth)) = &mut self.left_out {
            *depth += usize::from(left_out == name && !is_closed);
            return;
        }
        let is_left_out = LEFT_OUT.contains(&name)
            || (name == NAVIGATION && self.leaves_out_navigation)
            || (name == "a" && has_class(attributes, &HEADING_MARKS));
        if is_left_out {
            self.left_out = (!is_closed).then(|| (name.to_owned(), 1));
            return;
        }
        self.note_id(name, attributes);
        match name {
            "html" => self.page.language = attribute(attributes, "lang"),
            "meta" if attribute(attributes, "name").as_deref() == Some("description") => {
                self.page.description = attribute(attributes, "content");
            }
            "title" => self.in_title = self.page.title.is_none(),
            "br" => self.line(),
            "hr" => self.block(),
            "img" => self.image(attributes),
            "a" => self.open("[", address(attributes, "href")),
            "strong" | "b" => self.open("**", None),
            "em" | "i" => self.open("*", None),
            "code" | "kbd" | "samp" if self.code.is_none() => self.open("`", None),
            "code" => self.name_language(attributes),
            "pre" => {
                self.block();
                self.code = Some((String::new(), String::new()));
                self.name_language(attributes);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(name, attributes),
            "ul" | "ol" => {
                self.list_edge();
                self.lists.push((name == "ol").then_some(1));
            }
            "li" => self.item(),
            "table" => {
                self.block();
                self.tables += 1;
                self.has_head = false;
            }
            "tr" if self.tables == 1 => (self.gap, self.cells) = (self.gap.max(1), 0),
            "td" | "th" if self.tables == 1 => {
                self.end_cell();
                self.cells += 1;
                self.break_line();
                self.page.text.push_str("| ");
                self.space = false;
            }
            _ if is_block(name) => self.block(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((left_out, depth)) = &mut self.left_out {
            *depth -= usize::from(left_out == name);
            if *depth == 0 {
                self.left_out = None;
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "a" => self.close("["),
            "strong" | "b" => self.close("**"),
            "em" | "i" => self.close("*"),
            "code" | "kbd" | "samp" => self.close("`"),
            "pre" => self.end_code(),
            "ul" | "ol" => {
                self.lists.pop();
                self.list_edge();
            }
            "table" => {
                self.tables = self.tables.saturating_sub(1);
                self.block();
            }
            "td" | "th" if self.tables == 1 => self.end_cell(),
            "tr" if self.tables == 1 && self.cells > 0 => self.end_row(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                if let Some(anchor) = self.anchor.take().filter(|_| self.marker.is_empty()) {
                    self.page.text.push_str(&format!(" {{#{anchor}}}"));
                }
                self.block();
            }
            _ if is_block(name) => self.block(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.left_out.is_some() {
            return;
        }
        if self.in_title {
            let title = text.split_whitespace().collect::<Vec<_>>().join(" ");
            self.page.title.get_or_insert_default().push_str(&title);
            return;
        }
        if let Some((code, _)) = &mut self.code {
            return code.push_str(text);
        }
        let in_code = self.open.iter().any(|open| open.mark == "`");
        for c in text.chars() {
            if c.is_ascii_whitespace() {
                self.space = true;
                continue;
            }
            self.section_id = None;
            self.before_word();
            let starts_line = self.page.text.ends_with('\n') || self.page.text.is_empty();
            let is_special = match c {
                '\\' | '`' | '*' | '[' | '<' => !in_code,
                '|' => self.tables > 0,
                '#' | '>' | '+' | '-' => starts_line && !in_code,
                _ => false,
            };
            if is_special {
                self.page.text.push('\\');
            }
            self.page.text.push(c);
        }
    }

    /// Writes everything before a word: line ends, the marker of a list, a space, opened elements.
    fn before_word(&mut self) {
        self.break_line();
        let text = &mut self.page.text;
        if self.space && !text.is_empty() && !text.ends_with(['\n', ' ']) {
            text.push(' ');
        }
        self.space = false;
        for open in self.open.iter_mut().filter(|open| !open.is_written) {
            text.push_str(open.mark);
            open.is_written = true;
        }
    }

    fn break_line(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        let marker = std::mem::take(&mut self.marker);
        let text = &mut self.page.text;
        let is_new_line = gap > 0 || text.is_empty();
        if gap > 0 && !text.is_empty() {
            text.truncate(text.trim_end_matches([' ', '\n']).len());
            text.push_str(if gap == 1 { "\n" } else { "\n\n" });
        }
        if is_new_line {
            self.space = false;
            let depth = self.lists.len().min(DEEPEST_LIST);
            let indent = if marker.is_empty() { depth } else { depth.saturating_sub(1) };
            text.push_str(&"    ".repeat(indent));
        }
        text.push_str(&marker);
    }

    /// Starts a paragraph, except in a table.
    fn block(&mut self) {
        match self.tables {
            0 => self.gap = 2,
            _ => self.space = true,
        }
    }

    fn line(&mut self) {
        match self.tables {
            0 => self.gap = self.gap.max(1),
            _ => self.space = true,
        }
    }

    /// The start or the end of a list: a paragraph, unless it is in another list.
    fn list_edge(&mut self) {
        if self.lists.is_empty() { self.block() } else { self.line() }
    }

    fn item(&mut self) {
        self.line();
        self.marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{}. ", *number - 1)
            }
            _ => "- ".to_owned(),
        };
    }

    fn heading(&mut self, name: &str, attributes: &Attributes) {
        // A table with a heading is there for the layout.
        self.tables = 0;
        self.lists.clear();
        self.block();
        let level = name[1..].parse().unwrap_or(6);
        self.marker = format!("{} ", "#".repeat(level));
        self.page.has_heading |= level == 1;
        let around = self.section_id.take();
        self.anchor = plain_id(attributes, "id").or(around);
    }

    /// Notes an id that may be that of the next heading: of its section, or of an anchor above it.
    fn note_id(&mut self, name: &str, attributes: &Attributes) {
        let id = plain_id(attributes, "id");
        match name {
            "section" => self.section_id = id,
            "div" if has_class(attributes, &["section"]) => self.section_id = id,
            "span" | "a" if self.section_id.is_none() => {
                self.section_id = id.or_else(|| plain_id(attributes, "name"));
            }
            _ => {}
        }
    }

    /// Ends a cell, which need not be closed.
    fn end_cell(&mut self) {
        if self.cells > 0 && !self.page.text.ends_with(' ') {
            self.page.text.push(' ');
        }
        self.space = false;
    }

    fn end_row(&mut self) {
        self.end_cell();
        self.page.text.push('|');
        self.gap = 1;
        if !std::mem::replace(&mut self.has_head, true) {
            self.page.text.push_str(&format!("\n|{}", " --- |".repeat(self.cells)));
        }
    }

    fn open(&mut self, mark: &'static str, address: Option<String>) {
        let is_link_without_address = mark == "[" && address.is_none();
        if self.open.len() < MOST_OPEN && !is_link_without_address {
            self.open.push(Open { mark, address, is_written: false });
        }
    }

    fn close(&mut self, mark: &str) {
        let Some(at) = self.open.iter().rposition(|open| open.mark == mark) else { return };
        let Open { mark, address, is_written } = self.open.remove(at);
        if is_written {
            match address {
                Some(address) => self.page.text.push_str(&format!("]({address})")),
                None => self.page.text.push_str(mark),
            }
        }
    }

    fn image(&mut self, attributes: &Attributes) {
        let description = attribute(attributes, "alt").filter(|text| !text.is_empty());
        if let (Some(text), Some(address)) = (description, address(attributes, "src")) {
            self.before_word();
            let text = text.replace(['[', ']', '\n'], " ");
            self.page.text.push_str(&format!("![{text}]({address})"));
        }
    }

    /// Notes the language of a preformatted block, which highlighters keep in a class.
    fn name_language(&mut self, attributes: &Attributes) {
        let Some((_, language)) = &mut self.code else { return };
        let classes = attribute(attributes, "class").unwrap_or_default();
        let named = classes.split_whitespace().find_map(|class| class.strip_prefix("language-"));
        if let Some(named) = named.filter(|named| named.chars().all(char::is_alphanumeric)) {
            *language = named.to_owned();
        }
    }

    fn end_code(&mut self) {
        let Some((code, language)) = self.code.take() else { return };
        self.open.retain(|open| open.mark != "`");
        self.tables = 0;
        self.lists.clear();
        self.gap = 2;
        self.break_line();
        let fence = if code.contains("```") { "`````" } else { "```" };
        let code = code.trim_matches('\n');
        self.page.text.push_str(&format!("{fence}{language}\n{code}\n{fence}"));
        self.gap = 2;
    }
}

/// An id that can be written in Markdown.
fn plain_id(attributes: &Attributes, name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    attribute(attributes, name).filter(|id| !id.is_empty() && id.chars().all(is_plain))
}

fn has_class(attributes: &Attributes, classes: &[&str]) -> bool {
    let all = attribute(attributes, "class").unwrap_or_default();
    all.split_whitespace().any(|class| classes.contains(&class))
}

fn is_block(name: &str) -> bool {
    #[rustfmt::skip]
    let is_block = matches!(name,
        "p" | "div" | "section" | "article" | "main" | "header" | "footer" | "aside" | "figure"
        | "figcaption" | "blockquote" | "dl" | "dt" | "dd" | "details" | "summary" | "address"
        | "form" | "fieldset" | "caption" | "body" | "nav");
    is_block
}

fn attribute(attributes: &Attributes, name: &str) -> Option<String> {
    let value = attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(value).trim().to_owned())
}

/// An address that leads somewhere, as Markdown writes it.
fn address(attributes: &Attributes, name: &str) -> Option<String> {
    let address = attribute(attributes, name)?;
    let is_code = ["javascript:", "data:"].iter().any(|scheme| address.starts_with(scheme));
    if address.is_empty() || address.len() > LONGEST_ADDRESS || is_code {
        return None;
    }
    let is_plain = !address.contains(|c: char| c.is_whitespace() || "()<>".contains(c));
    Some(match is_plain {
        true => address,
        false => format!("<{}>", address.replace(['<', '>', '\n', '\r'], "")),
    })
}

#[cfg(test)]
mod tests;
