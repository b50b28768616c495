//! SHA-1, by which servers name their scripts (FIPS 180-4, section 6.1).

/// The digest of `message`, in lower-case hex.
pub fn sha1_hex(message: &[u8]) -> String {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - message.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let bits = (message.len() as u64 * 8).to_be_bytes();
    let tail = padded.len() - bits.len();
    padded[tail..].copy_from_slice(&bits);

    let mut hash = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded.chunks_exact(64) {
        mix(&mut hash, block);
    }
    hash.iter().map(|word| format!("{word:08x}")).collect()
}

/// Mixes one block of 64 bytes into the hash.
fn mix(hash: &mut [u32; 5], block: &[u8]) {
    let mut words = [0u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for i in 16..80 {
        words[i] = (words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16]).rotate_left(1);
    }

    let [mut a, mut b, mut c, mut d, mut e] = *hash;
    for (i, word) in words.iter().enumerate() {
        let (choice, constant) = match i / 20 {
            0 => ((b & c) | (!b & d), 0x5a82_7999_u32),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let sum = a.rotate_left(5).wrapping_add(choice).wrapping_add(e);
        let next = sum.wrapping_add(constant).wrapping_add(*word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (word, step) in hash.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(step);
    }
}
