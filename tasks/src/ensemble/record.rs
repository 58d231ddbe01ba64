//! Records of trajectories.
use super::input::EnsembleInput;
use super::quarks::energies;
use crate::observables;
use crate::{Failure, Outcome, profile};
use ferrite::Precision;
use ferrite::backend::KernelTime;
use ferrite::field::host::HostColour;
use ferrite::field::{FieldShape, FullField};
use ferrite::hmc::identities::{Identities, LoopIdentity};
use ferrite::hmc::trajectory::{Chain, TrajectoryOutcome};
use ferrite::observables::condensate::{Estimate, condensate, noise};
use ferrite::observables::loops::LoopMeans;
use ferrite::observables::quantity::PLAQUETTE;
use ferrite::statistics::average;
use ferrite_records::ensemble::{
    CondensateLine, CondensateNoise, IdentityMeans, Irreversibility, LoopAndForce, LoopIdentities, QuarkIterations,
    QuarkLine, RhmcSummary, TrajectoryLine,
};
use ferrite_records::observables::MeanAndError;
use num_complex::Complex64;

/// Observables measured on the links after a trajectory.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Means of plaquettes, rectangles and the Polyakov loop.
    pub loops: LoopMeans,
    /// Mass of each condensate, with the estimates from its noise vectors.
    pub condensates: Vec<(f64, Vec<Estimate>)>,
}

/// A trajectory with its times and the observables measured after it.
pub struct MeasuredTrajectory {
    /// Outcome of the trajectory.
    pub outcome: TrajectoryOutcome,
    /// Time of the trajectory in seconds.
    pub seconds: f64,
    /// Results for each part of the fermion action.
    pub quarks: Vec<QuarkRecord>,
    /// Observables; `None` if they were not measured after this trajectory.
    pub measured: Option<Measured>,
    /// Times of the kernels in the trajectory; `None` if kernels were not timed.
    pub kernels: Option<Vec<KernelTime>>,
    /// Time of the trajectory, the spectral bounds and the observables together, in seconds.
    pub whole: f64,
    /// Time for downloading the links, writing and syncing their files and reading them back, in seconds.
    pub files: f64,
}

/// Spectral bounds, residual and guarded links of one part of the fermion action.
#[derive(Clone, Debug)]
pub struct QuarkRecord {
    /// Name of the part of the fermion action.
    pub name: String,
    /// Largest eigenvalue of the operator of the rational functions: −D² for staggered quarks, M̂†M̂ for Wilson-like quarks.
    pub largest: Option<f64>,
    /// Smallest eigenvalue of M̂†M̂, the operator of the rational functions of Wilson-like quarks; `None` for other quarks.
    pub smallest: Option<f64>,
    /// Largest true residual of the solves for heat bath and action.
    pub residual: f64,
    /// Number of links whose force was limited, summed over all evaluations; `None` for operators whose force needs no limit.
    pub guarded: Option<usize>,
}

/// *Collective.* Measures loops and condensates after trajectory `number`. Systems whose right-hand sides are the noise vectors of a
/// condensate are solved in batches of the sizes `batches`; the noise vectors do not depend on these sizes. `given` returns a noise vector
/// from a file by its index, counted over quark groups, masses and vectors, or `None` if there is no file.
pub fn measure(
    chain: &Chain,
    input: &EnsembleInput,
    batches: &[usize],
    number: u32,
    given: impl Fn(usize) -> Outcome<Option<HostColour>>,
) -> Outcome<Measured> {
    let links = chain.links();
    let thin = links.thin(Precision::Double)?;
    let loops = LoopMeans::of(&thin)?;
    let (mut condensates, mut count) = (Vec::new(), 0);
    for (operator, quarks) in input.staggered() {
        for quarks in quarks.iter().filter(|quarks| input.has_flavours(operator, quarks.mass)) {
            let mut found = Vec::new();
            for together in batches.iter().copied() {
                let mut field = FullField::zero(chain.domain(), FieldShape::colours(Precision::Double, together))?;
                noise(&mut field, found.len() as u32, input.plan.seed, number)?;
                let mut from_files = Vec::new();
                for _ in 0..together {
                    from_files.extend(given(count)?);
                    count += 1;
                }
                match from_files.len() {
                    0 => {}
                    n if n == together => field.upload(&from_files)?,
                    n => {
                        let why = format!(
                            "trajectory {number}: the folder of --replay has only {n} of the {together} noise vectors \
                             of a batch: give the files of all or none"
                        );
                        return Err(Failure::refused(why).shared());
                    }
                }
                let tol = input.measure.condensate_tol;
                let all = condensate(links, operator, quarks.mass, &field, tol).map_err(super::quarks::failed)?;
                found.extend(all);
            }
            condensates.push((quarks.mass, found));
        }
    }
    Ok(Measured { loops, condensates })
}

/// Returns the record of the condensate at a mass, from the estimates of its noise vectors.
fn condensate_line(mass: f64, found: &[Estimate]) -> CondensateLine {
    let sum: Complex64 = found.iter().map(|estimate| estimate.even + estimate.odd).sum();
    let pair = |at: &Estimate| CondensateNoise { even: [at.even.re, at.even.im], odd: [at.odd.re, at.odd.im] };
    CondensateLine {
        mass,
        mean: (sum / (2 * found.len()) as f64).re,
        noise: found.iter().map(pair).collect(),
        residual: found.iter().map(|estimate| estimate.residual).fold(0.0, solvers::worse_residual),
    }
}

impl MeasuredTrajectory {
    /// Returns the line of the trajectory in `trajectories.jsonl`, without settings.
    pub fn line(&self, input: &EnsembleInput) -> TrajectoryLine {
        let outcome = &self.outcome;
        let quarks = self.quarks.iter().zip(&outcome.iterations).map(|(quarks, [action, dynamics])| QuarkLine {
            name: quarks.name.clone(),
            iterations: QuarkIterations { action: *action, dynamics: *dynamics },
            residual: quarks.residual,
            largest_eigenvalue: quarks.largest,
            smallest_eigenvalue: quarks.smallest,
            guarded_links: quarks.guarded,
        });
        let identity = |LoopIdentity { loops, forces }: LoopIdentity| LoopAndForce { loops, forces };
        let loops = self.measured.as_ref().map(|measured| &measured.loops);
        let condensates = self.measured.iter().flat_map(|measured| &measured.condensates);
        TrajectoryLine {
            trajectory: outcome.number.into(),
            metropolis: outcome.number >= input.plan.metropolis_from,
            accepted: outcome.accepted,
            delta_h: outcome.delta,
            exp_minus_delta_h: (-outcome.delta).exp(),
            start: energies(&outcome.start),
            end: energies(&outcome.end),
            quarks: quarks.collect(),
            seconds: self.seconds,
            seconds_with_observables: Some(self.whole),
            seconds_of_files: Some(self.files),
            failure: outcome.failure.clone(),
            irreversibility: outcome.irreversibility.map(|[links, momenta]| Irreversibility { links, momenta }),
            identities: outcome.identities.map(|Identities { plaquette, rectangle }| LoopIdentities {
                plaquette: Some(identity(plaquette)),
                rectangle: rectangle.map(identity),
            }),
            plaquette: loops.map(|loops| observables::plaquettes(&loops.plaquette)),
            rectangle: loops.map(|loops| loops.rectangle),
            polyakov_loop: loops.map(|loops| [loops.polyakov.re, loops.polyakov.im]),
            condensate: condensates
                .filter(|(_, found)| !found.is_empty())
                .map(|(m, found)| condensate_line(*m, found))
                .collect(),
            kernels: self.kernels.as_ref().map(|kernels| profile::record(kernels, self.seconds)),
            run: None,
        }
    }
    /// Returns the fraction of the trajectory's time outside kernels; `None` if kernels were not timed.
    fn outside_kernels(&self) -> Option<f64> {
        self.kernels.as_ref().map(|kernels| 1.0 - profile::inside(kernels) / self.seconds)
    }
    /// Returns a summary of the trajectory in a few words, for a terminal.
    pub fn message(&self) -> String {
        let TrajectoryOutcome { number, delta, accepted, .. } = &self.outcome;
        let plaquette = self
            .measured
            .as_ref()
            .map_or(String::new(), |measured| format!(", {} {:.6}", PLAQUETTE.name, measured.loops.plaquette.mean));
        let word = if *accepted { "accepted" } else { "rejected" };
        let inside = self
            .outside_kernels()
            .map_or(String::new(), |outside| format!(" ({:.0} % of it outside kernels)", 100.0 * outside));
        format!("trajectory {number}, ΔH {delta:+.4} {word}{plaquette}, {:.2} s{inside}", self.seconds)
    }
}

/// Returns a warning when the number of trajectories rejected one after another has reached 5, 20, 80 and so on.
pub fn warning_of_rejections(records: &[MeasuredTrajectory]) -> Option<String> {
    const FIRST: usize = 5;
    const FACTOR: usize = 4;
    let rejected = || records.iter().rev().map(|record| &record.outcome).take_while(|outcome| !outcome.accepted);
    let count = rejected().count();
    if !std::iter::successors(Some(FIRST), |n| Some(FACTOR * n)).take_while(|n| *n <= count).any(|n| n == count) {
        return None;
    }
    let range = rejected().map(|outcome| outcome.delta).filter(|delta| delta.is_finite());
    let [low, high] = range.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
    let deltas = if low <= high { format!(", with ΔH from {low:.2} to {high:.2}") } else { String::new() };
    Some(format!(
        "the last {count} trajectories were rejected{deltas}: take more steps (trajectory.steps), or split light quarks by \
         another heavier quark (`ferrite forces` prints the force of each part)"
    ))
}

/// Means over the trajectories of a start of the program.
pub struct RunSummary {
    trajectories: usize,
    accepted: usize,
    /// Mean of exp(−ΔH), and its error.
    exp_minus_delta_h: [f64; 2],
    plaquette: [f64; 2],
    /// Mean and error of plaquettes (first) and rectangles (second) from forces minus those from links; `None` if not measured.
    identities: [Option<[f64; 2]>; 2],
    seconds: f64,
    /// Mean seconds per trajectory for files.
    files: f64,
    /// Mean fraction of the time outside kernels, and the number of trajectories in this mean.
    outside: Option<(f64, usize)>,
}

fn plaquettes(identities: &Identities) -> Option<LoopIdentity> {
    Some(identities.plaquette)
}
fn rectangles(identities: &Identities) -> Option<LoopIdentity> {
    identities.rectangle
}

/// Returns the means over the trajectories from number `metropolis_from` on, the first with a Metropolis step. If no trajectory had one,
/// returns the means over all trajectories.
pub fn summary(records: &[MeasuredTrajectory], metropolis_from: u32) -> RunSummary {
    // Only few trajectories are timed. The share of kernels does not depend on thermalisation, so all timed trajectories count.
    let outside: Vec<f64> = records.iter().filter_map(MeasuredTrajectory::outside_kernels).collect();
    let first = records.iter().position(|r| r.outcome.number >= metropolis_from);
    let records = &records[first.unwrap_or(0)..];
    let of = |values: &dyn Fn(&MeasuredTrajectory) -> Option<f64>| {
        let values: Vec<f64> = records.iter().filter_map(values).filter(|x| x.is_finite()).collect();
        let average = average(&values);
        [average.mean, average.error]
    };
    RunSummary {
        trajectories: records.len(),
        accepted: records.iter().filter(|r| r.outcome.accepted).count(),
        // Without a Metropolis step, trajectories are far from equilibrium and this mean has no meaning.
        exp_minus_delta_h: of(&|r| first.map(|_| (-r.outcome.delta).exp())),
        plaquette: of(&|r| r.measured.as_ref().map(|m| m.loops.plaquette.mean)),
        // The identities hold only in equilibrium, so their means also need trajectories with a Metropolis step.
        identities: [plaquettes, rectangles].map(|which| {
            let of = of(&|r| first.and(which(r.outcome.identities.as_ref()?)).map(|identity| identity.off()));
            Some(of).filter(|[mean, _]| mean.is_finite())
        }),
        // Trajectories whose kernels are timed take longer and are left out.
        seconds: match of(&|r| r.kernels.is_none().then_some(r.seconds))[0] {
            seconds if seconds.is_finite() => seconds,
            _ => of(&|r| Some(r.seconds))[0],
        },
        files: of(&|r| Some(r.files))[0],
        outside: (!outside.is_empty()).then(|| (average(&outside).mean, outside.len())),
    }
}

impl RunSummary {
    /// Returns the record of the means.
    pub fn record(&self) -> RhmcSummary {
        let [plaquette, rectangle] = self.identities.map(|off| off.map(MeanAndError::from));
        RhmcSummary {
            trajectories: self.trajectories,
            accepted: self.accepted,
            exp_minus_delta_h: self.exp_minus_delta_h.into(),
            plaquette: self.plaquette.into(),
            identities: IdentityMeans { plaquette, rectangle },
            seconds_per_trajectory: self.seconds,
            seconds_of_files_per_trajectory: self.files,
            outside_kernels: self.outside.map(|(share, _)| share),
        }
    }
    /// Returns the means as text for people.
    pub fn text(&self) -> String {
        let pair = |[mean, error]: [f64; 2], digits: usize| match (mean.is_finite(), error.is_finite()) {
            (true, true) => format!("{mean:.digits$} ± {error:.digits$}"),
            (true, false) => format!("{mean:.digits$}"),
            _ => "–".into(),
        };
        let outside = self.outside.map_or(String::new(), |(share, timed)| {
            let of = if timed == 1 { "one trajectory".into() } else { format!("{timed} trajectories") };
            format!("outside kernels      {:.1} % of the time of {of} with timed kernels\n", 100.0 * share)
        });
        let names = ["plaquette", "rectangle"];
        let identities: String = std::iter::zip(names, self.identities)
            .filter_map(|(name, off)| Some(format!("identity, {name}  {} (expected: 0)\n", pair(off?, 6))))
            .collect();
        format!(
            "accepted             {} of {}\n⟨exp(−ΔH)⟩           {}\nplaquette            {}\n{identities}time per \
             trajectory  {:.2} s, plus {:.2} s for files\n{outside}",
            self.accepted,
            self.trajectories,
            pair(self.exp_minus_delta_h, 4),
            pair(self.plaquette, 6),
            self.seconds,
            self.files
        )
    }
}
