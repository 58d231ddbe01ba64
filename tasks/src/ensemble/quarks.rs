//! Quarks of an ensemble: rational functions for the spectrum of its links, and the parts of the action that they make.
use crate::Failure;
use crate::failure::FailureKind;
use ferrite::domain::Domain;
use ferrite::hmc::HmcError;
use ferrite::hmc::fermions::{RationalFunctions, ShiftedSolver};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::quarks::QuarkGroup;
use ferrite::hmc::trajectory::{Chain, Energies};
use ferrite::rational;
use ferrite_records::ensemble::EnergyParts;
use solvers::SolveError;

/// Reason why the fermion action of an ensemble cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EnsembleError {
    /// Error of a solver, of the device, or of messages.
    #[error(transparent)]
    Hmc(#[from] HmcError),
    /// A rational function does not exist.
    #[error("{quarks}: {why}{}", advice(.why))]
    Functions {
        /// Name of the quarks.
        quarks: String,
        /// Error of the rational approximation.
        why: rational::Error,
    },
}

/// Returns advice for an error of the rational approximation.
fn advice(why: &rational::Error) -> &'static str {
    match why {
        rational::Error::NotStieltjes { .. } | rational::Error::AlreadyRational { .. } => {
            "; try a larger number of pseudofermions"
        }
        _ => "",
    }
}

/// Quarks of an ensemble, with the solvers and the seed that all of them use.
#[derive(Clone, Copy, Debug)]
pub struct EnsembleQuarks<'a> {
    /// Quark groups, one for each table `[[fermion]]`.
    pub groups: &'a [QuarkGroup],
    /// Solvers of molecular dynamics (first), and of heat bath and Metropolis step (second).
    pub solvers: &'a [ShiftedSolver; 2],
    /// Seed of the vectors from which spectral bounds are computed.
    pub seed: u64,
}

/// Parts of the fermion action, in the order in which records list them.
pub type Parts = Vec<Box<dyn Monomial>>;

/// Spectral bounds of a quark group with rational functions.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectrumSeen {
    /// Index of the quark group.
    pub group: usize,
    /// Index, among all parts of the fermion action, of the first part of the group, which has the rational functions.
    pub part: usize,
    /// Lower and upper spectral bound; the lower bound of staggered quarks is 0.
    pub bounds: [f64; 2],
    /// Old and new interval of the rational functions, if the spectrum has left the old one. The new interval contains the old one and the
    /// bounds.
    pub moved: Option<[[f64; 2]; 2]>,
}

impl EnsembleQuarks<'_> {
    /// *Collective.* Returns the interval of the rational functions of each quark group on the links `links`; `[0, 0]` for groups without
    /// rational functions.
    ///
    /// # Errors
    /// Solvers that give up, and failures of the device.
    pub fn intervals(&self, links: &EvolvingLinks) -> Result<Vec<[f64; 2]>, HmcError> {
        let interval = |group: &QuarkGroup| {
            let bounds = group.bounds(links, &self.solvers[0], self.seed)?;
            Ok(bounds.map_or([0.0; 2], |bounds| group.interval(bounds)))
        };
        self.groups.iter().map(interval).collect()
    }
    /// Returns the rational functions of a quark group for an interval; `None` if the group needs none.
    ///
    /// # Errors
    /// Those of the approximation.
    pub fn functions(&self, group: usize, interval: [f64; 2]) -> Result<Option<RationalFunctions>, EnsembleError> {
        let group = &self.groups[group];
        group.functions(interval).map_err(|why| EnsembleError::Functions { quarks: group.name.clone(), why })
    }
    /// Returns the parts of the fermion action with the rational functions of each group. If a function has more poles than its group has
    /// tolerances, the last tolerance is repeated; surplus tolerances are ignored.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn parts(&self, domain: &Domain, functions: Vec<Option<RationalFunctions>>) -> Result<Parts, HmcError> {
        let (mut parts, mut first) = (Vec::new(), 0);
        for (group, functions) in self.groups.iter().zip(functions) {
            parts.extend(group.parts(&group.name, domain, &group.solvers(self.solvers), functions, first)?);
            first += group.pseudofermions() as u32;
        }
        Ok(parts)
    }
    /// *Collective.* Returns the parts of the fermion action for the links `links`, and the interval of the rational functions of each
    /// quark group.
    ///
    /// # Errors
    /// Solvers that give up, functions that do not exist, and failures of the device.
    pub fn parts_for(&self, links: &EvolvingLinks) -> Result<(Parts, Vec<[f64; 2]>), EnsembleError> {
        let intervals = self.intervals(links)?;
        let functions = intervals.iter().enumerate().map(|(group, interval)| self.functions(group, *interval));
        let functions = functions.collect::<Result<Vec<_>, _>>()?;
        Ok((self.parts(links.own().domain(), functions)?, intervals))
    }
    /// *Collective.* Computes the spectral bounds of all quark groups on the current links, and compares them with the intervals of the
    /// rational functions.
    ///
    /// # Errors
    /// Solvers that give up, and failures of the device.
    pub fn look_at_spectrum(
        &self,
        links: &EvolvingLinks,
        intervals: &[[f64; 2]],
    ) -> Result<Vec<SpectrumSeen>, HmcError> {
        let (mut all, mut part) = (Vec::new(), 0);
        for (number, (group, before)) in self.groups.iter().zip(intervals).enumerate() {
            if let Some(bounds) = group.bounds(links, &self.solvers[0], self.seed)? {
                let is_inside = bounds[0] >= before[0] && bounds[1] <= before[1];
                let moved = (!is_inside).then(|| {
                    let [low, high] = group.interval(bounds);
                    [*before, [low.min(before[0]), high.max(before[1])]]
                });
                all.push(SpectrumSeen { group: number, part, bounds, moved });
            }
            part += group.levels().len();
        }
        Ok(all)
    }
    /// Replaces the rational functions of a part of a chain if the spectrum has left their interval, and updates the interval.
    ///
    /// # Errors
    /// Functions that do not exist.
    pub fn follow(
        &self,
        chain: &mut Chain,
        intervals: &mut [[f64; 2]],
        seen: &SpectrumSeen,
    ) -> Result<(), EnsembleError> {
        let Some([_, interval]) = seen.moved else { return Ok(()) };
        intervals[seen.group] = interval;
        let functions = self.functions(seen.group, interval)?;
        if let (Some(functions), Some(part)) = (functions, chain.quarks().nth(seen.part)) {
            part.set_functions(functions);
        }
        Ok(())
    }
}

/// Converts the error that the fermion action cannot be made to a failure. The error occurs on all processes.
pub fn without_action(error: EnsembleError) -> Failure {
    match error {
        EnsembleError::Hmc(error) => failed(error),
        why @ EnsembleError::Functions { .. } => Failure::refused(why).shared(),
    }
}

/// Converts an error of a chain to a failure. A solver fails on all processes at once, because its stopping criterion uses sums over all of
/// them. A failure of the device or of messages belongs to this process alone.
pub fn failed(error: HmcError) -> Failure {
    match error.solver() {
        Some(why) => {
            let advice = match why {
                SolveError::NotANumber { .. } => "; the steps of the integrator may be too long: use more steps",
                _ => "",
            };
            Failure::failed(format!("{error}{advice}")).of_kind(FailureKind::Solver).shared()
        }
        None => Failure::failed(error).of_kind(FailureKind::Device),
    }
}

/// Returns the record of the parts of the Hamiltonian H.
pub fn energies(energies: &Energies) -> EnergyParts {
    EnergyParts { gauge: energies.gauge, kinetic: energies.kinetic, fermions: energies.fermions }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite::backend::BackendError;

    /// Checks that a failure of one process's device is its own: others, which may have no failure, must be ended.
    #[test]
    fn a_device_fails_alone() {
        let of = |why| failed(HmcError::Solver { quarks: "light".into(), why: Box::new(why) });
        let device = of(SolveError::Backend(BackendError::NoDriver("it went away".into()).into()));
        assert!(!device.is_shared() && device.message.contains("the solver for light"), "{}", device.message);
        assert!(of(SolveError::NotANumber { iteration: 3, rhs: 0, info: Box::default() }).is_shared());
    }
}
