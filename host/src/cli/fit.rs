//! `ferrite fit`.
use super::named::not_an_input;
use super::{Context, Failure, Outcome};
use clap::{Args, ValueEnum};
use ferrite::statistics::effective::CorrelatorShape;
use ferrite::statistics::fit::correlator::CorrelatorSettings;
use ferrite::statistics::fit::covariance::CovarianceKind;
use ferrite::statistics::jackknife::Resampling;
use ferrite_report::analysis::AnalysisChoice;
use ferrite_report::analysis::flow::FlowAnalysis;
use ferrite_report::analysis::hadrons::{channels, fits};
use ferrite_report::analysis::pcac::PcacFit;
use ferrite_report::analysis::potential::PotentialAnalysis;
use ferrite_report::analysis::traces::{self, TraceAnalysis};
use ferrite_report::records::correlators::{CorrelatorRecord, Correlators, PcacChannel, pcac_channels};
use ferrite_report::records::measurements::MeasurementRecord;
use ferrite_report::records::traces::TraceRecord;
use serde_json::json;
use std::path::{Path, PathBuf};
use tracing::warn;

const EXAMPLES: &str = "\
Examples:
  ferrite fit spectrum                                  # of ferrite spectrum --out spectrum: pion, rho, nucleon
  ferrite fit spectrum --hadron pion --window 6:16 --bin 2
  ferrite fit spectrum --hadron nucleon --states 1,2 --bootstrap 500
  ferrite fit spectrum --hadron pcac --ca -0.04         # the quark mass of the axial current, improved
  ferrite fit flow.jsonl                                # of ferrite measure --flow 4 -o flow.jsonl: t0, w0
  ferrite fit loops.jsonl --window 3:6 --distances 1.4:6  # of measure --loops 8,6: the static potential, r0
  ferrite fit condensate.jsonl                          # of ferrite trace -o condensate.jsonl: means over configurations

Least squares with the covariance of the data, errors by the jackknife or the bootstrap. Without --window all windows are tried; the
most probable one by the criterion of Akaike as Jay and Neil (2020) have it is shown, and the mean over all. `ferrite report` draws
the fits.";

/// Arguments of `fit`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct FitArguments {
    /// A folder of `ferrite spectrum`, or a file of `ferrite measure -o` or `ferrite trace -o`
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// First and last time of the fit; of Wilson loops, in T [default: the most probable window]
    #[arg(long, value_name = "A:B", value_parser = window, allow_hyphen_values = true)]
    window: Option<[usize; 2]>,
    /// States of a correlator: 1, 2, or 1,2 to try both
    #[arg(long, value_name = "N", value_parser = states, default_value = "1", value_delimiter = ',', allow_hyphen_values = true)]
    states: Vec<usize>,
    /// How correlators fall [default: cosh for mesons, exp for nucleons]
    #[arg(long, value_name = "NAME", value_enum)]
    form: Option<Form>,
    /// Which hadron, pcac, or which correlator of correlators.json; several flags for several [default: those of the summary]
    #[arg(long, value_name = "NAME")]
    hadron: Vec<String>,
    /// c_A of the improved axial current, for pcac [default: 0]
    #[arg(long, value_name = "X", value_parser = finite, allow_hyphen_values = true)]
    ca: Option<f64>,
    /// Covariance of the data [default: full for four bins or more for each time, else shrunk]
    #[arg(long, value_name = "NAME", value_enum)]
    covariance: Option<CovarianceName>,
    /// Configurations of a bin [default: that of the run, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    bin: Option<u32>,
    /// Errors by the bootstrap with so many draws, instead of the jackknife
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=100_000), allow_hyphen_values = true)]
    bootstrap: Option<u32>,
    /// Seed of the draws [default: 1]
    #[arg(long, value_name = "N", requires = "bootstrap", allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Shortest and longest distance of the potential's fit [default: the most probable]
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
    /// As the configurations have it
    Full,
    /// Its correlations times a number below 1 that the configurations give
    Shrunk,
    /// Without correlations
    Diagonal,
}

fn pair<T: std::str::FromStr + PartialOrd>(text: &str) -> Option<[T; 2]> {
    let (first, last) = text.split_once(':')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some([first, last])
}

fn window(text: &str) -> Result<[usize; 2], String> {
    pair(text).ok_or_else(|| format!("'{text}' is not of the form A:B, such as 6:16"))
}

fn distances(text: &str) -> Result<[f64; 2], String> {
    let found = pair::<f64>(text).filter(|pair| pair[0] > 0.0 && pair[1].is_finite());
    found.ok_or_else(|| format!("'{text}' is not of the form A:B, such as 1.4:6"))
}

fn finite(text: &str) -> Result<f64, String> {
    let found = text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    found.ok_or_else(|| format!("'{text}' is not a number"))
}

fn states(text: &str) -> Result<usize, String> {
    match text.trim() {
        "1" => Ok(1),
        "2" => Ok(2),
        _ => Err(format!("'{text}' is neither 1 nor 2")),
    }
}

/// How the records are analysed.
fn choice(args: &FitArguments, bin: usize) -> AnalysisChoice {
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
    AnalysisChoice { bin: args.bin.map_or(bin, |bin| bin as usize), fits, shape, distances: args.distances }
}

/// Reads, fits and prints.
pub fn run(args: &FitArguments, context: &Context) -> Outcome {
    context.comm.only_one("fit")?;
    let path = &args.path;
    if path.is_dir() && !CorrelatorRecord::is_in(path) {
        let why = "is no folder of ferrite spectrum: name one, or a file of ferrite measure -o";
        return Err(Failure::refused(format!("{}: {why}", path.display())));
    }
    if path.is_dir() {
        return spectrum(args, path, context);
    }
    if let Some(what) = not_an_input(path) {
        let why = format!(
            "is {what}: name a folder of ferrite spectrum, or a file of ferrite measure -o or ferrite trace -o"
        );
        return Err(Failure::refused(format!("{} {why}", path.display())));
    }
    match TraceRecord::find(path)? {
        Some(record) => of_traces(args, path, &record, context),
        None => measurements(args, path, context),
    }
}

fn refuse(flags: &[(&str, bool)], path: &Path, what: &str) -> Outcome {
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(Failure::refused(format!("{flag} is not for {what}, which {} has: take it out", path.display())))
        }
        None => Ok(()),
    }
}

fn half(is_half: bool, path: &Path) {
    if is_half {
        warn!("{}: the last line is half written, and left out", path.display());
    }
}

fn spectrum(args: &FitArguments, folder: &Path, context: &Context) -> Outcome {
    refuse(&[("--distances", args.distances.is_some())], folder, "correlators")?;
    let record = CorrelatorRecord::read(folder)?;
    half(record.half, folder);
    let choice = choice(args, record.bin);
    let times = record.all[0].all.first().map_or(0, |c| c.values.len());
    if let Some([_, last]) = args.window.filter(|[_, last]| *last >= times) {
        let why =
            format!("--window ends at {last}, and correlators of {} at {}", folder.display(), times.saturating_sub(1));
        return Err(Failure::refused(why));
    }
    let (pcac, names) = pcac_of(&record.all[0], &args.hadron);
    if let (Some(_), true) = (args.ca, pcac.is_empty()) {
        let why = "--ca is for pcac, which is not fitted here: add --hadron pcac, of a run with pcac = true";
        return Err(Failure::refused(why));
    }
    let channels = match names {
        Some(names) => channels(&record.all[0], &names).map_err(|why| Failure::refused(format!("--hadron: {why}")))?,
        None => Vec::new(),
    };
    if let Some([first, last]) =
        args.window.filter(|[first, last]| !pcac.is_empty() && (*first < 1 || *last > times / 2))
    {
        return Err(Failure::refused(format!(
            "--window {first}:{last}: pcac is known from t = 1 to T/2 = {}; name another window",
            times / 2
        )));
    }
    for channel in &channels {
        let folded = choice.shape.unwrap_or(channel.shape) != CorrelatorShape::Exponential;
        if let Some([_, last]) = args.window.filter(|[_, last]| folded && *last > times / 2) {
            return Err(Failure::refused(format!(
                "--window ends at {last}: the {} is folded about T/2 = {}, up to which a window may go; name an earlier end",
                channel.name,
                times / 2
            )));
        }
    }
    let found = fits(&record.all, &channels, &choice);
    let improvement = args.ca.unwrap_or(0.0);
    let pcac: Vec<PcacFit> =
        pcac.iter().filter_map(|channel| PcacFit::of(channel, &record.all, improvement, &choice)).collect();
    let mut errors =
        found.iter().map(|one| one.fit.as_ref().err()).chain(pcac.iter().map(|one| one.fit.as_ref().err()));
    if errors.clone().all(|error| error.is_some()) {
        let why = errors.find_map(|error| error.map(ferrite_report::analysis::why_not));
        let why =
            why.unwrap_or_else(|| "it has none of the hadrons that are known: name correlators with --hadron".into());
        return Err(Failure::refused(format!("{}: {why}", folder.display())));
    }
    let n = record.all.len();
    let mut object = choice.json(n);
    object["path"] = json!(folder);
    object["hadrons"] = found.iter().map(|one| one.json()).collect();
    object["pcac"] = pcac.iter().map(|one| one.json()).collect();
    context.output.result("ferrite.fit/1", object, || {
        let mut text = format!("{}: {}\n", folder.display(), choice.sentence(n));
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

/// The quark masses among these names, or all without names; and the names of hadrons, where there are any to be fitted.
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

fn of_traces(args: &FitArguments, path: &Path, record: &TraceRecord, context: &Context) -> Outcome {
    let flags = [
        ("--form", args.form.is_some()),
        ("--hadron", !args.hadron.is_empty()),
        ("--window", args.window.is_some()),
        ("--distances", args.distances.is_some()),
        ("--covariance", args.covariance.is_some()),
    ];
    refuse(&flags, path, "traces")?;
    half(record.half, path);
    let (choice, n) = (choice(args, 1), record.all.len());
    let found = traces::traces(&record.all, &choice);
    let mut object = choice.json(n);
    object["path"] = json!(path);
    object["traces"] = found.iter().map(TraceAnalysis::json).collect();
    context.output.result("ferrite.fit/1", object, || {
        format!("{}: {}\n{}", path.display(), choice.sentence(n), traces::text(&found))
    })
}

fn measurements(args: &FitArguments, path: &Path, context: &Context) -> Outcome {
    let flags = [("--form", args.form.is_some()), ("--hadron", !args.hadron.is_empty()), ("--ca", args.ca.is_some())];
    refuse(&flags, path, "measurements")?;
    let record = MeasurementRecord::read(path)?;
    half(record.half, path);
    let choice = choice(args, 1);
    let flow = FlowAnalysis::of(&record.all, &choice);
    let loops = &record.all[0].loops;
    if loops.is_empty() {
        let flags = [("--distances", args.distances.is_some()), ("--window", args.window.is_some())];
        refuse(&flags, path, "measurements without Wilson loops")?;
    }
    let times = loops.first().map_or(0, |one| one.values.len());
    if let Some([first, last]) = args.window.filter(|[first, last]| *first < 1 || *last > times) {
        let why = format!("--window {first}:{last} is not among T = 1 to {times} of the loops in {}", path.display());
        return Err(Failure::refused(why));
    }
    let potential = PotentialAnalysis::of(&record.all, &choice);
    if flow.is_none() && potential.is_none() {
        let why = "has neither a flow nor Wilson loops: measure again with --flow T or --loops R,T, to another file";
        return Err(Failure::refused(format!("{} {why}", path.display())));
    }
    let n = record.all.len();
    let mut object = choice.json(n);
    object["path"] = json!(path);
    object["flow"] = json!(flow.as_ref().map(FlowAnalysis::json));
    object["potential"] = json!(potential.as_ref().map(PotentialAnalysis::json));
    context.output.result("ferrite.fit/1", object, || {
        let mut text = format!("{}: {}\n", path.display(), choice.sentence(n));
        text += &flow.map_or_else(String::new, |flow| flow.text());
        text += &potential.map_or_else(String::new, |potential| potential.text());
        text
    })
}
