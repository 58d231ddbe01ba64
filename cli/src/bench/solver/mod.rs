//! Command `ferrite bench solver`, and the parts of it that other studies of solvers use.
mod formats;
pub mod table;

use crate::batch::Needs;
use crate::device::Device;
use crate::fields::{Reading, lattice_of, read_gauge};
use crate::formats::FormatFlags;
use crate::keys::SOLVE;
use crate::layout::{Cut, Layout};
use crate::plan::{definition, staggered_names};
use crate::plot::write_lines;
use crate::text::lattice;
use crate::{Context, Failure, Outcome, target};
use clap::Args;
use ferrite::FermionKind;
use ferrite::bench::solver::{Cell, SolverScheme, SolverStudy, StudyFailure};
use ferrite::domain::Domain;
use ferrite::field::host::HostGauge;
use ferrite::gauge::quenched::{Generator, Start};
use ferrite::lattice::Lattice;
use ferrite::{LinkStorage, Precision};
use ferrite_inputs::Input;
use ferrite_records::bench::{BenchLinks, BenchSolverRecord};
use ferrite_records::progress::ProgressLine;
use ferrite_report::plot::LinePlot;
use ferrite_tasks::progress::Watch;
use ferrite_tasks::session::Session;
use serde_json::{Map, Value};
use solvers::SolveError;
use std::path::PathBuf;
use table::{Results, name, picture, print};
use tracing::info;

const EXAMPLES: &str = "\
Examples:
  ferrite bench solver --operator asqtad --u0 plaquette --gauge quenched.ildg --masses 0.1,0.02 --precision double,single
  ferrite bench solver --operator asqtad --lattice 32,32,32,64 --masses 0.02 --shifts 0,0.001,0.01,0.1 --reconstruct 8,8h

Generates a quenched configuration (or reads one) and solves on it for random sources, antiperiodic in time, by CG on
M^+ M. Iterations include updates; the time of an iteration is the time of a whole solve, updates included, divided by the
other iterations. A star marks a mass at which a solve did not converge: there is no escalation here. The plot shows the
time to solution and, dashed, the speed-up over double precision. There is one column for each precision and
reconstruction, with reliable updates in double precision. With --shifts, the systems (M^+ M + s) x = b are solved at each
mass on all sites; without, M x = b on the even sites.";

/// Arguments of `bench solver`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct SolverBenchArguments {
    #[arg(long, value_name = "NAME", help = format!("Operator: {}", staggered_names()))]
    operator: String,
    /// Bare masses, separated by commas [default: 0.1,0.05,0.02,0.01,0.005]
    #[arg(long, value_name = "M", value_delimiter = ',', allow_hyphen_values = true)]
    masses: Option<Vec<f64>>,
    #[command(flatten)]
    study: StudyFlags,
    #[command(flatten)]
    formats: FormatFlags,
    /// Solve (M^+ M + s) x = b for these shifts s, separated by commas
    #[arg(long, value_name = "S1,S2,...", allow_hyphen_values = true)]
    shifts: Option<String>,
    /// Solver for several shifts: multishift (all together, then refined one by one) or sequential [default: multishift]
    #[arg(long, value_name = "NAME")]
    shift_solver: Option<String>,
    /// Tadpole factor of asqtad, or 'plaquette' for the fourth root of the mean plaquette [default: 1]
    #[arg(long, value_name = "U", allow_hyphen_values = true)]
    u0: Option<String>,
    /// Correction epsilon of HISQ's Naik term [default: 0]
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    naik_epsilon: Option<String>,
}

/// Flags of the links, the sources and the limits of a study of solvers, and of its plot.
#[derive(Args)]
pub struct StudyFlags {
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
    /// Number of random sources to average over
    #[arg(long, value_name = "N", default_value_t = 5)]
    sources: u64,
    /// Requested tolerance of the true residual |b - M x| / |b| of each system
    #[arg(long, default_value_t = 1e-12)]
    tol: f64,
    /// Maximum number of iterations of a solve
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    max_iterations: usize,
    /// Plot the time to solution and the speed-up over double precision against the mass
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// Reads the flags of the operator.
fn subject(args: &SolverBenchArguments) -> Outcome<formats::FormatsPlan> {
    let mut input = Input::new(&SOLVE);
    let texts = [
        ("operator", Some(&args.operator)),
        ("u0", args.u0.as_ref()),
        ("naik-epsilon", args.naik_epsilon.as_ref()),
        ("shifts", args.shifts.as_ref()),
        ("shift-solver", args.shift_solver.as_ref()),
    ];
    for (key, value) in texts {
        input.flag(key, value.map(String::as_str));
    }
    if let (Some(definition), Some(place)) = (definition(&mut input), input.get("operator"))
        && definition.kind != FermionKind::Staggered
    {
        let why = format!(
            "'{}' is not an operator of this benchmark: choose one of {}; for the Wilson operator, run \
             `ferrite-studies mixed-precision`",
            definition.name,
            staggered_names()
        );
        input.wrong(&place, why);
        input.finish("the command line")?;
    }
    formats::FormatsPlan::new(args, &mut input)
}

/// Solves for all masses in all schemes, and prints the averages.
pub fn run(args: SolverBenchArguments, context: &Context) -> Outcome {
    let checked = || {
        let plan = subject(&args)?;
        let masses = plan.masses(&args)?;
        Ok((plan, args.study.study(masses)?))
    };
    let (plan, study) = context.comm.agree(checked())?;
    let hops = if plan.is_improved() { 3 } else { 1 };
    let name = args.study.gauge.clone().unwrap_or_else(|| "the configuration".into());
    let solved = args.study.on_links(
        hops,
        |cut| plan.memory(cut),
        context,
        |domain, gauge, plaquette| plan.work(domain, gauge, plaquette, &name, &study, context),
    )?;
    let (results, operator) = &solved.work;
    args.study.draw(context, || picture(results, plan.plot_title(solved.lattice()), |_| true))?;
    let parameters = plan.parameters(operator);
    let record = args.study.record(&solved, (plan.definition().name, None), &study, results, parameters);
    context
        .output
        .record(&record, || solved.title() + &print(&plan.title(), &results.table(None), &study, &results.rates))
}

/// Result of a study of solvers, with its device and the partitioned lattice.
pub struct SolvedStudy<T> {
    device: Device,
    layout: Layout,
    /// Result of the study.
    pub work: T,
}

impl<T> SolvedStudy<T> {
    /// Returns the whole lattice.
    pub fn lattice(&self) -> Lattice {
        self.layout.lattice()
    }
    /// Returns the first line of the text: device and lattice.
    pub fn title(&self) -> String {
        format!("{}, {}\n", self.device.describe(), self.lattice())
    }
}

impl StudyFlags {
    /// Checks the flags, and returns the study of these masses.
    ///
    /// # Errors
    /// A sentence on the first flag that is wrong.
    pub fn study(&self, masses: Vec<f64>) -> Outcome<SolverStudy> {
        if let Some(path) = &self.plot {
            target::check_svg(path).map_err(Failure::refused)?;
        }
        let wrong = |what: &str| Err(Failure::refused(what));
        match self {
            StudyFlags { tol, .. } if !(*tol > 0.0 && *tol < 1.0) => {
                wrong(&format!("--tol {tol}: expected a number above 0 and below 1"))
            }
            StudyFlags { beta, .. } if !(*beta > 0.0 && beta.is_finite()) => {
                wrong(&format!("--beta {beta}: expected a finite number above 0"))
            }
            StudyFlags { sources: 0, .. } => wrong("--sources 0: expected at least 1"),
            _ => Ok(SolverStudy { masses, sources: self.sources, tol: self.tol, max_iterations: self.max_iterations }),
        }
    }
    /// *Collective.* Reads or generates the links, and does the work of a study on them, which gets the mean plaquette, too. The operator
    /// has `hops` steps, and needs `memory` on the device.
    ///
    /// # Errors
    /// A file that cannot be read or written, too little memory, or a failure of the work.
    pub fn on_links<T>(
        &self,
        hops: usize,
        memory: impl FnOnce(Cut) -> Needs,
        context: &Context,
        work: impl FnOnce(&Domain, &HostGauge, f64) -> Outcome<T>,
    ) -> Outcome<SolvedStudy<T>> {
        let comm = &context.comm;
        target::claim(comm, &target::all(&self.gauge), &target::all(&self.plot))?;
        let (choice, read) = (context.device_choice()?, Reading::default());
        let device = choice.open(comm)?;
        let lattice = match &self.gauge {
            Some(path) => lattice_of(path, &read, comm)?,
            None => self.lattice,
        };
        let layout = choice.layout.cut(comm, lattice, hops)?;
        let study = format!("the study on the local lattice {}", layout.local());
        device.require_all(comm, &memory(layout.cut()), &study)?;
        let file = self.gauge.as_ref().map(|path| read_gauge(path, &read, &layout, comm)).transpose()?;
        context.session.listen();
        let work = {
            let domain = layout.domain(device.backend())?;
            let (gauge, plaquette) = match file {
                Some(file) => (file.gauge, file.plaquette.mean),
                None => quenched(&domain, self, &context.session)?,
            };
            work(&domain, &gauge, plaquette)?
        };
        Ok(SolvedStudy { device, layout, work })
    }
    /// *Collective.* Draws the plot, if one was requested.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn draw(&self, context: &Context, plot: impl FnOnce() -> LinePlot) -> Outcome {
        match &self.plot {
            Some(path) => {
                let lines = plot();
                context.comm.once(|| write_lines(path, &lines).map_err(Failure::failed))
            }
            None => Ok(()),
        }
    }
    /// Returns the record of a study of an operator, with the number of the paper that it repeats, if there is one.
    pub fn record<T>(
        &self,
        solved: &SolvedStudy<T>,
        (operator, paper): (&str, Option<&str>),
        study: &SolverStudy,
        results: &Results,
        parameters: Map<String, Value>,
    ) -> BenchSolverRecord {
        let links = BenchLinks { beta: self.beta, sweeps: self.sweeps, seed: self.seed };
        BenchSolverRecord {
            place: solved.device.record(&solved.layout),
            operator: operator.into(),
            paper: paper.map(String::from),
            lattice: solved.lattice().size(),
            gauge: self.gauge.clone(),
            quenched: self.gauge.is_none().then_some(links),
            sources: study.sources,
            tol: study.tol,
            parameters,
            rows: results.rows(),
            plot: self.plot.clone(),
        }
    }
}

/// Generates a quenched configuration. Returns it with its mean plaquette.
fn quenched(domain: &Domain, args: &StudyFlags, session: &Session) -> Outcome<(HostGauge, f64)> {
    let sweeps = crate::text::count(args.sweeps as usize, "sweep");
    info!("generating a quenched configuration: beta {}, {sweeps}", args.beta);
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
///
/// # Errors
/// An interruption, or a failure of the device or of a solver that could not start.
pub fn columns(
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
