//! Why there is no TLS, in one line: the cause, and in brackets what to do.
//!
//! What the peer says of itself (the names in its certificate) is made safe to print.

use std::io;
use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};

use crate::report::{Fault, printable};

/// Names of a certificate that are shown; they may be hundreds.
const NAMES_MAX: usize = 3;

const PLAIN: &str =
    "what came is no TLS (give its TLS port, or write redis:// for the one of plain text)";
// A server that speaks TLS itself cannot say that it has too many clients before hands are shaken.
const CLOSED: &str = "the server closed the connection in the handshake (is this its TLS port? \
                      write redis:// for the one of plain text; or are its `maxclients` reached?)";
const OURS: &str = "the server wants a client certificate (give one by `Tls::client_cert_files`)";

/// What is said of a connection that had shaken hands: its peer does speak TLS.
const BROKEN: &str = "a record came broken (something on the way changes what is sent; the next \
                      connection begins anew)";

/// Why a connection that had shaken hands has ended.
pub(super) fn of_stream(error: &Error) -> Fault {
    match error {
        Error::InvalidMessage(_) | Error::PeerSentOversizedRecord | Error::DecryptError => {
            Fault::Tls { error: BROKEN.into() }
        }
        other => of(other),
    }
}

/// Why hands were not shaken.
pub(super) fn of(error: &Error) -> Fault {
    let error = match error {
        Error::InvalidCertificate(error) => certificate(error),
        Error::NoCertificatesPresented => "the server shows no certificate".into(),
        Error::AlertReceived(alert) => self::alert(*alert),
        Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => PLAIN.into(),
        Error::PeerIncompatible(_) => format!(
            "the server has no version (from 1.2 on) or cipher in common with us ({})",
            printable(error.to_string().as_bytes())
        ),
        other => printable(other.to_string().as_bytes()).into(),
    };
    Fault::Tls { error: error.into() }
}

/// The stream has failed before hands were shaken.
pub(super) fn of_handshake(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => closed(),
        _ => Fault::Unreachable { error: printable(error.to_string().as_bytes()) },
    }
}

/// The stream has ended before hands were shaken.
pub(super) fn closed() -> Fault {
    Fault::Tls { error: CLOSED.into() }
}

fn certificate(error: &CertificateError) -> String {
    use CertificateError as E;
    match error {
        E::NotValidForNameContext { expected, presented } => format!(
            "its certificate is {}, not for {} (connect by a name that it has, or set \
             `Tls::server_name`)",
            names(presented),
            expected.to_str()
        ),
        E::NotValidForName => "its certificate is for another name (set `Tls::server_name`)".into(),
        E::ExpiredContext { time, not_after } => format!(
            "its certificate has expired, {} ago (renew it; or is this machine's clock wrong?)",
            span(*not_after, *time)
        ),
        E::Expired => "its certificate has expired (renew it)".into(),
        E::NotValidYetContext { time, not_before } => format!(
            "its certificate is not valid yet, only in {} (is this machine's clock wrong?)",
            span(*time, *not_before)
        ),
        E::NotValidYet => "its certificate is not valid yet (see this machine's clock)".into(),
        E::Revoked => "its certificate was revoked (renew it)".into(),
        E::UnknownIssuer => "its certificate is from no authority that is trusted here (give the \
                             one that signed it by `Tls::ca_file`)"
            .into(),
        E::BadSignature => "its certificate is not signed by the authority that it names (give \
                            that authority's present certificate by `Tls::ca_file`)"
            .into(),
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => {
            "its certificate is not one for a server (issue it with serverAuth)".into()
        }
        E::Other(other) if other.to_string() == "CaUsedAsEndEntity" => {
            "its certificate is an authority's own (let that authority sign one for the server)"
                .into()
        }
        other => format!(
            "its certificate is not to be trusted ({})",
            printable(other.to_string().as_bytes())
        ),
    }
}

fn alert(alert: AlertDescription) -> String {
    use AlertDescription as A;
    match alert {
        A::CertificateRequired => OURS.into(),
        A::UnknownCA => "the server does not know the authority that signed our client \
                         certificate (give one of its own by `Tls::client_cert_files`)"
            .into(),
        A::CertificateExpired => "our client certificate has expired (renew it)".into(),
        A::BadCertificate
        | A::UnsupportedCertificate
        | A::CertificateRevoked
        | A::CertificateUnknown
        | A::AccessDenied => format!(
            "the server refuses our client certificate ({alert:?}; give another by \
             `Tls::client_cert_files`)"
        ),
        A::HandshakeFailure => "the server refuses the handshake (it may want a client \
                                certificate, by `Tls::client_cert_files`, or other ciphers)"
            .into(),
        A::ProtocolVersion => "the server speaks no version from 1.2 on (raise its \
                               `tls-protocols`)"
            .into(),
        A::UnrecognisedName => {
            "the server does not know itself by this name (set `Tls::server_name`)".into()
        }
        other => format!("the server sent the alert {other:?}"),
    }
}

/// `for a, b and 3 more`, of what webpki shows as `DnsName("a")` and `IpAddress(127.0.0.1)`.
fn names(presented: &[String]) -> String {
    let name = |shown: &String| {
        let inner = shown.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        printable(inner.unwrap_or(shown).trim_matches('"').as_bytes())
    };
    let shown: Vec<_> = presented.iter().take(NAMES_MAX).map(name).collect();
    match presented.len() - shown.len() {
        _ if shown.is_empty() => "for no name".into(),
        0 => format!("for {}", shown.join(", ")),
        more => format!("for {} and {more} more", shown.join(", ")),
    }
}

/// The time between two moments, in the largest unit that it has.
fn span(from: UnixTime, to: UnixTime) -> String {
    let time = Duration::from_secs(to.as_secs().saturating_sub(from.as_secs()));
    let (count, unit) = match time.as_secs() {
        secs @ 0..120 => (secs, "s"),
        secs @ 120..7_200 => (secs / 60, "minutes"),
        secs @ 7_200..172_800 => (secs / 3_600, "hours"),
        secs => (secs / 86_400, "days"),
    };
    format!("{count} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificates_names_are_few_and_safe_to_print() {
        let presented =
            |names: &[&str]| names.iter().map(|name| (*name).into()).collect::<Vec<_>>();
        assert_eq!(names(&[]), "for no name");
        let two = presented(&["DnsName(\"a.test\")", "IpAddress(127.0.0.1)"]);
        assert_eq!(names(&two), "for a.test, 127.0.0.1");
        let many = presented(&["DnsName(\"\x1b[2J\r\n\")", "x", "y", "z", "z"]);
        assert_eq!(names(&many), "for \\x1b[2J\\r\\n, x, y and 2 more");
    }

    #[test]
    fn time_has_its_largest_unit() {
        let at = |secs| UnixTime::since_unix_epoch(Duration::from_secs(secs));
        let cases = [(119, "119 s"), (180, "3 minutes"), (7_200, "2 hours"), (900_000, "10 days")];
        for (secs, words) in cases {
            assert_eq!(span(at(1_000), at(1_000 + secs)), words);
        }
        assert_eq!(span(at(2), at(1)), "0 s");
    }
}
