//! Check of the levels of a setup for consistency.
use super::coarse::CoarseOperator;
use super::cycle::Coarsening;
use super::level::LevelLattice;
use super::null_space::NullSpace;
use crate::domain::Result;
use crate::field::{FieldSpace, FullField};
use crate::operators::{EvenOdd, EvenOddWilson};
use num_complex::Complex64;
use solvers::VectorSpace;

/// Result of the check of a level against the operator of the next coarser level: three relative errors, each the largest over several
/// vectors. In a correct setup, they are due to the rounding of near-null vectors and coarse operators only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelCheck {
    /// Largest ‖(1 − P P†) v‖/‖v‖ of the near-null vectors v from which P was made.
    pub near_null: f64,
    /// Largest ‖(R D P − D_c) c‖/‖D_c c‖ of random coarse vectors c.
    pub galerkin: f64,
    /// Largest |(a, γ5 D_c b) − (γ5 D_c a, b)|/(‖a‖ ‖D_c b‖) of random coarse vectors a and b, without the contribution of a twisted mass.
    pub gamma5: f64,
}

/// Number of random vectors with which a level is checked: a and b.
const RANDOM: usize = 2;
/// Seed of the random vectors; different from the seed of the setup.
const SEED: u64 = 2;

/// Checks all levels of a setup. `vectors` are the near-null vectors of the finest level on all sites, one for each right-hand side.
/// `finest` is the finest operator in single precision, for blocks of at least two right-hand sides.
///
/// # Errors
/// Failures of the device.
pub fn check_levels(levels: &[Coarsening], finest: &EvenOddWilson, vectors: FullField) -> Result<Vec<LevelCheck>> {
    let (mut found, mut vectors) = (Vec::new(), vectors);
    let mut above: Option<&CoarseOperator> = None;
    for Coarsening { space, operator } in levels {
        let below = restricted(space, &vectors)?;
        let near_null = distance(space.fine(), &prolonged(space, &below)?, &mut vectors)?;
        let c = restricted(space, &space.fine().random(RANDOM, SEED)?)?;
        let (fine, mut image) = (prolonged(space, &c)?, space.fine().zero(RANDOM)?);
        match above {
            None => {
                (0..2).try_for_each(|parity| finest.apply_parity(parity, false, &fine, image.parity_mut(parity)))?
            }
            Some(above) => above.apply(&fine, &mut image, RANDOM)?,
        }
        let mut direct = space.coarse().zero(RANDOM)?;
        operator.apply(&c, &mut direct, RANDOM)?;
        let galerkin = distance(space.coarse(), &direct, &mut restricted(space, &image)?)?;
        found.push(LevelCheck { near_null, galerkin, gamma5: hermiticity(space, &c, &direct)? });
        (above, vectors) = (Some(operator), below);
    }
    Ok(found)
}

/// Computes R x.
fn restricted(space: &NullSpace, x: &FullField) -> Result<FullField> {
    let nrhs = x.even.nrhs();
    let mut coarse = space.coarse().zero(nrhs)?;
    (0..2).try_for_each(|parity| space.restrict(parity, x.parity(parity), &mut coarse, parity > 0, nrhs))?;
    Ok(coarse)
}
/// Computes P x.
fn prolonged(space: &NullSpace, x: &FullField) -> Result<FullField> {
    let nrhs = x.even.nrhs();
    let mut fine = space.fine().zero(nrhs)?;
    (0..2).try_for_each(|parity| space.prolong(parity, x, fine.parity_mut(parity), nrhs))?;
    Ok(fine)
}

/// Computes (x_j, y_j) on all sites.
fn dots(space: &FieldSpace, x: &FullField, y: &FullField) -> Result<Vec<Complex64>> {
    let mut sum = vec![Complex64::ZERO; space.nrhs()];
    for parity in 0..2 {
        let mut part = vec![Complex64::ZERO; space.nrhs()];
        space.dot(x.parity(parity), y.parity(parity), &mut part)?;
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    Ok(sum)
}

/// Returns the largest ‖x_j − y_j‖/‖x_j‖. `y` is overwritten.
fn distance(level: &LevelLattice, x: &FullField, y: &mut FullField) -> Result<f64> {
    let space = level.space(x.even.nrhs());
    let whole = dots(&space, x, x)?;
    let (one, minus) = (vec![Complex64::ONE; space.nrhs()], vec![-Complex64::ONE; space.nrhs()]);
    (0..2).try_for_each(|parity| space.axpby(&one, x.parity(parity), &minus, y.parity_mut(parity)))?;
    let part = dots(&space, y, y)?;
    Ok(part.iter().zip(&whole).map(|(part, whole)| (part.re / whole.re).sqrt()).fold(0.0, f64::max))
}

/// Measures how far γ5 D_c is from its Hermitian conjugate, from D_c a and D_c b for two vectors. With a twisted mass μ, (a, γ5 D_c b) −
/// (γ5 D_c a, b) is 2 i μ (a, b), where μ is determined from a.
fn hermiticity(space: &NullSpace, c: &FullField, image: &FullField) -> Result<f64> {
    let level = space.coarse();
    let fields = level.space(RANDOM);
    let mut turned = level.zero(RANDOM)?;
    // γ5 x = 2 x|_+ − x, where x|_+ is the part of positive chirality.
    let (two, minus) = (vec![Complex64::from(2.0); RANDOM], vec![-Complex64::ONE; RANDOM]);
    for parity in 0..2 {
        let mut upper = fields.allocate()?;
        level.one_chirality(0, image.parity(parity), &mut upper)?;
        fields.copy(image.parity(parity), turned.parity_mut(parity))?;
        fields.axpby(&two, &upper, &minus, turned.parity_mut(parity))?;
    }
    let mut exchanged = level.zero(RANDOM)?;
    for parity in 0..2 {
        fields.copy(c.parity(parity), exchanged.parity_mut(parity))?;
        let mut scratch = fields.allocate()?;
        fields.swap_rhs(exchanged.parity_mut(parity), (0, 1), &mut scratch)?;
    }
    let (same, across) = (dots(&fields, c, &turned)?, dots(&fields, &exchanged, &turned)?);
    let (norms, images) = (dots(&fields, c, c)?, dots(&fields, image, image)?);
    // `overlap` is (a, b), because the right-hand sides of `exchanged` are those of `c` in the other order.
    let overlap = dots(&fields, &exchanged, c)?[1];
    let mass = same[0].im / norms[0].re;
    // `of_a` is (b, γ5 D_c a), and `of_b` is (a, γ5 D_c b).
    let (of_a, of_b) = (across[0], across[1]);
    let defect = of_b - of_a.conj() - Complex64::new(0.0, 2.0 * mass) * overlap;
    Ok(defect.norm() / (norms[0].re * images[1].re).sqrt())
}
