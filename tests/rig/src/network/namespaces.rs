//! Network namespaces: one for the supervisor and the servers, one for each client.
//!
//! ```text
//!  client 0: eth0 10.77.0.2 ═══ c0 10.77.0.1 ┐
//!  client 1: eth0 10.77.1.2 ═══ c1 10.77.1.1 ┼ the servers' ports; nft on what comes and what goes
//!  …                                          ┘
//! ```
//!
//! All are nameless: each lives as long as a process in it, so nothing can be left behind. A
//! client's is held by a process that only sleeps, so that the kernel goes on delivering what a
//! killed client had sent. Nothing leaves them, for they have no other interface; the addresses
//! exist in them alone.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::process::{Process, tied};
use support::tools::on_path;
use support::wait::eventually;

use crate::Failure;
use crate::paths::{Paths, Way};
use crate::tools;

/// The command that starts a program in a new network namespace; an error says what is lacking.
pub(super) fn entrance() -> Result<Command, Failure> {
    tools::nft()?;
    for program in ["ip", "nsenter", "unshare"] {
        on_path(program).ok_or_else(|| format!("no `{program}` (install util-linux, iproute2)"))?;
    }
    let as_root: &[&str] = &["--net"];
    let as_user: &[&str] = &["--user", "--map-root-user", "--net"];
    for way in [as_root, as_user] {
        let mut probe = Command::new("unshare");
        probe.args(way).args(["--", "ip", "link", "set", "lo", "up"]).stderr(Stdio::null());
        if probe.status().is_ok_and(|status| status.success()) {
            let mut command = Command::new("unshare");
            command.args(way).arg("--");
            return Ok(command);
        }
    }
    Err("neither root nor a user namespace may make one here".into())
}

/// A new namespace has a loopback interface, and it is down.
pub(super) fn prepare() -> Result<(), Failure> {
    run("ip", &["link", "set", "lo", "up"])
}

/// The clients' namespaces, and the servers' ports.
#[derive(Debug)]
pub(crate) struct Namespaces {
    nft: PathBuf,
    ports: Vec<u16>,
    /// Each holds a client's namespace.
    holders: Vec<Process>,
}

impl Namespaces {
    pub(super) fn build(clients: usize, ports: &[u16]) -> Result<Self, Failure> {
        let mut holders = Vec::new();
        for client in 0..clients {
            holders.push(client_namespace(client)?);
        }
        let network = Self { nft: tools::nft()?, ports: ports.to_vec(), holders };
        network.rule("table inet rig\n")?;
        Ok(network)
    }

    pub(super) fn urls(&self, client: usize) -> Vec<String> {
        self.ports.iter().map(|port| format!("redis://10.77.{client}.1:{port}")).collect()
    }

    pub(super) fn command(&self, client: usize, program: &Path) -> Command {
        let mut command = tied(Path::new("nsenter"));
        let holder = self.holders[client].pid();
        command.arg(format!("--net=/proc/{holder}/ns/net")).arg("--").arg(program);
        command
    }

    pub(super) fn apply(&self, paths: &Paths) -> Result<(), Failure> {
        self.rule(&rules(paths, &self.ports))
    }

    /// Hands rules to nft, which takes all of them at one instant or none.
    fn rule(&self, rules: &str) -> Result<(), Failure> {
        let mut child = Command::new(&self.nft).args(["-f", "-"]).stdin(Stdio::piped()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(rules.as_bytes())?;
        }
        let status = child.wait()?;
        status.success().then_some(()).ok_or_else(|| format!("nft refused:\n{rules}").into())
    }
}

/// Makes a namespace with a veth pair to ours, and returns the process that holds it.
fn client_namespace(client: usize) -> Result<Process, Failure> {
    let mut command = tied(Path::new("unshare"));
    command.args(["--net", "--", "sleep", "infinity"]).stdin(Stdio::null());
    let holder = Process::spawn(command)?;
    let pid = holder.pid().to_string();
    let theirs = PathBuf::from(format!("/proc/{pid}/ns/net"));
    let ours = std::fs::read_link("/proc/self/ns/net")?;
    eventually("a new network namespace", || {
        std::fs::read_link(&theirs).is_ok_and(|theirs| theirs != ours)
    });
    let (own, peer) = (format!("c{client}"), format!("10.77.{client}.2/30"));
    run("ip", &["link", "add", &own, "type", "veth", "peer", "name", "eth0", "netns", &pid])?;
    run("ip", &["addr", "add", &format!("10.77.{client}.1/30"), "dev", &own])?;
    run("ip", &["link", "set", &own, "up"])?;
    let inside = format!("--net={}", theirs.display());
    run("nsenter", &[&inside, "--", "ip", "addr", "add", &peer, "dev", "eth0"])?;
    run("nsenter", &[&inside, "--", "ip", "link", "set", "eth0", "up"])?;
    run("nsenter", &[&inside, "--", "ip", "link", "set", "lo", "up"])?;
    Ok(holder)
}

fn run(program: &str, args: &[&str]) -> Result<(), Failure> {
    let output = Command::new(program).args(args).output()?;
    let why = || {
        let error = String::from_utf8_lossy(&output.stderr);
        format!("{program} {}: {}", args.join(" "), error.trim()).into()
    };
    output.status.success().then_some(()).ok_or_else(why)
}

/// All paths as rules, in place of those there are.
fn rules(paths: &Paths, ports: &[u16]) -> String {
    let (mut to, mut from) = (String::new(), String::new());
    for (client, node, path) in paths.disturbed() {
        let port = ports[node];
        // A string takes what is written.
        let _ = rule(&mut to, &format!("iifname \"c{client}\" tcp dport {port}"), path.to);
        let _ = rule(&mut from, &format!("oifname \"c{client}\" tcp sport {port}"), path.from);
    }
    format!(
        "flush table inet rig\ntable inet rig {{\n\
         chain to {{\ntype filter hook input priority 0; policy accept;\n{to}}}\n\
         chain from {{\ntype filter hook output priority 0; policy accept;\n{from}}}\n}}\n"
    )
}

fn rule(rules: &mut String, which: &str, way: Way) -> std::fmt::Result {
    match way {
        // Packets have no delay here: the kernel may lack the queue for it.
        Way::Clear | Way::Late(_) => Ok(()),
        Way::Lossy(percent) => writeln!(rules, "{which} numgen random mod 100 < {percent} drop"),
        Way::Dead | Way::Void => writeln!(rules, "{which} drop"),
        Way::Reset => writeln!(rules, "{which} reject with tcp reset"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Path;

    #[test]
    fn paths_are_written_as_rules() {
        let mut paths = Paths::clear(2, 2);
        paths.add(0b01, 0b10, Path { to: Way::Dead, from: Way::Clear });
        paths.add(0b10, 0b01, Path { to: Way::Reset, from: Way::Lossy(20) });
        let rules = rules(&paths, &[10_001, 10_002]);
        let expected = "flush table inet rig\ntable inet rig {\nchain to {\n\
                        type filter hook input priority 0; policy accept;\n\
                        iifname \"c0\" tcp dport 10002 drop\n\
                        iifname \"c1\" tcp dport 10001 reject with tcp reset\n}\n\
                        chain from {\ntype filter hook output priority 0; policy accept;\n\
                        oifname \"c1\" tcp sport 10001 numgen random mod 100 < 20 drop\n}\n}\n";
        assert_eq!(rules, expected);
    }
}
