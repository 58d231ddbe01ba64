//! Kernels that a solve will need, which are loaded while its files are read: on an H200 that takes some 20 ms.
use super::plan::{PRECISIONS, name_of};
use super::staggered::Kind;
use ferrite::solve::{IterationPrecision, Operator, Reconstruction};

/// Precision of the iteration, and reconstruction of its links if one was asked for.
pub type Format = (IterationPrecision, Option<Reconstruction>);

/// Modules of kernels for Wilson and clover operators. `cut`: the lattice has faces.
pub fn for_spinors(operator: Operator, (precision, reconstruction): Format, cut: bool) -> Vec<String> {
    let precision = name_of(&PRECISIONS, precision);
    let gauge = if reconstruction.is_some_and(Reconstruction::is_temporal) { "_t" } else { "" };
    let mut modules = vec!["wilson_double".into(), "convert".into(), format!("blas_{precision}")];
    modules.extend(match operator {
        Operator::Wilson(_) => vec![format!("wilson_{precision}{gauge}")],
        Operator::Clover(..) => {
            vec!["clover_setup".into(), "clover_double".into(), format!("clover_{precision}{gauge}")]
        }
    });
    if cut {
        modules.extend(["exterior_double".into(), format!("exterior_{precision}")]);
    }
    with_common(modules, "blas_double", cut)
}

/// The same for staggered operators.
pub fn for_colours(kind: Kind, (precision, reconstruction): Format, cut: bool) -> Vec<String> {
    let precision = name_of(&PRECISIONS, precision);
    let bits = if reconstruction.is_some_and(Reconstruction::is_short) { "_h" } else { "" };
    let family = match kind {
        Kind::Naive => "staggered",
        Kind::Asqtad(_) => "improved",
        Kind::Hisq(_) => "improved_u3",
    };
    let mut modules = vec!["convert_colour".into(), format!("{family}_double"), format!("{family}_{precision}{bits}")];
    if cut {
        modules.extend(["exterior_colour_double".into(), format!("exterior_colour_{precision}")]);
    }
    with_common(modules, "blas_colour", cut)
}

/// Links and fields are brought to the device first.
fn with_common(modules: Vec<String>, algebra: &str, cut: bool) -> Vec<String> {
    let faces = if cut { vec!["faces"] } else { vec![] };
    let common = ["smeared", "transfer", algebra].into_iter().chain(faces).map(String::from);
    common.chain(modules).collect()
}

#[cfg(test)]
mod tests {
    use super::super::staggered::Tadpole;
    use super::*;
    use ferrite::dirac::{CloverParams, TimeBoundary, WilsonParams};
    use std::collections::BTreeSet;

    /// A name that is mistyped, or a module that has another name by now, would not be loaded ahead, and nobody would notice.
    #[test]
    fn the_modules_exist() {
        let there: BTreeSet<&str> = ferrite::gpu_kernels::instances().map(|instance| instance.module).collect();
        let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Periodic);
        let clover = CloverParams::isotropic(wilson, 1.0, 1.0);
        let mut named = BTreeSet::new();
        for (_, precision) in PRECISIONS {
            for cut in [false, true] {
                for links in [None, Some(Reconstruction::Eight), Some(Reconstruction::TwelveTemporal)] {
                    named.extend(for_spinors(wilson.into(), (precision, links), cut));
                    named.extend(for_spinors(clover.into(), (precision, links), cut));
                }
                if precision != IterationPrecision::Fp16 {
                    for kind in [Kind::Naive, Kind::Asqtad(Tadpole::Plaquette), Kind::Hisq(0.0)] {
                        named.extend(for_colours(kind, (precision, None), cut));
                    }
                }
            }
        }
        for kind in [Kind::Naive, Kind::Asqtad(Tadpole::Plaquette), Kind::Hisq(0.0)] {
            let short = (IterationPrecision::Single, Some(Reconstruction::EighteenShort));
            named.extend(for_colours(kind, short, false));
        }
        let missing: Vec<&String> = named.iter().filter(|name| !there.contains(name.as_str())).collect();
        assert!(missing.is_empty() && named.len() > 20, "{missing:?}");
    }
}
