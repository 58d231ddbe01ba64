//! Sums and maxima of the values of all ranks, in order of rank. Every implementation with several ranks uses these
//! functions, so that all give the same bits.

/// Computes `values`_i ← ((c⁰_i + c¹_i) + c²_i) + …, where c^r are the contributions, rank 0's first. A contribution
/// shorter than `values` leaves the remaining elements unchanged; callers ensure equal lengths.
pub(crate) fn sum<'a>(values: &mut [f64], contributions: impl IntoIterator<Item = &'a [f64]>) {
    fold(values, contributions, |a, b| a + b);
}

/// Computes `values`_i ← max_r c^r_i; NaN if any is NaN.
pub(crate) fn max<'a>(values: &mut [f64], contributions: impl IntoIterator<Item = &'a [f64]>) {
    // `f64::max` would drop a NaN.
    fold(values, contributions, |a, b| if a.is_nan() || a > b { a } else { b });
}

/// Folds the contributions, starting from rank 0's values and not from zero: 0 + (−0) would change the sign of a zero.
fn fold<'a>(values: &mut [f64], contributions: impl IntoIterator<Item = &'a [f64]>, step: impl Fn(f64, f64) -> f64) {
    for (rank, contribution) in contributions.into_iter().enumerate() {
        for (value, c) in values.iter_mut().zip(contribution) {
            *value = if rank == 0 { *c } else { step(*value, *c) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_ranks() {
        let mut values = [7.0];
        // From the left (1e16 − 1e16) + 1; from the right the small number would be lost.
        sum(&mut values, [1e16, -1e16, 1.0].iter().map(std::slice::from_ref));
        assert_eq!(values, [1.0]);
        let mut zero = [1.0];
        sum(&mut zero, [&[-0.0][..], &[-0.0]]);
        assert_eq!(zero[0].to_bits(), (-0.0f64).to_bits());
    }

    #[test]
    fn a_nan_stays_wherever_it_comes_from() {
        for place in 0..3 {
            let mut all = [1.0, 3.0, 2.0];
            let mut largest = [0.0];
            max(&mut largest, all.iter().map(std::slice::from_ref));
            assert_eq!(largest, [3.0]);
            all[place] = f64::NAN;
            max(&mut largest, all.iter().map(std::slice::from_ref));
            assert!(largest[0].is_nan());
        }
    }
}
