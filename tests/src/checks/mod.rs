//! Checks of kernels against the reference, on any backend.
mod blocks;
mod boundary_angles;
mod clover;
mod contractions;
mod dynamics;
mod fat_links;
mod gauge;
mod linear_algebra;
mod multigrid;
mod quark_smearing;
mod quenched;
mod rows;
mod solves;
mod staggered;
mod staggered_images;
mod staggered_solves;
mod temporal;
mod transfers;
mod wilson;
mod wilson_like;

pub use blocks::blocks;
pub use boundary_angles::{staggered_angles, wilson_like_angles};
pub use clover::{SCHUR_KINDS, clover, clover_cases, clover_kernels, clover_solves, large_clover_kernels, parameters};
pub use contractions::contractions;
pub use dynamics::{complement_request, dynamics};
pub use fat_links::{fat_links, link_cases, singular_matrices};
pub use gauge::plaquette;
pub use linear_algebra::{conversions, linear_algebra, not_a_number};
pub use multigrid::{Aggregation, multigrid, multigrid_levels, multigrid_solves, restriction};
pub use quark_smearing::quark_smearing;
pub use quenched::{gauge_fixing, quenched};
pub use rows::rows;
pub use solves::{schemes, solves};
pub use staggered::{
    improved_kernels, staggered_cases, staggered_kernels, staggered_phases_of_hops, staggered_properties,
};
pub use staggered_images::{LinkErrors, image_tolerance};
pub use staggered_solves::{staggered_phases, staggered_solves};
pub use temporal::{temporal_cases, temporal_kernels};
pub use transfers::transfers;
pub use wilson::wilson;
pub use wilson_like::{THETA, wilson_like, wilson_like_solves};

use crate::accuracy::Accuracy;
use crate::formats;
use crate::reference::{combine, dot, norm2, on_parity};
use crate::report::{CheckReport, Scope, Tolerance};
use crate::testkit::lattice;
use ferrite::backend::Backend;
use ferrite::domain::{DeviceError, Domain, Result};
use ferrite::field::host::{ColourVector, Fermion, HostColour, HostField, HostGauge, HostSpinor, Spinor};
use ferrite::field::{FieldShape, FieldSpace, FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::{LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{CgStep, Dots, LinearOperator, Overlap};

/// Right-hand sides of a block.
pub const NRHS: usize = 3;

/// Fields to compute with.
pub struct Case {
    /// Links.
    pub gauge: HostGauge,
    /// Spinor sources, a different one for every use.
    pub sources: Vec<HostSpinor>,
    /// Colour-vector sources for staggered fermions, a different one for every use.
    pub colours: Vec<HostColour>,
    /// m
    pub mass: f64,
}

impl Case {
    /// Random sources on the given links.
    pub fn new(gauge: HostGauge, seed: u64) -> Self {
        fn random<T: Fermion>(lattice: Lattice, seed: u64) -> Vec<HostField<T>> {
            (0..6 * NRHS as u64).map(|k| generate::random_source(lattice, seed + k)).collect()
        }
        let lattice = gauge.lattice();
        Case { sources: random(lattice, seed), colours: random(lattice, seed), gauge, mass: 0.1875 }
    }
    /// The extents.
    pub fn lattice(&self) -> Lattice {
        self.gauge.lattice()
    }
    /// Block number `k` of sources.
    fn block(&self, k: usize) -> &[HostSpinor] {
        &self.sources[k * NRHS..(k + 1) * NRHS]
    }
    fn domain(&self, backend: &dyn Backend) -> Result<Domain> {
        Domain::single(backend, self.lattice())
    }
    fn scope(&self, format: &str, detail: &str) -> Scope {
        Scope { format: format.into(), detail: format!("{} {detail}", self.lattice()) }
    }
}

/// Numbers of a site in the fields that a case has sources of.
pub trait Kind: Fermion + PartialEq {
    /// Block number `k` of sources.
    fn block(case: &Case, k: usize) -> &[HostField<Self>];
}
impl Kind for Spinor {
    fn block(case: &Case, k: usize) -> &[HostSpinor] {
        case.block(k)
    }
}
impl Kind for ColourVector {
    fn block(case: &Case, k: usize) -> &[HostColour] {
        &case.colours[k * NRHS..(k + 1) * NRHS]
    }
}

/// Host fields on a device in a precision, one for each right-hand side, and what they are there.
fn upload<F: Fermion>(
    domain: &Domain,
    precision: Precision,
    host: &[HostField<F>],
) -> Result<(FullField, Vec<HostField<F>>)> {
    let mut field = FullField::zero(domain, FieldShape::new(F::KIND, precision, host.len()))?;
    field.upload(host)?;
    let stored = field.download()?;
    Ok((field, stored))
}

/// Small and odd-shaped lattices: extents 2, where both neighbours are the same site; less than a tile of sites; none
/// of them a multiple of the tile.
pub fn small_cases() -> Vec<Case> {
    vec![
        Case::new(generate::random(lattice([2, 4, 6, 8]), 1), 10),
        Case::new(generate::weak_field(lattice([4, 4, 4, 4]), 2, 0.1), 40),
        Case::new(generate::random(lattice([2, 2, 2, 2]), 3), 70),
        Case::new(generate::weak_field(lattice([6, 2, 4, 10]), 4, 0.3), 100),
        Case::new(generate::random(lattice([10, 4, 2, 6]), 5), 130),
        // Elements ±1 and 0, which half precision clips.
        Case::new(HostGauge::unit(lattice([4, 2, 2, 4])), 160),
    ]
}
/// A lattice of a block and a half of the sites that a thread of the CPU takes at a time.
pub fn two_block_case() -> Case {
    Case::new(generate::random(lattice([8, 8, 6, 8]), 6), 190)
}
/// A lattice of several blocks of sites.
pub fn large_case() -> Case {
    Case::new(generate::random(lattice([8, 8, 8, 16]), 6), 190)
}

/// Fields on the host, one for each right-hand side.
type OnHost<'a, F> = &'a [HostField<F>];
/// Fields on the device, and what they are there.
type Stored<'a, F> = (&'a FullField, OnHost<'a, F>);

/// M̂ ψ on one parity with the sums that solvers need of it, in one pass: the bits of M̂ ψ by itself, (w, M̂ ψ) and
/// ‖M̂ ψ‖². `image` is M̂ ψ as the operator gave it, `expected` what the reference says, within `tol`. The sums see what
/// is not yet rounded.
fn apply_dot<F: Kind>(
    (operator, parity): (&impl LinearOperator<FieldSpace>, usize),
    (psi, stored_psi): Stored<F>,
    (w, stored_w): Stored<F>,
    (image, expected, tol): (OnHost<F>, OnHost<F>, Tolerance),
    (scope, name): (&Scope, &str),
    report: &mut CheckReport,
) -> Result {
    let (n, precision) = (expected.len(), psi.even.precision());
    let domain = psi.even.domain();
    let space = FieldSpace::new(domain, FieldShape::new(F::KIND, precision, n));
    let mut out = FullField::zero(domain, FieldShape::new(F::KIND, precision, n))?;
    let (mut dots, mut norms) = (vec![Complex64::ZERO; n], vec![0.0; n]);
    let (psi, w) = (psi.parity(parity), w.parity(parity));
    operator.apply_dot(&space, psi, out.parity_mut(parity), w, &mut dots, &mut norms)?;
    report.holds(scope, &format!("{name} with sums, bits of the field"), out.download()? == image);
    let mut all = vec![Dots::default(); n];
    operator.apply_dots(&space, psi, out.parity_mut(parity), w, &mut all)?;
    report.holds(scope, &format!("{name} with all sums, bits of the field"), out.download()? == image);
    let tol = 2.0 * tol.relative + precision.fused_sum(F::COMPONENTS * domain.local().half_volume());
    for j in 0..n {
        let (w, norm) = (on_parity(parity, &stored_w[j]), norm2(&expected[j]));
        let (product, scale) = (dot(&w, &expected[j]), (norm2(&w) * norm).sqrt());
        report.number(scope, &format!("{name} with sums, norm"), norms[j], norm, norm, tol);
        report.complex(scope, &format!("{name} with sums"), (dots[j], product), scale, tol);
        let x = on_parity(parity, &stored_psi[j]);
        let (x_x, w_w) = (norm2(&x), norm2(&w));
        for (what, got, exact, scale) in [
            ("(x, y)", all[j].x_y, dot(&x, &expected[j]), (x_x * norm).sqrt()),
            ("(w, x)", all[j].w_x, dot(&w, &x), (w_w * x_x).sqrt()),
            ("(w, y)", all[j].w_y, product, scale),
            ("|x|^2", all[j].x_x.into(), x_x.into(), x_x),
            ("|y|^2", all[j].y_y.into(), norm.into(), norm),
        ] {
            report.complex(scope, &format!("{name} with all sums, {what}"), (got, exact), scale, tol);
        }
    }
    Ok(())
}

/// A step of CG from r along ψ against sums on the host, and against the step with two reductions, which has to be the same
/// to the bit. `image` is M̂ ψ as the operator gave it, within `tol`. The last of several right-hand sides stays where it is.
/// For operators with a step of their own; solves see to that of all others.
fn cg_step<F: Kind>(
    (operator, parity): (&impl LinearOperator<FieldSpace>, usize),
    (psi, stored_psi): Stored<F>,
    (r, stored_r): Stored<F>,
    (image, tol): (OnHost<F>, Tolerance),
    (scope, name): (&Scope, &str),
    report: &mut CheckReport,
) -> Result {
    let (n, domain, precision) = (image.len(), psi.even.domain(), psi.even.precision());
    let space = FieldSpace::new(domain, FieldShape::new(F::KIND, precision, n));
    let rho = |j: usize| if n > 1 && j + 1 == n { 0.0 } else { (0.25 + j as f64) * norm2(&stored_psi[j]) };
    let rho: Vec<f64> = (0..n).map(rho).collect();
    let from = CgStep { shift: 0.0, p: psi.parity(parity), r: r.parity(parity), rho: &rho };
    let step = |in_two: bool, report: &mut CheckReport| {
        let mut out = FullField::zero(domain, FieldShape::new(F::KIND, precision, n))?;
        let (mut curvature, mut norms) = (vec![Complex64::ZERO; n], vec![0.0; n]);
        let (mut first, mut second) = (0, 0);
        let mut count = [&mut first, &mut second].map(|times| {
            || {
                *times += 1;
                Ok(())
            }
        });
        let [before, after] = &mut count;
        let (to, overlap): (_, [Overlap<'_, DeviceError>; 2]) = (out.parity_mut(parity), [before, after]);
        if in_two {
            from.with_two_reductions(&space, operator, to, &mut curvature, &mut norms, overlap)?;
        } else {
            operator.cg_step(&space, &from, to, &mut curvature, &mut norms, overlap)?;
        }
        report.holds(scope, &format!("{name}, a step, work behind it"), (first, second) == (1, 1));
        Result::Ok((out.download()?, curvature, norms))
    };
    let (found, curvature, norms) = step(false, report)?;
    let (in_two, others, norms_in_two) = step(true, report)?;
    let same = found == in_two && norms == norms_in_two && curvature.iter().zip(&others).all(|(a, b)| a.re == b.re);
    report.holds(scope, &format!("{name}, a step, bits of the one with two reductions"), same);
    let alpha = |j: usize| Complex64::from(precision.in_registers(-from.alpha(j, curvature[j])));
    let one = |j: usize| combine(&[(Complex64::ONE, &on_parity(parity, &stored_r[j])), (alpha(j), &image[j])]);
    let expected: Vec<_> = (0..n).map(one).collect();
    let sums = precision.fused_sum(F::COMPONENTS * domain.local().half_volume());
    // Backends may differ by as much as in M̂ ψ and in α, on top of what the step rounds.
    let (mut whole, mut worst) = (0.0f64, 0.0f64);
    for j in 0..n {
        let norm = norm2(&expected[j]);
        report.number(scope, &format!("{name}, a step, norm"), norms[j], norm, norm, sums);
        let alpha = alpha(j).norm();
        whole = whole.max(alpha * (norm2(&image[j]) / norm).sqrt());
        let sites = |field: &HostField<F>| field.numbers().chunks(F::COMPONENTS).map(peak).collect::<Vec<_>>();
        for (image, sum) in sites(&image[j]).into_iter().zip(sites(&expected[j])) {
            worst = worst.max(alpha * image / sum);
        }
    }
    let mut allowed = precision.sum_of(F::KIND.spins());
    allowed.relative += whole * (tol.relative + sums);
    allowed.worst += worst * (tol.worst + 2.0 * sums);
    report.fields(scope, &format!("{name}, a step"), found, &expected, allowed);
    Ok(())
}

/// The largest component of a site.
fn peak(site: &[Complex64]) -> f64 {
    site.iter().fold(0.0, |peak: f64, z| peak.max(z.re.abs()).max(z.im.abs()))
}

/// Every check of kernels on one case.
pub fn kernels(backend: &dyn Backend, case: &Case, report: &mut CheckReport) -> Result {
    // Reconstruct 8 is not for links whose first row is (a, 0, 0); solves keep such fields with 12.
    let singular = GaugeField::upload(&case.domain(backend)?, &case.gauge)?.singular_links()?;
    let expected = case.gauge.links().iter().filter(|u| u[0][1].norm_sqr() + u[0][2].norm_sqr() < 1e-6).count();
    report.holds(&case.scope("recon-8", ""), "number of singular links", singular == expected);
    let kept = |storage: LinkStorage| !storage.temporal && (singular == 0 || !storage.has_singular_links());
    for format in formats::wilson().into_iter().filter(|(_, storage)| kept(*storage)) {
        wilson(backend, case, format, report)?;
    }
    fields(backend, case, report)
}
/// The checks without links.
pub fn fields(backend: &dyn Backend, case: &Case, report: &mut CheckReport) -> Result {
    fn of<F: Kind>(backend: &dyn Backend, case: &Case, report: &mut CheckReport) -> Result {
        for precision in formats::fields(F::KIND) {
            linear_algebra::<F>(backend, case, precision, report)?;
            not_a_number::<F>(backend, precision, report)?;
        }
        conversions::<F>(backend, case, report)
    }
    of::<Spinor>(backend, case, report)?;
    of::<ColourVector>(backend, case, report)?;
    plaquette(backend, case, report)
}
