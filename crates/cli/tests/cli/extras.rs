//! Commands with files, a folder that depends on an argument, progress, and secrets by reference.

use std::fs;

use serde_json::json;
use tempfile::TempDir;

use crate::client::{Client, text};
use crate::{command, folder_with, sabir, seen};

#[test]
fn the_result_may_be_in_a_file() {
    let mut client = Client::start(
        "[[command]]\nname = \"t\"\nrun = [\"sh\", \"-c\", 'echo noise; printf \"$1\" > \"$2\"; echo $2 >&2', \
         \"sh\", \"{text}\", \"{output_file}\"]\ninput = { text = \"string\" }\noutput_file = \"r.png\"\n\
         output = \"image/png\"\n\
         [[command]]\nname = \"lazy\"\nrun = [\"true\", \"{output_file}\"]\noutput_file = \"r\"\n\
         [[command]]\nname = \"large\"\nrun = [\"cp\", \"/bin/ls\", \"{output_file}\"]\noutput_file = \"r\"\n\
         max_output = \"1KB\"\n\
         [[command]]\nname = \"link\"\nrun = [\"ln\", \"-s\", \"/etc/passwd\", \"{output_file}\"]\n\
         output_file = \"r\"\n\
         [[command]]\nname = \"pipe\"\nrun = [\"mkfifo\", \"{output_file}\"]\noutput_file = \"r\"\n",
    );
    client.initialize();
    let result = client.call("t", json!({"text": "abc"}));
    assert_eq!(
        result["content"][0],
        json!({"type": "image", "data": "YWJj", "mimeType": "image/png"})
    );
    for (tool, expected) in [
        ("lazy", "did not write its output file"),
        ("large", "more than 1024 bytes"),
        ("link", "not a regular file"),
        ("pipe", "not a regular file"),
    ] {
        let result = client.call(tool, json!({}));
        assert_eq!(result["isError"], true);
        assert!(text(&result).contains(expected), "{result}");
    }
}

#[test]
fn a_file_is_handed_over_as_a_temporary_path_and_removed() {
    let temporary = TempDir::new().unwrap();
    let folder = folder_with(
        "[[command]]\nname = \"t\"\nrun = [\"sh\", \"-c\", 'echo \"$1\"; cat \"$1\"', \"sh\", \"{picture}\"]\n\
         input = { picture = \"file\" }\nenv = { TMPDIR = true }\n\
         [[command]]\nname = \"maybe\"\nrun = [\"echo\", \"{picture?}\"]\ninput = { picture = \"file?\" }\n",
    );
    let mut client = Client::start_with(folder, &[("TMPDIR", temporary.path().to_str().unwrap())]);
    client.initialize();
    let listed = client.ask("tools/list", json!({}));
    let schema = &listed["result"]["tools"][0]["inputSchema"]["properties"]["picture"];
    assert_eq!(schema["contentEncoding"], "base64", "{listed}");
    for (sent, name) in
        [("aGVsbG8=", "picture"), ("data:image/jpeg;base64,aGVs bG8=", "picture.jpg")]
    {
        let result = client.call("t", json!({"picture": sent}));
        let (path, content) = text(&result).split_once('\n').unwrap();
        assert!(path.ends_with(&format!("/{name}")), "{path}");
        assert_eq!(content, "hello");
        assert!(!std::path::Path::new(path).exists());
    }
    assert_eq!(text(&client.call("maybe", json!({}))), "");
    let refused = client.call("t", json!({"picture": "~not~"}));
    assert!(text(&refused).contains("`picture` is not a file in Base64"), "{refused}");
    client.finish();
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn a_working_directory_is_confined_to_its_root() {
    let folder = folder_with(
        "[[command]]\nname = \"t\"\nrun = [\"pwd\"]\ncwd = \"projects/{project}/src\"\n\
         input = { project = \"string\" }\n",
    );
    for path in ["projects/a/src", "outside/src", "projects/b"] {
        fs::create_dir_all(folder.path().join(path)).unwrap();
    }
    std::os::unix::fs::symlink(folder.path().join("outside"), folder.path().join("projects/link"))
        .unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut client = Client::start_in(folder);
    client.initialize();
    let result = client.call("t", json!({"project": "a"}));
    assert_eq!(text(&result), root.join("projects/a/src").to_str().unwrap());
    for project in ["../outside", "link", "b", "nowhere", "/etc", "a/../../outside"] {
        let result = client.call("t", json!({"project": project}));
        assert!(text(&result).contains("there is no folder"), "{project}: {result}");
    }
}

#[test]
fn progress_is_found_in_the_output() {
    let mut client = Client::start(
        "[[command]]\nname = \"t\"\nrun = [\"printf\", 'start\\n1/3\\n2/3 two\\n1/3 back\\n\\r2/3\\r3/3\\ndone\\n']\n\
         progress = '(\\d+)/(\\d+)'\n",
    );
    client.initialize();
    let params = json!({"name": "t", "arguments": {}, "_meta": {"progressToken": "p"}});
    let answer = client.ask("tools/call", params);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().ends_with("done"), "{answer}");
    let seen: Vec<_> = client
        .notes
        .iter()
        .filter(|note| note["method"] == "notifications/progress")
        .map(|note| {
            (note["params"]["progress"].as_f64().unwrap(), note["params"]["total"].as_f64())
        })
        .collect();
    assert_eq!(seen, [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]);
}

#[test]
fn secrets_are_references_and_nothing_is_inherited() {
    let file = "[[command]]\nname = \"t\"\nrun = [\"env\"]\n\
                env = { A = { env = \"SABIR_TEST_SECRET\" }, B = { file = \"secret\" } }\n";
    let folder = folder_with(file);
    fs::write(folder.path().join("secret"), "from a file\n").unwrap();
    let mut client = Client::start_with(folder, &[("SABIR_TEST_SECRET", "from a variable")]);
    client.initialize();
    let result = client.call("t", json!({}));
    let mut lines: Vec<_> =
        text(&result).lines().filter(|line| !line.starts_with("PATH=")).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["A=from a variable", "B=from a file"]);
    let wrong = folder_with(&file.replace("\"secret\"", "\"nowhere\""));
    let said =
        seen(&command(wrong.path(), &["check"]).env("SABIR_TEST_SECRET", "x").output().unwrap());
    assert!(said.contains("env: `B` cannot be read: No such file"), "{said}");
}

#[test]
fn mistakes_in_these_keys_are_explained() {
    for (rest, expected) in [
        ("run = [\"true\"]\noutput_file = \"r\"", "input.output_file: is not used"),
        ("run = [\"true\", \"{output_file}\"]\noutput_file = \"../r\"", "invalid file name `../r`"),
        ("run = [\"true\"]\nprogress = '\\d+'", "invalid progress pattern"),
        ("run = [\"true\"]\nprogress = '('", "`progress = '(\\d+)/(\\d+)'`"),
        ("run = [\"true\"]\ncwd = \"{who}\"", "cwd: unknown argument `who`"),
        ("run = [\"true\"]\ncwd = \"nowhere/{x}\"\ninput.x = \"string\"", "folder not found"),
        ("run = [\"echo\", \"{x}\"]\ninput.x = \"file[]\"", "a list of files is not supported"),
        ("run = [\"true\"]\nenv.A = { fiel = \"x\" }", "`A` has an invalid reference"),
    ] {
        let folder = folder_with(&format!("[[command]]\nname = \"t\"\n{rest}\n"));
        let said = seen(&sabir(folder.path(), &["check"]));
        assert!(said.starts_with("exit 3") && said.contains(expected), "{rest}\n{said}");
    }
}
