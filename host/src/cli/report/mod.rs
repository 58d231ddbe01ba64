//! `ferrite report`.
pub(super) mod data;
mod figures;
mod observables;
mod page;
mod scaling;
mod series;
pub(super) mod settings;
mod several;
mod shifts;
mod solves;
mod spectrum;
mod timeline;

use super::text::count;
use super::{Context, Failure, Outcome, target};
use clap::Args;
use data::Run;
use observables::{Kind, Observable};
use serde_json::{Value, json};
use several::Several;
use spectrum::Spectrum;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  ferrite report run
  ferrite report run --skip 200 -o thermal.html
  ferrite report run --json
  ferrite report spectrum                            # of ferrite spectrum --out spectrum: correlators, masses
  ferrite report solve.json                          # of ferrite solve > solve.json: convergence
  ferrite report slurm-1234.out                      # of the log of a job: its solves and benchmarks
  ferrite report one.json two.json -o scaling.html   # of bench dslash --json with 1 and 2 processes: scaling
  ferrite report run solve.json trace.json           # of bench halo --trace trace.json: timeline

A run may go on meanwhile. The page needs no other file. Of a run: histories with running averages, ΔH with its
histogram, exp(−ΔH), means with errors and autocorrelation times, iterations and seconds.";

/// Arguments of `report`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Folders of `ferrite rhmc` and `ferrite spectrum`, and files with what `solve`, `bench dslash` or `bench model` print
    /// with --json, also among other lines of a log, with points for `bench model --measured`, or of `bench halo --trace`
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The page to write [default: report.html in the one folder, or here]
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Leave out so many trajectories at the beginning of each run [default: those without Metropolis step]
    #[arg(long, value_name = "N")]
    skip: Option<usize>,
}

/// A run and what came of it.
struct Report {
    name: String,
    run: Run,
    skip: usize,
    observables: Vec<Observable>,
}

/// Writes the page and prints the means, or what there is on it.
pub fn run(args: &Arguments, context: &Context) -> Outcome {
    context.world.only_one("report")?;
    let one = match args.paths.as_slice() {
        // What is not there is taken for a folder: data::read says what is missing. Pipes are files.
        [one] if one.is_dir() || !one.exists() => Some(one),
        _ => None,
    };
    let default = || one.map_or_else(|| "report.html".into(), |folder| folder.join("report.html"));
    let path = args.output.clone().unwrap_or_else(default);
    // Before the work that would be lost; after what is missing.
    let writable = || {
        // Nothing else that lies in the folder of a run ends so.
        if path.extension().is_none_or(|e| e != "html") {
            return Err(Failure::refused(format!("{}: a report is HTML; end the name in .html", path.display())));
        }
        target::check(&path).map_err(Failure::refused)
    };
    let write =
        |html: Result<String, String>| html.and_then(|html| target::write_text(&path, &html)).map_err(Failure::failed);
    let page = || format!("page: {}\n", path.display());
    if let Some(folder) = one.filter(|folder| spectrum::is_one(folder)) {
        let spectrum = Spectrum::read(folder, name(folder))?;
        writable()?;
        write(spectrum.html())?;
        let mut object = spectrum.json();
        (object["folder"], object["output"]) = (json!(folder), json!(path));
        return context.output.result("ferrite.report/1", object, || spectrum.text() + &page());
    }
    if let Some(folder) = one {
        let run = data::read(folder)?;
        writable()?;
        let report = Report::new(name(folder), run, args.skip);
        write(page::html(&report))?;
        let object = report.json(folder, &path);
        return context.output.result("ferrite.report/1", object, || report.text() + &page());
    }
    let several = Several::read(&args.paths, args.skip)?;
    writable()?;
    write(several.html())?;
    context.output.result("ferrite.report/1", several.json(&path), || several.text() + &page())
}

/// The folder's own name, also for `.`.
fn name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.into());
    whole.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

impl Report {
    fn new(name: String, run: Run, skip: Option<usize>) -> Self {
        let skip = skip.unwrap_or_else(|| run.thermalisation()).min(run.trajectories.len());
        let observables = observables::collect(&run, skip);
        Report { name, run, skip, observables }
    }
    fn of(&self, kind: Kind) -> Option<&Observable> {
        self.observables.iter().find(|o| o.kind == kind)
    }
    fn kept(&self) -> &[data::Trajectory] {
        &self.run.trajectories[self.skip..]
    }
    /// Numbers of the first and the last trajectory, and how many there are.
    fn numbers(&self) -> (u64, u64, usize) {
        let all = &self.run.trajectories;
        (all.first().map_or(0, |t| t.number), all.last().map_or(0, |t| t.number), all.len())
    }
    /// Accepted ones, and those with a Metropolis step.
    fn accepted(&self) -> (usize, usize) {
        let steps = self.kept().iter().filter(|t| t.metropolis);
        steps.fold((0, 0), |(accepted, all), t| (accepted + usize::from(t.accepted), all + 1))
    }
    /// What the run is, in a sentence.
    fn sentence(&self) -> String {
        let ((first, last, there), (accepted, steps)) = (self.numbers(), self.accepted());
        let settings = self.run.settings();
        let mut text =
            if there == 1 { format!("Trajectory {first}") } else { format!("Trajectories {first} to {last}") };
        if let Some(all) = settings["trajectories"].as_u64().filter(|all| *all > last) {
            let _ = write!(text, " of {all}");
        }
        if let Some(lattice) = settings::lattice(settings) {
            let _ = write!(text, " on {lattice}");
        }
        if let Some(action) = settings::action(settings) {
            let _ = write!(text, ", {action}");
        }
        match self.skip {
            0 => {}
            1 => text += "; the first one is left out",
            n => text += &format!("; the first {n} are left out"),
        }
        text += ".";
        if steps > 0 {
            let share = 100.0 * accepted as f64 / steps as f64;
            let _ = write!(text, " {accepted} of {} accepted ({share:.1} %).", count(steps, "Metropolis step"));
        }
        text
    }
    /// How much of the time is spent outside kernels, in a sentence, if their times were ever taken.
    fn outside(&self) -> Option<String> {
        let inside = self.of(Kind::Inside).map(|o| o.estimate).filter(|estimate| estimate.count > 0)?;
        let timed = if inside.count == 1 { "one trajectory".into() } else { format!("{} trajectories", inside.count) };
        let share = 100.0 * (1.0 - inside.mean);
        Some(format!(
            "Outside kernels: {share:.1} % of the time of {timed}, whose kernels were timed, which takes some time itself."
        ))
    }
    /// What deserves attention.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.run.half {
            notes.push("The last line of trajectories.jsonl is half written and left out.".into());
        }
        if self.kept().is_empty() {
            let left = match self.skip {
                1 => "the first one".to_string(),
                n => format!("the first {n}"),
            };
            notes.push(format!("No trajectory is left without {left}: there are no means. --skip 0 counts all."));
        }
        for observable in &self.observables {
            if observable.not_numbers() > 0 {
                notes.push(format!(
                    "{}: {} of {} are not finite and do not count.",
                    observable.name,
                    observable.not_numbers(),
                    count(observable.points.len() - observable.first, "value")
                ));
            }
        }
        // The errors of short series are guesses.
        let exponential = self.of(Kind::Exponential).filter(|o| !o.is_short());
        if let Some(off) = exponential.map(|o| (o.estimate.mean - 1.0).abs() / o.estimate.error)
            && off > 4.0
            && off.is_finite()
        {
            notes.push(format!(
                "⟨exp(−ΔH)⟩ is {off:.1} errors from 1: the run is not in equilibrium, or its dynamics does not keep \
                 the volume of phase space or is not reversible; or ΔH is too wide for this mean to be sampled."
            ));
        }
        notes.extend(settings::changes(&self.run));
        notes
    }
    fn json(&self, folder: &Path, path: &Path) -> Value {
        let ((first, last, there), (accepted, steps)) = (self.numbers(), self.accepted());
        let observables: Vec<Value> = self.observables.iter().map(Observable::json).collect();
        json!({
            "folder": folder,
            "output": path,
            "first_trajectory": first,
            "last_trajectory": last,
            "trajectories": there,
            "skipped": self.skip,
            "metropolis_steps": steps,
            "accepted": accepted,
            "half_line": self.run.half,
            "run": self.run.settings(),
            "observables": observables,
            "notes": self.notes(),
        })
    }
    /// For a terminal.
    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.sentence());
        let head = ["", "mean", "± error", "τ_int", "values"].map(String::from);
        let row = |observable: &Observable| {
            let [mean, error, tau, count] = page::cells(observable);
            [observable.name.clone(), mean, error, tau, count]
        };
        let rows: Vec<[String; 5]> = std::iter::once(head).chain(self.observables.iter().map(row)).collect();
        let widths: [usize; 5] =
            std::array::from_fn(|j| rows.iter().map(|row| row[j].chars().count()).max().unwrap_or_default());
        for [name, cells @ ..] in &rows {
            let _ = write!(text, "{name:width$}", width = widths[0]);
            for (cell, width) in cells.iter().zip(&widths[1..]) {
                let _ = write!(text, "  {cell:>width$}");
            }
            text += "\n";
        }
        if self.observables.iter().any(Observable::is_short) {
            text += "* fewer than fifty times 2 τ_int values: the error is a guess\n";
        }
        if let Some(outside) = self.outside() {
            let _ = writeln!(text, "{outside}");
        }
        for note in self.notes() {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::data::parse;
    use super::data::tests::line;
    use super::*;

    fn report(n: u64, skip: Option<usize>) -> Report {
        // Trajectories 1 and 2 have no Metropolis step; those with ΔH below ½ are accepted.
        let text: String = (1..=n).map(|j| format!("{}\n", line(j, if j % 4 == 0 { 0.7 } else { -0.1 }))).collect();
        Report::new("run".into(), parse(text.as_bytes(), "lines").unwrap(), skip)
    }

    #[test]
    fn what_is_left_out_is_said() {
        let default = report(10, None);
        assert_eq!(
            default.sentence(),
            "Trajectories 1 to 10; the first 2 are left out. 6 of 8 Metropolis steps accepted (75.0 %)."
        );
        assert_eq!(report(10, Some(5)).accepted(), (4, 5));
        // Those without the step never count as accepted.
        assert_eq!(report(10, Some(0)).accepted(), (6, 8));
        let none = report(2, None);
        assert_eq!(none.sentence(), "Trajectories 1 to 2; the first 2 are left out.");
        assert!(none.notes()[0].starts_with("No trajectory is left without the first 2"));
        assert!(report(1, Some(0)).notes().is_empty());
        assert_eq!(report(3, Some(100)).skip, 3);
    }

    #[test]
    fn json_has_a_row_for_each_observable() {
        let object = report(10, None).json(Path::new("run"), Path::new("run/report.html"));
        assert_eq!(
            (&object["trajectories"], &object["skipped"], &object["accepted"]),
            (&json!(10), &json!(2), &json!(6))
        );
        let rows = object["observables"].as_array().unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
        for name in ["plaquette.mean", "rectangle", "polyakov_loop.abs", "condensate", "delta_h", "accepted", "seconds"]
        {
            assert!(names.contains(&name), "{name}");
        }
        let delta = &rows[names.iter().position(|name| *name == "delta_h").unwrap()];
        assert!((delta["mean"].as_f64().unwrap() - 0.1).abs() < 1e-12 && delta["measurements"] == json!(8));
    }

    #[test]
    fn one_trajectory_has_no_errors_yet() {
        let text = report(1, Some(0)).text();
        let row = text.lines().find(|line| line.starts_with("plaquette ")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["plaquette", "0.499", "–", "–", "1"]);
        assert!(!text.contains("NaN"));
    }
}
