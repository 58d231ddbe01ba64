//! Results of `ferrite-studies rhmc`: ensembles in several settings of precision, as a table, as a record, and as figures 4 to 9 of Bonati,
//! Cossu, D'Elia and Incardona (2011).
use crate::records::{BenchRhmcRow, IrreversibilityMeans};
use ferrite_records::ensemble::TrajectoryLine;
use ferrite_records::observables::MeanAndError;
use ferrite_report::plot::{CurveStyle, ErrorBarPanel, ErrorBarPlot, LinePlot, PlottedCurve};
use ferrite_report::text::extents;
use statistics::average;
use std::fmt::Write;

/// Small or large lattice of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatticeSize {
    /// The lattice of figures 4 to 6.
    Small,
    /// The lattice of figures 7 and 9.
    Large,
}

/// Lattices and action of the study, for the titles of figures.
#[derive(Clone, Debug)]
pub struct StudyTitle {
    /// Extents of the small lattice.
    pub small: [usize; 4],
    /// Extents of the large lattice.
    pub large: [usize; 4],
    /// Fermions, mass and coupling, as a text.
    pub action: String,
}

/// A setting of precision and integrator on one of the lattices.
#[derive(Clone, Debug, PartialEq)]
pub struct StudySetting {
    /// Name of the setting in figures.
    pub name: String,
    /// Whether links are updated in double precision.
    pub double_links: bool,
    /// Number of steps of the fermion force.
    pub steps: u32,
    /// Number of steps of the gauge force between two steps of the fermion force.
    pub gauge_steps: u32,
    /// Number of updates of the links in a trajectory.
    pub updates: usize,
}

/// Results of a setting; each pair is a mean and its error.
pub struct SettingResult {
    /// Small or large lattice of the setting.
    pub size: LatticeSize,
    /// Extents of the lattice of the setting.
    pub lattice: [usize; 4],
    /// Setting of precision and integrator.
    pub setting: StudySetting,
    /// Number of trajectories.
    pub trajectories: usize,
    /// Means and errors of the plaquette, the real part of the Polyakov loop, and the condensate.
    pub observables: [[f64; 2]; 3],
    /// Means and errors of the reversibility violations of links and momenta (eqs. 14 and 15).
    pub irreversibility: [[f64; 2]; 2],
    /// Mean and error of the change ΔH of the Hamiltonian.
    pub delta: [f64; 2],
    /// Fraction of accepted trajectories, with its error.
    pub accepted: [f64; 2],
    /// Time of a trajectory, in seconds.
    pub seconds: f64,
}

impl SettingResult {
    /// Computes the means of a setting over its trajectories.
    pub fn new(size: LatticeSize, lattice: [usize; 4], setting: StudySetting, trajectories: &[TrajectoryLine]) -> Self {
        let of = |value: &dyn Fn(&TrajectoryLine) -> Option<f64>| {
            let values: Vec<f64> = trajectories.iter().filter_map(value).filter(|x| x.is_finite()).collect();
            let average = average(&values);
            [average.mean, average.error]
        };
        SettingResult {
            size,
            lattice,
            setting,
            trajectories: trajectories.len(),
            observables: [
                of(&|t| Some(t.plaquette?.mean)),
                of(&|t| Some(t.polyakov_loop?[0])),
                of(&|t| Some(t.condensate.first()?.mean)),
            ],
            irreversibility: [of(&|t| Some(t.irreversibility?.links)), of(&|t| Some(t.irreversibility?.momenta))],
            delta: of(&|t| Some(t.delta_h)),
            accepted: of(&|t| Some(f64::from(u8::from(t.accepted)))),
            seconds: of(&|t| t.irreversibility.is_none().then_some(t.seconds))[0],
        }
    }
    /// Returns the JSON record of the means.
    pub fn record(&self) -> BenchRhmcRow {
        let [plaquette, polyakov_loop, condensate] = self.observables.map(MeanAndError::from);
        let [links, momenta] = self.irreversibility.map(MeanAndError::from);
        BenchRhmcRow {
            lattice: self.lattice,
            setting: self.setting.name.clone(),
            steps: self.setting.steps,
            gauge_steps: self.setting.gauge_steps,
            gauge_updates: self.setting.updates,
            trajectories: self.trajectories,
            plaquette,
            polyakov_loop,
            condensate,
            irreversibility: IrreversibilityMeans { links, momenta },
            delta_h: self.delta.into(),
            accepted: self.accepted.into(),
            seconds: self.seconds,
        }
    }
}

/// Returns the results as a text table.
pub fn table(results: &[SettingResult], device: &str) -> String {
    let mut text = format!("{device}\n");
    let mut lattice = None;
    for result in results {
        if lattice != Some(result.lattice) {
            lattice = Some(result.lattice);
            let _ = writeln!(
                text,
                "{}\n{:<20} {:>12} {:>9} {:>19} {:>19} {:>10} {:>10} {:>17} {:>8} {:>8}",
                extents(result.lattice),
                "setting",
                "trajectories",
                "updates",
                "plaquette",
                "condensate",
                "links",
                "momenta",
                "delta H",
                "accepted",
                "seconds"
            );
        }
        let pair = |[mean, error]: [f64; 2], digits: usize| format!("{mean:.digits$} ± {error:.digits$}");
        let seconds = if result.seconds.is_finite() { format!("{:.2}", result.seconds) } else { "–".into() };
        let [plaquette, _, condensate] = result.observables;
        let [[links, _], [momenta, _]] = result.irreversibility;
        let _ = writeln!(
            text,
            "{:<20} {:>12} {:>9} {:>19} {:>19} {:>10.2e} {:>10.2e} {:>17} {:>8.2} {seconds:>8}",
            result.setting.name,
            result.trajectories,
            result.setting.updates,
            pair(plaquette, 5),
            pair(condensate, 4),
            links,
            momenta,
            pair(result.delta, 3),
            result.accepted[0]
        );
    }
    text + "columns links and momenta: irreversibility, eqs. 14 and 15 of Bonati et al. (2011)\n"
}

/// Figure that corresponds to one of the paper.
pub enum StudyFigure {
    /// Values of several observables in all settings.
    Settings(ErrorBarPlot),
    /// Reversibility violation as a function of the number of updates.
    Updates(LinePlot),
}

/// Draws all figures, and returns each with its number in the paper.
pub fn figures(title: &StudyTitle, results: &[SettingResult]) -> Vec<(u32, StudyFigure)> {
    let (small, large) = (of(results, LatticeSize::Small), of(results, LatticeSize::Large));
    let settings = |name: &str, extents_of: [usize; 4], shown: &[&SettingResult], panels: Vec<ErrorBarPanel>| {
        StudyFigure::Settings(ErrorBarPlot {
            title: format!("{name} in all settings of precision"),
            subtitle: format!("{}, {}", extents(extents_of), title.action),
            places: shown.iter().map(|result| result.setting.name.clone()).collect(),
            horizontal: None,
            panels,
        })
    };
    vec![
        (4, settings("Observables", title.small, &small, observables(&small))),
        (5, settings("Irreversibility", title.small, &small, irreversibility(&small))),
        (6, settings("Energy differences", title.small, &small, vec![delta(&small)])),
        (7, settings("Irreversibility", title.large, &large, irreversibility(&large))),
        (8, StudyFigure::Updates(updates(title, &small, &large))),
        (9, settings("Metropolis steps", title.large, &large, vec![acceptance(&large), delta(&large)])),
    ]
}

fn of(results: &[SettingResult], size: LatticeSize) -> Vec<&SettingResult> {
    results.iter().filter(|result| result.size == size).collect()
}

fn panel(
    results: &[&SettingResult],
    axis: &str,
    logarithmic: bool,
    value: impl Fn(&SettingResult) -> [f64; 2],
) -> ErrorBarPanel {
    ErrorBarPanel { axis: axis.into(), logarithmic, at: results.iter().map(|r| value(r)).collect(), range: None }
}

fn observables(results: &[&SettingResult]) -> Vec<ErrorBarPanel> {
    let one = |which: usize, axis| panel(results, axis, false, move |result| result.observables[which]);
    vec![one(0, "plaquette"), one(1, "Re Polyakov loop"), one(2, "condensate")]
}

fn irreversibility(results: &[&SettingResult]) -> Vec<ErrorBarPanel> {
    let one = |which: usize, axis| panel(results, axis, true, move |result| result.irreversibility[which]);
    vec![one(0, "links"), one(1, "momenta")]
}

fn delta(results: &[&SettingResult]) -> ErrorBarPanel {
    panel(results, "delta H", false, |result| result.delta)
}

fn acceptance(results: &[&SettingResult]) -> ErrorBarPanel {
    panel(results, "accepted", false, |result| result.accepted)
}

/// Draws figure 8: the reversibility violation of the links as a function of the number of their updates, for settings with links in
/// single precision.
fn updates(title: &StudyTitle, small: &[&SettingResult], large: &[&SettingResult]) -> LinePlot {
    let marks = |lattice: [usize; 4], results: &[&SettingResult]| PlottedCurve {
        name: extents(lattice),
        points: results
            .iter()
            .filter(|result| !result.setting.double_links)
            .map(|result| (result.setting.updates as f64, 1e6 * result.irreversibility[0][0]))
            .collect(),
        style: CurveStyle::Marks,
    };
    LinePlot {
        title: "Irreversibility of the links against gauge updates".into(),
        subtitle: title.action.clone(),
        axes: ["updates of the links in a trajectory".into(), "irreversibility / 1e-6".into(), String::new()],
        logarithmic: [false; 2],
        curves: vec![marks(title.small, small), marks(title.large, large)],
    }
}
