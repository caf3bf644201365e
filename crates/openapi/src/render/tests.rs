use super::*;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn format(style: Style, explode: bool) -> Format {
    Format { style, explode, reserved: false, json: false }
}

/// The examples of the specification of OpenAPI, "Style Examples".
const COLORS: [&str; 3] =
    ["\"blue\"", r#"["blue","black","brown"]"#, r#"{"R":100,"G":200,"B":150}"#];

#[test]
fn paths_are_written_as_in_the_specification() {
    let check = |style, explode, expected: [&str; 3]| {
        let written = COLORS.map(|json| path("color", format(style, explode), &raw(json)).unwrap());
        assert_eq!(written, expected);
    };
    check(
        Style::Matrix,
        false,
        [";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"],
    );
    check(
        Style::Matrix,
        true,
        [";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"],
    );
    check(Style::Label, false, [".blue", ".blue,black,brown", ".R,100,G,200,B,150"]);
    check(Style::Label, true, [".blue", ".blue.black.brown", ".R=100.G=200.B=150"]);
    check(Style::Simple, false, ["blue", "blue,black,brown", "R,100,G,200,B,150"]);
    check(Style::Simple, true, ["blue", "blue,black,brown", "R=100,G=200,B=150"]);
}

#[test]
fn queries_are_written_as_in_the_specification() {
    let check = |style, explode, expected: [&str; 3]| {
        let written = COLORS.map(|json| {
            let mut pairs = Pairs::new("&");
            pairs.add("color", format(style, explode), &raw(json)).unwrap();
            pairs.text
        });
        assert_eq!(written, expected);
    };
    check(Style::Form, false, ["color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"]);
    check(
        Style::Form,
        true,
        ["color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"],
    );
    check(
        Style::Space,
        false,
        ["color=blue", "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"],
    );
    check(
        Style::Pipe,
        false,
        ["color=blue", "color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"],
    );
    check(
        Style::DeepObject,
        true,
        [
            "color=blue",
            "color%5B%5D=blue&color%5B%5D=black&color%5B%5D=brown",
            "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
        ],
    );
}

#[test]
fn numbers_keep_their_digits_and_values_their_characters() {
    let query = |json: &str, format: Format| {
        let mut pairs = Pairs::new("&");
        pairs.add("a b", format, &raw(json)).unwrap();
        pairs.text
    };
    let plain = format(Style::Form, true);
    assert_eq!(query("12345678901234567890123", plain), "a%20b=12345678901234567890123");
    assert_eq!(query("1.10", plain), "a%20b=1.10");
    assert_eq!(query(r#""x&y=z/é+,""#, plain), "a%20b=x%26y%3Dz%2F%C3%A9%2B%2C");
    assert_eq!(
        query(r#""x&y=z/+,#""#, Format { reserved: true, ..plain }),
        "a%20b=x%26y%3Dz/%2B,%23"
    );
    assert_eq!(
        query(r#"{"a":[1]}"#, Format { json: true, ..plain }),
        "a%20b=%7B%22a%22%3A%5B1%5D%7D"
    );
    assert_eq!(query("null", plain), "");
    assert_eq!(query("[]", plain), "");
    assert_eq!(query(r#"["a,b","c"]"#, format(Style::Form, false)), "a%20b=a%2Cb,c");
    assert_eq!(
        path("p", format(Style::Simple, false), &raw(r#""../a b""#)).unwrap(),
        "%2E%2E%2Fa%20b"
    );
}

#[test]
fn nested_values_have_brackets_up_to_a_limit() {
    let mut pairs = Pairs::new("&");
    let value = raw(r#"{"a":{"b":[1,{"c":null,"d":2}]}}"#);
    pairs.add("x", format(Style::DeepObject, true), &value).unwrap();
    assert_eq!(pairs.text, "x%5Ba%5D%5Bb%5D%5B%5D=1&x%5Ba%5D%5Bb%5D%5B1%5D%5Bd%5D=2");
    let deep = raw(&format!("{}1{}", r#"{"k":"#.repeat(100), "}".repeat(100)));
    let mut pairs = Pairs::new("&");
    pairs.add("x", format(Style::DeepObject, true), &deep).unwrap();
    assert_eq!(pairs.text.matches("%5Bk%5D=").count(), 1);
    assert_eq!(pairs.text.split('=').next().unwrap().matches("%5Bk%5D").count(), MAX_BRACKETS);
}

#[test]
fn headers_are_plain_and_cannot_have_line_ends() {
    let simple = format(Style::Simple, false);
    assert_eq!(header("h", simple, &raw(COLORS[1])).unwrap(), "blue,black,brown");
    assert_eq!(header("h", simple, &raw(COLORS[2])).unwrap(), "R,100,G,200,B,150");
    assert_eq!(
        header("h", format(Style::Simple, true), &raw(COLORS[2])).unwrap(),
        "R=100,G=200,B=150"
    );
    for bad in ["\"a\\r\\nB: c\"", "\"\\u0000\"", "\"é\""] {
        assert_eq!(header("h", simple, &raw(bad)), Err(ArgumentError::Header("h".into())));
    }
}
