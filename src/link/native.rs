//! The native compare-and-delete: a command of the server's in the place of a script.
//!
//! `DELIFEQ key value` (Valkey 9.0) deletes a key that has this value, and answers 1; where there
//! is nothing or another value it answers 0. No script runs for it. An undo that deletes one key
//! [has this form](super::Undo), which is shorter than a call of the script, so that each
//! [link](super::Link) makes it of the undo's bytes.
//!
//! Each connection learns for itself whether its server has the command and whether this user may
//! send it, for the next one may lead to another version. A server that says it is a Valkey from
//! 9.0 on is asked by a script, [`PROBE`], which leaves no error in its counts and no line in its
//! log of refused rights. Where the server rejects the command after all (a proxy before an older
//! server, a right that was taken away), the connection sends no more of them.
//!
//! Whatever does not say all that the script's answer says is followed by the script, whose answer
//! counts: a rejection, an error for the moment, and 0, for the value may stand there revoked, and
//! a sender that waits wants to know whether the key is gone or another's. So that answer is of one
//! round trip later; who has taken the key meanwhile counts as the one who has it. Where an error
//! leaves open whether the command was executed, the sender is told just that, and the script is
//! sent for the case that it was not.
//!
//! An *extension* stays a script: `SET … IFEQ … PX` may shorten a key's life, and `PEXPIRE … GT`
//! asks for no value; no one command does both, and a lock may do neither. Redis has
//! `DELEX key IFEQ value` (8.4). It is not used: no such server is among those that the tests run
//! on.

use quorlock_resp::{Frame, encode};

use crate::report::{ServerInfo, ServerKind};

/// The command up to its key and value, which an undo has encoded.
pub(super) const DELIFEQ: &[u8] = b"*3\r\n$7\r\nDELIFEQ\r\n";

/// Asks whether this user may send the command; see the module.
const PROBE: &str = include_str!("script/may_delifeq.lua");

/// Whether a server has the command, by what it says of itself.
pub(super) fn is_had_by(server: &ServerInfo) -> bool {
    let major = server.version.as_deref().and_then(|version| version.split('.').next());
    let major = major.and_then(|major| major.parse::<u32>().ok());
    server.kind == Some(ServerKind::Valkey) && major.is_some_and(|major| major >= 9)
}

/// The probe, encoded, for this key.
pub(super) fn probe(key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::command(&mut bytes, &[b"EVAL", PROBE.as_bytes(), b"0", key]);
    bytes
}

/// Whether the probe's answer is that the command may be sent.
pub(super) fn has_succeeded(answer: &Frame) -> bool {
    answer.as_integer() == Ok(1)
}
