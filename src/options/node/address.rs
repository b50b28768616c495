//! A node's validated address and login, from which connections are made.

use std::fmt;
use std::sync::Arc;

use super::url::IntoNode;
use super::{Endpoint, NodeOptions, Protocol};
use crate::error::Error;
use crate::options::{CredentialSource, Credentials, Security, TcpOptions, Tls};

/// One node's address and login, validated.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) endpoint: Endpoint,
    /// Whether the connection uses TLS from its first byte. Only for TCP endpoints.
    pub(crate) tls: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// The callback that is asked for the login at each connect; see [`Address::with_login`].
    pub(crate) source: Option<CredentialSource>,
    pub(crate) database: u32,
    pub(crate) protocol: Protocol,
    /// Told to the server with `CLIENT SETNAME`, for its operator's lists.
    pub(crate) name: Option<String>,
    /// For this node alone; otherwise the locker's, or the defaults.
    pub(crate) tcp: Option<TcpOptions>,
    /// What is printed: host and port or path, never a login.
    pub(crate) label: Arc<str>,
}

/// Whether this build can speak TLS.
const SPEAKS_TLS: bool = cfg!(feature = "tls-rustls");

impl Address {
    /// Validates a node as it was given. No error repeats a login.
    pub(crate) fn of(node: impl IntoNode) -> Result<Self, Error> {
        let address = Self::new(node.into_node()?.normal()?);
        address.tcp.unwrap_or_default().check()?;
        let Self { label, .. } = &address;
        if address.tls && !SPEAKS_TLS {
            return Err(Error::misuse(format!(
                "the node {label} asks for TLS, which needs quorlock's feature `tls-rustls`; build \
                 with it, or write redis:// where the network is trusted"
            )));
        }
        let has_password = address.password.is_some() || address.source.is_some();
        if address.user.is_some() && !has_password {
            return Err(Error::misuse(format!(
                "the node {label} has a user without a password; write redis://user:password@host"
            )));
        }
        Ok(address)
    }

    #[cfg(test)]
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        Self::of(url)
    }

    fn new(node: NodeOptions) -> Self {
        let label = node.label().into();
        let NodeOptions { endpoint, tls, username: user, password, source, .. } = node;
        let NodeOptions { database, protocol, name, tcp, .. } = node;
        Self { endpoint, tls, user, password, source, database, protocol, name, tcp, label }
    }

    /// The address with the login that the callback returned.
    pub(crate) fn with_login(self, login: Credentials) -> Self {
        let Credentials { username, password } = login;
        let password = Some(password).filter(|password| !password.is_empty());
        Self { user: username.or(self.user), password, ..self }
    }
}

/// The TLS configuration for the nodes among `addresses` that use TLS; `None` if none does.
pub(crate) fn security(
    addresses: &[Address],
    tls: Option<&Tls>,
) -> Result<Option<Security>, Error> {
    let hosts = addresses.iter().filter(|address| address.tls);
    let hosts = hosts.filter_map(|address| match &address.endpoint {
        Endpoint::Tcp { host, .. } => Some(host),
        Endpoint::Unix { .. } => None,
    });
    let mut hosts = hosts.peekable();
    if hosts.peek().is_none() {
        return match tls {
            None => Ok(None),
            Some(_) => Err(Error::misuse(
                "`Tls` was given, and no node's URL asks for it; write rediss:// for those that \
                 speak it, or leave it out",
            )),
        };
    }
    let security = Security::of(tls)?;
    hosts.try_for_each(|host| security.check(host))?;
    Ok(Some(security))
}

/// Prints where the node is, and never the login.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_has_a_whole_login_and_a_way_to_be_reached() {
        let cases = [
            ("redis://canary@h", "h:6379 has a user without a password"),
            ("redis://canary:@h", "h:6379 has a user without a password"),
        ];
        let tls = [
            ("rediss://:canary@h", "h:6379 asks for TLS, which needs quorlock's feature"),
            ("valkeys://h", "`tls-rustls`"),
        ];
        assert!(!SPEAKS_TLS || Address::of("rediss://:canary@h").is_ok_and(|it| it.tls));
        let tls = tls.into_iter().filter(|_| !SPEAKS_TLS);
        let cases = cases.into_iter().chain(tls);
        for (url, words) in cases {
            let error = Address::of(url).unwrap_err();
            let line = error.to_string();
            assert!(error.is_misuse() && line.contains(words), "{url}: {line}");
            assert!(!line.contains("canary"), "{url}: {line}");
        }
    }

    #[test]
    fn options_say_what_a_url_says() {
        let options = NodeOptions::tcp("H", 7000)
            .username("me")
            .password("p@ss")
            .database(3)
            .protocol(Protocol::Resp2)
            .name("web");
        let url = "redis://me:p%40ss@h:7000/3?protocol=2&name=web";
        assert_eq!(Address::of(&options).unwrap(), Address::of(url).unwrap());
        assert_eq!(Address::of(options.tls(true)).is_ok_and(|it| it.tls), SPEAKS_TLS);
        let unix = NodeOptions::unix("/run/redis.sock").password("").name("");
        assert_eq!(Address::of(unix).unwrap(), Address::of("unix:///run/redis.sock").unwrap());
        for host in ["::1", "[::1]", "0:0::1"] {
            let label = Address::of(NodeOptions::tcp(host, 1)).unwrap().label;
            assert_eq!(&*label, "[::1]:1");
        }
    }

    #[test]
    fn a_common_password_is_for_nodes_without_one() {
        let read = |url: &str| url.parse::<NodeOptions>().unwrap();
        assert_eq!(read("redis://me@h").default_password("pw"), read("redis://me:pw@h"));
        assert_eq!(read("redis://:own@h").default_password("pw"), read("redis://:own@h"));
        assert_eq!(read("redis://h").default_password(""), read("redis://h"));
        assert!(read("VALKEYS://h").is_tls() && !read("redis://h").is_tls());
    }

    #[test]
    fn options_that_cannot_be_right_are_refused() {
        let good = || NodeOptions::tcp("h", 6379);
        let cases = [
            (NodeOptions::tcp("", 6379), "has no host"),
            (NodeOptions::tcp("canary b", 6379), "host that cannot be one"),
            (NodeOptions::tcp("redis://:canary@h", 6379), "no IPv6 address"),
            (NodeOptions::tcp("h", 0), "bad port"),
            (NodeOptions::unix("canary/s"), "absolute path"),
            (NodeOptions::unix("/canary\n"), "control characters"),
            (NodeOptions::unix("/canary").tls(true), "TLS over a Unix socket"),
            (good().name("canary b"), "name with blanks"),
            (good().username("canary"), "user without a password"),
        ];
        for (node, words) in cases {
            let line = Address::of(node).unwrap_err().to_string();
            assert!(line.contains(words) && !line.contains("canary"), "{words}: {line}");
        }
    }

    #[test]
    fn a_login_that_was_asked_for_goes_before_the_one_that_was_given() {
        let given = Address::of("redis://me:old@h").unwrap();
        let login = |address: Address| (address.user, address.password);
        let (me, you, new) = (Some("me".into()), Some("you".into()), Some("new".into()));
        assert_eq!(login(given.clone().with_login("new".into())), (me.clone(), new.clone()));
        assert_eq!(login(given.clone().with_login(Credentials::new("you", "new"))), (you, new));
        assert_eq!(login(given.with_login("".into())), (me, None));
        let asked = NodeOptions::tcp("h", 6379).username("me").credentials(|| "pw");
        assert!(Address::of(asked).is_ok());
    }

    #[test]
    fn no_debug_shows_the_login() {
        let options: NodeOptions = "redis://canary:canary@h/1".parse().unwrap();
        assert_eq!(format!("{:?}", Address::of(&options).unwrap()), "Address(h:6379)");
        let shown = format!("{options:?} {:?}", options.clone().credentials(|| "canary"));
        assert!(shown.contains("password: Some(redacted)") && !shown.contains("canary"), "{shown}");
    }
}
