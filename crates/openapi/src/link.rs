//! The `Link` header (RFC 8288).

use percent_encoding::percent_decode_str;

use crate::uri::join;

/// Words for the model: how to get the next page after the request `url`.
pub(crate) fn next_page(link: &str, url: &str) -> Option<String> {
    let target = target_of(link, "next")?;
    let next = join(url, target).unwrap_or_else(|| target.to_owned());
    let same_path = next.split('?').next() == url.split('?').next();
    let (before, after) = (pairs(url), pairs(&next));
    let changed: Vec<String> = after
        .iter()
        .filter(|pair| !before.contains(pair))
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let how = if same_path && !changed.is_empty() {
        format!("call again with {}", changed.join(", "))
    } else {
        format!("see {next}")
    };
    Some(format!("There are more results. For the next page {how}"))
}

/// The target of the first link with this relation.
fn target_of<'l>(header: &'l str, relation: &str) -> Option<&'l str> {
    let mut rest = header;
    while let Some((_, after)) = rest.split_once('<') {
        let (target, after) = after.split_once('>')?;
        let end = after.find(",<").or_else(|| after.find(", <")).unwrap_or(after.len());
        let is_it = after[..end].split(';').any(|parameter| {
            let (key, value) = parameter.split_once('=').unwrap_or_default();
            let mut relations = value.trim().trim_matches(['"', ',']).split_whitespace();
            key.trim().eq_ignore_ascii_case("rel")
                && relations.any(|one| one.eq_ignore_ascii_case(relation))
        });
        if is_it {
            return Some(target);
        }
        rest = &after[end..];
    }
    None
}

fn pairs(url: &str) -> Vec<(String, String)> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let decode =
        |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(k, v)| (decode(k), decode(v)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_by_their_relation() {
        let header = "</a,b>; rel=\"prev last\", </c?cursor=x%20y>; title=\"n\"; REL=next";
        assert_eq!(target_of(header, "last"), Some("/a,b"));
        assert_eq!(target_of(header, "next"), Some("/c?cursor=x%20y"));
        assert_eq!(target_of(header, "first"), None);
        assert_eq!(
            next_page(header, "https://x.test/c").unwrap(),
            "There are more results. For the next page call again with cursor = x y"
        );
        assert_eq!(
            next_page(header, "https://x.test/d").unwrap(),
            "There are more results. For the next page see https://x.test/c?cursor=x%20y"
        );
        assert_eq!(next_page("rubbish <", "https://x.test"), None);
    }
}
