//! The right-hand sides of one launch, and the coefficients that kernels have for each of them.
use super::device::DeviceField;
use crate::domain::{DeviceError, Domain, Result};
use gpu_kernels::algebra::Complex;
use gpu_kernels::field::Field;
use gpu_kernels::per_rhs::{ComplexPerRhs, MAX_RHS, PerRhs};
use gpu_kernels::{FermionKind, Precision};
use num_complex::Complex64;
use std::cell::Cell;
use std::ops::Range;

/// Right-hand sides in a row, as many as one launch takes at most, of fields on one domain.
pub(super) struct RhsGroup<'a> {
    range: Range<usize>,
    domain: &'a Domain,
    kind: FermionKind,
    precision: Precision,
    /// Of a field that does not fit.
    misfit: Cell<Option<DeviceError>>,
}

impl<'a> RhsGroup<'a> {
    /// These, all in one launch.
    pub fn new(range: Range<usize>, domain: &'a Domain, (kind, precision): (FermionKind, Precision)) -> Self {
        RhsGroup { range, domain, kind, precision, misfit: Cell::default() }
    }
    /// All of `rhs`, in groups for a launch each.
    pub fn groups(
        rhs: Range<usize>,
        domain: &'a Domain,
        format: (FermionKind, Precision),
    ) -> impl Iterator<Item = Self> {
        let end = rhs.end;
        rhs.step_by(MAX_RHS).map(move |first| Self::new(first..end.min(first + MAX_RHS), domain, format))
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
    /// lattice, have another format, or fewer right-hand sides.
    pub fn of(&self, x: &DeviceField) -> Field {
        self.of_precision(x, self.precision)
    }
    /// The same of a field in another precision.
    pub fn of_precision(&self, x: &DeviceField, precision: Precision) -> Field {
        if let Err(error) = x.expect(self.domain, (self.kind, precision), self.range.end) {
            self.misfit.set(Some(error));
        }
        x.view_from(self.first())
    }
    /// Whether all fields so far have these right-hand sides on the domain's sites, in the format.
    pub fn fit(&self) -> Result {
        self.misfit.take().map_or(Ok(()), Err)
    }
    /// Their coefficients, of those of all right-hand sides.
    pub fn complex(&self, all: &[Complex64]) -> ComplexPerRhs {
        let mine = &all[self.range.clone()];
        ComplexPerRhs::new(|k| coefficient(mine[k.min(mine.len() - 1)]))
    }
    /// The same where they are real.
    pub fn real(&self, all: &[f64]) -> PerRhs {
        let mine = &all[self.range.clone()];
        PerRhs::new(|k| mine[k.min(mine.len() - 1)])
    }
}

/// A coefficient as kernels have it.
pub(super) fn coefficient(c: Complex64) -> Complex<f64> {
    Complex { re: c.re, im: c.im }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::lattice::Lattice;

    const KIND: (FermionKind, Precision) = (FermionKind::Wilson, Precision::Half);

    fn domain(extents: [usize; 4]) -> Domain {
        Domain::single(Cpu::new(Some(1)), Lattice::new(extents).unwrap()).unwrap()
    }

    #[test]
    fn fields_that_do_not_fit_are_seen_before_a_launch() {
        let [here, there] = [[2, 4, 2, 4], [4, 2, 2, 4]].map(domain);
        let field = |domain, nrhs| DeviceField::zero(domain, KIND.0, KIND.1, nrhs).unwrap();
        let (good, narrow, other) = (field(&here, 3), field(&here, 2), field(&there, 3));
        let single = DeviceField::zero(&here, FermionKind::Wilson, Precision::Single, 3).unwrap();
        let colours = DeviceField::zero(&here, FermionKind::Staggered, Precision::Half, 3).unwrap();
        let group = RhsGroup::new(1..3, &here, KIND);
        group.of(&good);
        group.fit().unwrap();
        for (field, text) in [(&single, "'spinor single'"), (&colours, "'colour half'")] {
            group.of(field);
            let error = group.fit().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("'spinor half'"), "{error}");
        }
        for field in [&narrow, &other] {
            group.of(field);
            group.of(&good);
            let error = group.fit().unwrap_err();
            match error {
                DeviceError::OtherCount { found: 2, expected: 3 } => assert_eq!(field.nrhs(), 2),
                DeviceError::OtherLattice { found, .. } => assert_eq!(found, there.local()),
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn every_rhs_is_in_one_launch_with_its_own_coefficient() {
        let domain = domain([2, 2, 2, 2]);
        let all: Vec<f64> = (0..40).map(|j| j as f64).collect();
        for rhs in [0..1, 3..4, 0..12, 0..16, 0..17, 5..40] {
            let mut found = Vec::new();
            for group in RhsGroup::groups(rhs.clone(), &domain, KIND) {
                let numbers = group.real(&all);
                assert!((1..=MAX_RHS as u32).contains(&group.count()) && group.first() == rhs.start + found.len());
                found.extend((0..group.count()).map(|k| numbers.at::<f64>(k)));
            }
            assert_eq!(found, all[rhs]);
        }
        assert_eq!(RhsGroup::groups(0..16, &domain, KIND).count(), 1);
    }
}
