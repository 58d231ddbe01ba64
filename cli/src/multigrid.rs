//! Multigrid, from flags and settings, and what it did.
use super::text;
use crate::config::Settings;
use ferrite::Precision;
use ferrite::multigrid::{MOST_COARSENINGS, MOST_VECTORS, MultigridParams};
use ferrite::solve::{Method, MultigridReport};
use serde_json::{Value, json};

/// Resolves the settings for a solve.
pub fn resolve(settings: &mut Settings) -> MultigridParams {
    MultigridParams { check: settings.is_on("check-setup"), ..of_keys(settings, "") }
}

/// Names of the keys that begin with `mg-`.
pub fn names() -> impl Iterator<Item = &'static str> {
    Method::MULTIGRID.keys.iter().map(|key| key.name).filter(|name| name.starts_with("mg-"))
}

/// Parameters from the keys `prefix` and `mg-…`.
pub fn of_keys(settings: &mut Settings, prefix: &str) -> MultigridParams {
    let (default, key) = (MultigridParams::default(), |name: &str| format!("{prefix}mg-{name}"));
    let mut params = MultigridParams {
        vectors: settings.count(&key("vectors"), 8..=MOST_VECTORS).unwrap_or(default.vectors),
        levels: settings.count(&key("levels"), 2..=MOST_COARSENINGS + 1).unwrap_or(default.levels),
        relaxations: settings.count(&key("relaxations"), 0..=1000).unwrap_or(default.relaxations),
        improvements: settings.count(&key("improvements"), 0..=1000).unwrap_or(default.improvements),
        precision: settings
            .choice(&key("precision"), &[("half", Precision::Half), ("single", Precision::Single)])
            .or(default.precision),
        ..default
    };
    params.cycle.post_smoothing = settings.count(&key("smoothing"), 1..=1000).unwrap_or(default.cycle.post_smoothing);
    for (level, setting) in settings.all(&key("block")).into_iter().enumerate() {
        match text::extents(setting.text()) {
            Ok(_) if level >= MOST_COARSENINGS => {
                settings.wrong(&setting, format!("there are at most {MOST_COARSENINGS} levels with a coarser one"));
            }
            Ok(block) => params.blocks[level] = Some(block),
            Err(why) => settings.wrong(&setting, why),
        }
    }
    if !params.vectors.is_multiple_of(8)
        && let Some(setting) = settings.get(&key("vectors"))
    {
        settings.wrong(&setting, "has to be a multiple of 8");
    }
    params
}

/// Says of each of these keys that was given that it has no place here.
pub fn refuse(settings: &mut Settings, prefix: &str, names: impl Iterator<Item = &'static str>, why: &str) {
    for name in names {
        if let Some(setting) = settings.get(&format!("{prefix}{name}")) {
            settings.wrong(&setting, why);
        }
    }
}

/// Parameters as keys say them, for the settings of a run: `null` where the program chooses.
pub fn settings(params: &MultigridParams) -> Value {
    let MultigridParams { vectors, levels, blocks, relaxations, improvements, cycle, precision, .. } = params;
    let precision = precision.map(|precision| precision.to_string());
    json!({
        "vectors": vectors, "levels": levels, "blocks": blocks, "relaxations": relaxations, "improvements": improvements,
        "smoothing": cycle.post_smoothing, "precision": precision,
    })
}

/// Describes what multigrid did for people.
pub fn table(report: &MultigridReport) -> String {
    let mut table = format!("multigrid, set up in {:.3} s\n", report.setup_seconds);
    for level in &report.levels {
        let by = |[x, y, z, t]: [usize; 4]| format!("{x}×{y}×{z}×{t}");
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
                "                  vectors kept to {:.1e}, coarse operator right to {:.1e}, γ5-Hermitian to {:.1e}\n",
                check.near_null, check.galerkin, check.gamma5
            );
        }
    }
    table
}
