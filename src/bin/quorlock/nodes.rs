//! The nodes: which they are, and the locker on them.

use std::ffi::OsString;

use quorlock::{Client, Durability, Locker, LockerBuilder};

use crate::args::NodeArgs;
use crate::exit::{Cause, Failure};
use crate::password;

/// Where nodes are looked for when no `--node` is given, in this order.
const VARIABLES: [&str; 2] = ["QUORLOCK_NODES", "REDIS_URL"];

/// A locker still to be told its options: one URL is a single server, several are a quorum.
pub(crate) fn locker(args: &NodeArgs) -> Result<LockerBuilder, Failure> {
    let urls = urls(args)?;
    let builder = match urls.as_slice() {
        [url] => Locker::single(url),
        urls => Locker::quorum(urls),
    };
    let durability = match args.longest_ttl {
        Some(longest_ttl) => Durability::Volatile { longest_ttl },
        None => Durability::Persistent,
    };
    let builder = builder?.prefix(args.prefix.as_encoded_bytes()).durability(durability);
    #[cfg(feature = "tls-rustls")]
    let builder = args.tls.apply(builder);
    Ok(builder)
}

/// A client for one of the [`urls`], for commands that are no locks'.
pub(crate) fn client(args: &NodeArgs, url: &str) -> Result<Client, Failure> {
    #[cfg(feature = "tls-rustls")]
    return Ok(args.tls.client(url)?);
    #[cfg(not(feature = "tls-rustls"))]
    {
        let _ = args; // they say nothing that matters without TLS
        Ok(Client::new(url)?)
    }
}

/// The nodes' URLs, with the password.
pub(crate) fn urls(args: &NodeArgs) -> Result<Vec<String>, Failure> {
    let asked = if args.askpass { Some(ask()?) } else { None };
    find_urls(&args.nodes, |name| match &asked {
        Some(password) if name == password::VARIABLE => Some(password.into()),
        _ => std::env::var_os(name),
    })
}

#[cfg(unix)]
fn ask() -> Result<String, Failure> {
    crate::askpass::password()
}

#[cfg(not(unix))]
fn ask() -> Result<String, Failure> {
    Err(Failure::new(Cause::Usage, "--askpass needs a Unix system; set REDIS_PASSWORD"))
}

/// Builds the locker. What is wrong now is an option's value, and those come from the command line.
pub(crate) fn build(builder: LockerBuilder) -> Result<Locker, Failure> {
    builder.build().map_err(Failure::of_options)
}

/// Finds the URLs in what was given, or in a variable.
fn find_urls(
    given: &[String],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<String>, Failure> {
    let text = |name: &str| match variable(name).map(OsString::into_string) {
        None => Ok(None),
        // A variable set to nothing is one that is not set.
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
    if let Some(password) = text(password::VARIABLE)? {
        for url in &mut urls {
            *url = password::into_url(url, &password);
        }
    }
    Ok(urls)
}

/// Each value may be a list. (A comma in a password is written `%2C`.)
fn listed(values: &[String]) -> Vec<String> {
    let parts = values.iter().flat_map(|value| value.split(','));
    parts.map(str::trim).filter(|part| !part.is_empty()).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(given: &[&str], variables: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let given: Vec<String> = given.iter().copied().map(String::from).collect();
        let variable = |name: &str| {
            let set = variables.iter().find(|(set, _)| *set == name);
            set.map(|(_, value)| OsString::from(value))
        };
        find_urls(&given, variable).map_err(|failure| failure.what)
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
        let password = [("REDIS_PASSWORD", "p,w")];
        let urls = found(&["redis://a,redis://:own@b"], &password).unwrap();
        assert_eq!(urls, ["redis://:p%2Cw@a", "redis://:own@b"]);
    }
}
