//! A script's run on a node: the door through which whatever it says goes.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::super::call::{Call, Refusal};
use super::super::state::Store;

/// What a part of a script comes to, or the error that ends it and the line in which that is met.
pub(super) type Outcome<T> = Result<T, (u32, Refusal)>;

/// A script's run: its keys, its arguments, and the node.
pub(super) struct Run<'s, 'c> {
    pub(super) store: &'s mut Store,
    pub(super) call: &'c Call<'c>,
    pub(super) keys: &'c [&'c [u8]],
    pub(super) arguments: &'c [&'c [u8]],
}

impl<'c> Run<'_, 'c> {
    pub(super) fn key(&self, number: usize) -> &'c [u8] {
        self.keys.get(number).copied().unwrap_or_default()
    }

    pub(super) fn argument(&self, number: usize) -> &'c [u8] {
        self.arguments.get(number).copied().unwrap_or_default()
    }

    /// `redis.call`, in this line of the script.
    pub(super) fn call(&mut self, line: u32, words: &[&[u8]]) -> Result<Frame, (u32, Refusal)> {
        let Call { session, now, .. } = *self.call;
        let reply = self.store.call(&Call { session, words, now, line: Some(line) });
        reply.map_err(|error| (line, error))
    }

    /// `redis.pcall('GET', key)`: what is found, or an error as it is told.
    pub(super) fn get(&mut self, line: u32, key: &[u8]) -> Result<Option<Bytes>, Frame> {
        match self.call(line, &[b"GET", key]) {
            Ok(found) => Ok(found.into_bytes().ok()),
            Err((_, error)) => Err(error.into_frame()),
        }
    }

    /// `redis.pcall('PTTL', key)`
    pub(super) fn pttl(&mut self, line: u32, key: &[u8]) -> Result<i64, Frame> {
        match self.call(line, &[b"PTTL", key]) {
            Ok(found) => Ok(found.as_integer().unwrap_or_default()),
            Err((_, error)) => Err(error.into_frame()),
        }
    }
}

pub(super) fn is_wrong_type(error: &Frame) -> bool {
    error.error_word() == Some(b"WRONGTYPE")
}
