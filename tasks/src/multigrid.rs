//! Parameters of multigrid from flags and inputs, and a table of its work.
use ferrite::Precision;
use ferrite::multigrid::{MOST_COARSENINGS, MOST_VECTORS, MultigridParams};
use ferrite::solve::MultigridReport;
use ferrite_inputs::text::by;
use ferrite_inputs::values::{Count, Extents, Kind, Raw, Value, Word};
use ferrite_inputs::{Given, Input, Listed, vocabularies};
use serde::Deserialize;

vocabularies! {
    /// Values of `mg-precision`, the precision of near-null vectors and coarse operators.
    SetupPrecisions: Precision = [("half", Precision::Half), ("single", Precision::Single)];
}

/// Extents of the aggregates of a level, as typed.
#[derive(Debug)]
struct AggregateExtents;
impl Value for AggregateExtents {
    type Out = [usize; 4];
    const KIND: Kind = Kind::Texts;
    fn of(raw: &Raw) -> Result<[usize; 4], String> {
        Extents::of(raw)
    }
}

/// Keys of multigrid, `mg-…`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct MultigridKeys {
    mg_vectors: Given<Count<8, MOST_VECTORS>>,
    mg_levels: Given<Count<2, { MOST_COARSENINGS + 1 }>>,
    mg_block: Listed<AggregateExtents>,
    mg_smoothing: Given<Count<1, 1000>>,
    mg_relaxations: Given<Count<0, 1000>>,
    mg_improvements: Given<Count<0, 1000>>,
    mg_precision: Given<Word<SetupPrecisions>>,
}

/// Returns the multigrid parameters from the keys of a table.
pub fn of_keys(input: &mut Input, table: &str) -> MultigridParams {
    let default = MultigridParams::default();
    let keys: MultigridKeys = input.read(table);
    let mut params = MultigridParams {
        vectors: keys.mg_vectors.or(default.vectors),
        levels: keys.mg_levels.or(default.levels),
        relaxations: keys.mg_relaxations.or(default.relaxations),
        improvements: keys.mg_improvements.or(default.improvements),
        precision: keys.mg_precision.value().or(default.precision),
        ..default
    };
    params.cycle.post_smoothing = keys.mg_smoothing.or(default.cycle.post_smoothing);
    for (level, block) in keys.mg_block.iter().enumerate() {
        match params.blocks.get_mut(level) {
            Some(place) => *place = block.value(),
            None => input.wrong(
                block,
                format!(
                    "give the aggregates of at most {MOST_COARSENINGS} levels; the coarsest level has no aggregates"
                ),
            ),
        }
    }
    if !params.vectors.is_multiple_of(8) {
        input.wrong(&keys.mg_vectors, format!("{} is not a multiple of 8", params.vectors));
    }
    params
}

/// Returns a table of the multigrid levels with their iterations and times, for people.
pub fn table(report: &MultigridReport) -> String {
    let mut table = format!("multigrid, set up in {:.3} s\n", report.setup_seconds);
    for level in &report.levels {
        let below = match (level.block, level.vectors) {
            (Some(block), Some(vectors)) => format!(", aggregates {}, {vectors} vectors", by(block)),
            _ => String::new(),
        };
        table += &format!(
            "  {:>14}: {:>6} iterations, {:.3} s{below}\n",
            by(level.lattice),
            level.iterations,
            level.seconds
        );
        if let Some(check) = level.check {
            table += &format!(
                "                  near-null vectors preserved to {:.1e}, coarse operator equal to P^+ M P to {:.1e} \
                 and γ5-Hermitian to {:.1e}\n",
                check.near_null, check.galerkin, check.gamma5
            );
        }
    }
    table
}
