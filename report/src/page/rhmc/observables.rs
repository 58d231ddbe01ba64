//! Observables of a run: their series, and their means without the first trajectories.
use super::series::{SeriesEstimate, estimate};
use crate::records::run_settings::is_wilson_like;
use crate::records::trajectories::RunHistory;
use crate::text::number;
use ferrite_records::ensemble::{LoopAndForce, LoopIdentities, TrajectoryLine};
use ferrite_records::observables::PlaquetteMeans;
use ferrite_records::report::ObservableMeans;

/// Kind of an observable, which determines its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservableKind {
    /// A measurement on links, with a figure of its history.
    Measured,
    /// A number that only the table shows.
    Detail,
    /// Change ΔH of the Hamiltonian.
    Delta,
    /// Exponential exp(−ΔH).
    Exponential,
    /// A number with mean 0 if the forces match the distribution; only the table shows it.
    Identity,
    /// Acceptance: 1 for accepted, 0 for rejected.
    Acceptance,
    /// Iterations of solvers.
    Iterations,
    /// Seconds of a trajectory or of parts of it.
    Seconds,
    /// Fraction of the time inside of kernels.
    Inside,
}

/// Mass or group of quarks of an observable that each mass or group has.
#[derive(Clone, Debug, PartialEq)]
pub enum ObservableOf {
    /// Bare mass.
    Mass(f64),
    /// Name of a group of quarks.
    Quarks(String),
}

/// An observable of a run: a series with one number for each trajectory.
#[derive(Clone, Debug, PartialEq)]
pub struct Observable {
    /// Key of the observable in the line of a trajectory; dots separate nested keys.
    pub key: &'static str,
    /// Displayed name of the observable.
    pub name: String,
    /// Mass or group of quarks of the observable; `None` if the observable belongs to the whole run.
    pub of: Option<ObservableOf>,
    /// Kind of the observable, which determines its figures.
    pub kind: ObservableKind,
    /// Trajectory numbers with the values of the observable; a value may be NaN.
    pub points: Vec<(u64, f64)>,
    /// Index of the first point that counts in means.
    pub first: usize,
    /// Mean and error of the finite points that count.
    pub estimate: SeriesEstimate,
}

impl Observable {
    /// Returns the finite points that count in means, each with its trajectory number.
    pub fn kept(&self) -> impl Iterator<Item = (u64, f64)> {
        self.points[self.first..].iter().copied().filter(|(_, x)| x.is_finite())
    }
    /// Returns the number of points that count in means but are not finite.
    pub fn not_numbers(&self) -> usize {
        self.points.len() - self.first - self.estimate.count
    }
    /// Returns the distance in trajectories between successive values.
    pub fn every(&self) -> u64 {
        let steps = self.points.windows(2).map(|pair| pair[1].0 - pair[0].0);
        steps.min().unwrap_or(1)
    }
    /// Returns whether the series is so short that its error is a rough estimate: shorter than fifty times 2 τ.
    pub fn is_short(&self) -> bool {
        (self.estimate.count as f64) < 100.0 * self.estimate.tau
    }
    /// Returns the JSON record of the mean and the error of the observable.
    pub fn record(&self) -> ObservableMeans {
        let SeriesEstimate { mean, error, tau, tau_error, count } = self.estimate;
        let (mass, quarks) = match &self.of {
            Some(ObservableOf::Mass(mass)) => (Some(*mass), None),
            Some(ObservableOf::Quarks(name)) => (None, Some(name.clone())),
            None => (None, None),
        };
        ObservableMeans {
            name: self.key.into(),
            mass,
            quarks,
            mean,
            error,
            autocorrelation: tau,
            autocorrelation_error: tau_error,
            measurements: count,
            every: self.every(),
            not_numbers: self.not_numbers(),
        }
    }
}

/// Function that takes a value from the line of a trajectory.
type Find<'a> = &'a dyn Fn(&TrajectoryLine) -> Option<f64>;

/// Collects all observables of a run, in the order of the report. The first `skip` trajectories do not count in means.
pub fn collect(run: &RunHistory, skip: usize) -> Vec<Observable> {
    let first = run.trajectories.get(skip).map_or(u64::MAX, |t| t.trajectory);
    use ObservableKind::{Acceptance, Delta, Detail, Exponential, Identity, Inside, Iterations, Measured, Seconds};
    let mut all = Vec::new();
    let mut add = |key, name: String, of, kind, find: Find| {
        let points = run.trajectories.iter().filter_map(|t| Some((t.trajectory, find(t)?)));
        let points: Vec<(u64, f64)> = points.collect();
        if points.is_empty() {
            return;
        }
        // Times of kernels are rare and do not require equilibrium, so all of them count.
        let left_out = |&(number, _): &(u64, f64)| number < first && kind != Inside;
        let start = points.partition_point(left_out);
        let kept: Vec<f64> = points[start..].iter().map(|p| p.1).filter(|x| x.is_finite()).collect();
        all.push(Observable { key, name, of, kind, points, first: start, estimate: estimate(&kept) });
    };
    let plaquette = |of: fn(PlaquetteMeans) -> f64| move |t: &TrajectoryLine| t.plaquette.map(of);
    add("plaquette.mean", "plaquette".into(), None, Measured, &plaquette(|p| p.mean));
    add("plaquette.spatial", "plaquette, spatial".into(), None, Detail, &plaquette(|p| p.spatial));
    add("plaquette.temporal", "plaquette, temporal".into(), None, Detail, &plaquette(|p| p.temporal));
    add("rectangle", "rectangle".into(), None, Measured, &|t| t.rectangle);
    let modulus = |t: &TrajectoryLine| t.polyakov_loop.map(|[re, im]| re.hypot(im));
    add("polyakov_loop.abs", "|Polyakov loop|".into(), None, Measured, &modulus);
    add("polyakov_loop.re", "Re Polyakov loop".into(), None, Measured, &|t| Some(t.polyakov_loop?[0]));
    for (place, mass, name) in condensates(run) {
        // Condensates are identified by position and mass: two groups of quarks may have equal masses, and masses may change during the
        // run.
        let find =
            |t: &TrajectoryLine| t.condensate.get(place).filter(|found| found.mass == mass).map(|found| found.mean);
        add("condensate", name, Some(ObservableOf::Mass(mass)), Measured, &find);
    }
    add("delta_h", "ΔH".into(), None, Delta, &|t| Some(t.delta_h));
    add("exp_minus_delta_h", "exp(−ΔH)".into(), None, Exponential, &|t| Some(t.exp_minus_delta_h));
    let identity = |which: fn(LoopIdentities) -> Option<LoopAndForce>| {
        move |t: &TrajectoryLine| which(t.identities?).map(|LoopAndForce { loops, forces }| forces - loops)
    };
    add("identities.plaquette", "plaquette from forces, difference".into(), None, Identity, &identity(|i| i.plaquette));
    add("identities.rectangle", "rectangle from forces, difference".into(), None, Identity, &identity(|i| i.rectangle));
    let accepted = |t: &TrajectoryLine| t.metropolis.then_some(f64::from(u8::from(t.accepted)));
    add("accepted", "acceptance".into(), None, Acceptance, &accepted);
    for name in &run.names {
        let of = |t: &TrajectoryLine| t.quarks.iter().find(|quarks| quarks.name == *name).cloned();
        let tag = || Some(ObservableOf::Quarks(name.clone()));
        let [actions, dynamics] = ["action", "dynamics"].map(|part| format!("iterations, {part}, {name}"));
        let iterations = |t: &TrajectoryLine| Some(t.quarks.iter().find(|quarks| quarks.name == *name)?.iterations);
        // The determinant of a clover term needs no solver, so it has no iterations.
        let solves = run.trajectories.iter().filter_map(iterations).any(|n| n.action + n.dynamics > 0);
        if solves {
            let action = |t: &TrajectoryLine| Some(iterations(t)?.action as f64);
            add("quarks.iterations.action", actions, tag(), Iterations, &action);
            let of_dynamics = |t: &TrajectoryLine| Some(iterations(t)?.dynamics as f64);
            add("quarks.iterations.dynamics", dynamics, tag(), Iterations, &of_dynamics);
        }
        // A smallest eigenvalue is recorded only for Wilson-like quarks with a rational function.
        let is_rational =
            run.trajectories.iter().any(|t| of(t).is_some_and(|quarks| quarks.smallest_eigenvalue.is_some()));
        let operator = if is_rational || is_wilson_like(&run.settings(), name) { "K = M̂†M̂" } else { "−D²" };
        let [largest, smallest] = ["largest", "smallest"].map(|end| format!("{end} eigenvalue of {operator}, {name}"));
        add("quarks.largest_eigenvalue", largest, tag(), Detail, &|t| of(t)?.largest_eigenvalue);
        add("quarks.smallest_eigenvalue", smallest, tag(), Detail, &|t| of(t)?.smallest_eigenvalue);
    }
    add("seconds", "seconds".into(), None, Seconds, &|t| Some(t.seconds));
    add("seconds_with_observables", "seconds with observables".into(), None, Seconds, &|t| t.seconds_with_observables);
    add("seconds_of_files", "seconds of files".into(), None, Seconds, &|t| t.seconds_of_files);
    add("kernels.share", "share of the time inside kernels".into(), None, Inside, &|t| Some(t.kernels.as_ref()?.share));
    add("irreversibility.links", "irreversibility, links".into(), None, Detail, &|t| Some(t.irreversibility?.links));
    add("irreversibility.momenta", "irreversibility, momenta".into(), None, Detail, &|t| {
        Some(t.irreversibility?.momenta)
    });
    all
}

/// Returns the condensates of a run: each with its position in the list of condensates, its mass, and a name that distinguishes it.
fn condensates(run: &RunHistory) -> Vec<(usize, f64, String)> {
    let mut found: Vec<(usize, f64)> = Vec::new();
    for trajectory in &run.trajectories {
        for (place, mass) in trajectory.condensate.iter().map(|one| one.mass).enumerate() {
            if mass.is_finite() && !found.contains(&(place, mass)) {
                found.push((place, mass));
            }
        }
    }
    found.sort_by_key(|(place, _)| *place);
    let name = |&(place, mass): &(usize, f64)| {
        let twice = found.iter().filter(|(_, other)| *other == mass).count() > 1;
        let which = if twice { format!(" ({})", place + 1) } else { String::new() };
        (place, mass, format!("condensate, m = {}{which}", number(mass)))
    };
    found.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::trajectories::parse;
    use crate::records::trajectories::tests::line;
    use serde_json::{Value, json};

    fn run(lines: &[Value]) -> RunHistory {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        parse(text.as_bytes(), "lines").unwrap()
    }

    fn find<'a>(all: &'a [Observable], key: &str) -> &'a Observable {
        all.iter().find(|o| o.key == key).unwrap()
    }

    #[test]
    fn what_is_left_out_does_not_count_and_null_neither() {
        let mut lines: Vec<Value> = [9.0, 9.0, 0.1, 0.3, 0.2, 0.7].iter().zip(1..).map(|(d, n)| line(n, *d)).collect();
        lines[4]["delta_h"] = Value::Null;
        lines[4]["exp_minus_delta_h"] = Value::Null;
        lines[4].as_object_mut().unwrap().remove("plaquette");
        let run = run(&lines);
        let all = collect(&run, run.thermalisation());
        let delta = find(&all, "delta_h");
        assert_eq!((delta.points.len(), delta.first, delta.not_numbers()), (6, 2, 1));
        assert_eq!(delta.kept().collect::<Vec<_>>(), [(3, 0.1), (4, 0.3), (6, 0.7)]);
        assert!((delta.estimate.mean - 1.1 / 3.0).abs() < 1e-15);
        let acceptance = find(&all, "accepted");
        assert_eq!((acceptance.points[0], acceptance.estimate.mean), ((3, 1.0), 0.75));
        let plaquette = find(&all, "plaquette.mean");
        assert_eq!((plaquette.estimate.count, plaquette.not_numbers(), plaquette.every()), (3, 0, 1));
        assert_eq!(find(&all, "polyakov_loop.abs").estimate.mean, 0.05);
        assert_eq!(find(&all, "condensate").record().mass, Some(0.05));
        assert!(all.iter().all(|o| o.key != "irreversibility.links"));

        // More is left out than there is.
        let none = collect(&run, 100);
        assert!(none.iter().all(|o| o.estimate.count == 0 && o.first == o.points.len()));
        assert!(find(&none, "delta_h").record().mean.is_nan());
    }

    /// Rational functions of Wilson-like quarks have both ends of the spectrum of K, a pseudofermion of two flavours none, and
    /// determinants no solver.
    #[test]
    fn parts_of_wilson_like_quarks_have_their_own_numbers() {
        let quarks = json!([
            { "name": "clover quarks 1 at m = 0.2", "iterations": { "action": 3, "dynamics": 9 }, "largest_eigenvalue": 6.5,
              "smallest_eigenvalue": 0.01 },
            { "name": "clover quarks 2 at m = 0.1", "iterations": { "action": 3, "dynamics": 9 }, "largest_eigenvalue": null },
            { "name": "clover quarks 2 at m = 0.1, determinant", "iterations": { "action": 0, "dynamics": 0 },
              "largest_eigenvalue": null },
        ]);
        let lines: Vec<Value> = (1..=4)
            .map(|n| {
                let mut line = line(n, 0.1);
                line["quarks"] = quarks.clone();
                line
            })
            .collect();
        let all = collect(&run(&lines), 0);
        let of_quarks = |o: &&Observable| matches!(o.of, Some(ObservableOf::Quarks(_)));
        let names: Vec<&str> = all.iter().filter(of_quarks).map(|o| o.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "iterations, action, clover quarks 1 at m = 0.2",
                "iterations, dynamics, clover quarks 1 at m = 0.2",
                "largest eigenvalue of K = M̂†M̂, clover quarks 1 at m = 0.2",
                "smallest eigenvalue of K = M̂†M̂, clover quarks 1 at m = 0.2",
                "iterations, action, clover quarks 2 at m = 0.1",
                "iterations, dynamics, clover quarks 2 at m = 0.1",
            ]
        );
        assert!(all.iter().all(|o| o.not_numbers() == 0));
    }

    #[test]
    fn condensates_of_equal_and_of_changed_masses_stay_apart() {
        let with = |number, masses: &[f64]| {
            let mut line = line(number, 0.0);
            line["condensate"] = masses.iter().map(|m| json!({ "mass": m, "mean": 10.0 * m })).collect();
            line
        };
        let run = run(&[with(1, &[0.05, 0.05]), with(2, &[0.05, 0.02])]);
        let all = collect(&run, 0);
        let found: Vec<_> = all.iter().filter(|o| o.key == "condensate").collect();
        let names: Vec<_> = found.iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names, ["condensate, m = 0.05 (1)", "condensate, m = 0.05 (2)", "condensate, m = 0.02"]);
        assert_eq!(found[0].points, [(1, 0.5), (2, 0.5)]);
        assert_eq!(found[2].points, [(2, 0.2)]);
    }
}
