use tantivy::IndexWriter;

use super::*;
use crate::article;
use crate::folder::Stamp;
use crate::index::Index;
use crate::language::Language;
use crate::listing::Entry;
use crate::plan::Plan;
use crate::query::Query;

const ENGLISH: [Language; 1] = [Language::ENGLISH];

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// One of forty words; the first are much more frequent than the last.
    fn word(&mut self) -> String {
        let most = self.below(40) + 1;
        format!("w{}x", self.below(most))
    }

    fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

/// Adds a file to an index.
fn add(index: &Index, writer: &mut IndexWriter, path: &str, file: &[u8], updated: i64) {
    let reading = article::read(path, file, None);
    let entry = Entry {
        path: path.into(),
        stamp: Stamp { size: 1, mtime: 1 },
        hash: 1,
        updated,
        hidden: None,
        linked: false,
        unsure: false,
        language: Language::ENGLISH,
        names: Box::default(),
    };
    writer.add_document(index.document(&entry, &reading).unwrap()).unwrap();
}

/// An index of these files; `None` starts a new segment.
fn index_of(files: &[Option<(&str, i64)>]) -> View {
    let index = Index::in_memory().unwrap();
    let mut writer = index.writer(1, 0).unwrap();
    for (n, file) in files.iter().enumerate() {
        let Some((file, updated)) = file else {
            writer.commit().unwrap();
            continue;
        };
        let path = format!("c/{n}.md");
        add(&index, &mut writer, &path, file.as_bytes(), *updated);
    }
    writer.commit().unwrap();
    index.reload().unwrap()
}

fn paths(view: &View, text: &str, most: usize) -> Vec<String> {
    let plan =
        Plan::new(view, &Query::parse(text, &ENGLISH).unwrap(), &ENGLISH, view.searcher.num_docs())
            .unwrap()
            .unwrap();
    let best = rank(view, &plan, None, most).unwrap().best;
    best.iter().map(|ranked| view.read(ranked.address).unwrap().meta.path).collect()
}

#[test]
fn a_phrase_in_many_fields_is_not_given_up_after_the_first() {
    let in_title = "---\ntitle: grey walrus\n---\nsome other text\n";
    let elsewhere = "---\ntitle: other\ntags: [grey walrus]\ndescription: grey walrus\n---\n## grey walrus\n\ngrey walrus grey walrus\n";
    let view = index_of(&[Some((in_title, 1)), None, Some((elsewhere, 1)), Some(("filler", 1))]);
    assert_eq!(view.searcher.segment_readers().len(), 2);
    assert_eq!(paths(&view, "\"grey walrus\"", 1), ["c/2.md"]);
}

#[test]
fn of_equals_the_newest_comes_first_whatever_its_place() {
    let same = "---\ntitle: walrus\n---\ntext\n";
    let dates = [3, 9, 1, 7, 5, 8, 2];
    let mut files: Vec<Option<(&str, i64)>> =
        dates.iter().map(|&date| Some((same, date))).collect();
    files.insert(4, None);
    let view = index_of(&files);
    assert_eq!(paths(&view, "walrus", 3), ["c/1.md", "c/6.md", "c/3.md"]);
    assert_eq!(paths(&view, "walrus", 7).len(), 7);
}

/// Articles of random words, in two segments, some of them deleted.
fn random_index(random: &mut Random, articles: usize) -> View {
    let index = Index::in_memory().unwrap();
    let mut writer = index.writer(1, 0).unwrap();
    for n in 0..articles {
        let path = format!("c/{n}.md");
        let (title, length) = (random.words(2), 5 + random.below(40));
        let file = format!(
            "---\ntitle: {title}\ntags: [{}]\n---\n## {}\n\n{}\n",
            random.word(),
            random.words(2),
            random.words(length)
        );
        add(&index, &mut writer, &path, file.as_bytes(), random.below(5) as i64);
        if n == articles / 2 {
            writer.commit().unwrap();
        }
    }
    for n in (0..articles).step_by(7) {
        writer.delete_term(index.path_term(&format!("c/{n}.md")));
    }
    writer.commit().unwrap();
    index.reload().unwrap()
}

#[test]
fn looking_up_common_words_late_changes_no_result() {
    let mut random = Random(1);
    for articles in [3, 60, 300] {
        let view = random_index(&mut random, articles);
        for _ in 0..60 {
            let words = 1 + random.below(5);
            let mut text = random.words(words);
            if random.below(3) == 0 {
                text = format!(
                    "\"{}\" {}",
                    random.words(2),
                    if random.below(2) == 0 { "" } else { &text }
                );
            }
            let query = Query::parse(&text, &ENGLISH).unwrap();
            let Some(plan) = Plan::new(&view, &query, &ENGLISH, articles as u64).unwrap() else {
                continue;
            };
            let found = |query: &dyn tantivy::query::Query| {
                let collectors = (TopDocs::with_limit(1000).order_by_score(), Count);
                view.searcher.search(query, &collectors).unwrap()
            };
            let quick = found(&coverage(&view, &plan));
            let full = found(&coverage(&view, &plan).all_leading());
            assert_eq!(quick, full, "{text:?} in {articles}");
        }
    }
}

#[test]
fn the_article_with_the_words_in_one_section_comes_first() {
    let apart = "---\ntitle: a\n---\n## one\n\ngrey seal\n\n## two\n\nwalrus\n";
    let together = "---\ntitle: b\n---\n## one\n\ngrey walrus\n\n## two\n\nseal\n";
    let view = index_of(&[Some((apart, 2)), Some((together, 1)), Some(("filler", 1))]);
    assert_eq!(paths(&view, "grey walrus", 2), ["c/1.md", "c/0.md"]);
}

#[test]
fn a_folder_restricts_the_articles() {
    let view = index_of(&[Some(("walrus", 1)), Some(("walrus", 1))]);
    let plan =
        Plan::new(&view, &Query::parse("walrus", &ENGLISH).unwrap(), &ENGLISH, 2).unwrap().unwrap();
    let total = |folder| rank(&view, &plan, Some(folder), 10).unwrap().total;
    assert_eq!((total("c"), total("d"), total("c/0")), (2, 0, 0));
}

#[test]
fn many_documents_are_all_scored() {
    let index = Index::in_memory().unwrap();
    let mut writer = index.writer(1, 0).unwrap();
    for n in 0..9000 {
        let path = format!("c/{n}.md");
        let file = if n % 4000 == 0 { "walrus seal" } else { "seal" };
        add(&index, &mut writer, &path, file.as_bytes(), n);
    }
    writer.commit().unwrap();
    let view = index.reload().unwrap();
    let found = |text: &str, most| {
        let plan = Plan::new(&view, &Query::parse(text, &ENGLISH).unwrap(), &ENGLISH, 9000)
            .unwrap()
            .unwrap();
        rank(&view, &plan, None, most).unwrap()
    };
    assert_eq!(found("walrus", 10).total, 3);
    assert_eq!(found("seal", 10).total, 9000);
    assert_eq!(found("walrus seal", 10).best.len(), 3);
    // Of equals, the newest.
    let best = found("seal ", 2).best;
    let path = |ranked: &Ranked| view.read(ranked.address).unwrap().meta.path;
    assert_eq!(best.iter().map(path).collect::<Vec<_>>(), ["c/8999.md", "c/8998.md"]);
}
