//! Guarded commands for a Redis or Valkey: a script compares the fence and does the rest, in one
//! step.

use quorlock_resp::Frame;

use super::error::Error;
use crate::client::Client;
use crate::fence::Fence;
use crate::lease::Key;

/// What compares, in front of the script that reads or writes.
const CHECK: &str = include_str!("check.lua");

const GET: &str = "return redis.call('GET', KEYS[1])";
const SET: &str = "return redis.call('SET', KEYS[1], ARGV[1])";

/// The first word of a refusal.
const STALE: &[u8] = b"QUORLOCKSTALE ";

/// A command to a Redis or Valkey that is refused once a later holder of the lock has come.
///
/// Beside each of its keys the server keeps the highest fence that has come with a command: of
/// `stock:7` under `{stock:7}:quorlock:written`, which is in the same slot of a cluster and has no
/// TTL. The server's user needs both keys, and `EVAL`, `GET` and `SET`. It protects as long as that
/// key is there and does not go back to an earlier fence: not over a failover to a replica that
/// lags, nor a restart that loses the last writes. Have the server evict nothing, and delete the
/// key, if at all, with the data, when no holder from before can still be at work.
///
/// The server need not be one of those that keep the locks. If it is, **no lock may have the name
/// of a key that is written**: give the locker a [`prefix`](crate::LockerBuilder::prefix).
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use quorlock::guarded::Command;
/// use quorlock::{Client, Locker};
///
/// let locker = Locker::single("redis://a:6379")?.prefix("lock:").fenced(true).build()?;
/// let store = Client::new("redis://b:6379")?;
///
/// let guard = locker.lock("stock:7").await?;
/// let fence = guard.fence().ok_or("the locker was not built with `fenced`")?;
/// // From here on no earlier holder writes: the first read has brought the fence.
/// let stock = Command::get("stock:7", fence)?.send(&store).await?;
/// let left = stock.as_str()?.parse::<u64>()? - 1;
/// Command::set("stock:7", left.to_string(), fence)?.send(&store).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a guarded command does nothing until it is sent"]
pub struct Command {
    words: Vec<Vec<u8>>,
    fence: Fence,
}

impl Command {
    /// Reads a key, as `GET` does, and brings the fence to the server: from then on it refuses
    /// earlier holders. What a holder reads in another way may be changed behind its back.
    ///
    /// # Errors
    ///
    /// As [`eval`](Self::eval).
    pub fn get(key: impl AsRef<[u8]>, fence: Fence) -> Result<Self, crate::Error> {
        Self::eval(GET, [key], [b""; 0], fence)
    }

    /// Sets a key to a value, as `SET` does without options: a TTL that the key had is gone.
    ///
    /// # Errors
    ///
    /// As [`eval`](Self::eval).
    pub fn set(
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        fence: Fence,
    ) -> Result<Self, crate::Error> {
        Self::eval(SET, [key], [value], fence)
    }

    /// Runs a script of your own, with these keys and arguments as its `KEYS` and `ARGV`, if no
    /// later fence has come with any of the keys. In a cluster they all have to be in one slot.
    ///
    /// The check writes before the script begins. So a script that has read for too long can no
    /// longer be ended by `SCRIPT KILL`, and where memory is short one that only deletes is refused
    /// as well.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](crate::Error::is_misuse) where there is no key; for a key that is empty,
    /// longer than 4,096 bytes, one of the library's own, or that has a brace which ends no tag;
    /// and for a script that begins with `#!`, which cannot be put behind another.
    pub fn eval<K, A>(
        script: &str,
        keys: impl IntoIterator<Item = K>,
        arguments: impl IntoIterator<Item = A>,
        fence: Fence,
    ) -> Result<Self, crate::Error>
    where
        K: AsRef<[u8]>,
        A: AsRef<[u8]>,
    {
        let misuse = |what: &str| Err(crate::Error::misuse(what));
        if script.starts_with("#!") {
            return misuse(
                "the script begins with `#!`, so no check can stand before it; leave that line out",
            );
        }
        let (mut named, mut beside) = (Vec::new(), Vec::new());
        for key in keys {
            let key = Key::new(b"", key.as_ref())?;
            beside.push(key.written()?.full().to_vec());
            named.push(key.full().to_vec());
        }
        if named.is_empty() {
            return misuse("no key was given; name what is read or written");
        }
        let count = (2 * named.len()).to_string();
        let mut words = vec![b"EVAL".to_vec(), [CHECK, script].concat().into(), count.into()];
        words.append(&mut named);
        words.append(&mut beside);
        words.extend(arguments.into_iter().map(|argument| argument.as_ref().to_vec()));
        words.extend([fence.to_string().into(), b"0".to_vec()]);
        Ok(Self { words, fence })
    }

    /// Refuses it also where this fence has come already with any guarded command on one of its
    /// keys, a read among them: for the one command of a holder, which must not be done twice. So
    /// send no guarded `get` of its keys before it. Where no reply came it can be sent again:
    /// [`Error::Used`] then says that an earlier attempt has reached the server.
    pub fn once(mut self) -> Self {
        if let Some(once) = self.words.last_mut() {
            *once = b"1".to_vec();
        }
        self
    }

    /// Sends it, and tells what the server answered. From a plain thread: `blocking::Client::send`.
    /// (The servers of [`testing`](crate::testing)
    /// run no scripts but the locks' own, and reject it.)
    ///
    /// # Errors
    ///
    /// [`Error::Stale`], [`Error::Used`], [`Error::Rejected`], and [`Error::Client`] where no reply
    /// came.
    ///
    /// # Cancel safety
    ///
    /// As [`Client::command`]: dropping the future does not recall the command.
    pub async fn send(&self, client: &Client) -> Result<Frame, Error> {
        self.outcome(client.command(self.words()).await?)
    }

    /// Its words, for another client or a pipeline; [`outcome`](Self::outcome) reads the reply.
    #[must_use]
    pub fn words(&self) -> &[Vec<u8>] {
        &self.words
    }

    /// What a reply to its [`words`](Self::words) means.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`], [`Error::Used`] and [`Error::Rejected`].
    pub fn outcome(&self, reply: Frame) -> Result<Frame, Error> {
        let Some(error) = reply.as_error() else { return Ok(reply) };
        let number = error.strip_prefix(STALE).and_then(|text| std::str::from_utf8(text).ok());
        let accepted: Option<i64> = number.and_then(|number| number.parse().ok());
        Err(match accepted.filter(|accepted| *accepted >= self.fence.into()) {
            Some(accepted) => Error::refused(self.fence, accepted),
            None => Error::Rejected(String::from_utf8_lossy(error).into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::Stale;
    use super::*;

    fn fence() -> Fence {
        Fence::from_number(42).unwrap()
    }

    fn words(command: &Command) -> Vec<&str> {
        command.words()[2..].iter().map(|word| std::str::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn a_command_names_where_the_fence_of_each_key_is_kept() {
        let set = Command::set("stock:7", "12", fence()).unwrap();
        let expected = ["2", "stock:7", "{stock:7}:quorlock:written", "12", "42", "0"];
        assert_eq!(words(&set), expected);
        let get = Command::get("stock:7", fence()).unwrap();
        assert_eq!(words(&get), ["2", "stock:7", "{stock:7}:quorlock:written", "42", "0"]);
        let keys = ["{shop}a", "{shop}b"];
        let two = Command::eval("return 1", keys, ["x"], fence()).unwrap().once();
        let beside = ["{shop}a/quorlock:written", "{shop}b/quorlock:written"];
        let expected = ["4", keys[0], keys[1], beside[0], beside[1], "x", "42", "1"];
        assert_eq!(words(&two), expected);
    }

    #[test]
    fn what_cannot_be_guarded_is_refused_before_it_is_sent() {
        let eval = |script: &str, keys: &[&str]| Command::eval(script, keys, [""; 0], fence());
        let cases = [
            (eval("#!lua\nreturn 1", &["k"]), "leave that line out"),
            (eval("return 1", &[]), "no key"),
            (eval("return 1", &["k", ""]), "empty"),
            (Command::get("", fence()), "empty"),
            (Command::set("k}", "v", fence()), "brace"),
            (Command::set("{k}:quorlock:written", "v", fence()), "quorlock:written"),
        ];
        for (command, why) in cases {
            let error = command.unwrap_err();
            assert!(error.is_misuse() && error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn a_reply_tells_what_became_of_the_command() {
        let command = Command::set("k", "v", fence()).unwrap();
        assert!(command.outcome(Frame::Simple("OK".into())).unwrap().is_ok());
        let outcome =
            |error: &'static str| command.outcome(Frame::Error(error.into())).unwrap_err();
        assert_eq!(outcome("QUORLOCKSTALE 43").stale(), Some(Stale::new(fence(), 43)));
        assert!(matches!(outcome("QUORLOCKSTALE 42"), Error::Used(used) if used == fence()));
        let others = ["QUORLOCKSTALE 41", "QUORLOCKSTALE", "QUORLOCKSTALE x", "STALE 43", "OOM no"];
        for error in others {
            let rejected = outcome(error);
            assert!(matches!(&rejected, Error::Rejected(said) if **said == *error), "{rejected}");
        }
    }
}
