//! The clover term and the operators made of it.
use super::{Case, upload};
use crate::accuracy::Accuracy;
use crate::clover_reference::{CloverDirac, SiteMatrix};
use crate::formats::{self, LinkFormat};
use crate::links;
use crate::reference::{dot, norm2, on_parity};
use crate::report::{CheckReport, Scope, Tolerance};
use crate::testkit::lattice;
use ferrite::backend::Backend;
use ferrite::domain::Result;
use ferrite::field::host::HostSpinor;
use ferrite::field::{DeviceClover, DeviceGauge, FieldShape, FullField, GaugeField, HermitianBlock};
use ferrite::gauge::generate;
use ferrite::operators::{
    Anisotropy, CloverParams, DiagonalForm, EvenOdd, EvenOddWilson, Schur, TimeBoundary, Wilson, WilsonParams,
};
use ferrite::solve::{Method, Request, SolveFailure, solve};
use ferrite::{LinkStorage, Precision};
use num_complex::Complex64;
use solvers::LinearOperator;
use std::sync::Arc;

/// The kinds of Schur complements.
pub const SCHUR_KINDS: [Schur; 2] = [Schur::Symmetric, Schur::Asymmetric];

/// An isotropic and an anisotropic operator, with different boundary conditions.
pub fn parameters(mass: f64) -> [CloverParams; 2] {
    let isotropic = WilsonParams::from_mass(mass, TimeBoundary::Periodic);
    let anisotropy = Anisotropy { xi: 2.5, nu: 0.75 };
    let anisotropic = WilsonParams { mass, boundary: TimeBoundary::Antiperiodic, anisotropy };
    [CloverParams::isotropic(isotropic, 1.1, 0.95), CloverParams::anisotropic(anisotropic, 0.91, 1.07)]
}

/// Lattices for the clover kernels, all with links that reconstruct 8 can keep.
pub fn clover_cases() -> Vec<Case> {
    vec![
        Case::new(generate::random(lattice([2, 4, 6, 8]), 1), 10),
        Case::new(generate::weak_field(lattice([4, 4, 4, 4]), 2, 0.1), 40),
        Case::new(generate::random(lattice([2, 2, 2, 2]), 3), 70),
    ]
}

/// Every check of the clover kernels in every precision and reconstruction.
pub fn clover_kernels(backend: &dyn Backend, case: &Case, report: &mut CheckReport) -> Result {
    for params in &parameters(case.mass) {
        let reference = CloverDirac::from_params(&case.gauge, params);
        for format in formats::wilson().into_iter().filter(|(_, storage)| !storage.temporal) {
            clover(backend, (case, &reference), params, format, report)?;
        }
    }
    Ok(())
}

/// Checks the clover kernels on a lattice of several blocks of sites, with one reconstruction for each precision.
pub fn large_clover_kernels(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    let case = super::large_case();
    let params = &parameters(case.mass)[1];
    let reference = CloverDirac::from_params(&case.gauge, params);
    for (precision, reals) in
        [(Precision::Double, 18), (Precision::Single, 8), (Precision::Half, 12), (Precision::Fp16, 12)]
    {
        clover(backend, (&case, &reference), params, (precision, LinkStorage::of(reals)), report)?;
    }
    Ok(())
}

/// Errors from storing the blocks of A or of A⁻¹, found from the matrices and the fields in question.
struct CloverBudget<'a> {
    reference: &'a CloverDirac<'a>,
    precision: Precision,
}

/// The largest real or imaginary part.
fn largest(m: &SiteMatrix) -> f64 {
    m.iter().flatten().fold(0.0, |l: f64, z| l.max(z.re.abs()).max(z.im.abs()))
}
fn site_peak(psi: &HostSpinor, x: usize) -> f64 {
    psi.sites()[x].iter().flatten().fold(0.0, |l: f64, z| l.max(z.re.abs()).max(z.im.abs()))
}
/// Sites where a field is not zero: all, or those of a parity.
fn support(psi: &HostSpinor) -> impl Iterator<Item = usize> {
    (0..psi.sites().len()).filter(|x| site_peak(psi, *x) > 0.0)
}

impl CloverBudget<'_> {
    /// Largest error of an element, relative to the largest element of its site: half a step, or a rounding. In double
    /// nothing is rounded, but elements come out of sums and of an elimination with a few roundings each.
    fn step(&self) -> f64 {
        match self.precision {
            Precision::Double => 3.0 * self.precision.unit(),
            Precision::Single | Precision::Half | Precision::Fp16 => self.precision.store(),
        }
    }
    /// Tolerance of `out` = A ψ, or A⁻¹ ψ.
    ///
    /// *Relative*: real and imaginary parts of elements are off by a number uniform in ± step · a, a the largest of the
    /// site, with variance (step a)² / 3; six such products make a component: ‖δA ψ‖ = 2 step a ‖ψ‖. Half as much again
    /// for small lattices, and the roundings of sums and storage.
    ///
    /// *Worst*: six elements, each off by √2 step a at most, times √2 peak; the change of spin basis adds two.
    fn product(&self, inverse: bool, psi: &[HostSpinor], out: &[HostSpinor]) -> Tolerance {
        let matrices = if inverse { &self.reference.inverse } else { &self.reference.term };
        let (mut relative, mut worst) = (0.0f64, 0.0f64);
        for (psi, out) in psi.iter().zip(out) {
            let (mut square, mut norm) = (0.0, 0.0);
            for x in support(out) {
                let a = largest(&matrices[x]);
                let size = |f: &HostSpinor| f.sites()[x].iter().flatten().map(|z| z.norm_sqr()).sum::<f64>();
                square += a * a * size(psi);
                norm += size(out);
                worst = worst.max(a * site_peak(psi, x) / site_peak(out, x));
            }
            relative = relative.max((square / norm).sqrt());
        }
        let (rounding, sum) = (self.step() + self.precision.unit(), self.precision.sum());
        Tolerance { relative: 3.0 * rounding * relative + sum.relative, worst: 24.0 * rounding * worst + sum.worst }
    }
    /// Tolerance of `out` = A⁻¹ h where h itself has errors: those of random direction grow by ‖A⁻¹‖_F / √12 in the mean, and by the
    /// largest sum of a row at worst.
    fn divided(&self, before: Tolerance, h: &[HostSpinor], out: &[HostSpinor]) -> Tolerance {
        let own = self.product(true, h, out);
        let (mut relative, mut worst) = (0.0f64, 0.0f64);
        for (h, out) in h.iter().zip(out) {
            let (mut square, mut norm) = (0.0, 0.0);
            for x in support(out) {
                let m = &self.reference.inverse[x];
                let size = |f: &HostSpinor| f.sites()[x].iter().flatten().map(|z| z.norm_sqr()).sum::<f64>();
                square += m.iter().flatten().map(|z| z.norm_sqr()).sum::<f64>() / 12.0 * size(h);
                norm += size(out);
                let row = m.iter().map(|row| row.iter().map(|z| z.norm()).sum::<f64>()).fold(0.0, f64::max);
                worst = worst.max(std::f64::consts::SQRT_2 * row * site_peak(h, x) / site_peak(out, x));
            }
            relative = relative.max((square / norm).sqrt());
        }
        Tolerance { relative: 1.5 * before.relative * relative + own.relative, worst: before.worst * worst + own.worst }
    }
}

fn both(a: Tolerance, b: Tolerance) -> Tolerance {
    Tolerance { relative: a.relative + b.relative, worst: a.worst + b.worst }
}
fn twice(a: Tolerance) -> Tolerance {
    both(a, a)
}

/// The blocks of the reference's term.
fn blocks(reference: &CloverDirac) -> Vec<[HermitianBlock; 2]> {
    let block = |matrix: &SiteMatrix, first: usize| {
        let below = (1..6).flat_map(|row| (0..row).map(move |column| matrix[first + row][first + column]));
        let mut lower = [Complex64::ZERO; 15];
        lower.iter_mut().zip(below).for_each(|(to, element)| *to = element);
        HermitianBlock { diagonal: std::array::from_fn(|k| matrix[first + k][first + k].re), lower }
    };
    reference.term.iter().map(|matrix| [block(matrix, 0), block(matrix, 6)]).collect()
}

/// A ψ, A⁻¹ ψ, A⁻¹ D ψ, both Schur complements with their right-hand sides and reconstructions, the rows of M, and all
/// daggers. The reference starts from the input as it is stored and from the links and blocks as they are, so that
/// errors are those of the formats and kernels.
pub fn clover(
    backend: &dyn Backend,
    (case, reference): (&Case, &CloverDirac),
    params: &CloverParams,
    format: LinkFormat,
    report: &mut CheckReport,
) -> Result {
    let (precision, storage) = format;
    let budget = CloverBudget { reference, precision };
    let hops = links::hopping(&case.gauge, format);
    let domain = case.domain(backend)?;
    // One of the operators has a term that the host gives.
    let term = match params.wilson.boundary {
        TimeBoundary::Periodic => params.term(&GaugeField::upload(&domain, &case.gauge)?)?,
        _ => DeviceClover::of_host(&domain, params.wilson.diagonal(), &blocks(reference))?,
    };
    let term = Arc::new(term.convert(precision)?);
    let wilson = Wilson::new(Arc::new(DeviceGauge::upload(&domain, &case.gauge, precision, storage)?), params.wilson);
    // Two right-hand sides, and one by itself.
    let (psi, stored) = upload(&domain, precision, &case.sources[..2])?;
    let (eta, stored_eta) = upload(&domain, precision, &case.sources[2..4])?;
    let (single, _) = upload(&domain, precision, &case.sources[..1])?;
    let nrhs = stored.len();
    let fields = |nrhs| FullField::zero(&domain, FieldShape::spinors(precision, nrhs));
    let zero = || fields(nrhs);
    let (mut out, mut single_out) = (zero()?, fields(1)?);
    let format = formats::name(format);
    let described = format!("{:?}, s = {}", params.wilson.boundary, params.wilson.anisotropy.space());
    let scope = case.scope(&format, &described);
    let daggered = case.scope(&format, &format!("{described} dagger"));
    let scope_of = |dagger: bool| -> &Scope { if dagger { &daggered } else { &scope } };
    let each = |f: &dyn Fn(&HostSpinor) -> HostSpinor| -> Vec<HostSpinor> { stored.iter().map(f).collect() };

    let operator = EvenOddWilson::with_diagonal(wilson.clone(), term.clone(), Schur::Symmetric, nrhs)?;
    let alone = EvenOddWilson::with_diagonal(wilson.clone(), term.clone(), Schur::Symmetric, 1)?;
    let mut tolerances = [precision.sum(); 2];
    for inverse in [false, true] {
        for parity in 0..2 {
            operator.apply_diagonal(
                DiagonalForm { parity, inverse, dagger: false },
                psi.parity(parity),
                out.parity_mut(parity),
            )?;
        }
        let expected = each(&|psi| reference.clover(inverse, psi));
        tolerances[usize::from(inverse)] = budget.product(inverse, &stored, &expected);
        let name = if inverse { "clover A^-1" } else { "clover A" };
        report.fields(&scope, name, out.download()?, &expected, tolerances[usize::from(inverse)]);
    }
    // A⁻¹ (A ψ) = ψ, with the product stored on the way.
    let mut image = zero()?;
    for parity in 0..2 {
        operator.apply_diagonal(
            DiagonalForm { parity, inverse: false, dagger: false },
            psi.parity(parity),
            image.parity_mut(parity),
        )?;
        operator.apply_diagonal(
            DiagonalForm { parity, inverse: true, dagger: false },
            image.parity(parity),
            out.parity_mut(parity),
        )?;
    }
    let tol = budget.divided(tolerances[0], &each(&|psi| reference.clover(false, psi)), &stored);
    report.fields(&scope, "clover A^-1 A = 1", out.download()?, &stored, tol);

    let mut stage = [precision.sum(); 2];
    for dagger in [false, true] {
        let scope = scope_of(dagger);
        for parity in 0..2 {
            operator.dslash(parity, dagger, psi.parity(1 - parity), out.parity_mut(parity))?;
            alone.dslash(parity, dagger, single.parity(1 - parity), single_out.parity_mut(parity))?;
        }
        let result = out.download()?;
        report.holds(scope, "one right-hand side, bits of clover_dslash", single_out.download()?[0] == result[0]);
        let bare = each(&|psi| reference.hopping(dagger, psi));
        let expected: Vec<_> = bare.iter().map(|h| reference.clover(true, h)).collect();
        let tol = budget.divided(hops, &bare, &expected);
        report.fields(scope, "clover_dslash", result, &expected, tol);
        stage[usize::from(dagger)] = tol;

        for parity in 0..2 {
            operator.apply_parity(parity, dagger, &psi, out.parity_mut(parity))?;
        }
        let expected = each(&|psi| reference.apply(dagger, psi));
        report.fields(scope, "clover full", out.download()?, &expected, both(tolerances[0], hops));
    }

    for schur in SCHUR_KINDS {
        let name = format!("{schur:?}").to_lowercase();
        let make = || EvenOddWilson::with_diagonal(wilson.clone(), term.clone(), schur, nrhs);
        for parity in 0..2 {
            let (operator, name) = (make()?.on_parity(parity), format!("{name}, parity {parity}"));
            let mut images = Vec::new();
            for dagger in [false, true] {
                let scope = scope_of(dagger);
                let (input, stored) = if dagger { (&eta, &stored_eta) } else { (&psi, &stored) };
                let mut half = zero()?;
                if dagger {
                    operator.apply_dagger(input.parity(parity), half.parity_mut(parity))?;
                } else {
                    operator.apply(input.parity(parity), half.parity_mut(parity))?;
                }
                let of = |psi: &HostSpinor| reference.schur_on(parity, schur, dagger, psi);
                let expected: Vec<_> = stored.iter().map(of).collect();
                // Two factors, of which the first comes in with h² ‖D A⁻¹‖ < 1; and A ψ, or ψ.
                let tol = both(twice(stage[usize::from(dagger)]), tolerances[0]);
                let result = half.download()?;
                let operation = format!("clover schur, {name}");
                if !dagger {
                    let (w, compared) = ((&eta, &stored_eta[..]), (&result[..], &expected[..], tol));
                    super::apply_dot((&operator, parity), (input, stored), w, compared, (scope, &operation), report)?;
                }
                report.fields(scope, &operation, result.clone(), &expected, tol);
                images.push((result, tol));
            }
            // (η, M̂ ψ) = (M̂† η, ψ). Rounded links and blocks are the same on both sides; errors of storage and arithmetic
            // are of random direction and so nearly orthogonal to the other field: ‖δ‖ ‖ψ‖ / √n, five times that allowed.
            let random = 5.0 / (24.0 * case.lattice().half_volume() as f64).sqrt();
            let (conjugate, tol) = images.pop().expect("two images");
            let (image, _) = images.pop().expect("two images");
            for j in 0..nrhs {
                let [phi, psi] = [&stored_eta[j], &stored[j]].map(|field| on_parity(parity, field));
                let (a, b) = (dot(&phi, &image[j]), dot(&conjugate[j], &psi));
                let scale = (norm2(&phi) * norm2(&image[j])).sqrt();
                report.error(
                    &scope,
                    &format!("clover adjoint, {name}"),
                    (a - b).norm() / scale,
                    2.0 * random * tol.relative,
                );
            }
        }

        let operator = make()?;
        let mut even = zero()?;
        operator.prepare(&eta, &mut even.even)?;
        let expected: Vec<_> = stored_eta.iter().map(|eta| reference.prepare(schur, eta)).collect();
        let tol = twice(both(stage[0], tolerances[1]));
        report.fields(&scope, &format!("clover prepare, {name}"), even.download()?, &expected, tol);

        let mut solution = zero()?;
        solution.upload(&case.sources[..2])?;
        operator.reconstruct(&eta, &mut solution)?;
        let pairs = stored_eta.iter().zip(&stored);
        let expected: Vec<_> = pairs.map(|(eta, psi)| reference.reconstruct(eta, psi)).collect();
        report.fields(&scope, &format!("clover reconstruct, {name}"), solution.download()?, &expected, tol);
    }
    Ok(())
}

/// Every precision × reconstruction × method × Schur complement ends at a true residual of 1e-10, and says the truth
/// about it; isotropic and anisotropic.
pub fn clover_solves(
    backend: &dyn Backend,
    case: &Case,
    mass: f64,
    report: &mut CheckReport,
) -> std::result::Result<(), SolveFailure> {
    let domain = case.domain(backend)?;
    let sources = &case.sources[..2];
    for params in parameters(mass) {
        let reference = CloverDirac::from_params(&case.gauge, &params);
        let mut first = None;
        for precision in [Precision::Double, Precision::Single, Precision::Half, Precision::Fp16] {
            for reconstruction in
                [LinkStorage::FULL, LinkStorage::of(12), LinkStorage::of(8), LinkStorage::of(12).in_temporal_gauge()]
            {
                for method in [Method::BICGSTAB, Method::CG] {
                    for schur in SCHUR_KINDS {
                        let operator = params.with_schur(schur);
                        let request = Request { method, precision, reconstruction, ..Request::new(operator) };
                        let format = format!("{precision} {reconstruction}");
                        let space = params.wilson.anisotropy.space();
                        let scope = case.scope(&format, &format!("{method:?} {schur:?} m = {mass}, s = {space}"));
                        let (solutions, claim) = solve(&domain, &case.gauge, sources, &request, &mut ())?;
                        report.holds(&scope, "clover solve: converged", claim.converged);
                        for ((eta, psi), claimed) in sources.iter().zip(&solutions).zip(&claim.true_residual) {
                            let residual = reference.residual(eta, psi);
                            report.error(&scope, "clover solve: true residual", residual, request.tol);
                            // The residual is a difference of numbers of size ‖A ψ‖, several times ‖η‖ at small masses.
                            let off = (residual - claimed).abs();
                            report.error(&scope, "clover solve: claimed residual", off, 1e-14);
                        }
                        // As for Wilson: ‖M⁻¹‖ ‖M‖ is a few hundred for these fields.
                        let tol = Tolerance { relative: 500.0 * request.tol, worst: 1e5 * request.tol };
                        let exact = first.is_none();
                        let expected = first.get_or_insert_with(|| solutions.clone());
                        let own = exact || *expected != solutions;
                        report.holds(&scope, "clover solve: the iteration has its own format", own);
                        report.fields(&scope, "clover solve: the same solution", solutions, expected, tol);
                    }
                }
            }
        }
    }
    Ok(())
}
