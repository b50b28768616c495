//! A lock's keys as they stand on the wire: the prefix and the caller's bytes, verbatim.
//!
//! A [`Resource`] is what one lock is about: a key, or several of them. [`Key::new`] is the only
//! way to make a key, and everything that names a lock takes one: what it refuses is refused in
//! every way in.

use quorlock_resp::encode;

use super::primitive::Primitive;
use crate::error::Error;

/// Keys up to this length, prefix included, are held without an allocation. Every move of a claim
/// moves so many bytes, so that it is moved rarely: see `Hold::end`.
const INLINE: usize = 128;

/// The longest key, prefix included. Servers take more; a lock's name of this size is a mistake,
/// and it would travel to every node twice for each acquisition.
const LENGTH_MAX: usize = 4_096;

/// What a node keeps for itself behind the locker's prefix; see `durability`.
pub(super) const EPOCH: &[u8] = b"quorlock:epoch";
pub(super) const QUARANTINE: &[u8] = b"quorlock:quarantine";

/// What a node keeps beside a lock that is waited for: who waits, and who of them lives.
const QUEUE: &[u8] = b"quorlock:queue";
const BEATS: &[u8] = b"quorlock:beats";

/// What a node keeps beside a lock that is fenced; see `fence`.
const FENCE: &[u8] = b"quorlock:fence";

/// What a node keeps beside a lock that readers may have: who they are, and whether more may come.
/// The first is also what the lock holds while they have it.
pub(super) const READERS: &[u8] = b"quorlock:readers";
const GATE: &[u8] = b"quorlock:gate";

/// What a server keeps beside data: the highest fence that has come; see `guarded`.
const WRITTEN: &[u8] = b"quorlock:written";

/// Whether a full key is a node's own, behind some locker's prefix or some lock's key: no lock may
/// have such a name. Taking or deleting it would change whether the node may vote, or who waits.
fn is_nodes_own(full: &[u8]) -> bool {
    [EPOCH, QUARANTINE, QUEUE, BEATS, FENCE, READERS, GATE, WRITTEN]
        .iter()
        .any(|own| full.ends_with(own))
}

/// How many keys one lock may have. Each of its commands carries them all.
const KEYS_MAX: usize = 64;

/// What a lock is about: its kind, its keys, and the class that it is counted under.
#[derive(Clone)]
pub(crate) struct Resource {
    pub(crate) primitive: &'static Primitive,
    keys: Keys,
    pub(crate) class: &'static str,
}

#[derive(Clone)]
enum Keys {
    One(Key),
    /// One key, with what nodes keep beside it that its commands touch, too.
    Beside(Box<Beside>),
    Several(Box<Several>),
}

#[derive(Clone)]
struct Beside {
    key: Key,
    /// Those of a [queue](Resource::queue) stand last.
    beside: Box<[Key]>,
}

#[derive(Clone)]
struct Several {
    /// In their order, each once.
    keys: Box<[Key]>,
    /// As the caller gave them, with commas between them.
    given: Box<[u8]>,
}

impl Resource {
    pub(crate) fn one(primitive: &'static Primitive, key: Key, class: &'static str) -> Self {
        Self { primitive, keys: Keys::One(key), class }
    }

    /// Several keys, which are sorted: the order in which they were given means nothing.
    pub(crate) fn several(
        primitive: &'static Primitive,
        mut keys: Vec<Key>,
        class: &'static str,
    ) -> Result<Self, Error> {
        if keys.is_empty() {
            return Err(Error::misuse("no key was given; name what is locked"));
        }
        if keys.len() > KEYS_MAX {
            return Err(Error::misuse(format!(
                "{} keys were given; one lock takes at most {KEYS_MAX} (lock what they belong to)",
                keys.len()
            )));
        }
        keys.sort_unstable_by(|one, other| one.full().cmp(other.full()));
        let twice = keys.windows(2).find(|pair| pair[0].full() == pair[1].full());
        if let Some([key, _]) = twice {
            let key = key.given().escape_ascii();
            return Err(Error::misuse(format!("the key \"{key}\" was given twice; give it once")));
        }
        let given: Vec<&[u8]> = keys.iter().map(Key::given).collect();
        let given = given.join(&b", "[..]).into();
        Ok(Self {
            primitive,
            keys: Keys::Several(Box::new(Several { given, keys: keys.into() })),
            class,
        })
    }

    /// A read lock of a key, with what is kept beside that. An error where the names could not be
    /// told to be of one slot.
    pub(crate) fn read(
        primitive: &'static Primitive,
        key: Key,
        class: &'static str,
    ) -> Result<Self, Error> {
        let names = [READERS, GATE, QUEUE, BEATS];
        let beside: Option<Vec<Key>> = names.into_iter().map(|name| key.beside(name)).collect();
        let beside = beside.ok_or_else(|| no_name(&key, "readers", "lock it without readers"))?;
        Ok(Self { primitive, keys: Keys::with_beside(key, beside), class })
    }

    /// The read lock that this lock becomes, which must be of one key and none itself.
    pub(crate) fn downgraded(&self, primitive: &'static Primitive) -> Result<Self, Error> {
        match &self.keys {
            Keys::One(key) => Self::read(primitive, key.clone(), self.class),
            Keys::Beside(_) => Err(Error::misuse("it is a read lock already")),
            Keys::Several(_) => Err(Error::misuse(
                "a lock of several keys cannot be downgraded; release it, and read each key",
            )),
        }
    }

    /// A lock that has a queue, with the keys of that: for the node that keeps it. `None` where
    /// their names could not be told to be of one slot.
    pub(super) fn queued(&self) -> Option<Self> {
        let primitive = self.primitive.queued?;
        let keys = match &self.keys {
            Keys::One(key) => {
                let beside = vec![key.beside(QUEUE)?, key.beside(BEATS)?];
                Keys::with_beside(key.clone(), beside)
            }
            keys => keys.clone(),
        };
        Some(Self { primitive, keys, class: self.class })
    }

    /// The key of each key's fence. An error where a name could not be told to be of one slot.
    pub(super) fn fences(&self) -> Result<Vec<Key>, Error> {
        self.keys().iter().map(|key| key.fenced_beside(FENCE)).collect()
    }

    /// An error where a key's fence can have no name, and for what has none.
    pub(crate) fn check_fences(&self) -> Result<(), Error> {
        if self.primitive.is_shared {
            return Err(Error::misuse(
                "readers have no fence; ask for the lock as a writer, or do not fence it",
            ));
        }
        self.fences().map(drop)
    }

    /// Whether it is the same lock: of the same kind, on the same keys.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let (own, others) = (self.keys().iter().map(Key::full), other.keys().iter().map(Key::full));
        std::ptr::eq(self.primitive, other.primitive) && own.eq(others)
    }

    /// Each key of the lock.
    pub(crate) fn keys(&self) -> &[Key] {
        match &self.keys {
            Keys::One(key) => std::slice::from_ref(key),
            Keys::Beside(with) => std::slice::from_ref(&with.key),
            Keys::Several(several) => &several.keys,
        }
    }

    /// What nodes keep beside the lock, and its commands touch.
    fn beside(&self) -> &[Key] {
        match &self.keys {
            Keys::Beside(with) => &with.beside,
            Keys::One(_) | Keys::Several(_) => &[],
        }
    }

    /// How many keys its commands touch.
    pub(crate) fn count(&self) -> u16 {
        (self.keys().len() + self.beside().len()) as u16
    }

    /// The key, or all of them with commas between, as the caller gave them.
    pub(crate) fn given(&self) -> &[u8] {
        match &self.keys {
            Keys::One(key) => key.given(),
            Keys::Beside(with) => with.key.given(),
            Keys::Several(several) => &several.given,
        }
    }

    /// Each key as the caller gave it.
    pub(crate) fn given_each(&self) -> Vec<Vec<u8>> {
        self.keys().iter().map(|key| key.given().to_vec()).collect()
    }

    /// Which of a node's links carries it.
    pub(crate) fn affinity(&self) -> u64 {
        self.keys().first().map(Key::affinity).unwrap_or_default()
    }

    /// Where nodes keep whether more readers may come, if there is a name for it.
    pub(super) fn gate(&self) -> Option<Key> {
        self.keys().first()?.beside(GATE)
    }

    /// Whether a key is one of these.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.keys().iter().any(|own| own.full() == key.full())
    }

    /// What the node keeps beside the lock, of [those keys](Self::queued): its queue and its beats.
    pub(super) fn queue(&self) -> &[Key] {
        let beside = self.beside();
        beside.get(beside.len().saturating_sub(2)..).unwrap_or_default()
    }

    /// The keys that its commands touch, encoded.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.keys().iter().chain(self.beside()).for_each(|key| encode::bulk(out, key.full()));
    }
}

impl Keys {
    fn with_beside(key: Key, beside: Vec<Key>) -> Self {
        Self::Beside(Box::new(Beside { key, beside: beside.into() }))
    }
}

/// A checked key.
#[derive(Clone)]
pub(crate) struct Key {
    bytes: KeyBytes,
    /// The hash of its full name: each step of an acquisition asks for it.
    hash: u64,
}

/// The lengths are as small as they may be: a key is moved often (see `claim`).
#[derive(Clone)]
enum KeyBytes {
    Inline { prefix_len: u8, len: u8, bytes: [u8; INLINE] },
    Heap { prefix_len: u16, bytes: Box<[u8]> },
}

const _: () = assert!(INLINE <= u8::MAX as usize && LENGTH_MAX <= u16::MAX as usize);

impl KeyBytes {
    fn full(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes, .. } => &bytes[..usize::from(*len)],
            Self::Heap { bytes, .. } => bytes,
        }
    }
}

impl Key {
    pub(crate) fn new(prefix: &[u8], key: &[u8]) -> Result<Self, Error> {
        if key.is_empty() {
            return Err(Error::misuse("the key is empty; name what is locked"));
        }
        let len = prefix.len().saturating_add(key.len());
        if len > LENGTH_MAX {
            return Err(Error::misuse(format!(
                "the key has {len} bytes with its prefix; at most {LENGTH_MAX} are allowed (hash \
                 what it names)"
            )));
        }
        let bytes = if len <= INLINE {
            let mut bytes = [0; INLINE];
            bytes[..prefix.len()].copy_from_slice(prefix);
            bytes[prefix.len()..len].copy_from_slice(key);
            KeyBytes::Inline { prefix_len: prefix.len() as u8, len: len as u8, bytes }
        } else {
            let bytes = [prefix, key].concat().into_boxed_slice();
            KeyBytes::Heap { prefix_len: prefix.len() as u16, bytes }
        };
        let key = Self::of(bytes);
        match is_nodes_own(key.full()) {
            true => Err(Error::misuse(
                "the key ends in `quorlock:epoch`, `quorlock:quarantine`, `quorlock:queue`, \
                 `quorlock:beats`, `quorlock:fence`, `quorlock:readers`, `quorlock:gate` or \
                 `quorlock:written`, which are the nodes' own; choose another name",
            )),
            false => Ok(key),
        }
    }

    fn of(bytes: KeyBytes) -> Self {
        let hash = Self::hash(bytes.full());
        Self { bytes, hash }
    }

    /// A key that belongs to this one alone, and is in the same slot of a cluster: by the tag that
    /// the key has, or with the key itself as the tag. What stands before the name tells the two
    /// apart: `{k}/name` is of `{k}`, and `{k}:name` of `k`.
    fn beside(&self, name: &[u8]) -> Option<Self> {
        let full = self.full();
        let open = full.iter().position(|byte| *byte == b'{');
        let tagged = open.and_then(|open| full[open + 1..].iter().position(|byte| *byte == b'}'));
        let bytes = match tagged {
            Some(1..) => [full, b"/", name].concat(),
            _ if full.contains(&b'}') => return None,
            _ => [b"{", full, b"}:", name].concat(),
        };
        Some(Self::of(KeyBytes::Heap { prefix_len: 0, bytes: bytes.into() }))
    }

    /// Where a node keeps the fence of the lock of this key; none where it can have no name.
    pub(crate) fn fence(&self) -> Option<Self> {
        self.beside(FENCE)
    }

    /// Where the highest fence is kept that has come for the data under this key. An error as for
    /// [`Resource::fences`].
    pub(crate) fn written(&self) -> Result<Self, Error> {
        self.fenced_beside(WRITTEN)
    }

    fn fenced_beside(&self, name: &[u8]) -> Result<Self, Error> {
        self.beside(name).ok_or_else(|| no_name(self, "fence", "do not fence it"))
    }

    /// As the servers know it.
    pub(crate) fn full(&self) -> &[u8] {
        self.bytes.full()
    }

    /// As the caller gave it.
    pub(crate) fn given(&self) -> &[u8] {
        let prefix_len = match &self.bytes {
            KeyBytes::Inline { prefix_len, .. } => usize::from(*prefix_len),
            KeyBytes::Heap { prefix_len, .. } => usize::from(*prefix_len),
        };
        &self.full()[prefix_len..]
    }

    /// Which of a node's links carries it, the same on all nodes and for all uses.
    pub(crate) fn affinity(&self) -> u64 {
        self.hash
    }

    /// The hash of a key by its full name, and of other bytes: FNV-1a of 64 bits (RFC 9923).
    pub(crate) fn hash(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// The error where nothing can be kept beside a key.
fn no_name(key: &Key, of: &str, advice: &str) -> Error {
    let key = key.given().escape_ascii();
    Error::misuse(format!(
        "the key \"{key}\" has a brace that ends no tag, and so there is no name for its {of}; \
         leave the brace out, or {advice}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of RFC 9923. The segments of a key rely on it, in every process alike.
    #[test]
    fn a_hash_is_what_others_compute() {
        assert_eq!(Key::hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Key::hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Key::hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn the_prefix_goes_before_and_is_not_the_callers() {
        for length in [1, 64, INLINE - 4, INLINE - 3, 1_000] {
            let given = vec![b'k'; length];
            let key = Key::new(b"pay:", &given).unwrap();
            assert_eq!(key.given(), given);
            assert_eq!(key.full(), [b"pay:", &given[..]].concat());
        }
        assert_eq!(Key::new(b"", "\0🐉\r\n".as_bytes()).unwrap().full(), "\0🐉\r\n".as_bytes());
    }

    #[test]
    fn the_nodes_own_keys_are_refused_behind_any_prefix() {
        let own = [
            ("", "quorlock:epoch"),
            ("", "quorlock:quarantine"),
            ("p:", "quorlock:epoch"),
            ("p:", "quorlock:quarantine"),
            // Another locker's, whose prefix is `p:`.
            ("", "p:quorlock:epoch"),
            ("p", ":quorlock:quarantine"),
            ("p:quorlock", ":epoch"),
            ("p:quorlock:quarantin", "e"),
            ("p:", "quorlock:queue"),
            // Of locks that others wait for.
            ("p:", "{k}:quorlock:queue"),
            ("", "{k}:quorlock:beats"),
            // Of fences.
            ("p:", "{k}:quorlock:fence"),
            ("", "{k}:quorlock:written"),
            // Of readers.
            ("p:", "{k}:quorlock:readers"),
            ("", "{k}:quorlock:gate"),
        ];
        for (prefix, key) in own {
            let error = Key::new(prefix.as_bytes(), key.as_bytes()).err().unwrap();
            assert!(error.is_misuse(), "{prefix} {key}: {error}");
            assert!(error.to_string().contains("nodes' own"), "{error}");
        }
        let long = [&[b'p'; 200][..], b"quorlock:epoch"].concat();
        assert!(Key::new(&long[..200], &long[200..]).is_err());
        for key in ["epoch", "queue", "{k}:q", "quorlock:epoch:1", "quorlock:", "Quorlock:epoch"] {
            assert!(Key::new(b"p:", key.as_bytes()).is_ok(), "{key}");
        }
    }

    #[test]
    fn no_two_keys_share_a_key_of_their_own() {
        let beside = |key: &str| {
            Key::new(b"", key.as_bytes()).unwrap().beside(QUEUE).unwrap().full().to_vec()
        };
        assert_eq!(beside("k"), b"{k}:quorlock:queue");
        assert_eq!(beside("{k}"), b"{k}/quorlock:queue");
        assert_eq!(beside("{k}:"), b"{k}:/quorlock:queue");
        assert_eq!(beside("a{k}b"), b"a{k}b/quorlock:queue");
        assert!(Key::new(b"", &beside("{k}")).is_err(), "no lock can have its name");
    }

    /// One link of several would carry them all.
    #[test]
    fn keys_that_differ_at_their_end_are_spread() {
        for links in [2_u64, 3, 4, 7] {
            let mut carried = vec![0_u32; links as usize];
            for number in 0..1_000 {
                let key = Key::new(b"pay:", format!("order:{number}").as_bytes()).unwrap();
                carried[(key.affinity() % links) as usize] += 1;
            }
            let fair = 1_000 / links as u32;
            assert!(
                carried.iter().all(|count| (fair / 2..2 * fair).contains(count)),
                "{carried:?}"
            );
        }
    }

    #[test]
    fn no_key_and_too_long_a_key_are_refused() {
        assert!(Key::new(b"pay:", b"").err().unwrap().is_misuse());
        let error = Key::new(b"", &vec![b'k'; 1 << 20]).err().unwrap();
        assert!(error.to_string().contains("1048576 bytes"), "{error}");
    }
}
