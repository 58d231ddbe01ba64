//! The preconditioner of GCR-DD, from flags and settings.
use super::plan::PRECISIONS;
use super::text;
use crate::config::Settings;
use clap::Args;
use comms::ProcessGrid;
use ferrite::lattice::Lattice;
use ferrite::solve::{Method, Schwarz};

/// Flags of the preconditioner, as typed.
#[derive(Args)]
pub struct SchwarzFlags {
    /// Steps of minimum residual in each domain [default: 10]
    #[arg(long, value_name = "N", help_heading = "GCR-DD", allow_hyphen_values = true)]
    mr_steps: Option<String>,
    /// Over-relaxation of these steps [default: 1]
    #[arg(long, value_name = "OMEGA", help_heading = "GCR-DD", allow_hyphen_values = true)]
    mr_omega: Option<String>,
    /// Precision in the domains: double, single, half or fp16 [default: half]
    #[arg(long, value_name = "NAME", help_heading = "GCR-DD")]
    domain_precision: Option<String>,
    /// Extents X,Y,Z,T of a domain, even ones that divide the part of each process [default: that part as a whole]
    #[arg(long, value_name = "X,Y,Z,T", help_heading = "GCR-DD")]
    domain: Option<String>,
    /// Sites of its neighbours that the domain of a process has besides its own part: 0 or 2 [default: 0]
    #[arg(long, value_name = "N", help_heading = "GCR-DD", allow_hyphen_values = true)]
    domain_overlap: Option<String>,
    /// Directions after which GCR restarts [default: 16]
    #[arg(long, value_name = "K", help_heading = "GCR-DD", allow_hyphen_values = true)]
    kmax: Option<String>,
}

const KEYS: [&str; 6] = ["mr-steps", "mr-omega", "domain-precision", "domain", "domain-overlap", "kmax"];

impl SchwarzFlags {
    /// Adds the flags to the settings.
    pub fn add_to(&self, settings: &mut Settings) {
        let values =
            [&self.mr_steps, &self.mr_omega, &self.domain_precision, &self.domain, &self.domain_overlap, &self.kmax];
        for (key, value) in KEYS.into_iter().zip(values) {
            settings.flag(key, value.as_deref());
        }
    }
}

/// Resolves the settings for a solve by `method` on parts of extents `local`, as far as they are known.
pub fn resolve(settings: &mut Settings, method: Method, local: Option<Lattice>) -> Schwarz {
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
    if method != Method::GcrDd {
        for key in KEYS {
            if let Some(setting) = settings.get(key) {
                settings.wrong(&setting, "belongs to --solver gcr-dd");
            }
        }
    }
    schwarz
}
