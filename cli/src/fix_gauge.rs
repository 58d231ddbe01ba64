//! `ferrite fix-gauge`.
use super::fields::help_of_output;
use super::link_job::LinkJob;
use super::verify::ReadFlags;
use super::{Context, Failure, Outcome, text};
use clap::{Args, ValueEnum};
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::host::HostGauge;
use ferrite::gauge::fixing::relax::{Gauge, Relaxation, RelaxationState, omega_for};
use ferrite_records::links::{BeforeAndAfter, FixGaugeRecord};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;
use tracing::info;

const EXAMPLES: &str = "\
Examples:
  ferrite fix-gauge cfg.000100.ildg -o coulomb.000100.ildg
  ferrite fix-gauge cfg.000100.ildg -o landau.000100.ildg --gauge landau --tol 1e-14

Over-relaxation until theta = sum tr D D+ / (3 V) of the divergence D is at the tolerance. Wall sources of `ferrite spectrum`
are for links in Coulomb gauge.";

/// Arguments of `fix-gauge`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct FixGaugeArguments {
    /// A gauge field in any format
    input: PathBuf,
    #[arg(short, long, value_name = "FILE", help = help_of_output("The file to write"))]
    output: PathBuf,
    /// The gauge to fix
    #[arg(long, value_name = "NAME", value_enum, default_value = "coulomb")]
    gauge: GaugeName,
    /// Target for theta
    #[arg(long, value_name = "EPS", value_parser = tolerance, default_value = "1e-12", allow_hyphen_values = true)]
    tol: f64,
    /// Over-relaxation, from 1 (none) to below 2 [default: by the lattice's extents]
    #[arg(long, value_name = "W", value_parser = omega, allow_hyphen_values = true)]
    overrelax: Option<f64>,
    /// Give up after this many sweeps over the lattice
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value = "20000",
          allow_hyphen_values = true)]
    max_sweeps: u32,
    #[command(flatten)]
    read: ReadFlags,
}

/// `--gauge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GaugeName {
    /// Each time by itself
    Coulomb,
    /// All four directions
    Landau,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        // Rounding errors of sums over eight links, squared.
        Ok(x) if x.is_finite() && x >= 1e-28 => Ok(x),
        _ => Err(format!("'{text}' is not a number of 1e-28 or more, which double precision can reach")),
    }
}

fn omega(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (1.0..2.0).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number from 1 to below 2")),
    }
}

/// Sweeps between two looks at θ.
const LOOK: usize = 10;

/// What came out.
struct FixedLinks {
    links: HostGauge,
    sweeps: usize,
    states: [RelaxationState; 2],
    plaquettes: [f64; 2],
    seconds: f64,
}

/// Reads, fixes, and writes what converged.
pub fn run(args: FixGaugeArguments, context: &Context) -> Outcome {
    let needs = |part: Part| vec![("links", part.links_bytes(Precision::Double))];
    let job = LinkJob::begin([&args.input, &args.output], &args.read, "fixing the gauge", needs, context)?;
    let lattice = job.lattice;
    let (kind, name) = match args.gauge {
        GaugeName::Coulomb => (Gauge::Coulomb, "Coulomb"),
        GaugeName::Landau => (Gauge::Landau, "Landau"),
    };
    let omega = args.overrelax.unwrap_or_else(|| omega_for(lattice, kind));
    let fixed = fix(&args, &job, kind, omega, context)?;
    let [before, after] = fixed.states;
    job.write(&fixed.links, &format!("{name} gauge, theta = {:.3e}", after.theta))?;
    let [plaquette_before, plaquette_after] = fixed.plaquettes;
    let record = FixGaugeRecord {
        links: job.record(),
        gauge: name.to_lowercase(),
        sweeps: fixed.sweeps,
        overrelax: omega,
        tol: args.tol,
        seconds: fixed.seconds,
        theta: BeforeAndAfter { before: before.theta, after: after.theta },
        functional: BeforeAndAfter { before: before.functional, after: after.functional },
        plaquette: BeforeAndAfter { before: plaquette_before, after: plaquette_after },
    };
    context.output.record(&record, || {
        format!(
            "{}: {name} gauge on {lattice}, {} sweeps with omega = {omega:.3}, {} on {}\n\
             theta       {:.3e}, before {:.3e}\nfunctional  {:.12}, before {:.12}\nplaquette   {:.12}, before {:.12}\n",
            args.output.display(),
            fixed.sweeps,
            text::seconds(fixed.seconds),
            job.device.describe(),
            after.theta,
            before.theta,
            after.functional,
            before.functional,
            plaquette_after,
            plaquette_before
        )
    })
}

/// Sweeps until θ is at the tolerance.
fn fix(args: &FixGaugeArguments, job: &LinkJob, kind: Gauge, omega: f64, context: &Context) -> Outcome<FixedLinks> {
    let begin = Instant::now();
    let domain = job.layout.domain(job.device.backend())?;
    let mut relaxation = Relaxation::new(&domain, &job.file.gauge, kind, omega)?;
    let (before, plaquette) = (relaxation.state()?, relaxation.plaquette()?.mean);
    let mut now = before;
    context.session.listen();
    loop {
        // Links that are not unitary can be such that no turn of a site can be put back into SU(3).
        if !now.theta.is_finite() {
            let (input, sweeps) = (args.input.display(), relaxation.sweeps());
            let why = format!(
                "{input}: theta is not a number after {sweeps} sweeps, as links are too far from SU(3): --reunitarise \
                 puts them back, or tells which one cannot be"
            );
            return Err(Failure::failed(why).shared());
        }
        if now.theta <= args.tol {
            break;
        }
        if relaxation.sweeps() >= args.max_sweeps as usize {
            let why = format!(
                "{}: theta is {:.3e} after {} sweeps, asked was {:e}: give --max-sweeps more, or another --overrelax",
                args.input.display(),
                now.theta,
                relaxation.sweeps(),
                args.tol
            );
            return Err(Failure::failed(why).shared());
        }
        if context.session.is_stopped(0) {
            let why = format!("ended at theta = {:.3e}; nothing was written", now.theta);
            return Err(context.session.stopped(why));
        }
        let rest = args.max_sweeps as usize - relaxation.sweeps();
        let mut sweeps = relaxation.sweeps();
        now = relaxation.relax_while(LOOK.min(rest), &mut || {
            sweeps += 1;
            if context.session.is_stopped(sweeps) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if relaxation.sweeps().is_multiple_of(100 * LOOK) {
            info!("{} sweeps: theta = {:.3e}", relaxation.sweeps(), now.theta);
        }
    }
    let (sweeps, after) = (relaxation.sweeps(), relaxation.plaquette()?.mean);
    let links = relaxation.finish()?;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(FixedLinks { links, sweeps, states: [before, now], plaquettes: [plaquette, after], seconds })
}
