//! Chance that comes out the same for the same seed, on every machine and in every version.

/// A source of numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The dice of one thing: those of another number are independent of them.
    pub fn of(seed: u64, thing: u64) -> Dice {
        let mut dice = Dice(seed ^ thing.wrapping_mul(0xd129_0d3d_51b9_7a4f));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// From 0 up to and without `most`; 0 for a `most` of 0.
    pub fn below(&mut self, most: usize) -> usize {
        if most == 0 { 0 } else { (self.next() % most as u64) as usize }
    }

    /// From 0 up to and without `most`, in the same unit.
    pub fn within(&mut self, most: i64) -> i64 {
        if most <= 0 { 0 } else { (self.next() % most as u64) as i64 }
    }

    /// From 0 up to and without 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True so often.
    pub fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// One of several.
    pub fn one<'v, T>(&mut self, of: &'v [T]) -> &'v T {
        &of[self.below(of.len())]
    }

    /// Between two bounds above 0, small values as likely in every order of magnitude.
    pub fn magnitude(&mut self, from: f64, to: f64) -> f64 {
        (from.ln() + self.unit() * (to.ln() - from.ln())).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_throws_the_same() {
        let throw = |seed, thing| {
            let mut dice = Dice::of(seed, thing);
            (0..20).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(throw(7, 1), throw(7, 1));
        assert_ne!(throw(7, 1), throw(7, 2));
        assert_ne!(throw(7, 1), throw(8, 1));
        let mut dice = Dice::of(1, 1);
        assert!((0..1000).all(|_| (0.5..2000.0).contains(&dice.magnitude(0.5, 2000.0))));
        let hits = (0..10_000).filter(|_| dice.chance(0.2)).count();
        assert!((1800..2200).contains(&hits), "{hits}");
    }
}
