//! What errors repeat of the text that they are about: files may hold anything, of any length, and an
//! error is one line on a terminal.

/// The most characters that are repeated.
const CHARS_MAX: usize = 64;

/// The text, cut after its first characters, with control characters escaped.
///
/// ```
/// assert_eq!(wakelab_machine::excerpt("two\nlines"), "two\\nlines");
/// ```
pub fn excerpt(text: &str) -> String {
    let mut short = String::new();
    let mut characters = text.chars();
    for character in characters.by_ref().take(CHARS_MAX) {
        push_printable(&mut short, character);
    }
    if characters.next().is_some() {
        short.push_str("...");
    }
    short
}

/// A message of a parser with what it quotes from the text cut. The TOML and JSON readers put values in
/// double quotes and keys in backticks.
pub fn excerpt_message(message: &str) -> String {
    let short = match (message.find('"'), message.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            let (before, rest) = message.split_at(first + 1);
            let (value, after) = rest.split_at(last - first - 1);
            format!("{before}{}{after}", excerpt(value))
        }
        _ => message.to_owned(),
    };
    let mut text = String::new();
    for (place, part) in short.split('`').enumerate() {
        if place > 0 {
            text.push('`');
        }
        if place % 2 == 1 {
            text.push_str(&excerpt(part));
        } else {
            part.chars().for_each(|one| push_printable(&mut text, one));
        }
    }
    text
}

fn push_printable(text: &mut String, character: char) {
    if character.is_control() {
        text.extend(character.escape_default());
    } else {
        text.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_and_printable_is_repeated_as_it_is() {
        for text in ["", "cores_per_llc = 3", "é\u{4e2d}'\"`"] {
            assert_eq!(excerpt(text), text);
        }
    }

    #[test]
    fn long_text_is_cut_and_control_characters_are_escaped() {
        assert_eq!(excerpt(&"é".repeat(100)), "é".repeat(CHARS_MAX) + "...");
        assert_eq!(excerpt("a\nb\u{1b}[31m\0"), "a\\nb\\u{1b}[31m\\u{0}");
    }

    #[test]
    fn only_what_a_message_quotes_is_cut() {
        let long = "x\"`y".repeat(50);
        for (message, start, end) in [
            (
                format!(
                    "unknown field `{}`, expected one of `a`, `b`",
                    "k".repeat(100)
                ),
                "unknown field `kk",
                "kk...`, expected one of `a`, `b`",
            ),
            (
                format!("invalid type: string \"{long}\", expected u64"),
                "invalid type: string \"x",
                "...\", expected u64",
            ),
            (
                format!("invalid\n{}", "value".repeat(20)),
                "invalid\\nvalue",
                "valuevalue",
            ),
        ] {
            let short = excerpt_message(&message);
            assert!(short.starts_with(start) && short.ends_with(end), "{short}");
            assert!(short.len() < 120, "{short}");
        }
    }
}
