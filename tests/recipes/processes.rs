//! Processes of this program, which are killed and stopped while they work.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use support::Watchdog;
use support::process::{Process, tied};

/// Since 1970, by the clock of the machine.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

/// What a process was told, where this is one.
pub(crate) fn told<T: FromStr<Err: Debug>>(name: &str) -> Option<T> {
    Some(std::env::var(format!("QUORLOCK_RECIPE_{name}")).ok()?.parse().unwrap())
}

/// Any number below `count`.
pub(crate) fn random(count: u64) -> u64 {
    RandomState::new().hash_one(0) % count
}

/// A process that is started again under the same name when it was killed.
pub(crate) struct Member {
    test: &'static str,
    told: Vec<(&'static str, String)>,
    process: Process,
}

impl Member {
    /// Starts the test of this name as a process that is told this.
    pub(crate) fn start(test: &'static str, told: Vec<(&'static str, String)>) -> Self {
        let process = Self::spawn(test, &told);
        Self { test, told, process }
    }

    fn spawn(test: &str, told: &[(&str, String)]) -> Process {
        let mut command = tied(&std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).stdout(std::process::Stdio::null());
        for (name, value) in told {
            command.env(format!("QUORLOCK_RECIPE_{name}"), value);
        }
        Process::spawn(command).unwrap()
    }
}

/// Some processes, and what has been done to them.
pub(crate) struct Group {
    members: Vec<Member>,
    /// The ids of those that were killed.
    pub(crate) killed: BTreeSet<u32>,
    pub(crate) pauses: usize,
}

impl Group {
    pub(crate) fn new(members: Vec<Member>) -> Self {
        Self { members, killed: BTreeSet::new(), pauses: 0 }
    }

    /// Kills one of them, and starts another in its place.
    pub(crate) fn kill_one(&mut self) {
        self.kill(random(self.members.len() as u64) as usize);
    }

    /// Kills that with this process id, if it is one of them, and starts another in its place.
    pub(crate) fn kill_process(&mut self, pid: u32) -> bool {
        let found = self.members.iter().position(|member| member.process.pid() == pid);
        found.map(|index| self.kill(index)).is_some()
    }

    fn kill(&mut self, index: usize) {
        let member = &mut self.members[index];
        self.killed.insert(member.process.pid());
        member.process.kill();
        member.process = Member::spawn(member.test, &member.told);
    }

    /// Ends all of them.
    pub(crate) fn end(&mut self) {
        self.members.clear();
    }

    /// Stops one of them for so long.
    pub(crate) fn pause_one(&mut self, time: Duration) {
        let count = self.members.len() as u64;
        let process = &mut self.members[random(count) as usize].process;
        if process.exited().is_none() {
            process.pause();
            std::thread::sleep(time);
            process.resume();
            self.pauses += 1;
        }
    }

    /// Waits until all of them have ended, each well.
    pub(crate) fn join(&mut self, patience: Duration) {
        for member in &mut self.members {
            let watchdog = Watchdog::with_patience("a process to end", patience);
            let status = loop {
                match member.process.exited() {
                    Some(status) => break status,
                    None => watchdog.pause(),
                }
            };
            assert!(status.success(), "{status}");
        }
    }
}
