//! Command `ferrite solve`.
mod result;

pub use ferrite_tasks::solve::*;

use super::batch::{BatchTask, RIGHT_HAND_SIDE};
use super::host_links::LinksRead;
use super::keys::{SOLVE, SolveFlags};
use super::named::NamedFiles;
use super::plan::Systems;
use super::{Context, Failure, Outcome, fields, profile, target};
use clap::Args;
use ferrite::FermionKind;
use ferrite::field::host::{ColourVector, Fermion, Spinor};
use ferrite::operators::OPERATORS;
use ferrite::solve::shifts_in_batches;
use ferrite_inputs::Input;
use ferrite_records::progress::ProgressLine;
use ferrite_tasks::progress::Watch;
use std::path::{Path, PathBuf};
use tracing::info;

/// Returns the end of the help text: examples, formulas of the operators, and notes.
fn examples() -> String {
    let formulas: String = OPERATORS.iter().map(|one| format!("  {}: {}\n", one.name, one.formula)).collect();
    format!("{EXAMPLES}\n{formulas}{NOTES}")
}

const EXAMPLES: &str = "\
Examples:
  ferrite solve weak.ildg --mass 0.05 --source random:1 -o solution.npy --plot convergence.svg
  ferrite solve --gauge weak.ildg --kappa 0.12 --source point:0,0,0,0,0,0 --source point:0,0,0,0,0,1 \\
      --solver cg --precision half -o solutions.npy
  ferrite solve --gauge weak.ildg --mass 0.05 --source point:0,0,0,0 --sources 12 -o propagator.npy
  ferrite solve --gauge weak.ildg --operator clover --csw 1.2 --mass 0.05 --source random:1 -o solution.npy
  ferrite solve --gauge lat.milc --operator asqtad --u0 plaquette --mass 0.02 --source point:0,0,0,0,0 -o column.npy
  ferrite solve --gauge lat.milc --operator hisq --masses 0.01,0.02,0.05,0.1 --source random:1 --precision half -o all.npy
  ferrite solve --gauge lat.milc --operator hisq --mass 0.005 --source random:1 --sources 16 --solver block-cg -o many.npy
  ferrite solve run.toml --set tol=1e-8

Solves M x = b on all sites:";

const NOTES: &str = "\
On an anisotropic lattice 4 + m becomes 1 + 3 nu/xi_0 + m, and D/2 becomes (nu/xi_0 D_space + D_time)/2.
For staggered operators, --shifts s1,s2,... solves the systems (M^+ M + s) x = b, and --masses solves M x = b for each mass;
multi-shift CG solves all systems together, and then each system is refined separately.
Up to 16 right-hand sides are solved together if memory allows, otherwise in smaller batches; --batch sets the number.
With --solver block-cg a batch shares one Krylov space, which saves iterations if small eigenvalues slow CG down.
Input files are TOML with the names of the flags as keys (output for -o). Flags override --set, and --set overrides the file.
Paths are relative to the working directory.

The printed residual is |b - M x| / |b|, computed from the solution in double precision. Without convergence the exit
code is 1 and no solution is written, unless --keep-unconverged is given, which writes the best iterate.";

/// Arguments of `solve`.
#[derive(Args)]
#[command(after_help = examples())]
pub struct SolveArguments {
    /// Gauge configuration (instead of --gauge), input file in TOML with the flags as keys, or both; `ferrite init solve`
    /// prints an input with comments
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    flags: SolveFlags,
    /// Override a key of the input file; repeat the flag for several keys
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Collects the values of the input from the file, from `--set` and from flags; later ones replace earlier ones.
fn input(args: &SolveArguments, files: &NamedFiles, context: &Context) -> Outcome<(Input, String)> {
    let mut input = Input::new(&SOLVE);
    let mut what = "the command line".to_string();
    if let Some(path) = &files.input {
        input.file(path)?;
        what = path.display().to_string();
    }
    input.set(&args.set);
    context.add_to(&mut input);
    args.flags.add_to(&mut input);
    input.configuration(files.configuration.as_deref());
    Ok((input, what))
}

/// Solves the system that the input describes, writes the solutions, and prints the record.
pub fn run(args: Box<SolveArguments>, context: &Context) -> Outcome {
    let comm = &context.comm;
    // The arguments of `--set` are checked before the files, because a value that is not joined to its key with `=` looks like a file.
    comm.agree(Input::new(&SOLVE).only_set(&args.set).map_err(Failure::from))?;
    let files = comm.agree(NamedFiles::of(&args.files, "solve"))?;
    let (mut input, what) = comm.agree(input(&args, &files, context))?;
    let solve = comm.agree(Solve::of(&mut input, &what))?;
    match solve.plan.operator.kind() {
        FermionKind::Wilson => run_on::<Spinor>(&solve, files.input.as_deref(), context),
        FermionKind::Staggered => run_on::<ColourVector>(&solve, files.input.as_deref(), context),
    }
}

/// Runs the command for fields of type `F`.
fn run_on<F: Fermion>(solve: &Solve, input: Option<&Path>, context: &Context) -> Outcome {
    let (comm, plan) = (&context.comm, &solve.plan);
    let read = plan.inputs(solve.scheme.guess.as_deref().unwrap_or_default());
    let written = [&plan.output, &solve.save_source, &solve.plot, &solve.scheme.setup];
    let written: Vec<&Path> = written.into_iter().flatten().map(PathBuf::as_path).collect();
    target::claim(comm, &[&read[..], input.as_slice()].concat(), &written)?;
    let device = solve.device.open(comm)?;
    if plan.output.is_none() {
        info!("the solution will not be saved: give -o FILE to save it");
    }
    let layout = plan.cut(&solve.device.layout, comm)?;
    solve.possible(layout.cut())?;
    let nrhs = plan.sources.len();
    let needs = |together: usize| solve.memory(layout.cut(), together);
    let name = format!("the solve on {}", plan.lattice);
    let task = BatchTask { device: &device, comm, name: &name, noun: RIGHT_HAND_SIDE };
    let batches = task.split(solve.scheme.batch, nrhs, needs)?;
    if batches.are_several() {
        info!("{}", batches.describe());
    }
    // Host memory holds sources, solutions of all systems, and initial guesses.
    let fields = nrhs * (1 + plan.systems.count().unwrap_or(1) + usize::from(solve.scheme.guess.is_some()));
    let links = if plan.definition().is_improved() { 2 } else { 1 };
    let host = fields * size_of::<F>() + links * 576;
    fields::require_host_memory(comm, layout.local(), host, "sources, solutions and links")?;

    let modules = solve.modules(device.backend(), &layout);
    let links = device.while_loading(&modules, || LinksRead::of(plan, &layout, comm))?;
    let links = links.smeared(plan, &device, &layout, &context.session)?;
    let sources = plan.fields::<F>(&plan.sources, &layout)?;
    let guess = solve.scheme.guess.as_deref().map(|fields| plan.fields::<F>(fields, &layout)).transpose()?;
    if let Some(path) = &solve.save_source {
        fields::write_fermions(path, &sources, "source", &layout)?;
    }

    context.session.listen();
    let mut watch = Watch::new(solve.scheme.tol, ProgressLine::of("solve"), &context.session);
    let running = profile::Running::start(solve.profile, &device)?;
    let place = (&device, &layout);
    if plan.systems == Systems::One {
        let batched = BatchedSources { sizes: &batches.sizes, sources: &sources, guess: guess.as_deref() };
        let ended = solve.solve(&device, &layout, &links, &batched, &mut watch)?;
        let done = result::Done { place, operator: links.operator, batches: &batches, profile: running.end(&device)? };
        return result::one(context, solve, &done, &ended, &watch);
    }
    let request = solve.request(links.operator.clone(), links.storage).for_systems(plan.strategy, device.backend());
    let solved = {
        let domain = layout.domain(device.backend())?;
        let configuration = links.links.on(&domain)?;
        shifts_in_batches(&batches.sizes, &sources, |sources| match &plan.systems {
            Systems::Masses(masses) => configuration.solve_masses(sources, masses, plan.strategy, &request, &mut watch),
            Systems::Shifts(shifts) => configuration.solve_shifts(sources, shifts, plan.strategy, &request, &mut watch),
            Systems::One => unreachable!("handled above"),
        })
    };
    watch.finish();
    let (solutions, report) = solved?;
    note_storage(request.reconstruction, report.reconstruction);
    let done = result::Done { place, operator: links.operator, batches: &batches, profile: running.end(&device)? };
    result::several(context, solve, &done, &solutions, &report)
}
