//! SHA-1, by which servers name their scripts.

use sha1_smol::Sha1;

/// The digest of `message`, in lower-case hex.
pub fn sha1_hex(message: &[u8]) -> String {
    Sha1::from(message).digest().to_string()
}
