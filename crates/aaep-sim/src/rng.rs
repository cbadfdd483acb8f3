//! The only source of randomness in a world: `SplitMix64`, so that a seed determines a whole run.

/// A pseudo-random generator whose numbers depend on the seed alone.
#[derive(Debug, Clone)]
pub struct SeededRng {
    state: u64,
}

impl SeededRng {
    /// Starts the generator with a seed.
    pub fn new(seed: u64) -> Self {
        SeededRng { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.number() % bound }
    }

    /// A number between the two bounds, both included.
    pub fn between(&mut self, least: u64, greatest: u64) -> u64 {
        least + self.below(greatest - least + 1)
    }

    /// A size between the two bounds, both included.
    pub fn size(&mut self, least: usize, greatest: usize) -> usize {
        usize::try_from(self.between(least as u64, greatest as u64)).unwrap_or(least)
    }

    /// True with this probability in percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One element of the slice, each with equal probability.
    ///
    /// # Panics
    /// If the slice is empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        assert!(!from.is_empty(), "there is something to pick from");
        &from[self.size(0, from.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let numbers = |seed| {
            let mut rng = SeededRng::new(seed);
            (0..8).map(|_| rng.number()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }
}
