//! Certificates: an authority, and what it issues.
//!
//! Where the environment asks for TLS ([`reach`](crate::reach)), every server speaks it, and the
//! authority's key and certificate are kept where `SSL_CERT_FILE` says: made by whichever process
//! comes first, and found there by the lockers, as one of the platform's roots.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use crate::reach::Transport;

/// Where servers are found in tests.
const HERE: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

/// The file with the authority's certificate.
const CERTIFICATE: &str = "ca.crt";

/// A certificate authority.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Whether every server is to speak TLS.
pub(crate) fn is_everywhere() -> bool {
    Transport::chosen() == Transport::Tls
}

/// The authority of this process's servers.
pub fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        if !is_everywhere() {
            return Authority::new("the tests' authority");
        }
        let file = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from).unwrap_or_default();
        assert!(
            file.ends_with(CERTIFICATE),
            "QUORLOCK_TRANSPORT=tls needs SSL_CERT_FILE=DIR/{CERTIFICATE}, a file for tests to make"
        );
        Authority::kept_in(file.parent().expect("a file is in a directory"))
    })
}

/// What every server shows that was not given something else.
pub(crate) fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| authority().server())
}

impl Authority {
    /// Founds one.
    pub fn new(name: &str) -> Self {
        Self::with_key(name, KeyPair::generate().expect("keys can be made"))
    }

    fn with_key(name: &str, key: KeyPair) -> Self {
        let mut params = CertificateParams::new([]).expect("no name is wrong");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, key).expect("it signs"))
    }

    fn kept_in(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).expect("the directory can be made");
        let (key, certificate) = (dir.join("ca.key"), dir.join(CERTIFICATE));
        if !key.exists() {
            // The first process wins: a file is linked whole, or not at all.
            let own = dir.join(format!("ca.key.{}", std::process::id()));
            let pem = KeyPair::generate().expect("keys can be made").serialize_pem();
            std::fs::write(&own, pem).expect("the directory takes a file");
            // A failure says that it is there already.
            let _ = std::fs::hard_link(&own, &key);
            std::fs::remove_file(&own).expect("our own file can be removed");
        }
        let pem = std::fs::read_to_string(&key).expect("it is there");
        let key = KeyPair::from_pem(&pem).expect("it is a key");
        let authority = Self::with_key("the tests' authority", key);
        if !certificate.exists() {
            let own = dir.join(format!("ca.crt.{}", std::process::id()));
            std::fs::write(&own, authority.pem()).expect("the directory takes a file");
            std::fs::rename(&own, &certificate).expect("a file can be renamed");
        }
        authority
    }

    /// Its own certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A server's, for wherever tests find servers.
    pub fn server(&self) -> Identity {
        self.issue(&HERE, |_| ())
    }

    /// A client's.
    pub fn client(&self) -> Identity {
        self.issue(&["client.test"], |params| {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        })
    }

    /// A server's for these names, with whatever else is to be different.
    pub fn issue(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().expect("keys can be made");
        let params = params(names, change);
        let certificate = params.signed_by(&key, &self.0).expect("it signs").pem();
        Identity { certificate, key: key.serialize_pem() }
    }

    /// Roots that are this authority alone.
    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("it is a certificate");
        Arc::new(roots)
    }
}

fn params(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).into()).collect();
    let mut params = CertificateParams::new(names).expect("the names are names");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    change(&mut params);
    params
}

impl Identity {
    /// A self-signed one.
    pub fn self_signed(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params(names, change).self_signed(&key).expect("it signs").pem();
        Self { certificate, key: key.serialize_pem() }
    }

    /// How a server with this identity speaks TLS; with an authority, it asks its clients for a
    /// certificate of that one's.
    pub fn server_config(
        &self,
        clients: Option<&Authority>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .expect("the versions are known");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let roots = authority.roots();
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(verifier.build().expect("there are roots"))
            }
        };
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes());
        let chain = chain.collect::<Result<_, _>>().expect("it is a certificate");
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("it is a key");
        let mut config = builder.with_single_cert(chain, key).expect("they belong together");
        config.ticketer = rustls::crypto::ring::Ticketer::new().expect("tickets can be made");
        Arc::new(config)
    }
}
