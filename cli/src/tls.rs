//! The TLS options: trusted authorities, client certificate, server name.

use std::path::PathBuf;

use quorlock::Tls;

const HEADING: &str = "TLS, for rediss:// and valkeys://";

/// For nodes whose URL begins with `rediss://` or `valkeys://`.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct TlsArgs {
    /// Trust the authorities in this PEM file, and no others (default: what browsers trust)
    #[arg(id = "tls-ca", long, value_name = "FILE", help_heading = HEADING)]
    ca: Option<PathBuf>,
    /// Present this client certificate (PEM) to the nodes
    #[arg(id = "tls-cert", long, value_name = "FILE", requires = "tls-key", help_heading = HEADING)]
    certificate: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(id = "tls-key", long, value_name = "FILE", requires = "tls-cert", help_heading = HEADING)]
    key: Option<PathBuf>,
    /// Expect this name in the nodes' certificates, not the URL's host
    #[arg(id = "tls-server-name", long, value_name = "NAME", help_heading = HEADING)]
    server_name: Option<String>,
}

impl TlsArgs {
    /// What was given, for the library; `None` without any option.
    pub(crate) fn options(&self) -> Option<Tls> {
        let Self { ca, certificate, key, server_name } = self;
        if ca.is_none() && certificate.is_none() && server_name.is_none() {
            return None;
        }
        let mut tls = Tls::new();
        if let Some(path) = ca {
            tls = tls.ca_file(path);
        }
        if let (Some(certificate), Some(key)) = (certificate, key) {
            tls = tls.client_cert_files(certificate, key);
        }
        if let Some(name) = server_name {
            tls = tls.server_name(name.as_str());
        }
        Some(tls)
    }
}
