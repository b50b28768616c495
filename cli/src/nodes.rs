//! The nodes to use, and the locker on them.

use std::ffi::OsString;

#[cfg(unix)]
use quorlock::Client;
use quorlock::{Durability, Locker, LockerBuilder, NodeOptions};

use crate::args::NodeArgs;
use crate::exit::{Cause, Failure};
use crate::password;

/// Where nodes are looked for when no `--node` is given, in this order.
const VARIABLES: [&str; 2] = ["QUORLOCK_NODES", "REDIS_URL"];

/// The nodes that were named, read once. Not `Debug`: the URLs may hold passwords.
pub(crate) struct Nodes<'a> {
    args: &'a NodeArgs,
    nodes: Vec<Node>,
}

/// One of them.
#[cfg_attr(not(unix), expect(dead_code, reason = "a locker is all that is needed there"))]
pub(crate) struct Node {
    /// As it was given.
    pub(crate) url: String,
    /// For it, if the URL has none.
    pub(crate) password: String,
    /// Read from both.
    pub(crate) options: NodeOptions,
}

impl<'a> Nodes<'a> {
    /// Finds them on the command line or in a variable, and asks for the password with `--askpass`.
    pub(crate) fn find(args: &'a NodeArgs) -> Result<Self, Failure> {
        let asked = if args.askpass { Some(ask()?) } else { None };
        let nodes = find(&args.nodes, |name| match &asked {
            Some(password) if name == password::VARIABLE => Some(password.into()),
            _ => std::env::var_os(name),
        })?;
        Ok(Self { args, nodes })
    }

    /// The builder of a locker: one node is a single server, several are a quorum.
    pub(crate) fn locker(&self) -> Result<LockerBuilder, Failure> {
        let Self { args, nodes } = self;
        let builder = match nodes.as_slice() {
            [node] => Locker::single(&node.options),
            nodes => Locker::quorum(nodes.iter().map(|node| &node.options)),
        };
        let durability = match args.longest_ttl {
            Some(longest_ttl) => Durability::Volatile { longest_ttl },
            None => Durability::Persistent,
        };
        let builder = builder?.prefix(args.prefix.as_encoded_bytes()).durability(durability);
        #[cfg(feature = "tls-rustls")]
        if let Some(tls) = args.tls.options() {
            return Ok(builder.tls(tls));
        }
        Ok(builder)
    }
}

// For the commands that need a Unix system.
#[cfg(unix)]
impl Nodes<'_> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// A client for each, for commands that do not lock. They connect when they are used.
    pub(crate) fn clients(&self) -> Result<Vec<Client>, Failure> {
        self.nodes.iter().map(|node| self.client(&node.options)).collect()
    }

    fn client(&self, node: &NodeOptions) -> Result<Client, Failure> {
        #[cfg(feature = "tls-rustls")]
        if let Some(tls) = self.args.tls.options().filter(|_| node.is_tls()) {
            return Ok(Client::with_tls(node, &tls)?);
        }
        Ok(Client::new(node)?)
    }
}

/// How many of so many nodes have to agree.
pub(crate) const fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// As [`Nodes::locker`], for commands that need nothing else of them.
pub(crate) fn locker(args: &NodeArgs) -> Result<LockerBuilder, Failure> {
    Nodes::find(args)?.locker()
}

#[cfg(unix)]
fn ask() -> Result<String, Failure> {
    crate::askpass::password()
}

#[cfg(not(unix))]
fn ask() -> Result<String, Failure> {
    Err(Failure::new(Cause::Usage, "--askpass needs a Unix system; set REDIS_PASSWORD"))
}

/// Builds the locker. An error here is an option's value, which came from the command line.
pub(crate) fn build(builder: LockerBuilder) -> Result<Locker, Failure> {
    builder.build().map_err(Failure::of_options)
}

/// Finds the nodes in what was given, or in a variable.
fn find(
    given: &[String],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<Node>, Failure> {
    let text = |name: &str| match variable(name).map(OsString::into_string) {
        None => Ok(None),
        // An empty variable counts as not set.
        Some(Ok(value)) => Ok(Some(value).filter(|value| !value.is_empty())),
        Some(Err(_)) => {
            let what = format!("{name} is not UTF-8; set it to plain text");
            Err(Failure::new(Cause::Configuration, what))
        }
    };
    let mut urls = listed(given);
    for name in VARIABLES {
        if urls.is_empty() {
            urls = text(name)?.map(|list| listed(&[list])).unwrap_or_default();
        }
    }
    if urls.is_empty() {
        let what = "no nodes; give --node redis://host:port (repeat it for a quorum), or set \
                    QUORLOCK_NODES or REDIS_URL";
        return Err(Failure::new(Cause::Configuration, what));
    }
    let password = text(password::VARIABLE)?.unwrap_or_default();
    let read = |url: String| {
        let options = url.parse::<NodeOptions>()?.default_password(&*password);
        Ok(Node { url, password: password.clone(), options })
    };
    urls.into_iter().map(read).collect()
}

/// Each value may be a list. (A comma in a password is written `%2C`.)
fn listed(values: &[String]) -> Vec<String> {
    let parts = values.iter().flat_map(|value| value.split(','));
    parts.map(str::trim).filter(|part| !part.is_empty()).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(given: &[&str], variables: &[(&str, &str)]) -> Result<Vec<Node>, String> {
        let given: Vec<String> = given.iter().copied().map(String::from).collect();
        let variable = |name: &str| {
            let set = variables.iter().find(|(set, _)| *set == name);
            set.map(|(_, value)| OsString::from(value))
        };
        find(&given, variable).map_err(|failure| failure.what)
    }

    fn found(given: &[&str], variables: &[(&str, &str)]) -> Result<Vec<String>, String> {
        Ok(nodes(given, variables)?.into_iter().map(|node| node.url).collect())
    }

    #[test]
    fn options_go_before_variables_and_each_may_be_a_list() {
        let both = [("QUORLOCK_NODES", "redis://c, redis://d,"), ("REDIS_URL", "redis://e")];
        let lists = ["redis://a,redis://b", "redis://f"];
        assert_eq!(found(&lists, &both).unwrap(), ["redis://a", "redis://b", "redis://f"]);
        assert_eq!(found(&[], &both).unwrap(), ["redis://c", "redis://d"]);
        assert_eq!(found(&[], &both[1..]).unwrap(), ["redis://e"]);
        assert_eq!(found(&[], &[("QUORLOCK_NODES", ""), both[1]]).unwrap(), ["redis://e"]);
    }

    #[test]
    fn no_nodes_is_an_error_that_says_what_to_do() {
        for given in [&[][..], &[","], &[" "]] {
            assert!(found(given, &[]).unwrap_err().contains("give --node"));
        }
    }

    #[test]
    fn the_password_goes_where_none_is() {
        let password = [("REDIS_PASSWORD", "p,w@x/")];
        let nodes = nodes(&["redis://a,redis://me@b,redis://:own@c", "unix:///d"], &password);
        let options = nodes.unwrap().into_iter().map(|node| node.options);
        let read = |url: &str| url.parse::<NodeOptions>().unwrap();
        let with = |url: &str| read(url).password("p,w@x/");
        let expected =
            [with("redis://a"), with("redis://me@b"), read("redis://:own@c"), with("unix:///d")];
        assert!(options.eq(expected));
    }

    #[test]
    fn what_is_no_url_is_refused_and_not_repeated() {
        let line = nodes(&["canary"], &[("REDIS_PASSWORD", "canary")]).err().unwrap();
        assert!(line.contains("has no scheme") && !line.contains("canary"), "{line}");
    }
}
