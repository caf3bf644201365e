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
    let missing = folder_with("[[skills]]\npath = \"nowhere\"\n");
    let said = seen(&sabir(missing.path(), &["check"]));
    assert!(said.contains("skills: folder not found"), "{said}");
}
