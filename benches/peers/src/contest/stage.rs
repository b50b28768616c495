//! Every contestant on a thread of its own, which sleeps between its rounds.
//!
//! A runtime of several workers has such threads anyway. Run on the program's main thread, which
//! never rests, all others found a warmer place: with one caller the same library on the same
//! machine was 1.04 against 1.09 times the floor there, and 1.10 against 1.11 with a thread for
//! each (24 rounds of 200 ms, current-thread against multi-thread).

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::{Contestant, Failure, Open, Yield};

/// A contestant on its thread.
pub(crate) struct Stage {
    jobs: Sender<Job>,
    results: Receiver<Done>,
}

enum Job {
    Run { callers: usize, time: Duration },
    RunAt { rate: u32, time: Duration },
    Settle,
}

enum Done {
    Ready(Result<(), Failure>),
    Ran(Result<Yield, Failure>),
    RanAt(Result<Open, Failure>),
    Settled(Result<(), Failure>),
}

impl Stage {
    /// Makes a contestant on a thread of its own, which ends with the stage.
    pub(crate) fn new(
        make: impl FnOnce() -> Result<Box<dyn Contestant>, Failure> + Send + 'static,
    ) -> Result<Self, Failure> {
        let (jobs, for_thread) = channel();
        let (done, results) = channel();
        let work = move || match make() {
            Ok(mut contestant) => {
                // An error says that the asker is gone: no result is wanted.
                let _ = done.send(Done::Ready(Ok(()))).and_then(|()| {
                    for_thread.iter().try_for_each(|job| done.send(act(contestant.as_mut(), job)))
                });
            }
            Err(failure) => drop(done.send(Done::Ready(Err(failure)))),
        };
        thread::Builder::new().name("contestant".into()).spawn(work)?;
        match results.recv()? {
            Done::Ready(made) => made.map(|()| Self { jobs, results }),
            _ => Err(OTHER.into()),
        }
    }

    fn call(&self, job: Job) -> Result<Done, Failure> {
        self.jobs.send(job)?;
        Ok(self.results.recv()?)
    }
}

fn act(contestant: &mut dyn Contestant, job: Job) -> Done {
    match job {
        Job::Run { callers, time } => Done::Ran(contestant.run(callers, time)),
        Job::RunAt { rate, time } => Done::RanAt(contestant.run_at(rate, time)),
        Job::Settle => Done::Settled(contestant.settle()),
    }
}

impl Contestant for Stage {
    fn run(&mut self, callers: usize, time: Duration) -> Result<Yield, Failure> {
        match self.call(Job::Run { callers, time })? {
            Done::Ran(result) => result,
            _ => Err(OTHER.into()),
        }
    }

    fn run_at(&mut self, rate: u32, time: Duration) -> Result<Open, Failure> {
        match self.call(Job::RunAt { rate, time })? {
            Done::RanAt(result) => result,
            _ => Err(OTHER.into()),
        }
    }

    fn settle(&mut self) -> Result<(), Failure> {
        match self.call(Job::Settle)? {
            Done::Settled(result) => result,
            _ => Err(OTHER.into()),
        }
    }
}

const OTHER: &str = "the contestant's thread answered another question";
