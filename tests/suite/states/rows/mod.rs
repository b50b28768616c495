//! The states, in the order of the manual's tables.

mod key;
mod login;
mod rights;
mod trouble;

use super::state::State;

/// Every state.
pub(super) fn all() -> Vec<State> {
    [login::STATES, rights::STATES, trouble::STATES, key::STATES].concat()
}
