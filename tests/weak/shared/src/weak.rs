//! Which rule of safety is broken in a weakened build.
//!
//! `QUORLOCK_WEAKNESS` names it, by its patch in `tests/weak`, for a process; a test may `choose`
//! another one. Where it is unset or empty, none is.

use std::env;
use std::sync::{LazyLock, PoisonError, RwLock};

static CHOSEN: LazyLock<RwLock<String>> =
    LazyLock::new(|| RwLock::new(env::var("QUORLOCK_WEAKNESS").unwrap_or_default()));

/// Whether the library runs with this weakness. Every patch in `tests/weak` asks for its own.
pub(crate) fn is(weakness: &str) -> bool {
    *CHOSEN.read().unwrap_or_else(PoisonError::into_inner) == weakness
}

/// The weakness of this process, or "".
#[cfg(test)]
pub(crate) fn chosen() -> String {
    CHOSEN.read().unwrap().clone()
}

/// Has all threads of the process run with this weakness from now on; with none if it is "".
#[cfg(test)]
pub(crate) fn choose(weakness: &str) {
    *CHOSEN.write().unwrap() = weakness.to_owned();
}
