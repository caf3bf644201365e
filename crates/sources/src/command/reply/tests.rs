use std::time::Duration;

use sabir_wire::types::ContentKind;

use super::*;

fn finish(stdout: &[u8]) -> Finish {
    Finish {
        success: true,
        exit: Some(Exit::Code(0)),
        limit: None,
        stdout: stdout.to_vec(),
        hold: sabir_budget::memory().take_anyway(0),
        stderr: Vec::new(),
        stderr_cut: 0,
    }
}

fn failed(code: i32, stdout: &[u8], stderr: &[u8]) -> Finish {
    let (exit, stderr) = (Some(Exit::Code(code)), stderr.to_vec());
    Finish { success: false, exit, stderr, ..finish(stdout) }
}

fn program() -> Program {
    Program { timeout: Duration::from_millis(1500), ..Program::new("/x".into(), "/".into()) }
}

fn texts(reply: &ToolReply) -> Vec<&str> {
    let text = |content| match content {
        &Content { kind: ContentKind::Text(ref text), .. } => text.as_str(),
        other => panic!("{other:?} is not text"),
    };
    reply.content.iter().map(text).collect()
}

fn told(finish: Finish) -> Vec<String> {
    let reply = reply("t", &Output::Text, &program(), finish);
    assert!(reply.is_error);
    assert_eq!(reply.structured, None);
    texts(&reply).into_iter().map(str::to_owned).collect()
}

#[test]
fn text_loses_its_last_line_end_and_nothing_else() {
    for (written, expected) in [
        (&b"a\n"[..], "a"),
        (b"a\r\n", "a"),
        (b"a\n\n", "a\n"),
        (b" a ", " a "),
        (b"", ""),
        (b"\n", ""),
        (b"a\rb", "a\rb"),
        (b"\xff\n", "\u{fffd}"),
    ] {
        let reply = reply("t", &Output::Text, &program(), finish(written));
        assert_eq!(texts(&reply), [expected]);
        assert!(!reply.is_error && reply.structured.is_none());
    }
}

#[test]
fn json_becomes_one_line_whose_tokens_stay_as_written() {
    let json = b"{\n\"a b\": [1.10, 12345678901234567890123],\r\n\"c\\n\": \" x \"\n}\n";
    let reply = reply("t", &Output::Json(None), &program(), finish(json));
    let expected = r#"{ "a b": [1.10, 12345678901234567890123],  "c\n": " x " }"#;
    assert_eq!(reply.structured.unwrap().text(), expected);
    assert_eq!(reply.content, []);
}

#[test]
fn output_that_is_not_json_is_a_failure_that_shows_it() {
    for written in [&b""[..], b"1 2", b"{\"a\":1}}", b"[1,]"] {
        let reply = reply("t", &Output::Json(None), &program(), finish(written));
        assert!(reply.is_error);
        assert_eq!(reply.structured, None);
        assert!(texts(&reply)[0].starts_with("The program failed: the output is not JSON: "));
        let shown = texts(&reply).get(1).map_or("", |text| text);
        assert_eq!(shown.as_bytes(), written);
    }
}

#[test]
fn bytes_become_content_by_their_media_type() {
    let kind = |mime: &str, bytes: &[u8]| {
        let output = Output::Bytes(mime.try_into().unwrap());
        let reply = reply("t", &output, &program(), finish(bytes));
        reply.content.into_iter().next().unwrap().kind
    };
    let (data, png, wav) = ("AAH/".to_owned(), "image/png".to_owned(), "audio/wav".to_owned());
    let bytes = b"\x00\x01\xff";
    assert_eq!(kind("image/png", bytes), ContentKind::Image { data: data.clone(), mime_type: png });
    assert_eq!(kind("audio/wav", bytes), ContentKind::Audio { data, mime_type: wav });
    let pdf = ResourceContents::blob("command:///t", "application/pdf", bytes);
    assert_eq!(kind("application/pdf", bytes), ContentKind::Resource(pdf));
    let csv = ResourceContents::text("command:///t", "text/csv", "a,b\n");
    assert_eq!(kind("text/csv", b"a,b\n"), ContentKind::Resource(csv));
}

#[test]
fn a_media_type_is_two_names_and_parameters() {
    for good in ["image/png", "application/vnd.api+json", "text/csv; charset=utf-8", "a/b;c"] {
        assert_eq!(MimeType::try_from(good).unwrap().as_str(), good);
    }
    for bad in ["", "png", "image/", "/png", "image/png/x", "image /png", "a/b;\n", "a/ü"] {
        assert_eq!(MimeType::try_from(bad), Err(BadMimeType(bad.to_owned())));
    }
}

#[test]
fn a_failure_has_the_end_of_stderr_the_reason_and_the_output() {
    assert_eq!(told(failed(2, b"", b"no such file\n")), ["no such file\n(exit code 2)"]);
    assert_eq!(told(failed(1, b"", b" \n")), ["The program failed: exit code 1"]);
    assert_eq!(
        told(failed(1, b"3 tests failed\n", b"")),
        ["The program failed: exit code 1", "3 tests failed"]
    );
    let cut = Finish { stderr_cut: 1, ..failed(1, b"\x89PNG\xff", b"the end") };
    assert_eq!(told(cut), ["… the end\n(exit code 1)"]);
}

#[test]
fn a_failure_shows_the_end_of_a_long_output() {
    let fits = vec![b'x'; OUTPUT_TAIL];
    assert_eq!(told(failed(1, &fits, b""))[1].len(), OUTPUT_TAIL);
    // The cut is inside the first character.
    let long = ["é".as_bytes(), &fits[1..]].concat();
    assert_eq!(told(failed(1, &long, b""))[1], format!("… {}", "x".repeat(OUTPUT_TAIL - 1)));
    assert_eq!(told(failed(1, b"caf\xc3", b""))[1], "caf");
}

#[test]
fn every_limit_has_a_message() {
    let limits = super::super::Limits { memory: None, cpu_seconds: Some(3), file_size: Some(7) };
    let program = Program { limits, max_output: 10, ..program() };
    let told = |limit, exit| {
        let finish = Finish { limit, exit, ..failed(1, b"", b"") };
        reason(&finish, &program)
    };
    assert_eq!(told(Some(Limit::Time), None), "stopped: it ran longer than 1.5s");
    assert_eq!(
        told(Some(Limit::Output(Stream::Output)), None),
        "stopped: it wrote more than 10 bytes to standard output"
    );
    assert_eq!(
        told(Some(Limit::Output(Stream::Error)), None),
        "stopped: it wrote more than 10 bytes to standard error"
    );
    assert_eq!(told(Some(Limit::Cpu), None), "stopped: it used more than 3 s of CPU time");
    assert_eq!(told(Some(Limit::FileSize), None), "stopped: it wrote a file of more than 7 bytes");
    assert_eq!(told(None, Some(Exit::Signal(9))), "killed by SIGKILL");
    assert_eq!(told(None, Some(Exit::Signal(63))), "killed by signal 63");
}
