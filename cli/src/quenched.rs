//! Command `ferrite generate quenched`.
use super::{Failure, Outcome, text};
use clap::Args;
use ferrite::observables::quantity::PLAQUETTE;
use ferrite_records::links::{GenerateRecord, QuenchedSweeps};
use ferrite_tasks::failure::ReadBy;
use ferrite_tasks::quenched::{QuenchedRun, QuenchedStart, QuenchedTarget};
use std::cmp::Ordering;

/// Flags of `generate quenched`, as typed.
#[derive(Args)]
#[command(next_help_heading = "Options of quenched")]
pub struct QuenchedFlags {
    /// Coupling β of the action −(β/3) Σ Re tr P
    #[arg(long, value_name = "BETA", value_parser = beta, allow_hyphen_values = true,
        required_if_eq("kind", "quenched"))]
    beta: Option<f64>,
    /// Number of sweeps; each is a heat bath of all links, followed by over-relaxation
    #[arg(long, value_name = "N", required_if_eq("kind", "quenched"))]
    sweeps: Option<u32>,
    /// Number of over-relaxation updates of all links in a sweep [default: 4]
    #[arg(long, value_name = "K")]
    overrelax: Option<u32>,
    /// Number of thermalisation sweeps before those of --sweeps, neither written nor averaged [default: 0]
    #[arg(long, value_name = "N")]
    thermalise: Option<u32>,
    /// Write a configuration every M sweeps, with the sweep number in the file name [default: only the last one, under the name
    /// as given]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    every: Option<u32>,
    /// Initial links: cold (all links 1), hot (Haar measure) or a file [default: cold]
    #[arg(long, value_name = "WHAT")]
    start: Option<String>,
    /// Number of sweeps that made the file of --start, to continue with the same random numbers [default: 0]
    #[arg(long, value_name = "N", requires = "start")]
    first_sweep: Option<u32>,
}

fn beta(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..=1e6).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number from 0 to 1e6")),
    }
}

impl QuenchedFlags {
    /// Returns the quenched run that the flags describe.
    pub fn run(&self, seed: u64, target: QuenchedTarget) -> QuenchedRun {
        QuenchedRun {
            beta: self.beta.unwrap_or(0.0),
            seed,
            overrelax: self.overrelax.unwrap_or(4),
            first_sweep: self.first_sweep.unwrap_or(0),
            thermalise: self.thermalise.unwrap_or(0),
            sweeps: self.sweeps.unwrap_or(0),
            every: self.every,
            start: self.start(),
            target,
            by: ReadBy::Flags,
        }
    }
    /// Returns the links from which the run starts.
    pub fn start(&self) -> QuenchedStart {
        match self.start.as_deref() {
            None | Some("cold") => QuenchedStart::Cold,
            Some("hot") => QuenchedStart::Hot,
            Some(file) => QuenchedStart::File(file.into()),
        }
    }
    /// Fails if a flag of `generate quenched` is given. The other kinds of `generate` call this function.
    pub fn refuse(&self) -> Outcome {
        let given = [
            ("--beta", self.beta.is_some()),
            ("--sweeps", self.sweeps.is_some()),
            ("--overrelax", self.overrelax.is_some()),
            ("--thermalise", self.thermalise.is_some()),
            ("--every", self.every.is_some()),
            ("--start", self.start.is_some()),
            ("--first-sweep", self.first_sweep.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                Err(Failure::refused(format!("{flag} applies to `ferrite generate quenched` only: remove {flag}")))
            }
            None => Ok(()),
        }
    }
}

/// Returns the configurations of a run as text for people.
pub fn table(record: &GenerateRecord, run: &QuenchedSweeps) -> String {
    let mut out = String::new();
    for file in record.files.iter().flatten() {
        out += &format!("{}\n", file.display());
    }
    let QuenchedSweeps { beta, first_sweep, last_sweep, sweeps, overrelax, .. } = run;
    let (first, last) = (u64::from(*first_sweep) + 1, u64::from(*last_sweep));
    let updates = text::count(*overrelax as usize, "over-relaxation");
    let made = match last.cmp(&first) {
        Ordering::Less => "no sweeps".to_string(),
        Ordering::Equal => format!("sweep {last} with {updates}"),
        Ordering::Greater => format!("sweeps {first} to {last} with {updates} each"),
    };
    out += &format!(
        "quenched links on {}, β = {}, {made}, {:.1} s\n",
        text::by(record.lattice),
        text::number(*beta),
        record.seconds.unwrap_or_default()
    );
    let plaquette = &record.plaquette;
    if *sweeps > 0 {
        out += &PLAQUETTE.line_of(plaquette.mean);
    }
    if let (2.., Some(mean), Some(error), Some(time)) =
        (*sweeps, plaquette.average, plaquette.error, plaquette.autocorrelation)
    {
        let name = format!("mean of {sweeps} sweeps");
        out += &format!("  {name:<18} {mean:.6} ± {error:.6}, autocorrelation time {time:.1} sweeps\n");
    }
    out
}
