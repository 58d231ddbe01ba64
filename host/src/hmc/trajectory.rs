//! Trajectories of hybrid Monte Carlo. A trajectory draws momenta and pseudofermions, integrates the equations of motion, and accepts the
//! result with the probability min(1, exp(−ΔH)).
use super::action::GaugeAction;
use super::force::{Force, GaugeActionForce};
use super::identities::Identities;
use super::integrator::{Dynamics, IntegratorLevel, Scheme, Unitarise, check_steps};
use super::links::{EvolvingLinks, StopSignal};
use super::momenta::{MomentumField, distance};
use super::monomial::Monomial;
use super::{HmcError, PlanError};
use crate::domain::Domain;
use crate::field::host::{HostColour, HostGauge};
use crate::field::{FieldShape, FullField, GaugeField};
use gpu_kernels::random::{Philox, purpose};
use gpu_kernels::{FermionKind, Precision};

/// Parts of the Hamiltonian H: gauge action, kinetic energy and fermion action.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energies {
    /// Gauge action.
    pub gauge: f64,
    /// Kinetic energy ½ Σ |P|² of the momenta P, minus its mean.
    pub kinetic: f64,
    /// Action of the fermion monomials.
    pub fermions: f64,
}

impl Energies {
    /// Returns the sum of all parts, which is H up to a constant.
    pub fn total(&self) -> f64 {
        self.gauge + self.kinetic + self.fermions
    }
    /// Returns H minus the H of `other`, computed part by part to limit cancellation.
    pub fn minus(&self, other: &Self) -> f64 {
        (self.gauge - other.gauge) + (self.kinetic - other.kinetic) + (self.fermions - other.fermions)
    }
}

/// Largest number of steps of a trajectory, on all levels together, that users may request.
pub const MOST_STEPS: usize = 1_000_000;
/// Largest number of integrator levels for quarks that users may request.
pub const MOST_LEVELS: usize = 16;

/// Plan of one level of the integrator.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelPlan {
    /// Whether the gauge force acts on this level.
    pub gauge: bool,
    /// Numbers, counted from 0, of the monomials whose forces act on this level.
    pub quarks: Vec<usize>,
    /// Integration scheme of the level.
    pub scheme: Scheme,
    /// Number of steps in each drift of the next outer level; for the outermost level, number of steps in the trajectory.
    pub steps: usize,
}

/// Plan of trajectories: action, integrator and seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Gauge action.
    pub gauge: GaugeAction,
    /// Whether the gauge force is computed in single precision.
    pub single_gauge_force: bool,
    /// Length τ of a trajectory, in units of the time of molecular dynamics.
    pub length: f64,
    /// Levels of the integrator, the outermost one first.
    pub levels: Vec<LevelPlan>,
    /// Frequency with which links are made unitary.
    pub unitarise: Unitarise,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Friction γ, with which part of the momenta is kept from one trajectory to the next; `None` if all momenta are drawn for each
    /// trajectory. Momenta at the start of a trajectory are e^{−γτ} times those at the end of the previous one plus (1 − e^{−2γτ})^{1/2}
    /// times new ones. A rejection reverses the momenta (Horowitz 1991; Francis et al. 2020 use it as a step of stochastic molecular
    /// dynamics).
    pub friction: Option<f64>,
    /// Number of the first trajectory with a Metropolis step; earlier trajectories are accepted unless ΔH is NaN.
    pub metropolis_from: u32,
}

impl Plan {
    /// Checks that trajectories can be made with this number of monomials.
    fn check(&self, groups: usize) -> Result<(), PlanError> {
        check_steps(self.levels.iter().map(|level| level.steps))?;
        if self.length == 0.0 || !self.length.is_finite() {
            return Err(PlanError::Length(self.length));
        }
        if let Some(friction) = self.friction.filter(|friction| friction.is_nan() || *friction <= 0.0) {
            return Err(PlanError::Friction(friction));
        }
        for (level, plan) in self.levels.iter().enumerate() {
            if let Some(&group) = plan.quarks.iter().find(|group| **group >= groups) {
                return Err(PlanError::NoSuchQuarks { level, group, groups });
            }
        }
        Ok(())
    }
}

/// Noise that replaces the random numbers of a trajectory.
#[derive(Clone, Copy, Debug)]
pub struct Noise<'a> {
    /// Momenta, as matrices of which the traceless anti-Hermitian parts are used.
    pub momenta: &'a HostGauge,
    /// Noise ξ of all pseudofermions in the order of the monomials; values on odd sites are ignored.
    pub pseudofermions: &'a [HostColour],
}

/// Outcome of a trajectory.
#[derive(Clone, Debug, PartialEq)]
pub struct TrajectoryOutcome {
    /// Number of the trajectory.
    pub number: u32,
    /// Parts of the Hamiltonian H at the start of the trajectory.
    pub start: Energies,
    /// Parts of the Hamiltonian H at the end of the trajectory.
    pub end: Energies,
    /// Change ΔH of the Hamiltonian; NaN if a solver gave up.
    pub delta: f64,
    /// Whether the end of the trajectory was accepted.
    pub accepted: bool,
    /// Numbers of solver iterations for each monomial: first those of heat bath and Metropolis step together, then those of molecular
    /// dynamics.
    pub iterations: Vec<[usize; 2]>,
    /// Distances of links and momenta from the start after the reversibility check, if it was made; see [`distance`].
    pub irreversibility: Option<[f64; 2]>,
    /// Identities at the start of the trajectory, if they were requested and no solver gave up.
    pub identities: Option<Identities>,
    /// Reason why a solver gave up, so that the trajectory was not completed. In this case ΔH is NaN and the trajectory is not accepted.
    pub failure: Option<String>,
}

/// Markov chain of gauge fields: plan, current links, momenta and monomials.
pub struct Chain {
    plan: Plan,
    links: EvolvingLinks,
    momenta: MomentumField,
    /// Whether the momenta are those at the end of a trajectory.
    has_momenta: bool,
    quarks: Vec<Box<dyn Monomial>>,
    gauge: GaugeActionForce,
    watch: Box<dyn FnMut(usize, usize)>,
    has_identities: bool,
}

impl Chain {
    /// *Collective.* Starts a chain from `links`. Links and momenta of the chain are in `precision`.
    ///
    /// # Errors
    /// Fails with [`PlanError`] if the plan is invalid, for example if it names monomials that do not exist, and on failures of the device.
    pub fn new(
        plan: Plan,
        links: &GaugeField,
        precision: Precision,
        quarks: Vec<Box<dyn Monomial>>,
    ) -> Result<Self, HmcError> {
        plan.check(quarks.len())?;
        let gauge = GaugeActionForce { action: plan.gauge, single: plan.single_gauge_force };
        let (momenta, links) = (MomentumField::zero(links.domain(), precision)?, EvolvingLinks::new(links, precision)?);
        let (has_momenta, has_identities) = (false, false);
        Ok(Chain { plan, links, momenta, has_momenta, quarks, gauge, watch: Box::new(|_, _| {}), has_identities })
    }
    /// Sets whether later trajectories measure [`Identities`] at their start. The measurement evaluates all forces once more, and its
    /// iterations count as those of the heat bath. It does not change the trajectories.
    pub fn measure_identities(&mut self, is_on: bool) {
        self.has_identities = is_on;
    }
    /// Sets the function that is called after each move of the outermost level, with the number of moves made and the total number of
    /// moves. The reversibility check does not call it.
    pub fn on_move(&mut self, watch: impl FnMut(usize, usize) + 'static) {
        self.watch = Box::new(watch);
    }
    /// Sets the signal that ends later trajectories with [`HmcError::Stopped`], at the next iteration of a solver or the next move of
    /// molecular dynamics. The chain is then restored to its state before the trajectory, so that the same number makes the same trajectory
    /// again.
    pub fn stop_when(&mut self, stop: StopSignal) {
        self.links.stop_when(stop);
    }
    /// Sets the signal that ends a trajectory during a multigrid setup, but at no other time.
    pub fn stop_setups_when(&mut self, stop: StopSignal) {
        self.links.stop_setups_when(stop);
    }
    /// Sets the momenta, which are traceless anti-Hermitian matrices. The next trajectory continues from them if [`Plan::friction`] keeps
    /// momenta.
    ///
    /// # Errors
    /// Momenta on another lattice, and failures of the device.
    pub fn set_momenta(&mut self, momenta: &HostGauge) -> Result<(), HmcError> {
        self.momenta = MomentumField::upload(&self.domain().clone(), momenta, self.precision())?;
        self.has_momenta = true;
        Ok(())
    }
    /// Returns the momenta from which the next trajectory continues; `None` if that trajectory draws all momenta.
    pub fn momenta(&self) -> Option<&MomentumField> {
        Some(&self.momenta).filter(|_| self.has_momenta && self.plan.friction.is_some())
    }
    /// Returns the domain that holds the chain.
    pub fn domain(&self) -> &Domain {
        self.momenta.domain()
    }
    /// Returns the precision of links and momenta.
    pub fn precision(&self) -> Precision {
        self.links.precision()
    }
    /// Returns the current links.
    pub fn links(&self) -> &EvolvingLinks {
        &self.links
    }
    /// Returns the monomials of the fermion action.
    pub fn quarks(&mut self) -> impl Iterator<Item = &mut (dyn Monomial + 'static)> {
        self.quarks.iter_mut().map(|quarks| &mut **quarks)
    }
    /// *Collective.* Makes trajectory `number`, with random numbers from the seed of the plan or with given noise. If `reverse` is set,
    /// also runs the trajectory backwards, to measure the distance from its start.
    ///
    /// # Errors
    /// Fails with [`PlanError::NoiseKind`] if noise is given for pseudofermions that are not colour vectors, with [`PlanError::Noise`] if
    /// the noise does not have one vector for each pseudofermion, with [`HmcError::Stopped`], for solvers that give up in the heat bath or
    /// in the action at the start, and on failures of the device.
    pub fn trajectory(
        &mut self,
        number: u32,
        noise: Option<Noise>,
        reverse: bool,
    ) -> Result<TrajectoryOutcome, HmcError> {
        let had_momenta = self.has_momenta;
        // A copy of the momenta is needed only if the trajectory may be stopped and friction keeps momenta of the previous trajectory.
        let may_stop = self.links.stop().may_come() || self.links.setup_stop().may_come();
        let is_needed = may_stop && had_momenta && self.plan.friction.is_some();
        let momenta = is_needed.then(|| self.momenta.copied()).transpose()?;
        let made = self.attempt(number, noise, reverse);
        if !made.as_ref().is_err_and(HmcError::is_stop) {
            return made;
        }
        if let Some(momenta) = momenta {
            self.momenta = momenta;
        }
        self.has_momenta = had_momenta;
        self.count();
        Err(HmcError::Stopped)
    }
    /// Makes trajectory `number` without restoring the momenta if it is stopped.
    fn attempt(&mut self, number: u32, noise: Option<Noise>, reverse: bool) -> Result<TrajectoryOutcome, HmcError> {
        let (seed, domain) = (self.plan.seed, self.domain().clone());
        self.count();
        match noise {
            None => {
                self.refresh_momenta(number)?;
                for quarks in &mut self.quarks {
                    quarks.draw(&self.links, seed, number)?;
                }
            }
            Some(Noise { momenta, pseudofermions }) => {
                let (found, expected) = (pseudofermions.len(), self.quarks.iter().map(|q| q.count()).sum());
                if found != expected {
                    return Err(PlanError::Noise { found, expected }.into());
                }
                // Given noise consists of colour vectors, so all pseudofermions must be colour vectors. This check comes before the chain
                // is changed.
                let is_other = |quarks: &dyn Monomial| quarks.count() > 0 && quarks.kind() != FermionKind::Staggered;
                if let Some(group) = self.quarks.iter().position(|quarks| is_other(&**quarks)) {
                    return Err(PlanError::NoiseKind { group }.into());
                }
                self.momenta = MomentumField::upload(&domain, momenta, self.precision())?;
                let mut given = pseudofermions;
                for quarks in self.quarks.iter_mut().filter(|quarks| quarks.count() > 0) {
                    let (own, rest) = given.split_at(quarks.count());
                    given = rest;
                    let mut noise = FullField::zero(&domain, FieldShape::colours(Precision::Double, own.len()))?;
                    noise.upload(own)?;
                    quarks.set_from(&self.links, &noise.even)?;
                }
            }
        }
        let start = self.energies()?;
        // The links have not moved yet, so this copy holds the links at the start of the trajectory.
        let before = self.links.own().copied()?;
        let made = self.follow((number, start), &before, reverse);
        if made.as_ref().is_err_and(HmcError::is_stop) {
            self.links.own_mut().copy_from(&before)?;
        }
        made
    }
    /// Completes a trajectory from its momenta and pseudofermions to the Metropolis step.
    fn follow(
        &mut self,
        (number, start): (u32, Energies),
        before: &GaugeField,
        reverse: bool,
    ) -> Result<TrajectoryOutcome, HmcError> {
        self.has_momenta = true;
        let is_kept = self.plan.friction.is_some();
        let first_momenta = if reverse || is_kept { Some(self.momenta.copied()?) } else { None };
        let identities = self.has_identities.then(|| self.identities()).transpose();
        let mut iterations = self.count();
        let identities = match identities {
            Ok(identities) => identities,
            Err(why) if why.solver().is_some() && !why.is_stop() => {
                // A solver that fails here would also fail for the first force of molecular dynamics, so the trajectory is rejected.
                return self.rejected((number, start), iterations, (before, first_momenta), why.to_string());
            }
            Err(why) => return Err(why),
        };
        let ended = self.dynamics(true);
        for (sum, more) in iterations.iter_mut().zip(self.count()) {
            sum[1] += more[0];
        }
        match ended {
            Ok(()) => {}
            Err(why) if why.solver().is_some() && !why.is_stop() => {
                return self.rejected((number, start), iterations, (before, first_momenta), why.to_string());
            }
            Err(why) => return Err(why),
        }
        let irreversibility = match &first_momenta {
            Some(first) if reverse => Some(self.reverse_trajectory(before, first)?),
            _ => None,
        };
        if self.plan.unitarise == Unitarise::Never {
            // The links are made unitary here, because rounding errors would add up over trajectories. H is computed afterwards, from the
            // links that are kept.
            self.momenta.move_links(self.links.own_mut(), 0.0, true)?;
        }
        let end = match self.energies() {
            Ok(end) => end,
            Err(why) if why.solver().is_some() && !why.is_stop() => {
                return self.rejected((number, start), iterations, (before, first_momenta), why.to_string());
            }
            Err(why) => return Err(why),
        };
        for (sum, more) in iterations.iter_mut().zip(self.count()) {
            sum[0] += more[0];
        }
        let delta = end.minus(&start);
        let drawn = Philox::new(self.plan.seed, purpose::METROPOLIS, number).uniform();
        // A trajectory whose ΔH is NaN is not accepted, even without a Metropolis step.
        let accepted = !delta.is_nan() && (number < self.plan.metropolis_from || drawn < (-delta).exp());
        if !accepted {
            self.turn_round(before, first_momenta)?;
        }
        let failure = None;
        Ok(TrajectoryOutcome { number, start, end, delta, accepted, iterations, irreversibility, identities, failure })
    }
    /// *Collective.* Measures the identities of the present links and pseudofermions.
    fn identities(&self) -> Result<Identities, HmcError> {
        let quarks = self.quarks.iter().map(|quarks| &**quarks as &dyn Force);
        let found = Identities::of(&self.links, std::iter::once(&self.gauge as &dyn Force).chain(quarks));
        // The measurement must not change molecular dynamics, so its solutions are dropped as initial guesses.
        self.quarks.iter().for_each(|quarks| quarks.forget_guesses());
        found
    }
    /// Resets the chain to the start of a trajectory that a solver ended, and returns the outcome.
    fn rejected(
        &mut self,
        (number, start): (u32, Energies),
        iterations: Vec<[usize; 2]>,
        (before, first_momenta): (&GaugeField, Option<MomentumField>),
        failure: String,
    ) -> Result<TrajectoryOutcome, HmcError> {
        self.turn_round(before, first_momenta)?;
        self.count();
        let nan = f64::NAN;
        let end = Energies { gauge: nan, kinetic: nan, fermions: nan };
        let (accepted, irreversibility, identities, failure) = (false, None, None, Some(failure));
        let delta = nan;
        Ok(TrajectoryOutcome { number, start, end, delta, accepted, iterations, irreversibility, identities, failure })
    }
    /// Resets the links to the start of a trajectory, and reverses the momenta of its start, if there are any.
    fn turn_round(&mut self, before: &GaugeField, first_momenta: Option<MomentumField>) -> Result<(), HmcError> {
        self.links.own_mut().copy_from(before)?;
        if let Some(first) = first_momenta {
            self.momenta = first;
            self.momenta.scale(-1.0)?;
        }
        Ok(())
    }
    /// Draws momenta: all of them, or the part that friction removes.
    fn refresh_momenta(&mut self, number: u32) -> Result<(), HmcError> {
        let friction = self.plan.friction.filter(|_| self.has_momenta);
        let Some(friction) = friction else { return Ok(self.momenta.draw(self.plan.seed, number)?) };
        let mut drawn = MomentumField::zero(self.domain(), self.precision())?;
        drawn.draw(self.plan.seed, number)?;
        let exponent = -friction * self.plan.length.abs();
        // `exp_m1` computes e^{2x} − 1 without cancellation for small x.
        Ok(self.momenta.add(exponent.exp(), (-(2.0 * exponent).exp_m1()).sqrt(), &drawn)?)
    }
    /// *Collective.* Computes all parts of the Hamiltonian H in double precision.
    pub fn energies(&self) -> Result<Energies, HmcError> {
        let mut energies = Energies {
            gauge: self.plan.gauge.value(&*self.links.thin(Precision::Double)?)?,
            kinetic: self.momenta.kinetic_energy()?,
            fermions: 0.0,
        };
        for quarks in &self.quarks {
            energies.fermions += quarks.action(&self.links)?;
        }
        Ok(energies)
    }
    fn dynamics(&mut self, watched: bool) -> Result<(), HmcError> {
        let Chain { plan, links, momenta, quarks, gauge, watch, .. } = self;
        let level = |level: &LevelPlan| IntegratorLevel {
            forces: level
                .gauge
                .then_some(&*gauge as &dyn Force)
                .into_iter()
                .chain(level.quarks.iter().map(|k| &*quarks[*k] as &dyn Force))
                .collect(),
            scheme: level.scheme,
            steps: level.steps,
        };
        let levels: Vec<_> = plan.levels.iter().map(level).collect();
        let dynamics = Dynamics { levels: &levels, unitarise: plan.unitarise };
        if watched {
            dynamics.run_watched(links, momenta, plan.length, watch)
        } else {
            dynamics.run(links, momenta, plan.length)
        }
    }
    /// Runs the trajectory backwards, measures the distance of the result from its start, and restores its end.
    fn reverse_trajectory(&mut self, before: &GaugeField, first: &MomentumField) -> Result<[f64; 2], HmcError> {
        let (end, last) = (self.links.own().copied()?, self.momenta.copied()?);
        self.momenta.scale(-1.0)?;
        self.dynamics(false)?;
        self.momenta.scale(-1.0)?;
        let off = distance([self.links.own(), before], [&self.momenta, first])?;
        self.links.own_mut().copy_from(&end)?;
        self.momenta.copy_from(&last)?;
        self.count();
        Ok(off)
    }
    /// Returns the iterations of each monomial since the last call.
    fn count(&self) -> Vec<[usize; 2]> {
        self.quarks.iter().map(|quarks| [quarks.take_iterations(), 0]).collect()
    }
}
