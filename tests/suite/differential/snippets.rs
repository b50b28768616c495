//! Lua by snippets, and what each replies on which servers: `lua.txt`, for a node's Lua and for the
//! servers.

#![allow(dead_code, reason = "either user of the table leaves out a part of it")]

/// The kinds of servers that differ in what Lua replies there, as the table names them.
pub(crate) const KINDS: [&str; 3] = ["redis 6", "redis 7", "valkey 9"];

/// A script and its replies.
pub(crate) struct Snippet {
    /// Commands before it, as `scripts::read` reads them.
    pub(crate) setup: &'static str,
    pub(crate) lua: String,
    /// One for each of [`KINDS`].
    replies: [&'static str; 3],
}

/// The table, in its order.
pub(crate) fn all() -> Vec<Snippet> {
    let blocks = include_str!("lua.txt").split("\n\n").filter(|block| !block.starts_with('#'));
    blocks.map(Snippet::read).collect()
}

/// Which of [`KINDS`] a server is; none of them if it is a Valkey before 9.
pub(crate) fn place(kind: &str, [major, ..]: [u32; 3]) -> Option<usize> {
    match (kind, major) {
        ("redis", ..7) => Some(0),
        ("redis", _) => Some(1),
        ("valkey", 9..) => Some(2),
        _ => None,
    }
}

/// A reply's bytes as the table shows them.
pub(crate) fn shown(reply: &[u8], digest: &str) -> String {
    let text = String::from_utf8_lossy(reply).replace(digest, "{sha}");
    text.replace("\r\n", " ").trim().to_owned()
}

impl Snippet {
    fn read(block: &'static str) -> Self {
        let lines = |mark: &'static str| block.lines().filter_map(move |l| l.strip_prefix(mark));
        let lua: Vec<&str> = lines("> ").collect();
        let reply = |kind: &&str| {
            let told = block.lines().filter_map(|line| line.split_once(": "));
            let mut told = told.filter(|(of, _)| of == kind || *of == "all");
            told.next().unwrap_or_else(|| panic!("no reply of {kind}: {block}")).1
        };
        let setup = lines("! ").next().unwrap_or_default();
        Self { setup, lua: lua.join("\n"), replies: KINDS.each_ref().map(reply) }
    }

    /// What it replies there, by the place in [`KINDS`].
    pub(crate) fn reply(&self, place: usize) -> &'static str {
        self.replies[place]
    }
}
