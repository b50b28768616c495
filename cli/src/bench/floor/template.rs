//! Commands that are encoded once, with space for a number in their key.

/// Digits of a key's number: more than a century of cycles.
const DIGITS: usize = 15;

#[derive(Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    /// Where the number's digits stand.
    digits: usize,
}

impl Template {
    /// The command of these words; a number is appended to the word at index `key`.
    pub(crate) fn new(words: &[&[u8]], key: usize) -> Self {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        let mut digits = 0;
        for (position, word) in words.iter().enumerate() {
            let room: &[u8] = if position == key { &[b'0'; DIGITS] } else { &[] };
            bytes.extend_from_slice(format!("${}\r\n", word.len() + room.len()).as_bytes());
            bytes.extend_from_slice(word);
            if position == key {
                digits = bytes.len();
            }
            bytes.extend_from_slice(room);
            bytes.extend_from_slice(b"\r\n");
        }
        Self { bytes, digits }
    }

    /// The command about the key with this number.
    pub(crate) fn about(&mut self, mut number: u64) -> &[u8] {
        let room = self.bytes.get_mut(self.digits..self.digits + DIGITS).unwrap_or_default();
        for digit in room.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        &self.bytes
    }
}

/// The key with this number, as a template writes it.
pub(crate) fn key(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, format!("{number:0DIGITS$}").as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_a_command_about_the_key() {
        let mut template = Template::new(&[b"GET", b"k:"], 1);
        let key = String::from_utf8(key(b"k:", 407)).unwrap();
        assert_eq!(key, "k:000000000000407");
        let command = format!("*2\r\n$3\r\nGET\r\n$17\r\n{key}\r\n");
        assert_eq!(template.about(407), command.as_bytes());
    }
}
