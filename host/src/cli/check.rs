//! `ferrite check`.
use super::solve::Solve;
use super::staggered::{self, StaggeredSolve};
use super::text::bytes;
use super::{Context, Outcome};
use crate::config::Settings;
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
  output = \"solutions.npy\"";

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

/// Lists all mistakes of a file, or the memory that the solve needs.
pub fn run(args: Arguments, context: &Context) -> Outcome {
    context.world.only_one("check")?;
    let mut settings = Settings::default();
    settings.file(&args.file)?;
    settings.set(&args.set);
    context.add_to(&mut settings);
    let what = args.file.display().to_string();
    let (device, lattice, nrhs, needs, operator, name, clover) = if staggered::is_chosen(&settings) {
        let solve = StaggeredSolve::from_settings(&mut settings, &what)?;
        let (plan, needs) = (&solve.plan, solve.memory(solve.plan.lattice));
        let device = solve.device.open(&context.world)?;
        (device, plan.lattice, plan.sources.len(), needs, plan.kind.name(), plan.kind.title(), Value::Null)
    } else {
        let solve = Solve::from_settings(&mut settings, &what)?;
        let (plan, nrhs) = (&solve.plan, solve.plan.sources.len());
        let request = solve.request(plan.reconstruction.unwrap_or(Reconstruction::Eighteen));
        let needs = request.memory(plan.lattice(), &ProcessGrid::SINGLE, nrhs);
        let device = solve.device.open(&context.world)?;
        (device, plan.lattice(), nrhs, needs, plan.operator_name(), plan.operator.name(), plan.clover())
    };
    let needed: usize = needs.iter().map(|(_, n)| n).sum();
    let memory = device.memory()?;
    let list: Vec<_> = needs.iter().map(|(what, n)| json!({ "what": what, "bytes": n })).collect();
    let object = json!({
        "file": args.file,
        "ok": needed <= memory.free,
        "lattice": lattice.size(),
        "operator": operator,
        "clover": clover,
        "sources": nrhs,
        "backend": device.name(),
        "device": device.describe(),
        "memory": { "needed_bytes": needed, "free_bytes": memory.free, "total_bytes": memory.total, "parts": list },
    });
    context.output.result("ferrite.check/1", object, || {
        let mut text = format!("{}: no mistakes; {} operator on {lattice}\n", args.file.display(), name);
        let _ = writeln!(text, "memory on {}:", device.describe());
        for (what, n) in &needs {
            let _ = writeln!(text, "  {:>12}  {what}", bytes(*n));
        }
        let _ = writeln!(text, "  {:>12}  in all, of {} free", bytes(needed), bytes(memory.free));
        text
    })?;
    device.require(&needs, &format!("the solve on {lattice}"))
}
