//! How a claim gets its fence: a token is put to the nodes behind what acquires the lock, and
//! higher ones until a majority has taken one.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::super::durability::Volatile;
use super::super::fence::ahead;
use super::super::fencing::Fencing;
use super::super::key::Key;
use super::super::primitive::ScriptForm;
use super::Claim;
use crate::error::{Error, Kind};
use crate::fence::Fence;
use crate::quorum::{Election, Patience, Verdict};

impl Claim {
    /// Asks the nodes to take a first token, behind what was said to them before.
    pub(in crate::lease) fn ask_fence(&mut self) -> Result<(), Error> {
        let keys = self.resource.fences()?.into_boxed_slice();
        let put = self.wall();
        let token = self.context.tokens.pick(put);
        let election = self.put_token(&keys, token, ScriptForm::Digest)?;
        let fencing = Fencing::new(keys, (token, put), election);
        self.aside.get_or_insert_default().fencing = Some(fencing);
        Ok(())
    }

    /// Waits for what the nodes say to the acquisition, and where they grant it for the fence, if
    /// it is to have one.
    #[inline]
    pub(in crate::lease) fn poll_verdict(
        &mut self,
        is_fenced: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Verdict, Error>> {
        let verdict = ready!(self.election.poll_verdict(cx));
        if is_fenced && verdict == Verdict::Won {
            ready!(self.poll_fence(cx))?;
        }
        Poll::Ready(Ok(verdict))
    }

    /// Waits for the fence of a lock that a majority has granted. Another poll after the end says
    /// the same.
    pub(in crate::lease) fn poll_fence(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            match self.fencing_mut().map(|fencing| fencing.poll_taken(cx)) {
                None => self.ask_fence()?,
                Some(Poll::Pending) => return Poll::Pending,
                Some(Poll::Ready(true)) => return Poll::Ready(Ok(())),
                Some(Poll::Ready(false)) => self.ask_higher_fence()?,
            }
        }
    }

    /// The fence, once a majority has taken it.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.aside.as_ref()?.fencing.as_ref()?.fence()
    }

    /// Nodes that had not granted the lock, and so refused the token, are asked for it again.
    pub(super) fn forget_fence(&mut self) {
        if let Some(aside) = &mut self.aside {
            aside.fencing = None;
        }
    }

    fn fencing_mut(&mut self) -> Option<&mut Fencing> {
        self.aside.as_mut()?.fencing.as_mut()
    }

    /// Too few nodes have taken the last token: asks them to take another one, in full, for one may
    /// lack the script. An error where too few could take any.
    fn ask_higher_fence(&mut self) -> Result<(), Error> {
        let put = self.wall();
        let Some(fencing) = self.aside.as_ref().and_then(|aside| aside.fencing.as_ref()) else {
            return Ok(());
        };
        let Some(token) = fencing.next(&self.context.tokens) else {
            let nodes = fencing.election().report();
            let kind = Kind::no_quorum(&nodes, fencing.election().needed());
            return Err(Error::new(kind).with_key(self.resource.given()).with_nodes(nodes));
        };
        let election = self.put_token(&fencing.keys, token, ScriptForm::Whole)?;
        if let Some(fencing) = self.fencing_mut() {
            fencing.put((token, put), election);
        }
        Ok(())
    }

    fn put_token(&self, keys: &[Key], token: Fence, form: ScriptForm) -> Result<Election, Error> {
        let context = &self.context;
        let ahead = ahead(context.volatile.as_ref().map(Volatile::longest_ttl));
        self.subject().with_fence(keys, (token, ahead), form, |encoded| {
            let (affinity, now) = (self.resource.affinity(), context.nodes.clock().now());
            let command = context.command(encoded, affinity, self.ttl(), now);
            context.nodes.ask(&command, context.nodes.rule(Patience::Early))
        })
    }

    /// This process's time since 1970.
    fn wall(&self) -> Duration {
        self.context.nodes.clock().stamp().wall()
    }
}
