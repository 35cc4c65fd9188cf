//! What is said on standard error.

use std::io::{self, Write as _};

/// Says one line. Whoever has closed standard error does not want to hear it: the exit code still tells.
///
/// The line may repeat words of the command line or of a file: control characters are escaped, and of what
/// is longer than any sentence the middle is left out.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", one_line(text));
}

/// The most characters at the start that are kept; a path can have 4096 bytes.
const HEAD: usize = 4500;
/// The most at the end.
const TAIL: usize = 500;

fn one_line(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let escaped = |part: &[char]| {
        let mut line = String::new();
        for character in part {
            if character.is_control() {
                line.extend(character.escape_default());
            } else {
                line.push(*character);
            }
        }
        line
    };
    if characters.len() <= HEAD + TAIL {
        return escaped(&characters);
    }
    let (head, rest) = characters.split_at(HEAD);
    let tail = &rest[rest.len() - TAIL..];
    format!("{} [...] {}", escaped(head), escaped(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_said_as_it_is() {
        let text = "error: d\u{e9}j\u{e0}-vu.toml:1: expected 'x'";
        assert_eq!(one_line(text), text);
    }

    #[test]
    fn control_characters_and_endless_words_stay_one_short_line() {
        assert_eq!(one_line("a\nb\u{1b}[2J"), "a\\nb\\u{1b}[2J");
        let line = one_line(&format!("error: '{}': expected less", "x".repeat(100_000)));
        assert!(
            line.len() < 5100 && line.ends_with("': expected less"),
            "{line}"
        );
    }
}
