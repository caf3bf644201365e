//! Each transcript, at each level: the engine without I/O, the pair in memory, a program over a pipe.

use std::sync::Arc;

use sabir_registry::Source;
use sabir_session::SessionKind;
use sabir_testkit::{ConnectionPlayer, House, Pair, Script, StandIn, play_scripts};

fn house(script: &Script) -> House {
    let sources: Vec<Arc<dyn Source>> =
        if script.needs_stand_in { vec![Arc::new(StandIn)] } else { Vec::new() };
    House::of(script.settings(), sources)
}

#[test]
fn the_engine_without_io_plays_every_script() {
    play_scripts(
        |_| true,
        |script| {
            Box::new(ConnectionPlayer::with(
                house(script),
                SessionKind::Stream,
                sabir_wire::Caller::local(),
            ))
        },
    );
}

#[test]
fn the_pair_in_memory_plays_every_script() {
    play_scripts(|_| true, |script| Box::new(Pair::with(house(script))));
}

#[test]
fn a_program_over_a_pipe_plays_every_script() {
    let program = env!("CARGO_BIN_EXE_sabir-stand-in");
    play_scripts(
        |_| true,
        |script| {
            let more: &[&str] = if script.needs_stand_in { &[] } else { &["--empty"] };
            Box::new(script.program(program, env!("CARGO_TARGET_TMPDIR"), more))
        },
    );
}
