//! Section on scaling: speed as a function of the number of processes. The data come from several runs of a benchmark, from a model, or
//! from points of earlier measurements.
use super::figure::{Figure, undrawable};
use crate::error::ReportError;
use crate::page;
use crate::plot::{CurveStyle, LinePlot, PlottedCurve, lines};
use crate::text::{count, escape, extents};
use ferrite_records::bench::{ScalingPoint, TimedCall};
use ferrite_records::place::PlaceRecord;
use ferrite_records::read::{read_leniently, read_list_leniently};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum number of points that are kept.
const MOST_POINTS: usize = 20_000;
const MOST_FIGURES: usize = 48;
const MOST_CURVES: usize = 10;
const MOST_ROWS: usize = 400;

/// A row of the output of `ferrite bench dslash`.
#[derive(Clone)]
struct BenchmarkRow {
    operator: String,
    /// Precision of the fields, and number of reals that are stored for each link.
    format: String,
    lattice: [u64; 4],
    nrhs: u64,
    microseconds: f64,
    gflops: f64,
    gbps: f64,
    fraction_of_copy: f64,
}

/// Output of `ferrite bench dslash --json`, as read for a report.
pub struct Benchmark {
    processes: u64,
    grid: [u64; 4],
    device: String,
    setup: TimingSetup,
    rows: Vec<BenchmarkRow>,
}

/// Operator and lattice whose efficiencies appear in one figure.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ScalingSubject {
    /// Kind of scaling: `strong` or `weak`.
    kind: &'static str,
    operator: String,
    /// Extents of the whole lattice; in weak scaling, those of the local lattice.
    lattice: String,
}

/// Section of a page on scaling.
#[derive(Default)]
pub struct ScalingSection {
    benchmarks: Vec<Benchmark>,
    /// Efficiencies for each subject and format, by number of processes.
    curves: BTreeMap<ScalingSubject, BTreeMap<String, BTreeMap<u64, f64>>>,
    points: usize,
    /// Number of points that repeat an earlier point with another efficiency.
    again: usize,
}

/// Device and transport of a timing. Times with different setups are not compared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TimingSetup {
    /// Description of the device without the number of threads, which depends on the number of processes on a machine.
    device: String,
    /// Transport of faces, and whether the exchange overlaps with computation. `None` for one process, which sends no faces.
    way: Option<String>,
}

impl std::fmt::Display for TimingSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.device)?;
        self.way.as_ref().map_or(Ok(()), |way| write!(f, ", {way}"))
    }
}

impl TimingSetup {
    fn of(device: &str, transport: Option<&str>, overlap: Option<bool>) -> Self {
        let is_count = |part: &&str| !part.ends_with(" thread") && !part.ends_with(" threads");
        let device = device.split(", ").filter(is_count).collect::<Vec<_>>().join(", ");
        let way = transport.map(|transport| match overlap {
            Some(false) => format!("{transport} without overlap"),
            _ => transport.into(),
        });
        TimingSetup { device, way }
    }
}

/// Adds the times of one process to every setup of several processes on the same device.
fn with_single(mut setups: BTreeMap<TimingSetup, BTreeMap<u64, f64>>) -> BTreeMap<TimingSetup, BTreeMap<u64, f64>> {
    let single: Vec<_> =
        setups.iter().filter(|(setup, _)| setup.way.is_none()).map(|(s, t)| (s.clone(), t.clone())).collect();
    for (alone, times) in single {
        let mut shared = false;
        for (_, others) in setups.iter_mut().filter(|(s, _)| s.device == alone.device && s.way.is_some()) {
            shared = true;
            for (processes, time) in &times {
                others.entry(*processes).or_insert(*time);
            }
        }
        if shared {
            setups.remove(&alone);
        }
    }
    setups
}

/// Scaling curves by subject and name.
struct Curves {
    curves: BTreeMap<ScalingSubject, BTreeMap<String, BTreeMap<u64, f64>>>,
    /// Number of points that were given more than once.
    again: usize,
}

impl Curves {
    fn note(&self) -> String {
        format!("{} measured more than once; the fastest time counts", count(self.again, "point"))
    }
}

/// Returns the four numbers if all are above 0; otherwise `None`.
fn four(numbers: [usize; 4]) -> Option<[u64; 4]> {
    numbers.iter().all(|n| (1..1 << 30).contains(n)).then(|| numbers.map(|n| n as u64))
}

/// Returns the name of a format: the precision, and the number of reals that are stored for each link.
fn format_of(precision: &str, reals: &str) -> String {
    if reals.is_empty() { precision.into() } else { format!("{precision}, {reals} reals") }
}

impl Benchmark {
    /// Reads the output of a benchmark from a JSON object; incomplete rows are ignored.
    pub fn read(object: &Value) -> Result<Self, String> {
        let rows: Vec<TimedCall> = read_list_leniently(&object["rows"]).ok_or("is a benchmark without rows")?;
        let row = |row: TimedCall| {
            Some(BenchmarkRow {
                format: format_of(&row.precision, &row.reconstruct),
                lattice: four(row.lattice)?,
                nrhs: row.nrhs as u64,
                microseconds: Some(row.microseconds).filter(|t| *t > 0.0)?,
                gflops: row.gflops,
                gbps: row.gbps,
                fraction_of_copy: row.fraction_of_copy,
                operator: row.operator,
            })
        };
        let PlaceRecord { device, layout, .. } = read_leniently(object);
        Ok(Benchmark {
            processes: layout.processes.max(1) as u64,
            grid: four(layout.grid).unwrap_or([1; 4]),
            setup: TimingSetup::of(&device, layout.transport.as_deref(), layout.overlap),
            device,
            rows: rows.into_iter().filter_map(row).take(MOST_POINTS).collect(),
        })
    }
    /// Returns the extents of the local lattice of a process, or `None` if the grid does not divide the lattice.
    fn local(&self, row: &BenchmarkRow) -> Option<[u64; 4]> {
        let even = (0..4).all(|mu| row.lattice[mu].is_multiple_of(self.grid[mu]));
        even.then(|| std::array::from_fn(|mu| row.lattice[mu] / self.grid[mu]))
    }
}

impl ScalingSection {
    /// Adds the results of a benchmark to the section.
    pub fn add_benchmark(&mut self, benchmark: Benchmark) -> Result<(), String> {
        if benchmark.rows.is_empty() {
            return Err("is a benchmark without rows that can be shown".into());
        }
        self.benchmarks.push(benchmark);
        Ok(())
    }
    /// Adds points to the section. A point needs `scaling`, `operator`, a format, an efficiency, and `gpus` or `grid`; other points are
    /// ignored.
    pub fn add_points(&mut self, points: &Value) -> Result<(), String> {
        let before = self.points;
        for point in read_list_leniently::<ScalingPoint>(points).ok_or("has no scaling points")? {
            let kind = match point.scaling.as_deref() {
                Some("weak") => "weak",
                Some("strong") => "strong",
                _ => continue,
            };
            let [grid, lattice, local] =
                [point.grid, point.lattice, point.local_lattice].map(|numbers| numbers.and_then(four));
            let processes = point.gpus.map(|n| n as u64).or(grid.map(|grid| grid.iter().product()));
            let (Some(processes), Some(efficiency)) = (processes.filter(|n| *n > 0), point.efficiency) else {
                continue;
            };
            let lattice = match (lattice, local, grid) {
                (_, Some(local), _) if kind == "weak" => local,
                (Some(whole), None, Some(grid)) if kind == "weak" => std::array::from_fn(|mu| whole[mu] / grid[mu]),
                (Some(whole), ..) => whole,
                _ => continue,
            };
            let setup = TimingSetup::of(&point.device, point.transport.as_deref(), point.overlap).to_string();
            let format = format_of(&point.precision, &point.reconstruct);
            let name = [format, setup].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
            let subject = ScalingSubject { kind, operator: point.operator, lattice: extents(lattice) };
            self.add(subject, name.join(", "), processes, efficiency);
        }
        if self.points == before { Err("has no points with an efficiency".into()) } else { Ok(()) }
    }
    fn add(&mut self, subject: ScalingSubject, format: String, processes: u64, efficiency: f64) {
        if self.points < MOST_POINTS && efficiency.is_finite() {
            self.points += 1;
            let curve = self.curves.entry(subject).or_default().entry(format).or_default();
            // One process has efficiency 1 by definition.
            curve.entry(1).or_insert(1.0);
            let known = curve.entry(processes).or_insert(efficiency);
            if *known != efficiency {
                self.again += 1;
                *known = known.max(efficiency);
            }
        }
    }
    /// Returns a sentence that summarises the section.
    pub fn sentence(&self) -> String {
        let (runs, all) = (self.benchmarks.len(), self.all_curves());
        let known = all.curves.values().map(BTreeMap::len).sum::<usize>();
        let text = format!("{}, {} of scaling", count(runs, "benchmark"), count(known, "curve"));
        if all.again == 0 { text } else { format!("{text}; {}", all.note()) }
    }
    /// Returns the curves that were given, and those from benchmarks with several numbers of processes.
    fn all_curves(&self) -> Curves {
        let mut times_of: BTreeMap<(ScalingSubject, String), BTreeMap<TimingSetup, BTreeMap<u64, f64>>> =
            BTreeMap::new();
        let mut again = self.again;
        for benchmark in &self.benchmarks {
            for row in &benchmark.rows {
                let format =
                    if row.nrhs == 1 { row.format.clone() } else { format!("{}, {} rhs", row.format, row.nrhs) };
                let mut note = |kind, lattice| {
                    let subject = ScalingSubject { kind, operator: row.operator.clone(), lattice: extents(lattice) };
                    let setups = times_of.entry((subject, format.clone())).or_default();
                    let curve = setups.entry(benchmark.setup.clone()).or_default();
                    let known = curve.entry(benchmark.processes).or_insert(row.microseconds);
                    if *known != row.microseconds {
                        // Each row is used twice, for strong and for weak scaling, but a repeated row counts once.
                        again += usize::from(kind == "strong");
                        *known = known.min(row.microseconds);
                    }
                };
                note("strong", row.lattice);
                if let Some(local) = benchmark.local(row) {
                    note("weak", local);
                }
            }
        }
        let mut curves = self.curves.clone();
        for ((subject, format), setups) in times_of {
            let setups = with_single(setups);
            let several = setups.len() > 1;
            for (setup, times) in setups {
                let Some((&first, &time)) = times.first_key_value().filter(|_| times.len() > 1) else { continue };
                let speedup =
                    |processes: u64| if subject.kind == "strong" { processes as f64 / first as f64 } else { 1.0 };
                let efficiencies = times.iter().map(|(n, t)| (*n, time / (t * speedup(*n)))).collect();
                let name = if several { format!("{format}, {setup}") } else { format.clone() };
                curves.entry(subject.clone()).or_default().insert(name, efficiencies);
            }
        }
        Curves { curves, again }
    }
    /// Appends the section to a page, unless it is empty.
    pub fn put(&self, html: &mut String) -> Result<(), ReportError> {
        let all = self.all_curves();
        let curves = &all.curves;
        if self.benchmarks.is_empty() && curves.is_empty() {
            return Ok(());
        }
        page::heading(html, "Scaling");
        for (subject, formats) in curves.iter().take(MOST_FIGURES) {
            page::put(html, &efficiency(subject, formats)?);
        }
        if curves.len() > MOST_FIGURES {
            let _ = writeln!(html, "<p>{} more figures are not shown.</p>", curves.len() - MOST_FIGURES);
        }
        if all.again > 0 {
            let _ = writeln!(html, "<p>{}.</p>", all.note());
        }
        for benchmark in &self.benchmarks {
            table(html, benchmark);
        }
        Ok(())
    }
}

/// Draws efficiencies as a function of the number of processes.
fn efficiency(subject: &ScalingSubject, formats: &BTreeMap<String, BTreeMap<u64, f64>>) -> Result<Figure, ReportError> {
    let ScalingSubject { kind, operator, lattice } = subject;
    let curves = formats.iter().take(MOST_CURVES).map(|(name, points)| {
        let points: Vec<(f64, f64)> = points.iter().map(|(n, e)| (*n as f64, 100.0 * e)).collect();
        let style = if points.len() > 1 { CurveStyle::Line } else { CurveStyle::Marks };
        PlottedCurve { name: name.clone(), points, style }
    });
    let where_ = if *kind == "weak" { format!("{lattice} for each process") } else { format!("{lattice} in all") };
    let plot = LinePlot {
        title: format!("{operator}, {kind} scaling"),
        subtitle: where_.clone(),
        axes: ["processes".into(), "efficiency in per cent".into(), String::new()],
        logarithmic: [true, false],
        curves: curves.collect(),
    };
    let svg = lines::svg(&plot).map_err(|why| undrawable(&plot.title, &why))?;
    let against = "the time with the fewest processes over the time with more";
    let mut caption = match *kind {
        "weak" => format!("Weak scaling of {operator}, {where_}: {against}."),
        _ => format!(
            "Strong scaling of {operator}, {where_}: {against}, divided by the ratio of the numbers of \
                      processes."
        ),
    };
    if formats.len() > MOST_CURVES {
        let _ = write!(caption, " {} more curves are not shown.", formats.len() - MOST_CURVES);
    }
    Ok(Figure { svg, caption })
}

/// Appends a table of the rows of a benchmark to a page.
fn table(html: &mut String, benchmark: &Benchmark) {
    let processes = count(benchmark.processes as usize, "process");
    let about = escape(&format!("{processes} in the grid {}, {}", extents(benchmark.grid), benchmark.device));
    let _ = writeln!(html, "<p>{about}:</p>\n<div class=\"wide\">\n<table>");
    *html += "<thead><tr><th>operator</th><th>format</th><th>lattice</th><th>right-hand sides</th><th>µs</th>\
              <th>GFLOP/s</th><th>GB/s</th><th>of a copy</th></tr></thead>\n<tbody>\n";
    for row in benchmark.rows.iter().take(MOST_ROWS) {
        let number = |x: f64, digits: usize| if x.is_finite() { format!("{x:.digits$}") } else { "–".into() };
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} %</td></tr>",
            escape(&row.operator),
            escape(&row.format),
            extents(row.lattice),
            row.nrhs,
            number(row.microseconds, 1),
            number(row.gflops, 1),
            number(row.gbps, 1),
            number(100.0 * row.fraction_of_copy, 0)
        );
    }
    *html += "</tbody>\n</table>\n</div>\n";
    if benchmark.rows.len() > MOST_ROWS {
        let _ = writeln!(html, "<p>{} more rows are not shown.</p>", benchmark.rows.len() - MOST_ROWS);
    }
}
