//! Prediction of the run time. A unit of the repeated work is timed on this device, on a lattice that takes only a moment, and the time is
//! scaled to the part of each process.
use super::checked::Checked;
use super::device::Device;
use super::plan::Systems;
use super::solve::Solve;
use super::{Failure, Outcome, text};
use comms::ProcessGrid;
use ferrite::FermionKind;
use ferrite::LinkStorage;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::gauge::generate::{noise_source, weak_field};
use ferrite::lattice::Lattice;
use ferrite::operators::{Operator, StaggeredOperator};
use ferrite::solve::{Configuration, Method, Request, Schwarz, SolveFailure, Solved};
use ferrite_records::program::{PredictedEnsemble, PredictedSolve, PredictedTime};
use ferrite_tasks::ensemble::input::EnsembleInput;
use ferrite_tasks::ensemble::trial::trial;
use std::fmt::Write;

/// Largest number of sites for timing solves, on a CPU and on a GPU: as many as take a second, and more than fit in caches.
const SITES: [usize; 2] = [1 << 14, 1 << 20];
/// Largest number of sites for timing trajectories, on a CPU and on a GPU. Trajectories have thousands of iterations. On a GPU, the kernels
/// must take longer than their launches.
const SITES_OF_TRAJECTORIES: [usize; 2] = [1 << 9, 1 << 18];
/// Numbers of iterations of two timed solves. The difference of their times gives the time of an iteration. Work that a solve does once,
/// such as the final true residual, cancels.
const ITERATIONS: [usize; 2] = [40, 120];
/// Noise of the links in timed solves, for Wilson and for staggered quarks. Smoother links lead to fewer iterations between updates in
/// higher precision. For staggered quarks, noise 0.5 gives as many as links at β = 6, and noise 0.1 a quarter of them.
const NOISE: [f64; 2] = [0.1, 0.5];

/// Unit of work whose time is predicted.
#[derive(Clone, Copy, Debug)]
enum Unit {
    /// Iteration for `together` right-hand sides, in each of `batches` batches; `setup` is the time in seconds of a multigrid setup before.
    /// If `several` is true, the solve has several masses or shifts, of which one was timed.
    Iteration { together: usize, batches: usize, setup: Option<f64>, several: bool },
    /// Trajectory without observables; `all` is the number of trajectories.
    Trajectory { all: u32 },
}

/// Predicted time of a run.
#[derive(Clone, Debug)]
pub struct Forecast {
    unit: Unit,
    seconds: f64,
    /// Extents of the lattice on which the unit was timed.
    on: Lattice,
}

impl Forecast {
    /// Predicts the time of a solve. If there are several masses or shifts, times one system only.
    pub fn of_solve(solve: &Solve, checked: &Checked) -> Outcome<Self> {
        match solve.plan.operator.kind() {
            FermionKind::Wilson => Self::of_fields::<Spinor>(solve, checked, NOISE[0]),
            FermionKind::Staggered => Self::of_fields::<ColourVector>(solve, checked, NOISE[1]),
        }
    }
    fn of_fields<F: Fermion>(solve: &Solve, checked: &Checked, noise: f64) -> Outcome<Self> {
        let (plan, together) = (&solve.plan, checked.batches.largest());
        let on = smaller(checked.cut.local, SITES, &checked.device, together);
        let gauge = weak_field(on, 1, noise);
        let staggered = plan.operator.parameters::<StaggeredOperator>();
        let with_tadpole = staggered.and_then(|staggered| staggered.with_plaquette(1.0));
        let operator = with_tadpole.map_or(plan.operator.clone(), Operator::from);
        let mut request = solve.request(operator, plan.reconstruction.unwrap_or(LinkStorage::of(12)));
        // The domains may not fit the smaller lattice, or may overlap with those of other processes. A single domain replaces them, because
        // the size of domains hardly affects the time.
        if request.schwarz.check(on, &ProcessGrid::SINGLE).is_err() {
            request.schwarz = Schwarz { domain: None, overlap: 0, ..request.schwarz };
        }
        if request.multigrid.aggregates(on).is_err() {
            request.multigrid.blocks = Default::default();
        }
        // With the automatic choice of a method, BiCGstab is timed, because it is unknown whether multigrid would take over.
        if request.method.is_choice() {
            request.method = Method::BICGSTAB;
        }
        let (seconds, setup) = {
            let domain = Domain::single(checked.device.backend(), on)?;
            let configuration = Configuration::new(&domain, &gauge);
            let sources: Vec<HostField<F>> = (0..together).map(|n| noise_source(on, 1, n as u32)).collect();
            let seconds = seconds(|most| configuration.solve(&sources, None, &no_more_than(most, &request), &mut ()))?;
            (seconds, configuration.multigrid_setup().map(|(_, multigrid)| multigrid.seconds()))
        };
        Ok(Self::of_iterations((seconds, setup), on, checked, plan.systems != Systems::One))
    }
    fn of_iterations((seconds, setup): (f64, Option<f64>), on: Lattice, checked: &Checked, several: bool) -> Self {
        let (together, batches, scale) =
            (checked.batches.largest(), checked.batches.sizes.len(), ratio(checked.cut.local, on));
        let unit = Unit::Iteration { together, batches, setup: setup.map(|setup| setup * scale), several };
        Forecast { unit, seconds: seconds * scale, on }
    }
    /// Predicts the time of an ensemble. A trajectory of one step and one of two steps are timed; the difference is the time of a step, and
    /// the rest is the time of the other work.
    pub fn of_ensemble(input: &EnsembleInput, checked: &Checked) -> Outcome<Self> {
        let on = smaller(checked.cut.local, SITES_OF_TRAJECTORIES, &checked.device, 1);
        // The first trajectory loads the kernels and is not timed.
        let [_, one, two] = trial(input, &checked.device, on, [1, 1, 2])?;
        let steps = input.plan.levels.first().map_or(1, |level| level.steps);
        let whole = one + (two - one).max(0.0) * (steps as f64 - 1.0);
        let unit = Unit::Trajectory { all: input.trajectories };
        Ok(Forecast { unit, seconds: whole * ratio(checked.cut.local, on), on })
    }

    /// Returns the record of the predicted times.
    pub fn record(&self) -> PredictedTime {
        let timed_on = self.on.size();
        match self.unit {
            Unit::Iteration { together, batches, setup, .. } => PredictedTime::Solve(PredictedSolve {
                seconds_per_iteration: self.seconds,
                seconds_per_1000_iterations: 1000.0 * self.seconds * batches as f64,
                right_hand_sides: together,
                batches,
                setup_seconds: setup,
                timed_on,
            }),
            Unit::Trajectory { all } => PredictedTime::Ensemble(PredictedEnsemble {
                seconds_per_trajectory: self.seconds,
                seconds: self.seconds * f64::from(all),
                timed_on,
            }),
        }
    }
    /// Returns the predicted times as text for people.
    pub fn text(&self, checked: &Checked) -> String {
        let mut text = match self.unit {
            Unit::Iteration { together, batches, setup, several } => {
                let setup = setup.map_or(String::new(), |setup| {
                    format!("time of the multigrid setup: about {}\n", text::seconds(setup))
                });
                let one = if several { ", at one mass or shift" } else { "" };
                format!(
                    "{setup}time of an iteration for {}: {}; time of 1000 iterations for all right-hand sides{one}: {}\n",
                    text::count(together, "right-hand side"),
                    text::seconds(self.seconds),
                    text::seconds(1000.0 * self.seconds * batches as f64)
                )
            }
            Unit::Trajectory { all } => {
                let [one, all_of_them] = [self.seconds, self.seconds * f64::from(all)].map(text::seconds);
                let trajectories = text::count(all as usize, "trajectory");
                format!("time of a trajectory: about {one}; time of {trajectories}: {all_of_them}\n")
            }
        };
        let _ = write!(text, "  timed on {}", self.on);
        if self.on != checked.cut.local {
            let _ = write!(text, " and scaled to {}", checked.cut.local);
        }
        if checked.cut.grid.size() > 1 {
            text += "; exchanges with other processes take additional time";
        }
        text += match self.unit {
            Unit::Iteration { .. } => "; the number of iterations depends on the links\n",
            Unit::Trajectory { .. } => {
                "; on the random links that were timed, solves take more iterations than in a run; observables are not included\n"
            }
        };
        text
    }
}

/// Returns the ratio of the number of sites of `local` to that of `on`.
fn ratio(local: Lattice, on: Lattice) -> f64 {
    local.volume() as f64 / on.volume() as f64
}

/// Returns the lattice for timing: `local`, made smaller until it has at most the number of sites for this device. Several right-hand sides
/// lower this number.
fn smaller(local: Lattice, [cpu, gpu]: [usize; 2], device: &Device, together: usize) -> Lattice {
    halved(local, if device.name() == "cpu" { cpu } else { gpu } / together.div_ceil(4))
}

/// Returns the lattice with its longest extent halved repeatedly, to even numbers of at least 4, until it has at most `most` sites or
/// cannot be smaller.
fn halved(mut on: Lattice, most: usize) -> Lattice {
    while on.volume() > most {
        let mut size = on.size();
        let Some(mu) = (0..4).filter(|&mu| size[mu] > 4).max_by_key(|&mu| size[mu]) else { break };
        size[mu] = (size[mu] / 2).next_multiple_of(2).max(4);
        match Lattice::new(size) {
            Ok(lattice) => on = lattice,
            Err(_) => break,
        }
    }
    on
}

/// Returns the request with this maximum number of iterations, all in one precision.
fn no_more_than(iterations: usize, request: &Request) -> Request {
    Request { max_iterations: Some(iterations), escalate: false, ..request.clone() }
}

/// Measures the seconds of an iteration after the kernels have been loaded. The short solves are not expected to converge.
fn seconds<T: Fermion>(mut solve: impl FnMut(usize) -> Solved<T>) -> Outcome<f64> {
    let mut timed = |most: usize| match solve(most) {
        Ok((_, report)) => Ok((report.seconds, report.info.iterations)),
        Err(SolveFailure::Unfinished { report, .. }) => Ok((report.seconds, report.info.iterations)),
        Err(why) => Err(Failure::failed(why)),
    };
    let [few, many] = ITERATIONS;
    timed(few)?;
    Ok(per_iteration(timed(few)?, timed(many)?))
}

/// Returns the seconds of an iteration from the times and iterations of a short and a long solve. If the long solve did not take longer,
/// because it converged or clocks are too coarse, its whole time counts.
fn per_iteration((short, few): (f64, usize), (long, many): (f64, usize)) -> f64 {
    if many > few && long > short { (long - short) / (many - few) as f64 } else { long / many.max(1) as f64 }
}

#[cfg(test)]
mod tests {
    use super::{SITES, halved, per_iteration};
    use ferrite::lattice::Lattice;

    #[test]
    fn what_is_timed_is_bounded() {
        let of = |size: [usize; 4], most| halved(Lattice::new(size).unwrap(), most).size();
        // Extents that 4 does not divide.
        assert_eq!(of([50, 50, 50, 100], SITES[0]), [14, 14, 8, 8]);
        assert_eq!(of([32, 32, 32, 64], SITES[0]), [16, 16, 8, 8]);
        assert_eq!(of([6, 6, 6, 6], 1), [4, 4, 4, 4]);
        assert_eq!(of([4, 2, 4, 8], SITES[0]), [4, 2, 4, 8]);
    }

    #[test]
    fn what_is_paid_once_is_no_part_of_an_iteration() {
        assert_eq!(per_iteration((1.5, 10), (2.5, 30)), 0.05);
        assert_eq!(per_iteration((1.5, 10), (1.5, 10)), 0.15);
        assert_eq!(per_iteration((1.5, 10), (1.0, 20)), 0.05);
    }
}
