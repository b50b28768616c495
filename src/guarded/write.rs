//! Writes to a Redis or Valkey: a script compares the fence and writes, in one step.

use quorlock_resp::Frame;

use super::refused::{Refused, WriteError};
use crate::client::Client;
use crate::error::Error;
use crate::lease::{Fence, Key};

/// What compares, in front of the script that writes.
const CHECK: &str = include_str!("check.lua");

/// What [`Write::set`] does behind it.
const SET: &str = "return redis.call('SET', KEYS[1], ARGV[1])";

/// The first word of a refusal.
const STALE: &[u8] = b"STALE ";

/// A write to a Redis or Valkey that is refused where a later holder of the lock has written.
///
/// The server need not be one of those that keep the locks. Beside the first key, `stock:7`, stands
/// the highest fence that has written, under `{stock:7}:quorlock:written`, in the same slot of a
/// cluster and without an end; a user's rights need both. It protects as long as it stands: keep it
/// on a server that evicts nothing, and delete it, if at all, with the data, when no holder from
/// before can still be at work. All writers have to go this way.
///
/// A holder may write as often as it likes; see [`once`](Self::once).
///
/// ```no_run
/// # async fn example(locker: quorlock::Locker) -> Result<(), Box<dyn std::error::Error>> {
/// use quorlock::{Client, guarded::Write};
///
/// let store = Client::new("redis://127.0.0.1:6379")?;
/// let guard = locker.lock("stock:7").fenced().await?;
/// if let Some(fence) = guard.fence() {
///     Write::set("stock:7", "12", fence)?.send(&store).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Write {
    words: Vec<Vec<u8>>,
    fence: Fence,
}

impl Write {
    /// Sets a key to a value, as `SET` does without options: a time limit that the key had is gone.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for a key that is empty, longer than 4,096 bytes or one of
    /// the library's own, or that has a brace which ends no tag.
    pub fn set(
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        fence: Fence,
    ) -> Result<Self, Error> {
        Self::eval(SET, [key], [value], fence)
    }

    /// Runs a script of your own, with these keys and arguments as its `KEYS` and `ARGV`. The fence
    /// stands beside the first key; in a cluster the others have to be in the same slot.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) where there is no key, for a first key as in
    /// [`set`](Self::set), and for a script that begins with `#!`, which cannot be put behind
    /// another.
    pub fn eval<K, A>(
        script: &str,
        keys: impl IntoIterator<Item = K>,
        arguments: impl IntoIterator<Item = A>,
        fence: Fence,
    ) -> Result<Self, Error>
    where
        K: AsRef<[u8]>,
        A: AsRef<[u8]>,
    {
        if script.starts_with("#!") {
            return Err(Error::misuse(
                "the script begins with `#!`, so no check can stand before it; leave that line out",
            ));
        }
        let mut keys: Vec<Vec<u8>> = keys.into_iter().map(|key| key.as_ref().to_vec()).collect();
        let Some(first) = keys.first() else {
            return Err(Error::misuse("no key was given; name what is written"));
        };
        keys.push(Key::new(b"", first)?.written()?.full().to_vec());
        let count = keys.len().to_string();
        let mut words = vec![b"EVAL".to_vec(), [CHECK, script].concat().into(), count.into()];
        words.append(&mut keys);
        words.extend(arguments.into_iter().map(|argument| argument.as_ref().to_vec()));
        words.extend([fence.to_string().into(), b"0".to_vec()]);
        Ok(Self { words, fence })
    }

    /// Refuses also a second write under the same fence: for a write that must not be done twice by
    /// one holder. Then a write of which no reply came cannot be sent again.
    #[must_use]
    pub fn once(mut self) -> Self {
        if let Some(once) = self.words.last_mut() {
            *once = b"1".to_vec();
        }
        self
    }

    /// Sends it, and tells what the script answered.
    ///
    /// # Errors
    ///
    /// [`WriteError`]: a later holder has written, or the server answered with an error, or not.
    ///
    /// # Cancel safety
    ///
    /// As [`Client::command`]: dropping the future does not recall the write.
    pub async fn send(&self, client: &Client) -> Result<Frame, WriteError> {
        self.outcome(client.command(self.words()).await?)
    }

    /// Its words, for another client or a pipeline; [`outcome`](Self::outcome) reads the reply.
    #[must_use]
    pub fn words(&self) -> &[Vec<u8>] {
        &self.words
    }

    /// What a reply to its words means: what the script answered.
    ///
    /// # Errors
    ///
    /// [`WriteError::Refused`] and [`WriteError::Rejected`].
    pub fn outcome(&self, reply: Frame) -> Result<Frame, WriteError> {
        let Some(error) = reply.as_error() else { return Ok(reply) };
        let error = String::from_utf8_lossy(error);
        let stale = error
            .as_bytes()
            .strip_prefix(STALE)
            .and_then(|stands| std::str::from_utf8(stands).ok()?.parse().ok());
        Err(match stale {
            Some(stands) => WriteError::Refused(Refused::new(self.fence, stands)),
            None => WriteError::Rejected(error.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence() -> Fence {
        Fence::from_number(42).unwrap()
    }

    fn words(write: &Write) -> Vec<&str> {
        write.words()[2..].iter().map(|word| std::str::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn a_write_names_where_its_fence_stands() {
        let write = Write::set("stock:7", "12", fence()).unwrap();
        let expected = ["2", "stock:7", "{stock:7}:quorlock:written", "12", "42", "0"];
        assert_eq!(words(&write), expected);
        let keys = ["{shop}a", "{shop}b"];
        let write = Write::eval("return 1", keys, ["x"; 0], fence()).unwrap().once();
        assert_eq!(
            words(&write),
            ["3", "{shop}a", "{shop}b", "{shop}a/quorlock:written", "42", "1"]
        );
    }

    #[test]
    fn what_cannot_be_guarded_is_refused_before_it_is_sent() {
        let cases = [
            (Write::eval("#!lua\nreturn 1", ["k"], ["x"; 0], fence()), "leave that line out"),
            (Write::eval("return 1", ["k"; 0], ["x"; 0], fence()), "no key"),
            (Write::set("", "v", fence()), "empty"),
            (Write::set("k}", "v", fence()), "brace"),
            (Write::set("{k}:quorlock:written", "v", fence()), "quorlock:written"),
        ];
        for (write, why) in cases {
            let error = write.unwrap_err();
            assert!(error.is_misuse() && error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn a_reply_tells_what_became_of_the_write() {
        let write = Write::set("k", "v", fence()).unwrap();
        assert!(write.outcome(Frame::Simple("OK".into())).unwrap().is_ok());
        let refused = write.outcome(Frame::Error("STALE 43".into())).unwrap_err().refused();
        assert_eq!(refused, Some(Refused::new(fence(), 43)));
        for error in ["STALE", "STALE x", "OOM command not allowed"] {
            let rejected = write.outcome(Frame::Error(error.into())).unwrap_err();
            assert!(matches!(&rejected, WriteError::Rejected(said) if **said == *error));
        }
    }
}
