//! A lock's key as it stands on the wire: the prefix and the caller's bytes, verbatim.
//!
//! [`Key::new`] is the only way to make a key, and everything that names a lock takes one: what it
//! refuses is refused in every way in. What is kept beside a lock has a name made of its key's.

use crate::error::Error;

/// Keys up to this length, prefix included, are held without an allocation. A claim is mostly its
/// key, and this one fills the size that a claim may have.
const INLINE: usize = 133;

/// The longest key, prefix included. Servers take more; a lock's name of this size is a mistake,
/// and it would travel to every node twice for each acquisition.
const LENGTH_MAX: usize = 4_096;

/// How many keys one lock may have. Each of its commands carries them all.
pub(super) const KEYS_MAX: usize = 64;

/// What a node keeps for itself behind the locker's prefix; see `durability`.
pub(super) const EPOCH: &[u8] = b"quorlock:epoch";
pub(super) const QUARANTINE: &[u8] = b"quorlock:quarantine";

/// What a node keeps beside a lock that is waited for: who waits, and who of them lives.
pub(super) const QUEUE: &[u8] = b"quorlock:queue";
pub(super) const BEATS: &[u8] = b"quorlock:beats";

/// What a node keeps beside a lock that is fenced; see `fence`.
pub(super) const FENCE: &[u8] = b"quorlock:fence";

/// What a node keeps beside a lock that readers may have: who they are, and whether more may come.
/// The first is also what the lock holds while they have it.
pub(super) const READERS: &[u8] = b"quorlock:readers";
pub(super) const GATE: &[u8] = b"quorlock:gate";

/// What a server keeps beside data: the highest fence that has come; see `guarded`.
const WRITTEN: &[u8] = b"quorlock:written";

/// Fails for a full key that ends in a name which nodes keep for themselves, behind some locker's
/// prefix or some lock's key. Taking or deleting it would change whether the node may vote, or who
/// waits.
fn check_name(full: &[u8]) -> Result<(), Error> {
    let own = [EPOCH, QUARANTINE, QUEUE, BEATS, FENCE, READERS, GATE, WRITTEN];
    if own.iter().any(|own| full.ends_with(own)) {
        return Err(Error::misuse(
            "the key ends in `quorlock:epoch`, `quorlock:quarantine`, `quorlock:queue`, \
             `quorlock:beats`, `quorlock:fence`, `quorlock:readers`, `quorlock:gate` or \
             `quorlock:written`, which are the nodes' own; choose another name",
        ));
    }
    Ok(())
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
        if len > INLINE {
            let bytes = [prefix, key].concat().into_boxed_slice();
            check_name(&bytes)?;
            return Ok(Self::of(KeyBytes::Heap { prefix_len: prefix.len() as u16, bytes }));
        }
        let mut bytes = [0; INLINE];
        bytes[..prefix.len()].copy_from_slice(prefix);
        bytes[prefix.len()..len].copy_from_slice(key);
        check_name(&bytes[..len])?;
        // Not by `of`, which would move the bytes once more.
        let hash = Self::hash(&bytes[..len]);
        let (prefix_len, len) = (prefix.len() as u8, len as u8);
        Ok(Self { bytes: KeyBytes::Inline { prefix_len, len, bytes }, hash })
    }

    fn of(bytes: KeyBytes) -> Self {
        let hash = Self::hash(bytes.full());
        Self { bytes, hash }
    }

    /// A key that belongs to this one alone, and is in the same slot of a cluster: by the tag that
    /// the key has, or with the key itself as the tag. What stands before the name tells the two
    /// apart: `{k}/name` is of `{k}`, and `{k}:name` of `k`.
    pub(super) fn beside(&self, name: &[u8]) -> Option<Self> {
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

    pub(super) fn fenced_beside(&self, name: &[u8]) -> Result<Self, Error> {
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
pub(super) fn no_name(key: &Key, of: &str, advice: &str) -> Error {
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
