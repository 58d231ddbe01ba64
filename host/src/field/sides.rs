//! The right-hand sides of one launch, and the coefficients that kernels have for each of them.
use super::device::{DeviceField, FieldKind};
use crate::domain::{DeviceError, Domain, Result};
use gpu_kernels::algebra::{Complex, Real};
use gpu_kernels::field::Field;
use gpu_kernels::per_side::{MOST_SIDES, Number, PerSide};
use gpu_kernels::storage::{Precision, Sites};
use num_complex::Complex64;
use std::cell::Cell;
use std::ops::Range;

/// Right-hand sides in a row, as many as one launch takes at most, of fields on one domain.
pub(super) struct Sides<'a> {
    range: Range<usize>,
    domain: &'a Domain,
    /// Of a field that does not fit.
    misfit: Cell<Option<DeviceError>>,
}

impl<'a> Sides<'a> {
    /// These, all in one launch.
    pub fn new(range: Range<usize>, domain: &'a Domain) -> Self {
        Sides { range, domain, misfit: Cell::default() }
    }
    /// All of `sides`, in groups for a launch each.
    pub fn groups(sides: Range<usize>, domain: &'a Domain) -> impl Iterator<Item = Self> {
        let end = sides.end;
        sides.step_by(MOST_SIDES).map(move |first| Self::new(first..end.min(first + MOST_SIDES), domain))
    }
    /// The first of them.
    pub fn first(&self) -> usize {
        self.range.start
    }
    /// How many.
    pub fn count(&self) -> u32 {
        self.range.len() as u32
    }
    /// The part of a field that they are. Only for launches after [`fit`](Self::fit), because a field may be on another
    /// lattice, or have fewer right-hand sides.
    pub fn of<K: FieldKind, P: Precision>(&self, x: &DeviceField<K, P>) -> Field<Sites<K, P>> {
        if let Err(error) = x.expect(self.domain, self.range.end) {
            self.misfit.set(Some(error));
        }
        x.view().from_rhs(self.first())
    }
    /// Whether all fields so far have these right-hand sides on the domain's sites.
    pub fn fit(&self) -> Result {
        self.misfit.take().map_or(Ok(()), Err)
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
        let mine = &all[self.range.clone()];
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
    use crate::backend::Cpu;
    use crate::lattice::Lattice;
    use gpu_kernels::storage::{FourSpins, Half};

    fn domain(extents: [usize; 4]) -> Domain {
        Domain::single(Cpu::new(Some(1)), Lattice::new(extents).unwrap()).unwrap()
    }

    #[test]
    fn fields_that_do_not_fit_are_seen_before_a_launch() {
        let [here, there] = [[2, 4, 2, 4], [4, 2, 2, 4]].map(domain);
        let field = |domain, nrhs| DeviceField::<FourSpins, Half>::zero(domain, nrhs).unwrap();
        let (good, narrow, other) = (field(&here, 3), field(&here, 2), field(&there, 3));
        let sides = Sides::new(1..3, &here);
        sides.of(&good);
        sides.fit().unwrap();
        for field in [&narrow, &other] {
            sides.of(field);
            sides.of(&good);
            let error = sides.fit().unwrap_err();
            match error {
                DeviceError::OtherCount { found: 2, expected: 3 } => assert_eq!(field.nrhs(), 2),
                DeviceError::OtherLattice { found, .. } => assert_eq!(found, there.local()),
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn every_side_is_in_one_launch_with_its_own_coefficient() {
        let domain = domain([2, 2, 2, 2]);
        let all: Vec<f64> = (0..40).map(|j| j as f64).collect();
        for sides in [0..1, 3..4, 0..12, 0..16, 0..17, 5..40] {
            let mut found = Vec::new();
            for group in Sides::groups(sides.clone(), &domain) {
                let numbers = group.real::<f64>(&all);
                assert!((1..=MOST_SIDES as u32).contains(&group.count()) && group.first() == sides.start + found.len());
                found.extend((0..group.count()).map(|k| numbers.at(k)));
            }
            assert_eq!(found, all[sides]);
        }
        assert_eq!(Sides::groups(0..16, &domain).count(), 1);
    }
}
