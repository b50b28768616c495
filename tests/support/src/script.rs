//! What a scripted server does on one connection, step by step.
//!
//! ```ignore
//! Script::greeting().expect("SET").reply("+OK\r\n").expect("EVALSHA").cut()
//! ```
//!
//! A step that expects a command waits for it; every other step acts at once. After the last step
//! the connection stays open, reads on, and answers nothing but handshakes.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::greeting::Greeting;

/// One command: its words.
pub type Command = Vec<Vec<u8>>;

type Predicate = Arc<dyn Fn(&[Vec<u8>]) -> bool + Send + Sync>;
type Responder = Arc<dyn Fn(&[Vec<u8>]) -> Vec<u8> + Send + Sync>;

/// The steps for one connection.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(crate) greeting: Option<Greeting>,
    pub(crate) steps: Vec<Step>,
}

/// Which command a step waits for.
#[derive(Clone)]
pub(crate) struct Expectation {
    pub(crate) what: String,
    pub(crate) matches: Predicate,
    /// Whether it looks at a greeting's commands too, before they are answered for it.
    pub(crate) greets: bool,
}

/// See [`Script`]'s methods, one for each.
#[derive(Clone)]
pub(crate) enum Step {
    Expect(Expectation),
    Send(Vec<u8>),
    SendInPieces(Vec<u8>, usize),
    Delay(Duration),
    Wait(Gate),
    AnswerAll(Responder),
    Stall,
    Deaf,
    Cut,
    Reset,
}

impl Script {
    /// A server that does only what the steps say, also during the handshake.
    pub fn bare() -> Self {
        Self::default()
    }

    /// A server that answers the handshake's commands by itself, at any point of the script.
    pub fn greeting() -> Self {
        Self::greeting_as(Greeting::default())
    }

    /// As [`greeting`](Self::greeting), with these replies.
    pub fn greeting_as(greeting: Greeting) -> Self {
        Self { greeting: Some(greeting), steps: Vec::new() }
    }

    /// Waits for a command of this name (in any case). Another command fails the test.
    pub fn expect(self, name: &str) -> Self {
        let wanted = name.to_owned();
        self.expect_where(name, move |command| {
            command.first().is_some_and(|word| word.eq_ignore_ascii_case(wanted.as_bytes()))
        })
    }

    /// Waits for a command that `matches`, be it one that a greeting would answer. Another command
    /// that no greeting answers fails the test, which then names `what`.
    pub fn expect_where(
        self,
        what: &str,
        matches: impl Fn(&[Vec<u8>]) -> bool + Send + Sync + 'static,
    ) -> Self {
        let what = what.to_owned();
        self.step(Step::Expect(Expectation { what, matches: Arc::new(matches), greets: true }))
    }

    /// Waits for any command that the handshake does not answer.
    pub fn expect_any(self) -> Self {
        let what = "any command".to_owned();
        self.step(Step::Expect(Expectation { what, matches: Arc::new(|_| true), greets: false }))
    }

    /// Sends exactly these bytes.
    pub fn reply(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(Step::Send(bytes.as_ref().to_vec()))
    }

    /// Sends exactly these bytes, `size` of them with each write.
    pub fn reply_in_pieces(self, bytes: impl AsRef<[u8]>, size: usize) -> Self {
        self.step(Step::SendInPieces(bytes.as_ref().to_vec(), size))
    }

    /// Waits for a time. Where the test decides when to go on, [`wait`](Self::wait) is better.
    pub fn delay(self, time: Duration) -> Self {
        self.step(Step::Delay(time))
    }

    /// Waits until the test opens the gate.
    pub fn wait(self, gate: &Gate) -> Self {
        self.step(Step::Wait(gate.clone()))
    }

    /// From here on answers every command, the handshake's apart, by what `respond` returns.
    pub fn answer_all(
        self,
        respond: impl Fn(&[Vec<u8>]) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        self.step(Step::AnswerAll(Arc::new(respond)))
    }

    /// From here on reads and records, and answers nothing at all: a server that hangs.
    pub fn stall(self) -> Self {
        self.step(Step::Stall)
    }

    /// From here on does not even read: the client's bytes pile up in the kernel.
    pub fn deaf(self) -> Self {
        self.step(Step::Deaf)
    }

    /// Closes the connection in order (FIN).
    pub fn cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Breaks the connection off (RST).
    pub fn reset(self) -> Self {
        self.step(Step::Reset)
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expect(expectation) => write!(f, "expect {}", expectation.what),
            Self::Send(bytes) => write!(f, "send {}", bytes.escape_ascii()),
            Self::SendInPieces(bytes, size) => {
                write!(f, "send {} by {size}", bytes.escape_ascii())
            }
            Self::Delay(time) => write!(f, "delay {time:?}"),
            Self::Wait(_) => f.write_str("wait for a gate"),
            Self::AnswerAll(_) => f.write_str("answer all"),
            Self::Stall => f.write_str("stall"),
            Self::Deaf => f.write_str("deaf"),
            Self::Cut => f.write_str("cut"),
            Self::Reset => f.write_str("reset"),
        }
    }
}

/// A gate between a test and its scripts: closed until opened, then open for good.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// A closed one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens it for all who wait.
    pub fn open(&self) {
        let (open, changed) = &*self.0;
        *open.lock().expect("no thread panics with a gate in hand") = true;
        changed.notify_all();
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        *self.0.0.lock().expect("no thread panics with a gate in hand")
    }

    /// Waits at most `time` for it; whether it is open.
    pub fn wait_for(&self, time: Duration) -> bool {
        let (open, changed) = &*self.0;
        let open = open.lock().expect("no thread panics with a gate in hand");
        *changed.wait_timeout_while(open, time, |open| !*open).expect("as above").0
    }
}
