//! Staggered operators.
use super::{Extent, Operation, Visit, random_fields};
use crate::bench::Options;
use crate::dirac::{EvenOddStaggered, ImprovedLinks, Staggered, StaggeredLinks, StaggeredParams, TimeBoundary};
use crate::domain::{Domain, Result};
use crate::fat_links::{Improvement, PathCoefficients};
use crate::field::{ColourSpace, DeviceGauge, ThinGauge};
use crate::generate;
use crate::solve::{IterationPrecision, Reconstruction, with_improved_formats, with_naive_formats};
use gpu_kernels::storage::{
    Double, Half, LinkFormat, OneSpin, Precision, Recon8, Recon8H, Recon9, Recon9H, Recon12, Recon12H, Recon13,
    Recon13H, Recon18, Recon18H, Single,
};
use num_complex::Complex64;
use solvers::LinearOperator;
use std::sync::Arc;

/// Pairs of a precision and a reconstruction that exist.
fn formats(
    options: &Options,
    exists: fn(Reconstruction, IterationPrecision) -> bool,
) -> impl Iterator<Item = (IterationPrecision, Reconstruction)> {
    let pairs = options.precisions.iter().flat_map(|&p| options.reconstructions.iter().map(move |&r| (p, r)));
    pairs.filter(move |&(precision, reconstruction)| exists(reconstruction, precision))
}

/// The naive operator: the hopping term from one parity to the other, and M†M on one.
pub(crate) fn naive(domain: &Domain, options: &Options, extent: Extent, visit: Visit) -> Result {
    let staged = ThinGauge::upload(domain, &generate::random(domain.section(), 1))?;
    for (precision, reconstruction) in formats(options, Reconstruction::exists_for_naive) {
        macro_rules! with {
            ($precision:ident, $recon:ident) => {{
                let links: DeviceGauge<$precision, $recon> = staged.pack()?;
                let names = ["staggered_dslash", "staggered_dslash_add", "staggered_matrix"];
                operations::<$precision, $recon, _>(domain, links, names, options, extent, visit)?
            }};
        }
        with_naive_formats!(precision, reconstruction, with);
    }
    Ok(())
}

/// The asqtad operator in the same way. Formats that keep the phase of a determinant, for HISQ, get links that have one.
pub(crate) fn improved(domain: &Domain, options: &Options, extent: Extent, visit: Visit) -> Result {
    for phases in [false, true] {
        let formats = formats(options, Reconstruction::exists_for_improved);
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
        let thin = ThinGauge::upload(domain, &gauge)?;
        let links = Improvement::from_paths(&thin, &PathCoefficients::asqtad(1.0))?;
        let links = if phases { links.in_u3() } else { links };
        drop((gauge, thin));
        for (precision, reconstruction) in formats {
            macro_rules! with {
                ($precision:ident, $recon:ident) => {{
                    let links: ImprovedLinks<$precision, $recon> = links.pack()?;
                    let names = ["asqtad_dslash", "asqtad_dslash_add", "asqtad_matrix"];
                    operations::<$precision, $recon, _>(domain, links, names, options, extent, visit)?
                }};
            }
            with_improved_formats!(precision, reconstruction, with);
        }
    }
    Ok(())
}

fn operations<P: Precision, R: LinkFormat<P>, L: StaggeredLinks<P>>(
    domain: &Domain,
    links: L,
    [plain, added, matrix]: [&'static str; 3],
    options: &Options,
    extent: Extent,
    visit: Visit,
) -> Result {
    let staggered = Staggered::new(Arc::new(links), StaggeredParams::new(0.1, TimeBoundary::Antiperiodic));
    let mut fields = random_fields::<OneSpin, P, 4>(domain, options.nrhs)?;
    let (sites, nrhs) = (domain.global().half_volume() as f64, options.nrhs);
    let operation = |name, flops: f64, bytes: f64| Operation {
        name,
        precision: P::NAME,
        reconstruct: R::NAME,
        flops: flops * nrhs as f64,
        bytes,
    };
    let bytes = |vectors: usize| sites * (L::READ_BYTES + nrhs * vectors * P::COLOUR_BYTES) as f64;
    // Both parities in turn, the result of one call the input of the next: what a solver does.
    let mut calls = 0;
    visit(operation(plain, L::FLOPS * sites, bytes(2)), &mut || {
        calls += 1;
        fields.rotate_left(1);
        let [input, out, ..] = &mut fields;
        staggered.dslash(calls % 2, input, out)
    })?;
    let matrix_operator = EvenOddStaggered::new(staggered.clone(), nrhs)?;
    if extent == Extent::All {
        visit(operation(added, (L::FLOPS + 12.0) * sites, bytes(3)), &mut || {
            calls += 1;
            fields.rotate_left(1);
            let [input, out, x, _] = &mut fields;
            staggered.dslash_add(calls % 2, (1.0, x), (-0.01, input), out)
        })?;
    }
    // With the sum that CG needs of it.
    let space = ColourSpace::<P>::new(domain, nrhs);
    let (mut dots, mut norms) = (vec![Complex64::ZERO; nrhs], vec![0.0; nrhs]);
    let flops = matrix_operator.flops();
    visit(operation(matrix, flops, sites * (2 * L::READ_BYTES + nrhs * 5 * P::COLOUR_BYTES) as f64), &mut || {
        fields.rotate_left(1);
        let [input, out, ..] = &mut fields;
        matrix_operator.apply_dot(&space, input, out, input, &mut dots, &mut norms)
    })
}
