use super::*;

#[test]
fn a_page_becomes_markdown() {
    let page = "<!doctype html><html lang=de><head><title>A  page</title>\
        <meta name=description content='What it \"says\"'><style>p { x }</style></head><body>\
        <nav><a href=/>Home</a></nav>\n<main><h2 id=one>One &amp; two</h2>\n\
        <p>Some <b>bold</b> text\nwith a <a href=\"../x.html#y\">link</a>,\n<code>a*b</code> and 1 &lt; 2.\
        <p>Next<br>line <img src=i.png alt=Image><ul><li>one<li>two<ol><li>deep</ol></ul>\
        <pre><code class=\"language-rust\">fn main() {\n    x::&lt;y>()\n}\n</code></pre>\
        <table><tr><th>a<th>b</tr><tr><td>1|2</td><td></td></tr></table>\
        <script>if (a < b) { '<p>no</p>' }</script><p>End.";
    assert_eq!(
        markdown(page),
        "---\ntitle: \"A page\"\ndescription: \"What it \\\"says\\\"\"\nlang: \"de\"\n---\n\n\
         ## One & two {#one}\n\nSome **bold** text with a [link](../x.html#y), `a*b` and 1 \\< 2.\n\n\
         Next\nline ![Image](i.png)\n\n- one\n- two\n    1. deep\n\n\
         ```rust\nfn main() {\n    x::<y>()\n}\n```\n\n\
         | a | b |\n| --- | --- |\n| 1\\|2 | |\n\nEnd.\n"
    );
}

#[test]
fn a_heading_is_the_title_and_frontmatter_is_kept() {
    assert_eq!(markdown("<title>Site</title><h1>Page</h1>"), "# Page\n");
    assert_eq!(markdown("---\ndraft: true\n---\n<p>x"), "---\ndraft: true\n---\nx\n");
}

#[test]
fn a_page_of_navigation_only_is_not_empty() {
    assert_eq!(markdown("<nav><a href=a.html>A</a>"), "[A](a.html)\n");
    assert_eq!(markdown(""), "");
    assert_eq!(markdown("plain *text*"), "plain \\*text\\*\n");
}

/// Two megabytes that nest, or make a tree of far more elements than the page has.
#[test]
fn deep_nesting_costs_no_more_than_its_bytes() {
    let deep = "<div><b><ul><li><a href=x>".repeat(80_000) + "end";
    assert!(markdown(&deep).len() < deep.len());
    let wide: String = (0..60_000).map(|n| format!("<b id={n}>x")).collect();
    let wide = wide + &"<p>y".repeat(200_000);
    assert!(markdown(&wide).len() < 2 * wide.len());
    let tables = "<table><tr><td>".repeat(100_000);
    assert!(markdown(&tables).len() <= tables.len());
    assert!(markdown(&"</b></ul></table></pre>".repeat(50_000)).is_empty());
}

proptest::proptest! {
    #[test]
    fn any_page_is_converted(page in "(\\PC|<[a-z]{1,5}[ >]|</[a-z]{1,4}>|<pre>|<td>|<ul>|<li>|\n| ){0,120}") {
        let text = markdown(&page);
        proptest::prop_assert!(text.len() <= 16 * page.len() + 200);
    }
}

#[test]
fn the_marks_that_link_to_headings_are_left_out() {
    let page = "<section id=\"install\"><span id=\"label\"></span><h1>Install it\
        <a class=\"headerlink\" href=\"#install\" title=\"Link\">¶</a></h1><p>Text.</p>\
        <div class=\"section\" id=\"next-one\">\n<h2>Next<a class=\"x headerlink\">¶</a></h2></div>\
        <section id=\"gone\"><p>Text.</p><h2>Bare</h2><a name=\"own\"></a><h2 id=\"mine\">Own</h2>\
        <a name=\"named\"></a><h2>Named</h2>";
    assert_eq!(
        markdown(page),
        "# Install it {#install}\n\nText.\n\n## Next {#next-one}\n\nText.\n\n## Bare\n\n\
         ## Own {#mine}\n\n## Named {#named}\n"
    );
}
