//! Statements for PostgreSQL: a table of the highest fence that has come for each resource.
//!
//! Each is one statement with its binds, for `tokio-postgres`, `sqlx` or any other driver. In the
//! transaction that reads and writes, and *first*: the fence's row is locked from then on until the
//! transaction ends, so no other holder comes between.
//!
//! ```ignore
//! let fences = guarded::sql::Table::new("quorlock_fences")?;
//! let work = database.transaction().await?;
//! // One row, or none: then a later holder has come.
//! let fresh = work.query_opt(fences.advance(), &[&"stock:7", &i64::from(fence)]).await?;
//! if fresh.is_none() {
//!     let accepted = work.query_one(fences.accepted(), &[&"stock:7"]).await?.get(0);
//!     return Err(guarded::Error::refused(fence, accepted).into());
//! }
//! work.execute("UPDATE stock SET pieces = pieces - 1 WHERE item = 'stock:7'", &[]).await?;
//! work.commit().await?;
//! ```
//!
//! For a lock of several keys it is advanced once for each of them, in the order in which
//! [`LockGuard::keys`](crate::LockGuard::keys) has them: in any other, transactions can deadlock.
//!
//! **A holder that is stopped in its transaction** keeps that row locked, and all later holders
//! waiting, for as long as its connection lives. Set limits to both, as for each session:
//!
//! ```sql
//! SET idle_in_transaction_session_timeout = '5s';  -- its work is undone, and others go on
//! SET lock_timeout = '5s';
//! ```
//!
//! **Isolation.** `READ COMMITTED`, PostgreSQL's own, is enough if the fence comes first. With
//! `REPEATABLE READ` or `SERIALIZABLE` a transaction that began before another holder's ended fails
//! with a serialization error (SQLSTATE 40001), in the place of one row or none; nothing is written
//! then either. Begin it anew: then it is told which of the two it is.
//!
//! **A column** does without the table where each write is one statement on one row that computes
//! what it writes from that row alone:
//!
//! ```sql
//! ALTER TABLE stock ADD COLUMN fence bigint NOT NULL DEFAULT 0;
//! UPDATE stock SET pieces = pieces - 1, fence = $2 WHERE item = $1 AND fence <= $2;
//! ```
//!
//! No row then means that a later holder has written, or that there is no such row. A value that
//! was read before in a statement of its own is not protected.

use crate::error::Error;

/// The longest name that PostgreSQL does not cut.
const LENGTH_MAX: usize = 63;

/// A table that has the highest fence of each resource, and the statements that compare with it.
///
/// A resource is what is protected, by any name; as a rule that of the lock. Rows are small and
/// stay. That of a resource which is gone for good can be deleted when no holder from before can
/// still be at work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    create: String,
    advance: String,
    advance_once: String,
    accepted: String,
}

impl Table {
    /// The table of this name, or with its schema before it: `shop.quorlock_fences`.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for a name of other characters than a to z, 0 to 9 and `_`,
    /// or of more than 63 of them.
    pub fn new(name: &str) -> Result<Self, Error> {
        let words: Vec<&str> = name.split('.').collect();
        if words.len() > 2 || !words.iter().all(|word| is_plain(word)) {
            let name = name.escape_debug();
            return Err(Error::misuse(format!(
                "\"{name}\" cannot be a table's name here; give one of at most {LENGTH_MAX} \
                 characters of a to z, 0 to 9 and _, as in \"quorlock_fences\" or \
                 \"shop.quorlock_fences\""
            )));
        }
        // Quoted: any word may be one that the language uses itself.
        let name = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(".");
        let advance = |compare: &str| {
            format!(
                "INSERT INTO {name} AS accepted (resource, fence) VALUES ($1, $2) \
                 ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence \
                 WHERE excluded.fence {compare} accepted.fence RETURNING accepted.fence"
            )
        };
        Ok(Self {
            create: format!(
                "CREATE TABLE IF NOT EXISTS {name} \
                 (resource text PRIMARY KEY, fence bigint NOT NULL)"
            ),
            advance: advance(">="),
            advance_once: advance(">"),
            accepted: format!("SELECT fence FROM {name} WHERE resource = $1"),
        })
    }

    /// Makes the table, if there is none: in a migration, for of two processes that make it at the
    /// same time one can fail.
    #[must_use]
    pub fn create(&self) -> &str {
        &self.create
    }

    /// Brings a fence to the store: `$1` the resource, as text, and `$2` the fence, as
    /// `i64::from(fence)`. Returns one row where it is not below the one that was accepted before,
    /// and else none: **then roll back**. It protects what follows in its own transaction, and
    /// nothing outside.
    #[must_use]
    pub fn advance(&self) -> &str {
        &self.advance
    }

    /// As [`advance`](Self::advance), and returns no row either where this fence has come before:
    /// for the one transaction of a holder, which must not be done twice. Where
    /// [`accepted`](Self::accepted) then is this very fence it may have been done: the lock need
    /// not be lost.
    #[must_use]
    pub fn advance_once(&self) -> &str {
        &self.advance_once
    }

    /// The fence that was accepted last for the resource `$1`, for
    /// [`Error::refused`](super::Error::refused).
    #[must_use]
    pub fn accepted(&self) -> &str {
        &self.accepted
    }
}

/// Whether it means the same with quotes and without.
fn is_plain(word: &str) -> bool {
    let is_letter = |byte: &u8| matches!(byte, b'a'..=b'z' | b'_');
    let bytes = word.as_bytes();
    let begins_well = bytes.first().is_some_and(is_letter);
    begins_well
        && bytes.len() <= LENGTH_MAX
        && bytes.iter().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_in_quotes_and_needs_none() {
        for (name, quoted) in [
            ("fences", "\"fences\" AS"),
            ("shop.fences_2", "\"shop\".\"fences_2\" AS"),
            ("_f", "\"_f\" AS"),
            ("order", "\"order\" AS"),
        ] {
            assert!(Table::new(name).unwrap().advance().contains(quoted), "{name}");
        }
        assert!(Table::new(&"f".repeat(63)).is_ok());
    }

    #[test]
    fn a_name_that_would_need_quotes_is_refused() {
        let long = "f".repeat(64);
        for name in
            ["", "a.b.c", "a.", ".a", "Fences", "2f", "a b", "a;drop table b", "a\"", "é", &long]
        {
            assert!(Table::new(name).unwrap_err().is_misuse(), "{name}");
        }
    }
}
