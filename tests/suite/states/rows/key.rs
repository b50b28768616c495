//! What may stand under the key, and scripts that are forgotten.

use crate::states::state::{STATE, Said, State};

pub(super) const STATES: &[State] = &[
    State {
        name: "the script was forgotten",
        enter: |node| node.tell("SCRIPT FLUSH"),
        vote: Some(Said::Granted),
        ..STATE
    },
    State {
        name: "the key was deleted",
        enter: |node| node.tell("DEL k"),
        says: [Said::Granted, Said::Gone, Said::Gone],
        ..STATE
    },
    State {
        name: "the key is another's",
        enter: |node| node.tell("SET k another's PX 60000"),
        leave: |node| node.tell("DEL k"),
        says: [Said::Held; 3],
        ..STATE
    },
    State {
        name: "the key has another type",
        enter: |node| node.tell_all(&["DEL k", "HSET k field value"]),
        leave: |node| node.tell("DEL k"),
        says: [Said::Held; 3],
        ..STATE
    },
    State {
        name: "another's key without expiry",
        enter: |node| node.tell("SET k another's"),
        leave: |node| node.tell("DEL k"),
        says: [Said::Held; 3],
        vote: Some(Said::Held),
        ..STATE
    },
    State { name: "our key has lost its expiry", enter: |node| node.tell("PERSIST k"), ..STATE },
];
