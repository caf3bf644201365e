//! `[[skills]]`: a folder of skills, as any client sees it.

use std::fs;
use std::path::Path;
use std::process::Command;

use sabir_testkit::leftovers::wait_until;
use serde_json::{Value, json};

use crate::tasks::{PATIENCE, Server};
use crate::{folder_with, sabir, seen};

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn skill(name: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: About {name}\nmetadata:\n  n: [1, two]\n---\n# {name}\n"
    )
}

fn folder() -> tempfile::TempDir {
    let folder = folder_with("[[skills]]\npath = \"skills\"\n");
    write(folder.path(), "skills/one/SKILL.md", &skill("one"));
    write(folder.path(), "skills/one/scripts/a b.sh", "echo hello\n");
    fs::write(folder.path().join("skills/one/logo.bin"), [0xff, 0, 0xfe]).unwrap();
    write(folder.path(), "skills/one/.hidden", "not served");
    write(folder.path(), "skills/team/two/SKILL.md", &skill("two"));
    write(folder.path(), "skills/wrong/SKILL.md", &skill("other"));
    folder
}

#[test]
fn a_skill_is_listed_with_all_its_files_and_their_digests() {
    let folder = folder();
    let mut server = Server::start(folder.path());
    let capabilities = server.ask("server/discover", json!({}))["result"]["capabilities"].clone();
    assert_eq!(
        capabilities["extensions"],
        json!({ "io.modelcontextprotocol/skills": { "directoryRead": true } })
    );
    let listed = server.ask("skills/list", json!({}))["result"].clone();
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"].is_string(), "{listed}");
    let uris: Vec<_> = listed["skills"].as_array().unwrap().iter().map(|s| &s["uri"]).collect();
    assert_eq!(uris, ["skill://one/SKILL.md", "skill://team/two/SKILL.md"]);
    let one = &listed["skills"][0];
    assert_eq!(
        one["frontmatter"],
        json!({ "name": "one", "description": "About one", "metadata": { "n": [1, "two"] } })
    );
    let got = server.ask("skills/get", json!({ "uri": "skill://one/SKILL.md" }));
    assert_eq!(got["result"]["skill"], *one);
    let files = one["resources"].as_array().unwrap();
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        let path = file["uri"].as_str().unwrap().replace("skill://", "skills/").replace("%20", " ");
        let path = folder.path().join(path);
        let sum = Command::new("sha256sum").arg(&path).output().unwrap().stdout;
        let sum = String::from_utf8(sum).unwrap();
        assert_eq!(file["digest"], format!("sha256:{}", sum.split_once(' ').unwrap().0));
        assert_eq!(file["size"], fs::metadata(&path).unwrap().len());
    }
    let read = server.ask("resources/read", json!({ "uri": "skill://one/scripts/a%20b.sh" }));
    assert_eq!(read["result"]["contents"][0]["text"], "echo hello\n", "{read}");
    let read = server.ask("resources/read", json!({ "uri": "skill://one/logo.bin" }));
    assert_eq!(read["result"]["contents"][0]["blob"], "/wD+", "{read}");
    for (method, uri) in [
        ("skills/get", "skill://wrong/SKILL.md"),
        ("skills/get", "skill://one"),
        ("resources/read", "skill://one/.hidden"),
        ("resources/directory/read", "skill://one/SKILL.md"),
        ("resources/directory/read", "skill://none"),
    ] {
        let refused = server.ask(method, json!({ "uri": uri }));
        assert_eq!(refused["error"]["code"], -32602, "{method} {uri}: {refused}");
    }
    server.kill();
}

#[test]
fn folders_are_listed_and_other_clients_see_resources_and_prompts() {
    let folder = folder();
    let mut server = Server::start(folder.path());
    let mut children = |uri: &str| -> Vec<(String, String)> {
        let read = server.ask("resources/directory/read", json!({ "uri": uri }));
        let all = read["result"]["resources"].as_array().expect("a folder").clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        all.iter().map(|child| (text(&child["uri"]), text(&child["mimeType"]))).collect()
    };
    let of = |uri: &str, kind: &str| (uri.to_owned(), kind.to_owned());
    assert_eq!(
        children("skill://one"),
        [
            of("skill://one/SKILL.md", "text/markdown"),
            of("skill://one/logo.bin", "application/octet-stream"),
            of("skill://one/scripts", "inode/directory"),
        ]
    );
    assert_eq!(children("skill://one/scripts").len(), 1);
    let listed = server.ask("resources/list", json!({}));
    let first = &listed["result"]["resources"][0];
    assert_eq!(
        (&first["uri"], &first["name"], &first["description"], &first["mimeType"]),
        (
            &json!("skill://one/SKILL.md"),
            &json!("one"),
            &json!("About one"),
            &json!("text/markdown")
        )
    );
    let prompt = server.ask("prompts/get", json!({ "name": "two" }));
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "# two\n", "{prompt}");
    server.kill();
}

#[test]
fn a_client_that_knows_tools_only_reads_skills_by_a_tool() {
    let folder = folder();
    let configuration = "[[skills]]\npath = \"skills\"\ntool = \"read_skill\"\n";
    fs::write(folder.path().join("sabir.toml"), configuration).unwrap();
    let mut server = Server::start(folder.path());
    let tools = server.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 1, "{tools}");
    let description = tools[0]["description"].as_str().unwrap();
    assert!(description.ends_with("\n\n- one: About one\n- two: About two"), "{description}");
    let mut read = |arguments: Value| {
        let params = json!({ "name": "read_skill", "arguments": arguments });
        server.ask("tools/call", params)["result"].clone()
    };
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(&read(json!({}))), "- one: About one\n- two: About two");
    let told = text(&read(json!({ "skill": "one" })));
    assert!(
        told.starts_with("# one\n") && told.ends_with("- logo.bin\n- scripts/a b.sh"),
        "{told}"
    );
    assert_eq!(text(&read(json!({ "skill": "two" }))), "# two\n", "it has no other files");
    let file = |path: &str| json!({ "skill": "one", "file": path });
    assert_eq!(text(&read(file("scripts/a b.sh"))), "echo hello\n");
    let binary = read(file("logo.bin"));
    assert_eq!(binary["content"][0]["resource"]["blob"], "/wD+", "{binary}");
    for wrong in [json!({ "skill": "wrong" }), file(".hidden"), file("../two/SKILL.md")] {
        let refused = read(wrong);
        assert_eq!(refused["isError"], true, "{refused}");
    }
    // The description names the new skill.
    write(folder.path(), "skills/three/SKILL.md", &skill("three"));
    wait_until("the new skill is told", PATIENCE, || {
        server.ask("tools/list", json!({})).to_string().contains("About three")
    });
    server.kill();
}

#[test]
fn generated_skills_are_listed_without_digests_and_read_all_the_same() {
    let folder = folder();
    let configuration = "[[skills]]\npath = \"skills\"\ndynamic = true\ntool = \"read\"\n";
    fs::write(folder.path().join("sabir.toml"), configuration).unwrap();
    let mut server = Server::start(folder.path());
    let listed = server.ask("skills/list", json!({}))["result"]["skills"].clone();
    assert_eq!(listed[0]["frontmatter"]["name"], "one");
    assert_eq!(listed[0]["resources"], "dynamic", "{listed}");
    let read = server.ask("resources/directory/read", json!({ "uri": "skill://one/scripts" }));
    let uri = read["result"]["resources"][0]["uri"].clone();
    assert_eq!(uri, "skill://one/scripts/a%20b.sh", "{read}");
    let read = server.ask("resources/read", json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"][0]["text"], "echo hello\n", "{read}");
    let refused = server.ask("resources/directory/read", json!({ "uri": "skill://one/none" }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let call = json!({ "name": "read", "arguments": { "skill": "one", "file": "scripts/a b.sh" } });
    let told = server.ask("tools/call", call);
    assert_eq!(told["result"]["content"][0]["text"], "echo hello\n", "{told}");
    server.kill();
}

#[test]
fn a_change_of_the_folder_is_served() {
    let folder = folder();
    let mut server = Server::start(folder.path());
    write(folder.path(), "skills/three/SKILL.md", &skill("three"));
    let get = json!({ "uri": "skill://three/SKILL.md" });
    wait_until("the new skill is served", PATIENCE, || {
        server.ask("skills/get", get.clone()).get("result").is_some()
    });
    fs::remove_dir_all(folder.path().join("skills/three")).unwrap();
    wait_until("the old skill is gone", PATIENCE, || {
        server.ask("skills/get", get.clone()).get("error").is_some()
    });
    server.kill();
}

#[test]
fn what_is_not_served_is_reported() {
    let folder = folder();
    let said = seen(&sabir(folder.path(), &["check"]));
    assert!(said.starts_with("exit 0"), "{said}");
    assert!(
        said.contains("wrong: the folder must have the name of the skill (expected `other`)"),
        "{said}"
    );
    assert!(said.contains("skills skills: 2 skills, 4 files"), "{said}");
    // A list of files must be complete, so a skill is served as a whole or not at all.
    let deep = format!("skills/team/two/{}deep.txt", "a/".repeat(20));
    write(folder.path(), &deep, "beyond the limit");
    let said = seen(&sabir(folder.path(), &["check"]));
    assert!(said.contains("skills skills: 1 skill, 3 files"), "{said}");
    assert!(said.contains("team/two: the skill is not complete without team/two/a/a"), "{said}");
    let missing = folder_with("[[skills]]\npath = \"nowhere\"\n");
    let said = seen(&sabir(missing.path(), &["check"]));
    assert!(said.contains("skills: folder not found"), "{said}");
}
