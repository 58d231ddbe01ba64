//! Kernels that a solve will need, which are loaded while its files are read: on an H200 that takes some 20 ms.
use ferrite::operators::Definition;
use ferrite::{LinkStorage, Precision};

/// Returns the modules of the kernels of an operator in double precision and in the precision of the iteration, with the requested link
/// storage, if one was requested. `cut`: the lattice has faces. Kernels that do not exist are reported when they are launched.
pub fn modules(definition: &Definition, precision: Precision, storage: Option<LinkStorage>, cut: bool) -> Vec<String> {
    let mut modules: Vec<String> = Vec::new();
    for (table, format) in definition.kernels((precision, storage.unwrap_or_default()), cut) {
        let module = table.instance(format).map(|instance| instance.module);
        if let Some(module) = module.filter(|module| !modules.iter().any(|known| known == module)) {
            modules.push(module.into());
        }
    }
    modules
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite::operators::{ASQTAD, CLOVER, HISQ, STAGGERED, WILSON};

    #[test]
    fn the_operators_kernels_are_among_them() {
        let has = |modules: Vec<String>, wanted: &[&str]| {
            assert!(wanted.iter().all(|module| modules.iter().any(|m| m == module)), "{modules:?}: {wanted:?}");
        };
        has(
            modules(&WILSON, Precision::Half, None, true),
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
        has(modules(&CLOVER, Precision::Single, temporal, false), &["clover", "clover_double", "clover_single_t"]);
        has(modules(&STAGGERED, Precision::Single, None, false), &["staggered_double", "staggered_single"]);
        let half = Some(LinkStorage::FULL.in_half());
        has(modules(&ASQTAD, Precision::Single, half, true), &["staggered_single_h", "exterior_single_h"]);
        has(modules(&HISQ, Precision::Half, None, false), &["staggered_double", "staggered_half_u3"]);
    }
}
