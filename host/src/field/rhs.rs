//! Groups of blocks that one launch processes, and the coefficients of kernels for them.
use super::device::DeviceField;
use super::shape::FieldShape;
use crate::domain::{DeviceError, Domain, Result};
use gpu_kernels::Precision;
use gpu_kernels::algebra::Complex;
use gpu_kernels::field::Field;
use gpu_kernels::per_rhs::{ComplexPerRhs, PerRhs};
use num_complex::Complex64;
use std::cell::Cell;
use std::ops::Range;

/// Consecutive blocks of fields on one domain for one launch; [`FieldShape`] explains blocks.
pub(super) struct BlockGroup<'a> {
    range: Range<usize>,
    domain: &'a Domain,
    /// Shape that fields must have; they may have more right-hand sides.
    shape: FieldShape,
    /// Error of the last field that does not have the shape.
    misfit: Cell<Option<DeviceError>>,
}

impl<'a> BlockGroup<'a> {
    /// Returns the blocks of the right-hand sides `rhs` in groups of at most `most` blocks, one group for each launch.
    pub fn groups(rhs: Range<usize>, most: usize, domain: &'a Domain, shape: FieldShape) -> impl Iterator<Item = Self> {
        let [first, end] = [rhs.start, rhs.end].map(|rhs| rhs * shape.ls);
        (first..end).step_by(most).map(move |first| BlockGroup {
            range: first..end.min(first + most),
            domain,
            shape: shape.with_nrhs(rhs.end),
            misfit: Cell::default(),
        })
    }
    /// Returns the index of the group's first block.
    pub fn first(&self) -> usize {
        self.range.start
    }
    /// Returns the number of blocks in the group.
    pub fn count(&self) -> u32 {
        self.range.len() as u32
    }
    /// Returns the view of the group's blocks in the field `x`. A launch may use the view only after [`fit`](Self::fit) has succeeded,
    /// because the field may be on another lattice, or have another shape or fewer right-hand sides.
    pub fn of(&self, x: &DeviceField) -> Field {
        self.of_precision(x, self.shape.precision)
    }
    /// Returns the view of the group's blocks in the field `x` of another precision, with the same condition as [`of`](Self::of).
    pub fn of_precision(&self, x: &DeviceField, precision: Precision) -> Field {
        if let Err(error) = x.expect(self.domain, self.shape.with_precision(precision)) {
            self.misfit.set(Some(error));
        }
        x.view_from_block(self.first())
    }
    /// Checks that all fields passed so far have the domain and the shape of the group.
    pub fn fit(&self) -> Result {
        self.misfit.take().map_or(Ok(()), Err)
    }
    /// Returns the complex coefficients for the group's blocks: block k gets the coefficient of its right-hand side.
    pub fn complex(&self, all: &[Complex64]) -> ComplexPerRhs {
        ComplexPerRhs::new(|k| coefficient(all[self.rhs(k)]))
    }
    /// Returns the real coefficients for the group's blocks: block k gets the coefficient of its right-hand side.
    pub fn real(&self, all: &[f64]) -> PerRhs {
        PerRhs::new(|k| all[self.rhs(k)])
    }
    /// Returns the right-hand side of the group's block `k`; a larger `k` gives that of the last block.
    fn rhs(&self, k: usize) -> usize {
        (self.first() + k).min(self.range.end - 1) / self.shape.ls
    }
}

/// Returns a coefficient as the complex type of kernels.
pub(super) fn coefficient(c: Complex64) -> Complex<f64> {
    Complex { re: c.re, im: c.im }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::lattice::Lattice;
    use gpu_kernels::per_rhs::MAX_RHS_WITH_NUMBERS;

    const HALF: FieldShape = FieldShape::spinors(Precision::Half, 3);

    fn domain(extents: [usize; 4]) -> Domain {
        Domain::single(Cpu::new(Some(1)), Lattice::new(extents).unwrap()).unwrap()
    }

    #[test]
    fn fields_that_do_not_fit_are_seen_before_a_launch() {
        let [here, there] = [[2, 4, 2, 4], [4, 2, 2, 4]].map(domain);
        let field = |domain, shape| DeviceField::zero(domain, shape).unwrap();
        let (good, narrow, other) = (field(&here, HALF), field(&here, HALF.with_nrhs(2)), field(&there, HALF));
        let single = field(&here, HALF.with_precision(Precision::Single));
        let colours = field(&here, FieldShape::colours(Precision::Half, 3));
        let group = BlockGroup::groups(1..3, MAX_RHS_WITH_NUMBERS, &here, HALF).next().unwrap();
        group.of(&good);
        group.fit().unwrap();
        for (field, text) in [(&single, "'spinor single'"), (&colours, "'colour half'")] {
            group.of(field);
            let error = group.fit().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("'spinor half'"), "{error}");
        }
        for field in [&narrow, &other, &field(&here, HALF.with_ls(4))] {
            group.of(field);
            group.of(&good);
            let error = group.fit().unwrap_err();
            match error {
                DeviceError::OtherCount { found: 2, expected: 3 } => assert_eq!(field.nrhs(), 2),
                DeviceError::OtherLattice { found, .. } => assert_eq!(found, there.local()),
                DeviceError::OtherExtent { found: 4, expected: 1 } => assert_eq!(field.shape().ls, 4),
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn every_block_is_in_one_launch_with_the_coefficient_of_its_rhs() {
        let domain = domain([2, 2, 2, 2]);
        let all: Vec<f64> = (0..40).map(|j| j as f64).collect();
        for ls in [1, 3, 16, 20] {
            let shape = FieldShape::spinors(Precision::Half, 40).with_ls(ls);
            for rhs in [0..1, 3..4, 0..12, 0..16, 0..17, 5..40] {
                let mut found = Vec::new();
                for group in BlockGroup::groups(rhs.clone(), MAX_RHS_WITH_NUMBERS, &domain, shape) {
                    let (real, complex) = (group.real(&all), group.complex(&vec![Complex64::I; 40]));
                    assert!((1..=MAX_RHS_WITH_NUMBERS as u32).contains(&group.count()));
                    assert_eq!(group.first(), ls * rhs.start + found.len());
                    found.extend((0..group.count()).map(|k| real.at::<f64>(k)));
                    assert_eq!(complex.at::<f64>(group.count() - 1).im, 1.0);
                }
                let expected: Vec<f64> = rhs.flat_map(|j| vec![j as f64; ls]).collect();
                assert_eq!(found, expected);
            }
        }
        assert_eq!(BlockGroup::groups(0..16, MAX_RHS_WITH_NUMBERS, &domain, HALF).count(), 1);
    }
}
