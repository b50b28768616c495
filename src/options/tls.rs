//! The TLS options: trusted authorities, client certificate, server name.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto};

use crate::error::Error;

/// The TLS options for nodes whose URL begins with `rediss://` or `valkeys://`.
///
/// Without options it trusts what browsers trust: Mozilla's root certificates, built in, and with
/// the feature `tls-native-roots` the platform's as well. As soon as a source of trust is named
/// ([`ca_file`](Self::ca_file), [`ca_pem`](Self::ca_pem), [`bundled_roots`](Self::bundled_roots),
/// `native_roots`), only those that are named count.
///
/// The server's name is always checked: the URL's host must stand in the certificate, an IP address
/// as an IP address. No switch turns that off, only a configuration of your own. A node with such a
/// URL is never spoken to in plain text, and a node with another URL never by TLS.
///
/// A locker has one configuration, so that connections made later resume the session of an earlier
/// one. A session that is resumed does not show its certificate again; a server that was given a
/// new one, or was restarted, starts a new session, and is checked again.
///
/// ```no_run
/// # fn example() -> Result<(), quorlock::Error> {
/// use quorlock::{Locker, Tls};
///
/// let tls = Tls::new()
///     .ca_file("/etc/redis/ca.crt")
///     .client_cert_files("/etc/redis/client.crt", "/etc/redis/client.key");
/// let locker = Locker::quorum(["rediss://a", "rediss://b", "rediss://c"])?.tls(tls).build()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use = "it has to be given to `LockerBuilder::tls` or `Client::with_tls`"]
pub struct Tls {
    authorities: Vec<Pem>,
    bundled: bool,
    native: bool,
    identity: Option<(Pem, Pem)>,
    name: Option<Box<str>>,
    config: Option<Arc<ClientConfig>>,
}

/// Where something in PEM form is.
#[derive(Clone)]
enum Pem {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl Tls {
    /// The default: trusts what browsers trust, and has no client certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the authorities whose certificates are in this PEM file. May be said several times.
    ///
    /// The file is read when the locker is built. To trust one server by its own certificate, name
    /// that file; the certificate must not be marked as an authority's.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.authorities.push(Pem::File(path.into()));
        self
    }

    /// As [`ca_file`](Self::ca_file), with the file's content.
    pub fn ca_pem(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.authorities.push(Pem::Bytes(pem.as_ref().into()));
        self
    }

    /// Trusts Mozilla's root certificates, as they were when the `webpki-roots` crate was
    /// published: beside authorities that are named.
    pub fn bundled_roots(mut self) -> Self {
        self.bundled = true;
        self
    }

    /// Trusts the platform's root certificates; `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
    #[cfg(feature = "tls-native-roots")]
    pub fn native_roots(mut self) -> Self {
        self.native = true;
        self
    }

    /// Presents this client certificate to servers that ask for one, with its private key. The
    /// intermediate certificates follow it in the file. Both are PEM files, read when the locker is
    /// built.
    pub fn client_cert_files(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.identity = Some((Pem::File(certificate.into()), Pem::File(key.into())));
        self
    }

    /// As [`client_cert_files`](Self::client_cert_files), with the files' contents.
    pub fn client_cert_pem(mut self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        let pem = |bytes: &[u8]| Pem::Bytes(bytes.into());
        self.identity = Some((pem(certificate.as_ref()), pem(key.as_ref())));
        self
    }

    /// Expects this name in every node's certificate, and asks for it, in place of the URL's host:
    /// for nodes that are connected to by an address which their certificates do not have.
    pub fn server_name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Leaves everything but [`server_name`](Self::server_name) to a configuration of your own: its
    /// roots, certificates, versions, ciphers, and its store of sessions. Its `max_fragment_size`
    /// is not heeded: what a link writes at once is one record.
    pub fn from_config(config: Arc<ClientConfig>) -> Self {
        Self { config: Some(config), ..Self::default() }
    }

    /// Reads the files. Its errors say what to do.
    fn secure(&self) -> Result<Security, Error> {
        let name = self.name.as_deref().map(server_name).transpose()?;
        let named = self.bundled || self.native || !self.authorities.is_empty();
        let config = match &self.config {
            Some(_) if named || self.identity.is_some() => {
                return Err(bad(
                    "has a configuration of your own and authorities or a certificate beside it; \
                     put them into the configuration",
                ));
            }
            // A link counts on it that what it writes at once is one record: see `link::tls`.
            Some(config) if config.max_fragment_size.is_some() => {
                let mut whole = ClientConfig::clone(config);
                whole.max_fragment_size = None;
                Arc::new(whole)
            }
            Some(config) => config.clone(),
            None => self.config(named)?,
        };
        Ok(Security { config, name })
    }

    fn config(&self, named: bool) -> Result<Arc<ClientConfig>, Error> {
        let provider = Arc::new(crypto::ring::default_provider());
        let roots = Arc::new(self.roots(named)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
            .build()
            .map_err(|error| bad(&format!("has no usable authorities to trust: {error}")))?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(&format!("has no version of TLS to speak: {error}")))?
            .with_webpki_verifier(verifier);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(
                    certificates(certificate, "client_cert_files")?,
                    private_key(key)?,
                )
                .map_err(|error| {
                    bad(&format!(
                        "has a client certificate and a key that cannot be used together \
                         ({error}); give the key that the certificate was issued for"
                    ))
                })?,
        };
        Ok(Arc::new(config))
    }

    fn roots(&self, named: bool) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        for pem in &self.authorities {
            for certificate in certificates(pem, "ca_file")? {
                roots.add(certificate).map_err(|error| {
                    bad(&format!("cannot trust a certificate in {pem} ({error})"))
                })?;
            }
        }
        if self.bundled || !named {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        #[cfg(feature = "tls-native-roots")]
        if self.native || !named {
            // What cannot be read is not trusted; where nothing is, that is an error here.
            let found = rustls_native_certs::load_native_certs();
            let (trusted, _) = roots.add_parsable_certificates(found.certs);
            if self.native && trusted == 0 {
                return Err(bad(
                    "finds no root certificates on this machine; install ca-certificates, or set \
                     SSL_CERT_FILE",
                ));
            }
        }
        Ok(roots)
    }
}

/// Shows which authorities it trusts, and never the content that it was given in memory.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authorities: Vec<String> = self.authorities.iter().map(Pem::to_string).collect();
        let identity = self.identity.as_ref().map(|(certificate, _)| certificate.to_string());
        f.debug_struct("Tls")
            .field("authorities", &authorities)
            .field("bundled_roots", &self.bundled)
            .field("native_roots", &self.native)
            .field("client_certificate", &identity)
            .field("server_name", &self.name)
            .field("own_config", &self.config.is_some())
            .finish()
    }
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Bytes(bytes) => write!(f, "the {} bytes given", bytes.len()),
        }
    }
}

impl Pem {
    fn read(&self) -> Result<Arc<[u8]>, Error> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::File(path) => match std::fs::read(path) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => Err(bad(&format!("cannot read {self} ({error}); see its path"))),
            },
        }
    }
}

/// At least one.
fn certificates(pem: &Pem, option: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let bytes = pem.read()?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(bad(&format!(
            "finds no certificate in {pem}; `{option}` takes PEM, with -----BEGIN CERTIFICATE-----"
        ))),
        Err(error) => Err(bad(&format!("finds broken PEM in {pem} ({error})"))),
    }
}

fn private_key(pem: &Pem) -> Result<PrivateKeyDer<'static>, Error> {
    let bytes = pem.read()?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        let is_encrypted = bytes.windows(9).any(|window| window == b"ENCRYPTED");
        bad(&match is_encrypted {
            true => format!("finds an encrypted key in {pem}; decrypt it (openssl pkey)"),
            false => format!("finds no private key in {pem}; it takes PEM, PKCS #8 or PKCS #1"),
        })
    })
}

fn server_name(name: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        bad("expects a server name that no certificate can have; give a host's name or IP address")
    })
}

fn bad(what: &str) -> Error {
    Error::misuse(format!("the `Tls` {what}"))
}

/// A configuration that is ready to connect with; one per locker, for it keeps the sessions.
#[derive(Clone)]
pub(crate) struct Security {
    config: Arc<ClientConfig>,
    /// In place of the hosts' own.
    name: Option<ServerName<'static>>,
}

impl Security {
    /// For `None`, it trusts what browsers trust.
    pub(crate) fn of(tls: Option<&Tls>) -> Result<Self, Error> {
        tls.map_or_else(|| Tls::new().secure(), Tls::secure)
    }

    /// Refuses a host that no certificate can be for.
    pub(crate) fn check(&self, host: &str) -> Result<(), Error> {
        if self.name.is_some() || ServerName::try_from(host).is_ok() {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "no certificate can be for the host {host:?}; set `Tls::server_name`"
        )))
    }

    /// A connection to this host, before its first byte.
    pub(crate) fn connect(&self, host: &str) -> Result<ClientConnection, rustls::Error> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => ServerName::try_from(host.to_owned())
                .map_err(|_| rustls::Error::UnsupportedNameType)?,
        };
        ClientConnection::new(self.config.clone(), name)
    }
}

/// The configuration is left out, because it holds a private key.
impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security").field("name", &self.name).finish_non_exhaustive()
    }
}
