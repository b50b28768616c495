//! Child processes that never outlive the test.
//!
//! A dropped [`Process`] is killed and reaped, also while a panic unwinds. If the whole test
//! process is killed, the kernel kills the child (Linux, where `setpriv` can ask for it). That
//! promise is bound to the *thread* that spawned the child, so one thread that lives as long as
//! the process spawns them all.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};

use crate::wait::Watchdog;

/// A child process, killed and reaped when dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Spawns `command`, which should come from [`tied`] if it is to die with us.
    pub fn spawn(command: Command) -> io::Result<Self> {
        struct Order(Command, mpsc::Sender<io::Result<Child>>);
        static SPAWNER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
        let spawner = SPAWNER.get_or_init(|| {
            let (orders, inbox) = mpsc::channel::<Order>();
            let work = move || {
                for Order(mut command, answer) in inbox {
                    let gone = answer.send(command.spawn());
                    assert!(gone.is_ok(), "the caller waits for its child");
                }
            };
            std::thread::Builder::new().name("spawner".into()).spawn(work).expect("a thread");
            orders
        });
        let (answer, reply) = mpsc::channel();
        spawner.send(Order(command, answer)).expect("the spawner lives as long as we do");
        reply.recv().expect("the spawner answers").map(Self)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// How it ended, or nothing while it runs.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("our own child can be waited for")
    }

    /// Kills it at once and reaps it.
    pub fn kill(&mut self) -> ExitStatus {
        self.0.kill().expect("our own child can be killed");
        self.0.wait().expect("our own child can be waited for")
    }

    /// Stops it with SIGSTOP, and returns when it has stopped.
    #[cfg(unix)]
    pub fn pause(&self) {
        use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};
        self.signal(Signal::STOP);
        // The signal stops a running process only at its next entry into the kernel.
        let watchdog = Watchdog::new("a process to stop");
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        while waitid(WaitId::Pid(self.raw_pid()), options).expect("our own child").is_none() {
            watchdog.pause();
        }
    }

    /// Lets it go on with SIGCONT.
    #[cfg(unix)]
    pub fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    /// Sends it `signal`.
    #[cfg(unix)]
    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.raw_pid(), signal).expect("our own child, unreaped");
    }

    #[cfg(unix)]
    fn raw_pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.0)
    }

    /// There is no such thing here; the tests that need it are for Unix.
    #[cfg(not(unix))]
    pub fn pause(&self) {
        panic!("stopping a process needs Unix signals")
    }

    /// There is no such thing here; the tests that need it are for Unix.
    #[cfg(not(unix))]
    pub fn resume(&self) {
        panic!("resuming a process needs Unix signals")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only where the child is gone already, and a panic in drop would abort.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command for `program` that the kernel kills when this process dies, where that can be had.
pub fn tied(program: &Path) -> Command {
    static HAVE_SETPRIV: OnceLock<bool> = OnceLock::new();
    let setpriv = || {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        command
    };
    let works = || {
        let mut probe = setpriv();
        probe.arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    };
    // `setpriv` replaces itself with the program, so the child's id is the program's.
    if cfg!(target_os = "linux") && *HAVE_SETPRIV.get_or_init(works) {
        let mut command = setpriv();
        command.arg(program);
        command
    } else {
        Command::new(program)
    }
}
