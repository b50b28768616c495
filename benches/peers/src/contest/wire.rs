//! Commands that are encoded in advance, and the few replies that they have.

/// A command with room for a number in its key.
pub(crate) struct Template {
    bytes: Vec<u8>,
    /// Where the number's digits stand.
    number: usize,
}

/// Digits of a key's number.
const DIGITS: usize = 10;

impl Template {
    /// Encodes `args`, of which the one at `key` gets a number appended.
    pub(crate) fn new(args: &[&[u8]], key: usize) -> Self {
        let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
        let mut number = 0;
        for (position, arg) in args.iter().enumerate() {
            let digits = if position == key { DIGITS } else { 0 };
            bytes.extend_from_slice(format!("${}\r\n", arg.len() + digits).as_bytes());
            bytes.extend_from_slice(arg);
            if position == key {
                number = bytes.len();
            }
            bytes.extend_from_slice(&[b'0'; DIGITS][..digits]);
            bytes.extend_from_slice(b"\r\n");
        }
        Self { bytes, number }
    }

    /// The command for this number.
    pub(crate) fn with(&mut self, mut number: u64) -> &[u8] {
        for digit in self.bytes[self.number..self.number + DIGITS].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        &self.bytes
    }
}

/// Takes the whole lines off the front of `bytes`, at most so many and without their ends; returns
/// how many bytes.
pub(crate) fn lines<E>(
    bytes: &[u8],
    most: usize,
    mut line: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<usize, E> {
    let mut taken = 0;
    for _ in 0..most {
        let Some(end) = bytes[taken..].iter().position(|byte| *byte == b'\n') else { break };
        line(bytes[taken..taken + end].trim_ascii_end())?;
        taken += end + 1;
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_a_command_with_its_number() {
        let mut template = Template::new(&[b"SET", b"k", b"v"], 1);
        let expected = b"*3\r\n$3\r\nSET\r\n$11\r\nk0000000042\r\n$1\r\nv\r\n";
        assert_eq!(template.with(42), expected);
    }

    #[test]
    fn lines_leave_what_is_not_whole() {
        let whole = |most| {
            let mut seen = Vec::new();
            let taken = lines(b"+OK\r\n:1\r\n:", most, |line| {
                seen.push(line.to_vec());
                Ok::<(), ()>(())
            });
            (taken, seen)
        };
        assert_eq!(whole(usize::MAX), (Ok(9), vec![b"+OK".to_vec(), b":1".to_vec()]));
        assert_eq!(whole(1), (Ok(5), vec![b"+OK".to_vec()]));
    }
}
