//! Links as AsciiDoc and reStructuredText write them.

use std::borrow::Cow;

use crate::restructured;

/// The start of the name under which the article of a label is known.
pub(crate) const LABEL: &str = "ref:";

/// The address in a link: that of `xref:x.adoc#y[text]`, `link:x[text]`, `<<x.adoc#y,text>>`,
/// ``:doc:`text <x>` ``, ``:ref:`label` `` or `` `text <x>`_ ``.
pub(crate) fn address_in(link: &str) -> Option<Cow<'_, str>> {
    macro_address(link).or_else(|| role_address(link)).or_else(|| {
        let inside =
            link.trim_end_matches('_').strip_suffix('`').filter(|_| link.ends_with('_'))?;
        in_brackets(inside).map(Cow::from)
    })
}

/// Whether backquotes are a part of the link.
pub(crate) fn has_backquotes(link: &str) -> bool {
    link.starts_with(':') || link.ends_with("`_") || link.ends_with("`__")
}

/// The address in a macro of AsciiDoc.
fn macro_address(link: &str) -> Option<Cow<'_, str>> {
    if let Some(inside) = link.strip_prefix("<<").and_then(|link| link.strip_suffix(">>")) {
        return Some(cross_reference(inside.split(',').next().unwrap_or(inside)));
    }
    let (name, rest) = link.split_once(':')?;
    let address = rest.split('[').next().filter(|_| rest.ends_with(']'))?;
    match name {
        "xref" => Some(cross_reference(address)),
        "link" => Some(Cow::from(address)),
        _ => None,
    }
}

/// A name without a path is that of a section of the same page.
fn cross_reference(address: &str) -> Cow<'_, str> {
    match address.contains(['#', '.', '/']) {
        // The component and the module of a site by Antora stand before the page.
        true => Cow::from(address.rsplit_once(':').map_or(address, |(_, page)| page)),
        false => Cow::from(format!("#{address}")),
    }
}

/// The address in a role of reStructuredText.
fn role_address(link: &str) -> Option<Cow<'_, str>> {
    let (role, inside) = link.strip_prefix(':')?.split_once(":`")?;
    let inside = inside.trim_end_matches('`');
    let target = in_brackets(inside).unwrap_or(inside);
    match role {
        "doc" => Some(Cow::from(target)),
        "ref" | "numref" => {
            let id = restructured::id_of(target);
            Some(Cow::from(format!("{LABEL}{id}#{id}")))
        }
        _ => None,
    }
}

/// The address of `text <address>`.
fn in_brackets(text: &str) -> Option<&str> {
    text.trim_end().strip_suffix('>')?.rsplit_once('<').map(|(_, address)| address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_every_form() {
        for (link, address) in [
            ("xref:second.adoc#conf[x]", Some("second.adoc#conf")),
            ("xref:conf[x]", Some("#conf")),
            ("xref:2.0@main:ROOT:dir/page.adoc[]", Some("dir/page.adoc")),
            ("link:x[y]", Some("x")),
            ("<<second.adoc#conf,the other>>", Some("second.adoc#conf")),
            ("<<conf>>", Some("#conf")),
            (":doc:`other`", Some("other")),
            (":doc:`the other </dir/other>`", Some("/dir/other")),
            (":ref:`The_Label`", Some("ref:the-label#the-label")),
            (":ref:`text <label>`", Some("ref:label#label")),
            ("`t <other.html>`_", Some("other.html")),
            ("`t <other.html>`__", Some("other.html")),
            (":class:`x`", None),
            ("`t`", None),
            ("x_", None),
            ("https://x.y/z[1]", None),
            ("", None),
        ] {
            assert_eq!(address_in(link).as_deref(), address, "{link}");
        }
    }
}
