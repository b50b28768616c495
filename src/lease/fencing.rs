//! A lock on the way to its fence, and there: which token was put to the nodes, and what follows
//! from their answers.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::fence::{Aim, Tokens};
use super::key::Key;
use crate::fence::Fence;
use crate::node_vote::NodeVote;
use crate::quorum::{Election, Verdict};
use crate::report::{NodeReport, Outcome};

/// How many tokens are tried. The second is above what a majority has told to the first: it is too
/// low only where another holder's has come between, or where too few had told.
const TOKENS_MAX: u32 = 8;

/// What the tokens behind the first aim at, in turn: see [`Fencing::next`].
const AIMS: [Aim; 3] = [Aim::Highest, Aim::Near, Aim::Lowest];

/// A lock on the way to its fence, and there.
pub(super) struct Fencing {
    /// The keys of the lock's fences.
    pub(super) keys: Box<[Key]>,
    /// The token that the nodes were asked to take last, and this process's time since 1970 then.
    token: Fence,
    put: Duration,
    /// What they did; `None` where it went with the acquisition, whose votes say that.
    election: Option<Election>,
    tokens: u32,
    came_with_acquisition: bool,
    /// A majority has taken the token.
    is_taken: bool,
}

impl Fencing {
    /// A first token was put to the nodes, with the acquisition or behind it.
    pub(super) fn new(
        keys: Box<[Key]>,
        (token, put): (Fence, Duration),
        election: Option<Election>,
    ) -> Self {
        let came_with_acquisition = election.is_none();
        Self { keys, token, put, election, tokens: 1, came_with_acquisition, is_taken: false }
    }

    /// Another token was, at this time.
    pub(super) fn put(&mut self, (token, put): (Fence, Duration), election: Election) {
        (self.token, self.put, self.election) = (token, put, Some(election));
        self.tokens += 1;
    }

    /// Whether a majority has taken the token.
    pub(super) fn poll_taken(
        &mut self,
        acquisition: &Election,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        let election = self.votes_of(acquisition);
        self.is_taken = ready!(election.poll_verdict(cx)) == Verdict::Won;
        Poll::Ready(self.is_taken)
    }

    /// The fence, once a majority has taken it.
    pub(super) fn fence(&self) -> Option<Fence> {
        self.is_taken.then_some(self.token)
    }

    /// Whether the first token went with the acquisition.
    pub(super) fn came_with_acquisition(&self) -> bool {
        self.came_with_acquisition
    }

    /// What each node did with the token.
    pub(super) fn votes_of<'a>(&'a self, acquisition: &'a Election) -> &'a Election {
        self.election.as_ref().unwrap_or(acquisition)
    }

    /// What became of the token on each node; of one whose fence has not risen, where that stands.
    pub(super) fn report(&self, acquisition: &Election) -> Vec<NodeReport> {
        let election = self.votes_of(acquisition);
        let mut nodes = election.report();
        for (node, report) in nodes.iter_mut().enumerate() {
            if let Some(fence) = election.fence(node).filter(|_| election.unfenced().has(node)) {
                report.outcome = Outcome::Unfenced { fence };
            }
        }
        nodes
    }

    /// What is to be put to the nodes next, where too few have taken the last one: a token above
    /// what they have told; the same one where they only lack the script. `None` where too few
    /// could take any.
    pub(super) fn next(&self, acquisition: &Election, tokens: &Tokens) -> Option<Fence> {
        let election = self.votes_of(acquisition);
        let needed = election.needed();
        let (mut fences, mut others) = (Vec::new(), 0);
        for (node, vote) in election.votes() {
            let took = election.granted().has(node).then_some(self.token);
            let told = election.fence(node).and_then(Fence::from_number);
            fences.extend(took.or(told));
            // One that has not answered yet may take it, too.
            others += usize::from(vote == NodeVote::None || election.lacks_script(node));
        }
        if self.tokens == TOKENS_MAX || fences.len() + others < needed {
            return None;
        }
        match fences.is_empty() {
            true => Some(self.token),
            false => tokens.next(self.put, &mut fences, needed, AIMS[self.tokens as usize % 3]),
        }
    }
}
