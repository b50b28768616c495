//! A scheduler in three processes: one of them runs the jobs, and when it dies another goes on.
//!
//! ```sh
//! cargo run --example scheduler                           # three processes and nodes of its own
//! cargo run --example scheduler -- redis://127.0.0.1:6379 # one process, on your nodes
//! ```

#![expect(clippy::disallowed_methods, reason = "users have real time; this library its clock")]

use std::error::Error;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use quorlock::testing::Node;
use quorlock::{Extend, Locker};

/// How often there is a job to be run.
const EVERY: Duration = Duration::from_millis(50);

/// Above the time that a process needs to start, or to take over.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the jobs rest when the process that ran them has died.
const TTL: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        return three_processes().await;
    }
    let locker = Locker::quorum(urls)?.prefix("example:").ttl(TTL).build()?;
    loop {
        let Err(error) = run_jobs(&locker).await;
        // Another process goes on; this one stands in line again. What cannot get better ends it.
        eprintln!("{error}");
        if !error.is_lost() && !error.is_retryable() {
            return Err(error.into());
        }
    }
}

/// Runs the jobs for as long as this process holds the lock.
async fn run_jobs(locker: &Locker) -> Result<std::convert::Infallible, quorlock::Error> {
    let request = locker.lock("scheduler").auto_extend(Extend::Forever).wait_forever();
    request
        .run(|_held| async {
            let (mut ticks, mut last) = (tokio::time::interval(EVERY), 0);
            loop {
                // When the lock is lost, this is dropped where it waits.
                ticks.tick().await;
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let job = since.unwrap_or_default().as_millis() / EVERY.as_millis();
                // Ticks that come late come close together. That no other process has run this job
                // is for what the job writes to: it refuses one that is not above its last.
                if job > last {
                    println!("{} {job}", std::process::id());
                    last = job;
                }
            }
        })
        .await
}

/// Three processes of this program on three nodes. The one that runs the jobs is killed.
async fn three_processes() -> Result<(), Box<dyn Error + Send + Sync>> {
    let nodes = [Node::listen().await?, Node::listen().await?, Node::listen().await?];
    let urls: Vec<String> = nodes.iter().filter_map(Node::url).collect();
    Ok(tokio::task::spawn_blocking(move || one_after_the_other(&urls)).await??)
}

fn one_after_the_other(urls: &[String]) -> io::Result<()> {
    let (say, said) = mpsc::channel();
    let mut processes = Processes(Vec::new());
    for _ in 0..3 {
        processes.start(urls, say.clone())?;
    }
    drop(say);
    // The iterator ends when all processes have ended, or are silent for too long.
    let mut jobs = std::iter::from_fn(|| said.recv_timeout(PATIENCE).ok()).peekable();
    for turn in 1..=3 {
        let of_ten: Vec<(u32, u64)> = jobs.by_ref().take(10).collect();
        let Some(&(process, first)) = of_ten.first() else { break };
        let last = of_ten.last().map_or(first, |(_, job)| *job);
        let own = of_ten.iter().filter(|(by, _)| *by == process).count();
        println!("process {turn}: jobs {first} to {last}, {own} of them");
        processes.kill(process)?;
        // What it had said before it was killed is no job of the next one.
        while jobs.next_if(|(by, _)| *by == process).is_some() {}
    }
    Ok(())
}

/// Processes that end with this one.
struct Processes(Vec<Child>);

impl Processes {
    /// Starts one, and tells which process has run which job.
    fn start(&mut self, urls: &[String], say: mpsc::Sender<(u32, u64)>) -> io::Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(urls).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take();
        self.0.push(child);
        thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
                let line = line.unwrap_or_default();
                let told =
                    line.split_once(' ').map(|(process, job)| (process.parse(), job.parse()));
                if let Some((Ok(process), Ok(job))) = told {
                    if say.send((process, job)).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(())
    }

    fn kill(&mut self, process: u32) -> io::Result<()> {
        match self.0.iter_mut().find(|child| child.id() == process) {
            Some(child) => child.kill().and_then(|()| child.wait().map(drop)),
            None => Ok(()),
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has been killed cannot be killed again.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
