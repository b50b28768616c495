//! How a server's process is started, and when it counts as started.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::acl;
use crate::port::Port;
use crate::process::{Process, tied};
use crate::scratch::Scratch;
use crate::server::Builder;
use crate::wait::Watchdog;
use crate::wire::{Client, Reply};

/// How long a server may take to answer its first PING: long, for the machine may be building.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// Why a process did not become a server.
pub(crate) enum Refusal {
    PortTaken,
    Other(String),
}

/// Runs the program and waits until it answers.
pub(crate) fn launch(
    program: &Path,
    spec: &Builder,
    (port, tls_port): (&Port, Option<&Port>),
    dir: &Scratch,
) -> Result<Process, Refusal> {
    let log = File::create(log_path(dir)).expect("our own directory takes a file");
    let mut command = tied(program);
    command
        .args(["--port", &port.number().to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .arg("--dir")
        .arg(dir.path())
        .args(&spec.args)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stderr(log.try_clone().expect("a file handle can be cloned"))
        .stdout(log);
    if acl::is_least() {
        command.args(["--user", "least"]).args(acl::least().split(' '));
    }
    if cfg!(unix) {
        command.arg("--unixsocket").arg(socket_path(dir));
    }
    if let (Some((identity, clients)), Some(port)) = (&spec.tls, tls_port) {
        let file = |name: &str, pem: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, pem).expect("our own directory takes a file");
            path
        };
        command
            .args(["--tls-port", &port.number().to_string()])
            .arg("--tls-cert-file")
            .arg(file("server.crt", &identity.certificate))
            .arg("--tls-key-file")
            .arg(file("server.key", &identity.key))
            .args(["--tls-auth-clients", if clients.is_some() { "yes" } else { "no" }]);
        if let Some(authority) = clients {
            command.arg("--tls-ca-cert-file").arg(file("clients.crt", authority));
        }
    }
    let mut process = Process::spawn(command).map_err(|error| Refusal::Other(error.to_string()))?;

    let what = format!("{} to answer PING on {}", program.display(), port.addr());
    let watchdog = Watchdog::with_patience(what, START_PATIENCE);
    loop {
        if process.exited().is_some() {
            let log = read_log(dir);
            let taken = log.contains("already in use") || log.contains("Failed listening");
            return Err(if taken { Refusal::PortTaken } else { Refusal::Other(log) });
        }
        if answers(port.addr()) {
            return Ok(process);
        }
        watchdog.pause();
    }
}

/// Whether a server is there and ready. One that asks for a password is.
fn answers(addr: SocketAddr) -> bool {
    let reply = Client::connect(addr).and_then(|mut client| client.call(&["PING"]));
    match reply {
        Ok(Reply::Error(why)) => !why.starts_with("LOADING"),
        Ok(_) => true,
        Err(_) => false,
    }
}

pub(crate) fn socket_path(dir: &Scratch) -> PathBuf {
    dir.path().join("server.sock")
}

fn log_path(dir: &Scratch) -> PathBuf {
    dir.path().join("server.log")
}

fn read_log(dir: &Scratch) -> String {
    let bytes = std::fs::read(log_path(dir)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
