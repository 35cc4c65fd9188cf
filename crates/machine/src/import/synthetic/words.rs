//! Taking a synthetic string apart.

use super::*;

/// A part of the string and the character at which it begins, from 1.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub text: String,
    pub place: usize,
}

/// The string and how far it is read.
struct Cursor {
    text: Vec<char>,
    at: usize,
}

impl Cursor {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Takes the character if it is next.
    fn take(&mut self, wanted: char) -> bool {
        let here = self.peek() == Some(wanted);
        self.at += usize::from(here);
        here
    }

    /// The characters up to one of these or a blank.
    fn word(&mut self, ends: &str) -> Word {
        let start = self.at;
        let inside = |c: char| !c.is_whitespace() && !ends.contains(c);
        while self.peek().is_some_and(inside) {
            self.at += 1;
        }
        Word {
            text: self.text[start..self.at].iter().collect(),
            place: start + 1,
        }
    }

    /// What is next, for an error.
    fn rest(&self) -> Word {
        let rest = self.text[self.at..].iter();
        Word {
            text: rest.take_while(|c| !c.is_whitespace()).collect(),
            place: self.at + 1,
        }
    }
}

/// Takes the string apart into levels.
pub(super) fn parse(text: &str) -> Result<Description, MachineError> {
    let mut cursor = Cursor {
        text: text.chars().collect(),
        at: 0,
    };
    let mut description = Description {
        levels: vec![Level {
            kind: Some(Type::Machine),
            width: 1,
            attached: 0,
            indexes: None,
            place: 1,
        }],
        attached_indexes: None,
        text: text.to_owned(),
    };
    let mut attached = 0;
    cursor.skip_blanks();
    if cursor.take('(') {
        attributes(&mut cursor)?;
    }
    loop {
        cursor.skip_blanks();
        let last = description.levels.len() - 1;
        let above = &mut description.levels[last];
        match cursor.peek() {
            None => return Ok(description),
            Some('[') => {
                let indexes = attached_node(&mut cursor)?;
                above.attached += 1;
                attached += above.width;
                if attached > ATTACHED_MAX {
                    let expected = format!("at most {ATTACHED_MAX} nodes in all before it");
                    return Err(wrong(&cursor.rest(), &expected));
                }
                description.attached_indexes = indexes.or(description.attached_indexes);
            }
            Some(_) => {
                let level = level(&mut cursor, above.width)?;
                if last + 1 >= LEVELS_MAX {
                    let expected = format!("at most {LEVELS_MAX} levels");
                    return Err(wrong(&description.word(&level), &expected));
                }
                description.levels.push(level);
            }
        }
    }
}

/// `[NUMANode(...)]`, and how such nodes are numbered if that is told.
fn attached_node(cursor: &mut Cursor) -> Result<Option<Word>, MachineError> {
    cursor.take('[');
    let name = cursor.word("(]");
    if type_of(&name.text) != Some(Type::Known(Kind::Node)) {
        return Err(wrong(&name, "NUMANode, as nothing else can be attached"));
    }
    let indexes = optional_attributes(cursor)?;
    if cursor.take(']') {
        Ok(indexes)
    } else {
        Err(wrong(&cursor.rest(), "']' after what is attached"))
    }
}

/// `TYPE:COUNT(...)`, or a count alone.
fn level(cursor: &mut Cursor, width_above: usize) -> Result<Level, MachineError> {
    let place = cursor.at + 1;
    let mut kind = None;
    if !cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        let name = cursor.word(":([])");
        kind = match type_of(&name.text) {
            None | Some(Type::Machine) => {
                let expected = "a type such as Package, Die, NUMANode, L3Cache, Core, PU or Group";
                return Err(wrong(&name, expected));
            }
            known => known,
        };
        if !cursor.take(':') {
            return Err(wrong(&cursor.rest(), "':' and a count after the type"));
        }
    }
    let count = cursor.word("([])");
    let arity = match count.text.parse::<usize>() {
        Ok(arity @ 1..=MAX_CPUS) => arity,
        _ => return Err(wrong(&count, &format!("a count from 1 to {MAX_CPUS}"))),
    };
    let width = width_above * arity;
    if width > MAX_CPUS {
        let expected = format!("at most {MAX_CPUS} CPUs in all, not {width}");
        return Err(wrong(&count, &expected));
    }
    Ok(Level {
        kind,
        width,
        attached: 0,
        indexes: optional_attributes(cursor)?,
        place,
    })
}

fn optional_attributes(cursor: &mut Cursor) -> Result<Option<Word>, MachineError> {
    if cursor.take('(') {
        attributes(cursor)
    } else {
        Ok(None)
    }
}

/// What stands in parentheses, without the first: the indexes, if there are any.
fn attributes(cursor: &mut Cursor) -> Result<Option<Word>, MachineError> {
    let mut indexes = None;
    loop {
        cursor.skip_blanks();
        if cursor.take(')') {
            return Ok(indexes);
        }
        let word = cursor.word(")");
        let (key, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
        match key {
            "size" | "memory" => {}
            "indexes" => {
                indexes = Some(Word {
                    text: value.to_owned(),
                    place: word.place + "indexes=".len(),
                });
            }
            _ => {
                let expected = "')', or indexes=..., size=... or memory=...";
                return Err(wrong(&word, expected));
            }
        }
    }
}
