//! Tables and plots of studies of solvers.
use crate::plan::{PRECISIONS, RECONSTRUCTIONS, name_of};
use ferrite::bench::solver::{Cell, SolverScheme, SolverStudy};
use ferrite::solve::{Correction, Method};
use ferrite::{LinkStorage, Precision};
use ferrite_records::bench::BenchSolverRow;
use ferrite_report::plot::{CurveStyle, LinePlot, PlottedCurve};
use std::fmt::Write;

/// Speed of the matrix in each format, timed without a solver, in 10⁹ floating-point operations per second.
pub type Rates = Vec<((Precision, LinkStorage), f64)>;

/// Cells of all tables, with the speed of the matrix in each format of a cell.
#[derive(Default)]
pub struct Results {
    /// Cells in the order in which they were solved, each with the number of its table; `None` for staggered operators.
    pub cells: Vec<(Option<u32>, Cell)>,
    /// Speed of the matrix in each format.
    pub rates: Rates,
}

impl Results {
    /// Returns the cells of the table whose number is `number`.
    pub fn table(&self, number: Option<u32>) -> Vec<&Cell> {
        self.cells.iter().filter(|(table, _)| *table == number).map(|(_, cell)| cell).collect()
    }
    /// Returns the records of all cells.
    pub fn rows(&self) -> Vec<BenchSolverRow> {
        self.cells.iter().map(|(table, cell)| row(*table, cell, &self.rates)).collect()
    }
}

fn method(scheme: &SolverScheme) -> &'static str {
    if scheme.method == Method::CG { "CG" } else { "BiCGstab" }
}
fn format_name(scheme: &SolverScheme) -> String {
    format!("{} {}", name_of(&PRECISIONS, scheme.precision), name_of(&RECONSTRUCTIONS, scheme.reconstruction))
}
/// Returns the name and the value of a correction's parameter.
fn parameter(scheme: &SolverScheme) -> Option<(&'static str, f64)> {
    match scheme.correction {
        Correction::Reliable { delta } => delta.map(|delta| ("delta", delta)),
        Correction::Defect { inner_tol } => Some(("inner_tol", inner_tol)),
    }
}
/// Returns the name of a scheme in tables and messages.
pub fn name(scheme: &SolverScheme) -> String {
    let parameter = parameter(scheme).map_or(String::new(), |(name, value)| format!(", {name} {value:e}"));
    format!("{}, {}{parameter}", method(scheme), format_name(scheme))
}
fn rate(rates: &Rates, scheme: &SolverScheme) -> f64 {
    let format = (scheme.precision, scheme.reconstruction);
    rates.iter().find(|(known, _)| *known == format).map_or(f64::NAN, |(_, rate)| *rate)
}

fn row(table: Option<u32>, cell: &Cell, rates: &Rates) -> BenchSolverRow {
    let scheme = &cell.scheme;
    BenchSolverRow {
        table,
        mass: cell.mass,
        solver: scheme.method.name.into(),
        precision: name_of(&PRECISIONS, scheme.precision).into(),
        reconstruct: name_of(&RECONSTRUCTIONS, scheme.reconstruction).into(),
        correction: scheme.correction.name().into(),
        parameter: parameter(scheme).map(|(_, value)| value),
        iterations: cell.iterations,
        updates: cell.updates,
        seconds: cell.seconds,
        microseconds_per_iteration: 1e6 * cell.seconds_per_iteration(),
        first_iterations: cell.first_iterations,
        first_seconds: cell.first_seconds,
        first_microseconds_per_iteration: 1e6 * cell.seconds_per_first_iteration(),
        gflops: cell.gflops,
        matrix_gflops: rate(rates, scheme),
        true_residual: cell.true_residual,
        failures: cell.failures.clone(),
    }
}

/// Returns the results of a table as text: iterations, seconds and speeds, each by mass (rows) and scheme (columns).
pub fn print(title: &str, cells: &[&Cell], study: &SolverStudy, rates: &Rates) -> String {
    let mut schemes: Vec<SolverScheme> = Vec::new();
    for cell in cells {
        if !schemes.contains(&cell.scheme) {
            schemes.push(cell.scheme);
        }
    }
    let sources = crate::text::count(study.sources as usize, "source");
    let mut text = format!("\n{title}, to {:e}, {sources}\n{:>9}", study.tol, "m");
    for scheme in &schemes {
        let parameter = parameter(scheme).map_or(method(scheme).into(), |(_, value)| format!("{value:e}"));
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
    block("iterations, including updates", &|cell| format!("{:.0}", cell.iterations));
    block("seconds", &|cell| format!("{:.3}", cell.seconds));
    block("microseconds per iteration", &|cell| format!("{:.1}", 1e6 * cell.seconds_per_iteration()));
    if cells.iter().any(|cell| cell.first_iterations > 0.0) {
        block("iterations of multi-shift CG (microseconds per iteration)", &|cell| {
            format!("{:.0} ({:.1})", cell.first_iterations, 1e6 * cell.seconds_per_first_iteration())
        });
    }
    block("GFLOP/s, and percentage of the rate of the matrix alone", &|cell| {
        format!("{:.0} ({:.0}%)", cell.gflops, 100.0 * cell.gflops / rate(rates, &cell.scheme))
    });
    text.push('\n');
    text
}

/// Plots time to solution and speed-up relative to double precision of the cells that satisfy `shown`, as in figure 7 of Clark et al. 2009.
pub fn picture(results: &Results, title: String, shown: impl Fn(&Cell) -> bool) -> LinePlot {
    let cells = || results.cells.iter().map(|(_, cell)| cell).filter(|cell| cell.failures.is_empty() && shown(cell));
    // For each mass, speed-ups are relative to the fastest solve in double precision.
    let double = |mass: f64| {
        let of_mass = cells().filter(|cell| cell.mass == mass && cell.scheme.precision == Precision::Double);
        of_mass.map(|cell| cell.seconds).min_by(f64::total_cmp)
    };
    let mut curves: Vec<PlottedCurve> = Vec::new();
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
                let name = if dashed { format!("{name}, speed-up") } else { name };
                let style = if dashed { CurveStyle::DashedRight } else { CurveStyle::Line };
                curves.push(PlottedCurve { name, points, style });
            }
        }
    }
    LinePlot {
        title,
        subtitle: "time to solution; dashed: speed-up over double precision".into(),
        axes: ["m".into(), "seconds".into(), "speed-up".into()],
        logarithmic: [false; 2],
        curves,
    }
}
