//! Links to articles, as pages and models write them.
//!
//! A link is a path (`./x.md`, `../x/`, `/docs/x.html`), a URL of the site, an `article:///` URI, a
//! wiki link (`[[Note#Heading|text]]`), a link of another markup (`xref:x.adoc[text]`), or a name. The
//! path relative to the page with the link is tried first; then the path from the top of the folder,
//! without the language or section of the site (`/en/docs/x`); then addresses and aliases in the front
//! matter; then names and titles.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;

use crate::format::Format;
use crate::roles;

/// The index files of folders.
pub(crate) const INDEXES: [&str; 4] = ["index", "_index", "readme", "README"];

/// Endings of the pages that a site generator makes of articles.
const PAGE_ENDINGS: [&str; 3] = [".html", ".htm", ".php"];

/// The longest link in bytes, far above that of any path. A longer one leads nowhere: each of its parts
/// is looked up.
const LONGEST_LINK: usize = 4096;

/// A parsed link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    /// The path without the ending of a page, or a name.
    pub(crate) path: String,
    /// The part after `#`.
    pub(crate) section: Option<String>,
    /// The folder in an `article://folder/` URI, empty in `article:///`.
    pub(crate) folder: Option<String>,
}

impl Link {
    /// Parses a link. `site` is the address of the site that the articles are published at. `None` if it
    /// leads elsewhere.
    pub(crate) fn parse(written: &str, site: Option<&str>) -> Option<Self> {
        let mut text = written.trim();
        if text.len() > LONGEST_LINK {
            return None;
        }
        let other = roles::address_in(text);
        text = other.as_deref().unwrap_or(text);
        text = text.strip_prefix('!').unwrap_or(text);
        if let Some(inside) = text.strip_prefix("[[").and_then(|text| text.strip_suffix("]]")) {
            text = inside.split(['|', '\n']).next().unwrap_or(inside).trim_end_matches('\\');
            // A name, in which `?` and `%` are letters.
            let (path, section) = text.split_once('#').unwrap_or((text, ""));
            let section = Some(section.trim().to_owned()).filter(|section| !section.is_empty());
            let path = without_ending(path.trim()).to_owned();
            return Some(Self { path, section, folder: None });
        } else if let Some((_, address)) =
            text.strip_suffix(')').and_then(|text| text.split_once("]("))
        {
            // `[text](address "title")`
            text = address.split(" \"").next().unwrap_or(address);
        }
        text = text.trim().trim_start_matches('<').trim_end_matches('>');
        if text.starts_with("{{") {
            // A macro of the site generator: `{{< ref "x.md" >}}`.
            text = text.split('"').nth(1)?;
        }
        let mut folder = None;
        let at_site = site.map(|site| site.trim_end_matches('/')).and_then(|site| {
            text.strip_prefix(site)
                .filter(|rest| rest.is_empty() || rest.starts_with(['/', '#', '?']))
        });
        if let Some(rest) = at_site {
            text = if rest.is_empty() { "/" } else { rest };
        } else if let Some((scheme, rest)) = text.split_once(':') {
            match scheme {
                "article" => {
                    let (name, path) = rest.strip_prefix("//")?.split_once('/')?;
                    (folder, text) = (Some(name.to_owned()), path);
                }
                _ if rest.starts_with("//")
                    || matches!(scheme, "mailto" | "tel" | "data" | "javascript") =>
                {
                    return None;
                }
                _ => {}
            }
        } else if text.starts_with("//") {
            return None;
        }
        let (path, section) = match text.split_once('#') {
            Some((path, section)) => (path, Some(section)),
            None => (text, None),
        };
        let path = path.split('?').next().unwrap_or(path);
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let section = section.map(decoded).filter(|section| !section.is_empty());
        Some(Self { path: without_ending(&decoded(path)).to_owned(), section, folder })
    }
}

/// The path without the ending of an article or of a page made of one.
fn without_ending(path: &str) -> &str {
    let page = PAGE_ENDINGS.iter().find_map(|ending| path.strip_suffix(ending));
    match page {
        Some(page) => page,
        None if Format::of(path).is_some() => path.rsplit_once('.').map_or(path, |(path, _)| path),
        None => path,
    }
}

/// Joins a relative path to a folder. `None` if it leads out of the top.
pub(crate) fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The path without the name of an index file, for comparison.
pub(crate) fn key(path: &str) -> String {
    let path = path.trim_matches('/');
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let path = if INDEXES.contains(&name) { folder } else { path };
    path.to_lowercase()
}

/// The addresses of articles, by [`key`]. The articles are numbers.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// Their paths.
    paths: HashMap<String, Vec<u32>>,
    /// Their addresses on the site, file names and titles.
    names: HashMap<String, Vec<u32>>,
}

impl Addresses {
    pub(crate) fn add(&mut self, article: u32, id: &str, names: &[Box<str>]) {
        let path = key(id);
        let name = path.rsplit('/').next().unwrap_or(&path);
        let stem = without_date(name).to_owned();
        let names = names.iter().map(|name| key(without_ending(name)));
        for name in names.chain([name.to_owned(), stem]).filter(|name| !name.is_empty()) {
            let known = self.names.entry(name).or_default();
            if known.last() != Some(&article) {
                known.push(article);
            }
        }
        self.paths.entry(path).or_default().push(article);
    }

    /// The articles that a link on the page `from` leads to.
    pub(crate) fn linked(&self, link: &Link, from: &str) -> &[u32] {
        if link.path.starts_with('/') {
            return self.below(&key(&link.path), 1);
        }
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        // Site generators make a folder of a page, so `../x` may also be meant from there.
        let joined = [folder, from].into_iter().filter_map(|at| join(at, &link.path));
        let found = joined.filter_map(|path| self.paths.get(&key(&path))).next();
        match found {
            Some(found) => found,
            None if link.path.starts_with('.') => &[],
            None => self.below(&key(&link.path), 2),
        }
    }

    /// The articles that a link leads to, wherever it is written.
    pub(crate) fn resolve(&self, link: &Link) -> &[u32] {
        let path = link.path.split('/').filter(|part| !matches!(*part, "." | ".." | ""));
        let least = if link.path.starts_with(['/', '.']) { 1 } else { 2 };
        self.below(&key(&path.collect::<Vec<_>>().join("/")), least)
    }

    /// Looks the whole path up, then the path without its first parts, down to `least` parts.
    fn below(&self, path: &str, least: usize) -> &[u32] {
        let parts = path.split('/').count();
        let mut rest = path;
        for _ in (1..=parts).rev().filter(|&left| left >= least || left == parts) {
            if let Some(found) = self.paths.get(rest).or_else(|| self.names.get(rest)) {
                return found;
            }
            rest = rest.split_once('/').map_or(rest, |(_, rest)| rest);
        }
        &[]
    }
}

/// The name that a link uses for its target: the last part of its path. A URL may be one of the site.
pub(crate) fn name_in(written: &str) -> Option<String> {
    let link = Link::parse(written, site_of(written))?;
    let path = key(&link.path);
    let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
    Some(name).filter(|name| !name.is_empty() && name != "..")
}

/// The site that a URL is one of.
fn site_of(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.find(['/', '#', '?']).unwrap_or(rest.len());
    matches!(scheme, "http" | "https").then(|| &url[..scheme.len() + 3 + host])
}

/// The names that links may use for an article.
pub(crate) fn names_of(id: &str, names: &[Box<str>]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for path in names.iter().map(|name| &**name).chain([id]) {
        let path = key(without_ending(path));
        let name = path.rsplit('/').next().unwrap_or(&path);
        for name in [name, without_date(name)] {
            if !name.is_empty() && !all.iter().any(|known| known == name) {
                all.push(name.to_owned());
            }
        }
    }
    all
}

/// A file name without the date in front of it: `2024-05-01-news`.
fn without_date(name: &str) -> &str {
    let bytes = name.as_bytes();
    let dated = bytes.len() > 11
        && bytes[..11].iter().enumerate().all(|(at, byte)| match at {
            4 | 7 | 10 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if dated { &name[11..] } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match Link::parse(text, Some("https://docs.example.org/")) {
            None => "elsewhere".to_owned(),
            Some(Link { path, section: None, .. }) => path,
            Some(Link { path, section: Some(section), .. }) => format!("{path} # {section}"),
        }
    }

    #[test]
    fn a_link_is_parsed_in_every_form() {
        for (written, wanted) in [
            ("concepts/x", "concepts/x"),
            ("article:///concepts/a%20b", "concepts/a b"),
            ("article://wiki/concepts/x#top", "concepts/x # top"),
            ("./x.md", "./x"),
            ("../x.mdx#why-it", "../x # why-it"),
            ("/docs/x/", "/docs/x/"),
            ("x.html?all=true#y", "x # y"),
            ("https://docs.example.org/guide/x/#y", "/guide/x/ # y"),
            ("https://docs.example.org", "/"),
            ("https://docs.example.organic/x", "elsewhere"),
            ("https://elsewhere.org/x", "elsewhere"),
            ("//cdn.example.org/x", "elsewhere"),
            ("mailto:a@b.c", "elsewhere"),
            ("[[Note]]", "Note"),
            ("[[Note#Some heading|shown]]", "Note # Some heading"),
            ("![[Folder/Note]]", "Folder/Note"),
            ("[[What is 100%?#Why?]]", "What is 100%? # Why?"),
            ("[text](../x.md \"Title\")", "../x"),
            ("<a b.md>", "a b"),
            ("{{< ref \"docs/x.md\" >}}", "docs/x"),
            ("#only-a-section", " # only-a-section"),
            ("xref:second.adoc#conf[x]", "second # conf"),
            (":doc:`the other <../other>`", "../other"),
            ("`t <other.html>`_", "other"),
        ] {
            assert_eq!(parsed(written), wanted, "{written}");
        }
    }

    fn addresses() -> (Addresses, [&'static str; 7]) {
        let ids = [
            "web/http/cors/index",
            "docs/concepts/_index",
            "docs/concepts/pods",
            "docs/tasks/pods",
            "blog/2024-05-01-hello-world",
            "Notes/My Note",
            "README",
        ];
        let mut all = Addresses::default();
        for (number, id) in (0..).zip(ids) {
            let names: &[Box<str>] = match id {
                "Notes/My Note" => &["A long title".into(), "/old/address/".into()],
                "web/http/cors/index" => &["CORS".into(), "Web/HTTP/CORS".into()],
                _ => &[],
            };
            all.add(number, id, names);
        }
        (all, ids)
    }

    #[test]
    fn the_name_in_a_link_is_the_last_part_of_its_path() {
        for (written, name) in [
            ("../tasks/pods.md#why", Some("pods")),
            ("https://docs.example.org/tasks/Pods/?x=y#z", Some("pods")),
            ("https://docs.example.org", None),
            ("mailto:a@b.c", None),
            ("..", None),
        ] {
            assert_eq!(name_in(written).as_deref(), name, "{written}");
        }
    }

    #[test]
    fn a_link_is_bounded() {
        let longest = "a/".repeat(LONGEST_LINK / 2);
        assert!(Link::parse(&longest, None).is_some());
        assert!(Link::parse(&format!("{longest}a"), None).is_none());
    }

    #[test]
    fn a_link_is_found_wherever_it_is_written() {
        let (all, ids) = addresses();
        let found = |written: &str| -> Vec<&str> {
            let link = Link::parse(written, None).unwrap();
            all.resolve(&link).iter().map(|&at| ids[at as usize]).collect()
        };
        assert_eq!(found("/en-US/docs/Web/HTTP/CORS"), ["web/http/cors/index"]);
        assert_eq!(found("docs/concepts/"), ["docs/concepts/_index"]);
        assert_eq!(found("[[my note]]"), ["Notes/My Note"]);
        assert_eq!(found("A Long Title"), ["Notes/My Note"]);
        assert_eq!(found("/old/address"), ["Notes/My Note"]);
        assert_eq!(found("/blog/2024/05/01/hello-world/"), ["blog/2024-05-01-hello-world"]);
        assert_eq!(found("pods"), ["docs/concepts/pods", "docs/tasks/pods"]);
        assert_eq!(found("nothing/here"), Vec::<&str>::new());
    }

    #[test]
    fn a_relative_link_starts_at_its_page() {
        let (all, ids) = addresses();
        let found = |written: &str, from: &str| -> Vec<&str> {
            let link = Link::parse(written, None).unwrap();
            all.linked(&link, from).iter().map(|&at| ids[at as usize]).collect()
        };
        assert_eq!(found("pods.md", "docs/concepts/_index"), ["docs/concepts/pods"]);
        assert_eq!(found("../tasks/pods", "docs/concepts/pods"), ["docs/tasks/pods"]);
        assert_eq!(found("../pods/", "docs/concepts/other"), ["docs/concepts/pods"]);
        assert_eq!(found("/docs/tasks/pods/", "README"), ["docs/tasks/pods"]);
        assert_eq!(found("./nothing.md", "docs/concepts/pods"), Vec::<&str>::new());
        assert_eq!(found("../../../x.md", "docs/concepts/pods"), Vec::<&str>::new());
    }
}
