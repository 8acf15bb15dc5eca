//! Medians, and how sure they are.

use crate::Chance;

/// How often samples are drawn anew.
const DRAWS: usize = 2000;

/// A median, and the 90 % interval that the bootstrap gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub samples: usize,
}

impl Estimate {
    /// Of some samples; `None` of none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() {
            return None;
        }
        let mut chance = Chance::from_seed(1);
        let mut medians: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let draw = samples.iter().map(|_| samples[chance.below(samples.len())]);
                median(draw.collect())
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        Some(Self {
            median: median(samples.to_vec()),
            low: medians[DRAWS / 20],
            high: medians[DRAWS - 1 - DRAWS / 20],
            samples: samples.len(),
        })
    }
}

/// The middle one, or the mean of the two in the middle; the list is not empty.
pub fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    if samples.len() % 2 == 1 {
        samples[middle]
    } else {
        f64::midpoint(samples[middle - 1], samples[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn the_interval_holds_the_median_and_narrows() {
        let few = Estimate::of(&[1.0, 1.2, 0.8]).unwrap();
        assert!(few.low <= few.median && few.median <= few.high);
        let mut chance = Chance::from_seed(5);
        let many: Vec<f64> = (0..200)
            .map(|_| 0.8 + chance.below(401) as f64 / 1000.0)
            .collect();
        let many = Estimate::of(&many).unwrap();
        assert!(many.low <= many.median && many.median <= many.high);
        assert!(many.high - many.low < few.high - few.low);
        assert!((many.median - 1.0).abs() < 0.05);
    }

    #[test]
    fn one_outlier_moves_the_median_little() {
        let estimate = Estimate::of(&[1.0, 1.0, 1.0, 1.0, 50.0]).unwrap();
        assert_eq!(estimate.median, 1.0);
    }
}
