//! Command `ferrite eigenvalues`.
use super::keys::OperatorFlags;
use super::{Context, Outcome, text};
use clap::Args;
use ferrite_records::operator::EigenvaluesLine;
use ferrite_tasks::eigenvalues::{EigenvalueRequest, EigenvalueSettings, FoundEigenvalues};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite eigenvalues cfg.000100.ildg --operator clover --csw 1.2 --mass 0.05
  ferrite eigenvalues run/cfg.*.ildg --operator hisq --mass 0.01 --tol 1e-4

The matrix is K = M^+ M with the even-odd preconditioned operator M on the even sites, as in solvers and `ferrite rhmc`: for
Wilson fermions M = 1 - kappa^2 D_eo D_oe, for clover 1 - A^-1 D_eo A^-1 D_oe / 4, or with --schur asymmetric
A - D_eo A^-1 D_oe / 4. For staggered operators K = M^+ M = m^2 - D^2/4, and eigenvalues of D^+ D are also printed. The Lanczos
method finds the largest eigenvalue. The smallest one is found by the same method for K^-1, which is applied by CG in double
precision.";

/// Arguments of `eigenvalues`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct EigenvalueArguments {
    /// Gauge configurations, in any supported format
    #[arg(required = true, value_name = "CONFIGURATION")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    flags: OperatorFlags,
    /// Maximum residual of a Ritz vector, relative to its Ritz value [default: 1e-6]
    #[arg(long, value_name = "TOL", value_parser = tolerance, allow_hyphen_values = true)]
    tol: Option<f64>,
    /// Maximum number of Lanczos steps for each of the two eigenvalues [default: 500]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), allow_hyphen_values = true)]
    steps: Option<u32>,
    /// Maximum number of CG iterations in a Lanczos step for the smallest eigenvalue [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000), allow_hyphen_values = true)]
    max_iterations: Option<u32>,
    /// Seed of the noise vector with which Lanczos begins [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seed: Option<u64>,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (1e-12..1.0).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number of at least 1e-12 and below 1")),
    }
}

/// Computes the extreme eigenvalues on each configuration, and prints them.
pub fn run(args: &EigenvalueArguments, context: &Context) -> Outcome {
    let usual = EigenvalueSettings::default();
    let settings = EigenvalueSettings {
        tol: args.tol.unwrap_or(usual.tol),
        steps: args.steps.map_or(usual.steps, |steps| steps as usize),
        max_iterations: args.max_iterations.map_or(usual.max_iterations, |iterations| iterations as usize),
        seed: args.seed.unwrap_or(usual.seed),
    };
    let device = context.device_choice()?;
    let request = EigenvalueRequest::read(&args.files, device, settings, &context.session, |input| {
        context.add_to(input);
        args.flags.add_to(input);
    })?;
    let record = request.find(&context.session, |found| context.output.part(&table(found, settings.tol)))?;
    context.output.record(&record, String::new)
}

/// Returns the eigenvalues on a configuration as text for people.
fn table(found: &FoundEigenvalues, tol: f64) -> String {
    let EigenvaluesLine { file, mass, largest, smallest, condition, d_dagger_d, .. } = found.line;
    let line = |name: &str, text: String| format!("{name:<21}{text}\n");
    let ended = |off: f64, value: f64| if off <= 2.0 * tol * value { "" } else { ", not converged: increase --steps" };
    let mut all = format!("{}: K of the {}, m = {}\n", file.display(), found.headline, text::rounded(*mass, 6));
    let (high, residual) = (largest.value, found.bounds.largest.residual);
    all += &line(
        "largest eigenvalue",
        format!("{high:.9e} ± {residual:.1e}, {}{}", text::count(largest.steps, "step"), ended(residual, high)),
    );
    let low = smallest.value;
    let off = (smallest.high - low).max(low - smallest.low);
    all += &line(
        "smallest eigenvalue",
        format!(
            "{low:.9e} ± {off:.1e}, {} with {}{}",
            text::count(smallest.steps, "step"),
            text::count(smallest.iterations, "iteration"),
            ended(off, low)
        ),
    );
    all += &line("condition number", format!("{condition:.6e}"));
    if let Some(of_hops) = d_dagger_d {
        all += &line("D^+ D", format!("{:.9e} to {:.9e}", of_hops.smallest, of_hops.largest));
    }
    all
}
