use super::*;
use crate::article;
use crate::folder::Stamp;
use crate::index::Index;
use crate::listing::Entry;
use crate::plan::Plan;
use crate::query::Query;

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
        let reading = article::read(&path, file.as_bytes(), &[]);
        let entry = Entry {
            path: path.as_str().into(),
            stamp: Stamp { size: 1, mtime: 1 },
            hash: 1,
            updated: *updated,
            visible: true,
            linked: false,
            unsure: false,
        };
        writer.add_document(index.document(&entry, &reading).unwrap()).unwrap();
    }
    writer.commit().unwrap();
    index.reload().unwrap()
}

fn paths(view: &View, text: &str, most: usize) -> Vec<String> {
    let plan =
        Plan::new(view, &Query::parse(text).unwrap(), view.searcher.num_docs()).unwrap().unwrap();
    let best = rank(view, &plan.clauses, plan.unknown, most).unwrap().best;
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
        let reading = article::read(&path, file.as_bytes(), &[]);
        let entry = Entry {
            path: path.as_str().into(),
            stamp: Stamp { size: 1, mtime: 1 },
            hash: 1,
            updated: random.below(5) as i64,
            visible: true,
            linked: false,
            unsure: false,
        };
        writer.add_document(index.document(&entry, &reading).unwrap()).unwrap();
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

/// The ranking with nothing left out: every clause scores every document.
fn in_full(view: &View, plan: &Plan, most: usize) -> Ranking {
    let whole = plan.unknown + plan.clauses.iter().map(|clause| clause.weight).sum::<f32>();
    let required = plan.clauses.iter().filter(|clause| clause.required).count();
    let mut clauses: Vec<&Clause> = plan.clauses.iter().collect();
    clauses.sort_by(|a, b| (b.required, b.weight).partial_cmp(&(a.required, a.weight)).unwrap());
    Search { clauses: &clauses, leading: clauses.len(), prunes: false, whole, required }
        .run(view, most)
        .unwrap()
}

fn places(ranking: &Ranking) -> Vec<(DocAddress, u32)> {
    ranking.best.iter().map(|ranked| (ranked.address, (ranked.score * 1e4) as u32)).collect()
}

#[test]
fn what_is_left_out_changes_no_answer() {
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
            let query = Query::parse(&text).unwrap();
            let Some(plan) = Plan::new(&view, &query, articles as u64).unwrap() else { continue };
            for most in [1, 10, 1000] {
                let quick = rank(&view, &plan.clauses, plan.unknown, most).unwrap();
                let full = in_full(&view, &plan, most);
                assert_eq!(places(&quick), places(&full), "{text:?} in {articles}");
                assert!(quick.total <= full.total && quick.total >= quick.best.len());
                if plan.clauses.len() > 1 {
                    assert_eq!(quick.total, full.total, "{text:?} in {articles}");
                }
            }
        }
    }
}

#[test]
fn more_documents_than_a_window_are_all_scored() {
    let index = Index::in_memory().unwrap();
    let mut writer = index.writer(1, 0).unwrap();
    for n in 0..9000 {
        let path = format!("c/{n}.md");
        let reading =
            article::read(&path, if n % 4000 == 0 { b"walrus seal" } else { b"seal" }, &[]);
        let stamp = Stamp { size: 1, mtime: 1 };
        let entry = Entry {
            path: path.as_str().into(),
            stamp,
            hash: 1,
            updated: n,
            visible: true,
            linked: false,
            unsure: false,
        };
        writer.add_document(index.document(&entry, &reading).unwrap()).unwrap();
    }
    writer.commit().unwrap();
    let view = index.reload().unwrap();
    let found = |text: &str, most| {
        let plan = Plan::new(&view, &Query::parse(text).unwrap(), 9000).unwrap().unwrap();
        rank(&view, &plan.clauses, plan.unknown, most).unwrap()
    };
    assert_eq!(found("walrus", 10).total, 3);
    assert_eq!(found("seal", 10).total, 9000);
    assert_eq!(found("walrus seal", 10).best.len(), 3);
    // Of equals, the newest.
    let best = found("seal ", 2).best;
    let path = |ranked: &Ranked| view.read(ranked.address).unwrap().meta.path;
    assert_eq!(best.iter().map(path).collect::<Vec<_>>(), ["c/8999.md", "c/8998.md"]);
}

#[test]
fn common_words_do_not_lead() {
    let clause = |weight, required| Clause { weight, required, ..Clause::default() };
    let count = |clauses: &[Clause]| {
        let all: Vec<&Clause> = clauses.iter().collect();
        leading(&all, clauses.iter().map(|clause| clause.weight).sum())
    };
    assert_eq!(count(&[clause(5.0, false), clause(0.1, false), clause(0.1, false)]), 1);
    assert_eq!(count(&[clause(1.0, false), clause(1.0, false), clause(1.0, false)]), 3);
    assert_eq!(count(&[clause(1.0, false), clause(1.0, false), clause(0.9, false)]), 2);
    assert_eq!(count(&[clause(0.1, true), clause(9.0, false)]), 1);
    assert_eq!(count(&[clause(0.1, false)]), 1);
}
