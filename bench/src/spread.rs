//! Median, minimum and maximum of several rounds.

use serde::{Deserialize, Serialize};

/// Median, minimum and maximum of some values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// Summarizes the finite values. Returns `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut values: Vec<f64> =
            values.iter().copied().filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let (below, above) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { median: f64::midpoint(below, above), min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_has_as_many_below_as_above() {
        assert_eq!(Spread::of(&[3.0, 1.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 9.0]).map(|spread| spread.median), Some(3.0));
        assert_eq!(Spread::of(&[7.0]), Some(Spread { median: 7.0, min: 7.0, max: 7.0 }));
    }

    #[test]
    fn values_that_are_not_finite_are_ignored() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[f64::NAN]), None);
        assert_eq!(Spread::of(&[f64::NAN, 2.0]).map(|spread| spread.median), Some(2.0));
    }
}
