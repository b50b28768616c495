//! The program over TLS.

#![expect(clippy::unwrap_used, reason = "tests fail on the spot")]

use std::path::PathBuf;
use std::process::{Command, Output};

use quorlock::rustls;
use support::scratch::Scratch;
use support::tls::authority;
use support::{Server, Terminator, need_server};

/// Runs `quorlock` with these arguments and nothing of our environment's nodes.
fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock"));
    for variable in ["QUORLOCK_NODES", "REDIS_URL", "REDIS_PASSWORD"] {
        command.env_remove(variable);
    }
    command.args(args).output().unwrap()
}

#[test]
fn a_command_runs_under_a_lock_over_tls() {
    need_server!();
    let server = Server::start();
    let config = authority().server().server_config(Some(authority()), rustls::ALL_VERSIONS);
    let terminator = Terminator::start(server.addr(), config);
    let dir = Scratch::new();
    let file = |name: &str, text: &str| -> PathBuf {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let client = authority().client();
    let ca = file("ca.crt", &authority().pem()).display().to_string();
    let certificate = file("client.crt", &client.certificate).display().to_string();
    let key = file("client.key", &client.key).display().to_string();
    let (url, plain) = (terminator.url("127.0.0.1"), server.url());
    let lock = |options: &[&str]| {
        let command = ["job", "--", "echo", "done"];
        run(&[&["lock"], options, &command[..]].concat())
    };

    let ours = ["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &key];
    let done = lock(&[&["--node", &*url], &ours[..]].concat());
    assert_eq!(String::from_utf8_lossy(&done.stdout), "done\n", "{done:?}");
    assert_eq!(done.status.code(), Some(0));

    let cases = [
        (vec!["--node", &*url, "--tls-ca", &ca], 69, "wants a client certificate"),
        (vec!["--node", &*url], 69, "no authority that is trusted here"),
        (vec!["--node", &*url, "--tls-ca", "/no/such/file"], 64, "cannot read /no/such/file"),
        (vec!["--node", &*url, "--tls-key", &key], 64, "--tls-cert"),
        (vec!["--node", &*plain, "--tls-ca", &ca], 64, "write rediss://"),
    ];
    for (options, code, words) in cases {
        let failed = lock(&options);
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(said.contains(words), "{options:?}: {said}");
        assert_eq!(failed.status.code(), Some(code), "{options:?}: {said}");
        assert!(failed.stdout.is_empty(), "nothing ran");
    }
}
