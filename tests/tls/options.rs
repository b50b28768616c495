//! Mistakes that are told when the locker is built, in one line that says what to do.

use std::path::Path;
use std::sync::Arc;

use quorlock::rustls::{ClientConfig, RootCertStore, crypto};
use quorlock::{Client, Locker, Tls};
use rcgen::KeyPair;
use support::scratch::Scratch;
use support::tls::authority;

use crate::{builder, trusting};

#[test]
fn what_cannot_be_right_is_refused() {
    let dir = Scratch::new();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let client = authority().client();
    let (certificate, key) = (&client.certificate, &client.key);
    let key_alone = file("key.pem", key);
    let other_key = KeyPair::generate().unwrap().serialize_pem();
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----";
    let no_der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let broken = "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
    let config = trusting_config();
    let cases = [
        (Tls::new().ca_file(Path::new("/no/such/file")), "cannot read /no/such/file"),
        (Tls::new().ca_pem("garbage"), "finds no certificate in the 7 bytes given; `ca_file`"),
        (Tls::new().ca_file(&key_alone), "finds no certificate in /"),
        (Tls::new().ca_pem(broken), "finds broken PEM"),
        (Tls::new().ca_pem(no_der), "cannot trust a certificate"),
        (trusting().client_cert_files(&key_alone, &key_alone), "`client_cert_files` takes PEM"),
        (trusting().client_cert_pem(certificate, certificate), "finds no private key"),
        (trusting().client_cert_pem(certificate, other_key), "give the key that the certificate"),
        (trusting().client_cert_pem(certificate, encrypted), "decrypt it (openssl pkey)"),
        (trusting().server_name("not a name"), "that no certificate can have"),
        (Tls::from_config(config.clone()).bundled_roots(), "put them into the configuration"),
        (Tls::from_config(config).client_cert_pem(certificate, key), "put them into the"),
    ];
    for (tls, words) in cases {
        let error = builder("rediss://h", tls.clone()).build().unwrap_err();
        assert!(error.is_misuse(), "{error}");
        let line = error.to_string();
        assert!(line.contains(words) && !line.contains('\n') && line.len() < 250, "{line}");
        assert_eq!(Client::with_tls("rediss://h", &tls).unwrap_err().to_string(), line);
    }
}

fn trusting_config() -> Arc<ClientConfig> {
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth().into()
}

#[test]
fn tls_options_without_a_tls_url_are_told() {
    for url in ["redis://h", "unix:///run/redis.sock"] {
        let error = builder(url, trusting()).build().unwrap_err();
        assert!(error.is_misuse() && error.to_string().contains("write rediss://"), "{error}");
        assert!(Client::with_tls(url, &trusting()).is_err());
    }
    let some = Locker::quorum(["rediss://a", "redis://b", "valkeys://c"]).unwrap();
    assert!(some.tls(trusting()).build().is_ok());
}

#[test]
fn a_host_that_no_certificate_can_be_for_is_told() {
    let error = builder("rediss://a..b", trusting()).build().unwrap_err();
    assert!(error.to_string().contains("set `Tls::server_name`"), "{error}");
    assert!(builder("rediss://a..b", trusting().server_name("a.b")).build().is_ok());
    for host in ["a_b", "[::1]", "10.0.0.1", "a.b."] {
        assert!(builder(&format!("rediss://{host}"), trusting()).build().is_ok(), "{host}");
    }
}

#[test]
fn nothing_is_needed_for_what_browsers_trust() {
    assert!(Locker::single("rediss://h").unwrap().build().is_ok());
    assert!(Client::new("valkeys://h:6380").is_ok());
}

#[test]
fn debug_shows_no_key() {
    let client = authority().client();
    let tls = trusting().client_cert_pem(&client.certificate, &client.key);
    let shown = format!("{tls:?} {:?}", builder("rediss://me:canary@h", tls.clone()));
    assert!(shown.contains("client_certificate: Some("), "{shown}");
    let secret: Vec<&str> = client.key.lines().filter(|line| !line.starts_with('-')).collect();
    assert!(!shown.contains("canary") && secret.iter().all(|line| !shown.contains(line)));
}
