//! Command `ferrite bench solver`.
mod formats;
mod paper;
mod table;

use crate::fields::{Reading, lattice_of, read_gauge};
use crate::formats::FormatFlags;
use crate::keys::SOLVE;
use crate::plan::{definition, refuse_foreign_keys, staggered_names};
use crate::plot::write_lines;
use crate::text::lattice;
use crate::{Context, Failure, Outcome, target};
use clap::{Args, ValueEnum};
use ferrite::FermionKind;
use ferrite::bench::solver::{Cell, SolverScheme, SolverStudy, StudyFailure};
use ferrite::domain::Domain;
use ferrite::field::host::HostGauge;
use ferrite::gauge::quenched::{Generator, Start};
use ferrite::lattice::Lattice;
use ferrite::operators::WILSON;
use ferrite::solve::Configuration;
use ferrite::{LinkStorage, Precision};
use ferrite_inputs::Input;
use ferrite_records::bench::{BenchLinks, BenchSolverRecord};
use ferrite_records::progress::ProgressLine;
use ferrite_tasks::progress::Watch;
use ferrite_tasks::session::Session;
use serde_json::Map;
use solvers::SolveError;
use std::path::PathBuf;
use table::{Results, name, picture, print};
use tracing::info;

const EXAMPLES: &str = "\
Examples:
  ferrite bench solver --paper 001 --plot time-to-solution.svg
  ferrite bench solver --paper 001 --table 5 --gauge quenched.ildg --masses=-0.76,-0.79 --sources 2
  ferrite bench solver --paper 001 --lattice 8,8,8,16 --sweeps 50 --sources 1 --backend cpu
  ferrite bench solver --operator asqtad --u0 plaquette --gauge quenched.ildg --masses 0.1,0.02 --precision double,single
  ferrite bench solver --operator asqtad --lattice 32,32,32,64 --masses 0.02 --shifts 0,0.001,0.01,0.1 --reconstruct 8,8h

Generates a quenched configuration (or reads one) and solves on it for random sources, antiperiodic in time: the even-odd
Wilson system, or staggered systems by CG on M^+ M. Iterations include updates; the time of an iteration is the time of a
whole solve, updates included, divided by the other iterations. A star marks a mass at which a solve did not converge:
there is no escalation here. The plot shows the time to solution and, dashed, the speed-up over double precision.
For Wilson fermions, the tables are those of Clark et al., arXiv:0911.3191: 3, iterations in double precision; 4, BiCGstab
with defect correction for several inner tolerances; 5, with reliable updates for several delta; the plot is figure 7.
Staggered operators have one column for each precision and reconstruction, with reliable updates in double precision. With
--shifts, the systems (M^+ M + s) x = b are solved at each mass on all sites; without, M x = b on the even sites.";

/// Published study to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    /// Clark, Babich, Barros, Brower and Rebbi 2009
    #[value(name = "001")]
    MixedPrecision,
}

/// Arguments of `bench solver`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct SolverBenchArguments {
    #[arg(long, value_name = "NAME", help = format!("Operator: wilson, {} [default: wilson]", staggered_names()))]
    operator: Option<String>,
    /// Study to repeat, for Wilson fermions [default: 001]
    #[arg(long, value_enum)]
    paper: Option<Paper>,
    /// Tables of the study, separated by commas [default: 3,4,5]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    table: Option<Vec<u32>>,
    /// Gauge configuration, in any supported format, instead of a quenched one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lattice", "beta", "sweeps", "seed"])]
    gauge: Option<PathBuf>,
    /// Lattice extents of the quenched configuration
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice, default_value = "24,24,24,64")]
    lattice: Lattice,
    /// Gauge coupling beta of the quenched configuration
    #[arg(long, default_value_t = 6.0)]
    beta: f64,
    /// Number of sweeps from unit links, each with one heat bath and four over-relaxations
    #[arg(long, value_name = "N", default_value_t = 500)]
    sweeps: u32,
    /// Seed of the quenched configuration
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Bare masses, separated by commas [default: -0.785 to -0.812 for Wilson fermions, 0.1 to 0.005 for staggered fermions]
    #[arg(long, value_name = "M", value_delimiter = ',', allow_hyphen_values = true)]
    masses: Option<Vec<f64>>,
    /// Number of random sources to average over
    #[arg(long, value_name = "N", default_value_t = 5)]
    sources: u64,
    /// Requested tolerance of |b - M x| / |b|
    #[arg(long, default_value_t = 1e-12)]
    tol: f64,
    /// Maximum number of iterations of a solve
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    max_iterations: usize,
    /// Plot time to solution and speed-up against the mass
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Staggered operators")]
    formats: FormatFlags,
    /// Solve (M^+ M + s) x = b for these shifts s, separated by commas
    #[arg(long, value_name = "S1,S2,...", allow_hyphen_values = true, help_heading = "Staggered operators")]
    shifts: Option<String>,
    /// Solver for several shifts: multishift (all together, then refined one by one) or sequential [default: multishift]
    #[arg(long, value_name = "NAME", help_heading = "Staggered operators")]
    shift_solver: Option<String>,
    /// Tadpole factor of asqtad, or 'plaquette' for the fourth root of the mean plaquette [default: 1]
    #[arg(long, value_name = "U", allow_hyphen_values = true)]
    u0: Option<String>,
    /// Correction epsilon of HISQ's Naik term [default: 0]
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    naik_epsilon: Option<String>,
}

/// Solves of a benchmark: tables of the paper, or a staggered operator.
enum StudySubject {
    Paper(paper::Tables),
    Staggered(Box<formats::FormatsPlan>),
}

impl StudySubject {
    fn new(args: &SolverBenchArguments) -> Outcome<Self> {
        let mut input = Input::new(&SOLVE);
        let texts = [
            ("operator", &args.operator),
            ("u0", &args.u0),
            ("naik-epsilon", &args.naik_epsilon),
            ("shifts", &args.shifts),
            ("shift-solver", &args.shift_solver),
        ];
        for (key, value) in texts {
            input.flag(key, value.as_deref());
        }
        let chosen = definition(&mut input);
        if chosen.is_some_and(|definition| definition.kind == FermionKind::Staggered) {
            return formats::FormatsPlan::new(args, &mut input).map(|plan| StudySubject::Staggered(Box::new(plan)));
        }
        if let (Some(definition), Some(place)) = (chosen, input.get("operator"))
            && *definition != WILSON
        {
            let why = format!(
                "'{}' is not an operator of the study: choose wilson, or one of {}",
                definition.name,
                staggered_names()
            );
            input.wrong(&place, why);
        }
        refuse_foreign_keys(&mut input, &WILSON);
        input.finish("the command line")?;
        paper::Tables::new(args).map(StudySubject::Paper)
    }
}

/// Solves for all masses in all schemes, and prints the averages.
pub fn run(args: SolverBenchArguments, context: &Context) -> Outcome {
    let comm = &context.comm;
    let (subject, study) = comm.agree(checked(&args))?;
    target::claim(comm, &target::all(&args.gauge), &target::all(&args.plot))?;
    let (choice, read) = (context.device_choice()?, Reading::default());
    let device = choice.open(comm)?;
    let lattice = match &args.gauge {
        Some(path) => lattice_of(path, &read, comm)?,
        None => args.lattice,
    };
    let hops = match &subject {
        StudySubject::Staggered(plan) if plan.is_improved() => 3,
        _ => 1,
    };
    let layout = choice.layout.cut(comm, lattice, hops)?;
    let needs = match &subject {
        StudySubject::Paper(tables) => tables.memory(layout.cut()),
        StudySubject::Staggered(plan) => plan.memory(layout.cut()),
    };
    device.require_all(comm, &needs, &format!("the study on {lattice}"))?;
    let file = args.gauge.as_ref().map(|path| read_gauge(path, &read, &layout, comm)).transpose()?;
    context.session.listen();
    let (results, on_links) = {
        let backend = device.backend();
        let domain = layout.domain(backend)?;
        let (gauge, plaquette) = match file {
            Some(file) => (file.gauge, file.plaquette.mean),
            None => quenched(&domain, &args, &context.session)?,
        };
        match &subject {
            StudySubject::Paper(tables) => {
                tables.work(&Configuration::new(&domain, &gauge), &study, context).map(|results| (results, None))
            }
            StudySubject::Staggered(plan) => {
                let name = args.gauge.clone().unwrap_or_else(|| "the configuration".into());
                let solved = plan.work(&domain, &gauge, plaquette, &name, &study, context);
                solved.map(|(results, operator)| (results, Some(operator)))
            }
        }
    }?;
    if let Some(path) = &args.plot {
        let lines = match &subject {
            StudySubject::Paper(_) => {
                picture(&results, format!("BiCGstab with reliable updates on {lattice}, Wilson"), paper::is_shown)
            }
            StudySubject::Staggered(plan) => picture(&results, plan.plot_title(lattice), |_| true),
        };
        comm.once(|| write_lines(path, &lines).map_err(Failure::failed))?;
    }
    let (operator, paper, parameters) = match (&subject, &on_links) {
        (StudySubject::Staggered(plan), Some(operator)) => (plan.definition().name, None, plan.parameters(operator)),
        _ => (WILSON.name, Some("001".into()), Map::new()),
    };
    let record = BenchSolverRecord {
        place: device.record(&layout),
        operator: operator.into(),
        paper,
        lattice: lattice.size(),
        gauge: args.gauge.clone(),
        quenched: args.gauge.is_none().then_some(BenchLinks { beta: args.beta, sweeps: args.sweeps, seed: args.seed }),
        sources: study.sources,
        tol: study.tol,
        parameters,
        rows: results.rows(),
        plot: args.plot.clone(),
    };
    context.output.record(&record, || {
        let mut text = format!("{}, {lattice}\n", device.describe());
        match &subject {
            StudySubject::Paper(tables) => {
                for (number, _) in &tables.0 {
                    let cells = results.table(Some(*number));
                    text += &print(&paper::title(*number), &cells, &study, &results.rates);
                }
            }
            StudySubject::Staggered(plan) => {
                text += &print(&plan.title(), &results.table(None), &study, &results.rates);
            }
        }
        text
    })
}
/// Checks the flags, and returns the solves and the common settings.
fn checked(args: &SolverBenchArguments) -> Outcome<(StudySubject, SolverStudy)> {
    let subject = StudySubject::new(args)?;
    if let Some(path) = &args.plot {
        target::check_svg(path).map_err(Failure::refused)?;
    }
    let wrong = |what: &str| Err(Failure::refused(what));
    match args {
        SolverBenchArguments { tol, .. } if !(*tol > 0.0 && *tol < 1.0) => {
            return wrong(&format!("--tol {tol}: expected a number above 0 and below 1"));
        }
        SolverBenchArguments { beta, .. } if !(*beta > 0.0 && beta.is_finite()) => {
            return wrong(&format!("--beta {beta}: expected a number above 0"));
        }
        SolverBenchArguments { sources: 0, .. } => return wrong("--sources 0: expected at least 1"),
        _ => {}
    }
    let masses = match &subject {
        StudySubject::Paper(_) => paper::Tables::masses(args)?,
        StudySubject::Staggered(plan) => plan.masses(args)?,
    };
    let study = SolverStudy { masses, sources: args.sources, tol: args.tol, max_iterations: args.max_iterations };
    Ok((subject, study))
}

/// Generates a quenched configuration. Returns it with its mean plaquette.
fn quenched(domain: &Domain, args: &SolverBenchArguments, session: &Session) -> Outcome<(HostGauge, f64)> {
    info!("generating a quenched configuration: beta {}, {} sweeps", args.beta, args.sweeps);
    let mut generator = Generator::new(domain, Start::Cold, args.beta, args.seed)?;
    for sweep in 0..args.sweeps {
        generator.sweep(1, 4)?;
        if session.is_stopped(sweep as usize) {
            return Err(session.stopped("interrupted while the configuration was generated"));
        }
    }
    let plaquette = generator.plaquette()?.mean;
    info!("plaquette {plaquette:.6}");
    Ok((generator.gauge()?, plaquette))
}

/// Adds the results for all masses and schemes, and the speed of the matrix in each of their formats.
fn columns(
    results: &mut Results,
    table: Option<u32>,
    schemes: &[SolverScheme],
    study: &SolverStudy,
    context: &Context,
    rate: impl Fn(Precision, LinkStorage) -> Outcome<f64>,
    cell: impl Fn(f64, SolverScheme, &mut Watch) -> Result<Cell, StudyFailure>,
) -> Outcome {
    for scheme in schemes {
        let format = (scheme.precision, scheme.reconstruction);
        if !results.rates.iter().any(|(known, _)| *known == format) {
            results.rates.push((format, rate(format.0, format.1)?));
        }
        for &mass in &study.masses {
            let table_name = table.map_or(String::new(), |number| format!("table {number}: "));
            info!("{table_name}{}, m = {mass}", name(scheme));
            let work = ProgressLine { mass: Some(mass), ..ProgressLine::of("bench") };
            let mut watch = Watch::new(study.tol, work, &context.session);
            let result = cell(mass, *scheme, &mut watch);
            watch.finish();
            results.cells.push((table, result.map_err(|why| failure(why, &context.session))?));
        }
    }
    Ok(())
}

fn failure(failure: StudyFailure, session: &Session) -> Failure {
    match failure {
        StudyFailure::Interrupted => session.stopped("interrupted"),
        StudyFailure::Solver(SolveError::Backend(error)) | StudyFailure::Device(error) => error.into(),
        StudyFailure::Solver(error) => Failure::refused(error).shared(),
    }
}
