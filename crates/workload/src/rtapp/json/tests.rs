use super::*;
use proptest::prelude::*;

fn value(text: &str) -> Value {
    read(text.as_bytes())
        .unwrap_or_else(|fault| panic!("{text}: {fault:?}"))
        .value
}

fn fault(text: &str) -> (usize, &'static str) {
    let fault = read(text.as_bytes()).expect_err(text);
    (fault.at, fault.expected)
}

fn ints(value: &Value) -> Vec<i64> {
    let Value::Array(nodes) = value else {
        panic!("{value:?}")
    };
    let int = |node: &Node| match node.value {
        Value::Int(int) => int,
        _ => panic!("{node:?}"),
    };
    nodes.iter().map(int).collect()
}

#[test]
fn comments_and_last_commas_are_taken() {
    let text = "/* first ** / */ [ 1, // one\n 2, /**/ 3 /* last */, ] trailing, whatever";
    assert_eq!(ints(&value(text)), [1, 2, 3]);
    assert_eq!(value("// only\n{}"), Value::Object(vec![]));
    assert!(matches!(value("{ 'a' : [] , }"), Value::Object(members) if members[0].key == "a"));
}

#[test]
fn keys_keep_their_order_and_their_repetitions() {
    let Value::Object(members) = value("{\"run\":1,\"sleep\":2,'run':3,}") else {
        panic!("an object")
    };
    let keys: Vec<_> = members
        .iter()
        .map(|m| (m.key.as_str(), m.at, m.node.at))
        .collect();
    let Value::Object(members) = value("{'suspend', 'suspend2'}") else {
        panic!("an object")
    };
    let alone = |member: &Member| member.node.value == Value::Text(String::new());
    assert!(members.len() == 2 && members.iter().all(alone));
    assert_eq!(keys, [("run", 1, 7), ("sleep", 9, 17), ("run", 19, 25)]);
}

#[test]
fn numbers_are_what_json_c_makes_of_them() {
    let long = "99999999999999999999";
    let text = format!("[0, 007, -5, -0, {long}, -{long}]");
    assert_eq!(ints(&value(&text)), [0, 7, -5, 0, i64::MAX, i64::MIN]);
    for (text, double) in [
        ("1.5", 1.5),
        ("1.", 1.0),
        ("1e3", 1e3),
        ("1e", 1.0),
        ("-2.5E-1", -0.25),
        ("3e+", 3.0),
    ] {
        assert_eq!(value(text), Value::Double(double), "{text}");
    }
    assert_eq!(value("-Infinity"), Value::Double(f64::NEG_INFINITY));
    assert_eq!(value("inFINity"), Value::Double(f64::INFINITY));
    assert!(matches!(value("NaN"), Value::Double(double) if double.is_nan()));
    for text in ["[-]", "[1x]", "[--1]", "[1.-5]", "[1:2]", "[-.e]"] {
        assert_eq!(fault(text), (1, "a number"), "{text}");
    }
}

#[test]
fn words_are_taken_in_any_case() {
    assert_eq!(value("TRUE"), Value::Bool(true));
    assert_eq!(value("False"), Value::Bool(false));
    assert_eq!(value("nULL"), Value::Null);
    assert_eq!(fault("[trie]"), (1, "true"));
    assert_eq!(fault("nil"), (0, "null"));
    assert_eq!(fault("[yes]"), (1, "a value"));
}

#[test]
fn strings_have_either_quote_escapes_and_many_lines() {
    for (text, expected) in [
        (r#""a\"\\\/\b\f\n\r\t'""#, "a\"\\/\u{8}\u{c}\n\r\t'"),
        ("'two\nlines \"'", "two\nlines \""),
        (r#""\u00e9\u4e2d\ud83d\ude00""#, "é\u{4e2d}\u{1f600}"),
        (
            r#""\ud83dx\ud83d\u0041\ude00""#,
            "\u{fffd}x\u{fffd}A\u{fffd}",
        ),
    ] {
        assert_eq!(value(text), Value::Text(expected.to_owned()), "{text}");
    }
    assert_eq!(
        read(b"'\xff'").unwrap().value,
        Value::Text("\u{fffd}".to_owned())
    );
    assert_eq!(fault("[\"open]"), (1, "a string that ends with its quote"));
    assert_eq!(fault(r"'\'"), (2, "an escape of JSON after '\\'"));
    assert_eq!(fault(r"'\u12g4'").1, "four hexadecimal digits after '\\u'");
}

#[test]
fn faults_name_their_place_and_what_was_expected() {
    for (text, expected) in [
        ("", (0, "a value")),
        ("{", (1, "a key in quotes, or '}'")),
        ("{a:1}", (1, "a key in quotes, or '}'")),
        ("{\"a\" 1}", (5, "':' after the key")),
        ("{\"a\":}", (5, "a value")),
        ("{\"a\":1 \"b\":2}", (7, "',' or '}'")),
        ("[1 2]", (3, "',' or ']'")),
        ("[,]", (1, "a value")),
        ("[1 / 2]", (3, "a comment, as '/*' or '//' begins one")),
        ("/* open", (0, "a comment that ends with '*/'")),
        ("[1, // open", (11, "a value")),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
}

#[test]
fn there_are_at_most_31_levels() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(read(nested(32).as_bytes()).is_ok());
    assert_eq!(
        fault(&nested(33)).1,
        "no more than 31 levels of objects and arrays"
    );
    assert!(
        read(&b"[{'':".repeat(100_000)).is_err(),
        "and no stack overflows"
    );
}

proptest! {
    #[test]
    fn any_bytes_give_a_value_or_a_fault(bytes: Vec<u8>) {
        check(&bytes);
    }

    #[test]
    fn anything_like_json_gives_a_value_or_a_fault(
        text in "[\\[\\]{}:,'\"/*\\\\u0-9a-f.eE+ \n\t-]{0,60}",
    ) {
        check(text.as_bytes());
    }
}

fn check(bytes: &[u8]) {
    match read(bytes) {
        Ok(node) => assert!(node.at < bytes.len()),
        Err(fault) => assert!(fault.at <= bytes.len() && !fault.expected.is_empty()),
    }
}
