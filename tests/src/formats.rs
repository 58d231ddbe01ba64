//! The formats that kernels are compiled for, as their tables list them: checks go through all that exist.
use ferrite::{FermionKind, LinkStorage, Precision};
use gpu_kernels::blas::NORM2;
use gpu_kernels::staggered::{IMPROVED_DSLASH, STAGGERED_DSLASH};
use gpu_kernels::wilson::WILSON_DSLASH;
use gpu_kernels::{Format, Table};

/// A precision of fields, and how links next to them are stored.
pub type LinkFormat = (Precision, LinkStorage);

fn formats(table: &Table) -> impl Iterator<Item = Format> {
    table.instances().map(|instance| instance.format)
}
fn of_links(table: &Table) -> Vec<LinkFormat> {
    formats(table).map(|f| (f.precision.expect("of fields"), f.links.expect("of links"))).collect()
}

/// Formats of the Wilson and the Wilson-clover operator.
pub fn wilson() -> Vec<LinkFormat> {
    of_links(WILSON_DSLASH.0)
}
/// Formats of the naive staggered operator.
pub fn naive() -> Vec<LinkFormat> {
    of_links(STAGGERED_DSLASH.0)
}
/// Formats of improved staggered operators, with the storage of their long links.
pub fn improved() -> Vec<LinkFormat> {
    of_links(IMPROVED_DSLASH.0)
}
/// Precisions of fermion fields of a kind.
pub fn fields(kind: FermionKind) -> Vec<Precision> {
    formats(NORM2.0).filter(|f| f.kind == Some(kind)).map(|f| f.precision.expect("of fields")).collect()
}
/// Name of a format in reports.
pub fn name((precision, storage): LinkFormat) -> String {
    format!("{precision} recon-{storage}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::clover::{CLOVER_DSLASH, CLOVER_DSLASH_DOT, CLOVER_DSLASH_DOTS};
    use gpu_kernels::exterior::{
        IMPROVED_EXTERIOR, IMPROVED_EXTERIOR_DOT, STAGGERED_EXTERIOR, STAGGERED_EXTERIOR_DOT, WILSON_EXTERIOR,
        WILSON_EXTERIOR_DOTS,
    };
    use gpu_kernels::staggered::{IMPROVED_DSLASH_DOT, STAGGERED_DSLASH_DOT};
    use gpu_kernels::wilson::{WILSON_DSLASH_DOT, WILSON_DSLASH_DOTS};

    fn sorted(formats: Vec<LinkFormat>) -> Vec<String> {
        let mut names: Vec<_> = formats.into_iter().map(|(p, s)| format!("{p} {s}")).collect();
        names.sort();
        names
    }

    /// Should a table lose a format, checks would go on without it.
    #[test]
    fn these_formats_exist() {
        let expect = |found: Vec<LinkFormat>, expected: &[&str]| {
            let mut expected: Vec<_> = expected
                .iter()
                .flat_map(|line| {
                    let (precision, storages) = line.split_once(": ").expect("a precision");
                    storages.split(' ').map(move |storage| format!("{precision} {storage}"))
                })
                .collect();
            expected.sort();
            assert_eq!(sorted(found), expected);
        };
        expect(wilson(), &["double: 18 12 8 12t 8t", "single: 18 12 8 12t 8t", "half: 18 12 12t", "fp16: 18 12 12t"]);
        expect(naive(), &["double: 18 12 8", "single: 18 12 8 18h 12h 8h", "half: 18 12 8"]);
        expect(
            improved(),
            &["double: 18 13 12 9 8", "single: 18 13 12 9 8 18h 13h 12h 9h 8h 13f 9f", "half: 18 13 12 9 8"],
        );
        assert_eq!(fields(FermionKind::Wilson), Precision::ALL);
        assert_eq!(fields(FermionKind::Staggered), Precision::ALL[..3]);
    }

    #[test]
    fn all_kernels_of_an_operator_have_the_same_formats() {
        for (formats, tables) in [
            (
                wilson(),
                &[
                    WILSON_DSLASH_DOT.0,
                    WILSON_DSLASH_DOTS.0,
                    CLOVER_DSLASH.0,
                    CLOVER_DSLASH_DOT.0,
                    CLOVER_DSLASH_DOTS.0,
                ][..],
            ),
            (wilson(), &[WILSON_EXTERIOR.0, WILSON_EXTERIOR_DOTS.0]),
            (naive(), &[STAGGERED_DSLASH_DOT.0, STAGGERED_EXTERIOR.0, STAGGERED_EXTERIOR_DOT.0]),
            (improved(), &[IMPROVED_DSLASH_DOT.0, IMPROVED_EXTERIOR.0, IMPROVED_EXTERIOR_DOT.0]),
        ] {
            for table in tables {
                assert_eq!(sorted(of_links(table)), sorted(formats.clone()), "{}", table.name);
            }
        }
    }
}
