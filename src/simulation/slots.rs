//! The slots of a lock, as the nodes and the oracle know them: each is a lock of its own.

/// The key of a slot.
pub(super) fn slot_key(key: &str, number: u16) -> String {
    format!("{{{key}}}:slot:{number}")
}

/// The lock's key, of the key of a slot.
pub(super) fn key_of(slot: &str) -> Option<&str> {
    let (key, _) = slot.strip_prefix('{')?.split_once("}:slot:")?;
    Some(key)
}

/// How all slots of a key are named where they are waited for.
pub(super) fn slots_of(key: &str) -> String {
    format!("slots of {key}")
}

/// What those that have slots hold: of another lock, its keys.
pub(super) fn keys_of(keys: &[String], slots: &[u16]) -> Vec<String> {
    match (slots, keys) {
        ([_, ..], [key, ..]) => slots.iter().map(|slot| slot_key(key, *slot)).collect(),
        _ => keys.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_library() {
        assert_eq!(slot_key("k0", 3), "{k0}:slot:3");
        assert_eq!(key_of("{k0}:slot:3"), Some("k0"));
        assert_eq!(key_of("{k0}:slots:3:quorlock:queue"), None);
        let keys = ["k0".to_owned()];
        assert_eq!(keys_of(&keys, &[2, 0]), ["{k0}:slot:2", "{k0}:slot:0"]);
        assert_eq!(keys_of(&keys, &[]), keys);
    }
}
