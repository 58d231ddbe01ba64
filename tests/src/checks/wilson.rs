//! The hopping term and the operators made of it.
use super::{Case, upload};
use crate::formats::{self, LinkFormat};
use crate::links;
use crate::reference::{WilsonDirac, combine, on_parity};
use crate::report::{CheckReport, Tolerance};
use ferrite::backend::Backend;
use ferrite::domain::Result;
use ferrite::field::host::HostSpinor;
use ferrite::field::{DeviceGauge, FieldShape, FullField};
use ferrite::operators::{Anisotropy, EvenOdd, EvenOddWilson, TimeBoundary, Wilson, WilsonParams};
use num_complex::Complex64;
use solvers::LinearOperator;
use std::sync::Arc;

/// D, a x + b D, M, the Schur complement and its right-hand side and reconstruction, with and without dagger, for both
/// boundary conditions, on three right-hand sides and on one. The reference starts from the input as it is stored, so
/// that errors are those of the kernel.
pub fn wilson(backend: &dyn Backend, case: &Case, format: LinkFormat, report: &mut CheckReport) -> Result {
    let (tol, (precision, storage)) = (links::hopping(&case.gauge, format), format);
    let domain = case.domain(backend)?;
    let gauge = Arc::new(DeviceGauge::upload(&domain, &case.gauge, precision, storage)?);
    let zero = |nrhs| FullField::zero(&domain, FieldShape::spinors(precision, nrhs));
    let (psi, stored) = upload(&domain, precision, case.block(0))?;
    let (x, stored_x) = upload(&domain, precision, case.block(1))?;
    let (single, _) = upload(&domain, precision, &case.block(0)[..1])?;
    let (mut out, mut single_out) = (zero(psi.even.nrhs())?, zero(1)?);
    let format = formats::name(format);
    let each = |f: &dyn Fn(usize) -> HostSpinor| -> Vec<HostSpinor> { (0..stored.len()).map(f).collect() };
    // Dyadic numbers, which are exact in every precision.
    let (a, b) = (1.75, -0.625);
    let real = |c: f64| Complex64::new(c, 0.0);

    let anisotropic = Anisotropy { xi: 2.5, nu: 0.75 };
    for (boundary, time_sign, anisotropy) in [
        (TimeBoundary::Periodic, 1.0, Anisotropy::default()),
        (TimeBoundary::Antiperiodic, -1.0, Anisotropy::default()),
        (TimeBoundary::Antiperiodic, -1.0, anisotropic),
    ] {
        let params = WilsonParams { mass: case.mass, boundary, anisotropy };
        let space = anisotropy.nu / anisotropy.xi;
        let reference = WilsonDirac { space, ..WilsonDirac::new(&case.gauge, case.mass, time_sign) };
        let (kappa, diagonal) = (reference.kappa(), reference.diagonal());
        let described = format!("{boundary:?}, s = {space}");
        let wilson = Wilson::new(gauge.clone(), params);
        for dagger in [false, true] {
            let scope = case.scope(&format, &format!("{described}{}", if dagger { " dagger" } else { "" }));
            let hops = each(&|j| reference.hopping(dagger, &stored[j]));

            for parity in 0..2 {
                wilson.dslash(parity, dagger, psi.parity(1 - parity), out.parity_mut(parity))?;
                wilson.dslash(parity, dagger, single.parity(1 - parity), single_out.parity_mut(parity))?;
            }
            let result = out.download()?;
            report.holds(&scope, "one right-hand side, bits of dslash", single_out.download()?[0] == result[0]);
            report.fields(&scope, "wilson_dslash", result, &hops, tol);

            for parity in 0..2 {
                let (x, psi) = (x.parity(parity), psi.parity(1 - parity));
                wilson.dslash_add(parity, dagger, (a, x), (b, psi), out.parity_mut(parity))?;
            }
            let expected = each(&|j| combine(&[(real(a), &stored_x[j]), (real(b), &hops[j])]));
            report.fields(&scope, "wilson_dslash_add", out.download()?, &expected, tol);

            wilson.full(dagger, &psi, &mut out)?;
            let expected = each(&|j| combine(&[(real(diagonal), &stored[j]), (real(-0.5 * space), &hops[j])]));
            report.fields(&scope, "wilson full", out.download()?, &expected, tol);

            let mut schur_out = zero(stored.len())?;
            let schur = EvenOddWilson::new(wilson.clone(), stored.len())?;
            if dagger {
                schur.apply_dagger(&psi.even, &mut schur_out.even)?;
            } else {
                schur.apply(&psi.even, &mut schur_out.even)?;
            }
            let expected = each(&|j| reference.schur(dagger, &stored[j]));
            let image = schur_out.download()?;
            if !dagger {
                let compared = (&image[..], &expected[..], twice(tol));
                super::apply_dot(
                    (&schur, 0),
                    (&psi, &stored),
                    (&x, &stored_x),
                    compared,
                    (&scope, "wilson schur"),
                    report,
                )?;
            }
            report.fields(&scope, "wilson schur", image, &expected, twice(tol));
        }

        // From the full system to the even sites and back; both halves of the source differ from those of `psi`.
        let scope = case.scope(&format, &described);
        let schur = EvenOddWilson::new(wilson, stored.len())?;
        let mut even = zero(stored.len())?;
        schur.prepare(&x, &mut even.even)?;
        let expected = each(&|j| {
            let hop = reference.hopping(false, &on_parity(1, &stored_x[j]));
            let all = combine(&[(real(1.0 / diagonal), &stored_x[j]), (real(kappa / diagonal), &hop)]);
            on_parity(0, &all)
        });
        report.fields(&scope, "wilson prepare", even.download()?, &expected, tol);

        let mut solution = zero(stored.len())?;
        solution.upload(case.block(0))?;
        schur.reconstruct(&x, &mut solution)?;
        let expected = each(&|j| {
            let even = on_parity(0, &stored[j]);
            let (odd, hop) = (on_parity(1, &stored_x[j]), reference.hopping(false, &even));
            combine(&[(real(1.0), &even), (real(1.0 / diagonal), &odd), (real(kappa), &hop)])
        });
        report.fields(&scope, "wilson reconstruct", solution.download()?, &expected, tol);
    }
    Ok(())
}

fn twice(tol: Tolerance) -> Tolerance {
    Tolerance { relative: 2.0 * tol.relative, worst: 2.0 * tol.worst }
}
