//! The course of a run, one trajectory after the other.
use super::RunEnd;
use super::folder::{ChainFields, RunFolder};
use super::input::{EnsembleInput, Timed};
use super::quarks::{EnsembleQuarks, failed, without_action};
use super::record::{self, MeasuredTrajectory, QuarkRecord};
use super::replay::{self, Replay};
use super::settings;
use super::state::ChainState;
use crate::batch::Batches;
use crate::layout::Layout;
use crate::progress::Progress;
use crate::session::Session;
use crate::{Failure, Outcome, text};
use ferrite::Precision;
use ferrite::backend::Backend;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::hmc::fermions::RationalFunctions;
use ferrite::hmc::links::{EvolvingLinks, StopSignal};
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::trajectory::{Chain, TrajectoryOutcome};
use ferrite_records::ensemble::RunSettings;
use ferrite_records::object;
use ferrite_records::progress::ProgressLine;
use serde_json::Value;
use std::time::Instant;
use tracing::{info, warn};

/// A run whose input, partition and batches have been checked.
pub struct EnsembleRun<'a> {
    /// The checked input.
    pub input: &'a EnsembleInput,
    /// Partition of the lattice among the processes.
    pub layout: &'a Layout,
    /// Communicator of the processes, and observer of the run.
    pub session: &'a Session,
    /// Settings that this start of the program records on its first line of `trajectories.jsonl`.
    pub settings: RunSettings,
    /// Time at which this start of the program began.
    pub begin: Instant,
    /// Maximum run time in hours; `None` without a limit.
    pub max_hours: Option<f64>,
    /// Folder with momenta, noise and rational functions that replace those of the run; `None` without `--replay`.
    pub replay: Option<Replay>,
    /// Batches in which the noise vectors of a condensate are solved.
    pub batches: Batches,
}

impl EnsembleRun<'_> {
    /// *Collective.* Generates the trajectories that the folder of the run does not have yet.
    pub fn make(
        &self,
        backend: &dyn Backend,
        mut folder: RunFolder,
        state: Option<ChainState>,
        fields: &ChainFields,
    ) -> Outcome<RunEnd> {
        let (input, comm) = (self.input, &self.session.comm);
        let domain = self.layout.domain(backend)?;
        let gauge = GaugeField::upload(&domain, &fields.gauge)?;
        let (fresh, session) = (state.is_none(), self.session.clone());
        let stop = StopSignal::new(move || session.is_stopped(0));
        let mut state = match state {
            Some(state) => state,
            None => {
                let (bounds, seed, start) = (Vec::new(), input.plan.seed, Some(settings::start(input)));
                ChainState { trajectory: 0, accepted: 0, seed, bounds, poles: Vec::new(), start, batches: Vec::new() }
            }
        };
        // Before the first trajectory, the input may differ from the one for which the state was written, so its intervals are not used.
        // Later, the intervals in the state belong to these links and operators.
        let kept = input.intervals(&state.bounds).filter(|_| state.trajectory > 0);
        let mut intervals = match kept {
            Some(kept) => kept,
            None => {
                let mut links = EvolvingLinks::new(&gauge, input.precision())?;
                links.stop_when(stop.clone());
                match input.quarks().intervals(&links) {
                    Err(why) if why.is_stop() => {
                        if fresh {
                            state.batches.clone_from(&self.batches.sizes);
                            let links = folder.write_fields(0, fields, false, self.layout, comm)?;
                            folder.keep(&state, &links, comm)?;
                        }
                        let (first, accepted) = (state.trajectory, state.accepted);
                        return Ok(RunEnd { first, last: first, accepted, interrupted: true, records: Vec::new() });
                    }
                    found => found.map_err(failed)?,
                }
            }
        };
        state.bounds = intervals.as_flattened().to_vec();
        let quarks = self.quarks(&domain, &mut state, &intervals)?;
        state.batches.clone_from(&self.batches.sizes);
        let mut chain = Chain::new(input.plan.clone(), &gauge, input.precision(), quarks).map_err(failed)?;
        drop(gauge);
        // A run may be stopped in a multigrid setup at the start of a trajectory, because little work is lost there.
        chain.stop_setups_when(stop);
        if let Some(momenta) = &fields.momenta {
            chain.set_momenta(momenta).map_err(failed)?;
        }
        if fresh {
            let links = folder.write_fields(0, &self.download(&chain)?, false, self.layout, comm)?;
            folder.keep(&state, &links, comm)?;
        }
        let first = state.trajectory;
        let work = ProgressLine { trajectories: Some(input.trajectories), ..ProgressLine::of("rhmc") };
        let progress = Progress::new(self.session, work, PARTS * u64::from(input.trajectories));
        let (mut records, mut interrupted) = (Vec::<MeasuredTrajectory>::new(), false);
        while state.trajectory < input.trajectories {
            let number = state.trajectory + 1;
            let clock = Instant::now();
            let nth = |every: usize| every > 0 && (number as usize).is_multiple_of(every);
            let timed = match input.measure.kernels {
                Timed::Every(every) => nth(every),
                Timed::Second => records.len() == 1 || (records.is_empty() && number == input.trajectories),
            };
            if timed {
                backend.start_profile()?;
            }
            let given = self.replay.as_ref().map(|replay| replay.trajectory(number, input, self.layout, comm));
            let given = given.transpose()?;
            let noise = given.as_ref().map(replay::GivenNumbers::noise);
            let shown = progress.clone();
            chain.on_move(move |done, all| {
                shown.at(PARTS * u64::from(number - 1) + PARTS * done as u64 / all as u64, |line| {
                    line.trajectory = Some(number);
                    (line.done, line.part) = (Some(false), Some(done as f64 / all as f64));
                    format!("trajectory {number}, {} % done", 100 * done / all)
                });
            });
            chain.measure_identities(nth(input.measure.identities));
            let outcome = match chain.trajectory(number, noise, nth(input.measure.reversibility)) {
                Err(why) if why.is_stop() => {
                    interrupted = true;
                    break;
                }
                outcome => outcome.map_err(failed)?,
            };
            let record = |quarks: &mut (dyn Monomial + 'static)| QuarkRecord {
                name: quarks.name(),
                largest: None,
                smallest: None,
                residual: quarks.take_residual(),
                guarded: quarks.take_guarded(),
            };
            let mut quarks: Vec<QuarkRecord> = chain.quarks().map(record).collect();
            let seconds = clock.elapsed().as_secs_f64();
            let kernels = timed.then(|| backend.end_profile()).transpose()?;
            state.trajectory = number;
            state.accepted += u32::from(outcome.accepted);
            self.look_at_spectrum(&mut chain, &mut intervals, &mut quarks)?;
            state.bounds = intervals.as_flattened().to_vec();
            let measured = nth(input.measure.every).then(|| self.measure(&chain, number)).transpose()?;
            let whole = clock.elapsed().as_secs_f64();
            let clock = Instant::now();
            let (fields, save) = (self.download(&chain)?, number.is_multiple_of(input.save_every));
            let links = folder.write_fields(number, &fields, save, self.layout, comm)?;
            let files = clock.elapsed().as_secs_f64();
            let record = MeasuredTrajectory { outcome, seconds, quarks, measured, kernels, whole, files };
            self.warn_of(&record);
            let mut line = record.line(input);
            if records.is_empty() {
                // The first line of each start records the settings, which a start may change.
                line.run = Some(Value::Object(object(&self.settings)));
            }
            folder.add(&line, comm)?;
            // The state is written last, because it refers to the links and to the line.
            folder.keep(&state, &links, comm)?;
            progress.reached(PARTS * u64::from(number), |line| {
                let TrajectoryOutcome { delta, accepted, .. } = record.outcome;
                (line.trajectory, line.done, line.part) = (Some(number), Some(true), Some(1.0));
                (line.accepted, line.delta_h) = (Some(accepted), Some(delta));
                format!("after trajectory {number}")
            });
            info!("{}", record.message());
            records.push(record);
            if let Some(warning) = record::warning_of_rejections(&records) {
                warn!("{warning}");
            }
            if number < input.trajectories && self.is_asked_to_end()? {
                interrupted = true;
                break;
            }
        }
        progress.finish();
        Ok(RunEnd { first, last: state.trajectory, accepted: state.accepted, interrupted, records })
    }
    /// Returns the parts of the fermion action, with rational functions for the intervals or from the replayed run.
    fn quarks(
        &self,
        domain: &Domain,
        state: &mut ChainState,
        intervals: &[[f64; 2]],
    ) -> Outcome<Vec<Box<dyn Monomial>>> {
        let quarks = self.input.quarks();
        let given = self.replay.as_ref().map(|replay| replay.functions(self.input.groups.len())).transpose();
        let functions = match self.session.comm.agree(given)?.flatten() {
            Some(given) => given.into_iter().map(Some).collect(),
            None => functions(&quarks, intervals)?,
        };
        let mut known = std::mem::take(&mut state.poles).into_iter();
        for (number, (group, functions)) in self.input.groups.iter().zip(&functions).enumerate() {
            let Some(functions) = functions else { continue };
            let (poles, given) = (functions.dynamics.poles.len(), group.solvers(&self.input.solvers)[0].tol.len());
            let known = if state.trajectory == 0 { Some(poles) } else { known.next() };
            let key = match group.dynamics_tol() {
                Some(_) => format!("fermion.{number}.dynamics-tol"),
                None => "precision.dynamics-tol".into(),
            };
            state.poles.push(residuals(&key, &group.name, given, poles, known)?);
        }
        quarks.parts(domain, functions).map_err(failed)
    }
    fn measure(&self, chain: &Chain, number: u32) -> Outcome<record::Measured> {
        let given = |which: usize| match &self.replay {
            Some(replay) => replay.noise(number, which, self.layout, &self.session.comm),
            None => Ok(None),
        };
        record::measure(chain, self.input, &self.batches.sizes, number, given)
    }
    /// Measures the spectral bounds, and makes new rational functions if the bounds have left their intervals.
    fn look_at_spectrum(&self, chain: &mut Chain, intervals: &mut [[f64; 2]], records: &mut [QuarkRecord]) -> Outcome {
        let quarks = self.input.quarks();
        for seen in quarks.look_at_spectrum(chain.links(), intervals).map_err(failed)? {
            let ([smallest, largest], name) = (seen.bounds, &self.input.groups[seen.group].name);
            let record = &mut records[seen.part];
            // For staggered quarks, no smallest eigenvalue is computed.
            record.smallest = Some(smallest).filter(|smallest| *smallest > 0.0);
            record.largest = Some(largest);
            let Some([[old_low, old], [low, new]]) = seen.moved else { continue };
            if self.replay.as_ref().is_some_and(Replay::has_functions) {
                warn!(
                    "{name}: the largest eigenvalue has grown to {largest:.2}, above the bound {old:.2} of the \
                     rational functions; the functions of --replay stay in use"
                );
                continue;
            }
            if smallest > 0.0 {
                warn!(
                    "{name}: the spectrum has left the interval from {old_low:.3e} to {old:.3} of the rational \
                     functions (eigenvalues from {smallest:.3e} to {largest:.3}); new functions cover {low:.3e} to \
                     {new:.3}"
                );
            } else {
                warn!(
                    "{name}: the largest eigenvalue has grown to {largest:.2}, above the bound {old:.2} of the \
                     rational functions; new functions reach {new:.2}"
                );
            }
            quarks.follow(chain, intervals, &seen).map_err(without_action)?;
        }
        Ok(())
    }
    fn warn_of(&self, record: &MeasuredTrajectory) {
        let TrajectoryOutcome { number, delta, .. } = record.outcome;
        if let Some(failure) = &record.outcome.failure {
            warn!("trajectory {number} is rejected: {failure}; use more steps or more precise solvers");
        } else if !delta.is_finite() {
            warn!("trajectory {number}: ΔH is not a finite number; use shorter steps, with a larger trajectory.steps");
        }
        for QuarkRecord { name, guarded, .. } in record.quarks.iter().filter(|quarks| quarks.guarded > Some(0)) {
            warn!(
                "trajectory {number}, {name}: the force was limited on {} (summed over all evaluations), because \
                 smeared links have a singular value near 0 before their projection to U(3); this may increase |ΔH|",
                text::count(guarded.unwrap_or(0), "link")
            );
        }
        let solver = &self.input.solvers[1];
        let (asked, double) = (solver.tol[0], if solver.single { "precision.action = \"double\", or " } else { "" });
        for QuarkRecord { name, residual, .. } in &record.quarks {
            if residual.is_nan() || *residual > WORSE * asked {
                warn!(
                    "trajectory {number}, {name}: solves for the action have a residual of {residual:.1e} instead of \
                     {asked:e}; set {double}a larger precision.action-tol"
                );
            }
        }
    }
    fn download(&self, chain: &Chain) -> Outcome<ChainFields> {
        let gauge = chain.links().thin(Precision::Double)?.download()?;
        let momenta = chain.momenta().map(|momenta| momenta.download()).transpose()?;
        Ok(ChainFields { gauge, momenta })
    }
    /// *Collective.* Returns whether the run must end, because its time limit has passed or because the observer requests it.
    fn is_asked_to_end(&self) -> Outcome<bool> {
        let late = self.max_hours.is_some_and(|hours| self.begin.elapsed().as_secs_f64() > 3600.0 * hours);
        let late = self.session.comm.largest(f64::from(u8::from(late)))? > 0.0;
        Ok(late || self.session.is_stopped(0))
    }
}
/// Number of steps of the progress bar for each trajectory.
const PARTS: u64 = 1000;

/// Returns the number of poles for which tolerances of molecular dynamics are given. `given` is the number of tolerances in the input, and
/// `known` the number of poles at the previous start. Refuses numbers other than 1 and `poles`, unless the spectrum has grown since the
/// input was written, so that the rational functions have other poles.
fn residuals(key: &str, name: &str, given: usize, poles: usize, known: Option<usize>) -> Outcome<usize> {
    if given == 1 || given == poles {
        return Ok(poles);
    }
    if known.is_some_and(|known| known != given) {
        let numbers = text::count(given, "number");
        let why = format!(
            "{key} has {numbers}, but the rational functions of {name} have {}: give one number, or one per pole",
            text::count(poles, "pole")
        );
        return Err(Failure::refused(why).shared());
    }
    let what =
        if given > poles { "the surplus numbers are ignored" } else { "the last number is used for all other poles" };
    let [numbers, poles] = [(given, "number"), (poles, "pole")].map(|(n, word)| text::count(n, word));
    warn!("{key} has {numbers}, but the rational functions of {name} now have {poles}: {what}");
    Ok(given)
}

/// Smallest ratio of a true residual to the requested tolerance at which a warning is printed.
const WORSE: f64 = 10.0;

/// Returns the rational functions of each quark group for its interval of the spectrum; `None` for groups without rational functions.
pub fn functions(quarks: &EnsembleQuarks<'_>, intervals: &[[f64; 2]]) -> Outcome<Vec<Option<RationalFunctions>>> {
    let of_group = |(group, interval): (usize, &[f64; 2])| quarks.functions(group, *interval);
    intervals.iter().enumerate().map(of_group).collect::<Result<_, _>>().map_err(without_action)
}
