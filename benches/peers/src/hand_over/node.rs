//! A process of node-redlock, where Node.js is installed and `tests/rig/tools` has fetched it.

use std::path::{Path, PathBuf};
use std::process::Command;

use support::tools;

use super::KEY;
use crate::contest::{Failure, TTL};
use crate::servers::Nodes;

/// Node.js, and where its packages are.
pub(crate) struct Node {
    program: PathBuf,
    packages: PathBuf,
}

impl Node {
    pub(crate) fn find() -> Result<Self, Failure> {
        let program = tools::on_path("node").ok_or("no Node.js")?;
        let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/rig/node");
        match packages.join("node_modules/redlock").is_dir() {
            true => Ok(Self { program, packages }),
            false => Err("no node-redlock (run tests/rig/tools)".into()),
        }
    }

    /// Starts it.
    pub(crate) fn command(&self, nodes: &Nodes) -> Command {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/hand_over/node_redlock.cjs");
        let mut command = Command::new(&self.program);
        command.arg(script).arg(&self.packages).args([KEY, &TTL.as_millis().to_string()]);
        command.args(&nodes.urls);
        command
    }

    /// The versions of what it consists of.
    pub(crate) fn versions(&self) -> String {
        let of = |package: &str| {
            let path = self.packages.join(format!("node_modules/{package}/package.json"));
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let version = text.split_once("\"version\": \"").map_or("", |(_, rest)| rest);
            version.split('"').next().unwrap_or_default().to_owned()
        };
        format!("node-redlock {} on ioredis {}", of("redlock"), of("ioredis"))
    }
}
