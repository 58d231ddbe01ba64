//! Kernels that a solve will need are loaded while its files are read: on a GPU that takes some 20 ms.
use super::plan::{PRECISIONS, name_of};
use super::staggered::Kind;
use ferrite::solve::{IterationPrecision, Operator};

/// Modules of kernels for Wilson and clover operators. `cut`: the lattice has faces.
pub fn for_spinors(operator: Operator, precision: IterationPrecision, cut: bool) -> Vec<String> {
    let precision = name_of(&PRECISIONS, precision);
    let mut modules = vec!["wilson_double".into(), "convert".into(), format!("blas_{precision}")];
    modules.extend(match operator {
        Operator::Wilson(_) => vec![format!("wilson_{precision}")],
        Operator::Clover(..) => vec!["clover_setup".into(), "clover_double".into(), format!("clover_{precision}")],
    });
    if cut {
        modules.extend(["exterior_double".into(), format!("exterior_{precision}")]);
    }
    with_common(modules, "blas_double", cut)
}

/// The same for staggered operators.
pub fn for_colours(kind: Kind, precision: IterationPrecision, cut: bool) -> Vec<String> {
    let precision = name_of(&PRECISIONS, precision);
    let family = match kind {
        Kind::Naive => "staggered",
        Kind::Asqtad(_) => "improved",
        Kind::Hisq(_) => "improved_u3",
    };
    let mut modules = vec!["convert_colour".into(), format!("{family}_double"), format!("{family}_{precision}")];
    if cut {
        modules.extend(["exterior_colour_double".into(), format!("exterior_colour_{precision}")]);
    }
    with_common(modules, "blas_colour", cut)
}

/// Links and fields are brought to the device first.
fn with_common(modules: Vec<String>, algebra: &str, cut: bool) -> Vec<String> {
    let faces = if cut { vec!["faces"] } else { vec![] };
    let common = ["smeared", "transfer", algebra].into_iter().chain(faces).map(String::from);
    let mut all: Vec<String> = common.chain(modules).collect();
    all.dedup();
    all
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
                named.extend(for_spinors(wilson.into(), precision, cut));
                named.extend(for_spinors(clover.into(), precision, cut));
                if precision != IterationPrecision::Fp16 {
                    for kind in [Kind::Naive, Kind::Asqtad(Tadpole::Plaquette), Kind::Hisq(0.0)] {
                        named.extend(for_colours(kind, precision, cut));
                    }
                }
            }
        }
        let missing: Vec<&String> = named.iter().filter(|name| !there.contains(name.as_str())).collect();
        assert!(missing.is_empty() && named.len() > 20, "{missing:?}");
    }
}
