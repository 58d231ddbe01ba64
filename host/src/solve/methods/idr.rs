//! IDR(s) on the Schur complement.
use super::krylov::krylov;
use super::{CountKey, Method};
use crate::domain::Result;
use crate::field::{DeviceField, FieldShape, FieldSpace};
use crate::multigrid::LevelLattice;
use crate::operators::{Key, KeyKind};
use solvers::{Patience, VectorSpace, inverter};

impl Method {
    /// IDR(s) on the Schur complement (van Gijzen and Sonneveld 2011).
    pub const IDR: &'static Method = &Method {
        name: "idr",
        titles: ["IDR(s)"; 2],
        help: "induced dimension reduction, which needs fewer applications of the operator than bicgstab in difficult \
               solves, but more vectors",
        keys: &[&DIMENSION.key],
        counts: &[&DIMENSION],
        heading: Some("IDR(s)"),
        patience: Some(patience),
        vectors: |request| 3 * request.counts.get(&DIMENSION) + 3,
        prepare: |_, _, _, _| {
            krylov(|_, request| {
                let s = request.counts.get(&DIMENSION);
                Box::new(inverter::idr(move |space: &FieldSpace| shadow(space, s)))
            })
        },
        ..Method::KRYLOV
    };
}

static DIMENSION: CountKey = CountKey {
    key: Key::new(
        "idr-s",
        "S",
        KeyKind::Count,
        "Dimension s of the shadow space, 1 to 16; an iteration has s + 1 applications of the operator [default: 4]",
        "4",
    ),
    range: 1..=16,
    default: 4,
};

/// Returns the patience of BiCGstab, converted to iterations of IDR(s), which have about twice as many applications of the operator.
fn patience(sites: usize) -> Patience {
    let bicgstab = Method::BICGSTAB.patience.expect("it has one");
    Patience { least: bicgstab(sites).least / 2, ..bicgstab(sites) }
}

/// Returns random vectors, which are the same for all right-hand sides and on every process grid.
fn shadow(space: &FieldSpace, s: usize) -> Result<Vec<DeviceField>> {
    let level = LevelLattice::finest(space.domain());
    let one = FieldSpace::new(space.domain(), FieldShape::new(space.kind(), space.precision(), 1));
    let (mut random, mut vector) = (level.space(1).allocate()?, one.allocate()?);
    let shadow = |number| {
        level.fill(&mut random, 0, number, SEED)?;
        one.convert_from(&random, &mut vector)?;
        let mut block = space.allocate()?;
        (0..space.nrhs()).try_for_each(|rhs| one.copy_to_rhs(&vector, &mut block, rhs))?;
        Ok(block)
    };
    (0..s).map(shadow).collect()
}

/// Seed of the random vectors of the shadow space.
const SEED: u64 = 1;
