//! The user that may do what the library needs, and nothing more.
//!
//! What that is stands in the manual, in a table that `tests/acl.rs` holds to the truth. Under
//! `QUORLOCK_ACL=least` every server has such a user, and clients log in as it: so the whole suite
//! runs with the least privilege. The tests themselves look at the servers as the default user.

/// The manual's table: what is to be done, and the rules that it takes.
const TABLE: &str = include_str!("../../../src/manual/acl.md");

/// The user's name and its password, as in a URL.
pub(crate) const LOGIN: &str = "least:pw";

/// The rows of the table: what is to be done, and the rules that it takes.
pub fn rows() -> Vec<(String, Vec<String>)> {
    let cells = TABLE.lines().skip(2).filter_map(|line| {
        // A bar that is no column's is escaped.
        let line = line.replace("\\|", "\u{0}");
        let (what, rules) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        let rules = rules.trim_matches('`').split(' ').map(|rule| rule.replace('\u{0}', "|"));
        Some((what.replace('`', ""), rules.collect()))
    });
    cells.collect()
}

/// Whether the environment asks for it.
pub fn is_least() -> bool {
    match std::env::var("QUORLOCK_ACL").as_deref() {
        Err(_) | Ok("") => false,
        Ok("least") => true,
        Ok(other) => panic!("QUORLOCK_ACL takes \"least\", not {other:?}"),
    }
}

/// The rules of a user that may do all that the table has, on any key.
pub fn least() -> String {
    let mut rules: Vec<String> = rows().into_iter().flat_map(|(_, rules)| rules).collect();
    rules.retain(|rule| rule.starts_with(['+', '&']));
    rules.sort_unstable();
    rules.dedup();
    format!("on >pw ~* resetchannels -@all {}", rules.join(" "))
}
