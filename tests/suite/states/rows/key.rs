//! What may stand under the key, and scripts that are forgotten.

use crate::states::state::{STATE, Said, State};

pub(super) const STATES: &[State] = &[
    State {
        name: "the script was forgotten",
        enter: |rig| rig.tell("SCRIPT FLUSH"),
        vote: Some(Said::Granted),
        ..STATE
    },
    State {
        name: "the key was deleted",
        enter: |rig| rig.tell("DEL k"),
        says: [Said::Granted, Said::Gone, Said::Gone],
        ..STATE
    },
    State {
        name: "the key is another's",
        enter: |rig| rig.tell("SET k another's PX 60000"),
        leave: |rig| rig.tell("DEL k"),
        says: [Said::Held; 3],
        ..STATE
    },
    State {
        name: "the key has another type",
        enter: |rig| rig.tell_all(&["DEL k", "HSET k field value"]),
        leave: |rig| rig.tell("DEL k"),
        says: [Said::Held; 3],
        ..STATE
    },
    State {
        name: "another's key without expiry",
        enter: |rig| rig.tell("SET k another's"),
        leave: |rig| rig.tell("DEL k"),
        says: [Said::Held; 3],
        vote: Some(Said::Held),
        ..STATE
    },
    State { name: "our key has lost its expiry", enter: |rig| rig.tell("PERSIST k"), ..STATE },
];
