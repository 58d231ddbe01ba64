//! Page on a run of `ferrite rhmc`.
mod figures;
mod observables;
mod sections;
mod series;

use crate::error::ReportError;
use crate::page;
use crate::records::run_settings as settings;
use crate::records::trajectories::RunHistory;
use crate::text::{columns, count, extents};
use ferrite_records::ensemble::TrajectoryLine;
use ferrite_records::report::RunReportRecord;
use observables::{Observable, ObservableKind};
use std::fmt::Write;
use std::path::Path;

/// Report on a run of `ferrite rhmc`.
pub struct RhmcReport {
    name: String,
    run: RunHistory,
    skip: usize,
    observables: Vec<Observable>,
}

impl RhmcReport {
    /// Creates the report of a run, with `name` as its title. Means leave out the first `skip` trajectories, or by default those without a
    /// Metropolis step.
    pub fn new(name: String, run: RunHistory, skip: Option<usize>) -> Self {
        let skip = skip.unwrap_or_else(|| run.thermalisation()).min(run.trajectories.len());
        let observables = observables::collect(&run, skip);
        RhmcReport { name, run, skip, observables }
    }
    fn of(&self, kind: ObservableKind) -> Option<&Observable> {
        self.observables.iter().find(|o| o.kind == kind)
    }
    fn kept(&self) -> &[TrajectoryLine] {
        &self.run.trajectories[self.skip..]
    }
    /// Returns the number of the first trajectory, the number of the last one, and their count.
    fn numbers(&self) -> (u64, u64, usize) {
        let all = &self.run.trajectories;
        (all.first().map_or(0, |t| t.trajectory), all.last().map_or(0, |t| t.trajectory), all.len())
    }
    /// Returns the counts of accepted trajectories and of trajectories with a Metropolis step.
    fn accepted(&self) -> (usize, usize) {
        let steps = self.kept().iter().filter(|t| t.metropolis);
        steps.fold((0, 0), |(accepted, all), t| (accepted + usize::from(t.accepted), all + 1))
    }
    /// Returns a sentence that summarises the run.
    pub fn sentence(&self) -> String {
        let ((first, last, there), (accepted, steps)) = (self.numbers(), self.accepted());
        let settings = self.run.settings();
        let mut text =
            if there == 1 { format!("Trajectory {first}") } else { format!("Trajectories {first} to {last}") };
        if let Some(all) = settings.trajectories.filter(|all| *all > last) {
            let _ = write!(text, " of {all}");
        }
        if let Some(lattice) = settings.lattice.map(extents) {
            let _ = write!(text, " on {lattice}");
        }
        if let Some(action) = settings::action(&settings) {
            let _ = write!(text, ", {action}");
        }
        match self.skip {
            0 => {}
            1 => text += "; the first trajectory is skipped",
            n => text += &format!("; the first {n} are skipped"),
        }
        text += ".";
        if steps > 0 {
            let share = 100.0 * accepted as f64 / steps as f64;
            let _ = write!(text, " {accepted} of {} accepted ({share:.1} %).", count(steps, "Metropolis step"));
        }
        text
    }
    /// Returns a sentence on the fraction of time outside of kernels, or `None` if kernels were not timed.
    fn outside(&self) -> Option<String> {
        let inside = self.of(ObservableKind::Inside).map(|o| o.estimate).filter(|estimate| estimate.count > 0)?;
        let timed = if inside.count == 1 { "one trajectory".into() } else { count(inside.count, "trajectory") };
        let share = 100.0 * (1.0 - inside.mean);
        Some(format!(
            "Outside kernels: {share:.1} % of the time of {timed} with timed kernels; the timing itself adds to the \
             time."
        ))
    }
    /// Returns notes on problems that need attention.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.run.half {
            notes.push("The last line of trajectories.jsonl is incomplete and was skipped.".into());
        }
        if self.kept().is_empty() {
            let left = match self.skip {
                1 => "the first one".to_string(),
                n => format!("the first {n}"),
            };
            notes.push(format!("No trajectory remains without {left}: there are no means. --skip 0 includes all."));
        }
        for observable in &self.observables {
            if observable.not_numbers() > 0 {
                notes.push(format!(
                    "{}: {} of {} are not finite and are ignored.",
                    observable.name,
                    observable.not_numbers(),
                    count(observable.points.len() - observable.first, "value")
                ));
            }
        }
        // Short series are not checked, because their errors are rough estimates.
        let exponential = self.of(ObservableKind::Exponential).filter(|o| !o.is_short());
        if let Some(off) = exponential.map(|o| (o.estimate.mean - 1.0).abs() / o.estimate.error)
            && off > 4.0
            && off.is_finite()
        {
            notes.push(format!(
                "⟨exp(−ΔH)⟩ is {off:.1} standard errors from 1: the run is not in equilibrium, or its dynamics does \
                 not preserve phase space or is not reversible, or ΔH fluctuates too widely to sample this mean."
            ));
        }
        for identity in self.observables.iter().filter(|o| o.kind == ObservableKind::Identity && !o.is_short()) {
            let off = (identity.estimate.mean / identity.estimate.error).abs();
            if off > 4.0 && off.is_finite() {
                notes.push(format!(
                    "{}: {off:.1} standard errors from 0: the run is not in equilibrium (--skip skips more \
                     trajectories), or its forces are not the derivative of the action in the Metropolis step.",
                    identity.name
                ));
            }
        }
        notes.extend(settings::changes(&self.run));
        notes
    }
    /// Returns the JSON record of the report; `path` is the path of the page.
    pub fn record(&self, folder: &Path, path: &Path) -> RunReportRecord {
        let ((first, last, there), (accepted, steps)) = (self.numbers(), self.accepted());
        RunReportRecord {
            folder: folder.into(),
            output: path.into(),
            first_trajectory: first,
            last_trajectory: last,
            trajectories: there,
            skipped: self.skip,
            metropolis_steps: steps,
            accepted,
            half_line: self.run.half,
            run: self.run.starts.last().map(|(_, settings)| settings.clone()),
            observables: self.observables.iter().map(Observable::record).collect(),
            notes: self.notes(),
        }
    }
    /// Returns the report as text for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.sentence());
        let head = ["", "mean", "± error", "τ_int", "values"].map(String::from);
        let row = |observable: &Observable| {
            let [mean, error, tau, count] = sections::cells(observable);
            [observable.name.clone(), mean, error, tau, count]
        };
        let rows: Vec<[String; 5]> = std::iter::once(head).chain(self.observables.iter().map(row)).collect();
        let widths: [usize; 5] =
            std::array::from_fn(|j| rows.iter().map(|row| columns(&row[j])).max().unwrap_or_default());
        for [name, cells @ ..] in &rows {
            let _ = write!(text, "{name}{}", " ".repeat(widths[0] - columns(name)));
            for (cell, width) in cells.iter().zip(&widths[1..]) {
                let _ = write!(text, "  {cell:>width$}");
            }
            text += "\n";
        }
        if self.observables.iter().any(Observable::is_short) {
            text += "* fewer than fifty times 2 τ_int values: the error is not reliable\n";
        }
        if let Some(outside) = self.outside() {
            let _ = writeln!(text, "{outside}");
        }
        for note in self.notes() {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
    /// Returns the page in HTML; the footer names `program` as its maker.
    ///
    /// # Errors
    /// Fails if a picture cannot be drawn.
    pub fn html(&self, program: &str) -> Result<String, ReportError> {
        let mut page = page::begin(&format!("{}: report of a run", self.name));
        self.put(&mut page, "")?;
        page::end(&mut page, program, self.runs());
        Ok(page)
    }
    /// Returns the kind of legend that a page with this run needs.
    pub(super) fn runs(&self) -> page::RunsOnPage {
        let has_condensates = self.observables.iter().any(|o| o.key == "condensate");
        if has_condensates { page::RunsOnPage::WithCondensates } else { page::RunsOnPage::Plain }
    }
    /// Appends the report to a page; `id` is the prefix of the names of its sections.
    pub(super) fn put(&self, page: &mut String, id: &str) -> Result<(), ReportError> {
        sections::put(page, self, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::trajectories::parse;
    use crate::records::trajectories::tests::line;
    use serde_json::json;

    fn report(n: u64, skip: Option<usize>) -> RhmcReport {
        // Trajectories 1 and 2 have no Metropolis step; those with ΔH below ½ are accepted.
        let text: String = (1..=n).map(|j| format!("{}\n", line(j, if j % 4 == 0 { 0.7 } else { -0.1 }))).collect();
        RhmcReport::new("run".into(), parse(text.as_bytes(), "lines").unwrap(), skip)
    }

    #[test]
    fn what_is_left_out_is_said() {
        let default = report(10, None);
        assert_eq!(
            default.sentence(),
            "Trajectories 1 to 10; the first 2 are skipped. 6 of 8 Metropolis steps accepted (75.0 %)."
        );
        assert_eq!(report(10, Some(5)).accepted(), (4, 5));
        // Those without the step never count as accepted.
        assert_eq!(report(10, Some(0)).accepted(), (6, 8));
        let none = report(2, None);
        assert_eq!(none.sentence(), "Trajectories 1 to 2; the first 2 are skipped.");
        assert!(none.notes()[0].starts_with("No trajectory remains without the first 2"));
        assert!(report(1, Some(0)).notes().is_empty());
        assert_eq!(report(3, Some(100)).skip, 3);
    }

    /// Values of alternating sign around a mean that is or is not 0 within errors.
    #[test]
    fn identities_that_are_off_are_said() {
        let notes = |mean: f64| {
            let line = |j: u64| {
                let mut line = line(j, -0.1);
                let off = mean + if j.is_multiple_of(2) { 0.1 } else { -0.1 };
                line["identities"] = json!({ "plaquette": { "loops": 0.5, "forces": 0.5 + off } });
                format!("{line}\n")
            };
            let text: String = (1..=400).map(line).collect();
            RhmcReport::new("run".into(), parse(text.as_bytes(), "lines").unwrap(), None).notes()
        };
        // Errors of 0.1 over the root of 398.
        assert_eq!(notes(0.015), Vec::<String>::new());
        let off = notes(0.03);
        assert!(
            off.len() == 1 && off[0].starts_with("plaquette from forces, difference: 6.0 standard errors"),
            "{off:?}"
        );
    }

    #[test]
    fn records_have_a_row_for_each_observable() {
        let record = report(10, None).record(Path::new("run"), Path::new("run/report.html"));
        assert_eq!((record.trajectories, record.skipped, record.accepted), (10, 2, 6));
        let find = |name: &str| record.observables.iter().find(|row| row.name == name);
        for name in ["plaquette.mean", "rectangle", "polyakov_loop.abs", "condensate", "delta_h", "accepted", "seconds"]
        {
            assert!(find(name).is_some(), "{name}");
        }
        let delta = find("delta_h").unwrap();
        assert!((delta.mean - 0.1).abs() < 1e-12 && delta.measurements == 8);
    }

    #[test]
    fn one_trajectory_has_no_errors_yet() {
        let text = report(1, Some(0)).text();
        let row = text.lines().find(|line| line.starts_with("plaquette ")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["plaquette", "0.499", "–", "–", "1"]);
        assert!(!text.contains("NaN"));
    }
}
