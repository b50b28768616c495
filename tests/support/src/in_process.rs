//! A node inside this process in the place of a server's process.
//!
//! Each node runs on a thread of its own, so that it serves while a test's runtime is blocked, and
//! gets its share of the processor as a process would. A process that is stopped by a signal is a
//! node that hangs.

use std::ops::Deref;
use std::thread;

use quorlock::testing::{Node, NodeBuilder};
use tokio::runtime::Runtime;

use crate::port::Port;

/// A node, and what it runs on.
#[derive(Debug)]
pub struct Inside {
    node: Node,
    runtime: Option<Runtime>,
}

impl Deref for Inside {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.node.stop();
        // A runtime may not be waited for inside another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Starts one on this port, with the options of a server's command line. `None` when the port is
/// taken; panics for an option that nodes do not have.
#[track_caller]
pub fn start(port: &Port, args: &[String]) -> Option<Inside> {
    match serve(describe(args).port(port.number())) {
        Ok(node) => Some(node),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => None,
        Err(error) => panic!("a node did not start: {error}"),
    }
}

/// Starts one as it is described.
pub fn serve(builder: NodeBuilder) -> std::io::Result<Inside> {
    let start = || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_name("node").enable_all().build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(builder.listen()).map(|node| Inside { node, runtime: Some(runtime) })
    };
    // A runtime cannot be waited for from inside another one.
    let started = thread::spawn(start).join();
    started.expect("a node starts or says why not")
}

/// What a server's command line says, as nodes take it.
#[track_caller]
fn describe(args: &[String]) -> NodeBuilder {
    let mut builder = Node::builder();
    let mut words = args.iter().map(String::as_str).peekable();
    while let Some(option) = words.next() {
        let mut values = Vec::new();
        while let Some(value) = words.next_if(|word| !word.starts_with("--")) {
            values.push(value);
        }
        builder = match (option, values.as_slice()) {
            ("--requirepass", [password]) => builder.password(password),
            ("--user", [name, rules @ ..]) => builder.user(name, &rules.join(" ")),
            ("--replicaof", _) => builder.replica(),
            ("--cluster-enabled", ["yes"]) => builder.cluster(),
            ("--maxmemory-policy", [policy]) => builder.maxmemory_policy(policy),
            // A command without a name is one that no client can send.
            ("--rename-command", [command, ""]) => builder.without(command),
            other => panic!("{other:?} is for a real server: open with need_process!()"),
        };
    }
    builder
}
