//! SHA-1, by which servers name their scripts (FIPS 180-4, section 6.1).

/// The digest of a script, in lower-case hexadecimal.
pub(crate) fn digest(message: &[u8]) -> String {
    let mut padded = message.to_vec();
    padded.push(0x80);
    // The length's eight bytes end the last block.
    let zeros = (64 - (padded.len() + 8) % 64) % 64;
    padded.resize(padded.len() + zeros, 0);
    padded.extend_from_slice(&(message.len() as u64 * 8).to_be_bytes());

    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded.chunks_exact(64) {
        absorb(&mut state, block);
    }
    state.iter().map(|word| format!("{word:08x}")).collect()
}

/// Takes in one block of 64 bytes.
fn absorb(state: &mut [u32; 5], block: &[u8]) {
    let mut schedule: Vec<u32> = block
        .chunks_exact(4)
        .map(|bytes| bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)))
        .collect();
    for at in 16..80 {
        let mixed = [3, 8, 14, 16].iter().fold(0, |mixed, back| mixed ^ schedule[at - back]);
        schedule.push(mixed.rotate_left(1));
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (round, word) in schedule.into_iter().enumerate() {
        let (mixed, constant) = match round / 20 {
            0 => (b & c | !b & d, 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let terms = [mixed, e, constant, word];
        let next = terms.into_iter().fold(a.rotate_left(5), u32::wrapping_add);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        assert_eq!(digest(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(digest(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let million = vec![b'a'; 1_000_000];
        assert_eq!(digest(&million), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
        for length in 50..70 {
            assert_eq!(digest(&vec![b'x'; length]).len(), 40);
        }
    }
}
