use sabir_wire::types::Question;
use sabir_wire::{Caller, Raw, TaskState};

use super::*;

fn ann() -> Caller {
    Caller::new("i", "ann")
}

fn bob() -> Caller {
    Caller::new("i", "bob")
}

fn small() -> TaskTable {
    let limits = TaskLimits { total: 3, per_caller: 2, result_bytes: 20, ttl_ms: 1000, poll_ms: 5 };
    TaskTable::new(limits)
}

fn add(table: &mut TaskTable, id: &str, owner: &Caller) -> Result<(), TooManyTasks> {
    table.create(0, id.into(), owner, None, None).map(drop)
}

fn done(text: &str) -> TaskState {
    TaskState::Completed(Raw::parse(format!("{text:?}")).unwrap())
}

fn roots(keys: &[&str]) -> Vec<(String, Question)> {
    keys.iter().map(|key| ((*key).to_owned(), Question::roots())).collect()
}

fn open(table: &TaskTable, id: &str) -> Vec<String> {
    match &table.record(id).unwrap().task.state {
        TaskState::InputRequired(open) => open.iter().map(|(key, _)| key.clone()).collect(),
        state => panic!("{state:?}"),
    }
}

fn answers(keys: &[&str]) -> Vec<(String, Raw)> {
    keys.iter().map(|key| ((*key).to_owned(), Raw::empty_object())).collect()
}

#[test]
fn a_task_exists_for_its_caller_only() {
    let mut table = small();
    add(&mut table, "a", &ann()).unwrap();
    assert!(table.get(0, &ann().with_scopes(["x"]), "a").is_some());
    assert!(table.get(0, &bob(), "a").is_none());
    assert_eq!(table.answer(0, &bob(), "a", answers(&["k"])), Answered::Unknown);
    assert_eq!(table.list(0, &bob(), None, None, 9).0, []);
}

#[test]
fn both_bounds_hold_and_what_expires_makes_room() {
    let mut table = small();
    add(&mut table, "a", &ann()).unwrap();
    add(&mut table, "b", &ann()).unwrap();
    assert_eq!(add(&mut table, "c", &ann()), Err(TooManyTasks::PerCaller(2)));
    add(&mut table, "c", &bob()).unwrap();
    assert_eq!(add(&mut table, "d", &bob()), Err(TooManyTasks::Total(3)));
    assert_eq!(table.expire(999), [] as [Box<str>; 0]);
    assert_eq!(table.expire(1000).len(), 3);
    add(&mut table, "d", &bob()).unwrap();
    assert_eq!(table.len(), 1);
}

#[test]
fn a_task_is_gone_at_the_moment_it_expires() {
    let mut table = small();
    table.create(5, "a".into(), &ann(), None, Some(10)).unwrap();
    assert!(table.get(14, &ann(), "a").is_some());
    assert!(table.get(15, &ann(), "a").is_none(), "even before it is swept");
    assert_eq!(table.next_expiry(), Some(15));
    let longer = table.create(5, "b".into(), &ann(), None, Some(u64::MAX)).unwrap();
    assert_eq!(longer.task.ttl_ms, 1000, "no longer than the limit");
}

#[test]
fn an_end_is_final() {
    let mut table = small();
    add(&mut table, "a", &ann()).unwrap();
    assert!(table.end(1, "a", TaskState::Cancelled).is_some());
    assert!(table.end(2, "a", done("late")).is_none());
    assert!(!table.ask(2, "a", roots(&["k"])));
    let task = table.get(2, &ann(), "a").unwrap();
    assert_eq!((&task.state, task.updated_ms), (&TaskState::Cancelled, 1));
}

#[test]
fn results_are_bounded_and_counted_until_they_expire() {
    let mut table = small();
    add(&mut table, "a", &ann()).unwrap();
    add(&mut table, "b", &ann()).unwrap();
    let long = done("123456789012345678");
    // The room is kept while the end is stored, also if that is repeated.
    for _ in 0..2 {
        assert_eq!(table.reserve("a", long.clone()), long);
    }
    assert!(matches!(table.reserve("b", done("")), TaskState::Failed(_)));
    table.end(0, "a", long.clone()).unwrap();
    assert!(matches!(table.reserve("b", done("")), TaskState::Failed(_)));
    table.expire(1000);
    add(&mut table, "c", &ann()).unwrap();
    assert_eq!(table.reserve("c", long.clone()), long);
    table.end(0, "c", TaskState::Cancelled).unwrap();
    add(&mut table, "d", &ann()).unwrap();
    assert_eq!(table.reserve("d", long.clone()), long, "the room of a cancelled task is free");
    table.expire(1000);
    assert_eq!(table.result_bytes, 0);
}

#[test]
fn all_open_questions_are_listed_until_each_is_answered() {
    let mut table = small();
    add(&mut table, "a", &ann()).unwrap();
    assert!(table.ask(1, "a", roots(&["x", "y"])));
    assert_eq!(table.answer(2, &ann(), "a", answers(&["nope", "x", "x"])), Answered::Nothing);
    assert_eq!(open(&table, "a"), ["y"]);
    assert_eq!(table.take_answers("a"), None);
    assert_eq!(table.answer(3, &ann(), "a", answers(&["y"])), Answered::All);
    let taken = table.take_answers("a").unwrap();
    assert_eq!(taken.iter().map(|(key, _)| &**key).collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(table.answer(3, &ann(), "a", answers(&["y"])), Answered::Nothing);
}

#[test]
fn a_key_is_never_used_again() {
    let mut table = small();
    add(&mut table, "a", &ann()).unwrap();
    for expected in ["x", "x-2", "x-3"] {
        assert!(table.ask(1, "a", roots(&["x"])));
        assert_eq!(open(&table, "a"), [expected]);
        assert_eq!(table.answer(2, &ann(), "a", answers(&[expected])), Answered::All);
        assert_eq!(table.take_answers("a").unwrap()[0].0, "x", "the source knows its own key");
    }
}

#[test]
fn a_list_has_pages_and_strangers_share_none() {
    let mut table = TaskTable::new(TaskLimits::default());
    for (id, conversation) in [("a", Some(1)), ("b", Some(1)), ("c", Some(2))] {
        table.create(7, id.into(), &ann(), conversation, None).unwrap();
        table.create(7, format!("x{id}").into(), &Caller::anonymous(), conversation, None).unwrap();
    }
    let ids =
        |tasks: Vec<Task>| tasks.into_iter().map(|task| task.id.into()).collect::<Vec<String>>();
    let (first, next) = table.list(8, &ann(), None, None, 2);
    assert_eq!(ids(first), ["a", "b"]);
    let (second, end) = table.list(8, &ann(), None, next.as_deref(), 2);
    assert_eq!((ids(second), end), (vec!["c".to_owned()], None));
    assert!(next.as_deref().is_some_and(is_cursor));
    for wrong in
        ["", "a", "0123456789abcdef", "garbage that is long enough", "é".repeat(20).as_str()]
    {
        assert!(!is_cursor(wrong), "{wrong}");
    }
    let (strangers, _) = table.list(8, &Caller::anonymous(), Some(2), None, 9);
    assert_eq!(ids(strangers), ["xc"]);
}

#[test]
fn the_user_of_a_pipe_lists_what_the_process_before_has_left() {
    let mut table = TaskTable::new(TaskLimits::default());
    table.create(7, "kept".into(), &Caller::local(), None, None).unwrap();
    table.create(7, "lost".into(), &Caller::anonymous(), None, None).unwrap();
    let (own, _) = table.list(8, &Caller::local(), Some(1), None, 9);
    assert_eq!(own.len(), 1);
    let (strangers, _) = table.list(8, &Caller::anonymous(), Some(1), None, 9);
    assert_eq!(strangers, []);
}

#[test]
fn ten_thousand_tasks_expire_in_their_second_and_leave_nothing() {
    const TASKS: u64 = 10_000;
    let limits = TaskLimits { per_caller: TASKS as usize, ..TaskLimits::default() };
    let mut table = TaskTable::new(limits);
    let owner = Caller::new("token", "ann");
    for nth in 0..TASKS {
        let id = format!("{nth}").into();
        // One of each ten expires in the same second.
        table.create(0, id, &owner, None, Some((1 + nth % 1000) * 1000)).unwrap();
        let result = Raw::of(&serde_json::json!({ "content": [], "n": nth })).unwrap();
        table.end(0, &nth.to_string(), TaskState::Completed(result)).unwrap();
    }
    assert!(table.create(0, "more".into(), &owner, None, None).is_err(), "the table is full");
    for second in 1..=1000 {
        let last = (second - 1).to_string();
        assert!(table.get(second * 1000 - 1, &owner, &last).is_some(), "a moment before");
        assert!(table.get(second * 1000, &owner, &last).is_none());
        assert_eq!(table.next_expiry(), Some(second * 1000));
        assert_eq!(table.expire(second * 1000 - 1).len(), 0);
        assert_eq!(table.expire(second * 1000).len(), 10);
    }
    assert!(table.is_empty() && table.next_expiry().is_none());
    assert_eq!((table.result_bytes, table.owners.len(), table.tasks.len()), (0, 0, 0));
}
