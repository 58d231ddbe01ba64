//! Links in temporal gauge: every kernel for them, what it reads, and that nothing physical changes.
use super::{Case, clover, parameters, upload, wilson};
use crate::clover_reference::CloverDirac;
use crate::formats::{self, LinkFormat};
use crate::links;
use crate::reference::{WilsonDirac, adjoint, colour_multiply, field};
use crate::report::CheckReport;
use crate::testkit::lattice;
use ferrite::backend::Backend;
use ferrite::domain::Result;
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::field::{DeviceGauge, FieldShape, FullField, GaugeField};
use ferrite::gauge::fixing::{Transformation, temporal_gauge};
use ferrite::gauge::generate;
use ferrite::operators::{Anisotropy, TimeBoundary, Wilson, WilsonParams};
use std::sync::Arc;

/// Lattices with different shares of hops across the boundary in t: a quarter, half, all of them, an eighth.
pub fn temporal_cases() -> Vec<Case> {
    vec![
        Case::new(generate::random(lattice([2, 4, 6, 8]), 31), 400),
        Case::new(generate::weak_field(lattice([4, 4, 4, 4]), 32, 0.3), 430),
        Case::new(generate::random(lattice([2, 2, 2, 2]), 33), 460),
        Case::new(generate::random(lattice([8, 8, 4, 16]), 34), 490),
    ]
}

/// Every check of the kernels for temporal gauge in every precision.
pub fn temporal_kernels(backend: &dyn Backend, case: &Case, report: &mut CheckReport) -> Result {
    let (gauge, g) = temporal_gauge(&case.gauge);
    let fixed = Case { gauge, sources: case.sources.clone(), colours: case.colours.clone(), mass: case.mass };
    // The first row of a link that is 1 is (1, 0, 0), which reconstruct 8 cannot keep and need not.
    let device_links = GaugeField::upload(&fixed.domain(backend)?, &fixed.gauge)?;
    let (all, kept) = (device_links.singular_links()?, device_links.singular_links_in_temporal_gauge()?);
    let (volume, slices) = (fixed.lattice().volume(), fixed.lattice().size()[3]);
    let scope = case.scope("recon-8t", "");
    report.holds(&scope, "number of singular links", (kept, all) == (0, volume - volume / slices));

    let params = &parameters(case.mass)[1];
    let reference = CloverDirac::from_params(&fixed.gauge, params);
    for format in formats::wilson().into_iter().filter(|(_, storage)| storage.temporal) {
        wilson(backend, &fixed, format, report)?;
        covariance(backend, case, (&fixed.gauge, &g), format, report)?;
        reading(backend, &fixed, format, report)?;
        clover(backend, (&fixed, &reference), params, format, report)?;
    }
    Ok(())
}

/// D ψ, or D† ψ, by kernels; and ψ as it was stored.
fn dslash(
    backend: &dyn Backend,
    (gauge, params): (&HostGauge, WilsonParams),
    (precision, storage): LinkFormat,
    dagger: bool,
    psi: &[HostSpinor],
) -> Result<(Vec<HostSpinor>, Vec<HostSpinor>)> {
    let domain = ferrite::domain::Domain::single(backend, gauge.lattice())?;
    let wilson = Wilson::new(Arc::new(DeviceGauge::upload(&domain, gauge, precision, storage)?), params);
    let (input, stored) = upload(&domain, precision, psi)?;
    let mut out = FullField::zero(&domain, FieldShape::spinors(precision, psi.len()))?;
    for parity in 0..2 {
        wilson.dslash(parity, dagger, input.parity(1 - parity), out.parity_mut(parity))?;
    }
    Ok((out.download()?, stored))
}

/// D of the gauge-fixed links on a rotated field is the rotated D of the links as they were, which the reference
/// computes; for one right-hand side and for three.
fn covariance(
    backend: &dyn Backend,
    case: &Case,
    (fixed, g): (&HostGauge, &Transformation),
    format: LinkFormat,
    report: &mut CheckReport,
) -> Result {
    let tol = links::hopping(fixed, format);
    let anisotropic = Anisotropy { xi: 2.5, nu: 0.75 };
    for (boundary, time_sign, anisotropy) in
        [(TimeBoundary::Periodic, 1.0, Anisotropy::default()), (TimeBoundary::Antiperiodic, -1.0, anisotropic)]
    {
        let params = WilsonParams { mass: case.mass, boundary, anisotropy };
        let reference =
            WilsonDirac { space: anisotropy.space(), ..WilsonDirac::new(&case.gauge, case.mass, time_sign) };
        for (dagger, psi) in [(false, case.block(0)), (true, &case.block(1)[..1])] {
            let rotated = |psi: &HostSpinor| {
                let mut psi = psi.clone();
                g.apply(&mut psi);
                psi
            };
            let rotated: Vec<_> = psi.iter().map(rotated).collect();
            let (got, stored) = dslash(backend, (fixed, params), format, dagger, &rotated)?;
            // There and back by the reference's own multiplication.
            let lattice = case.lattice();
            let back =
                |psi: &HostSpinor| field(lattice, |x| colour_multiply(&adjoint(&g.matrices()[x]), &psi.sites()[x]));
            let there = |psi: &HostSpinor| field(lattice, |x| colour_multiply(&g.matrices()[x], &psi.sites()[x]));
            let expected: Vec<_> = stored.iter().map(|psi| there(&reference.hopping(dagger, &back(psi)))).collect();
            let scope = case.scope(&formats::name(format), &format!("{boundary:?} {} rhs", psi.len()));
            report.fields(&scope, "temporal gauge, D on the original links", got, &expected, tol);
        }
    }
    Ok(())
}

/// Checks that links in t which are 1 are not read: other numbers in their place change nothing.
fn reading(backend: &dyn Backend, fixed: &Case, format: LinkFormat, report: &mut CheckReport) -> Result {
    let lattice = fixed.lattice();
    let mut other = generate::random(lattice, 99);
    let last = lattice.size()[3] - 1;
    for (k, link) in other.links_mut().iter_mut().enumerate() {
        if k % 4 != 3 || lattice.coordinates(k / 4)[3] == last {
            *link = fixed.gauge.links()[k];
        }
    }
    let params = WilsonParams::from_mass(fixed.mass, TimeBoundary::Antiperiodic);
    let psi = &fixed.block(2)[..1];
    let (one, _) = dslash(backend, (&fixed.gauge, params), format, false, psi)?;
    let (two, _) = dslash(backend, (&other, params), format, false, psi)?;
    let scope = fixed.scope(&formats::name(format), "");
    report.holds(&scope, "temporal gauge, links in t are read across the boundary only", one == two);
    Ok(())
}
