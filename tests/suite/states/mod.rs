//! Servers in a state: what an acquisition, an extension and a release say of a node in it, whether
//! they are undone, what is left of the key, and that a quorum does not mind.
//!
//! | file | owns |
//! |---|---|
//! | `state` | `State`, one row; `Said`, what is said of the node |
//! | `rows` | the rows |
//! | `tested_node` | `TestedNode`: brings a node into a state and out of it |
//! | `play` | the operations that a row is played with |
//!
//! The manual's tables are these rows: a test compares the two.

mod play;
mod rows;
mod state;
mod tested_node;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use state::State;
use support::need_process;

const MANUAL: &str = include_str!("../../../src/manual/server_states.rs");

/// States that are played at a time: they mostly wait.
const AT_A_TIME: usize = 6;

/// All states through one operation.
macro_rules! through {
    ($name:ident, $operation:path) => {
        #[test]
        fn $name() {
            need_process!();
            through_all(|state| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let play = async { $operation(state, &tested_node::TestedNode::new(state)).await };
                runtime.unwrap().block_on(play);
            });
        }
    };
}

through!(every_state_meets_an_acquisition, play::acquire);
through!(every_state_meets_a_vote, play::vote);
through!(every_state_meets_an_undo, play::undo);
through!(every_state_meets_an_extension, play::extend);
through!(every_state_meets_a_release, play::release);
through!(every_state_meets_a_quorum, play::be_one_of_three);

/// Plays every state, and fails with the names of those that did.
fn through_all(play: fn(&State)) {
    let waiting = Mutex::new(chosen().into_iter());
    let play_some = || {
        let mut failed = Vec::new();
        loop {
            let next = waiting.lock().unwrap().next();
            let Some(state) = next else { return failed };
            let played = catch_unwind(AssertUnwindSafe(|| play(&state)));
            failed.extend(played.is_err().then_some(state.name));
        }
    };
    let failed: Vec<_> = std::thread::scope(|scope| {
        let players: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(play_some)).collect();
        players.into_iter().flat_map(|player| player.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{failed:#?}: each has said above what is wrong");
}

/// The rows whose name holds `QUORLOCK_STATE`, to work on one; all of them without it.
fn chosen() -> Vec<State> {
    let wanted = std::env::var("QUORLOCK_STATE").unwrap_or_default();
    let named = named(&wanted);
    let all = || rows::all().iter().map(|state| state.name).collect::<Vec<_>>().join(", ");
    assert!(!named.is_empty(), "QUORLOCK_STATE={wanted}: no state's name holds it: {}", all());
    named
}

fn named(part: &str) -> Vec<State> {
    rows::all().into_iter().filter(|state| state.name.contains(part)).collect()
}

/// The rows of so many columns in the manual's sections of that name, without their heads.
fn told(section: &str, columns: usize) -> Vec<Vec<&'static str>> {
    let cells = |line: &'static str| {
        let cells = line.strip_prefix("//! | ")?.strip_suffix(" |")?.split(" | ");
        Some(cells.map(str::trim).collect::<Vec<_>>())
    };
    let sections = MANUAL.split("//! # ").filter(|text| text.starts_with(section));
    let rows = sections.flat_map(str::lines).filter_map(cells);
    rows.filter(|cells| cells.len() == columns && !["state", "word"].contains(&cells[0])).collect()
}

#[test]
fn the_manuals_tables_are_these_rows() {
    let told: Vec<_> = told("", 4).into_iter().map(|cells| cells.join(" | ")).collect();
    let row = |state: State| {
        let says = state.says.map(|said| said.words());
        format!("{} | {}", state.name, says.join(" | "))
    };
    let known: Vec<String> = rows::all().into_iter().map(row).collect();
    assert_eq!(told, known, "the manual should say:\n{}", known.join("\n"));
}

#[test]
fn the_manuals_table_of_votes_is_these_rows() {
    let told: Vec<_> = told("Under", 2).into_iter().map(|cells| cells.join(" | ")).collect();
    let row = |state: State| state.vote.map(|said| format!("{} | {}", state.name, said.words()));
    let known: Vec<String> = rows::all().into_iter().filter_map(row).collect();
    assert_eq!(told, known, "the manual should say:\n{}", known.join("\n"));
}

#[test]
fn the_manual_says_what_to_do_about_every_word() {
    let told = told("What to do", 2);
    let told: Vec<_> = told.iter().flat_map(|cells| cells[0].split(", ")).collect();
    for state in rows::all() {
        for said in state.says.into_iter().chain(state.in_quorum).chain(state.vote) {
            let words = said.words();
            let Some((_, word)) = words.split_once(": ") else { continue };
            assert!(told.contains(&word), "{}: what to do about {word:?}?", state.name);
        }
    }
}
