//! Whose turn it is: of all who want a key in this process, one at a time asks the nodes for it.
//!
//! ```text
//!  begin ──the turn is free──▶ Turn ──▶ asks, waits for another process, holds ──pass─┐
//!    │                          ▲                                                      │
//!    └──another has it──▶ Ticket ┴── the first in line ◀──────────────────────────────┘
//! ```
//!
//! Who begins an acquisition takes the turn of its key, and keeps it while it waits for another
//! process and while it holds the lock; then it passes on to the next in line, in the order of
//! their arrival. So a thousand tasks that want one key make one attempt at a time, and the next
//! one's command goes out right behind the release, on the same connection.
//!
//! A turn orders attempts; it does not grant the lock, which is for the nodes to say. A turn whose
//! owner has not been polled for [`OVERTAKEN_AFTER`] goes to the next in line: its task may be
//! busy, or may even wait for one behind it. A turn that was passed on or taken is out of date, and
//! passing it on does nothing. Where the nodes are out of reach, the whole line is let go: each
//! then tries for itself, and learns what the nodes say.
//!
//! Who has the turn may hand something on with it: the lock that it holds (`hand_on`).
//!
//! Keys are told apart by their hash. Two that share one wait for one another's turn, but each is
//! overtaken or passes it on as ever.

use std::any::Any;
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::hold_id::HoldId;
use crate::clock::Moment;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{AtomicWaker, Mutex, MutexGuard, lock};

/// After so long without a sign of life from who has the turn, the first in line takes it.
pub(super) const OVERTAKEN_AFTER: Duration = Duration::from_millis(500);

/// How many short locks the keys are spread over. A model needs no more than one.
const SHARDS: usize = if cfg!(quorlock_models) { 1 } else { 256 };

/// The turns of all keys that are asked for or held in this process.
pub(crate) struct Turns {
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Default)]
struct Shard {
    /// One for each key whose turn is taken.
    taken: Vec<Taken>,
    /// How many came so far: each turn and each place in line has a number of its own.
    came: u64,
}

/// A turn that is taken, and who stands in line behind it.
struct Taken {
    turn: Turn,
    /// Until when who has it is known to live, if it has said so.
    alive: Moment,
    /// The node on which another process waits for the key, if one has said so.
    wanted: Option<u8>,
    /// Those behind, in the order of their numbers.
    line: VecDeque<(NonZeroU64, Arc<Place>)>,
    /// What was handed on with the turn, until who has it takes it.
    gift: Option<Gift>,
    /// The hold that was won by the turn.
    hold: Option<HoldId>,
}

/// What is handed on with a turn. To this file it is opaque; dropping it may send commands, and ask
/// for turns.
pub(super) type Gift = Box<dyn Any + Send>;

/// The right to ask the nodes for a key. It is passed on with [`Turns::pass`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Turn {
    hash: u64,
    pub(super) number: NonZeroU64,
}

impl Turn {
    pub(super) fn new(hash: u64, number: NonZeroU64) -> Self {
        Self { hash, number }
    }
}

/// Who has the turn, as the first in line sees it.
pub(super) struct Rival {
    pub(super) turn: Turn,
    /// Until when it is known to live, if it has said so.
    pub(super) alive: Moment,
    /// What it holds.
    pub(super) hold: Option<HoldId>,
}

/// What one in line is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// It is its turn.
    Turn(Turn),
    /// It is the first in line from now on.
    First,
    /// The nodes are out of reach: it may see for itself, and has no place any more.
    LetGo,
}

/// A place in line.
struct Place {
    /// The number of the turn that has come, or one of the words below.
    told: AtomicU64,
    waker: AtomicWaker,
}

const NOTHING: u64 = 0;
const FIRST: u64 = u64::MAX;
const LET_GO: u64 = u64::MAX - 1;

impl Place {
    fn tell(&self, word: u64) {
        self.told.store(word, Ordering::SeqCst);
    }
}

impl Shard {
    fn next_number(&mut self) -> NonZeroU64 {
        self.came += 1;
        NonZeroU64::new(self.came).unwrap_or(NonZeroU64::MIN)
    }

    fn index(&self, hash: u64) -> Option<usize> {
        self.taken.iter().position(|taken| taken.turn.hash == hash)
    }

    /// What is taken by this very turn, unless the turn is out of date.
    fn by(&mut self, turn: Turn) -> Option<&mut Taken> {
        self.taken.iter_mut().find(|taken| taken.turn == turn)
    }

    fn take(&mut self, hash: u64) -> Turn {
        let turn = Turn { hash, number: self.next_number() };
        let (alive, line) = (Moment::default(), VecDeque::new());
        self.taken.push(Taken { turn, alive, wanted: None, line, gift: None, hold: None });
        turn
    }

    /// Gives the turn to the first in line, and says whom to wake: that one, and who is first now.
    fn pass(&mut self, turn: Turn) -> [Option<Arc<Place>>; 2] {
        let Some(index) = self.taken.iter().position(|taken| taken.turn == turn) else {
            return [None, None];
        };
        let Some((_, next)) = self.taken[index].line.pop_front() else {
            self.taken.swap_remove(index);
            return [None, None];
        };
        let number = self.next_number();
        let taken = &mut self.taken[index];
        (taken.turn.number, taken.alive, taken.wanted) = (number, Moment::default(), None);
        taken.hold = None;
        next.tell(number.get());
        [Some(next), taken.tell_first()]
    }
}

impl Taken {
    fn tell_first(&self) -> Option<Arc<Place>> {
        let (_, first) = self.line.front()?;
        first.tell(FIRST);
        Some(first.clone())
    }
}

fn wake(places: impl IntoIterator<Item = Option<Arc<Place>>>) {
    places.into_iter().flatten().for_each(|place| place.waker.wake());
}

impl Turns {
    pub(crate) fn new() -> Arc<Self> {
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::default())).collect();
        Arc::new(Self { shards })
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The hash is FNV's, whose low bits differ where keys differ at their end.
        lock(&self.shards[hash as usize % SHARDS])
    }

    /// Takes the turn of a key, unless another has it.
    #[inline]
    pub(super) fn begin(&self, hash: u64) -> Option<Turn> {
        let mut shard = self.shard(hash);
        shard.index(hash).is_none().then(|| shard.take(hash))
    }

    /// Takes the turn of a key, or a place in line: the one that `number` has, drawn before.
    pub(super) fn line_up(
        self: &Arc<Self>,
        hash: u64,
        number: Option<NonZeroU64>,
    ) -> Result<Turn, Ticket> {
        let mut shard = self.shard(hash);
        let Some(index) = shard.index(hash) else { return Ok(shard.take(hash)) };
        let number = number.unwrap_or_else(|| shard.next_number());
        let line = &mut shard.taken[index].line;
        let at = line.partition_point(|(other, _)| *other < number);
        let word = if at == 0 { FIRST } else { NOTHING };
        let place = Place { told: AtomicU64::new(word), waker: AtomicWaker::new() };
        let place = Arc::new(place);
        line.insert(at, (number, place.clone()));
        Err(Ticket { turns: self.clone(), hash, number, place })
    }

    /// Hands the turn on to the first in line, with a gift. Where none waits, or the turn is out of
    /// date, the gift comes back. Other processes wait for the key as before.
    pub(super) fn hand_on(&self, turn: Turn, gift: Gift) -> Result<(), Gift> {
        let mut shard = self.shard(turn.hash);
        let Some(index) = shard.taken.iter().position(|taken| taken.turn == turn) else {
            return Err(gift);
        };
        let wanted = shard.taken[index].wanted;
        if shard.taken[index].line.is_empty() {
            return Err(gift);
        }
        let woken = shard.pass(turn);
        let taken = &mut shard.taken[index];
        (taken.wanted, taken.gift) = (wanted, Some(gift));
        drop(shard);
        wake(woken);
        Ok(())
    }

    /// What was handed on with this turn.
    pub(super) fn take_gift(&self, turn: Turn) -> Option<Gift> {
        self.shard(turn.hash).by(turn)?.gift.take()
    }

    /// All that was handed on and not taken yet.
    pub(super) fn take_gifts(&self) -> Vec<Gift> {
        let mut gifts = Vec::new();
        for shard in &self.shards {
            gifts.extend(lock(shard).taken.iter_mut().filter_map(|taken| taken.gift.take()));
        }
        gifts
    }

    /// Passes the turn on, unless it is out of date. What was handed on with it, and not taken, is
    /// dropped before.
    pub(super) fn pass(&self, turn: Turn) {
        let mut shard = self.shard(turn.hash);
        if let Some(gift) = shard.by(turn).and_then(|taken| taken.gift.take()) {
            drop(shard);
            drop(gift);
            shard = self.shard(turn.hash);
        }
        let woken = shard.pass(turn);
        drop(shard);
        wake(woken);
    }

    /// Records that who has the turn will be polled again by `until`. `false`: the turn is out of
    /// date.
    pub(super) fn renew(&self, turn: Turn, until: Moment) -> bool {
        let mut shard = self.shard(turn.hash);
        let taken = shard.by(turn);
        taken.map(|taken| taken.alive = until).is_some()
    }

    /// The lock is held that was won by this turn.
    pub(super) fn note_hold(&self, turn: Turn, hold: HoldId) {
        if let Some(taken) = self.shard(turn.hash).by(turn) {
            taken.hold = Some(hold);
        }
    }

    /// Another process waits for a key on this node: it is told when the key is released.
    pub(super) fn note_wanted(&self, hash: u64, node: usize) {
        let mut shard = self.shard(hash);
        if let Some(index) = shard.index(hash) {
            shard.taken[index].wanted = u8::try_from(node).ok();
        }
    }

    /// The node on which another process waits for the key.
    pub(super) fn wanted(&self, hash: u64) -> Option<usize> {
        let shard = self.shard(hash);
        shard.taken[shard.index(hash)?].wanted.map(usize::from)
    }

    /// Lets the line go: each is to see for itself what the nodes say.
    pub(super) fn let_go(&self, turn: Turn) {
        let mut shard = self.shard(turn.hash);
        let line = shard.by(turn).map(|taken| std::mem::take(&mut taken.line));
        drop(shard);
        for (_, place) in line.into_iter().flatten() {
            place.tell(LET_GO);
            place.waker.wake();
        }
    }
}

/// Who stands in line. It leaves when this is dropped; a turn that came is passed on.
pub(super) struct Ticket {
    turns: Arc<Turns>,
    hash: u64,
    pub(super) number: NonZeroU64,
    place: Arc<Place>,
}

impl Ticket {
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Told> {
        self.place.waker.register(cx.waker());
        match self.place.told.swap(NOTHING, Ordering::SeqCst) {
            NOTHING => Poll::Pending,
            FIRST => Poll::Ready(Told::First),
            LET_GO => Poll::Ready(Told::LetGo),
            number => Poll::Ready(
                NonZeroU64::new(number)
                    .map_or(Told::LetGo, |number| Told::Turn(Turn { hash: self.hash, number })),
            ),
        }
    }

    /// Who has the turn, as the first in line sees it.
    pub(super) fn rival(&self) -> Option<Rival> {
        let shard = self.turns.shard(self.hash);
        let taken = &shard.taken[shard.index(self.hash)?];
        let is_first = taken.line.front().is_some_and(|(number, _)| *number == self.number);
        is_first.then_some(Rival { turn: taken.turn, alive: taken.alive, hold: taken.hold })
    }

    /// Takes the turn from who has it, unless it was passed on meanwhile. It is told as any other.
    pub(super) fn overtake(&self, rival: Turn) {
        if self.rival().is_some_and(|first| first.turn == rival) {
            drop(self.turns.take_gift(rival));
        }
        let mut shard = self.turns.shard(self.hash);
        let woken = match shard.by(rival).and_then(|taken| taken.line.front()) {
            Some((number, _)) if *number == self.number => shard.pass(rival),
            _ => return,
        };
        drop(shard);
        wake(woken);
    }

    /// Leaves the line; says which turn has come and not been taken, and who is first now.
    fn leave(&self) -> (Option<Turn>, Option<Arc<Place>>) {
        let mut shard = self.turns.shard(self.hash);
        let told = self.place.told.swap(NOTHING, Ordering::SeqCst);
        let index = shard.index(self.hash);
        let Some(taken) = index.and_then(|index| shard.taken.get_mut(index)) else {
            return (None, None);
        };
        if taken.turn.number.get() == told {
            return (Some(taken.turn), None);
        }
        let at = taken.line.partition_point(|(other, _)| *other < self.number);
        if taken.line.get(at).is_none_or(|(number, _)| *number != self.number) {
            return (None, None);
        }
        taken.line.remove(at);
        (None, if at == 0 { taken.tell_first() } else { None })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let (turn, first) = self.leave();
        wake([first]);
        if let Some(turn) = turn {
            self.turns.pass(turn);
        }
    }
}
