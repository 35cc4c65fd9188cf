//! The members of an object, by key and type, as rt-app asks json-c for them.

use super::json::{Member, Node, Value};
use wakelab_machine::Ns;

/// Something that a file may not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// The place of the word.
    pub at: usize,
    pub word: String,
    pub expected: String,
}

pub(super) type Checked<T> = Result<T, Problem>;

/// The members of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    pub members: &'a [Member],
}

impl<'a> Fields<'a> {
    /// Those of a node that must be an object.
    pub fn of(node: &'a Node, name: &str) -> Checked<Fields<'a>> {
        match &node.value {
            Value::Object(members) => Ok(Fields { members }),
            _ => Err(mismatch(node, name, "an object")),
        }
    }

    /// The value of a key: the last of several, and none if that is null (json-c keeps one).
    pub fn get(self, key: &str) -> Option<&'a Node> {
        let member = self.members.iter().rev().find(|member| member.key == key)?;
        (member.node.value != Value::Null).then_some(&member.node)
    }

    /// A whole number, of which json-c gives the nearest with 32 bits.
    pub fn int(self, key: &str) -> Checked<Option<i32>> {
        self.get(key).map(|node| int(node, key)).transpose()
    }

    pub fn bool(self, key: &str) -> Checked<Option<bool>> {
        let read = |node: &Node| match node.value {
            Value::Bool(value) => Ok(value),
            _ => Err(mismatch(node, key, "true or false")),
        };
        self.get(key).map(read).transpose()
    }

    pub fn text(self, key: &str) -> Checked<Option<&'a str>> {
        self.get(key).map(|node| text(node, key)).transpose()
    }

    /// An array of whole numbers from 0 on, of which there is at least one.
    pub fn numbers(self, key: &str) -> Checked<Option<Vec<u32>>> {
        const EXPECTED: &str = "an array of numbers from 0 on";
        let Some(node) = self.get(key) else {
            return Ok(None);
        };
        let Value::Array(elements) = &node.value else {
            return Err(mismatch(node, key, EXPECTED));
        };
        if elements.is_empty() {
            return Err(mismatch(node, key, "at least one number"));
        }
        let number = |node: &Node| {
            let number = int(node, key)?;
            u32::try_from(number).map_err(|_| mismatch(node, key, EXPECTED))
        };
        elements
            .iter()
            .map(number)
            .collect::<Checked<_>>()
            .map(Some)
    }
}

pub(super) fn int(node: &Node, key: &str) -> Checked<i32> {
    match node.value {
        Value::Int(value) => Ok(value.clamp(i32::MIN.into(), i32::MAX.into()) as i32),
        _ => Err(mismatch(node, key, "a whole number")),
    }
}

/// A whole number from 0 on.
pub(super) fn count(node: &Node, key: &str) -> Checked<u64> {
    let number = int(node, key)?;
    u64::try_from(number).map_err(|_| mismatch(node, key, "a number from 0 on"))
}

/// Microseconds, from 0 on.
pub(super) fn micros(node: &Node, key: &str) -> Checked<Ns> {
    count(node, key).map(|us| Ns(us * 1000))
}

pub(super) fn text<'a>(node: &'a Node, key: &str) -> Checked<&'a str> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err(mismatch(node, key, "a string")),
    }
}

/// A value of a key is not what it should be.
pub(super) fn mismatch(node: &Node, key: &str, expected: &str) -> Problem {
    Problem {
        at: node.at,
        word: written(&node.value),
        expected: format!("{expected} for '{key}'"),
    }
}

/// A value as errors repeat it.
fn written(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Double(value) => format!("{value:?}"),
        Value::Text(text) => text.clone(),
        Value::Array(_) => "[".to_owned(),
        Value::Object(_) => "{".to_owned(),
    }
}
