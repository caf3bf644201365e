//! Sabir over WebSocket, compared with itself over HTTP: the same calls, on connections that are kept.

use super::{Run, Series, http};
use crate::goals::OVER_WEBSOCKET;
use crate::load::exchange::{Ask, Era};
use crate::load::http::{Job, Way};

/// HTTP takes the place of the floor.
pub(super) fn beside_http(run: &mut Run<'_>) {
    let Some(ours) = run.ours() else { return };
    for era in Era::ALL {
        for (name, ask) in [("echo 50 B", Ask::Echo(50)), ("wait 50 B", Ask::Wait(50))] {
            for connections in [1, 16] {
                let mut all = Vec::new();
                for (server, way) in
                    [("sabir over HTTP", Way::Http), (OVER_WEBSOCKET, Way::WebSocket)]
                {
                    let job = Job { way, ..http::job(era, ask.clone(), connections) };
                    let one = http::series(run, ours, &ours.http_command(), &job);
                    let is_floor = way == Way::Http;
                    all.extend(one.map(|one| Series { server: server.into(), is_floor, ..one }));
                }
                run.case("ws", &format!("{} {name}", era.name()), connections as f64, all);
            }
        }
    }
}
