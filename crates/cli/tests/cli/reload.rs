//! A `sabir.toml` that changes while it is served.

use std::path::Path;
use std::time::Duration;

use sabir_client::{Client, ClientConfig, ClientEvent, HttpTarget};
use sabir_wire::Era;
use sabir_wire::types::Topic;
use serde_json::json;

use crate::http::Server;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const HEAD: &str = "[server]\nname = \"port\"\n";

fn tool(name: &str) -> String {
    format!(
        "[[command]]\nname = \"{name}\"\ndescription = \"Says it\"\nrun = [\"echo\", \"{name}\"]\n"
    )
}

/// Writes the file in the way of many editors: renamed into its place.
fn write(folder: &Path, text: &str) {
    std::fs::write(folder.join("new"), text).unwrap();
    std::fs::rename(folder.join("new"), folder.join("sabir.toml")).unwrap();
}

impl Server {
    #[track_caller]
    pub(crate) fn says(&self, what: &str) {
        let mut before = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            if line.contains(what) {
                return;
            }
            before.push(line);
        }
        panic!("never said: {what}; but: {before:#?}");
    }

    fn hang_up(&self) {
        let pid = self.child.id().to_string();
        let kill = std::process::Command::new("kill").args(["-HUP", &pid]).status();
        assert!(kill.unwrap().success());
    }
}

async fn names(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    tools.into_iter().map(|tool| tool.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_change_is_applied_and_a_bad_one_is_reported_while_clients_stay() {
    let server = Server::start(&tool("one"), &[], &[]);
    let url = format!("http://{}/mcp", server.address);
    let config = ClientConfig { era: Some(Era::Legacy), ..ClientConfig::default() };
    let transport = HttpTarget::new(url).unwrap().transport();
    let client = Client::without_answers(transport, config);
    let events = client.events();
    assert_eq!(names(&client).await, ["one"]);
    let change = async || {
        let next =
            async { while !matches!(events.next().await, ClientEvent::Changed(Topic::Tools)) {} };
        tokio::time::timeout(PATIENCE, next).await.expect("the client is told");
    };

    // The source that is still there is written in another place, and is not opened again.
    let text = format!("{HEAD}# A comment.\n{}{}[limits]\ncalls = 7\n", tool("two"), tool("one"));
    write(server.folder.path(), &text);
    server.says("reloaded the configuration: 1 source opened, 0 closed");
    server.says("restart to apply what has changed in [limits]");
    change().await;
    assert_eq!(names(&client).await, ["one", "two"]);
    let reply = client.call_tool("two", json!({})).await.unwrap();
    assert!(format!("{:?}", reply.content).contains("two"), "{reply:?}");

    write(server.folder.path(), &format!("{HEAD}[[command]]\nname = \"three\"\nrum = []\n"));
    server.says("the configuration was not reloaded: the old one is still served");
    write(server.folder.path(), &format!("{HEAD}{}{}", tool("four"), tool("four")));
    server.says("the configuration was not reloaded: the old one is still served");
    std::fs::remove_file(server.folder.path().join("sabir.toml")).unwrap();
    assert_eq!(names(&client).await, ["one", "two"]);

    // Sources of another kind, before and behind.
    let memo = |text: &str| {
        format!("[[resource]]\nuri = \"memo:///a\"\nname = \"a\"\ntext = \"{text}\"\n")
    };
    let tools = format!("{}{}", tool("one"), tool("two"));
    write(server.folder.path(), &format!("{HEAD}{}{tools}", memo("old")));
    server.says("reloaded the configuration: 1 source opened, 0 closed");
    write(server.folder.path(), &format!("{HEAD}{tools}{}", memo("new")));
    server.says("reloaded the configuration: 1 source opened, 1 closed");
    let memo = client.read_resource("memo:///a").await.unwrap();
    assert!(format!("{memo:?}").contains("new"), "{memo:?}");

    write(server.folder.path(), &format!("{HEAD}{}", tool("two").replace("Says", "Tells")));
    server.says("reloaded the configuration: 1 source opened, 3 closed");
    change().await;
    assert_eq!(names(&client).await, ["two"]);
    assert_eq!(client.server().unwrap().revision.era(), Era::Legacy, "the same connection");
}

#[test]
fn a_hangup_reloads_a_server_that_has_no_terminal() {
    let server = Server::start(&tool("one"), &[], &[]);
    server.hang_up();
    server.says("reloaded the configuration: 0 sources opened, 0 closed");
    write(server.folder.path(), &format!("{HEAD}{}{}", tool("one"), tool("two")));
    server.hang_up();
    server.says("reloaded the configuration: 1 source opened, 0 closed");
    server.stop();
}

#[test]
fn a_restart_is_asked_for_only_while_the_file_differs_from_what_is_applied() {
    let server = Server::start(&tool("one"), &[], &[]);
    let file = format!("{HEAD}{}", tool("one"));
    let restart = "restart to apply what has changed in [limits]";
    write(server.folder.path(), &format!("{file}[limits]\ncalls = 7\n"));
    server.says(restart);
    // Nothing was applied in the meantime.
    server.hang_up();
    server.says(restart);
    write(server.folder.path(), &file);
    server.hang_up();
    server.says("reloaded the configuration");
    let said = server.stop();
    assert!(!said.iter().any(|line| line.contains("restart")), "{said:?}");
}
