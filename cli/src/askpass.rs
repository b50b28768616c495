//! The password, asked for on the terminal and not shown there.
//!
//! It is not read from stdin, which belongs to the command. The terminal is in raw mode meanwhile
//! and sends no signal for Ctrl-C: a signal could end us before the terminal's mode is restored.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::exit::{Cause, Failure};

/// Asks for the password.
pub(crate) fn password() -> Result<String, Failure> {
    let Some(line) = ask().map_err(|error| {
        let what = format!("--askpass has no terminal to ask on ({error}); set REDIS_PASSWORD");
        Failure::new(Cause::Usage, what)
    })?
    else {
        return Err(Failure::new(Cause::Signal(2), "interrupted while asking for a password"));
    };
    String::from_utf8(line)
        .map_err(|_| Failure::new(Cause::Usage, "the password that was typed is not UTF-8"))
}

#[expect(clippy::unbuffered_bytes, reason = "what is typed after the password must stay unread")]
fn ask() -> io::Result<Option<Vec<u8>>> {
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let quiet = Quiet::begin(&terminal)?;
    (&terminal).write_all(b"Password: ")?;
    let typed = typed((&terminal).bytes());
    drop(quiet);
    (&terminal).write_all(b"\n")?;
    typed
}

/// Reads a line, with the edits that a terminal makes: backspace deletes a character, Ctrl-U all.
/// `None` after Ctrl-C.
fn typed(keys: impl Iterator<Item = io::Result<u8>>) -> io::Result<Option<Vec<u8>>> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const BACKSPACE: u8 = 8;
    const CTRL_U: u8 = 21;
    const DELETE: u8 = 127;
    let mut line = Vec::new();
    for key in keys {
        match key? {
            CTRL_C => return Ok(None),
            b'\n' | b'\r' | CTRL_D => break,
            // A character of several bytes ends with bytes that begin with the bits 10.
            BACKSPACE | DELETE => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            CTRL_U => line.clear(),
            byte => line.push(byte),
        }
    }
    Ok(Some(line))
}

/// A terminal that does not show what is typed, until this is dropped.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn begin(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Discards what was typed before the question.
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // It fails where the terminal is gone, and then there is nothing to restore.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_as_on_a_terminal() {
        let cases = [
            ("pass word\nrest", "pass word"),
            ("p@ß\u{7f}\u{8}ü\r", "pü"),
            ("\u{7f}a\u{4}b", "a"),
            ("wrong\u{15}right", "right"),
        ];
        let line = |keys: &str| typed(keys.bytes().map(Ok)).unwrap();
        for (keys, password) in cases {
            assert_eq!(line(keys), Some(password.into()), "{keys:?}");
        }
        assert_eq!(line("pa\u{3}ss\n"), None);
    }
}
