//! Links in the text that is returned: of notes, of images and other files.

use std::time::{Duration, Instant};

use sabir_articles::{ArticleUris, ReadOptions, Store};

use crate::support::{Home, LONG};

/// The content of an article, as a model gets it.
fn content(store: &Store, id: &str) -> String {
    let options = ReadOptions { uris: Some(ArticleUris::default()), ..ReadOptions::default() };
    store.read(id, &options).expect("the article").content
}

/// Waits for a change that is not announced, because no article changes.
fn eventually(is_so: impl Fn() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "the change was not seen in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn vault(page: &str) -> Home {
    Home::new(&[
        ("Notes/Page.md", page),
        ("Notes/Other note.md", "# Other\n\n## Some heading\n\nText.\n\n### Below\n\nDeep.\n"),
        ("a/Twin.md", "One.\n"),
        ("b/Twin.md", "Two.\n"),
        ("Attachments/Big Cat.jpg", "jpg"),
        ("Attachments/talk.mp3", "mp3"),
        ("static/img/x.png", "png"),
        ("Notes/near.png", "png"),
    ])
}

#[test]
fn an_embedded_file_is_an_address_that_can_be_read() {
    for (written, returned) in [
        ("![[Big Cat.jpg]]", "![Big Cat.jpg](article:///Attachments/Big%20Cat.jpg)"),
        ("![[Big Cat.jpg|200x100]]", "![Big Cat.jpg](article:///Attachments/Big%20Cat.jpg)"),
        ("![[Big Cat.jpg|My cat]]", "![My cat](article:///Attachments/Big%20Cat.jpg)"),
        (
            "![[attachments/big cat.jpg]]",
            "![attachments/big cat.jpg](article:///Attachments/Big%20Cat.jpg)",
        ),
        ("[[talk.mp3]]", "[talk.mp3](article:///Attachments/talk.mp3)"),
        ("![[near.png]]", "![near.png](article:///Notes/near.png)"),
        ("![](Big%20Cat.jpg)", "![](article:///Attachments/Big%20Cat.jpg)"),
        ("![x](/img/x.png)", "![x](article:///static/img/x.png)"),
        (
            "Text <img alt=\"x\" src=\"near.png\"> text",
            "Text <img alt=\"x\" src=\"article:///Notes/near.png\"> text",
        ),
        (
            "<p>\n  <img src=\"/img/x.png\">\n</p>",
            "<p>\n  <img src=\"article:///static/img/x.png\">\n</p>",
        ),
        ("![[missing.jpg]]", "![[missing.jpg]]"),
        ("![](https://example.org/near.png)", "![](https://example.org/near.png)"),
        ("`![[Big Cat.jpg]]`", "`![[Big Cat.jpg]]`"),
        (
            "| a |\n|---|\n| ![[Big Cat.jpg\\|200]] |",
            "| a |\n|---|\n| ![Big Cat.jpg](article:///Attachments/Big%20Cat.jpg) |",
        ),
    ] {
        let home = vault(&format!("{written}\n"));
        assert_eq!(content(&home.store(), "Notes/Page"), format!("{returned}\n"));
    }
}

#[test]
fn a_wiki_link_has_the_id_of_its_article() {
    for (written, returned) in [
        ("[[Other note]]", "[[Notes/Other note]]"),
        ("[[other note|shown]]", "[[Notes/Other note|shown]]"),
        ("![[Other note#Some heading]]", "![[Notes/Other note#Some heading]]"),
        ("[[Twin]] of two", "[[Twin]] of two"),
        ("[[b/Twin]]", "[[b/Twin]]"),
        ("[[Nowhere]]", "[[Nowhere]]"),
        ("[[#Some heading|x]]", "[[Notes/Page#Some heading|x]]"),
        ("[x](#some-heading)", "[x](Notes/Page#some-heading)"),
        ("[x](#)", "[x](#)"),
        ("<a href=\"Other%20note.md#below\">x</a>", "<a href=\"Notes/Other%20note#below\">x</a>"),
        ("<Link to='/b/Twin'>x</Link>", "<Link to='b/Twin'>x</Link>"),
        ("[x]({{< relref \"../b/Twin.md#a\" >}}).", "[x](b/Twin#a)."),
        ("[x]({{% ref \"b/Twin\" %}})", "[x](b/Twin)"),
        ("`[x]({{< ref \"b/Twin\" >}})`", "`[x]({{< ref \"b/Twin\" >}})`"),
        ("[x]({{< other \"b/Twin\" >}})", "[x]({{< other \"b/Twin\" >}})"),
    ] {
        let home = vault(&format!("{written}\n"));
        assert_eq!(content(&home.store(), "Notes/Page"), format!("{returned}\n"));
    }
}

#[test]
fn a_link_by_reference_has_its_address_without_its_definition() {
    let definitions = "[other]: Other%20note.md#below\n[cat]: Big%20Cat.jpg\n[Twin]: ../b/Twin.md\n\
                       [away]: <https://example.org/a (b)> \"Away\"\n";
    for (written, returned) in [
        ("[a [b] c][other].", "[a [b] c](Notes/Other%20note#below)."),
        ("[Twin][] and [twin]", "[Twin](b/Twin) and [twin](b/Twin)"),
        ("![x][cat]", "![x](article:///Attachments/Big%20Cat.jpg)"),
        ("[![x][cat]][Twin]", "[![x](article:///Attachments/Big%20Cat.jpg)](b/Twin)"),
        ("[*x*][away]", "[*x*](<https://example.org/a (b)>)"),
        ("[nothing][here] and `[x][other]`", "[nothing][here] and `[x][other]`"),
    ] {
        let home = vault(&format!("# Page\n\n## One\n\n{written}\n\n## Two\n\n{definitions}"));
        let store = home.store();
        let text = content(&store, "Notes/Page#one");
        assert_eq!(text, format!("## One\n\n{returned}\n\n"));
        let whole = content(&store, "Notes/Page");
        assert!(whole.starts_with(&format!("# Page\n\n{text}")), "{whole}");
        assert!(whole.contains("[other]: Notes/Other%20note#below\n"), "{whole}");
    }
}

#[test]
fn a_link_of_another_markup_is_followed_as_it_is_written() {
    let home = Home::new(&[
        (
            "a/second.adoc",
            "= Second\n\n[#conf]\n== The settings\n\nSet.\n\n== Other words\n\nOther.\n",
        ),
        ("b/other.rst", "Other\n=====\n\n.. _My_Label:\n\nBelow it\n--------\n\nLabelled.\n"),
    ]);
    let store = home.store();
    for (written, returned) in [
        ("xref:second.adoc#conf[x]", "== The settings\n\nSet.\n\n"),
        ("xref:second.adoc#_other_words[x]", "== Other words\n\nOther.\n"),
        ("link:second.html#the-settings[y]", "== The settings\n\nSet.\n\n"),
        (":ref:`My_Label`", "Below it\n--------\n\nLabelled.\n"),
        (":ref:`text <my_label>`", "Below it\n--------\n\nLabelled.\n"),
        ("`t <other.html#below-it>`_", "Below it\n--------\n\nLabelled.\n"),
    ] {
        assert_eq!(content(&store, written), returned, "{written}");
    }
    for written in [":doc:`other`", ":doc:`text </b/other>`", "`t <other.html>`_"] {
        assert!(content(&store, written).starts_with("Other\n===="), "{written}");
    }
}

#[test]
fn an_embedded_note_is_followed_and_counted() {
    let home = vault("![[Other note#Some heading#Below]] [x]({{< ref \"b/Twin\" >}})\n");
    let store = home.store();
    let text = content(&store, "![[Other note#Some heading#Below]]");
    assert_eq!(text, "### Below\n\nDeep.\n");
    let options = ReadOptions { links: true, ..ReadOptions::default() };
    let links = store.read("Notes/Other note", &options).unwrap().links.unwrap();
    assert_eq!(links.from, ["Notes/Page"]);
    let links = store.read("b/Twin", &options).unwrap().links.unwrap();
    assert_eq!(links.from, ["Notes/Page"]);
}

#[test]
fn a_file_is_named_by_its_link() {
    let home = vault("x\n");
    let store = home.store();
    for name in ["![[Big Cat.jpg]]", "Big%20Cat.jpg", "[[big cat.jpg|200]]", "../Big Cat.jpg"] {
        let found = store.file_named(name);
        let wanted = (!name.starts_with("..")).then_some("Attachments/Big Cat.jpg");
        assert_eq!(found.as_deref(), wanted, "{name}");
    }
}

#[test]
fn a_new_file_is_found_by_its_name() {
    let home = vault("![[new.svg]]\n");
    let store = home.store();
    assert_eq!(content(&store, "Notes/Page"), "![[new.svg]]\n");
    home.write("deep/down/new.svg", "<svg/>");
    eventually(|| content(&store, "Notes/Page").contains("article:///deep/down/new.svg"));
    std::fs::remove_file(home.path("deep/down/new.svg")).expect("removed");
    eventually(|| content(&store, "Notes/Page") == "![[new.svg]]\n");
}
