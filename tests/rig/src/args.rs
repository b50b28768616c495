//! What the command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use crate::Failure;
use crate::clock;
use crate::faults::Kind;
use crate::foreign;
use crate::line::{Copies, Source};

/// What processes of ours can do beside taking locks, by the names of the command line.
pub(crate) const ACTORS: [&str; 4] = [RUNTIMES, PROGRAM, SATURATED, GUARDED];
pub(crate) const RUNTIMES: &str = "runtimes";
pub(crate) const PROGRAM: &str = "program";
pub(crate) const SATURATED: &str = "saturated";
pub(crate) const GUARDED: &str = "guarded";

/// How many parties a latch is for.
pub(crate) const LATCH_PARTIES: usize = 4;

const USAGE: &str = "\
usage: quorlock-rig [adoption-cost] [options]

  adoption-cost         measures round trips of an adoption, without faults, instead of a run

  --seconds N           how long faults come (60)
  --seed N              the faults and the clients' choices (chance; it is printed)
  --rate N              cycles each second, of all clients of ours together (120)
  --clients N           client processes of ours, 1 to 16, or 0 beside actors (4)
  --nodes N             servers, 1 to 15 (5)
  --server KIND         redis-8.2, redis-7.0, redis-6.2, or a program's path (valkey-9.1)
  --network KIND        namespaces, proxy, or auto: namespaces where root allows (auto)
  --durability KIND     persistent: the servers fsync always; volatile: they forget, and lockers
                        say so; forgetful: they forget, and lockers do not know, which breaks the
                        assumptions (persistent)
  --faults KIND,…       only these, or none (all that keep the assumptions)
  --fault-rate N        faults each second (1.5)
  --ttl-ms N            the locks' TTL (1000)
  --keys N              how many keys the clients fight for (3)
  --node-timeout-ms N  the option of that name (the library's default)
  --readers N           of a hundred locks, how many are a read lock (0)
  --fair N              of a hundred locks, how many are asked for as fair (0)
  --strict N            of a hundred locks of one key, how many are asked for in strict order (0)
  --delayed N           of a hundred locks of one key, how many keep others out for 300 ms after
                        they have expired (0)
  --handles N           of a hundred locks of one key, how many have a second handle (0)
  --latches N           of a hundred turns, how many are at a latch and not at a lock (0)
  --several N           of a hundred turns, how many want two or three of the keys at once (0)
  --revoked N           of a hundred turns, how many ask the holder of a lock to let go (0)
  --slots N             how many slots the keys have that the clients fight for, 1 to 64; without
                        it clients take their locks
  --handovers N         tokens each minute that clients hand over to one another (0)
  --handing WORD,…      only tokens of these sources: forgotten, left, living; only so many copies:
                        one, two, again (all)
  --actors NAME,…       one more process each: `runtimes` ends runtimes while guards live on others,
                        `program` runs `quorlock lock` with a full pipe for stderr, `saturated`
                        holds as many locks as it can, `guarded` writes to a PostgreSQL and a Redis
                        under fenced locks, at which it does not look (none)
  --fences WORD         compared: what `guarded` writes is refused if it is late; plain: it is not
                        (compared)
  --locks N             how many locks `saturated` wants to hold (24000)
  --replies-late-ms N   for 2.5 s of every 5 s replies to `saturated` come so much later; needs
                        --network proxy (0)
  --program PATH        the `quorlock` program (beside this one)
  --with LIBRARY,…      other libraries on the same keys: rslock,pottery,node-redlock
  --log FILE            a summary in Markdown, and beside it the faults as they came
";

/// How the servers keep what they know, and what the lockers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    Persistent,
    Volatile,
    Forgetful,
}

/// How clients reach the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Auto,
    Namespaces,
    Proxy,
}

/// The supervisor's arguments.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
    pub(crate) rate: f64,
    pub(crate) clients: usize,
    pub(crate) nodes: usize,
    pub(crate) server: String,
    pub(crate) network: Wanted,
    pub(crate) durability: Durability,
    pub(crate) faults: Option<Vec<Kind>>,
    pub(crate) fault_rate: f64,
    pub(crate) ttl: Duration,
    pub(crate) keys: u64,
    pub(crate) node_timeout_ms: Option<u64>,
    /// Of a hundred locks, how many are a read lock.
    pub(crate) readers: u64,
    /// Of a hundred locks, how many are asked for as fair.
    pub(crate) fair: u64,
    /// Of a hundred locks of one key, how many are asked for in strict order.
    pub(crate) strict: u64,
    /// Of a hundred locks of one key, how many have a lock-delay.
    pub(crate) delayed: u64,
    /// Of a hundred locks of one key, how many have a second handle.
    pub(crate) handles: u64,
    /// Of a hundred turns, how many are at a latch.
    pub(crate) latches: u64,
    /// Of a hundred turns, how many want two or three of the keys at once.
    pub(crate) several: u64,
    /// Of a hundred turns, how many ask a holder to let go of its lock.
    pub(crate) revoked: u64,
    /// How many slots a key has; its lock is taken where it has none.
    pub(crate) slots: u16,
    /// Hand-overs each minute, of all clients of ours together.
    pub(crate) handovers: f64,
    /// The sources of tokens and the numbers of copies; where none of a sort is named, all.
    pub(crate) handing: Vec<String>,
    pub(crate) actors: Vec<String>,
    /// What `guarded` writes is compared by its fence.
    pub(crate) compares: bool,
    pub(crate) locks: u64,
    pub(crate) replies_late_ms: u16,
    pub(crate) program: Option<PathBuf>,
    pub(crate) with: Vec<String>,
    pub(crate) log: Option<PathBuf>,
    /// The process is in a network namespace of its own.
    pub(crate) inside: bool,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            seconds: 60,
            seed: clock::now() % 1_000_000_007,
            rate: 120.0,
            clients: 4,
            nodes: 5,
            server: "valkey-9.1".into(),
            network: Wanted::Auto,
            durability: Durability::Persistent,
            faults: None,
            fault_rate: 1.5,
            ttl: Duration::from_secs(1),
            keys: 3,
            node_timeout_ms: None,
            readers: 0,
            fair: 0,
            strict: 0,
            delayed: 0,
            handles: 0,
            latches: 0,
            several: 0,
            revoked: 0,
            slots: 0,
            handovers: 0.0,
            handing: Vec::new(),
            actors: Vec::new(),
            compares: true,
            locks: 24_000,
            replies_late_ms: 0,
            program: None,
            with: Vec::new(),
            log: None,
            inside: false,
        }
    }
}

impl Args {
    /// Reads the arguments behind the program's name.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut parsed = Self::default();
        each(args, |name, value| parsed.set(name, value))?;
        let least = usize::from(parsed.actors.is_empty());
        if !(1..=15).contains(&parsed.nodes) || !(least..=16).contains(&parsed.clients) {
            return Err("--nodes is 1 to 15, and --clients 1 to 16, or 0 beside actors".into());
        }
        if parsed.ttl < Duration::from_millis(50) || parsed.keys == 0 {
            return Err("--ttl-ms is at least 50, and --keys at least 1".into());
        }
        if parsed.slots > 64 {
            return Err("--slots is at most 64".into());
        }
        // The others' locks and read locks would be in no slot's way.
        if parsed.slots > 0 && (parsed.readers > 0 || !parsed.with.is_empty()) {
            return Err("--slots goes with neither --readers nor --with".into());
        }
        // Readers and others' locks are not revoked, and slots are keys of other names.
        if parsed.revoked > 0 && (parsed.slots > 0 || parsed.readers > 0 || !parsed.with.is_empty())
        {
            return Err("--revoked goes with neither --slots, --readers nor --with".into());
        }
        // A lock of several keys has no readers, and slots are keys of other names.
        if parsed.several > 0 && (parsed.slots > 0 || parsed.readers > 0) {
            return Err("--several goes with neither --slots nor --readers".into());
        }
        if parsed.several > 0 && parsed.keys < 2 {
            return Err("--several needs --keys 2 or more".into());
        }
        Ok(parsed)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        match name {
            "--seconds" => self.seconds = number(name, value)?,
            "--seed" => self.seed = number(name, value)?,
            "--rate" => self.rate = real(name, value)?,
            "--clients" => self.clients = number(name, value)? as usize,
            "--nodes" => self.nodes = number(name, value)? as usize,
            "--server" => self.server = value.into(),
            "--fault-rate" => self.fault_rate = real(name, value)?,
            "--ttl-ms" => self.ttl = Duration::from_millis(number(name, value)?),
            "--keys" => self.keys = number(name, value)?,
            "--node-timeout-ms" => self.node_timeout_ms = Some(number(name, value)?),
            "--handovers" => self.handovers = real(name, value)?,
            "--handing" => {
                let words = [Source::ALL.map(Source::name), Copies::ALL.map(Copies::name)].concat();
                let known: Vec<_> = words.into_iter().map(|word| (word, word)).collect();
                let chosen = value.split(',').map(|word| one_of(name, word, &known));
                self.handing =
                    chosen.map(|word| word.map(String::from)).collect::<Result<_, _>>()?;
            }
            "--actors" => {
                let known = ACTORS.map(|actor| (actor, actor));
                let actors = value.split(',').map(|actor| one_of(name, actor, &known));
                self.actors =
                    actors.map(|actor| actor.map(String::from)).collect::<Result<_, _>>()?;
            }
            "--fences" => {
                self.compares = one_of(name, value, &[("compared", true), ("plain", false)])?;
            }
            "--locks" => self.locks = number(name, value)?,
            "--replies-late-ms" => self.replies_late_ms = u16::try_from(number(name, value)?)?,
            "--program" => self.program = Some(value.into()),
            "--with" => self.with = value.split(',').map(String::from).collect(),
            "--log" => self.log = Some(value.into()),
            "--inside" => self.inside = value == "yes",
            "--network" => {
                let kinds = [
                    ("auto", Wanted::Auto),
                    ("namespaces", Wanted::Namespaces),
                    ("proxy", Wanted::Proxy),
                ];
                self.network = one_of(name, value, &kinds)?;
            }
            "--durability" => {
                let kinds = [
                    ("persistent", Durability::Persistent),
                    ("volatile", Durability::Volatile),
                    ("forgetful", Durability::Forgetful),
                ];
                self.durability = one_of(name, value, &kinds)?;
            }
            "--faults" => {
                let names = value.split(',').filter(|name| *name != "none");
                let kind = |name: &str| {
                    let why = || format!("`{name}` is no fault; known: {}", Kind::names());
                    Kind::parse(name).ok_or_else(why)
                };
                self.faults = Some(names.map(kind).collect::<Result<_, _>>()?);
            }
            _ => return self.set_wish(name, value),
        }
        Ok(())
    }

    /// What clients ask for.
    fn set_wish(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        match name {
            "--readers" => self.readers = number(name, value)?,
            "--fair" => self.fair = number(name, value)?,
            "--strict" => self.strict = number(name, value)?,
            "--delayed" => self.delayed = number(name, value)?,
            "--handles" => self.handles = number(name, value)?,
            "--latches" => self.latches = number(name, value)?,
            "--several" => self.several = number(name, value)?,
            "--revoked" => self.revoked = number(name, value)?,
            "--slots" => self.slots = u16::try_from(number(name, value)?)?,
            _ => return Err(format!("what is `{name}`?\n{USAGE}").into()),
        }
        Ok(())
    }
}

/// How long a locker waits for a node, where the command line does not say it: the library's
/// default, as its manual has it.
pub(crate) fn node_timeout(named: Option<u64>, ttl: Duration) -> Duration {
    let usual = (ttl / 100).clamp(Duration::from_millis(50), Duration::from_millis(500));
    named.map_or(usual, Duration::from_millis)
}

/// What a client process is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientArgs {
    pub(crate) library: String,
    pub(crate) slot: usize,
    pub(crate) seed: u64,
    pub(crate) urls: Vec<String>,
    pub(crate) prefix: String,
    pub(crate) keys: u64,
    pub(crate) rate: f64,
    pub(crate) ttl_ms: u64,
    pub(crate) node_timeout_ms: Option<u64>,
    pub(crate) volatile: bool,
    /// Whether some keys live long.
    pub(crate) long: bool,
    /// Of a hundred locks, how many are a read lock.
    pub(crate) readers: u64,
    /// Of a hundred locks, how many are asked for as fair.
    pub(crate) fair: u64,
    /// Of a hundred locks of one key, how many are asked for in strict order.
    pub(crate) strict: u64,
    /// Of a hundred locks of one key, how many have a lock-delay.
    pub(crate) delayed: u64,
    /// Of a hundred locks of one key, how many have a second handle.
    pub(crate) handles: u64,
    /// Of a hundred turns, how many are at a latch.
    pub(crate) latches: u64,
    /// Of a hundred turns, how many want two or three of the keys at once.
    pub(crate) several: u64,
    /// Of a hundred turns, how many ask a holder to let go of its lock.
    pub(crate) revoked: u64,
    /// How many slots a key has; its lock is taken where it has none.
    pub(crate) slots: u16,
    /// Hand-overs each minute.
    pub(crate) handovers: f64,
    pub(crate) handing: Vec<String>,
    pub(crate) locks: u64,
    pub(crate) program: PathBuf,
    /// Where `guarded` writes.
    pub(crate) store: Option<String>,
}

impl ClientArgs {
    /// Reads what [`words`](Self::words) has written.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut parsed = Self::default();
        each(args, |name, value| {
            match name {
                "--library" => parsed.library = value.into(),
                "--slot" => parsed.slot = number(name, value)? as usize,
                "--seed" => parsed.seed = number(name, value)?,
                "--urls" => parsed.urls = value.split(',').map(String::from).collect(),
                "--prefix" => parsed.prefix = value.into(),
                "--keys" => parsed.keys = number(name, value)?,
                "--rate" => parsed.rate = real(name, value)?,
                "--ttl-ms" => parsed.ttl_ms = number(name, value)?,
                "--node-timeout-ms" => parsed.node_timeout_ms = Some(number(name, value)?),
                "--volatile" => parsed.volatile = value == "true",
                "--long" => parsed.long = value == "true",
                "--readers" => parsed.readers = number(name, value)?,
                "--fair" => parsed.fair = number(name, value)?,
                "--strict" => parsed.strict = number(name, value)?,
                "--delayed" => parsed.delayed = number(name, value)?,
                "--handles" => parsed.handles = number(name, value)?,
                "--latches" => parsed.latches = number(name, value)?,
                "--several" => parsed.several = number(name, value)?,
                "--revoked" => parsed.revoked = number(name, value)?,
                "--slots" => parsed.slots = u16::try_from(number(name, value)?)?,
                "--handovers" => parsed.handovers = real(name, value)?,
                "--handing" => parsed.handing = value.split(',').map(String::from).collect(),
                "--locks" => parsed.locks = number(name, value)?,
                "--program" => parsed.program = value.into(),
                "--store" => parsed.store = Some(value.into()),
                _ => return Err(format!("a client knows no `{name}`").into()),
            }
            Ok(())
        })?;
        Ok(parsed)
    }

    /// The command line that says it. The clients in other languages read the same one.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec![
            ("--library", self.library.clone()),
            ("--slot", self.slot.to_string()),
            ("--seed", self.seed.to_string()),
            ("--urls", self.urls.join(",")),
            ("--prefix", self.prefix.clone()),
            ("--keys", self.keys.to_string()),
            ("--rate", self.rate.to_string()),
            ("--ttl-ms", self.ttl_ms.to_string()),
            ("--volatile", self.volatile.to_string()),
            ("--long", self.long.to_string()),
        ];
        // Clients in other languages know no more than the words above.
        if foreign::is_ours(&self.library) {
            words.push(("--readers", self.readers.to_string()));
            words.push(("--fair", self.fair.to_string()));
            words.push(("--strict", self.strict.to_string()));
            words.push(("--delayed", self.delayed.to_string()));
            words.push(("--handles", self.handles.to_string()));
            words.push(("--latches", self.latches.to_string()));
            words.push(("--several", self.several.to_string()));
            words.push(("--revoked", self.revoked.to_string()));
            words.push(("--slots", self.slots.to_string()));
            words.push(("--handovers", self.handovers.to_string()));
            words.push(("--handing", self.handing.join(",")));
            words.push(("--locks", self.locks.to_string()));
            words.push(("--program", self.program.display().to_string()));
        }
        if let Some(store) = &self.store {
            words.push(("--store", store.clone()));
        }
        if let Some(deadline) = self.node_timeout_ms {
            words.push(("--node-timeout-ms", deadline.to_string()));
        }
        words.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }
}

/// Takes the arguments two by two.
fn each(
    mut args: impl Iterator<Item = String>,
    mut set: impl FnMut(&str, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    while let Some(name) = args.next() {
        if name == "--help" || name == "-h" {
            return Err(format!("{USAGE}\nfaults: {}", Kind::names()).into());
        }
        let value = args.next().ok_or_else(|| format!("{name} needs a value\n{USAGE}"))?;
        set(&name, &value)?;
    }
    Ok(())
}

fn number(name: &str, value: &str) -> Result<u64, Failure> {
    value.parse().map_err(|_| format!("{name} is a number, not `{value}`").into())
}

fn real(name: &str, value: &str) -> Result<f64, Failure> {
    let real = value.parse().ok().filter(|real: &f64| real.is_finite() && *real >= 0.0);
    real.ok_or_else(|| format!("{name} is a number, not `{value}`").into())
}

fn one_of<T: Copy>(name: &str, value: &str, known: &[(&str, T)]) -> Result<T, Failure> {
    let found = known.iter().find(|(known, _)| *known == value).map(|(_, it)| *it);
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    found.ok_or_else(|| format!("{name} is one of {}, not `{value}`", names.join(", ")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_words_say_what_it_is_told() {
        let told = ClientArgs {
            library: "ours".into(),
            urls: vec!["redis://a:1".into(), "redis://b:2".into()],
            prefix: "rig:".into(),
            node_timeout_ms: Some(9),
            volatile: true,
            handovers: 12.5,
            handing: vec!["living".into(), "two".into()],
            fair: 30,
            strict: 40,
            delayed: 50,
            handles: 60,
            latches: 20,
            several: 15,
            revoked: 10,
            slots: 3,
            locks: 7,
            program: "a/b".into(),
            store: Some("a b|c|plain".into()),
            ..ClientArgs::default()
        };
        let read = ClientArgs::parse(told.words().into_iter()).expect("its own words");
        assert_eq!(format!("{read:?}"), format!("{told:?}"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        let cases = [
            ("--seconds x", "is a number"),
            ("--seconds", "needs a value"),
            ("--server-kind valkey", "what is"),
            ("--network pigeon", "one of auto, namespaces, proxy"),
            ("--faults meteor", "known: freeze-server"),
            ("--nodes 16", "1 to 15"),
            ("--clients 0", "or 0 beside actors"),
            ("--fences tall", "one of compared, plain"),
            ("--handing none", "one of forgotten, left, living, one, two, again"),
            ("--actors clown", "one of runtimes, program, saturated, guarded"),
            ("--replies-late-ms 70000", "out of range"),
            ("--slots 65", "at most 64"),
            ("--slots 2 --readers 70", "neither --readers nor --with"),
            ("--with rslock --slots 2", "neither --readers nor --with"),
            ("--several 9 --readers 7", "neither --slots nor --readers"),
            ("--several 9 --keys 1", "needs --keys 2"),
            ("--revoked 9 --slots 2", "neither --slots, --readers nor --with"),
        ];
        for (line, words) in cases {
            let error = Args::parse(line.split(' ').map(String::from)).expect_err(line);
            assert!(error.to_string().contains(words), "{line}: {error}");
        }
    }
}
