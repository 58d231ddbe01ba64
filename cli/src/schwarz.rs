//! The preconditioner of GCR-DD, from flags and settings.
use super::plan::PRECISIONS;
use super::text;
use crate::config::Settings;
use comms::ProcessGrid;
use ferrite::lattice::Lattice;
use ferrite::solve::Schwarz;

/// Resolves the settings for a solve on parts of extents `local`, as far as they are known.
pub fn resolve(settings: &mut Settings, local: Option<Lattice>) -> Schwarz {
    let default = Schwarz::default();
    let schwarz = Schwarz {
        steps: settings.count("mr-steps", 1..=1000).unwrap_or(default.steps),
        omega: settings.number("mr-omega", "a number above 0 and below 2", |w| w > 0.0 && w < 2.0).unwrap_or(1.0),
        precision: settings.choice("domain-precision", &PRECISIONS).unwrap_or(default.precision),
        domain: settings.parsed("domain", |typed| {
            let extents = text::extents(typed)?;
            let fits = |local: Lattice| Schwarz { domain: Some(extents), ..default }.check(local, &ProcessGrid::SINGLE);
            local.map_or(Ok(()), fits).map_err(|why| why.to_string()).map(|()| extents)
        }),
        overlap: settings.choice("domain-overlap", &[("0", 0), ("2", 2)]).unwrap_or(default.overlap),
        k_max: settings.count("kmax", 1..=1000).unwrap_or(default.k_max),
    };
    if schwarz.overlap > 0 && schwarz.domain.is_some() {
        settings.conflict("domain", "domain-overlap", "domains that overlap are the parts of the processes");
    }
    schwarz
}
