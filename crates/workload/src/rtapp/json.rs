//! The JSON that json-c reads when it is not asked to be strict, which is how rt-app reads its files.
//!
//! Beyond JSON it takes comments (`/* */` and `//`), a comma after the last element, strings in single
//! quotes and over several lines, `TRUE`, `nAn` and `Infinity`, and numbers such as `007`, `1.` and `1e`.
//! It stops after the first value, whatever follows, and refuses more than 31 levels. (json-c 0.16,
//! `json_tokener.c`; the parsers of JSON5 and JSONC for Rust take either less or more.)
//!
//! What json-c drops is kept here: keys that occur twice. rt-app's events are keys, and its examples repeat
//! them; `workgen`, which comes with rt-app, makes them differ. It also gives a value to a `suspend` without
//! one, which is an empty string here.

mod number;
mod text;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// The place of its first byte.
    pub at: usize,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// What does not fit is taken as the nearest that does.
    Int(i64),
    Double(f64),
    Text(String),
    Array(Vec<Node>),
    /// In the order of the file, keys that occur twice included.
    Object(Vec<Member>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    /// The place of the key's first quote.
    pub at: usize,
    pub key: String,
    pub node: Node,
}

/// What is wrong with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The place where it was seen.
    pub at: usize,
    pub expected: &'static str,
}

/// Values may stand in so many others (`JSON_TOKENER_DEFAULT_DEPTH` is 32, with the outermost).
const MAX_DEPTH: usize = 31;

/// The first value of a text.
pub(super) fn read(text: &[u8]) -> Result<Node, Fault> {
    Reader { text, at: 0 }.value(0)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn fault<T>(&self, expected: &'static str) -> Result<T, Fault> {
        let at = self.at.min(self.text.len());
        Err(Fault { at, expected })
    }

    /// To the next byte that is neither blank nor of a comment.
    fn skip_blanks(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b'/') => self.skip_comment()?,
                other => return Ok(other),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), Fault> {
        let rest = &self.text[self.at..];
        let length = match rest.get(1) {
            Some(b'*') => {
                let end = rest[2..].windows(2).position(|pair| pair == b"*/");
                end.map(|end| end + 4)
            }
            Some(b'/') => rest.iter().position(|&byte| byte == b'\n'),
            _ => return self.fault("a comment, as '/*' or '//' begins one"),
        };
        match length {
            Some(length) => self.at += length,
            None if rest[1] == b'*' => return self.fault("a comment that ends with '*/'"),
            None => self.at = self.text.len(),
        }
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        let first = self.skip_blanks()?;
        let at = self.at;
        let value = match first {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(quote @ (b'"' | b'\'')) => Value::Text(self.text(quote)?),
            Some(b'0'..=b'9' | b'-') => self.number(depth)?,
            Some(b't' | b'T') => self.word("true", Value::Bool(true))?,
            Some(b'f' | b'F') => self.word("false", Value::Bool(false))?,
            Some(b'i' | b'I') => self.word("infinity", Value::Double(f64::INFINITY))?,
            Some(b'n' | b'N') => match self.text.get(self.at + 1) {
                Some(b'a' | b'A') => self.word("nan", Value::Double(f64::NAN))?,
                _ => self.word("null", Value::Null)?,
            },
            _ => return self.fault("a value"),
        };
        Ok(Node { at, value })
    }

    /// A word in any case.
    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, Fault> {
        let end = self.at + word.len();
        match self.text.get(self.at..end) {
            Some(found) if found.eq_ignore_ascii_case(word.as_bytes()) => {
                self.at = end;
                Ok(value)
            }
            _ => self.fault(word),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Fault> {
        self.at += 1;
        let mut elements = Vec::new();
        while self.skip_blanks()? != Some(b']') {
            elements.push(self.nested(depth)?);
            self.comma_or(b']', "',' or ']'")?;
        }
        self.at += 1;
        Ok(Value::Array(elements))
    }

    fn object(&mut self, depth: usize) -> Result<Value, Fault> {
        self.at += 1;
        let mut members = Vec::new();
        while self.skip_blanks()? != Some(b'}') {
            let at = self.at;
            let key = match self.peek() {
                Some(quote @ (b'"' | b'\'')) => self.text(quote)?,
                _ => return self.fault("a key in quotes, or '}'"),
            };
            let node = self.value_of(&key, depth)?;
            members.push(Member { at, key, node });
            self.comma_or(b'}', "',' or '}'")?;
        }
        self.at += 1;
        Ok(Value::Object(members))
    }

    /// What stands after a key. `suspend` may stand alone, as workgen takes it.
    fn value_of(&mut self, key: &str, depth: usize) -> Result<Node, Fault> {
        match self.skip_blanks()? {
            Some(b':') => {
                self.at += 1;
                self.nested(depth)
            }
            Some(b',' | b'}') if key.starts_with("suspend") => Ok(Node {
                at: self.at,
                value: Value::Text(String::new()),
            }),
            _ => self.fault("':' after the key"),
        }
    }

    fn nested(&mut self, depth: usize) -> Result<Node, Fault> {
        if depth + 1 > MAX_DEPTH {
            return self.fault("no more than 31 levels of objects and arrays");
        }
        self.value(depth + 1)
    }

    /// Past the comma after an element, which the last may lack.
    fn comma_or(&mut self, end: u8, expected: &'static str) -> Result<(), Fault> {
        match self.skip_blanks()? {
            Some(b',') => self.at += 1,
            Some(byte) if byte == end => {}
            _ => return self.fault(expected),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
