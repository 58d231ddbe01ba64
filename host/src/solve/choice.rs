//! BiCGstab, multigrid or CG: which of them a solve takes where it may choose, and when it changes from one to the other.
//!
//! Nobody knows how many iterations BiCGstab takes before it has done some. So it begins, and as soon as what it has left to do,
//! for all right-hand sides together, would take clearly longer than to set multigrid up and solve with it, multigrid goes on
//! from its iterate. All costs are counted in iterations, so that every process decides alike.
//!
//! CG on the normal equations does not depend on where the eigenvalues of M lie in the complex plane, only on its singular values, and
//! its residual never grows. It takes over where one of the two fails: see [`Fallback`].
use super::methods::Method;
use super::request::Request;
use crate::multigrid::MultigridParams;
use solvers::Iteration;

/// A change of the method of a solve.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodChange {
    /// Iterations done before.
    pub iterations: usize,
    /// The method from here on.
    pub method: &'static Method,
    /// Why.
    pub reason: String,
}

/// How long multigrid's setup with its usual parameters takes, in iterations of mixed-precision BiCGstab for one right-hand side:
/// docs/measurements/multigrid.md.
const SETUP: f64 = 2600.0;
/// How long it takes to make coarse operators of near-null vectors that are there.
const REBUILD: f64 = 300.0;
/// How long multigrid takes to solve for a right-hand side.
const SOLVE: f64 = 200.0;
/// Iterations of BiCGstab that are needed to foretell the others.
const BEGINNING: usize = 100;
/// By how much multigrid has to be faster: forecasts are not exact.
const MARGIN: f64 = 1.5;
/// Iterations of multigrid, which takes two or three dozen in general, after which it is doubted, and those ahead that are too many.
const MANY: usize = 150;
/// Iterations after which multigrid is given up where CG may take over, if it has not even halved the residual.
const EARLY: [usize; 2] = [30, 1000];

/// More iterations than anybody waits for.
const ENDLESS: f64 = 1e9;

/// How many iterations are ahead, from how the residual has fallen so far.
#[derive(Clone, Copy, Debug)]
struct Forecast {
    tol: f64,
    /// The first residual that was seen, and when.
    first: Option<(usize, f64)>,
    smallest: f64,
}

impl Forecast {
    fn new(tol: f64) -> Self {
        Forecast { tol, first: None, smallest: f64::INFINITY }
    }
    /// Iterations ahead; [`ENDLESS`] where the residual does not fall.
    fn ahead(&mut self, event: &Iteration<'_>) -> f64 {
        let (now, worst) = (event.iteration, event.worst());
        let (begin, first) = *self.first.get_or_insert((now, worst));
        self.smallest = self.smallest.min(worst);
        let per_iteration = (first / self.smallest).ln() / now.saturating_sub(begin).max(1) as f64;
        match (self.smallest / self.tol).ln() / per_iteration {
            ahead if ahead >= 0.0 => ahead.min(ENDLESS),
            _ if self.smallest <= self.tol => 0.0,
            _ => ENDLESS,
        }
    }
}

/// Watches a solve, and says when another method ought to go on.
#[derive(Clone, Debug)]
pub struct Adviser {
    forecast: Forecast,
    method: &'static Method,
    /// Right-hand sides of this solve and of those after it, this one included.
    sources: [usize; 2],
    /// Iterations that the setup is worth; infinitely many where there is no multigrid.
    setup: f64,
    budget: Option<Budget>,
    /// Whether multigrid ends early where it is of no use.
    is_eager: bool,
    advice: Option<Advice>,
}

/// Another method that ought to go on, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The method.
    pub method: &'static Method,
    /// Why the one before should end.
    pub reason: String,
}

/// The most iterations of a solve with all its methods, and how many are ahead of the one that is watched, counted from the beginning of
/// the solve.
#[derive(Clone, Copy, Debug)]
struct Budget {
    most: usize,
    forecast: Forecast,
}

/// Shares of the iterations allowed between which a method that does not come near the solution makes room for another; later on there
/// are too few left for that.
const SHARES: [f64; 2] = [0.5, 0.75];
/// Factor by which the forecast of a method exceeds the iterations that are left where it counts as hopeless. Residuals of BiCGstab may
/// stay where they are for long and fall quickly afterwards.
const HOPELESS: f64 = 2.0;

impl Budget {
    /// Why the method ought to end after `done` iterations of the whole solve.
    fn ends(&mut self, event: &Iteration<'_>, done: usize) -> Option<String> {
        let ahead = self.forecast.ahead(&Iteration { iteration: done, ..*event });
        let [from, to] = SHARES.map(|share| share * self.most as f64);
        let due = done >= BEGINNING && (from..=to).contains(&(done as f64));
        (due && ahead > HOPELESS * self.most.saturating_sub(done) as f64).then(|| {
            format!(
                "BiCGstab has reduced the residual to {:.1e} in {done} of {} iterations",
                self.forecast.smallest, self.most
            )
        })
    }
}

/// Fallback of a solve that may choose its method, where one fails: CG on the normal equations, once. A method that CG took over from
/// before it had given up comes back where CG does not converge either.
#[derive(Clone, Copy, Debug)]
pub struct Fallback {
    is_there: bool,
    is_taken: bool,
    /// Most iterations of CG, where BiCGstab comes after it.
    most: Option<usize>,
}

impl Fallback {
    /// Makes the fallback of a solve by `request`, whose method was to be chosen if `automatic`.
    pub fn new(request: &Request, automatic: bool) -> Self {
        Fallback { is_there: automatic && request.escalate, is_taken: false, most: None }
    }
    /// Whether CG may still take over.
    pub fn is_there(&self) -> bool {
        self.is_there
    }
    /// Whether CG has taken over.
    pub fn is_taken(&self) -> bool {
        self.is_taken
    }
    /// Does without CG, for which there is no memory.
    pub fn forgo(&mut self) {
        self.is_there = false;
    }
    /// Takes CG, with `left` iterations; `failed`: BiCGstab has given up and does not come back.
    pub fn take(&mut self, left: usize, failed: bool) -> &'static Method {
        *self = Fallback { is_there: false, is_taken: true, most: (!failed).then_some(left / 2) };
        Method::CG
    }
    /// Most iterations of `method`, of those that are `left`.
    pub fn most(&self, method: &Method, left: usize) -> usize {
        self.most.filter(|_| method == Method::CG).map_or(left, |most| most.min(left))
    }
    /// Whether BiCGstab comes after CG. It does so once.
    pub fn comes_back(&mut self, method: &Method) -> bool {
        method == Method::CG && self.most.take().is_some()
    }
}

impl Adviser {
    /// For BiCGstab, in a solve for `batch` right-hand sides to the residual `tol`; with `made`, there are near-null vectors already.
    pub fn of_bicgstab(request: &Request, tol: f64, batch: usize, made: bool) -> Self {
        let setup = if made { REBUILD } else { SETUP * relative_setup(&request.multigrid) };
        let sources = [batch, request.sources.max(batch)];
        Adviser {
            forecast: Forecast::new(tol),
            method: Method::BICGSTAB,
            sources,
            setup,
            budget: None,
            is_eager: false,
            advice: None,
        }
    }
    /// Makes the adviser of a BiCGstab solve without multigrid.
    pub fn without_multigrid(tol: f64) -> Self {
        let (forecast, method, setup) = (Forecast::new(tol), Method::BICGSTAB, f64::INFINITY);
        Adviser { forecast, method, sources: [1, 1], setup, budget: None, is_eager: false, advice: None }
    }
    /// Recommends CG, too, where BiCGstab will not be done after `most` iterations of the solve.
    pub fn within(self, most: usize) -> Self {
        let forecast = Forecast::new(self.forecast.tol);
        Adviser { budget: Some(Budget { most, forecast }), ..self }
    }
    /// For multigrid.
    pub fn of_multigrid(tol: f64) -> Self {
        let (forecast, method) = (Forecast::new(tol), Method::MULTIGRID);
        Adviser { forecast, method, sources: [1, 1], setup: 0.0, budget: None, is_eager: false, advice: None }
    }
    /// Ends multigrid early where it is of no use, if `eager`.
    pub fn eager(self, eager: bool) -> Self {
        Adviser { is_eager: eager, ..self }
    }
    /// Whether the solve had better stop here, with `before` iterations before those of this event, and go on in another way:
    /// [`advice`](Self::advice) has the reason then.
    pub fn stops(&mut self, event: &Iteration<'_>, before: usize) -> bool {
        let ahead = self.forecast.ahead(event);
        let done = event.iteration;
        let is_far = |[begin, most]: [usize; 2]| done >= begin && ahead > most as f64;
        let (reason, next) = if self.method == Method::MULTIGRID {
            let reason = (is_far([MANY, MANY]) || (self.is_eager && is_far(EARLY))).then(|| {
                format!("multigrid has reduced the residual to {:.1e} in {done} iterations", self.forecast.smallest)
            });
            (reason, Method::BICGSTAB)
        } else {
            let [batch, all] = self.sources.map(|n| n as f64);
            let gain = batch * (ahead - SOLVE) + (all - batch) * (done as f64 + ahead - SOLVE);
            let reason = (done >= BEGINNING && gain > MARGIN * self.setup).then(|| {
                let whole = match done as f64 + ahead {
                    many if many < 1e6 => format!("about {:.0}", 10.0 * (many / 10.0).round()),
                    _ => "more than a million".into(),
                };
                format!(
                    "BiCGstab takes {whole} iterations for each of {all} right-hand sides; multigrid takes as long as about {:.0} \
                     of them for the setup and {SOLVE} for a right-hand side",
                    self.setup
                )
            });
            (reason, Method::MULTIGRID)
        };
        let late = self.budget.as_mut().and_then(|budget| budget.ends(event, before + done));
        self.advice = match (reason, late) {
            (Some(reason), _) => Some(Advice { method: next, reason }),
            (None, late) => late.map(|reason| Advice { method: Method::CG, reason }),
        };
        self.advice.is_some()
    }
    /// Whether it watches this method.
    pub fn is_for(&self, method: &Method) -> bool {
        self.method == method
    }
    /// Why the solve was stopped.
    pub fn advice(&self) -> Option<&Advice> {
        self.advice.as_ref()
    }
}

/// How long a setup takes, relative to that with the usual parameters.
fn relative_setup(params: &MultigridParams) -> f64 {
    let usual = MultigridParams::default();
    let steps = |p: &MultigridParams| 0.1 + 0.08 * p.relaxations as f64 + 0.2 * p.improvements as f64;
    // Between what grows with the number of vectors and what grows with its square.
    (params.vectors as f64 / usual.vectors as f64).powf(5.0 / 3.0) * steps(params) / steps(&usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::{TimeBoundary, WilsonParams};
    use solvers::IterationKind;

    /// The iteration at which an adviser stops a solve whose residual falls by `factor` each time, down to 1e-10.
    fn stops(mut adviser: Adviser, factor: f64) -> Option<usize> {
        let mut residual = 1.0;
        for iteration in 0..10_000 {
            let event = Iteration { iteration, residuals: &[residual], kind: IterationKind::Iterate };
            if adviser.stops(&event, 0) {
                assert!(adviser.advice().is_some());
                return Some(iteration);
            }
            residual *= factor;
            if residual < 1e-10 {
                break;
            }
        }
        None
    }

    #[test]
    fn multigrid_takes_over_where_it_pays() {
        let request = Request::new(WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic));
        let of =
            |sources, batch, made| Adviser::of_bicgstab(&Request { sources, ..request.clone() }, 1e-10, batch, made);
        // Iterations that a solve takes, as factors.
        let taking = |iterations: f64| 1e-10f64.powf(1.0 / iterations);
        assert_eq!(stops(of(0, 1, false), taking(1500.0)), None, "a setup for one right-hand side is longer");
        assert_eq!(stops(of(0, 1, false), taking(8000.0)), Some(BEGINNING));
        assert_eq!(stops(of(12, 1, false), taking(1500.0)), Some(BEGINNING));
        assert_eq!(stops(of(12, 12, false), taking(1500.0)), Some(BEGINNING));
        assert_eq!(stops(of(12, 12, false), taking(400.0)), None);
        assert_eq!(stops(of(12, 12, true), taking(400.0)), Some(BEGINNING));
        assert_eq!(stops(of(0, 1, false), 1.0), Some(BEGINNING), "what does not converge");
    }

    /// Checks that CG goes on when half of the iterations are gone and hardly anything is done. A solve that is on its way is left alone, and so is
    /// one that has been going on for a short time only.
    #[test]
    fn a_hopeless_solve_ends_at_half_of_its_iterations() {
        let within = |most| Adviser::without_multigrid(1e-10).within(most);
        let taking = |iterations: f64| 1e-10f64.powf(1.0 / iterations);
        assert_eq!(stops(within(2000), 1.0), Some(1000));
        assert_eq!(stops(within(2000), 1.01), Some(1000), "a residual that grows");
        assert_eq!(stops(within(2000), taking(4000.0)), Some(1000));
        assert_eq!(stops(within(2000), taking(1900.0)), None);
        assert_eq!(stops(within(2000), taking(2300.0)), None, "it may become faster");
        assert_eq!(stops(within(150), 1.0), Some(BEGINNING));
        assert_eq!(stops(within(100), 1.0), None, "too few are left");
        assert_eq!(stops(Adviser::without_multigrid(1e-10), 1.0), None);
    }

    #[test]
    fn cg_takes_over_once() {
        let request = Request::new(WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic));
        assert!(!Fallback::new(&request, false).is_there());
        assert!(!Fallback::new(&Request { escalate: false, ..request.clone() }, true).is_there());
        // BiCGstab has not given up: it keeps half of the iterations.
        let mut fallback = Fallback::new(&request, true);
        assert!(fallback.is_there() && !fallback.comes_back(Method::BICGSTAB));
        assert_eq!(fallback.take(1000, false), Method::CG);
        assert!(!fallback.is_there());
        assert_eq!((fallback.most(Method::CG, 1000), fallback.most(Method::BICGSTAB, 1000)), (500, 1000));
        assert_eq!([fallback.comes_back(Method::CG), fallback.comes_back(Method::CG)], [true, false]);
        // It has.
        let mut fallback = Fallback::new(&request, true);
        fallback.take(1000, true);
        assert_eq!((fallback.most(Method::CG, 1000), fallback.comes_back(Method::CG)), (1000, false));
    }

    #[test]
    fn multigrid_that_does_not_converge_ends() {
        assert_eq!(stops(Adviser::of_multigrid(1e-10), 0.4), None);
        assert_eq!(stops(Adviser::of_multigrid(1e-10), 0.88), None);
        assert_eq!(stops(Adviser::of_multigrid(1e-10), 0.99), Some(MANY));
        // Where CG may take over, multigrid that does not move ends early, and what is only slow does not.
        let eager = || Adviser::of_multigrid(1e-10).eager(true);
        assert_eq!(
            [stops(eager(), 1.0), stops(eager(), 0.98), stops(eager(), 0.95)],
            [Some(EARLY[0]), Some(EARLY[0]), Some(MANY)]
        );
        assert_eq!(stops(eager(), 0.88), None);
    }
}
