//! `ferrite forces`: what the force of each part of an action is, before a run.
use super::super::{Context, Failure, Outcome, fields, text};
use super::course::{failed, functions};
use super::input::{EnsembleInput, StartLinks};
use super::{first_links, needs, settings};
use clap::Args;
use ferrite::field::GaugeField;
use ferrite::field::host::Matrix;
use ferrite::hmc::action::GaugeActionForce;
use ferrite::hmc::force::Force;
use ferrite::hmc::integrator::LongestMoves;
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite_records::ensemble::{ForceIterations, ForcesRecord, PartForce};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  ferrite forces run.toml
  ferrite forces run.toml run/cfg.000100.ildg
  ferrite forces run.toml run/cfg.000100.ildg --set 'trajectory.steps=[4,2,2]'

For each part of the action of an input of `ferrite rhmc`, with pseudofermions from the heat bath of a trajectory: the norm
of the force on a link, |F|^2 = sum of |F_jk|^2 = -tr F^2, its root mean square over links and its largest value; and the
same times the longest time for which the integrator takes the force at once. Forces on a level should be of one size there; one that
is much smaller may go to an outer level. F = dP/dtau where momenta have the weight exp(-1/2 sum of |P|^2).";

/// Arguments of `forces`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ForceArguments {
    /// Input file of `ferrite rhmc`
    input: PathBuf,
    /// Links, instead of those that the input starts with
    #[arg(value_name = "CONFIGURATION")]
    configuration: Option<PathBuf>,
    /// Override a key of the input, such as gauge.beta=5.7 or fermion.0.mass=0.02
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Number of the trajectory whose noise makes the pseudofermions [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    trajectory: Option<u32>,
}

/// Where a force is: its level, and the longest kick there.
fn places(input: &EnsembleInput, is_there: impl Fn(usize) -> bool, of_gauge: bool) -> (usize, f64) {
    let mut time = input.plan.length;
    for (number, level) in input.plan.levels.iter().enumerate() {
        let LongestMoves { gauge, others, drift } = level.scheme.longest_moves(time, level.steps);
        if is_there(number) {
            return (number, if of_gauge { gauge } else { others });
        }
        time = drift;
    }
    (input.plan.levels.len(), 0.0)
}

/// Computes and prints.
pub fn run(args: &ForceArguments, context: &Context) -> Outcome {
    let comm = &context.comm;
    let input = EnsembleInput::read(&args.input, &args.set, |settings| context.add_to(settings));
    let mut input = comm.agree(input)?;
    if let Some(path) = &args.configuration {
        input.start = StartLinks::File(path.clone());
    }
    let layout = input.device.layout.cut(comm, input.lattice, input.hops())?;
    let device = input.device.open(comm)?;
    needs::expect_fit(&input, layout.cut())?;
    needs::batches(&input, &[], &layout, &device, comm)?;
    let gauge = first_links(&input, &layout, context)?;
    // A force is brought to the host.
    fields::require_host_memory(comm, layout.local(), 2 * 576, "links and a force")?;
    let number = args.trajectory.unwrap_or(1);
    let found = {
        let domain = layout.domain(device.backend())?;
        let thin = GaugeField::upload(&domain, &gauge)?;
        let links = EvolvingLinks::new(&thin, input.precision())?;
        let plan = &input.plan;
        let quarks = input.quarks();
        let functions = functions(&quarks, &quarks.intervals(&links).map_err(failed)?)?;
        let mut quarks = quarks.parts(&domain, functions).map_err(failed)?;
        let mut found = Vec::new();
        let mut momenta = MomentumField::zero(&domain, input.precision())?;
        let mut norms = |force: &dyn Force| -> Outcome<([f64; 2], f64)> {
            let begin = Instant::now();
            momenta.scale(0.0)?;
            force.kick(&links, 1.0, &mut momenta).map_err(failed)?;
            let matrices = momenta.download()?;
            let seconds = begin.elapsed().as_secs_f64();
            let square = |f: &Matrix| f.iter().flatten().map(num_complex::Complex64::norm_sqr).sum::<f64>();
            let squares: Vec<f64> = matrices.links().iter().map(square).collect();
            let mut sum = [squares.iter().sum::<f64>()];
            comm.sum(&mut sum)?;
            // A maximum passes over what is no number.
            let most = squares.iter().copied().fold(0.0, solvers::worse_residual);
            let most = comm.largest(if most.is_nan() { f64::INFINITY } else { most })?;
            let count = 4 * layout.lattice().volume();
            Ok(([(sum[0] / count as f64).sqrt(), most.sqrt()], seconds))
        };
        let gauge = GaugeActionForce { action: plan.gauge, single: plan.single_gauge_force };
        let ([rms, largest], seconds) = norms(&gauge)?;
        let (level, kick) = places(&input, |level| plan.levels[level].gauge, true);
        found.push(PartForce { name: gauge.name(), level, kick, rms, max: largest, iterations: None, seconds });
        for (part, quarks) in quarks.iter_mut().enumerate() {
            quarks.draw(&links, plan.seed, number).map_err(failed)?;
            let of_heat_bath = quarks.take_iterations();
            let ([rms, largest], seconds) = norms(&**quarks)?;
            let iterations = Some(ForceIterations { heat_bath: of_heat_bath, force: quarks.take_iterations() });
            let (level, kick) = places(&input, |level| plan.levels[level].quarks.contains(&part), false);
            found.push(PartForce { name: quarks.name(), level, kick, rms, max: largest, iterations, seconds });
        }
        found
    };
    if found.iter().any(|one| !(one.rms.is_finite() && one.max.is_finite())) {
        let why = format!("{}: a force is NaN: check the links with `ferrite verify`", settings::start(&input));
        return Err(Failure::failed(why).shared());
    }
    let record = ForcesRecord {
        input: args.input.clone(),
        links: settings::start(&input),
        lattice: input.lattice.size(),
        trajectory: number,
        forces: found,
        place: device.record(&layout),
    };
    context.output.record(&record, || {
        let mut all = format!("{}: forces on {}, {}\n", args.input.display(), input.lattice, settings::start(&input));
        let _ = writeln!(
            all,
            "{:>10} {:>10} {:>6} {:>9} {:>10} {:>10}  part",
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
