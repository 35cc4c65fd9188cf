//! Numbers, by json-c's rules: which bytes belong to one, and what it is.

use super::{Fault, Reader, Value};

const EXPECTED: &str = "a number";

impl Reader<'_> {
    pub(super) fn number(&mut self, depth: usize) -> Result<Value, Fault> {
        let start = self.at;
        let is_double = self.number_bytes();
        let bytes = &self.text[start..self.at];
        let next = self.peek();
        if bytes == b"-" && matches!(next, Some(b'i' | b'I')) {
            return self.word("infinity", Value::Double(f64::NEG_INFINITY));
        }
        let ends = matches!(
            next,
            None | Some(b',' | b']' | b'}' | b'/' | b'i' | b'I' | b' ' | b'\t' | b'\n' | b'\r')
        );
        let value = match std::str::from_utf8(bytes) {
            Ok(word) if ends || depth == 0 => {
                if is_double {
                    double(word)
                } else {
                    int(word)
                }
            }
            _ => None,
        };
        value.ok_or(Fault {
            at: start,
            expected: EXPECTED,
        })
    }

    /// To the end of a number. Tells whether a point or an exponent was seen.
    fn number_bytes(&mut self) -> bool {
        let (mut exponent, mut double, mut minus, mut plus) = (false, false, true, false);
        while let Some(byte) = self.peek() {
            match byte {
                b'0'..=b'9' => (minus, plus) = (false, false),
                b'-' if minus => (minus, plus) = (false, false),
                b'+' if plus => (minus, plus) = (false, false),
                b'.' if !double => (double, minus, plus) = (true, true, true),
                b'e' | b'E' if !exponent => {
                    (exponent, double, minus, plus) = (true, true, true, true);
                }
                _ => break,
            }
            self.at += 1;
        }
        double
    }
}

fn int(word: &str) -> Option<Value> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let limit = if digits.len() < word.len() {
        i64::MIN
    } else {
        i64::MAX
    };
    Some(Value::Int(word.parse().unwrap_or(limit)))
}

/// `1e`, `1e+` and the like are taken without their end.
fn double(word: &str) -> Option<Value> {
    let mut word = word;
    while let [_, .., b'e' | b'E' | b'-' | b'+'] = word.as_bytes() {
        word = &word[..word.len() - 1];
    }
    word.parse().ok().map(Value::Double)
}
