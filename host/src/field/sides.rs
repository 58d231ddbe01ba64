//! The right-hand sides of one launch, and the coefficients that kernels have for each of them.
use super::device::{DeviceField, FieldKind};
use crate::backend::Backend;
use gpu_kernels::algebra::{Complex, Real};
use gpu_kernels::field::Field;
use gpu_kernels::per_side::{MOST_SIDES, Number, PerSide};
use gpu_kernels::storage::{Precision, Sites};
use num_complex::Complex64;
use std::ops::Range;

/// Right-hand sides in a row, as many as one launch takes at most.
#[derive(Clone, Debug)]
pub(super) struct Sides(Range<usize>);

impl Sides {
    /// All of `sides`, in groups for a launch each.
    pub fn groups(sides: Range<usize>) -> impl Iterator<Item = Sides> {
        let end = sides.end;
        sides.step_by(MOST_SIDES).map(move |first| Sides(first..end.min(first + MOST_SIDES)))
    }
    /// The first of them.
    pub fn first(&self) -> usize {
        self.0.start
    }
    /// How many.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }
    /// The part of a field that they are.
    pub fn of<B: Backend, K: FieldKind, P: Precision>(&self, x: &DeviceField<B, K, P>) -> Field<Sites<K, P>> {
        x.view().from_rhs(self.first())
    }
    /// Their coefficients, of those of all right-hand sides.
    pub fn complex<T: Real>(&self, all: &[Complex64]) -> PerSide<Complex<T>> {
        self.each(all, coefficient)
    }
    /// The same where they are real.
    pub fn real<T: Real>(&self, all: &[f64]) -> PerSide<T> {
        self.each(all, T::from_f64)
    }
    fn each<S: Copy, T: Number>(&self, all: &[S], round: impl Fn(S) -> T) -> PerSide<T> {
        let mine = &all[self.0.clone()];
        PerSide::new(|k| round(mine[k.min(mine.len() - 1)]))
    }
}

/// Rounds a coefficient to the precision of a field.
pub(super) fn coefficient<T: Real>(c: Complex64) -> Complex<T> {
    Complex { re: T::from_f64(c.re), im: T::from_f64(c.im) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_is_in_one_launch_with_its_own_coefficient() {
        let all: Vec<f64> = (0..40).map(|j| j as f64).collect();
        for sides in [0..1, 3..4, 0..12, 0..16, 0..17, 5..40] {
            let mut found = Vec::new();
            for group in Sides::groups(sides.clone()) {
                let numbers = group.real::<f64>(&all);
                assert!((1..=MOST_SIDES as u32).contains(&group.count()) && group.first() == sides.start + found.len());
                found.extend((0..group.count()).map(|k| numbers.at(k)));
            }
            assert_eq!(found, all[sides]);
        }
        assert_eq!(Sides::groups(0..16).count(), 1);
    }
}
