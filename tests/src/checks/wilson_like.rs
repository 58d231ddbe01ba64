//! Wilson-like operators with diagonal terms of all kinds: applied, even-odd preconditioned, and solved.
use super::{Case, upload};
use crate::formats;
use crate::links;
use crate::reference::{on_parity, turned};
use crate::report::{CheckReport, Tolerance};
use crate::wilson_like_reference::WilsonLikeDirac;
use ferrite::backend::Backend;
use ferrite::field::host::HostSpinor;
use ferrite::field::{FieldShape, FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::multigrid::MultigridParams;
use ferrite::operators::Operator;
use ferrite::operators::{
    Anisotropy, BoundaryAngles, CloverParams, DiagonalForm, EvenOdd, EvenOddWilson, ExpCloverParams, Schur,
    TimeBoundary, TwistedCloverParams, TwistedExpCloverParams, TwistedParams, Wilson, WilsonLike, WilsonParams,
};
use ferrite::solve::{METHODS, Request, Schwarz, SolveFailure, solve};
use ferrite::{LinkStorage, Precision};
use solvers::LinearOperator;
use std::sync::Arc;

/// Rough links on a lattice of four different extents.
pub fn wilson_like_case() -> Case {
    let lattice = Lattice::new([2, 4, 6, 8]).expect("even extents");
    Case::new(generate::weak_field(lattice, 70, 0.3), 71)
}

/// The operators, with references and names.
pub fn wilson_like_operators(case: &Case) -> Vec<(&'static str, Operator, WilsonLikeDirac<'_>)> {
    let isotropic = WilsonParams::from_mass(case.mass, TimeBoundary::Antiperiodic);
    let anisotropy = Anisotropy { xi: 2.5, nu: 0.75 };
    let anisotropic = WilsonParams { boundary: TimeBoundary::Periodic, anisotropy, ..isotropic };
    let mut all = Vec::new();
    for (wilson, mu) in [(isotropic, 0.3), (anisotropic, -0.7)] {
        let reference = WilsonLikeDirac::twisted(&case.gauge, wilson, [0.0; 2], mu);
        all.push(("twisted", TwistedParams { wilson, mu }.into(), reference));
    }
    for (wilson, [space, time], mu) in [(isotropic, [1.1; 2], 0.4), (anisotropic, [0.9, 1.3], -0.2)] {
        let reference = WilsonLikeDirac::twisted(&case.gauge, wilson, [space, time], mu);
        let operator = TwistedCloverParams { clover: CloverParams { wilson, space, time }, mu };
        all.push(("twisted-clover", operator.into(), reference));
    }
    for (wilson, [space, time], mu) in [(isotropic, [1.2; 2], -0.3), (anisotropic, [0.9, 1.4], 0.5)] {
        let reference = WilsonLikeDirac::twisted_exponential(&case.gauge, wilson, [space, time], mu);
        let operator = TwistedCloverParams { clover: CloverParams { wilson, space, time }, mu };
        all.push(("twisted-exp-clover", TwistedExpCloverParams(operator).into(), reference));
    }
    for (wilson, [space, time]) in [(isotropic, [1.3; 2]), (anisotropic, [0.9, 1.7])] {
        let reference = WilsonLikeDirac::exponential(&case.gauge, wilson, [space, time]);
        let operator = ExpCloverParams(CloverParams { wilson, space, time });
        all.push(("exp-clover", operator.into(), reference));
    }
    all
}

/// Precisions and links that every operator has.
fn plain_formats() -> impl Iterator<Item = (Precision, LinkStorage)> {
    let precisions = [Precision::Double, Precision::Single, Precision::Half];
    precisions.into_iter().flat_map(|precision| [18, 12].map(|reals| (precision, LinkStorage::of(reals))))
}

/// A, A⁻¹ and their daggers, A⁻¹ D, M and its dagger, both Schur complements with their daggers, sums included.
pub fn wilson_like(backend: &dyn Backend, report: &mut CheckReport) -> Result<(), SolveFailure> {
    let case = wilson_like_case();
    for (name, operator, reference) in wilson_like_operators(&case) {
        for format in plain_formats() {
            images(backend, &case, (name, like(&operator), &reference), format, report)?;
        }
    }
    // Links with phases are not in SU(3), and plaquettes do not see phases.
    let with_phases = Case { gauge: turned(&case.gauge, THETA.0), ..wilson_like_case() };
    for (name, operator, reference) in wilson_like_operators(&with_phases) {
        let (name, operator) = (format!("{name}, twisted boundary"), operator.with_theta(THETA));
        for format in plain_formats().filter(|(_, storage)| *storage == LinkStorage::FULL) {
            images(backend, &case, (&name, like(&operator), &reference), format, report)?;
        }
    }
    Ok(())
}

/// Angles of twisted boundary conditions, all different.
pub const THETA: BoundaryAngles = BoundaryAngles([0.9, -2.1, 3.0, 0.5]);

fn like(operator: &Operator) -> WilsonLike {
    *operator.parameters().unwrap_or_else(|| panic!("{operator:?} is not Wilson-like"))
}

fn images(
    backend: &dyn Backend,
    case: &Case,
    (name, operator, reference): (&str, WilsonLike, &WilsonLikeDirac),
    format @ (precision, storage): (Precision, LinkStorage),
    report: &mut CheckReport,
) -> Result<(), SolveFailure> {
    let domain = case.domain(backend)?;
    let gauge = GaugeField::upload(&domain, &case.gauge)?;
    let phases = operator.theta.of_hops(case.lattice());
    let wilson = Wilson::new(Arc::new(gauge.pack_with(phases, precision, storage)?), operator.wilson);
    let term = operator.diagonal(&gauge)?.convert(precision)?;
    let (psi, stored) = upload(&domain, precision, &case.sources[..2])?;
    let (w, stored_w) = upload(&domain, precision, &case.sources[2..4])?;
    let zero = || FullField::zero(&domain, FieldShape::spinors(precision, 2));
    let even_odd = EvenOddWilson::with_diagonal(wilson.clone(), term.clone(), Schur::Symmetric, 2)?;
    let each = |f: &dyn Fn(&HostSpinor) -> HostSpinor| -> Vec<HostSpinor> { stored.iter().map(f).collect() };
    // A hop, and a product at a site, which rounds as much: A and A⁻¹ are within a factor of 2 of a number here, and blocks
    // that are stored in 16 bits are rounded like links.
    let hop = links::hopping(&turned(&case.gauge, operator.theta.0), format);
    let times = |n: f64| Tolerance { relative: n * hop.relative, worst: n * hop.worst };
    let space = operator.wilson.anisotropy.space();
    for dagger in [false, true] {
        let scope = case.scope(&formats::name(format), &format!("{name}, s = {space}, dagger {dagger}"));
        let mut out = zero()?;
        for inverse in [false, true] {
            for parity in 0..2 {
                let form = DiagonalForm { parity, inverse, dagger };
                even_odd.apply_diagonal(form, psi.parity(parity), out.parity_mut(parity))?;
            }
            let expected = each(&|psi| reference.diagonal(inverse, dagger, psi));
            report.fields(&scope, &format!("{name}: A, inverse {inverse}"), out.download()?, &expected, times(1.0));
        }
        for parity in 0..2 {
            even_odd.apply_parity(parity, dagger, &psi, out.parity_mut(parity))?;
        }
        let expected = each(&|psi| reference.apply(dagger, psi));
        report.fields(&scope, &format!("{name}: M"), out.download()?, &expected, times(2.0));

        let mut image = zero()?;
        match dagger {
            false => even_odd.apply(&psi.even, &mut image.even)?,
            true => even_odd.apply_dagger(&psi.even, &mut image.even)?,
        }
        let (expected, found) = (each(&|psi| reference.schur(dagger, psi)), image.download()?);
        if !dagger {
            let compared = (&found[..], &expected[..], times(3.0));
            let title = format!("{name}: Schur complement");
            super::apply_dot((&even_odd, 0), (&psi, &stored), (&w, &stored_w), compared, (&scope, &title), report)?;
        }
        report.fields(&scope, &format!("{name}: Schur complement"), found, &expected, times(3.0));

        // A M̂ of the symmetric complement is the asymmetric one.
        let asymmetric = EvenOddWilson::with_diagonal(wilson.clone(), term.clone(), Schur::Asymmetric, 2)?;
        let mut image = zero()?;
        match dagger {
            false => asymmetric.apply(&psi.even, &mut image.even)?,
            true => asymmetric.apply_dagger(&psi.even, &mut image.even)?,
        }
        let expected = each(&|psi| {
            let psi = on_parity(0, psi);
            match dagger {
                false => reference.diagonal(false, false, &reference.schur(false, &psi)),
                true => reference.schur(true, &reference.diagonal(false, true, &psi)),
            }
        });
        let title = format!("{name}: asymmetric Schur complement");
        report.fields(&scope, &title, image.download()?, &expected, times(4.0));
    }
    Ok(())
}

/// Every format × method ends at its tolerance, and says the truth about it.
pub fn wilson_like_solves(backend: &dyn Backend, report: &mut CheckReport) -> Result<(), SolveFailure> {
    let case = wilson_like_case();
    let domain = case.domain(backend)?;
    let sources = &case.sources[..2];
    for (name, operator, reference) in wilson_like_operators(&case) {
        for (precision, reconstruction) in plain_formats() {
            for method in METHODS.into_iter().filter(|method| !method.is_choice()) {
                let schwarz = Schwarz { precision, domain: Some([2, 2, 2, 4]), ..Schwarz::default() };
                let multigrid = MultigridParams { vectors: 8, improvements: 1, ..MultigridParams::default() };
                let request =
                    Request { method, precision, reconstruction, schwarz, multigrid, ..Request::new(operator.clone()) };
                let scope = case.scope(&formats::name((precision, reconstruction)), &format!("{name} {method:?}"));
                let (solutions, claim) = solve(&domain, &case.gauge, sources, &request, &mut ())?;
                report.holds(&scope, &format!("{name} solve: converged"), claim.converged);
                for ((eta, psi), claimed) in sources.iter().zip(&solutions).zip(&claim.true_residual) {
                    let residual = reference.residual(eta, psi);
                    report.error(&scope, &format!("{name} solve: true residual"), residual, request.tol);
                    // A difference of numbers of size ‖A ψ‖, several times ‖η‖.
                    let off = (residual - claimed).abs();
                    report.error(&scope, &format!("{name} solve: claimed residual"), off, 1e-14);
                }
            }
        }
    }
    Ok(())
}
