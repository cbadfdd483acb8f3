//! Numbers from a seed.

/// The generator `SplitMix64`: small, and good enough to choose moments.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Another one, for somebody else.
    pub(crate) fn fork(&mut self) -> Self {
        Random(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of the numbers below this one.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
