//! Connecting on the network: a name becomes a stream.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::Sleep;

use super::stagger::{Stagger, Step};
use super::stream::{Dial, Dialing, Reader, Writer};
use crate::clock::{Clock, Moment};
use crate::options::{Address, Endpoint, TcpOptions};

/// Opens streams on the network.
#[derive(Debug)]
pub(crate) struct Network {
    clock: Clock,
    /// The time for making a stream; the caller enforces it.
    timeout: Duration,
}

impl Network {
    pub(crate) fn new(clock: Clock, timeout: Duration) -> Self {
        Self { clock, timeout }
    }
}

impl Dial for Network {
    fn dial(&self, address: &Address) -> Dialing {
        let Address { endpoint, tcp, .. } = address.clone();
        let clock = self.clock.clone();
        let deadline = clock.now().plus(self.timeout);
        Box::pin(async move {
            match endpoint {
                Endpoint::Tcp { host, port } => {
                    let addresses = tokio::net::lookup_host((host.as_str(), port)).await?;
                    let stream = Attempts::new(addresses, clock, deadline).connect().await?;
                    tune(&stream, tcp.unwrap_or_default())?;
                    let (reader, writer) = stream.into_split();
                    Ok((Reader::Tcp(reader), Writer::Tcp(writer)))
                }
                #[cfg(unix)]
                Endpoint::Unix { path } => {
                    let (reader, writer) = UnixStream::connect(path).await?.into_split();
                    Ok((Reader::Unix(reader), Writer::Unix(writer)))
                }
                #[cfg(not(unix))]
                Endpoint::Unix { .. } => {
                    Err(io::Error::new(io::ErrorKind::Unsupported, "no Unix sockets here"))
                }
            }
        })
    }
}

/// The attempts at the addresses of one name. The first to connect wins; dropping the others ends
/// them.
struct Attempts {
    stagger: Stagger,
    clock: Clock,
    under_way: Vec<Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>>,
    timer: Pin<Box<Sleep>>,
    /// What is told if none connects.
    error: io::Error,
}

impl Attempts {
    fn new(
        addresses: impl IntoIterator<Item = SocketAddr>,
        clock: Clock,
        deadline: Moment,
    ) -> Self {
        let now = clock.now();
        let timer = clock.sleep_until(now);
        let error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let stagger = Stagger::new(addresses, now, deadline);
        Self { stagger, clock, under_way: Vec::new(), timer, error }
    }

    async fn connect(mut self) -> io::Result<TcpStream> {
        poll_fn(|cx| self.poll(cx)).await.ok_or(self.error)
    }

    /// `None`: all have failed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<TcpStream>> {
        loop {
            if let Some(stream) = self.poll_under_way(cx) {
                return Poll::Ready(Some(stream));
            }
            match self.stagger.poll(self.clock.now()) {
                Step::Start(address) => self.under_way.push(Box::pin(TcpStream::connect(address))),
                Step::WaitUntil(next) => {
                    self.clock.reset(self.timer.as_mut(), next);
                    if self.timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                Step::Wait => return Poll::Pending,
                Step::GiveUp => return Poll::Ready(None),
            }
        }
    }

    fn poll_under_way(&mut self, cx: &mut Context<'_>) -> Option<TcpStream> {
        let (mut won, mut failed) = (None, Vec::new());
        self.under_way.retain_mut(|attempt| match attempt.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(Ok(stream)) => {
                won.get_or_insert(stream);
                false
            }
            Poll::Ready(Err(error)) => {
                failed.push(error);
                false
            }
        });
        for error in failed {
            self.stagger.handle_failure(self.clock.now());
            // A refusal says more than a missing route: a host has answered.
            if self.error.kind() != io::ErrorKind::ConnectionRefused {
                self.error = error;
            }
        }
        won
    }
}

/// Sets what the options say, and leaves to the system what they leave to it.
fn tune(stream: &TcpStream, options: TcpOptions) -> io::Result<()> {
    stream.set_nodelay(options.no_delay)?;
    let socket = socket2::SockRef::from(stream);
    if let Some(times) = options.keepalive {
        let keepalive =
            socket2::TcpKeepalive::new().with_time(times.idle).with_interval(times.interval);
        socket.set_tcp_keepalive(&keepalive)?;
    }
    #[cfg(target_os = "linux")]
    if options.user_timeout.is_some() {
        socket.set_tcp_user_timeout(options.user_timeout)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

    #[cfg(target_os = "linux")]
    use socket2::{Domain, SockRef, Socket, Type};

    use super::*;
    use crate::options::NodeOptions;

    /// A pace of 250 ms for up to three addresses.
    const DEADLINE: Duration = Duration::from_secs(60);

    fn listener(host: impl Into<std::net::IpAddr>) -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((host.into(), 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// An address at which nothing listens.
    fn dead(host: impl Into<std::net::IpAddr>) -> SocketAddr {
        listener(host).1
    }

    /// An address that takes no more connections, and does not say so: the kernel drops what asks
    /// for one while its queue is full.
    #[cfg(target_os = "linux")]
    fn black_hole() -> (Socket, Vec<Socket>, SocketAddr) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let local: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        socket.bind(&local.into()).unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap();
        let fill = |_| {
            let filler = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            filler.set_nonblocking(true).unwrap();
            let begun = filler.connect(&address); // it is under way, or already made
            assert!(begun.is_ok() || begun.is_err_and(|e| e.raw_os_error().is_some()));
            filler
        };
        let fillers = (0..4).map(fill).collect();
        (socket, fillers, address.as_socket().unwrap())
    }

    /// Connects to the first of these that lets us, and how long it took.
    async fn connect(addresses: &[SocketAddr]) -> (io::Result<TcpStream>, Duration) {
        let clock = Clock::default();
        let begun = clock.now();
        let attempts =
            Attempts::new(addresses.iter().copied(), clock.clone(), begun.plus(DEADLINE));
        let patience = Duration::from_secs(10);
        let connected = tokio::time::timeout(patience, attempts.connect()).await.unwrap();
        (connected, clock.now().since(begun))
    }

    #[tokio::test]
    async fn the_first_address_that_answers_wins_and_the_others_are_left_alone() {
        let mut alone = 0;
        for _ in 0..3 {
            let (first, second) = (listener(Ipv4Addr::LOCALHOST), listener(Ipv4Addr::LOCALHOST));
            let (connected, _) = connect(&[first.1, second.1]).await;
            assert_eq!(connected.unwrap().peer_addr().unwrap(), first.1);
            let left = second.0.accept().is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock);
            alone += u32::from(left);
        }
        assert!(alone > 0, "a machine may pause for a quarter of a second, but not each time");
    }

    #[tokio::test]
    async fn a_dead_address_costs_no_wait_in_either_family() {
        let (_four, four) = listener(Ipv4Addr::LOCALHOST);
        let dead_four = || dead(Ipv4Addr::LOCALHOST);
        // A quarter of a second each would be more than `connect` waits.
        let mut addresses: Vec<_> = std::iter::repeat_with(dead_four).take(50).collect();
        addresses.push(four);
        let (connected, _) = connect(&addresses).await;
        assert_eq!(connected.unwrap().peer_addr().unwrap(), four);

        if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
            return; // the machine speaks IPv4 only
        }
        let (_six, six) = listener(Ipv6Addr::LOCALHOST);
        for addresses in [[dead(Ipv6Addr::LOCALHOST), four], [six, dead_four()]] {
            let (connected, _) = connect(&addresses).await;
            let reached = connected.unwrap().peer_addr().unwrap();
            assert!(reached == four || reached == six, "{reached}");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_silent_address_costs_a_quarter_of_a_second() {
        let (_hole, _fillers, silent) = black_hole();
        let (_live, live) = listener(Ipv4Addr::LOCALHOST);
        let (connected, took) = connect(&[silent, live]).await;
        assert_eq!(connected.unwrap().peer_addr().unwrap(), live);
        // What it costs exactly is in the tests of `stagger`.
        assert!(took >= Duration::from_millis(250), "{took:?}");
        // And none where the silent one is not alone in the lead: a failure ends the wait.
        let (connected, _) = connect(&[silent, dead(Ipv4Addr::LOCALHOST), live]).await;
        assert_eq!(connected.unwrap().peer_addr().unwrap(), live);
    }

    #[tokio::test]
    async fn when_all_fail_a_refusal_is_told() {
        let (connected, _) = connect(&[dead(Ipv4Addr::LOCALHOST), dead(Ipv4Addr::LOCALHOST)]).await;
        assert_eq!(connected.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let (connected, _) = connect(&[]).await;
        assert_eq!(connected.unwrap_err().to_string(), "the name has no address");
    }

    async fn dial(node: NodeOptions) -> io::Result<(Reader, Writer)> {
        let address = Address::of(node).unwrap();
        Network::new(Clock::default(), DEADLINE).dial(&address).await
    }

    #[tokio::test]
    async fn a_name_is_reached_at_whichever_of_its_addresses_answers() {
        let found = tokio::net::lookup_host(("localhost", 1)).await.unwrap();
        for address in found.collect::<Vec<_>>() {
            let (_listener, address) = listener(address.ip());
            let dialed = dial(NodeOptions::tcp("localhost", address.port())).await;
            let Ok((Reader::Tcp(reader), _)) = dialed else { panic!("{address}: {dialed:?}") };
            assert_eq!(reader.peer_addr().unwrap(), address);
        }
        let error = dial(NodeOptions::tcp("no-such-name.invalid", 1)).await.unwrap_err();
        assert_ne!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_stream_has_the_options_it_was_given() {
        let (_listener, address) = listener(Ipv4Addr::LOCALHOST);
        let node = || NodeOptions::tcp("127.0.0.1", address.port());
        let seconds = Duration::from_secs;
        let none = TcpOptions::new().no_delay(false).no_keepalive().no_user_timeout();
        let own = TcpOptions::new().keepalive(seconds(5), seconds(2)).user_timeout(seconds(7));
        let cases = [
            (node(), true, Some((seconds(15), seconds(5))), Some(seconds(30))),
            (node().tcp_options(own), true, Some((seconds(5), seconds(2))), Some(seconds(7))),
            (node().tcp_options(none), false, None, None),
        ];
        for (node, no_delay, keepalive, user_timeout) in cases {
            let Ok((Reader::Tcp(reader), _)) = dial(node).await else { panic!("it listens") };
            let stream: &TcpStream = reader.as_ref();
            let socket = SockRef::from(stream);
            assert_eq!(stream.nodelay().unwrap(), no_delay);
            assert_eq!(socket.keepalive().unwrap(), keepalive.is_some());
            if let Some((idle, interval)) = keepalive {
                assert_eq!(socket.tcp_keepalive_time().unwrap(), idle);
                assert_eq!(socket.tcp_keepalive_interval().unwrap(), interval);
            }
            assert_eq!(socket.tcp_user_timeout().unwrap(), user_timeout);
        }
    }
}
