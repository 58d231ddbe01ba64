//! Kernels that a solve will need, which are loaded while its files are read: on an H200 that takes some 20 ms.
use super::staggered::Kind;
use ferrite::gpu_kernels::{self, Table};
use ferrite::solve::Operator;
use ferrite::{FermionKind, Format, LinkStorage, Precision};
use gpu_kernels::{blas, clover, exterior, faces, smeared, staggered, transfer, wilson};

/// Precision of the iteration, and reconstruction of its links if one was asked for.
pub type Formats = (Precision, Option<LinkStorage>);

/// Modules of kernels for Wilson and clover operators. `cut`: the lattice has faces.
pub fn for_spinors(operator: Operator, (precision, links): Formats, cut: bool) -> Vec<String> {
    let sloppy = (precision, links.unwrap_or_default());
    let mut kernels = common(FermionKind::Wilson, precision);
    for (precision, storage) in [(Precision::Double, LinkStorage::FULL), sloppy] {
        let format = Format::with_links(precision, storage);
        let of_fields = Format::fermions(FermionKind::Wilson, precision);
        kernels.extend([(wilson::WILSON_ROW.0, format), (smeared::PACK_LINKS.0, format)]);
        if let Operator::Clover(..) = operator {
            kernels.push((clover::CLOVER_ROW.0, format));
        }
        if cut {
            kernels.extend([(exterior::WILSON_EXTERIOR.0, format), (faces::PACK_SPINORS.0, of_fields)]);
        }
    }
    if let Operator::Clover(..) = operator {
        kernels.push((clover::CLOVER_TERM.0, Format::NONE));
    }
    modules(&kernels)
}

/// The same for staggered operators.
pub fn for_colours(kind: Kind, (precision, links): Formats, cut: bool) -> Vec<String> {
    let links = links.unwrap_or_default();
    let mut kernels = common(FermionKind::Staggered, precision);
    for (precision, storage) in [(Precision::Double, LinkStorage::FULL), (precision, links)] {
        // Long links of HISQ have a phase.
        let (row, exterior, pack, storage) = match kind {
            Kind::Naive => (staggered::STAGGERED_ROW.0, exterior::STAGGERED_EXTERIOR.0, smeared::PACK_LINKS.0, storage),
            Kind::Asqtad(_) => {
                (staggered::IMPROVED_ROW.0, exterior::IMPROVED_EXTERIOR.0, smeared::PACK_LONG.0, storage)
            }
            Kind::Hisq(_) => {
                (staggered::IMPROVED_ROW.0, exterior::IMPROVED_EXTERIOR.0, smeared::PACK_LONG.0, storage.with_phase())
            }
        };
        let format = Format::with_links(precision, storage);
        kernels.extend([(row, format), (pack, format)]);
        if cut {
            let of_fields = Format::fermions(FermionKind::Staggered, precision);
            kernels.extend([(exterior, format), (faces::PACK_COLOURS.0, of_fields)]);
        }
    }
    modules(&kernels)
}

/// What brings links and fields to the device, and linear algebra.
fn common(kind: FermionKind, precision: Precision) -> Vec<(&'static Table, Format)> {
    let double = Format::fermions(kind, Precision::Double);
    vec![
        (transfer::PACK_THIN_LINKS.0, Format::NONE),
        (transfer::PACK.0, double),
        (blas::AXPBY.0, double),
        (blas::AXPBY.0, Format::fermions(kind, precision)),
        (blas::CONVERT.0, Format { to: Some(precision), ..double }),
        (blas::CONVERT.0, Format { to: Some(Precision::Double), ..Format::fermions(kind, precision) }),
    ]
}

/// The modules of these kernels, each once, in their order. What does not exist is told when it is launched.
fn modules(kernels: &[(&'static Table, Format)]) -> Vec<String> {
    let mut modules: Vec<String> = Vec::new();
    for module in kernels.iter().filter_map(|(table, format)| Some(table.instance(*format)?.module)) {
        if !modules.iter().any(|known| known == module) {
            modules.push(module.into());
        }
    }
    modules
}

#[cfg(test)]
mod tests {
    use super::super::staggered::Tadpole;
    use super::*;
    use ferrite::dirac::{CloverParams, TimeBoundary, WilsonParams};

    #[test]
    fn the_operators_kernels_are_among_them() {
        let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Periodic);
        let clover = CloverParams::isotropic(wilson, 1.0, 1.0);
        let has = |modules: Vec<String>, wanted: &[&str]| {
            assert!(wanted.iter().all(|module| modules.iter().any(|m| m == module)), "{modules:?}: {wanted:?}");
        };
        has(
            for_spinors(wilson.into(), (Precision::Half, None), true),
            &[
                "wilson_double",
                "wilson_half",
                "blas_double",
                "blas_half",
                "exterior_half",
                "faces_half",
                "smeared_half",
            ],
        );
        let temporal = Some(LinkStorage::of(12).in_temporal_gauge());
        has(
            for_spinors(clover.into(), (Precision::Single, temporal), false),
            &["clover", "clover_double", "clover_single_t"],
        );
        has(for_colours(Kind::Naive, (Precision::Single, None), false), &["staggered_double", "staggered_single"]);
        let half = (Precision::Single, Some(LinkStorage::FULL.in_half()));
        has(for_colours(Kind::Asqtad(Tadpole::Plaquette), half, true), &["staggered_single_h", "exterior_single_h"]);
        let hisq = for_colours(Kind::Hisq(0.0), (Precision::Half, None), false);
        has(hisq, &["staggered_double", "staggered_half_u3"]);
    }
}
