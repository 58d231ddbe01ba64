//! Operations of staggered operators.
use super::{Extent, MATRIX_SPINORS, Operation, Visit, formats, random_fields};
use crate::domain::{Domain, Result};
use crate::field::{FieldShape, FieldSpace, GaugeField};
use crate::gauge::generate;
use crate::operators::fat_links::{Improvement, PathCoefficients};
use crate::operators::{Definition, EvenOddStaggered, Staggered, StaggeredLinks, StaggeredParams, TimeBoundary};
use crate::workload::Options;
use gpu_kernels::LinkStorage;
use num_complex::Complex64;
use solvers::LinearOperator;
use std::sync::Arc;

/// Visits the naive staggered operator: the hopping term from one parity to the other, and M†M on one parity.
pub(super) fn naive(
    domain: &Domain,
    definition: &'static Definition,
    options: &Options,
    extent: Extent,
    visit: Visit,
) -> Result {
    let device_links = GaugeField::upload(domain, &generate::random(domain.section(), 1))?;
    for (precision, reconstruction) in formats(definition, options, &options.reconstructions) {
        let links = StaggeredLinks::naive(Arc::new(device_links.pack(precision, reconstruction)?));
        operations(domain, links, reconstruction, definition.name, options, extent, visit)?;
    }
    Ok(())
}

/// Visits an improved staggered operator: the hopping term and M†M. Storages that keep the phase of the determinant, as HISQ needs, get
/// links with a phase.
pub(super) fn improved(
    domain: &Domain,
    definition: &'static Definition,
    options: &Options,
    extent: Extent,
    visit: Visit,
) -> Result {
    for phases in [false, true] {
        let formats = formats(definition, options, &options.reconstructions);
        let formats: Vec<_> = formats.filter(|(_, reconstruction)| reconstruction.keeps_phase() == phases).collect();
        if formats.is_empty() {
            continue;
        }
        let mut gauge = generate::random(domain.section(), 1);
        if phases {
            for (k, u) in gauge.links_mut().iter_mut().enumerate() {
                let phase = Complex64::cis(k as f64);
                u.as_flattened_mut().iter_mut().for_each(|z| *z *= phase);
            }
        }
        let thin = GaugeField::upload(domain, &gauge)?;
        let links = Improvement::from_paths(&thin, &PathCoefficients::asqtad(1.0))?;
        let links = if phases { links.in_u3() } else { links };
        drop((gauge, thin));
        for (precision, reconstruction) in formats {
            let links = links.pack(precision, reconstruction)?;
            operations(domain, links, reconstruction, definition.name, options, extent, visit)?;
        }
    }
    Ok(())
}

fn operations(
    domain: &Domain,
    links: StaggeredLinks,
    storage: LinkStorage,
    name: &str,
    options: &Options,
    extent: Extent,
    visit: Visit,
) -> Result {
    let (precision, dslash_flops, link_bytes) = (links.precision(), links.flops(), links.read_bytes());
    let colour_bytes = FieldShape::colours(precision, 1).site_bytes();
    let staggered = Staggered::new(Arc::new(links), StaggeredParams::new(0.1, TimeBoundary::Antiperiodic));
    let mut fields = random_fields::<4>(domain, FieldShape::colours(precision, options.nrhs))?;
    let (sites, nrhs) = (domain.global().half_volume() as f64, options.nrhs);
    let operation = |what: &str, flops: f64, bytes: f64| Operation {
        name: format!("{name}_{what}"),
        precision,
        storage: Some(storage),
        flops: flops * nrhs as f64,
        bytes,
    };
    let bytes = |vectors: usize| sites * (link_bytes + nrhs * vectors * colour_bytes) as f64;
    // The parities alternate, and the result of a call is the input of the next, as in a solver.
    let mut calls = 0;
    visit(operation("dslash", dslash_flops * sites, bytes(2)), &mut || {
        calls += 1;
        fields.rotate_left(1);
        let [input, out, ..] = &mut fields;
        staggered.dslash(calls % 2, input, out)
    })?;
    let matrix_operator = EvenOddStaggered::new(staggered.clone(), nrhs)?;
    if extent == Extent::All {
        visit(operation("dslash_add", (dslash_flops + 12.0) * sites, bytes(3)), &mut || {
            calls += 1;
            fields.rotate_left(1);
            let [input, out, x, _] = &mut fields;
            staggered.dslash_add(calls % 2, (1.0, x), (-0.01, input), out)
        })?;
    }
    // The matrix M†M includes the sum that CG needs.
    let space = FieldSpace::new(domain, FieldShape::colours(precision, nrhs));
    let (mut dots, mut norms) = (vec![Complex64::ZERO; nrhs], vec![0.0; nrhs]);
    let flops = matrix_operator.flops();
    visit(
        operation("matrix", flops, sites * (2 * link_bytes + nrhs * MATRIX_SPINORS * colour_bytes) as f64),
        &mut || {
            fields.rotate_left(1);
            let [input, out, ..] = &mut fields;
            matrix_operator.apply_dot(&space, input, out, input, &mut dots, &mut norms)
        },
    )
}
