//! Strings: any bytes to the closing quote, with JSON's escapes.

use super::{Fault, Reader};

const HEX: &str = "four hexadecimal digits after '\\u'";

impl Reader<'_> {
    /// The string that begins here; bytes that are no UTF-8 become replacement characters.
    pub(super) fn text(&mut self, quote: u8) -> Result<String, Fault> {
        let start = self.at;
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                None => {
                    return Err(Fault {
                        at: start,
                        expected: "a string that ends with its quote",
                    });
                }
                Some(byte) if byte == quote => {
                    self.at += 1;
                    return Ok(String::from_utf8_lossy(&bytes).into_owned());
                }
                Some(b'\\') => self.escape(&mut bytes)?,
                Some(byte) => {
                    bytes.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), Fault> {
        self.at += 1;
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let character = self.unicode()?;
                bytes.extend(character.encode_utf8(&mut [0; 4]).bytes());
                return Ok(());
            }
            _ => return self.fault("an escape of JSON after '\\'"),
        };
        bytes.push(byte);
        self.at += 1;
        Ok(())
    }

    /// `uXXXX`, or two of them that make one character. Half of a pair is a replacement character.
    fn unicode(&mut self) -> Result<char, Fault> {
        let high = self.hex()?;
        if !(0xd800..0xdc00).contains(&high) || self.text.get(self.at..self.at + 2) != Some(b"\\u")
        {
            return Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let after_high = self.at;
        self.at += 1;
        let low = self.hex()?;
        if (0xdc00..0xe000).contains(&low) {
            let code = 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        // No pair: the second one is for itself.
        self.at = after_high;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self) -> Result<u32, Fault> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let Some(digits) = digits else {
            return self.fault(HEX);
        };
        let digit = |code: u32, byte: &u8| code * 16 + char::from(*byte).to_digit(16).unwrap_or(0);
        let code = digits.iter().fold(0, digit);
        self.at += 5;
        Ok(code)
    }
}
