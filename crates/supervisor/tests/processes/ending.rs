use std::time::{Duration, Instant};

use sabir_supervisor::{Exit, Order};

use super::{PLAY, alive, keepers, line, patience, rest, sh, soon, stat, token};

#[tokio::test]
async fn the_exit_of_a_program_is_told() {
    let keepers = keepers();
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("kill -9 $$", Exit::Signal(9)),
        ("kill -15 $$", Exit::Signal(15)),
    ] {
        let mut child = keepers.start(&sh(script, "x")).await.unwrap();
        assert_eq!(child.wait().await, Ok(exit), "{script}");
        assert!(child.has_left());
    }
}

#[tokio::test]
async fn a_program_that_leaves_when_its_input_closes_gets_no_signal() {
    let script = "trap 'exit 9' TERM; cat; echo left";
    let order = Order { patience: patience(60_000, 60_000), ..sh(script, "x") };
    let keepers = keepers();
    let mut child = keepers.start(&order).await.unwrap();
    child.end();
    assert_eq!(child.wait().await, Ok(Exit::Code(0)));
    assert_eq!(rest(&mut child).await, "left\n");
}

#[tokio::test]
async fn then_comes_sigterm_and_it_may_tidy_up() {
    let script = "trap 'echo tidied; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let order = Order { patience: patience(50, 60_000), ..sh(script, "x") };
    let keepers = keepers();
    let mut child = keepers.start(&order).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let start = Instant::now();
    child.end();
    assert_eq!(child.wait().await, Ok(Exit::Code(3)));
    assert!(start.elapsed() >= Duration::from_millis(50), "SIGTERM came too early");
    assert_eq!(rest(&mut child).await, "tidied\n");
}

#[tokio::test]
async fn sigterm_goes_to_the_whole_group_at_once() {
    // The program itself does not leave, so that nobody becomes an orphan meanwhile.
    let child = "trap \"echo told; exit\" TERM; echo ready; while :; do sleep 0.01; done";
    let script = format!("trap : TERM; sh -c '{child}' & while :; do sleep 0.01; done");
    let order = Order { patience: patience(0, 60_000), ..sh(&script, "x") };
    let keepers = keepers();
    let mut child = keepers.start(&order).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    child.end();
    assert_eq!(line(&mut child).await, "told");
}

#[tokio::test]
async fn then_comes_sigkill() {
    let script = "trap '' TERM; echo ready; while :; do sleep 0.01; done";
    let order = Order { patience: patience(50, 70), ..sh(script, "x") };
    let keepers = keepers();
    let mut child = keepers.start(&order).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let start = Instant::now();
    child.end();
    assert_eq!(child.wait().await, Ok(Exit::Signal(9)));
    assert!(start.elapsed() >= Duration::from_millis(120), "SIGKILL came too early");
}

/// What a program may leave behind. Each runs `sleep` with the token, and says `ready` after that.
const LEFTOVERS: [(&str, &str); 6] = [
    ("a grandchild in its group", "sleep 1000.$0 &"),
    ("a grandchild in a session of its own", "setsid sleep 1000.$0 &"),
    ("an orphan in a session of its own", "(setsid sleep 1000.$0 &)"),
    ("one without an environment", "(env -i setsid /bin/sleep 1000.$0 &)"),
    ("one that ignores SIGTERM", "(setsid sh -c 'trap \"\" TERM; sleep 1000.$0; :' $0 &)"),
    ("a tree", "(setsid sh -c 'sh -c \"sleep 1000.$0 & wait\" $0 & sleep 1000.$0' $0 &)"),
];

#[tokio::test]
async fn what_a_program_leaves_behind_is_gone_when_it_is() {
    let keepers = keepers();
    for (what, leave) in LEFTOVERS {
        let token = token();
        let script = format!("{leave}\necho ready; read x; exit 5");
        let mut child = keepers.start(&sh(&script, &token)).await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        soon(what, || {
            alive(&token)
                .iter()
                .any(|line| line.starts_with("sleep") || line.starts_with("/bin/sleep"))
        })
        .await;
        child.stdin = None; // so that `read` returns
        assert_eq!(child.wait().await, Ok(Exit::Code(5)), "{what}");
        assert_eq!(alive(&token), [""; 0], "{what}");
    }
}

#[tokio::test]
async fn all_of_a_program_that_is_ended_is_gone() {
    let keepers = keepers();
    for (what, leave) in LEFTOVERS {
        let token = token();
        let script = format!("trap '' TERM; {leave}\necho ready; while :; do sleep 0.01; done");
        let mut child = keepers.start(&sh(&script, &token)).await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        child.end();
        assert_eq!(child.wait().await, Ok(Exit::Signal(9)), "{what}");
        assert_eq!(alive(&token), [""; 0], "{what}");
    }
}

#[tokio::test]
async fn all_of_a_program_that_is_dropped_is_gone_soon() {
    let keepers = keepers();
    let tokens = LEFTOVERS.map(|_| token());
    for ((_, leave), token) in LEFTOVERS.iter().zip(&tokens) {
        let script = format!("trap '' TERM; {leave}\necho ready; while :; do sleep 0.01; done");
        let mut child = keepers.start(&sh(&script, token)).await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        drop(child);
    }
    for ((what, _), token) in LEFTOVERS.iter().zip(&tokens) {
        soon(what, || alive(token).is_empty()).await;
    }
}

#[tokio::test]
async fn what_is_started_faster_than_it_can_be_seen_is_caught() {
    let token = token();
    let keepers = keepers();
    let order = Order {
        program: PLAY.into(),
        args: vec!["runaway".into(), (&token).into()],
        ..sh("", "x")
    };
    let mut child = keepers.start(&order).await.unwrap();
    assert_eq!(child.wait().await, Ok(Exit::Code(0)));
    assert_eq!(alive(&token), [""; 0]);
}

#[tokio::test]
async fn orphans_that_end_while_the_program_runs_leave_no_zombies() {
    let keepers = keepers();
    let script = "for i in 1 2 3 4 5 6 7 8; do (setsid true &); done; echo ready; read x";
    let mut child = keepers.start(&sh(script, "x")).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let (keeper, _) = stat(child.pid().unwrap()).unwrap();
    let children = || {
        let path = format!("/proc/{keeper}/task/{keeper}/children");
        std::fs::read_to_string(path).unwrap().split_whitespace().count()
    };
    soon("the keeper has only the program", || children() == 1).await;
    child.stdin = None;
    assert_eq!(child.wait().await, Ok(Exit::Code(1)));
}
