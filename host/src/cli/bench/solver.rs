//! `ferrite bench solver`.
use crate::cli::device::on_device;
use crate::cli::fields::read_gauge;
use crate::cli::plan::{METHODS, PRECISIONS, RECONSTRUCTIONS, name_of};
use crate::cli::progress::Watch;
use crate::cli::text::lattice;
use crate::cli::{Code, Context, Failure, Outcome, interrupt, target};
use crate::plot::{Line, Lines, write_lines};
use clap::{Args, ValueEnum};
use ferrite::backend::Backend;
use ferrite::bench::solver::{Cell, Scheme, Study, Table, cell, matrix_gflops};
use ferrite::dirac::{TimeBoundary, WilsonParams};
use ferrite::domain::Domain;
use ferrite::field::host::HostGauge;
use ferrite::files::ReadOptions;
use ferrite::lattice::Lattice;
use ferrite::quenched::{Generator, Start};
use ferrite::solve::{Configuration, Correction, IterationPrecision, Method, Reconstruction, Request, SolveFailure};
use serde_json::{Value, json};
use solvers::SolveError;
use std::fmt::Write;
use std::path::PathBuf;
use tracing::info;

const EXAMPLES: &str = "\
Examples:
  ferrite bench solver --paper 001 --plot time-to-solution.svg
  ferrite bench solver --paper 001 --table 5 --gauge quenched.ildg --masses=-0.76,-0.79 --sources 2
  ferrite bench solver --paper 001 --lattice 8,8,8,16 --sweeps 50 --sources 1 --backend cpu

Makes a quenched configuration (or reads one) and solves the even-odd Wilson system on it for random sources, antiperiodic
in time. Tables are those of Clark et al., arXiv:0911.3191: 3, iterations in double; 4, of BiCGstab with defect correction
over inner tolerances; 5, with reliable updates over delta. Iterations count updates, as there. A star is a mass at which
some solve did not converge. The plot is figure 7: time to solution, and dashed how many times faster than double.";

/// Which study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    /// Clark, Babich, Barros, Brower and Rebbi 2009
    #[value(name = "001")]
    MixedPrecision,
}

/// Arguments of `bench solver`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The study to repeat
    #[arg(long, value_enum, default_value = "001")]
    paper: Paper,
    /// Which tables, joined with commas
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "3,4,5")]
    table: Vec<u32>,
    /// A configuration, instead of a quenched one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lattice", "beta", "sweeps", "seed"])]
    gauge: Option<PathBuf>,
    /// Extents of the quenched configuration
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice, default_value = "24,24,24,64")]
    lattice: Lattice,
    /// Its coupling
    #[arg(long, default_value_t = 6.0)]
    beta: f64,
    /// Sweeps from the unit field, each of one heat bath and four over-relaxations
    #[arg(long, value_name = "N", default_value_t = 500)]
    sweeps: u32,
    /// Seed of the configuration
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Bare masses, joined with commas
    #[arg(long, value_name = "M", value_delimiter = ',', allow_hyphen_values = true,
        default_values_t = [-0.785, -0.79, -0.795, -0.80, -0.803, -0.806, -0.808, -0.81, -0.812])]
    masses: Vec<f64>,
    /// Random sources to average over
    #[arg(long, value_name = "N", default_value_t = 5)]
    sources: u64,
    /// Asked |b - M x| / |b|
    #[arg(long, default_value_t = 1e-12)]
    tol: f64,
    /// Most iterations of a solve
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    max_iterations: usize,
    /// Draw time to solution and speed-up against the mass
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// The tables that were asked for.
fn tables(numbers: &[u32]) -> Outcome<Vec<(u32, Table)>> {
    let table = |number: &u32| match number {
        3 => Ok((3, Table::Three)),
        4 => Ok((4, Table::Four)),
        5 => Ok((5, Table::Five)),
        other => Err(Failure::refused(format!("--table {other}: the tables are 3, 4 and 5"))),
    };
    numbers.iter().map(table).collect()
}

/// Solves and prints.
pub fn run(args: Arguments, context: &Context) -> Outcome {
    let tables = tables(&args.table)?;
    let Paper::MixedPrecision = args.paper;
    if let Some(path) = &args.plot {
        target::check_svg(path).map_err(Failure::refused)?;
    }
    let wrong = |what: &str| Err(Failure::refused(what));
    match &args {
        Arguments { tol, .. } if !(*tol > 0.0 && *tol < 1.0) => return wrong("--tol is a number above 0 and below 1"),
        Arguments { beta, .. } if !(*beta > 0.0 && beta.is_finite()) => return wrong("--beta is a number above 0"),
        Arguments { sources: 0, .. } => return wrong("--sources is at least 1"),
        Arguments { masses, .. } if masses.iter().any(|m| !m.is_finite() || *m <= -4.0) => {
            return wrong("--masses are numbers above -4");
        }
        _ => {}
    }
    let device = context.device_choice()?.open()?;
    let file = args.gauge.as_ref().map(|path| read_gauge(path, &ReadOptions::default())).transpose()?;
    let lattice = file.as_ref().map_or(args.lattice, |file| file.gauge.lattice());
    // Three formats stay on the device beside the one in double.
    let operator = WilsonParams::from_mass(args.masses[0], TimeBoundary::Antiperiodic);
    let request = Request { method: Method::Cg, reconstruction: Reconstruction::Eighteen, ..Request::new(operator) };
    let mut needs = request.memory(lattice.half_volume(), 1);
    needs.push(("links in the other formats", 1152 * lattice.half_volume()));
    device.require(&needs, &format!("the study on {lattice}"))?;
    interrupt::listen();
    let study = Study {
        masses: args.masses.clone(),
        sources: args.sources,
        tol: args.tol,
        max_iterations: args.max_iterations,
    };
    let (results, rates) = on_device!(&device, backend => {
        let domain = Domain::single(backend.clone(), lattice)?;
        let gauge = match file {
            Some(file) => file.gauge,
            None => quenched(&domain, &args)?,
        };
        work(&Configuration::new(&domain, &gauge), &study, &tables, context)
    })?;
    if let Some(path) = &args.plot {
        write_lines(path, &picture(&results, lattice)).map_err(Failure::failed)?;
    }
    let object = json!({
        "backend": device.name(),
        "device": device.describe(),
        "paper": "001",
        "lattice": lattice.size(),
        "gauge": args.gauge,
        "quenched": args.gauge.is_none().then(|| json!({"beta": args.beta, "sweeps": args.sweeps, "seed": args.seed})),
        "sources": study.sources,
        "tol": study.tol,
        "rows": results.iter().map(|(table, cell)| row(*table, cell, &rates)).collect::<Vec<_>>(),
        "plot": args.plot,
    });
    context.output.result("ferrite.bench-solver/1", object, || {
        let mut text = format!("{}, {lattice}\n", device.describe());
        for (number, _) in &tables {
            let cells: Vec<&Cell> = results.iter().filter(|(table, _)| table == number).map(|(_, cell)| cell).collect();
            text += &print(*number, &cells, &study, &rates);
        }
        text
    })
}

fn quenched<B: Backend>(domain: &Domain<B>, args: &Arguments) -> Outcome<HostGauge> {
    info!("making a quenched configuration: beta {}, {} sweeps", args.beta, args.sweeps);
    let mut generator = Generator::new(domain, Start::Cold, args.beta, args.seed)?;
    for _ in 0..args.sweeps {
        generator.sweep(1, 4)?;
        if interrupt::asked() {
            return Err(Failure::new(Code::Interrupted, "interrupted while the configuration was made"));
        }
    }
    info!("plaquette {:.6}", generator.plaquette()?.mean);
    Ok(generator.gauge()?)
}

/// Rates of the matrix by itself.
type Rates = Vec<((IterationPrecision, Reconstruction), f64)>;

fn work<B: Backend>(
    configuration: &Configuration<B>,
    study: &Study,
    tables: &[(u32, Table)],
    context: &Context,
) -> Outcome<(Vec<(u32, Cell)>, Rates)> {
    let (mut cells, mut rates): (_, Rates) = (Vec::new(), Vec::new());
    for (number, table) in tables {
        for scheme in table.schemes() {
            let format = (scheme.precision, scheme.reconstruction);
            if !rates.iter().any(|(known, _)| *known == format) {
                rates.push((format, matrix_gflops(configuration, format.0, format.1)?));
            }
            for &mass in &study.masses {
                info!("table {number}: {}, m = {mass}", name(&scheme));
                let mut watch = Watch::new(study.tol, context.shows_progress());
                let result = cell(configuration, study, mass, scheme, &mut watch);
                watch.finish();
                cells.push((*number, result.map_err(failure)?));
            }
        }
    }
    Ok((cells, rates))
}

fn failure(failure: SolveFailure) -> Failure {
    match failure {
        SolveFailure::Unfinished { .. } => Failure::new(Code::Interrupted, "interrupted"),
        SolveFailure::Solver(SolveError::Backend(error)) | SolveFailure::Device(error) => error.into(),
        SolveFailure::Solver(error) => Failure::refused(error),
    }
}

fn method(scheme: &Scheme) -> &'static str {
    if scheme.method == Method::Cg { "CG" } else { "BiCGstab" }
}
fn format_name(scheme: &Scheme) -> String {
    format!("{} {}", name_of(&PRECISIONS, scheme.precision), name_of(&RECONSTRUCTIONS, scheme.reconstruction))
}
/// The parameter of the correction and its name.
fn parameter(scheme: &Scheme) -> Option<(&'static str, f64)> {
    match scheme.correction {
        Correction::Reliable { delta } => delta.map(|delta| ("delta", delta)),
        Correction::Defect { inner_tol } => Some(("inner_tol", inner_tol)),
    }
}
fn name(scheme: &Scheme) -> String {
    let parameter = parameter(scheme).map_or(String::new(), |(name, value)| format!(", {name} {value:.0e}"));
    format!("{}, {}{parameter}", method(scheme), format_name(scheme))
}
fn rate(rates: &Rates, scheme: &Scheme) -> f64 {
    let format = (scheme.precision, scheme.reconstruction);
    rates.iter().find(|(known, _)| *known == format).map_or(f64::NAN, |(_, rate)| *rate)
}

fn row(table: u32, cell: &Cell, rates: &Rates) -> Value {
    let scheme = &cell.scheme;
    let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
    json!({
        "table": table,
        "mass": cell.mass,
        "solver": name_of(&METHODS, scheme.method),
        "precision": name_of(&PRECISIONS, scheme.precision),
        "reconstruct": name_of(&RECONSTRUCTIONS, scheme.reconstruction),
        "correction": scheme.correction.name(),
        "parameter": parameter(scheme).map(|(_, value)| value),
        "iterations": number(cell.iterations),
        "updates": number(cell.updates),
        "seconds": number(cell.seconds),
        "gflops": number(cell.gflops),
        "matrix_gflops": number(rate(rates, scheme)),
        "true_residual": cell.true_residual,
        "failures": cell.failures,
    })
}

/// A table as the paper has it, then seconds and rates in the same order.
fn print(number: u32, cells: &[&Cell], study: &Study, rates: &Rates) -> String {
    let mut schemes: Vec<Scheme> = Vec::new();
    for cell in cells {
        if !schemes.contains(&cell.scheme) {
            schemes.push(cell.scheme);
        }
    }
    let title = match number {
        3 => "iterations in double precision",
        4 => "iterations of BiCGstab with defect correction in double",
        _ => "iterations of BiCGstab with reliable updates in double",
    };
    let mut text = format!("\nTable {number}: {title}, to {:.0e}, {} sources\n{:>9}", study.tol, study.sources, "m");
    for scheme in &schemes {
        let parameter = parameter(scheme).map_or(method(scheme).into(), |(_, value)| format!("{value:.0e}"));
        let _ = write!(text, " {:>18}", format!("{} {parameter}", format_name(scheme)));
    }
    let mut block = |heading: &str, show: &dyn Fn(&Cell) -> String| {
        let _ = write!(text, "\n{heading}");
        for &mass in &study.masses {
            let _ = write!(text, "\n{mass:>9.4}");
            for scheme in &schemes {
                let cell = cells.iter().find(|cell| cell.mass == mass && cell.scheme == *scheme);
                let shown = cell.map_or(String::new(), |cell| match cell.failures.is_empty() {
                    true => show(cell),
                    false => "*".into(),
                });
                let _ = write!(text, " {shown:>18}");
            }
        }
    };
    block("iterations, updates included", &|cell| format!("{:.0}", cell.iterations));
    block("seconds", &|cell| format!("{:.3}", cell.seconds));
    block("GFLOP/s, and of the matrix by itself", &|cell| {
        format!("{:.0} ({:.0}%)", cell.gflops, 100.0 * cell.gflops / rate(rates, &cell.scheme))
    });
    text.push('\n');
    text
}

/// Figure 7: time to solution, and speed-up against double.
fn picture(results: &[(u32, Cell)], lattice: Lattice) -> Lines {
    let shown = |cell: &Cell| {
        cell.scheme.method == Method::Bicgstab
            && cell.failures.is_empty()
            && match cell.scheme.correction {
                Correction::Reliable { delta: Some(delta) } => {
                    delta == 0.1
                        || cell.scheme.reconstruction == Reconstruction::Twelve
                            && cell.scheme.precision == IterationPrecision::Single
                            && delta == 0.01
                }
                Correction::Reliable { delta: None } => true,
                Correction::Defect { .. } => false,
            }
    };
    let cells = || results.iter().map(|(_, cell)| cell).filter(|cell| shown(cell));
    // The faster of the solves in double is the measure.
    let double = |mass: f64| {
        let of_mass = cells().filter(|cell| cell.mass == mass && cell.scheme.precision == IterationPrecision::Double);
        of_mass.map(|cell| cell.seconds).min_by(f64::total_cmp)
    };
    let mut lines: Vec<Line> = Vec::new();
    for dashed in [false, true] {
        let mut names: Vec<String> = Vec::new();
        for cell in cells() {
            let name = format_name(&cell.scheme);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let of_name = cells().filter(|cell| format_name(&cell.scheme) == name);
            let points: Vec<(f64, f64)> = match dashed {
                false => of_name.map(|cell| (cell.mass, cell.seconds)).collect(),
                true => of_name.filter_map(|cell| Some((cell.mass, double(cell.mass)? / cell.seconds))).collect(),
            };
            let is_double = name.starts_with("double");
            if !(points.is_empty() || dashed && is_double) {
                lines.push(Line { name: if dashed { format!("{name}, speed-up") } else { name }, points, dashed });
            }
        }
    }
    Lines {
        title: format!("BiCGstab with reliable updates on {lattice}, Wilson"),
        subtitle: "time to solution; dashed: how many times faster than double precision".into(),
        axes: ["m".into(), "seconds".into(), "speed-up".into()],
        lines,
    }
}
