//! Command `ferrite forces`, which computes the force of each part of an action before a run.
use super::super::{Context, Outcome, text};
use clap::Args;
use ferrite_records::ensemble::PartForce;
use ferrite_tasks::ensemble::input::{EnsembleInput, StartLinks};
use ferrite_tasks::ensemble::{forces, start};
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite forces run.toml
  ferrite forces run.toml run/cfg.000100.ildg
  ferrite forces run.toml run/cfg.000100.ildg --set 'trajectory.steps=[4,2,2]'

For each monomial of the action in an input of `ferrite rhmc`, with pseudofermions from the heat bath of a trajectory, prints the
root mean square over links and the maximum of the force |F|, where |F|^2 = sum of |F_jk|^2 = -tr F^2; and both times the longest
step in which the integrator applies this force. These products should be of similar size within a level; a force with a much
smaller product may move to an outer level. F = dP/dtau if momenta have the weight exp(-1/2 sum of |P|^2).";

/// Arguments of `forces`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ForceArguments {
    /// Input file of `ferrite rhmc`
    input: PathBuf,
    /// Gauge configuration, instead of the initial links of the input
    #[arg(value_name = "CONFIGURATION")]
    configuration: Option<PathBuf>,
    /// Override a key of the input, such as gauge.beta=5.7 or fermion.0.mass=0.02; repeat the flag for several keys
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Number of the trajectory whose noise generates the pseudofermions [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    trajectory: Option<u32>,
}

/// Computes the forces, and prints them.
pub fn run(args: &ForceArguments, context: &Context) -> Outcome {
    let comm = &context.comm;
    let input = EnsembleInput::read(&args.input, &args.set, |settings| context.add_to(settings));
    let mut input = comm.agree(input)?;
    if let Some(path) = &args.configuration {
        input.start = StartLinks::File(path.clone());
    }
    let layout = input.device.layout.cut(comm, input.lattice, input.hops())?;
    let device = input.device.open(comm)?;
    let trajectory = args.trajectory.unwrap_or(1);
    let record = forces::measure(&input, &args.input, trajectory, &layout, &device, &context.session)?;
    context.output.record(&record, || {
        let mut all = format!("{}: forces on {}, {}\n", args.input.display(), input.lattice, start(&input));
        let _ = writeln!(
            all,
            "{:>10} {:>10} {:>6} {:>9} {:>10} {:>10}  monomial",
            "rms |F|", "max |F|", "level", "kick", "rms x kick", "max x kick"
        );
        record.forces.iter().for_each(|one| all += &line(one));
        all
    })
}

fn line(force: &PartForce) -> String {
    let PartForce { name, level, kick, rms, max, iterations, seconds } = force;
    let solves = iterations.map_or(String::new(), |n| format!(", {}", text::count(n.force, "iteration")));
    let kick = kick.abs();
    format!(
        "{rms:>10.4} {max:>10.4} {level:>6} {kick:>9.5} {:>10.5} {:>10.5}  {name}{solves}, {}\n",
        rms * kick,
        max * kick,
        text::seconds(*seconds)
    )
}
