//! Input without a fuzzer: pieces of the corpus and of the grammar, put together by chance.

/// What the grammar is made of. The same as `resp.dict`, which `cargo fuzz` reads.
const PIECES: &[&[u8]] = &[
    b"\r\n",
    b"+OK\r\n",
    b"-ERR x\r\n",
    b":0\r\n",
    b":1\r\n",
    b":-1\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"_\r\n",
    b"#t\r\n",
    b"#f\r\n",
    b",1.5\r\n",
    b",inf\r\n",
    b",nan\r\n",
    b"(12\r\n",
    b"$0\r\n\r\n",
    b"$1\r\na\r\n",
    b"$2\r\n\r\n\r\n",
    b"!1\r\ne\r\n",
    b"=5\r\ntxt:a\r\n",
    b"*0\r\n",
    b"*1\r\n",
    b"*2\r\n",
    b"*3\r\n",
    b"%1\r\n",
    b"%2\r\n",
    b"~1\r\n",
    b"~2\r\n",
    b">1\r\n",
    b">2\r\n",
    b"|1\r\n",
    b"|0\r\n",
    b"$?\r\n",
    b"*?\r\n",
    b"%?\r\n",
    b"~?\r\n",
    b";1\r\na\r\n",
    b";3\r\nabc\r\n",
    b";0\r\n",
    b".\r\n",
    b"4294967295",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"1048576",
    b"+",
    b"-",
    b":",
    b"$",
    b"*",
    b"%",
    b"~",
    b">",
    b"|",
    b"_",
    b"#",
    b",",
    b"(",
    b"!",
    b"=",
    b";",
    b".",
    b"?",
    b"\r",
    b"\n",
    b"0",
    b"1",
    b"9",
    b"e",
    b"t",
    b"f",
    b"\0",
    b"\xff",
];

/// A stream of inputs from a seed: the same seed, the same inputs.
#[derive(Debug)]
pub struct Generator {
    state: u64,
    corpus: Vec<Vec<u8>>,
}

impl Generator {
    /// Starts from `seed`; takes some of its material from `corpus`.
    #[must_use]
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        Self { state: seed ^ 0x9e37_79b9_7f4a_7c15, corpus }
    }

    /// The next input.
    pub fn input(&mut self) -> Vec<u8> {
        let mut input = match self.below(3) {
            0 if !self.corpus.is_empty() => {
                let place = self.below(self.corpus.len());
                self.corpus[place].clone()
            }
            _ => Vec::new(),
        };
        if input.is_empty() {
            for _ in 0..=self.below(12) {
                input.extend_from_slice(self.piece());
            }
        }
        for _ in 0..self.below(5) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let place = self.below(input.len() + 1);
        let end = (place + self.below(8)).min(input.len());
        match self.below(6) {
            0 => drop(input.drain(place..end)),
            1 => drop(input.splice(place..place, self.piece().iter().copied())),
            2 => drop(input.splice(place..end, self.piece().iter().copied())),
            3 => {
                let again = input[place..end].to_vec();
                input.splice(place..place, again);
            }
            4 => input.truncate(place),
            _ => {
                if let Some(byte) = input.get_mut(place) {
                    *byte = self.next().to_le_bytes()[0];
                }
            }
        }
    }

    fn piece(&mut self) -> &'static [u8] {
        PIECES[self.below(PIECES.len())]
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }

    /// Xorshift, multiplied: fast, and good enough to choose by.
    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
