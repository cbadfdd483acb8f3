//! Numbers that look random and come again with the same seed. Never a source of real randomness.

/// A `SplitMix64` generator: small, fast, and the same on every machine.
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// A generator of its own for each case, so that one case can be made again without the others.
    pub(crate) fn for_case(seed: u64, number: u64) -> Self {
        let mut rng = Rng(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93));
        rng.next();
        rng
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to and without `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).expect("a length fits");
        usize::try_from(self.next() % end).expect("it is below a length")
    }

    /// True in so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }
}
