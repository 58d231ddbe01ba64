//! `ferrite check`.
use super::batch::{Batches, Needs};
use super::device::Device;
use super::layout::Cut;
use super::rhmc::{self, input::Input};
use super::solve::Solve;
use super::staggered::{self, StaggeredSolve};
use super::text::{bytes, count};
use super::{Context, Outcome};
use crate::config::{Settings, is_of_ensemble, is_of_spectrum};
use clap::Args;
use ferrite::lattice::Lattice;
use ferrite::solve::Reconstruction;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite check run.toml
  ferrite check run.toml --set precision=half --backend cuda
  ferrite check run.toml --processes 8
  ferrite check run.toml --grid 1,1,2,4

An input file has the flags of `ferrite solve` as keys:
  gauge = \"weak.ildg\"
  mass = 0.05
  source = [\"random:1\", \"point:0,0,0,0,0,0\"]
  precision = \"half\"
  output = \"solutions.npy\"
Inputs of `ferrite rhmc` and `ferrite spectrum` are known by their tables; `ferrite init` prints all of them.
For several processes, memory is that of each of them, with the grid that mpirun -n N ferrite ... would take.";

/// Arguments of `check`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The input file
    file: PathBuf,
    /// Of how many processes the run will be, as mpirun -n N starts it [default: as many as the grid has, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    processes: Option<u32>,
    /// Change a key of the input file; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Arguments {
    fn processes(&self) -> Option<usize> {
        self.processes.map(|n| n as usize)
    }
}

/// What was found of an input.
pub struct Checked {
    /// Where it is to be computed.
    pub device: Device,
    /// The lattice.
    pub lattice: Lattice,
    /// How it is cut.
    pub cut: Cut,
    /// How right-hand sides are split.
    pub batches: Batches,
    /// Memory of the device of each process, with names for what takes it.
    pub needs: Needs,
}

/// Lists all mistakes of a file, or the memory that the solve or the run needs.
pub fn run(args: Arguments, context: &Context) -> Outcome {
    context.world.only_one("check")?;
    if is_of_spectrum(&args.file) {
        return spectrum(&args, context);
    }
    if is_of_ensemble(&args.file) {
        return ensemble(&args, context);
    }
    let mut settings = Settings::default();
    settings.file(&args.file)?;
    settings.set(&args.set);
    context.add_to(&mut settings);
    let what = args.file.display().to_string();
    let (checked, sources, operator, name, clover) = if staggered::is_chosen(&settings) {
        let solve = StaggeredSolve::from_settings(&mut settings, &what)?;
        let (plan, layout) = (&solve.plan, &solve.device.layout);
        let cut = layout.plan(layout.processes(args.processes()), plan.lattice, plan.hops())?;
        let device = solve.device.open_silently(&context.world)?;
        let needs = |together: usize| solve.memory(cut.local, together);
        let batches = solve.scheme.batch.within(device.memory()?.free, plan.sources.len(), needs);
        let needs = needs(batches.largest());
        let checked = Checked { device, lattice: plan.lattice, cut, batches, needs };
        (checked, plan.sources.len(), plan.kind.name(), plan.kind.title(), Value::Null)
    } else {
        let solve = Solve::from_settings(&mut settings, &what)?;
        let (plan, layout) = (&solve.plan, &solve.device.layout);
        let cut = layout.plan(layout.processes(args.processes()), plan.lattice(), 1)?;
        solve.scheme.check(cut)?;
        let device = solve.device.open_silently(&context.world)?;
        let request = solve.request(plan.reconstruction.unwrap_or(Reconstruction::Eighteen));
        let needs = |together: usize| request.memory(cut.local, &cut.grid, together);
        let batches = solve.scheme.batch.within(device.memory()?.free, plan.sources.len(), needs);
        let needs = needs(batches.largest());
        let checked = Checked { device, lattice: plan.lattice(), cut, batches, needs };
        (checked, plan.sources.len(), plan.operator_name(), plan.operator.name(), plan.clover())
    };
    let object = json!({ "kind": "solve", "operator": operator, "clover": clover, "sources": sources });
    let head = format!("{name} operator on {}, {}", checked.lattice, checked.batches.describe());
    answer(&args, context, &checked, object, (&head, "the solve"))
}

fn spectrum(args: &Arguments, context: &Context) -> Outcome {
    let (checked, configurations) = super::spectrum::check(&args.file, &args.set, args.processes(), context)?;
    let object = json!({ "kind": "spectrum", "configurations": configurations });
    let (what, batches) = (count(configurations, "configuration"), checked.batches.describe());
    let head = format!("{what} on {}, {batches}", checked.lattice);
    answer(args, context, &checked, object, (&head, "the solve"))
}

fn ensemble(args: &Arguments, context: &Context) -> Outcome {
    let input = Input::read(&args.file, &args.set, |settings| context.add_to(settings))?;
    let (lattice, layout) = (input.lattice, &input.device.layout);
    let cut = layout.plan(layout.processes(args.processes()), lattice, input.hops())?;
    let device = input.device.open_silently(&context.world)?;
    let (batches, needs) = rhmc::plan(&input, cut.local, device.memory()?.free);
    let quarks: Vec<_> = input.groups.iter().map(|group| group.name.as_str()).collect();
    let object = json!({ "kind": "rhmc", "trajectories": input.trajectories, "quarks": quarks });
    let with = if quarks.is_empty() { "no quarks".into() } else { quarks.join("; ") };
    let head = format!("{} trajectories on {lattice}, {with}", input.trajectories);
    let checked = Checked { device, lattice, cut, batches, needs };
    answer(args, context, &checked, object, (&head, "the run"))
}

/// Tells what was found, with the memory that it needs on the device, and refuses where there is not so much.
fn answer(
    args: &Arguments,
    context: &Context,
    checked: &Checked,
    object: Value,
    (head, what): (&str, &str),
) -> Outcome {
    let Checked { device, lattice, cut, batches, needs } = checked;
    let needed: usize = needs.iter().map(|(_, n)| n).sum();
    let memory = device.memory()?;
    let list: Vec<_> = needs.iter().map(|(what, n)| json!({ "what": what, "bytes": n })).collect();
    let common = json!({
        "file": args.file,
        "ok": needed <= memory.free,
        "lattice": lattice.size(),
        "layout": cut.describe(),
        "backend": device.name(),
        "device": device.describe(),
        "memory": {
            "needed_bytes": needed, "free_bytes": memory.free, "total_bytes": memory.total, "parts": list,
        },
    });
    let object = staggered::merged(object, [common, batches.json()]);
    context.output.result("ferrite.check/1", object, || {
        let mut text = format!("{}: no mistakes; {head}\n", args.file.display());
        let processes = cut.grid.size();
        let of_each = if processes > 1 {
            let _ = writeln!(text, "{processes} processes in the grid {}, each with {}", cut.grid, cut.local);
            " of each"
        } else {
            ""
        };
        let _ = writeln!(text, "memory{of_each} on {}:", device.describe());
        for (what, n) in needs {
            let _ = writeln!(text, "  {:>12}  {what}", bytes(*n));
        }
        let _ = writeln!(text, "  {:>12}  in all, of {} free", bytes(needed), bytes(memory.free));
        text
    })?;
    device.require(needs, &format!("{what} on {lattice}"))
}
