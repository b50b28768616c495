//! Processes of libraries in other languages, where the language is installed and `tests/rig/tools`
//! has fetched the library.

use std::path::{Path, PathBuf};
use std::process::Command;

use support::tools;

use super::KEY;
use crate::contest::{Failure, TTL};
use crate::servers::Nodes;

/// A library in another language.
#[derive(Clone, Copy)]
pub(crate) enum Foreign {
    NodeRedlock,
    Pottery,
}

impl Foreign {
    pub(crate) const ALL: [Self; 2] = [Self::NodeRedlock, Self::Pottery];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NodeRedlock => "node-redlock",
            Self::Pottery => "pottery",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|library| library.name() == name)
    }

    /// The command that starts a process of it.
    pub(crate) fn command(self, nodes: &Nodes) -> Result<Command, Failure> {
        let mut command = Command::new(self.program()?);
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/hand_over");
        command.arg(scripts.join(match self {
            Self::NodeRedlock => "node_redlock.cjs",
            Self::Pottery => "pottery.py",
        }));
        command.arg(self.packages()).args([KEY, &TTL.as_millis().to_string()]).args(&nodes.urls);
        Ok(command)
    }

    /// The versions that are measured, or why it cannot take part.
    pub(crate) fn versions(self) -> Result<String, Failure> {
        self.program()?;
        let packages = self.packages();
        Ok(match self {
            Self::NodeRedlock => {
                let of = |package: &str| {
                    let path = packages.join(format!("node_modules/{package}/package.json"));
                    let text = std::fs::read_to_string(path).unwrap_or_default();
                    let version = text.split_once("\"version\": \"").map_or("", |(_, rest)| rest);
                    version.split('"').next().unwrap_or_default().to_owned()
                };
                format!("{} on ioredis {}", of("redlock"), of("ioredis"))
            }
            Self::Pottery => {
                let of = |package: &str| {
                    let folders = std::fs::read_dir(&packages).into_iter().flatten().flatten();
                    let names = folders.map(|folder| folder.file_name().into_string());
                    let version = |name: String| {
                        let rest = name.strip_prefix(package)?.strip_prefix('-')?;
                        Some(rest.strip_suffix(".dist-info")?.to_owned())
                    };
                    names.flatten().find_map(version).unwrap_or_default()
                };
                format!("{} on redis-py {}", of("pottery"), of("redis"))
            }
        })
    }

    fn packages(self) -> PathBuf {
        let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/rig");
        fetched.join(match self {
            Self::NodeRedlock => "node",
            Self::Pottery => "python",
        })
    }

    /// The interpreter, where it and the library are there.
    fn program(self) -> Result<PathBuf, Failure> {
        let (program, library, why) = match self {
            Self::NodeRedlock => ("node", "node_modules/redlock", "no Node.js"),
            Self::Pottery => ("python3", "pottery", "no Python"),
        };
        if !self.packages().join(library).is_dir() {
            return Err(format!("no {} (run tests/rig/tools)", self.name()).into());
        }
        Ok(tools::on_path(program).ok_or(why)?)
    }
}
