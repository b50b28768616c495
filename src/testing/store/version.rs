//! Which server a node poses as: its name, its version, and what that does not know yet.

/// A kind of server and its version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Version {
    kind: Kind,
    numbers: [u32; 3],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Kind {
    /// Itself, which knows whatever any of the others does.
    #[default]
    Node,
    Redis,
    Valkey,
}

/// How a connection is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Dialect {
    pub(crate) resp3: bool,
    pub(crate) version: Version,
}

/// From which version on something is known, of either kind; `None` where it never is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    pub(super) redis: Option<[u32; 2]>,
    pub(super) valkey: Option<[u32; 2]>,
}

impl Since {
    /// The first Redis that knew it; Valkey began with what 7.2 had.
    pub(super) const fn redis(version: [u32; 2]) -> Self {
        Self { redis: Some(version), valkey: Some([7, 2]) }
    }
}

impl Version {
    /// A Redis of this version, such as `8.2.3`.
    pub(crate) fn redis(version: &str) -> Result<Self, String> {
        Self::read(Kind::Redis, version)
    }

    /// A Valkey of this version.
    pub(crate) fn valkey(version: &str) -> Result<Self, String> {
        Self::read(Kind::Valkey, version)
    }

    fn read(kind: Kind, version: &str) -> Result<Self, String> {
        let mut numbers = [0; 3];
        let mut parts = version.split('.');
        let wrong = || format!("a version is three numbers, such as 8.2.3: {version:?}");
        for number in &mut numbers {
            *number = parts.next().and_then(|part| part.parse().ok()).ok_or_else(wrong)?;
        }
        if parts.next().is_some() { Err(wrong()) } else { Ok(Self { kind, numbers }) }
    }

    /// As servers name themselves.
    pub(super) fn name(self) -> &'static str {
        match self.kind {
            Kind::Node => "quorlock",
            Kind::Redis => "redis",
            Kind::Valkey => "valkey",
        }
    }

    /// As `HELLO` tells it.
    pub(super) fn text(self) -> String {
        match self.kind {
            Kind::Node => env!("CARGO_PKG_VERSION").to_owned(),
            _ => self.numbers.map(|number| number.to_string()).join("."),
        }
    }

    /// The version of Redis that is told to clients who know no other server.
    pub(super) fn redis_text(self) -> String {
        match self.kind {
            Kind::Redis => self.text(),
            _ => "7.2.4".to_owned(),
        }
    }

    /// Whether a Redis, or a Valkey, is posed as.
    pub(super) fn is_valkey(self) -> bool {
        self.kind == Kind::Valkey
    }

    pub(super) fn is_redis(self) -> bool {
        self.kind == Kind::Redis
    }

    /// Whether it knows what is known from there on.
    pub(super) fn knows(self, since: Since) -> bool {
        let first = match self.kind {
            Kind::Node => return true,
            Kind::Redis => since.redis,
            Kind::Valkey => since.valkey,
        };
        first.is_some_and(|first| self.numbers[..2] >= first[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_knows_what_came_before_it() {
        let since = Since { redis: None, valkey: Some([9, 0]) };
        let knows = |version: Result<Version, String>| version.unwrap().knows(since);
        assert!(Version::default().knows(since) && knows(Version::valkey("9.1.2")));
        assert!(!knows(Version::valkey("8.1.0")) && !knows(Version::redis("9.1.2")));
        assert!(Version::redis("7.0.15").unwrap().knows(Since::redis([7, 0])));
        assert!(!Version::redis("6.2.14").unwrap().knows(Since::redis([7, 0])));
        assert_eq!(Version::valkey("9.1.2").unwrap().text(), "9.1.2");
        for wrong in ["", "8", "8.2", "8.2.x", "8.2.3.4", "v8.2.3"] {
            assert!(Version::redis(wrong).unwrap_err().contains("three numbers"), "{wrong}");
        }
    }
}
