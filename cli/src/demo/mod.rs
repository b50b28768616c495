//! `quorlock demo`: shows locking on five real servers, which it starts and removes, or on five
//! nodes inside this process if no server is installed.
//!
//! | file | job |
//! |---|---|
//! | `server` | finding a server's program |
//! | `fleet`, `node`, `scratch` | five nodes and their directory, gone when dropped |
//! | `process` | a node that is a process |
//! | `story` | what happens, step by step |
//! | `sample` | many acquisitions, and how long they took |
//! | `screen` | a line for each step |

mod fleet;
mod node;
mod process;
mod sample;
mod scratch;
mod screen;
mod server;
mod story;

use crate::exit::Failure;
use crate::runtime;
use crate::signals::{self, Signals};

/// Runs the demo. However it ends, also by a signal, the servers are stopped and removed.
pub(crate) fn run() -> Result<(), Failure> {
    let server = server::find()?;
    runtime::block_on(play(&server))
}

async fn play(server: &server::Server) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    tokio::select! {
        told = story::tell(server) => told,
        // The story is dropped first, and its servers with it.
        signal = signals.next() => {
            Err(Failure::new(signals::cause(signal), "stopped early; the servers are removed"))
        }
    }
}
