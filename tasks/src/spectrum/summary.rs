//! Summary of all configurations: correlators and effective masses with errors, as text, JSON and a plot.
use super::input::SpectrumInput;
use super::result::File;
use crate::device::Device;
use crate::text::count;
use ferrite::observables::spectrum::effective::CorrelatorShape;
use ferrite::statistics::jackknife::{JackknifeEstimate, jackknife};
use ferrite_records::fit::HadronFitRecord;
use ferrite_records::spectrum::{HadronMasses, HadronValues, JackknifeRecord, SpectrumRecord};
use ferrite_report::analysis::estimate_records;
use ferrite_report::analysis::hadrons::HadronFit;
use ferrite_report::analysis::pcac::PcacFit;
use ferrite_report::plot::{ErrorBarPanel, ErrorBarPlot};
use ferrite_report::records::correlators::masses_of_first_half;
use ferrite_report::records::ensemble::Stream;
use ferrite_report::text::extents;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Correlator and effective masses of a hadron, or of a correlator that the input names.
pub struct Hadron {
    /// Name of the hadron in tables and plots.
    name: String,
    /// Estimates of C(t); for a hadron of several correlators, of their mean.
    correlator: Vec<Option<JackknifeEstimate>>,
    /// Effective masses from each time to the next.
    masses: Vec<Option<JackknifeEstimate>>,
    /// Fit of the correlator in the most probable window.
    fit: HadronFit,
}

/// Correlators, effective masses, fits and quark masses of all configurations.
pub struct Summary {
    hadrons: Vec<Hadron>,
    /// PCAC quark masses.
    pcac: Vec<PcacFit>,
    /// Parameter in which the antiquark of mesons differs from the quark; `None` without twisted mass.
    antiquark: Option<String>,
    configurations: usize,
    /// Number of configurations in a bin; `bins` and `left_out` are the numbers of bins and of configurations that fill none.
    bin: usize,
    bins: usize,
    left_out: usize,
    streams: Vec<Stream>,
}

/// Largest relative error of the points that determine the range of a panel.
const SURE: f64 = 0.25;

impl Summary {
    /// Summarises the configurations of a file, with jackknife errors over bins of configurations.
    pub fn of(file: &File, input: &SpectrumInput) -> Self {
        let choice = file.choice(input.bin);
        let hadron = |name: &str, parts: &[String], shape: CorrelatorShape| {
            let samples = file.samples(parts).filter(|samples| !samples.is_empty())?;
            let fit = HadronFit::of(name, &samples, shape, &choice);
            let samples = choice.binned(&samples);
            let masses = |mean: &[f64]| masses_of_first_half(mean, shape);
            let correlator = jackknife(&samples, |mean| mean.iter().map(|c| Some(*c)).collect());
            Some(Hadron { name: name.into(), correlator, masses: jackknife(&samples, masses), fit })
        };
        let more = input.plot.iter().map(|name| {
            let is_baryon = name.contains("nucleon.");
            let shape = if is_baryon { CorrelatorShape::Exponential } else { CorrelatorShape::Cosh };
            hadron(name, std::slice::from_ref(name), shape)
        });
        let usual = file.channels().into_iter().map(|channel| hadron(&channel.name, &channel.parts, channel.shape));
        let hadrons = usual.chain(more).flatten().collect();
        let antiquark = file.first().and_then(|first| first.antiquark.clone());
        let configurations = file.len();
        let bins = choice.bins(configurations);
        let left_out = configurations.saturating_sub(bins * input.bin);
        let pcac = file.pcac(input.bin);
        Summary { hadrons, pcac, antiquark, configurations, bin: input.bin, bins, left_out, streams: choice.streams }
    }
    /// Returns the record of effective masses, correlators, fits and quark masses.
    pub fn record(&self, output: &Path, file: &File, files: Vec<PathBuf>, device: &Device) -> SpectrumRecord {
        let masses = |h: &Hadron| HadronMasses { hadron: h.name.clone(), masses: estimate_records(&h.masses) };
        let values = |h: &Hadron| HadronValues { hadron: h.name.clone(), values: estimate_records(&h.correlator) };
        // The record has the correlators in `correlators` already.
        let fit = |h: &Hadron| HadronFitRecord { correlator: None, ..h.fit.record() };
        SpectrumRecord {
            output: output.into(),
            configurations: file.names(),
            files,
            effective_masses: self.hadrons.iter().map(masses).collect(),
            correlators: self.hadrons.iter().map(values).collect(),
            fits: self.hadrons.iter().map(fit).collect(),
            pcac: self.pcac.iter().map(PcacFit::record).collect(),
            jackknife: JackknifeRecord { bin: self.bin, bins: self.bins, left_out: self.left_out },
            backend: device.name().into(),
            device: device.describe(),
        }
    }
    /// Describes the numbers of configurations and bins: `8 configurations in 4 bins of 2`.
    fn counts(&self) -> String {
        let all = match self.streams.len() {
            0 | 1 => count(self.configurations, "configuration"),
            n => format!("{} of {}", count(self.configurations, "configuration"), count(n, "stream")),
        };
        match (self.bin, self.left_out) {
            (1, _) => all,
            (bin, 0) => format!("{all} in {} of {bin}", count(self.bins, "bin")),
            (bin, rest) if self.streams.len() > 1 => {
                format!("{all} in {} of {bin}, without {rest} at the ends of streams", count(self.bins, "bin"))
            }
            (bin, rest) => format!("{all} in {} of {bin}, without the last {rest}", count(self.bins, "bin")),
        }
    }
    /// Returns the plot of effective masses and quark masses, with one panel for each hadron and each quark mass.
    pub fn picture(&self, title: &str, lattice: [usize; 4]) -> ErrorBarPlot {
        let on = extents(lattice);
        let panel = |hadron: &Hadron| ErrorBarPanel {
            axis: hadron.name.clone(),
            logarithmic: false,
            at: hadron.masses.iter().map(|m| m.map_or([f64::NAN; 2], |m| [m.value, m.error])).collect(),
            range: sure_range(&hadron.masses),
        };
        let quark = |one: &PcacFit| ErrorBarPanel {
            axis: one.name.clone(),
            logarithmic: false,
            at: one.masses.iter().map(|m| m.map_or([f64::NAN; 2], |m| [m.value, m.error])).collect(),
            range: sure_range(&one.masses),
        };
        let times = self.masses().map(|(_, masses)| masses.len()).max().unwrap_or(0);
        ErrorBarPlot {
            title: format!("Effective masses, {title} on {on}"),
            subtitle: format!("{}; jackknife errors", self.counts()),
            places: (0..times).map(|t| t.to_string()).collect(),
            horizontal: Some("t / a".into()),
            panels: self.hadrons.iter().map(panel).chain(self.pcac.iter().map(quark)).collect(),
        }
    }
    /// Returns effective masses of hadrons, followed by PCAC quark masses, with their names.
    fn masses(&self) -> impl Iterator<Item = (&str, &[Option<JackknifeEstimate>])> {
        let hadrons = self.hadrons.iter().map(|h| (h.name.as_str(), &h.masses[..]));
        hadrons.chain(self.pcac.iter().map(|one| (one.name.as_str(), &one.masses[..])))
    }
    /// Returns the summary for a terminal: effective masses, C(t) of the first hadron or of `all`, fits, and the files with other results.
    pub fn text(&self, folder: &Path, all: bool) -> String {
        let mut text = format!("{}: {}\n", folder.display(), self.counts());
        let shown = if all { &self.hadrons[..] } else { &self.hadrons[..self.hadrons.len().min(1)] };
        let masses: Vec<(&str, &[Option<JackknifeEstimate>])> = self.masses().collect();
        let correlators: Vec<(&str, &[Option<JackknifeEstimate>])> =
            shown.iter().map(|h| (h.name.as_str(), &h.correlator[..])).collect();
        text += &table("t", &masses, |x, error| match error {
            Some(error) => format!("{x:.5} ± {error:.5}"),
            None => format!("{x:.5}"),
        });
        text += &without_errors(&masses);
        text += &table("C(t)", &correlators, |x, error| match error {
            Some(error) => format!("{x:.6e} ± {error:.1e}"),
            None => format!("{x:.6e}"),
        });
        // A hadron without a fit is left out, as in runs with few configurations.
        for hadron in self.hadrons.iter().filter(|hadron| hadron.fit.fit.is_ok()) {
            text += &hadron.fit.text();
        }
        for quark in self.pcac.iter().filter(|quark| quark.fit.is_ok()) {
            text += &quark.text();
        }
        if let Some(other) = &self.antiquark {
            let _ = writeln!(
                text,
                "mesons are charged: their antiquark has {other}; gamma matrices act on fields of the twisted basis"
            );
        }
        if self.configurations > 0 {
            let folder = folder.display();
            let _ = writeln!(
                text,
                "all correlators: {folder}/correlators.npy, their names: {folder}/correlators.json\n\
                 effective masses: {folder}/effective-masses.svg\n\
                 fits in other windows: ferrite fit {folder}"
            );
        }
        text
    }
}

/// Returns a table with a row for each time, with errors if they are known.
fn table(
    corner: &str,
    columns: &[(&str, &[Option<JackknifeEstimate>])],
    cell: impl Fn(f64, Option<f64>) -> String,
) -> String {
    let width = if corner == "t" { 20 } else { 24 };
    let mut text = format!("{corner:>4}");
    columns.iter().for_each(|(name, _)| text += &format!("  {name:>width$}"));
    text += "\n";
    for t in 0..columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0) {
        let _ = write!(text, "{t:>4}");
        for (_, values) in columns {
            let estimate = values.get(t).copied().flatten();
            let shown = estimate.map(|e| cell(e.value, Some(e.error).filter(|error| error.is_finite())));
            let _ = write!(text, "  {:>width$}", shown.unwrap_or_else(|| "–".into()));
        }
        text += "\n";
    }
    text
}

/// Returns a line for each column with unknown errors. An error is unknown if jackknife means have no effective mass at that time.
fn without_errors(columns: &[(&str, &[Option<JackknifeEstimate>])]) -> String {
    let mut text = String::new();
    for (name, values) in columns {
        let missing = |(t, estimate): (usize, &Option<JackknifeEstimate>)| {
            let missing = estimate.filter(|estimate| estimate.missing.count > 0)?.missing;
            Some(format!("t = {t} ({missing})"))
        };
        let all: Vec<String> = values.iter().enumerate().filter_map(missing).collect();
        if !all.is_empty() {
            let _ = writeln!(text, "{name}: error unknown at {}", all.join(", "));
        }
    }
    text
}

/// Returns the range of the points with small errors, including their error bars; `None` without such points.
fn sure_range(masses: &[Option<JackknifeEstimate>]) -> Option<[f64; 2]> {
    let sure = masses.iter().flatten().filter(|m| m.error <= SURE * m.value.abs());
    sure.map(|m| [m.value - m.error, m.value + m.error]).reduce(|[a, b], [low, high]| [a.min(low), b.max(high)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite::statistics::jackknife::MissingMeans;

    #[test]
    fn one_noisy_point_does_not_flatten_the_rest() {
        let at = |value, error| Some(JackknifeEstimate::new(value, error));
        let masses = [at(0.5, 0.01), at(0.4, 0.02), None, at(0.3, 0.9), at(7.0, 5.0), at(0.4, f64::NAN)];
        let [low, high] = sure_range(&masses).unwrap();
        assert!((low - 0.38).abs() < 1e-15 && (high - 0.51).abs() < 1e-15, "{low} {high}");
        assert_eq!(sure_range(&masses[3..]), None);
    }

    #[test]
    fn unknown_errors_are_named() {
        let missing = MissingMeans { count: 2, of: 40 };
        let unknown = JackknifeEstimate { value: 0.3, error: f64::NAN, missing };
        let known = Some(JackknifeEstimate::new(0.5, 0.01));
        assert_eq!(without_errors(&[("pion", &[known, known])]), "");
        assert_eq!(
            without_errors(&[("rho", &[known, None]), ("pion", &[None, known, Some(unknown)])]),
            "pion: error unknown at t = 2 (2 of 40 means have no value)\n"
        );
    }
}
