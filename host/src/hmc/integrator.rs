//! Reversible and area-preserving integrators of molecular dynamics. All schemes are symmetric, which makes them reversible.
//!
//! A(h) evolves the links for the time h at fixed momenta, and B(h) the momenta at fixed links. A step of length h is
//!
//! | scheme | a step | error of ΔH |
//! |---|---|---|
//! | leapfrog | B(h/2) A(h) B(h/2) | h² |
//! | second order, minimum norm (Omelyan) | B(λh) A(h/2) B((1−2λ)h) A(h/2) B(λh) | h², some ten times less |
//! | second order, minimum norm, links first | A(λh) B(h/2) A((1−2λ)h) B(h/2) A(λh) | h² |
//! | fourth order, with force gradient | B(h/6) A(h/2) B̃(2h/3) A(h/2) B(h/6) | h⁴ |
//! | three gauge steps to one step of quarks (3G1F) | see below | h² |
//!
//! The scheme with three gauge steps is MILC's 3G1F. Its kicks are G, by the gauge action, and F, by all other parts of the action. Each
//! kind of kick follows a minimum-norm scheme with links first, F with the step h and G with the step h/3, on one time axis. In units of h,
//! the kicks G(h/6) are at (k + λ)/3 and (k + 1 − λ)/3 for k = 0, 1, 2, and the kicks F(h/2) are at λ and 1 − λ. There is no inner level:
//! the time between two kicks is one drift. A step of MILC's is h/2. MILC's parameters α = β = 0.1 correspond to λ = 1/4 − α/2 = 0.2.
//!
//! B̃(2h/3) uses the force at shifted links instead of the second derivative of the action. The links are shifted by h²/24 times the force
//! as momentum (Yin and Mawhinney 2011). Omelyan, Mryglod and Folk 2003 and Takaishi and de Forcrand 2006 describe the other schemes.
//!
//! Cheap and large forces belong on an inner level (Sexton and Weingarten 1992). A drift A of the outer level then consists of a whole
//! number of steps of the inner level.
use super::force::Force;
use super::links::EvolvingLinks;
use super::momenta::MomentumField;
use super::{HmcError, PlanError};

/// λ of the second-order scheme with the smallest error (Omelyan, Mryglod and Folk 2003).
pub const MINIMUM_NORM: f64 = 0.193_183_327_503_783_6;

/// Integration scheme of a level of the integrator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// Leapfrog: momenta by half a step, links, momenta by half a step.
    Leapfrog,
    /// Leapfrog with links first: links by half a step, momenta, links by half a step.
    LeapfrogLinksFirst,
    /// Second order with minimum norm; λ is [`MINIMUM_NORM`] by default.
    Omelyan {
        /// Parameter λ.
        lambda: f64,
    },
    /// Second order with minimum norm, links first.
    OmelyanLinksFirst {
        /// Parameter λ.
        lambda: f64,
    },
    /// Fourth order with force gradient.
    ForceGradient,
    /// Second order with minimum norm, links first, with three steps of the gauge action to one step of other forces: MILC's 3G1F, where λ
    /// is 0.2. One step corresponds to two steps of MILC.
    ThreeGaugeOneFermion {
        /// Parameter λ of both forces.
        lambda: f64,
    },
}

/// Forces that change momenta in a kick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forces {
    All,
    /// Force of the gauge action.
    Gauge,
    /// All other forces.
    Fermion,
}

/// One move of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    /// Change of the momenta for this time, with these forces.
    Kick(Forces, f64),
    /// Motion of the links, or of the inner level, for this time.
    Drift(f64),
    /// Change of the momenta for the time given first. The force is that at links moved by the second number times the force.
    GradientKick(f64, f64),
}

impl Scheme {
    /// Returns all schemes with their names in inputs; schemes with a parameter λ have the value `lambda`.
    pub const fn named(lambda: f64) -> [(&'static str, Scheme); 6] {
        [
            ("leapfrog", Scheme::Leapfrog),
            ("leapfrog-links-first", Scheme::LeapfrogLinksFirst),
            ("omelyan", Scheme::Omelyan { lambda }),
            ("omelyan-links-first", Scheme::OmelyanLinksFirst { lambda }),
            ("force-gradient", Scheme::ForceGradient),
            ("3g1f", Scheme::ThreeGaugeOneFermion { lambda }),
        ]
    }
    /// Returns the moves of `steps` steps that make up the time `tau`; consecutive moves of one kind are joined.
    fn moves(self, tau: f64, steps: usize) -> Vec<Move> {
        let h = tau / steps as f64;
        let kick = |time: f64| Move::Kick(Forces::All, time);
        let one = match self {
            Scheme::Leapfrog => vec![kick(0.5 * h), Move::Drift(h), kick(0.5 * h)],
            Scheme::LeapfrogLinksFirst => vec![Move::Drift(0.5 * h), kick(h), Move::Drift(0.5 * h)],
            Scheme::Omelyan { lambda } => vec![
                kick(lambda * h),
                Move::Drift(0.5 * h),
                kick((1.0 - 2.0 * lambda) * h),
                Move::Drift(0.5 * h),
                kick(lambda * h),
            ],
            Scheme::OmelyanLinksFirst { lambda } => vec![
                Move::Drift(lambda * h),
                kick(0.5 * h),
                Move::Drift((1.0 - 2.0 * lambda) * h),
                kick(0.5 * h),
                Move::Drift(lambda * h),
            ],
            Scheme::ForceGradient => vec![
                kick(h / 6.0),
                Move::Drift(0.5 * h),
                Move::GradientKick(2.0 * h / 3.0, h * h / 24.0),
                Move::Drift(0.5 * h),
                kick(h / 6.0),
            ],
            Scheme::ThreeGaugeOneFermion { lambda } => interleaved(lambda, h),
        };
        let mut moves: Vec<Move> = Vec::new();
        for next in (0..steps).flat_map(|_| one.iter().copied()) {
            match (moves.last_mut(), next) {
                (Some(Move::Kick(before, sum)), Move::Kick(forces, time)) if *before == forces => *sum += time,
                (Some(Move::Drift(sum)), Move::Drift(time)) => *sum += time,
                _ => moves.push(next),
            }
        }
        moves
    }
    /// Returns the longest time of each kind of move if `steps` steps make up the time `tau`.
    pub fn longest_moves(self, tau: f64, steps: usize) -> LongestMoves {
        let mut longest = LongestMoves::default();
        let longer = |time: &mut f64, other: f64| *time = if other.abs() > time.abs() { other } else { *time };
        for one in self.moves(tau, steps) {
            let (forces, time) = match one {
                Move::Drift(time) => {
                    longer(&mut longest.drift, time);
                    continue;
                }
                Move::Kick(forces, time) => (forces, time),
                Move::GradientKick(time, _) => (Forces::All, time),
            };
            if forces != Forces::Fermion {
                longer(&mut longest.gauge, time);
            }
            if forces != Forces::Gauge {
                longer(&mut longest.others, time);
            }
        }
        longest
    }
    /// Returns the number of drifts in `steps` steps. A drift moves the links or runs the inner level.
    pub fn drifts(self, steps: usize) -> usize {
        self.moves(1.0, steps).iter().filter(|one| matches!(one, Move::Drift(_))).count()
    }
    /// Returns the number of force evaluations in `steps` steps. For a scheme that evaluates the gauge force more often than other forces,
    /// the number is that of the other forces.
    pub fn evaluations(self, steps: usize) -> usize {
        let count = |one: &Move| match one {
            Move::Kick(Forces::All | Forces::Fermion, _) => 1,
            Move::Kick(Forces::Gauge, _) | Move::Drift(_) => 0,
            Move::GradientKick(..) => 2,
        };
        self.moves(1.0, steps).iter().map(count).sum()
    }
}

/// Longest time of each kind of move on a level of the integrator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LongestMoves {
    /// Longest time of a single change of the momenta by the gauge force, if this force acts on the level.
    pub gauge: f64,
    /// Longest time of a single change of the momenta by forces other than the gauge force.
    pub others: f64,
    /// Longest time of a single motion of the links or, on an outer level, of a single run of the next inner level.
    pub drift: f64,
}

/// Returns the moves of a step of [`Scheme::ThreeGaugeOneFermion`].
fn interleaved(lambda: f64, h: f64) -> Vec<Move> {
    let of_gauge = (0..3).flat_map(|k| [lambda, 1.0 - lambda].map(|part| (Forces::Gauge, (f64::from(k) + part) / 3.0)));
    let mut kicks: Vec<(Forces, f64)> =
        of_gauge.chain([lambda, 1.0 - lambda].map(|at| (Forces::Fermion, at))).collect();
    kicks.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let (mut moves, mut now) = (Vec::new(), 0.0);
    for (forces, at) in kicks {
        let time = if forces == Forces::Gauge { h / 6.0 } else { 0.5 * h };
        moves.extend([Move::Drift((at - now) * h), Move::Kick(forces, time)]);
        now = at;
    }
    moves.push(Move::Drift((1.0 - now) * h));
    moves
}

/// Level of an integrator. Its forces alternate with runs of the next inner level or, on the innermost level, with motion of the links.
pub struct IntegratorLevel<'a> {
    /// Forces that act on the level.
    pub forces: Vec<&'a dyn Force>,
    /// Integration scheme of the level.
    pub scheme: Scheme,
    /// Number of steps in each drift of the next outer level; for the outermost level, number of steps in the trajectory.
    pub steps: usize,
}

/// Frequency with which links are made unitary: after every motion of the links, or once after a trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unitarise {
    /// After every motion of the links.
    #[default]
    Always,
    /// Only after a trajectory.
    Never,
}

/// Molecular dynamics of links and momenta, which must have the same precision.
pub struct Dynamics<'a> {
    /// Levels of the integrator, the outermost one first.
    pub levels: &'a [IntegratorLevel<'a>],
    /// Frequency with which links are made unitary.
    pub unitarise: Unitarise,
}

/// Checks that all levels take steps.
pub(super) fn check_steps(steps: impl IntoIterator<Item = usize>) -> Result<(), PlanError> {
    match steps.into_iter().position(|steps| steps == 0) {
        Some(level) => Err(PlanError::NoSteps { level }),
        None => Ok(()),
    }
}

impl Dynamics<'_> {
    /// *Collective.* Integrates the equations of motion for the time `tau`.
    ///
    /// # Errors
    /// Fails with [`PlanError::NoSteps`], with [`HmcError::Stopped`] if the [`StopSignal`](super::links::StopSignal) of the links requests
    /// it, for momenta in another precision than the links, and on failures of forces or of the device.
    pub fn run(&self, links: &mut EvolvingLinks, momenta: &mut MomentumField, tau: f64) -> Result<(), HmcError> {
        self.run_watched(links, momenta, tau, &mut |_, _| {})
    }
    /// *Collective.* Integrates the equations of motion for the time `tau`. After each move of the outermost level, calls `watch` with the
    /// number of moves that this level has made and with their total number.
    pub fn run_watched(
        &self,
        links: &mut EvolvingLinks,
        momenta: &mut MomentumField,
        tau: f64,
        watch: &mut dyn FnMut(usize, usize),
    ) -> Result<(), HmcError> {
        check_steps(self.levels.iter().map(|level| level.steps))?;
        self.level(0, links, momenta, tau, watch)
    }
    fn level(
        &self,
        number: usize,
        links: &mut EvolvingLinks,
        momenta: &mut MomentumField,
        tau: f64,
        watch: &mut dyn FnMut(usize, usize),
    ) -> Result<(), HmcError> {
        let Some(level) = self.levels.get(number) else {
            momenta.move_links(links.own_mut(), tau, self.unitarise == Unitarise::Always)?;
            return Ok(());
        };
        let kick = |links: &EvolvingLinks, momenta: &mut MomentumField, forces: Forces, time: f64| {
            let takes_part = |force: &&&dyn Force| match forces {
                Forces::All => true,
                Forces::Gauge => force.is_of_gauge_action(),
                Forces::Fermion => !force.is_of_gauge_action(),
            };
            level.forces.iter().filter(takes_part).try_for_each(|force| force.kick(links, time, momenta))
        };
        let moves = level.scheme.moves(tau, level.steps);
        for (done, next) in moves.iter().enumerate() {
            if links.stop().is_asked() {
                return Err(HmcError::Stopped);
            }
            let moved = match *next {
                Move::Kick(forces, time) => kick(links, momenta, forces, time),
                Move::Drift(time) => self.level(number + 1, links, momenta, time, &mut |_, _| {}),
                Move::GradientKick(time, shift) => {
                    let mut aside = MomentumField::zero(momenta.domain(), momenta.precision())?;
                    kick(links, &mut aside, Forces::All, shift)?;
                    let here = links.own().copied()?;
                    aside.move_links(links.own_mut(), 1.0, false)?;
                    kick(links, momenta, Forces::All, time)?;
                    Ok(links.own_mut().copy_from(&here)?)
                }
            };
            moved.map_err(|why| match (number, why) {
                // Only the outermost level adds the number of the move to the error: moves of inner levels are parts of its moves.
                (0, why @ HmcError::Solver { .. }) => {
                    HmcError::Move { number: done + 1, of: moves.len(), why: Box::new(why) }
                }
                (_, why) => why,
            })?;
            watch(done + 1, moves.len());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMES: [(Scheme, i32); 6] = [
        (Scheme::Leapfrog, 2),
        (Scheme::LeapfrogLinksFirst, 2),
        (Scheme::Omelyan { lambda: MINIMUM_NORM }, 2),
        (Scheme::OmelyanLinksFirst { lambda: 0.2 }, 2),
        (Scheme::ForceGradient, 4),
        (Scheme::ThreeGaugeOneFermion { lambda: 0.2 }, 2),
    ];

    /// A pendulum, H = p²/2 − cos q, of which 0.7 cos q are its gauge action.
    fn pendulum(scheme: Scheme, steps: usize, mut q: f64, mut p: f64, tau: f64) -> [f64; 2] {
        for next in scheme.moves(tau, steps) {
            match next {
                Move::Kick(forces, time) => {
                    let part = match forces {
                        Forces::All => 1.0,
                        Forces::Gauge => 0.7,
                        Forces::Fermion => 0.3,
                    };
                    p -= part * time * q.sin();
                }
                Move::Drift(time) => q += time * p,
                Move::GradientKick(time, shift) => p -= time * (q - shift * q.sin()).sin(),
            }
        }
        [q, p]
    }

    #[test]
    fn errors_fall_with_their_power() {
        let energy = |[q, p]: [f64; 2]| 0.5 * p * p - q.cos();
        for (scheme, order) in SCHEMES {
            let error = |steps| (energy(pendulum(scheme, steps, 1.0, 0.5, 1.7)) - energy([1.0, 0.5])).abs();
            let power = (error(16) / error(32)).log2();
            assert!((power - f64::from(order)).abs() < 0.1, "{scheme:?}: {power}");
        }
    }

    #[test]
    fn they_run_backwards() {
        for (scheme, _) in SCHEMES {
            let [q, p] = pendulum(scheme, 7, 1.0, 0.5, 1.7);
            let [q, p] = pendulum(scheme, 7, q, -p, 1.7);
            assert!((q - 1.0).abs() < 1e-14 && (p + 0.5).abs() < 1e-14, "{scheme:?}: {q} {p}");
        }
    }

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(Scheme::Leapfrog.evaluations(5), 6);
        assert_eq!(Scheme::LeapfrogLinksFirst.evaluations(5), 5);
        assert_eq!(Scheme::Omelyan { lambda: 0.2 }.evaluations(5), 11);
        assert_eq!(Scheme::ForceGradient.evaluations(5), 16);
        for (scheme, _) in SCHEMES {
            let total = |kick: bool| -> f64 {
                let time = |one: &Move| match (one, kick) {
                    // Both parts of forces that are taken apart are taken for the whole time.
                    (Move::Kick(Forces::Gauge | Forces::Fermion, time), true) => 0.5 * time,
                    (Move::Kick(Forces::All, time) | Move::GradientKick(time, _), true)
                    | (Move::Drift(time), false) => *time,
                    _ => 0.0,
                };
                scheme.moves(1.3, 4).iter().map(time).sum()
            };
            assert!((total(true) - 1.3).abs() < 1e-14 && (total(false) - 1.3).abs() < 1e-14, "{scheme:?}");
        }
    }

    /// Half kicks of neighbouring steps are one.
    #[test]
    fn longest_moves_are_those_of_whole_steps() {
        let of = |scheme: Scheme, steps| scheme.longest_moves(2.0, steps);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} {b}");
        let leapfrog = of(Scheme::Leapfrog, 4);
        for time in [leapfrog.gauge, leapfrog.others, leapfrog.drift] {
            near(time, 0.5);
        }
        near(of(Scheme::Leapfrog, 1).gauge, 1.0);
        let omelyan = of(Scheme::Omelyan { lambda: 0.2 }, 4);
        near(omelyan.others, 0.3);
        near(omelyan.drift, 0.25);
        let milc = of(Scheme::ThreeGaugeOneFermion { lambda: 0.2 }, 1);
        near(milc.gauge, 1.0 / 3.0);
        near(milc.others, 1.0);
        near(of(Scheme::ForceGradient, 2).others, 2.0 / 3.0);
    }

    /// Times of kicks as MILC writes them, for α = β = 0.1, in two of its steps.
    #[test]
    fn three_gauge_steps_are_where_milc_has_them() {
        use Forces::{Fermion, Gauge};
        let (mut now, mut kicks) = (0.0, Vec::new());
        for next in (Scheme::ThreeGaugeOneFermion { lambda: 0.2 }).moves(2.0, 1) {
            match next {
                Move::Drift(time) => now += time,
                Move::Kick(forces, time) => kicks.push((forces, now, time)),
                Move::GradientKick(..) => unreachable!("this scheme has none"),
            }
        }
        let third = 1.0 / 3.0;
        let expected = [
            (Gauge, 2.0 / 15.0, third),
            (Fermion, 0.4, 1.0),
            (Gauge, 8.0 / 15.0, third),
            (Gauge, 0.8, third),
            (Gauge, 1.2, third),
            (Gauge, 22.0 / 15.0, third),
            (Fermion, 1.6, 1.0),
            (Gauge, 28.0 / 15.0, third),
        ];
        assert!((now - 2.0).abs() < 1e-15 && kicks.len() == expected.len());
        for ((forces, at, time), (expected, when, how_long)) in kicks.into_iter().zip(expected) {
            assert!(forces == expected && (at - when).abs() < 1e-15 && (time - how_long).abs() < 1e-15, "{at} {time}");
        }
        assert_eq!((Scheme::ThreeGaugeOneFermion { lambda: 0.2 }).evaluations(5), 10);
    }
}
