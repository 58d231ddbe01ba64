//! Kernels that a solve will need. They are loaded while its files are read, because loading takes about 20 ms on an H200.
use ferrite::operators::Definition;
use ferrite::{LinkStorage, Precision};

/// Returns the modules of the kernels that a solve with an operator needs, in double precision and in the precision of the iteration.
/// `storage` is the requested link storage, if any; `cut` is true if several processes share the lattice. Formats without a kernel are left
/// out; the launch of such a kernel reports the error.
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
