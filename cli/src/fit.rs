//! Command `ferrite fit`.
use super::{Context, Failure, Outcome};
use clap::{Args, ValueEnum};
use ferrite::statistics::effective::CorrelatorShape;
use ferrite::statistics::fit::correlator::CorrelatorSettings;
use ferrite::statistics::fit::covariance::CovarianceKind;
use ferrite::statistics::jackknife::Resampling;
use ferrite_inputs::files::not_an_input;
use ferrite_records::fit::FitRecord;
use ferrite_records::read::schema;
use ferrite_report::analysis::AnalysisChoice;
use ferrite_report::analysis::flow::FlowAnalysis;
use ferrite_report::analysis::hadrons::{HadronFit, channels, fits};
use ferrite_report::analysis::pcac::PcacFit;
use ferrite_report::analysis::potential::PotentialAnalysis;
use ferrite_report::analysis::traces::{self, TraceAnalysis};
use ferrite_report::records::correlators::{CorrelatorRecord, Correlators, PcacChannel, pcac_channels};
use ferrite_report::records::ensemble::{Stream, streams_sentence};
use ferrite_report::records::measurements::MeasurementRecord;
use ferrite_report::records::read_all;
use ferrite_report::records::traces::TraceHistory;
use std::path::PathBuf;
use tracing::warn;

const EXAMPLES: &str = "\
Examples:
  ferrite fit spectrum                                  # folder of ferrite spectrum --out spectrum: pion, rho, nucleon
  ferrite fit spectrum --hadron pion --window 6:16 --bin 2
  ferrite fit spectrum --hadron nucleon --states 1,2 --bootstrap 500
  ferrite fit spectrum --hadron pion --momentum 1,0,0   # E(p), mean over equivalent momenta
  ferrite fit stream-a stream-b --bin 4                 # two chains of one ensemble
  ferrite fit spectrum --hadron pcac --ca -0.04         # quark mass of the improved axial current
  ferrite fit flow.jsonl                                # file of ferrite measure --flow 4 -o flow.jsonl: t0, w0
  ferrite fit loops.jsonl --window 3:6 --distances 1.4:6  # file of measure --loops 8,6: static potential, r0
  ferrite fit condensate.jsonl                          # file of ferrite trace -o condensate.jsonl: means over configurations

The fits are least squares with the covariance of the data; errors are from the jackknife or the bootstrap. Without --window all
windows are tried. The output shows the most probable one by the Akaike criterion of Jay and Neil (2020), and the mean over all.
`ferrite report` draws the fits.";

/// Arguments of `fit`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct FitArguments {
    /// Folders of `ferrite spectrum`, or files of `ferrite measure -o` or `ferrite trace -o`; several are analysed together if
    /// all were made with the same input and no configuration occurs twice
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// First and last time of the fit window; for Wilson loops, first and last T [default: the most probable window]
    #[arg(long, value_name = "A:B", value_parser = window, allow_hyphen_values = true)]
    window: Option<[usize; 2]>,
    /// Number of states in the fit of a correlator: 1, 2, or 1,2 to try both
    #[arg(long, value_name = "N", value_parser = states, default_value = "1", value_delimiter = ',', allow_hyphen_values = true)]
    states: Vec<usize>,
    /// Form of the decay of correlators [default: exp for nucleons, sinh for the meson gxgygz-g5, cosh for other mesons]
    #[arg(long, value_name = "NAME", value_enum)]
    form: Option<Form>,
    /// Name of a hadron, pcac, or name of a correlator in correlators.json; repeat the flag for several names [default: the
    /// hadrons in the summary of `ferrite spectrum`]
    #[arg(long, value_name = "NAME")]
    hadron: Vec<String>,
    /// Momentum of the hadrons in units of 2π/L, averaged over equivalent momenta; repeat the flag for several momenta
    /// [default: 0,0,0]
    #[arg(long, value_name = "X,Y,Z", value_parser = momentum, allow_hyphen_values = true)]
    momentum: Vec<[i32; 3]>,
    /// Coefficient c_A of the improved axial current, for pcac [default: 0]
    #[arg(long, value_name = "X", value_parser = finite, allow_hyphen_values = true)]
    ca: Option<f64>,
    /// Type of covariance matrix [default: full if there are at least four bins for each datum that a window may include,
    /// otherwise shrunk]
    #[arg(long, value_name = "NAME", value_enum)]
    covariance: Option<CovarianceName>,
    /// Number of configurations in a bin [default: the key bin in the input of `ferrite spectrum`, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    bin: Option<u32>,
    /// Number of bootstrap samples; the errors are then from the bootstrap instead of the jackknife
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=100_000), allow_hyphen_values = true)]
    bootstrap: Option<u32>,
    /// Seed of the bootstrap samples [default: 1]
    #[arg(long, value_name = "N", requires = "bootstrap", allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Shortest and longest distance in the fit of the potential [default: the most probable range]
    #[arg(long, value_name = "A:B", value_parser = distances, allow_hyphen_values = true)]
    distances: Option<[f64; 2]>,
}

/// `--form`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// exp(−E t) + exp(−E (T − t))
    Cosh,
    /// exp(−E t) − exp(−E (T − t))
    Sinh,
    /// exp(−E t)
    Exp,
}

/// `--covariance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CovarianceName {
    /// Covariance of the bins
    Full,
    /// Covariance with correlations multiplied by a number below 1 that is estimated from the data
    Shrunk,
    /// Variances, without correlations
    Diagonal,
}

fn pair<T: std::str::FromStr + PartialOrd>(text: &str) -> Option<[T; 2]> {
    let (first, last) = text.split_once(':')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some([first, last])
}

fn window(text: &str) -> Result<[usize; 2], String> {
    pair(text).ok_or_else(|| format!("'{text}' is not of the form A:B with whole numbers 0 ≤ A ≤ B, such as 6:16"))
}

fn distances(text: &str) -> Result<[f64; 2], String> {
    let found = pair::<f64>(text).filter(|pair| pair[0] > 0.0 && pair[1].is_finite());
    found.ok_or_else(|| format!("'{text}' is not of the form A:B with numbers 0 < A ≤ B, such as 1.4:6"))
}

fn momentum(text: &str) -> Result<[i32; 3], String> {
    let numbers: Option<Vec<i32>> = text.split(',').map(|k| k.trim().parse().ok()).collect();
    let found = numbers.and_then(|numbers| <[i32; 3]>::try_from(numbers).ok());
    found.ok_or_else(|| format!("'{text}' is not of the form X,Y,Z with whole numbers, such as 1,0,0"))
}

fn finite(text: &str) -> Result<f64, String> {
    let found = text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    found.ok_or_else(|| format!("'{text}' is not a finite number"))
}

fn states(text: &str) -> Result<usize, String> {
    match text.trim() {
        "1" => Ok(1),
        "2" => Ok(2),
        _ => Err(format!("'{text}' is neither 1 nor 2")),
    }
}

/// Returns the settings of the analysis.
fn choice(args: &FitArguments, bin: usize, streams: Vec<Stream>) -> AnalysisChoice {
    let resampling = match args.bootstrap {
        None => Resampling::Jackknife,
        Some(draws) => Resampling::Bootstrap { draws: draws as usize, seed: args.seed.unwrap_or(1) },
    };
    let covariance = args.covariance.map(|name| match name {
        CovarianceName::Full => CovarianceKind::Full,
        CovarianceName::Shrunk => CovarianceKind::Shrunk,
        CovarianceName::Diagonal => CovarianceKind::Diagonal,
    });
    let shape = args.form.map(|form| match form {
        Form::Cosh => CorrelatorShape::Cosh,
        Form::Sinh => CorrelatorShape::Sinh,
        Form::Exp => CorrelatorShape::Exponential,
    });
    let mut states = args.states.clone();
    states.sort_unstable();
    states.dedup();
    let fits = CorrelatorSettings { window: args.window, states, covariance, resampling };
    AnalysisChoice { bin: args.bin.map_or(bin, |bin| bin as usize), fits, shape, distances: args.distances, streams }
}

/// Reads the records, fits them, and prints the results.
pub fn run(args: &FitArguments, context: &Context) -> Outcome {
    context.comm.only_one("ferrite fit")?;
    if let Some(path) = args.paths.iter().find(|path| path.is_dir() && !CorrelatorRecord::is_in(path)) {
        let why = "ferrite spectrum did not write this folder; name a folder of ferrite spectrum, or a file of \
                   ferrite measure -o or ferrite trace -o";
        return Err(Failure::refused(format!("{}: {why}", path.display())));
    }
    for path in args.paths.iter().filter(|path| !path.is_dir()) {
        if let Some(what) = not_an_input(path) {
            let why = format!(
                "is {what}; name a folder of ferrite spectrum, or a file of ferrite measure -o or ferrite trace -o"
            );
            return Err(Failure::refused(format!("{} {why}", path.display())));
        }
    }
    let read = read_all(&args.paths)?;
    for path in &read.half {
        warn!("{}: the last line is incomplete and was skipped", path.display());
    }
    let shown = Shown { args, name: names(&args.paths), context };
    match read.lines.first().map(|line| &line.value) {
        Some(first) if TraceHistory::is_one(first) => {
            of_traces(&shown, &TraceHistory::of(&read.lines).map_err(Failure::refused)?)
        }
        Some(first) if MeasurementRecord::is_one(first) => {
            measurements(&shown, &MeasurementRecord::of(&read.lines).map_err(Failure::refused)?)
        }
        Some(first) if !CorrelatorRecord::is_one(first) => {
            let found =
                schema(first).map_or("the line has no schema".into(), |schema| format!("the schema is '{schema}'"));
            let why = "name a folder of ferrite spectrum, or a file of ferrite measure -o or ferrite trace -o";
            Err(Failure::refused(format!("{}: {found}; {why}", read.lines[0].place)))
        }
        None if args.paths.iter().any(|path| !path.is_dir()) => {
            let why = "there is no configuration yet; try again after the first one has been measured";
            Err(Failure::refused(format!("{}: {why}", shown.name)))
        }
        _ => spectrum(&shown, &CorrelatorRecord::of(&read, &args.paths).map_err(Failure::refused)?),
    }
}

/// Returns the paths as text, separated by commas.
fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Records under analysis, with the output for the results.
struct Shown<'a> {
    args: &'a FitArguments,
    /// Paths of the records as text.
    name: String,
    context: &'a Context,
}

impl Shown<'_> {
    /// Returns the record of the analysis, without fits.
    fn record(&self, choice: &AnalysisChoice, configurations: usize) -> FitRecord {
        FitRecord {
            path: self.args.paths[0].clone(),
            paths: self.args.paths.clone(),
            samples: choice.record(configurations),
            hadrons: None,
            pcac: None,
            traces: None,
            flow: None,
            potential: None,
        }
    }
    /// Returns the first lines of the text: the data that are analysed, and their chains.
    fn head(&self, choice: &AnalysisChoice, configurations: usize) -> String {
        let streams = streams_sentence(&choice.streams).map_or(String::new(), |streams| format!("{streams}\n"));
        format!("{}: {}\n{streams}", self.name, choice.sentence(configurations))
    }
}

fn refuse(flags: &[(&str, bool)], path: &str, what: &str) -> Outcome {
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::refused(format!("{path}: {flag} does not apply to {what}; remove {flag}"))),
        None => Ok(()),
    }
}

fn spectrum(shown: &Shown, record: &CorrelatorRecord) -> Outcome {
    let Shown { args, name: folder, context } = shown;
    refuse(&[("--distances", args.distances.is_some())], folder, "correlators")?;
    let choice = choice(args, record.bin, record.streams.clone());
    let times = record.all[0].all.first().map_or(0, |c| c.values.len());
    if let Some([_, last]) = args.window.filter(|[_, last]| *last >= times) {
        let why = format!(
            "--window ends at t = {last}, but the correlators of {folder} end at t = {0}; choose an end no later than {0}",
            times.saturating_sub(1)
        );
        return Err(Failure::refused(why));
    }
    let (mut pcac, names) = pcac_of(&record.all[0], &args.hadron);
    if !args.momentum.is_empty() {
        // PCAC masses are computed from correlators at zero momentum.
        if !args.hadron.is_empty() && !pcac.is_empty() {
            let name = &pcac[0].name;
            return Err(Failure::refused(format!(
                "--momentum does not apply to \"{name}\", a PCAC mass, which is measured at zero momentum only: remove \
                 --momentum or --hadron \"{name}\""
            )));
        }
        pcac.clear();
    }
    if let (Some(_), true) = (args.ca, pcac.is_empty()) {
        let all = pcac_channels(&record.all[0]);
        let flags: Vec<String> = all.iter().map(|channel| format!("--hadron \"{}\"", channel.name)).collect();
        let advice = match (flags.is_empty(), args.momentum.is_empty()) {
            (true, _) => {
                format!("{folder} has no correlators for them; run `ferrite spectrum` with pcac = true, or remove --ca")
            }
            (false, false) => "remove --momentum or --ca".into(),
            (false, true) => format!("give {}, or remove --ca", flags.join(" or ")),
        };
        return Err(Failure::refused(format!("--ca applies to PCAC masses only, but none is fitted: {advice}")));
    }
    let channels = match names {
        Some(names) => channels(&record.all[0], &names).map_err(|why| Failure::refused(format!("--hadron: {why}")))?,
        None => Vec::new(),
    };
    if let Some([first, last]) =
        args.window.filter(|[first, last]| !pcac.is_empty() && (*first < 1 || *last > times / 2))
    {
        return Err(Failure::refused(format!(
            "--window {first}:{last}: the PCAC mass exists from t = 1 to T/2 = {} only; choose a window in this range",
            times / 2
        )));
    }
    for channel in &channels {
        let folded = choice.shape.unwrap_or(channel.shape) != CorrelatorShape::Exponential;
        if let Some([_, last]) = args.window.filter(|[_, last]| folded && *last > times / 2) {
            return Err(Failure::refused(format!(
                "--window ends at t = {last}, but the correlator '{}' is folded at T/2 = {1}; choose an end no later \
                 than {1}",
                channel.name,
                times / 2
            )));
        }
    }
    let momenta = if args.momentum.is_empty() { &[[0; 3]][..] } else { &args.momentum };
    let found = momenta.iter().map(|momentum| fits(record, &channels, *momentum, &choice));
    let found = found.collect::<Result<Vec<_>, String>>();
    let found = found.map_err(|why| Failure::refused(format!("--momentum: {folder}: {why}")))?.concat();
    let improvement = args.ca.unwrap_or(0.0);
    let pcac: Vec<PcacFit> =
        pcac.iter().filter_map(|channel| PcacFit::of(channel, &record.all, improvement, &choice)).collect();
    let mut errors =
        found.iter().map(|one| one.fit.as_ref().err()).chain(pcac.iter().map(|one| one.fit.as_ref().err()));
    if errors.clone().all(|error| error.is_some()) {
        let why = errors.find_map(|error| error.map(ferrite_report::analysis::why_not));
        let why = why.unwrap_or_else(|| {
            "no correlator belongs to a known hadron; give --hadron with names from correlators.json".into()
        });
        return Err(Failure::refused(format!("{folder}: {why}")));
    }
    let n = record.all.len();
    let record = FitRecord {
        hadrons: Some(found.iter().map(HadronFit::record).collect()),
        pcac: Some(pcac.iter().map(PcacFit::record).collect()),
        ..shown.record(&choice, n)
    };
    context.output.record(&record, || {
        let mut text = shown.head(&choice, n);
        for one in &found {
            text += &one.text();
            if args.window.is_none() {
                text += &one.windows_text();
            }
        }
        for one in &pcac {
            text += &one.text();
            text += &one.masses_text();
        }
        text
    })
}

/// Returns the PCAC channels among `names`, or all channels without names; and the names of hadrons, if any are to be fitted.
fn pcac_of(first: &Correlators, names: &[String]) -> (Vec<PcacChannel>, Option<Vec<String>>) {
    let mut all = pcac_channels(first);
    if names.is_empty() {
        return (all, Some(Vec::new()));
    }
    let hadrons: Vec<String> =
        names.iter().filter(|name| !all.iter().any(|channel| channel.name == **name)).cloned().collect();
    all.retain(|channel| names.contains(&channel.name));
    (all, Some(hadrons).filter(|hadrons| !hadrons.is_empty()))
}

fn of_traces(shown: &Shown, record: &TraceHistory) -> Outcome {
    let Shown { args, name: path, context } = shown;
    let flags = [
        ("--form", args.form.is_some()),
        ("--momentum", !args.momentum.is_empty()),
        ("--hadron", !args.hadron.is_empty()),
        ("--window", args.window.is_some()),
        ("--distances", args.distances.is_some()),
        ("--covariance", args.covariance.is_some()),
    ];
    refuse(&flags, path, "traces")?;
    let (choice, n) = (choice(args, 1, record.streams.clone()), record.all.len());
    let found = traces::traces(&record.all, &choice);
    let means = Some(found.iter().map(TraceAnalysis::record).collect());
    let record = FitRecord { traces: means, ..shown.record(&choice, n) };
    context.output.record(&record, || shown.head(&choice, n) + &traces::text(&found))
}

fn measurements(shown: &Shown, record: &MeasurementRecord) -> Outcome {
    let Shown { args, name: path, context } = shown;
    let flags = [
        ("--form", args.form.is_some()),
        ("--hadron", !args.hadron.is_empty()),
        ("--momentum", !args.momentum.is_empty()),
        ("--ca", args.ca.is_some()),
    ];
    refuse(&flags, path, "measurements")?;
    let choice = choice(args, 1, record.streams.clone());
    let flow = FlowAnalysis::of(&record.all, &choice);
    let loops = &record.all[0].wilson_loops;
    if loops.is_empty() {
        let flags = [("--distances", args.distances.is_some()), ("--window", args.window.is_some())];
        refuse(&flags, path, "measurements without Wilson loops")?;
    }
    let times = loops.first().map_or(0, |one| one.values.len());
    if let Some([first, last]) = args.window.filter(|[first, last]| *first < 1 || *last > times) {
        let why = format!(
            "--window {first}:{last} is not within T = 1 to {times}, the times of the Wilson loops in {path}; choose a \
             window in this range"
        );
        return Err(Failure::refused(why));
    }
    let potential = PotentialAnalysis::of(&record.all, &choice);
    if flow.is_none() && potential.is_none() {
        let why = "the measurements contain neither a flow nor Wilson loops; run `ferrite measure` again with --flow T \
                   or --loops R,T, and write to another file";
        return Err(Failure::refused(format!("{path}: {why}")));
    }
    let n = record.all.len();
    let record = FitRecord {
        flow: Some(flow.as_ref().map(FlowAnalysis::record)),
        potential: Some(potential.as_ref().map(PotentialAnalysis::record)),
        ..shown.record(&choice, n)
    };
    context.output.record(&record, || {
        let mut text = shown.head(&choice, n);
        text += &flow.map_or_else(String::new, |flow| flow.text());
        text += &potential.map_or_else(String::new, |potential| potential.text());
        text
    })
}
