//! One JSON object per line, written by hand because the objects are flat and small.

use std::fmt::{Display, Write};

/// An object that is being written.
#[derive(Debug)]
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Self("{".into())
    }

    /// A text, or `null`.
    pub(crate) fn text<'a>(self, name: &str, value: impl Into<Option<&'a str>>) -> Self {
        self.raw(name, value.into().map(quoted))
    }

    /// A number, or `null`.
    pub(crate) fn number<N: Display>(self, name: &str, value: Option<N>) -> Self {
        self.raw(name, value)
    }

    /// `true` or `false`.
    pub(crate) fn bool(self, name: &str, value: bool) -> Self {
        self.raw(name, Some(value))
    }

    /// An array of objects.
    pub(crate) fn array(self, name: &str, objects: impl IntoIterator<Item = Self>) -> Self {
        let objects: Vec<String> = objects.into_iter().map(Self::end).collect();
        self.raw(name, Some(format_args!("[{}]", objects.join(","))))
    }

    /// An array of texts.
    pub(crate) fn texts(self, name: &str, texts: impl IntoIterator<Item = String>) -> Self {
        let texts: Vec<String> = texts.into_iter().map(|text| quoted(&text)).collect();
        self.raw(name, Some(format_args!("[{}]", texts.join(","))))
    }

    /// An object in the object, or `null`.
    pub(crate) fn object(self, name: &str, object: impl Into<Option<Self>>) -> Self {
        self.raw(name, object.into().map(Self::end))
    }

    /// The object as text.
    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn raw(mut self, name: &str, value: Option<impl Display>) -> Self {
        let comma = if self.0.len() > 1 { "," } else { "" };
        let value = value.map_or_else(|| "null".into(), |value| value.to_string());
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{comma}{}:{value}", quoted(name));
        self
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // Beyond what JSON asks: a terminal obeys these, and a line must stay one.
            '\0'..' ' | '\x7f'..'\u{a0}' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_hold_each_kind_of_value() {
        let inner = |n: u64| Object::new().number("n", Some(n));
        let object = Object::new()
            .text("a", "x")
            .text("b", None)
            .number("c", Some(1))
            .number("d", None::<u8>)
            .bool("g", true)
            .array("e", [inner(1), inner(2)])
            .object("f", Object::new());
        let text = r#"{"a":"x","b":null,"c":1,"d":null,"g":true,"e":[{"n":1},{"n":2}],"f":{}}"#;
        assert_eq!(object.end(), text);
    }

    #[test]
    fn every_character_is_safe_in_a_text() {
        assert_eq!(quoted("a\"b\\c\n\r\t/ü🐉"), r#""a\"b\\c\n\r\t/ü🐉""#);
        assert_eq!(quoted("\0\x1b\x7f\u{9b}\u{2028}"), r#""\u0000\u001b\u007f\u009b\u2028""#);
    }
}
