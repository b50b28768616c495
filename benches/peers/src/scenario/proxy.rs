//! A network that takes its time: one proxy per node, all on one thread.
//!
//! What goes to a node and what comes from it is held back for half the node's delay each. A timer
//! of the kernel's wakes the thread shortly before the next delivery is due, and it watches the
//! clock from there, for a wake-up alone is tens of microseconds late. How late each delivery was
//! is counted.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::clock;
use crate::contest::Failure;

/// How long before a delivery is due the clock is watched.
const WATCH: Duration = Duration::from_micros(30);

/// How often the thread looks whether it is to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Where the connections' names for epoll begin; listeners have those below.
const CONNECTIONS: u64 = 1 << 16;
const TIMER: u64 = u64::MAX;

/// Running proxies.
pub(crate) struct Proxies {
    pub(crate) addrs: Vec<SocketAddr>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Vec<u32>, Failure>>>,
}

impl Proxies {
    /// Starts one for each server and its delay.
    pub(crate) fn start(servers: &[(SocketAddr, Duration)]) -> Result<Self, Failure> {
        let ending = Arc::new(AtomicBool::new(false));
        let mut line = Line::new(ending.clone())?;
        let mut addrs = Vec::new();
        for (server, delay) in servers {
            addrs.push(line.listen(*server, *delay)?);
        }
        let thread = std::thread::Builder::new().name("proxy".into()).spawn(move || line.run())?;
        Ok(Self { addrs, ending, thread: Some(thread) })
    }

    /// Ends them; returns how late each delivery was, in nanoseconds.
    pub(crate) fn stop(mut self) -> Result<Vec<u32>, Failure> {
        self.ending.store(true, Ordering::SeqCst);
        let Some(thread) = self.thread.take() else { return Ok(Vec::new()) };
        thread.join().map_err(|_| "the proxy panicked")?
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
    }
}

/// The thread's own.
struct Line {
    ending: Arc<AtomicBool>,
    poll: OwnedFd,
    timer: OwnedFd,
    /// When the timer is set to expire.
    set: Option<Instant>,
    listeners: Vec<(TcpListener, SocketAddr, Duration)>,
    /// Connections are not forgotten: there are a few dozen.
    pairs: Vec<Pair>,
    late_ns: Vec<u32>,
    inbox: Box<[u8]>,
}

/// A client's connection and that to its server.
struct Pair {
    client: Lane,
    server: Lane,
    /// One way.
    delay: Duration,
}

/// One end, and what is held back that came from it, the earliest first.
struct Lane {
    stream: TcpStream,
    held: VecDeque<(Instant, Vec<u8>)>,
}

impl Pair {
    /// What is due next.
    fn due(&self) -> Option<Instant> {
        [&self.client, &self.server].into_iter().filter_map(Lane::due).min()
    }
}

impl Lane {
    fn due(&self) -> Option<Instant> {
        self.held.front().map(|(due, _)| *due)
    }

    /// Delivers to the other end what is due. Who has gone away misses it, as on any network.
    fn deliver(&mut self, mut to: &TcpStream, late_ns: &mut Vec<u32>) {
        while self.due().is_some_and(|due| due <= clock::now()) {
            let Some((due, bytes)) = self.held.pop_front() else { break };
            match to.write_all(&bytes) {
                Ok(()) => late_ns.push(u32::try_from(due.elapsed().as_nanos()).unwrap_or(u32::MAX)),
                Err(_) => self.held.clear(),
            }
        }
    }
}

impl Line {
    fn new(ending: Arc<AtomicBool>) -> Result<Self, Failure> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&poll, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
        let (listeners, pairs, late_ns) = (Vec::new(), Vec::new(), Vec::new());
        let inbox = vec![0; 64 << 10].into_boxed_slice();
        Ok(Self { ending, poll, timer, set: None, listeners, pairs, late_ns, inbox })
    }

    fn listen(&mut self, server: SocketAddr, delay: Duration) -> Result<SocketAddr, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let data = epoll::EventData::new_u64(self.listeners.len() as u64);
        epoll::add(&self.poll, &listener, data, epoll::EventFlags::IN)?;
        self.listeners.push((listener, server, delay));
        Ok(addr)
    }

    /// Forwards until it is told to end.
    fn run(mut self) -> Result<Vec<u32>, Failure> {
        let mut ready = Vec::with_capacity(64);
        // Ordering: a flag and nothing with it.
        while !self.ending.load(Ordering::Relaxed) {
            let patience = self.patience()?;
            ready.clear();
            epoll::wait(&self.poll, spare_capacity(&mut ready), Some(&patience))?;
            for event in &ready {
                match event.data.u64() {
                    TIMER => self.expired()?,
                    name if name < CONNECTIONS => self.accept(name as usize)?,
                    name => self.forward(name - CONNECTIONS)?,
                }
            }
            self.deliver();
        }
        Ok(self.late_ns)
    }

    /// How long to wait for the sockets: not at all where a delivery is nearly due. Sets the timer.
    fn patience(&mut self) -> Result<Timespec, Failure> {
        let Some(due) = self.pairs.iter().filter_map(Pair::due).min() else { return Ok(LOOK) };
        let left = due.saturating_duration_since(clock::now()).saturating_sub(WATCH);
        if left.is_zero() {
            return Ok(Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        if self.set != Some(due) {
            let it_value = Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            let times = Itimerspec { it_interval, it_value };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times)?;
            self.set = Some(due);
        }
        Ok(LOOK)
    }

    fn expired(&mut self) -> Result<(), Failure> {
        self.set = None;
        match rustix::io::read(&self.timer, &mut [0; 8]) {
            // It was set anew between the event and now.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn accept(&mut self, listener: usize) -> Result<(), Failure> {
        let (listener, server, delay) = &self.listeners[listener];
        let (client, _) = listener.accept()?;
        let server = TcpStream::connect(server)?;
        let name = CONNECTIONS + 2 * self.pairs.len() as u64;
        for (side, stream) in [(0, &client), (1, &server)] {
            stream.set_nodelay(true)?;
            let data = epoll::EventData::new_u64(name + side);
            epoll::add(&self.poll, stream, data, epoll::EventFlags::IN)?;
        }
        let [client, server] =
            [client, server].map(|stream| Lane { stream, held: VecDeque::new() });
        self.pairs.push(Pair { client, server, delay: *delay / 2 });
        Ok(())
    }

    /// Reads one side once; the end of one is the end of both.
    fn forward(&mut self, name: u64) -> Result<(), Failure> {
        let Self { pairs, inbox, poll, .. } = self;
        let Pair { client, server, delay } = &mut pairs[name as usize / 2];
        let (from, to) = if name.is_multiple_of(2) { (client, server) } else { (server, client) };
        match from.stream.read(inbox) {
            Ok(read) if read > 0 => {
                from.held.push_back((clock::now() + *delay, inbox[..read].to_vec()));
            }
            // An error is an end as well.
            _ => {
                epoll::delete(&*poll, &from.stream)?;
                // The other side may be gone already; then it need not be told.
                let _ = to.stream.shutdown(Shutdown::Both);
                from.held.clear();
                to.held.clear();
            }
        }
        Ok(())
    }

    /// Delivers what is due.
    fn deliver(&mut self) {
        for Pair { client, server, .. } in &mut self.pairs {
            client.deliver(&server.stream, &mut self.late_ns);
            server.deliver(&client.stream, &mut self.late_ns);
        }
    }
}
