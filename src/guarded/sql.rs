//! Statements for PostgreSQL: a table of the highest fences that have written.
//!
//! Each is one statement with its binds, for `tokio-postgres`, `sqlx` or any other driver. In one
//! transaction, and *first*: the fence, then what you read, then what you write. The fence's row is
//! locked from then on until the transaction ends, so no other holder comes between.
//!
//! ```text
//! BEGIN;
//! -- Table::advance, with the resource and the fence: 1 row, or 0 if a later holder has written.
//! INSERT INTO quorlock_fences …;
//! UPDATE stock SET pieces = pieces - 1 WHERE item = 7;
//! COMMIT;
//! ```
//!
//! With `tokio-postgres`:
//!
//! ```ignore
//! let fences = guarded::sql::Table::new("quorlock_fences")?;
//! let work = database.transaction().await?;
//! if work.execute(fences.advance(), &[&"stock:7", &i64::from(fence)]).await? == 0 {
//!     let stands = work.query_one(fences.standing(), &[&"stock:7"]).await?.get(0);
//!     return Err(guarded::Refused::new(fence, stands).into());
//! }
//! work.execute("UPDATE stock SET pieces = pieces - 1 WHERE item = 7", &[]).await?;
//! work.commit().await?;
//! ```
//!
//! **Isolation.** `READ COMMITTED`, PostgreSQL's own, is enough if the fence comes first. With
//! `REPEATABLE READ` or `SERIALIZABLE` a transaction that began before another holder's ended fails
//! with a serialization error (SQLSTATE 40001) in the place of 0 rows; nothing is written then
//! either. Begin it anew, and it tells 0 rows if the lock was lost.
//!
//! Where each write is one statement on one row, a column does without the table:
//!
//! ```sql
//! UPDATE stock SET pieces = pieces - 1, fence = $2 WHERE item = $1 AND fence <= $2;
//! ```
//!
//! 0 rows then mean that a later holder has written, or that there is no such row.

use crate::error::Error;

/// A table that has the highest fence of each resource, and the statements that compare with it.
///
/// A resource is what is protected, by any name; as a rule that of the lock. Rows are small and
/// stay: a resource that is gone for good can be deleted when no holder from before can still be at
/// work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    create: String,
    advance: String,
    advance_once: String,
    standing: String,
}

impl Table {
    /// The table of this name, or with its schema before it: `shop.quorlock_fences`.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for a name that would have to be quoted.
    pub fn new(name: &str) -> Result<Self, Error> {
        if !is_name(name) {
            let name = name.escape_debug();
            return Err(Error::misuse(format!(
                "\"{name}\" cannot be a table's name here; give one of a to z, 0 to 9 and _, as in \
                 \"quorlock_fences\" or \"shop.quorlock_fences\""
            )));
        }
        let advance = |compare: &str| {
            format!(
                "INSERT INTO {name} AS standing (resource, fence) VALUES ($1, $2) \
                 ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence \
                 WHERE excluded.fence {compare} standing.fence"
            )
        };
        Ok(Self {
            create: format!(
                "CREATE TABLE IF NOT EXISTS {name} \
                 (resource text PRIMARY KEY, fence bigint NOT NULL)"
            ),
            advance: advance(">="),
            advance_once: advance(">"),
            standing: format!("SELECT fence FROM {name} WHERE resource = $1"),
        })
    }

    /// Makes the table, if there is none.
    #[must_use]
    pub fn create(&self) -> &str {
        &self.create
    }

    /// Notes a fence: `$1` the resource, as text, and `$2` the fence, as `i64::from(fence)`.
    /// Changes one row where it is not below the one that stands, and else none: then write
    /// nothing, and roll back. For holders that write several times.
    #[must_use]
    pub fn advance(&self) -> &str {
        &self.advance
    }

    /// As [`advance`](Self::advance), where the fence is above the one that stands: for holders
    /// that write once.
    #[must_use]
    pub fn advance_once(&self) -> &str {
        &self.advance_once
    }

    /// The fence that stands for the resource `$1`, for [`Refused::new`](super::Refused::new).
    #[must_use]
    pub fn standing(&self) -> &str {
        &self.standing
    }
}

/// One or two words that need no quotes.
fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    let mut words = name.split('.');
    name.len() <= 127 && words.clone().count() <= 2 && words.all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_need_quotes_is_refused() {
        for name in ["fences", "shop.fences_2", "_f"] {
            assert!(Table::new(name).unwrap().advance().contains(name));
        }
        for name in ["", "a.b.c", "a.", ".a", "Fences", "2f", "a b", "a;drop table b", "a\"", "é"]
        {
            assert!(Table::new(name).unwrap_err().is_misuse(), "{name}");
        }
        assert!(Table::new(&"f".repeat(128)).is_err());
    }
}
