//! Command `ferrite measure`.
mod loops;

use super::verify::ReadFlags;
use super::{Context, Failure, Outcome, text};
use clap::{Args, ValueEnum};
use ferrite::gauge::measure::Plaquettes;
use ferrite::observables::flow::FlowAction;
use ferrite::observables::loops::plaquette_text;
use ferrite::observables::quantity::{CHARGE, ENERGY_DENSITY, FLOW_TIME, POLYAKOV_LOOP, RECTANGLE, T0, W0};
use ferrite_records::measure::MeasurementLine;
use ferrite_records::observables::{FieldStrengthRecord, LoopsRecord, PlaquetteMeans};
use ferrite_tasks::fields::Reading;
use ferrite_tasks::measure::{FlowCourse, MeasureRequest, measure};
use loops::LoopFlags;
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite measure cfg.000100.ildg
  ferrite measure cfg.000100.ildg --flow 4 --flow-step 0.02
  ferrite measure run/cfg.*.ildg --flow 2 --flow-action zeuthen -o flow.jsonl
  ferrite measure run/cfg.*.ildg --loops 8,6 --off-axis --loop-smear ape --loop-alpha 0.6 --loop-levels 20 -o loops.jsonl

Measures plaquette, rectangle, Polyakov loop, and energy density and topological charge of the clover-leaf field strength; with
--flow also the last two along the gradient flow (Luescher 2010), and t0 and w0 if they are reached. Each configuration is
printed when it is done; with -o, run the same command again to resume. --loops adds Wilson loops W(R, T) for the static
potential. `ferrite fit` computes t0, w0 and the potential from the file of -o.";

/// Arguments of `measure`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct MeasureArguments {
    /// Gauge configurations, in any supported format
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Maximum time of the gradient flow, in lattice units
    #[arg(long, value_name = "T", value_parser = positive, allow_hyphen_values = true)]
    flow: Option<f64>,
    /// Step size of the flow [default: 0.02]
    #[arg(long, value_name = "E", value_parser = positive, allow_hyphen_values = true)]
    flow_step: Option<f64>,
    /// Action whose gradient drives the flow [default: wilson]
    #[arg(long, value_name = "NAME", value_enum)]
    flow_action: Option<Action>,
    /// Print energy and charge every N steps; t0 and w0 use all steps [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    flow_every: Option<u32>,
    #[command(flatten)]
    loops: LoopFlags,
    /// Append a line of JSON to this file for each measured configuration; configurations that already have a line are skipped
    #[arg(short, long, value_name = "FILE.jsonl")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: ReadFlags,
}

/// The action of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Wilson action, of plaquettes
    Wilson,
    /// Symanzik action at tree level, with rectangles
    Symanzik,
    /// Zeuthen flow: Symanzik action, with forces of neighbouring links that remove errors of order a² (Ramos and Sint 2016)
    Zeuthen,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err(format!("'{text}' is not a finite number above 0")),
    }
}

/// Returns the requested gradient flow; `None` without `--flow`. Fails if the other flags are given without it.
fn flow(args: &MeasureArguments, reading: &Reading) -> Outcome<Option<FlowCourse>> {
    let Some(end) = args.flow else {
        let given = [
            ("--flow-step", args.flow_step.is_some()),
            ("--flow-action", args.flow_action.is_some()),
            ("--flow-every", args.flow_every.is_some()),
        ];
        return match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::refused(format!("{flag} needs --flow: also give --flow T"))),
            None => Ok(None),
        };
    };
    let action = match args.flow_action.unwrap_or(Action::Wilson) {
        Action::Wilson => FlowAction::Wilson,
        Action::Symanzik => FlowAction::Symanzik,
        Action::Zeuthen => FlowAction::Zeuthen,
    };
    let (step, every) = (args.flow_step.unwrap_or(0.02), args.flow_every.unwrap_or(1));
    FlowCourse::new(end, step, action, every, reading.by).map(Some)
}

/// Measures all configurations, and prints the results.
pub fn run(args: MeasureArguments, context: &Context) -> Outcome {
    let (device, comm, reading) = (context.device_choice()?, &context.comm, args.read.reading());
    let flow = comm.agree(flow(&args, &reading))?;
    let loops = comm.agree(args.loops.request())?;
    let MeasureArguments { files, output, .. } = args;
    let request = MeasureRequest { files, reading, flow, loops, device, output };
    let (record, ended) = measure(&request, &context.session, |line| context.output.part(&table(line)))?;
    context.output.record(&record, String::new).and(ended)
}

/// Returns the measurements on a configuration as text for people.
fn table(line: &MeasurementLine) -> String {
    let LoopsRecord { plaquette: PlaquetteMeans { mean, spatial, temporal }, rectangle, polyakov_loop } = line.loops;
    let FieldStrengthRecord { energy, charge } = line.field_strength;
    let polyakov = polyakov_loop.map(|x| POLYAKOV_LOOP.number(x)).join(" ");
    let mut all = format!("{} on {}\n", line.file.display(), text::by(line.lattice));
    all += &plaquette_text(&Plaquettes { mean, spatial, temporal });
    all += &RECTANGLE.line_of(rectangle);
    all += &POLYAKOV_LOOP.line(&format!("{polyakov} i"));
    all += &ENERGY_DENSITY.line_of(energy.sum());
    all += &CHARGE.line_of(charge);
    if !line.flow.is_empty() {
        let _ = writeln!(all, "{:>10} {:>12} {:>12} {:>12}", FLOW_TIME.name, "E", "t^2 E", CHARGE.key);
        for point in &line.flow {
            let (t, energy, charge) = (point.t, point.energy.sum(), point.charge);
            let _ = writeln!(all, "{t:>10.4} {energy:>12.8} {:>12.8} {charge:>+12.6}", t * t * energy);
        }
    }
    for (quantity, scale) in [(&T0, line.t0), (&W0, line.w0)] {
        if let Some(scale) = scale {
            let value = |scale| format!("{} {}", quantity.number(scale), quantity.unit);
            all += &quantity.line(&scale.map_or("not reached".into(), value));
        }
    }
    if !line.wilson_loops.is_empty() {
        all += &loops::text(&line.wilson_loops);
    }
    all
}
