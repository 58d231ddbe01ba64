//! `ferrite measure`.
use super::device::on_device;
use super::fields::{lattice_of, read_gauge};
use super::verify::ReadFlags;
use super::world::World;
use super::{Code, Context, Failure, Outcome, interrupt, progress, target};
use clap::{Args, ValueEnum};
use ferrite::backend::{Backend, Cpu};
use ferrite::domain::Domain;
use ferrite::field::ThinGauge;
use ferrite::field::host::HostGauge;
use ferrite::flow::{Flow, FlowAction, FlowPoint, scale_t0, scale_w0};
use ferrite::rhmc::gauge::{LoopKind, closed_loops, mean_traces, polyakov_loop};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite measure cfg.000100.ildg
  ferrite measure cfg.000100.ildg --flow 4 --flow-step 0.02
  ferrite measure run/cfg.*.ildg --flow 2 --flow-action symanzik --json

Plaquette, rectangle, Polyakov loop, and energy density and topological charge by the clover-leaf field strength; with
--flow the last two along the gradient flow (Luescher 2010), with t0 and w0 where they are reached.";

/// Arguments of `measure`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Gauge fields in any format
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Follow the gradient flow up to this time, in lattice units
    #[arg(long, value_name = "T", value_parser = positive, allow_hyphen_values = true)]
    flow: Option<f64>,
    /// Length of its steps [default: 0.02]
    #[arg(long, value_name = "E", value_parser = positive, allow_hyphen_values = true)]
    flow_step: Option<f64>,
    /// Whose gradient [default: wilson]
    #[arg(long, value_name = "NAME", value_enum)]
    flow_action: Option<Action>,
    /// Look at the links after every so many steps [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    flow_every: Option<u32>,
    /// Add a line of JSON for each configuration to this file, as soon as it is measured
    #[arg(short, long, value_name = "FILE.jsonl")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: ReadFlags,
}

/// The action of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Plaquettes
    Wilson,
    /// Symanzik's at tree level, with rectangles
    Symanzik,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err(format!("'{text}' is not a number above 0")),
    }
}

/// Where the flow goes, and how.
struct Course {
    end: f64,
    step: f64,
    action: FlowAction,
    every: u32,
}

impl Course {
    /// From the flags; none without `--flow`, which the others then have nothing to do with.
    fn of(args: &Arguments) -> Outcome<Option<Self>> {
        let Some(end) = args.flow else {
            let given = [
                ("--flow-step", args.flow_step.is_some()),
                ("--flow-action", args.flow_action.is_some()),
                ("--flow-every", args.flow_every.is_some()),
            ];
            return match given.iter().find(|(_, given)| *given) {
                Some((flag, _)) => Err(Failure::refused(format!("{flag} belongs to --flow: give --flow T, too"))),
                None => Ok(None),
            };
        };
        let action = match args.flow_action.unwrap_or(Action::Wilson) {
            Action::Wilson => FlowAction::Wilson,
            Action::Symanzik => FlowAction::Symanzik,
        };
        let (step, every) = (args.flow_step.unwrap_or(0.02), args.flow_every.unwrap_or(1));
        Ok(Some(Course { end, step, action, every }))
    }
    fn steps(&self) -> u64 {
        (self.end / self.step - 1e-9).ceil().max(1.0) as u64
    }
}

/// Measures all files on the device.
pub fn run(args: &Arguments, context: &Context) -> Outcome {
    let (choice, world) = (context.device_choice()?, &context.world);
    let course = world.agree(Course::of(args))?;
    let course = course.as_ref();
    if let Some(path) = &args.output {
        world.once(|| target::check(path).map_err(Failure::refused))?;
    }
    // All headers before the work.
    let lattice = |path: &PathBuf| lattice_of(path, &args.read.reading(), world);
    let lattices = args.files.iter().map(lattice).collect::<Outcome<Vec<_>>>()?;
    let device = choice.open(world)?;
    interrupt::listen();
    let (mut objects, mut text) = (Vec::new(), String::new());
    for (path, lattice) in args.files.iter().zip(lattices) {
        // Rectangles reach two steps.
        let layout = choice.layout.cut(world, lattice, 2)?;
        let file = read_gauge(path, &args.read.reading(), &layout, world)?;
        let sites = layout.local().half_volume();
        let links = 2 * ThinGauge::<Cpu>::bytes_for(sites);
        let needs = [("links as read from the host", 1152 * sites), ("links in double and their momenta", 3 * links)];
        device.require_all(world, &needs, "the measurement")?;
        let bar = progress::bar(course.map_or(0, Course::steps), context.shows_progress());
        let found =
            on_device!(&device, backend => measure(&layout.domain(backend)?, &file.gauge, course, (&bar, world)));
        bar.finish_and_clear();
        let found = found?;
        let mut object = found.json();
        object["file"] = json!(path);
        object["lattice"] = json!(lattice.size());
        if let Some(path) = &args.output {
            world.once(|| target::append_line(path, &object).map_err(Failure::failed))?;
        }
        objects.push(object);
        let _ = writeln!(text, "{} on {lattice}", path.display());
        text += &found.text();
    }
    let object = json!({
        "configurations": objects,
        "backend": device.name(),
        "device": device.describe(),
    });
    context.output.result("ferrite.measure/1", object, || text)
}

/// What was found of a configuration.
struct Found {
    plaquette: [f64; 3],
    rectangle: f64,
    polyakov: [f64; 2],
    /// At the start, and along the flow.
    points: Vec<FlowPoint>,
    flowed: bool,
}

fn measure<B: Backend>(
    domain: &Domain<B>,
    gauge: &HostGauge,
    course: Option<&Course>,
    (bar, world): (&ProgressBar, &World),
) -> Outcome<Found> {
    let thin = ThinGauge::upload(domain, gauge)?;
    let (plaquette, _) = thin.plaquette()?;
    let mut points = vec![FlowPoint::of(&thin, 0.0)?];
    let rectangles: Vec<_> = closed_loops().into_iter().filter(|path| path.kind == LoopKind::Rectangle).collect();
    let traces = mean_traces(&thin, &rectangles)?;
    let polyakov = polyakov_loop(&thin)?;
    if let Some(course) = course {
        let mut flow = Flow::new(&thin, course.action)?;
        let steps = course.steps();
        for number in 1..=steps {
            // The last one ends where it should.
            flow.step(course.step.min(course.end - flow.time())).map_err(Failure::failed)?;
            bar.set_position(number);
            if interrupt::asked_any(world, number as usize) {
                return Err(Failure::new(Code::Interrupted, format!("ended at t = {:.4} of the flow", flow.time())));
            }
            if number.is_multiple_of(u64::from(course.every)) || number == steps {
                points.push(flow.look()?);
            }
        }
    }
    Ok(Found {
        plaquette: [plaquette.mean, plaquette.spatial, plaquette.temporal],
        rectangle: traces.iter().sum::<f64>() / (3 * traces.len()) as f64,
        polyakov: [polyakov.re, polyakov.im],
        flowed: course.is_some(),
        points,
    })
}

impl Found {
    fn json(&self) -> Value {
        let [mean, spatial, temporal] = self.plaquette;
        let point = |p: &FlowPoint| {
            json!({
                "t": p.time,
                "energy": { "space": p.clover.space, "time": p.clover.time },
                "plaquette_energy": p.plaquette_energy,
                "charge": p.clover.charge,
            })
        };
        let mut object = json!({
            "plaquette": { "mean": mean, "spatial": spatial, "temporal": temporal },
            "rectangle": self.rectangle,
            "polyakov_loop": self.polyakov,
            "energy": { "space": self.points[0].clover.space, "time": self.points[0].clover.time },
            "charge": self.points[0].clover.charge,
        });
        if self.flowed {
            object["flow"] = self.points.iter().map(point).collect();
            object["t0"] = json!(scale_t0(&self.points, 0.3));
            object["w0"] = json!(scale_w0(&self.points, 0.3));
        }
        object
    }
    fn text(&self) -> String {
        let [mean, spatial, temporal] = self.plaquette;
        let [re, im] = self.polyakov;
        let first = &self.points[0];
        let mut text = format!(
            "plaquette            {mean:.12}\n  spatial            {spatial:.12}\n  temporal           {temporal:.12}\n\
             rectangle            {:.12}\nPolyakov loop        {re:+.9} {im:+.9} i\n\
             energy density       {:.9}\ntopological charge   {:+.6}\n",
            self.rectangle,
            first.clover.energy(),
            first.clover.charge
        );
        if self.flowed {
            let _ = writeln!(text, "{:>10} {:>12} {:>12} {:>12}", "t", "E", "t^2 E", "charge");
            for p in &self.points {
                let (energy, scaled, charge) = (p.clover.energy(), p.scaled(), p.clover.charge);
                let _ = writeln!(text, "{:>10.4} {energy:>12.8} {scaled:>12.8} {charge:>+12.6}", p.time);
            }
            for (name, scale) in [("t0", scale_t0(&self.points, 0.3)), ("w0", scale_w0(&self.points, 0.3))] {
                let value = scale.map_or("not reached".into(), |scale| format!("{scale:.6}"));
                let _ = writeln!(text, "{name}                   {value}");
            }
        }
        text
    }
}
