//! What fenced locks protect: a PostgreSQL and a Redis, in which each write says when its holder
//! had asked for the lock, and when it had it.
//!
//! A write is *stale* if one stands before it whose holder had asked for the lock when this one's
//! had it already: that holder is the later one. Each store tells its writes in the order in which
//! it has done them.

use support::tools::find_postgres;
use support::{Postgres, Server};
use tokio::runtime::Builder;
use tokio_postgres::NoTls;

use crate::Failure;

/// Both stores, dead when dropped.
#[derive(Debug)]
pub(crate) struct Stores {
    postgres: Postgres,
    redis: Server,
    compares: bool,
}

/// What a client is told of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    /// As `tokio_postgres` reads it.
    pub(crate) postgres: String,
    pub(crate) redis: String,
    /// Whether what is written is compared by its fence.
    pub(crate) compares: bool,
}

/// What was written in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) writes: u64,
    pub(crate) stale: u64,
}

/// The list of a key's writes, on the Redis.
pub(crate) fn list(key: &str) -> String {
    format!("writes:{key}")
}

impl Stores {
    pub(crate) fn start(compares: bool) -> Result<Self, Failure> {
        let program = find_postgres()?;
        let stores = Self { postgres: Postgres::start(&program), redis: Server::start(), compares };
        let tables = "CREATE TABLE writes (id bigserial PRIMARY KEY, key text NOT NULL,
                fence bigint NOT NULL, asked bigint NOT NULL, got bigint NOT NULL);
            CREATE TABLE fences (resource text PRIMARY KEY, fence bigint NOT NULL)";
        stores.psql(tables)?;
        Ok(stores)
    }

    /// How clients reach them: by sockets of the file system, from every network namespace.
    pub(crate) fn address(&self) -> Address {
        Address {
            postgres: self.postgres.socket(),
            redis: format!("unix://{}", self.redis.socket_path().display()),
            compares: self.compares,
        }
    }

    /// What was written in PostgreSQL, and in the Redis under these keys.
    pub(crate) fn look(&self, keys: u64) -> Result<[Written; 2], Failure> {
        let rows = self.psql(
            "SELECT count(*), count(*) FILTER (WHERE latest > got) FROM (SELECT got, max(asked)
                OVER (PARTITION BY key ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
                AS latest FROM writes) AS each",
        )?;
        let mut redis = Written::default();
        for key in 0..keys {
            let writes = self.redis.command(&["LRANGE", &list(&format!("w{key}")), "0", "-1"]);
            let writes = writes.array();
            let times: Option<Vec<_>> = writes.iter().map(|write| times(&write.text())).collect();
            let found = judge(times.ok_or("an odd write")?);
            redis.writes += found.writes;
            redis.stale += found.stale;
        }
        Ok([rows, redis])
    }

    fn psql(&self, statement: &str) -> Result<Written, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&self.postgres.socket(), NoTls).await?;
            #[expect(clippy::disallowed_methods, reason = "the driver's own task")]
            tokio::spawn(connection);
            let mut written = Written::default();
            for message in client.simple_query(statement).await? {
                if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                    let number = |at: usize| row.get(at).and_then(|text| text.parse().ok());
                    let (writes, stale) = number(0).zip(number(1)).ok_or("an odd count")?;
                    written = Written { writes, stale };
                }
            }
            Ok(written)
        })
    }
}

/// When a write's holder had asked for its lock, and when it had it: `fence asked got`.
fn times(write: &str) -> Option<(u64, u64)> {
    let mut words = write.split(' ').skip(1).map(|word| word.parse().ok());
    Some((words.next()??, words.next()??))
}

/// Of the writes of one key, in their order.
fn judge(writes: Vec<(u64, u64)>) -> Written {
    let (mut found, mut latest) = (Written::default(), 0);
    for (asked, got) in writes {
        found.writes += 1;
        found.stale += u64::from(latest > got);
        latest = latest.max(asked);
    }
    found
}

impl Address {
    /// Reads what [`words`](Self::words) has written.
    pub(crate) fn parse(words: &str) -> Option<Self> {
        let mut parts = words.split('|').map(String::from);
        let (postgres, redis) = (parts.next()?, parts.next()?);
        Some(Self { postgres, redis, compares: parts.next()? == "compares" })
    }

    pub(crate) fn words(&self) -> String {
        let how = if self.compares { "compares" } else { "plain" };
        format!("{}|{}|{how}", self.postgres, self.redis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_behind_a_later_holders_is_stale() {
        let none = judge(vec![(1, 2), (1, 2), (3, 4), (3, 4)]);
        assert_eq!(none, Written { writes: 4, stale: 0 });
        assert_eq!(judge(vec![(1, 2), (3, 4), (1, 2), (1, 2)]), Written { writes: 4, stale: 2 });
        assert_eq!(judge(vec![(1, 5), (3, 7), (1, 5)]).stale, 0, "they asked at the same time");
        assert_eq!(times("42 1 2"), Some((1, 2)));
        assert_eq!(times("42 1"), None);
    }

    #[test]
    fn an_address_comes_back_as_it_was() {
        let address =
            Address { postgres: "host=/a b=c".into(), redis: "unix:///r".into(), compares: true };
        assert_eq!(Address::parse(&address.words()), Some(address));
    }
}
