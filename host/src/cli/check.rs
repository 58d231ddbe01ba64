//! `ferrite check`.
use super::device::Device;
use super::rhmc::{self, input::Input};
use super::solve::Solve;
use super::staggered::{self, StaggeredSolve};
use super::text::{bytes, count};
use super::{Context, Outcome};
use crate::config::{Settings, is_of_ensemble, is_of_spectrum};
use clap::Args;
use comms::ProcessGrid;
use ferrite::solve::Reconstruction;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite check run.toml
  ferrite check run.toml --set precision=half --backend cuda

An input file has the flags of `ferrite solve` as keys:
  gauge = \"weak.ildg\"
  mass = 0.05
  source = [\"random:1\", \"point:0,0,0,0,0,0\"]
  precision = \"half\"
  output = \"solutions.npy\"
Inputs of `ferrite rhmc` and `ferrite spectrum` are known by their tables; `ferrite init` prints them.";

/// Arguments of `check`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The input file
    file: PathBuf,
    /// Change a key of the input file; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
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
    let (device, lattice, batches, needs, operator, name, clover) = if staggered::is_chosen(&settings) {
        let solve = StaggeredSolve::from_settings(&mut settings, &what)?;
        let (plan, device) = (&solve.plan, solve.device.open(&context.world)?);
        let needs = |together: usize| solve.memory(plan.lattice, together);
        let batches = solve.scheme.batch.within(device.memory()?.free, plan.sources.len(), needs);
        let needs = needs(batches.largest());
        (device, plan.lattice, batches, needs, plan.kind.name(), plan.kind.title(), Value::Null)
    } else {
        let solve = Solve::from_settings(&mut settings, &what)?;
        let (plan, device) = (&solve.plan, solve.device.open(&context.world)?);
        let request = solve.request(plan.reconstruction.unwrap_or(Reconstruction::Eighteen));
        let needs = |together: usize| request.memory(plan.lattice(), &ProcessGrid::SINGLE, together);
        let batches = solve.scheme.batch.within(device.memory()?.free, plan.sources.len(), needs);
        let needs = needs(batches.largest());
        (device, plan.lattice(), batches, needs, plan.operator_name(), plan.operator.name(), plan.clover())
    };
    let object = json!({
        "kind": "solve",
        "lattice": lattice.size(),
        "operator": operator,
        "clover": clover,
        "sources": batches.sizes.iter().sum::<usize>(),
    });
    let object = staggered::merged(object, [batches.json()]);
    let head = format!("{name} operator on {lattice}, {}", batches.describe());
    answer(&args, context, &device, &needs, object, (&head, &format!("the solve on {lattice}")))
}

fn spectrum(args: &Arguments, context: &Context) -> Outcome {
    let checked = super::spectrum::check(&args.file, &args.set, context)?;
    let super::spectrum::Checked { device, needs, batches, lattice, configurations } = checked;
    let object = json!({ "kind": "spectrum", "lattice": lattice.size(), "configurations": configurations });
    let object = staggered::merged(object, [batches.json()]);
    let head = format!("{} on {lattice}, {}", count(configurations, "configuration"), batches.describe());
    answer(args, context, &device, &needs, object, (&head, &format!("the solve on {lattice}")))
}

fn ensemble(args: &Arguments, context: &Context) -> Outcome {
    let input = Input::read(&args.file, &args.set, |settings| context.add_to(settings))?;
    let layout = input.device.layout.cut(&context.world, input.lattice, input.hops())?;
    let device = input.device.open(&context.world)?;
    let quarks: Vec<_> = input.groups.iter().map(|group| group.name.as_str()).collect();
    let object = json!({
        "kind": "rhmc",
        "lattice": input.lattice.size(),
        "trajectories": input.trajectories,
        "quarks": quarks,
    });
    let with = if quarks.is_empty() { "no quarks".into() } else { quarks.join("; ") };
    let head = format!("{} trajectories on {}, {with}", input.trajectories, input.lattice);
    let (batches, needs) = rhmc::plan(&input, &layout, device.memory()?.free);
    let object = staggered::merged(object, [batches.json()]);
    answer(args, context, &device, &needs, object, (&head, &format!("the run on {}", input.lattice)))
}

/// Tells what was found, with the memory that it needs on the device, and refuses where there is not so much.
fn answer(
    args: &Arguments,
    context: &Context,
    device: &Device,
    needs: &[(&'static str, usize)],
    mut object: Value,
    (head, what): (&str, &str),
) -> Outcome {
    let needed: usize = needs.iter().map(|(_, n)| n).sum();
    let memory = device.memory()?;
    let list: Vec<_> = needs.iter().map(|(what, n)| json!({ "what": what, "bytes": n })).collect();
    object["file"] = json!(args.file);
    object["ok"] = json!(needed <= memory.free);
    object["backend"] = json!(device.name());
    object["device"] = json!(device.describe());
    object["memory"] = json!({
        "needed_bytes": needed, "free_bytes": memory.free, "total_bytes": memory.total, "parts": list,
    });
    context.output.result("ferrite.check/1", object, || {
        let mut text = format!("{}: no mistakes; {head}\n", args.file.display());
        let _ = writeln!(text, "memory on {}:", device.describe());
        for (what, n) in needs {
            let _ = writeln!(text, "  {:>12}  {what}", bytes(*n));
        }
        let _ = writeln!(text, "  {:>12}  in all, of {} free", bytes(needed), bytes(memory.free));
        text
    })?;
    device.require(needs, what)
}
