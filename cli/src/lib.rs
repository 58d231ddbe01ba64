//! The program `ferrite`: its command line, and its output. Results go to standard output, everything else to standard error. The exit code
//! is part of the interface (see `failure::Code`). All work is in the libraries.
//!
//! Programs with other commands, the same global flags and the same output are a [`CommandLine`] that [`run_program`] runs.
// Only `terminal` may print, because texts from files must be escaped before they reach a terminal.
#![deny(clippy::print_stdout, clippy::print_stderr)]
mod apply;
pub mod bench;
mod check;
mod convert;
mod eigenvalues;
mod fit;
mod fix_gauge;
mod forecast;
pub mod formats;
mod generate;
mod info;
mod init;
mod interrupt;
mod keys;
mod links;
mod log;
mod measure;
mod output;
mod plaquette;
mod processes;
mod progress;
mod quenched;
mod rational;
mod report;
mod rhmc;
mod shell;
mod smear;
mod solve;
mod spectrum;
mod trace;
mod tune;
mod usage;
mod verify;

use ferrite_inputs::{Input, synonyms, text};
use ferrite_tasks::session::Session;
use ferrite_tasks::{Code, Failure, Outcome};
use ferrite_tasks::{
    batch, checked, communicator, device, failure, fields, host_links, layout, method, multigrid, named, plan, plot,
    profile, provenance, stout, target, terminal,
};
pub use output::Output;
use output::Reader;
use text::count;

use clap::{Args, Parser, Subcommand};
use communicator::RunCommunicator;
use device::DeviceChoice;
use progress::{ProgressFlag, ShownProgress};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    failed after the start: a solve did not converge, a file did not verify, a result could not be written
  2    refused before any computation: the command line, an input file, or the machine does not allow the run
  130  interrupted with Ctrl-C, or by the end of --max-hours; 143 after SIGTERM, 129 after SIGHUP

`ferrite COMMAND --help`, or `ferrite help COMMAND`, shows examples of each command.";

/// Text that the program prints if it is started without a command.
const FIRST_EXAMPLES: &str = "\
Ferrite: lattice QCD on GPUs. Five ways to start:

  ferrite info
  ferrite generate quenched --lattice 8,8,8,16 --beta 6.0 --seed 1 --sweeps 100 -o q.ildg
  ferrite solve --gauge q.ildg --operator clover --csw 1.2 --mass 0.05 --source random:1 -o x.npy
  ferrite init spectrum > s.toml; ferrite spectrum s.toml q.ildg --out spectrum
  ferrite init rhmc --quarks clover > run.toml; ferrite rhmc run.toml --out run

`ferrite --help` lists all commands, and `ferrite COMMAND --help` has examples of each.
";

/// Lattice QCD on GPUs.
#[derive(Parser)]
#[command(name = "ferrite", version, about, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: GlobalFlags,
}

/// Command line of a program: a command, and the flags of every command.
pub trait CommandLine: Parser {
    /// Command of the program.
    type Command;
    /// Text that the program prints if it is started without a command.
    const FIRST_EXAMPLES: &'static str;

    /// Returns the command and the flags of every command.
    fn parts(self) -> (Self::Command, GlobalFlags);
    /// Runs a command.
    ///
    /// # Errors
    /// A failure, which the program reports.
    fn run(command: Self::Command, context: &Context) -> Outcome;
}

impl CommandLine for Cli {
    type Command = Command;
    const FIRST_EXAMPLES: &'static str = FIRST_EXAMPLES;

    fn parts(self) -> (Command, GlobalFlags) {
        (self.command, self.global)
    }
    fn run(command: Command, context: &Context) -> Outcome {
        run(command, context)
    }
}

/// Flags of every command.
#[derive(Args)]
pub struct GlobalFlags {
    /// Device to compute on: auto (a GPU if one works, otherwise the CPU), cuda or cpu [default: auto]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Global options")]
    pub backend: Option<String>,
    /// Number of the GPU, from 0 [default: the rank of the process on its machine]
    #[arg(long, global = true, value_name = "N", help_heading = "Global options", allow_hyphen_values = true)]
    pub device: Option<String>,
    /// Number of CPU threads of each process [default: one for each core, divided among the processes that share the cores]
    #[arg(long, global = true, value_name = "N", help_heading = "Global options", allow_hyphen_values = true)]
    pub threads: Option<String>,
    /// Maximum device memory of each process, such as 20GiB [default: all free memory, divided among the processes that share the
    /// device]
    #[arg(long, global = true, value_name = "SIZE", help_heading = "Global options", allow_hyphen_values = true)]
    pub memory: Option<String>,
    /// Block sizes of GPU kernels: on (those that `ferrite tune` measured) or off (the built-in ones) [default: on]
    #[arg(long, global = true, value_name = "on|off", help_heading = "Global options")]
    pub tuning: Option<String>,
    /// Number of processes in each direction; the product is the number that mpirun starts [default: the grid with the smallest
    /// faces]
    #[arg(long, global = true, value_name = "X,Y,Z,T", help_heading = "Several processes")]
    pub grid: Option<String>,
    /// Transport of faces between processes: direct or copy (from GPU to GPU), mpi (messages from GPU memory) or host (messages
    /// from host memory) [default: the fastest]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Several processes")]
    pub transport: Option<String>,
    /// Do not overlap computation with the exchange of faces
    #[arg(long, global = true, help_heading = "Several processes")]
    pub no_overlap: bool,
    /// Allow several processes to compute on one GPU
    #[arg(long, global = true, help_heading = "Several processes")]
    pub share_gpus: bool,
    /// Print the result as exactly one JSON object on standard output (docs/output.md lists its keys), and not as text
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// Print results as text on standard output [default: on a terminal; elsewhere JSON, with text on standard error]
    #[arg(long, global = true, conflicts_with = "json", help_heading = "Global options")]
    pub text: bool,
    /// Progress on standard error: bar (on a terminal), json (at most one JSON line per second, for job logs) or off
    #[arg(long, global = true, value_name = "bar|json|off", default_value = "bar", hide_possible_values = true)]
    #[arg(help_heading = "Global options")]
    pub progress: ProgressFlag,
    /// Print details on standard error; repeat the flag for more details
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    pub verbose: u8,
    /// Print only results and errors, without notes, warnings or progress
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Global options")]
    pub quiet: bool,
}

/// The command to run.
#[derive(Subcommand)]
enum Command {
    /// Show devices, driver, kernels and versions
    Info,
    /// Make fat and long links of improved staggered fermions
    Links(links::LinksArguments),
    /// Generate a gauge configuration from a seed
    Generate(generate::GenerateArguments),
    /// Measure plaquettes, link trace and unitarity of a configuration
    Plaquette(plaquette::PlaquetteArguments),
    /// Measure loops, energy density and topological charge of configurations, also along the gradient flow
    Measure(measure::MeasureArguments),
    /// Read a file with all checks and print the results
    Verify(verify::VerifyArguments),
    /// Write a gauge or fermion field in another format
    Convert(convert::ConvertArguments),
    /// Estimate tr M^-1 and tr Gamma M^-1 on configurations with noise vectors: condensates and quark loops
    #[command(visible_alias = "condensate")]
    Trace(Box<trace::TraceArguments>),
    /// Find the smallest and the largest eigenvalue of M^+ M for the even-odd preconditioned operator M
    Eigenvalues(Box<eigenvalues::EigenvalueArguments>),
    /// Fix a configuration to Coulomb or Landau gauge
    FixGauge(fix_gauge::FixGaugeArguments),
    /// Replace links by stout, APE or HYP links
    Smear(smear::SmearArguments),
    /// Solve M x = b
    #[command(visible_alias = "invert")]
    Solve(Box<solve::SolveArguments>),
    /// Apply a Dirac operator to a field
    Apply(Box<apply::ApplyArguments>),
    /// Measure the speed of kernels, exchanges and solvers
    Bench(bench::BenchArguments),
    /// Measure the best block size of each kernel on this GPU, for all later runs
    Tune(tune::TuneArguments),
    /// Generate an ensemble by (rational) hybrid Monte Carlo, with staggered or Wilson-like quarks or none
    #[command(visible_alias = "hmc")]
    Rhmc(rhmc::RhmcArguments),
    /// Print the force of each monomial of the action in an input of `rhmc`, on a configuration
    Forces(rhmc::forces::ForceArguments),
    /// Print the best rational approximation of a power on an interval
    Rational(rational::RationalArguments),
    /// Compute mesons and nucleons from quark propagators on configurations
    Spectrum(spectrum::SpectrumArguments),
    /// Fit correlators, and compute t0, w0 and the static potential from measurements on many configurations
    Fit(fit::FitArguments),
    /// Write an HTML page about a run of `rhmc`, finished or not, or about spectra, fits, convergence, scaling and timelines
    Report(report::ReportArguments),
    /// Print an input file with comments
    Init(init::InitArguments),
    /// Check an input file of `solve`, `rhmc` or `spectrum`: list all mistakes, or the memory that a run would need
    Check(check::CheckArguments),
    /// Print completions of commands and flags for a shell
    Completions(shell::CompletionArguments),
    /// Write manual pages
    Man(shell::ManArguments),
}

/// Runs the program `ferrite` in this process.
pub fn run_ferrite() -> ExitCode {
    run_program::<Cli>()
}

/// Runs the program in this process. Signals end its work, and a panic prints where to report it.
pub fn run_program<P: CommandLine>() -> ExitCode {
    install_panic_hook();
    interrupt::start();
    run_arguments::<P>(std::env::args_os())
}

/// Runs the program with the given arguments of `ferrite`, the first of which is the name of the program. Fuzz targets call this function.
pub fn ferrite(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    run_arguments::<Cli>(arguments)
}

fn run_arguments<P: CommandLine>(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    processes::run(|comm| match Invocation::<P>::parse(&arguments, comm) {
        Ok(invocation) => invocation.finish(),
        Err(code) => Ok(code),
    })
}

/// Runs the command that was typed.
fn run(command: Command, context: &Context) -> Outcome {
    match command {
        Command::Info => info::run(context),
        Command::Generate(args) => generate::run(args, context),
        Command::Links(args) => links::run(args, context),
        Command::Plaquette(args) => plaquette::run(args, context),
        Command::Verify(args) => verify::run(args, context),
        Command::Convert(args) => convert::run(args, context),
        Command::FixGauge(args) => fix_gauge::run(args, context),
        Command::Smear(args) => smear::run(args, context),
        Command::Solve(args) => solve::run(args, context),
        Command::Apply(args) => apply::run(&args, context),
        Command::Bench(args) => bench::run(args, context),
        Command::Measure(args) => measure::run(args, context),
        Command::Trace(args) => trace::run(*args, context),
        Command::Eigenvalues(args) => eigenvalues::run(&args, context),
        Command::Spectrum(args) => spectrum::run(args, context),
        Command::Forces(args) => rhmc::forces::run(&args, context),
        Command::Rational(args) => rational::run(&args, context),
        Command::Rhmc(args) => rhmc::run(&args, context),
        Command::Fit(args) => fit::run(&args, context),
        Command::Report(args) => report::run(&args, context),
        Command::Init(args) => init::run(&args, context),
        Command::Tune(args) => tune::run(args, context),
        Command::Check(args) => check::run(args, context),
        Command::Completions(args) => shell::completions(&args, context),
        Command::Man(args) => shell::man(&args, context),
    }
}

/// Output, processes and global flags of a command.
pub struct Context {
    /// Destination of results.
    pub output: Output,
    /// The processes of this run.
    pub comm: RunCommunicator,
    /// Session for tasks: the communicator, and an observer that shows progress and requests a stop at a signal.
    pub session: Session,
    /// Global flags as typed.
    global: GlobalFlags,
}

impl Context {
    /// Checks the global flags and returns the choice of the device.
    ///
    /// # Errors
    /// All mistakes in the flags.
    pub fn device_choice(&self) -> Outcome<DeviceChoice> {
        let mut input = Input::new(&keys::EVERY_INPUT);
        self.add_to(&mut input);
        let choice = DeviceChoice::of(&mut input);
        input.finish("the command line").map_err(|mistakes| Failure::from(mistakes).shared())?;
        Ok(choice)
    }
    /// Adds the global flags to the input of a command that also reads a file.
    fn add_to(&self, input: &mut Input) {
        input.flag("backend", self.global.backend.as_deref());
        input.flag("device", self.global.device.as_deref());
        input.flag("threads", self.global.threads.as_deref());
        input.flag("memory", self.global.memory.as_deref());
        input.flag("tuning", self.global.tuning.as_deref());
        input.flag("grid", self.global.grid.as_deref());
        input.flag("transport", self.global.transport.as_deref());
        input.flag("no-overlap", self.global.no_overlap.then_some("true"));
        input.flag("share-gpus", self.global.share_gpus.then_some("true"));
    }
}

/// Fails if an argument is not UTF-8. Records are JSON and could not contain it, so the check comes before any work.
fn utf8(arguments: &[OsString], program: &mut clap::Command) -> Result<(), clap::Error> {
    let Some(odd) = arguments.iter().find(|argument| argument.to_str().is_none()) else { return Ok(()) };
    let why = format!(
        "the argument '{}' is not UTF-8, but JSON output requires UTF-8; rename the file or its folder",
        odd.display()
    );
    Err(program.error(clap::error::ErrorKind::InvalidUtf8, why))
}

/// Command line that was parsed.
struct Invocation<P: CommandLine> {
    command: P::Command,
    context: Context,
}

impl<P: CommandLine> Invocation<P> {
    /// Parses a command line, which begins with the name of the program. Prints help, version and mistakes itself.
    fn parse(arguments: &[OsString], comm: RunCommunicator) -> Result<Self, ExitCode> {
        let program = P::command();
        let typed = || P::try_parse_from(usage::rearranged(arguments, &program)).map(P::parts);
        let parsed = utf8(arguments, &mut program.clone()).and_then(|()| typed());
        match parsed.map_err(|error| usage::explained(error, arguments, &program)) {
            Ok((command, global)) => {
                log::start(global.verbose, global.quiet || !comm.speaks());
                let output = Output::new(comm.rank(), Reader::of(&global), global.quiet);
                let is_off = !comm.speaks() || (global.quiet && global.progress == ProgressFlag::Bar);
                let progress = ShownProgress::new(if is_off { ProgressFlag::Off } else { global.progress });
                let session = Session::new(comm.clone(), Arc::new(progress));
                Ok(Invocation { command, context: Context { output, comm, session, global } })
            }
            Err(error) => {
                if !comm.speaks() {
                    return Err(if error.use_stderr() { Code::Refused } else { Code::Done }.into());
                }
                // Help, the version and a closed pipe are not mistakes.
                let code = if error.use_stderr() { Code::Refused } else { Code::Done };
                let text = if arguments.len() < 2 { P::FIRST_EXAMPLES.into() } else { error.render().to_string() };
                if error.use_stderr() {
                    terminal::say(&text);
                } else {
                    let _ = terminal::print(std::io::stdout().lock(), &text);
                }
                if error.use_stderr() && arguments.iter().any(|a| a == "--json") {
                    let mistake = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string();
                    let tips = text.lines().filter_map(|line| line.trim_start().strip_prefix("tip: "));
                    let sentence = tips.fold(mistake, |sentence, tip| format!("{sentence}; {tip}"));
                    Output::new(0, Reader::Program, true).failure(&Failure::new(code, sentence));
                }
                Err(code.into())
            }
        }
    }
    /// Runs the command and reports its end. A failure that only this process has is returned to the caller.
    fn finish(self) -> Outcome<ExitCode> {
        let Invocation { command, context } = self;
        let threads = context.comm.agree(device::threads_of_environment());
        let ended = threads.and_then(|()| P::run(command, &context));
        interrupt::end();
        match ended {
            Ok(()) => Ok(Code::Done.into()),
            Err(failure) if failure.is_shared() || context.comm.size() == 1 => {
                context.output.failure(&failure);
                Ok(failure.code.into())
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Installs a panic hook that reports panics as bugs.
fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let version = env!("CARGO_PKG_VERSION");
        terminal::say(&format!(
            "error: this is a bug in ferrite {version}: {panic}\nPlease report it with the command line and these lines.\n"
        ));
    }));
}
