//! Choice between BiCGstab, multigrid and CG if the request leaves the method open, and of the time to change from one method to another.
//!
//! The number of iterations of BiCGstab cannot be predicted before some have been done. Therefore BiCGstab begins. Multigrid continues from
//! its iterate as soon as BiCGstab's remaining work for all right-hand sides is clearly larger than that of a multigrid setup and its
//! solves. For large batches, BiCGstab first solves for one right-hand side alone until this is decided. All costs are counted in
//! iterations, so that every process makes the same decision.
//!
//! CG on the normal equations depends only on the singular values of M, not on the positions of its eigenvalues in the complex plane, and
//! its residual never grows. On small lattices with light quarks, it needs fewer iterations than BiCGstab. If BiCGstab needs many, CG
//! therefore gets a trial before a multigrid setup: see [`CgTrial`]. CG also takes over if BiCGstab or multigrid fails: see [`Fallback`].
use super::methods::Method;
use super::request::Request;
use crate::multigrid::MultigridParams;
use crate::operators::Operator;
use gpu_kernels::storage::PADDING;
use gpu_kernels::{LinkStorage, Precision};
use solvers::Iteration;

/// Change of the method during a solve.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodChange {
    /// Number of iterations before the change.
    pub iterations: usize,
    /// Method after the change.
    pub method: &'static Method,
    /// Reason for the change.
    pub reason: String,
}

/// Costs of multigrid with default parameters on a kind of device, in iterations of BiCGstab for one right-hand side in the formats of
/// [`OpenFormats`](super::OpenFormats): see docs/measurements/defaults.md for what was measured and what is estimated.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// Precision and storage of these iterations.
    formats: (Precision, LinkStorage),
    /// Cost of a setup.
    setup: f64,
    /// Cost of making coarse operators from existing near-null vectors.
    rebuild: f64,
    /// Costs of a solve for one right-hand side: alone, and in a large batch.
    solve: [f64; 2],
}
const GPU_COSTS: Costs =
    Costs { formats: (Precision::Half, LinkStorage::of(12)), setup: 2400.0, rebuild: 300.0, solve: [165.0, 77.0] };
const CPU_COSTS: Costs =
    Costs { formats: (Precision::Single, LinkStorage::of(12)), setup: 5500.0, rebuild: 3300.0, solve: [200.0, 120.0] };

impl Costs {
    /// Returns the costs of a setup, of coarse operators and of a solve for one right-hand side, in iterations of a request's own formats
    /// for `batch` right-hand sides together.
    fn of(request: &Request, is_gpu: bool, batch: usize) -> [f64; 3] {
        let costs = if is_gpu { GPU_COSTS } else { CPU_COSTS };
        let per_rhs = |[one, many]: [f64; 2]| many + (one - many) / batch as f64;
        let own = iteration_bytes(&request.operator, (request.precision, request.reconstruction));
        let unit = iteration_bytes(&request.operator, costs.formats) / (own * per_rhs(PER_RHS));
        [costs.setup, costs.rebuild, per_rhs(costs.solve)].map(|cost| unit * cost)
    }
}

/// Times of an iteration of BiCGstab per right-hand side: alone, and in a large batch, where instructions limit the kernels.
const PER_RHS: [f64; 2] = [1.0, 0.86];

/// Returns the bytes that an iteration of BiCGstab moves for a site. Each of the four hopping terms reads links and the input, and every
/// second one also reads another vector; each writes its output. Two diagonal terms and ten vectors of linear algebra are added.
fn iteration_bytes(operator: &Operator, (precision, storage): (Precision, LinkStorage)) -> f64 {
    let vector = operator.kind().site_bytes(precision) as f64;
    let diagonal = operator.diagonal_bytes(precision, PADDING) as f64 / PADDING as f64;
    4.0 * (2.5 * vector + storage.read_bytes(precision) as f64) + 2.0 * diagonal + 10.0 * vector
}

/// Number of iterations of BiCGstab that are needed to predict the remaining ones.
const BEGINNING: usize = 60;
/// Ratio of the forecast gain of multigrid to its setup below which BiCGstab for one right-hand side settles that BiCGstab is better.
const CLEAR: f64 = 0.6;
/// Forecast gain from multigrid, in setups, above which a solve for a single right-hand side continues with multigrid. Forecasts on a
/// plateau are about twice too high: docs/measurements/defaults.md.
const ALONE: f64 = 2.5;
/// Number of iterations of BiCGstab, done and forecast, above which CG gets a trial.
const LONG: f64 = 500.0;
/// Maximum number of iterations of a trial of BiCGstab for the first right-hand side of a batch.
const TRIAL: usize = 120;
/// Number of iterations of CG that are needed for a first forecast. Later forecasts are higher if there are small singular values.
const CG_BEGINNING: usize = 50;
/// Number of iterations of CG for the first right-hand side of a batch that decide for all of them.
const CG_TRIAL: usize = 150;
/// Ratio of the forecast iterations of CG to those of the other method above which the other method takes over.
const CG_WORTH: f64 = 0.8;
/// Number of multigrid iterations after which a forecast of more than this number of further iterations ends the method. Multigrid usually
/// takes two or three dozen iterations.
const MANY: usize = 150;
/// Number of multigrid iterations, and forecast of further iterations, at which multigrid ends early if CG may take over. The residual then
/// has not even halved.
const EARLY: [usize; 2] = [30, 1000];

/// Number of iterations that stands for a solve without end.
const ENDLESS: f64 = 1e9;

/// Largest ratio of a forecast to the forecast from the mean rate since the first iteration.
const PLATEAU: f64 = 4.0;

/// Forecast of the iterations that a solve needs, from its residuals so far: docs/measurements/defaults.md.
#[derive(Clone, Debug)]
struct IterationForecast {
    tol: f64,
    /// Number of the first iteration.
    begin: usize,
    /// Smallest residual up to each iteration since the first.
    smallest: Vec<f64>,
}

impl IterationForecast {
    fn new(tol: f64) -> Self {
        IterationForecast { tol, begin: 0, smallest: Vec::new() }
    }
    /// Returns the smallest residual so far.
    fn smallest(&self) -> f64 {
        self.smallest.last().copied().unwrap_or(f64::INFINITY)
    }
    /// Returns the number of remaining iterations, or [`ENDLESS`] if the residual does not fall.
    ///
    /// Residuals fall fast at first, until only eigenvectors with small eigenvalues are left. The forecast therefore continues the mean
    /// rate since a quarter of the iterations so far; smallest residuals have no peaks. A plateau may end, so the forecast is at most
    /// [`PLATEAU`] times the one from all iterations.
    fn ahead(&mut self, event: &Iteration<'_>) -> f64 {
        let (now, worst) = (event.iteration, event.worst());
        if self.smallest.is_empty() {
            self.begin = now;
        }
        let done = now.saturating_sub(self.begin);
        let smallest = self.smallest().min(worst);
        self.smallest.resize(done + 1, smallest);
        self.smallest[done] = smallest;
        let at_rate_since = |from: usize| {
            let per_iteration = (self.smallest[from] / smallest).ln() / (done - from).max(1) as f64;
            match (smallest / self.tol).ln() / per_iteration {
                ahead if ahead >= 0.0 => ahead.min(ENDLESS),
                _ if smallest <= self.tol => 0.0,
                _ => ENDLESS,
            }
        };
        at_rate_since(done / 4).min(PLATEAU * at_rate_since(0))
    }
}

/// Observer of a solve that recommends when another method should take over.
#[derive(Clone, Debug)]
pub struct Adviser {
    forecast: IterationForecast,
    method: &'static Method,
    /// Number of right-hand sides of this solve, and their number including all later solves.
    sources: [usize; 2],
    /// Cost of multigrid's setup in iterations; infinite without multigrid.
    setup: f64,
    /// Cost of solving for a right-hand side with multigrid, in iterations.
    solve: f64,
    budget: Option<Budget>,
    /// Whether multigrid ends early if it does not help.
    is_eager: bool,
    /// Whether BiCGstab solves for the first right-hand side alone, to decide for all of them before they begin.
    is_trial: bool,
    /// Whether CG may get a trial.
    may_try_cg: bool,
    /// Trial of CG that this adviser judges.
    cg_trial: Option<CgTrial>,
    advice: Option<Advice>,
}

/// Recommendation of another method.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Recommended method.
    pub method: &'static Method,
    /// Reason why the previous method should end.
    pub reason: String,
    /// Trial of CG, if that is the recommendation.
    pub cg_trial: Option<CgTrial>,
}
impl Advice {
    /// Recommends a method, without a trial.
    pub fn new(method: &'static Method, reason: String) -> Self {
        Advice { method, reason, cg_trial: None }
    }
}

/// Trial of CG: CG continues as long as its forecast is below the cost of the method that would run without it.
#[derive(Clone, Debug, PartialEq)]
pub struct CgTrial {
    /// Method that takes over after an unsuccessful trial.
    pub otherwise: &'static Method,
    /// Cost of that method, in iterations for each right-hand side.
    cost: f64,
    /// Reason for the method that takes over.
    reason: String,
}

/// Maximum number of iterations of a solve with all its methods, and a forecast for the running method, counted from the beginning of the
/// solve.
#[derive(Clone, Debug)]
struct Budget {
    most: usize,
    forecast: IterationForecast,
}

/// Range of the share of allowed iterations in which a method that does not come near the solution is replaced. After the range, too few
/// iterations are left for another method.
const SHARES: [f64; 2] = [0.5, 0.75];
/// Number of iterations that a method may always take, however few are allowed.
const LEAST: usize = 100;
/// Ratio of forecast to remaining iterations above which a method counts as hopeless. It is well above 1, because residuals of BiCGstab may
/// stagnate for long and fall quickly afterwards.
const HOPELESS: f64 = 2.0;

impl Budget {
    /// Returns the reason why the method should end after `done` iterations of the whole solve; `None` if it should not.
    fn ends(&mut self, event: &Iteration<'_>, done: usize) -> Option<String> {
        let ahead = self.forecast.ahead(&Iteration { iteration: done, ..*event });
        let [from, to] = SHARES.map(|share| share * self.most as f64);
        let due = done >= LEAST && (from..=to).contains(&(done as f64));
        (due && ahead > HOPELESS * self.most.saturating_sub(done) as f64).then(|| {
            format!(
                "after {done} of at most {} iterations of the solve, BiCGstab has reduced the residual only to {:.1e}",
                self.most,
                self.forecast.smallest()
            )
        })
    }
}

/// Fallback of a solve that may choose its method: CG on the normal equations, which takes over once if a method fails. If CG does not
/// converge either, and BiCGstab has not given up before, BiCGstab takes over again.
#[derive(Clone, Copy, Debug)]
pub struct Fallback {
    is_there: bool,
    is_taken: bool,
    /// Maximum number of iterations of CG, if BiCGstab returns after it.
    most: Option<usize>,
}

impl Fallback {
    /// Makes the fallback of a solve for `request`. CG may take over only if the method was left open (`automatic`) and the request allows
    /// escalation.
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
    /// Rules out CG, for example because there is no memory for it.
    pub fn forgo(&mut self) {
        self.is_there = false;
    }
    /// Selects CG, with at most `left` iterations. `failed` states that BiCGstab has given up and does not take over again.
    pub fn take(&mut self, left: usize, failed: bool) -> &'static Method {
        *self = Fallback { is_there: false, is_taken: true, most: (!failed).then_some(left / 2) };
        Method::CG
    }
    /// Lets CG take over later, after a trial of CG without success.
    pub fn restore(&mut self) {
        *self = Fallback { is_there: true, is_taken: false, most: None };
    }
    /// Returns the maximum number of iterations that `method` may take, at most the `left` iterations that remain.
    pub fn most(&self, method: &Method, left: usize) -> usize {
        self.most.filter(|_| method == Method::CG).map_or(left, |most| most.min(left))
    }
    /// Whether BiCGstab takes over again after `method`. This happens only after CG, and only once: later calls return false.
    pub fn comes_back(&mut self, method: &Method) -> bool {
        method == Method::CG && self.most.take().is_some()
    }
}

impl Adviser {
    /// Makes the adviser of a BiCGstab solve for `batch` right-hand sides to the residual `tol`. `made` states that near-null vectors exist
    /// already; `is_gpu`: the solve runs on a GPU.
    pub fn of_bicgstab(request: &Request, tol: f64, batch: usize, made: bool, is_gpu: bool) -> Self {
        let [setup, rebuild, solve] = Costs::of(request, is_gpu, batch);
        let setup = if made { rebuild } else { setup * relative_setup(&request.multigrid) };
        let sources = [batch, request.sources.max(batch)];
        Adviser {
            forecast: IterationForecast::new(tol),
            method: Method::BICGSTAB,
            sources,
            setup,
            solve,
            budget: None,
            is_eager: false,
            is_trial: false,
            may_try_cg: false,
            cg_trial: None,
            advice: None,
        }
    }
    /// Whether BiCGstab's iterations for one right-hand side help to decide about multigrid.
    pub fn may_try(&self) -> bool {
        self.method == Method::BICGSTAB && self.setup.is_finite()
    }
    /// Lets the adviser decide from a trial, a solve for the first right-hand side. It stops the trial as soon as the decision is clear.
    pub fn for_trial(self) -> Self {
        Adviser { is_trial: true, ..self }
    }
    /// Makes the adviser of a BiCGstab solve to the residual `tol`, for which multigrid is not possible.
    pub fn without_multigrid(tol: f64) -> Self {
        let (forecast, method, setup) = (IterationForecast::new(tol), Method::BICGSTAB, f64::INFINITY);
        Adviser {
            forecast,
            method,
            sources: [1, 1],
            setup,
            solve: 0.0,
            budget: None,
            is_eager: false,
            is_trial: false,
            may_try_cg: false,
            cg_trial: None,
            advice: None,
        }
    }
    /// Lets the adviser also recommend CG if the forecast is far above `most`, the maximum number of iterations of the whole solve.
    pub fn within(self, most: usize) -> Self {
        let forecast = IterationForecast::new(self.forecast.tol);
        Adviser { budget: Some(Budget { most, forecast }), ..self }
    }
    /// Makes the adviser of a multigrid solve to the residual `tol`.
    pub fn of_multigrid(tol: f64) -> Self {
        let (forecast, method) = (IterationForecast::new(tol), Method::MULTIGRID);
        Adviser {
            forecast,
            method,
            sources: [1, 1],
            setup: 0.0,
            solve: 0.0,
            budget: None,
            is_eager: false,
            is_trial: false,
            may_try_cg: false,
            cg_trial: None,
            advice: None,
        }
    }
    /// Lets the adviser end multigrid early if multigrid does not help and `eager` is set.
    pub fn eager(self, eager: bool) -> Self {
        Adviser { is_eager: eager, ..self }
    }
    /// Lets the adviser recommend a trial of CG before other methods.
    pub fn with_cg(self, may_try: bool) -> Self {
        Adviser { may_try_cg: may_try, ..self }
    }
    /// Makes the adviser of a trial of CG to the residual `tol`.
    pub fn of_cg(tol: f64, trial: CgTrial) -> Self {
        Adviser { method: Method::CG, cg_trial: Some(trial), ..Adviser::without_multigrid(tol) }
    }
    /// Maximum number of iterations of a trial of this method for the first right-hand side. By then, the forecast is good enough.
    pub fn trial_iterations(&self) -> usize {
        if self.cg_trial.is_some() { CG_TRIAL } else { TRIAL }
    }
    /// Whether the solve should stop at this event and continue with another method. If so, [`advice`](Self::advice) returns the method and
    /// the reason. `before` is the number of iterations that earlier methods have taken.
    pub fn stops(&mut self, event: &Iteration<'_>, before: usize) -> bool {
        let ahead = self.forecast.ahead(event);
        let done = event.iteration;
        let is_far = |[begin, most]: [usize; 2]| done >= begin && ahead > most as f64;
        let mut settled = false;
        if let Some(trial) = &self.cg_trial {
            self.advice = (done >= CG_BEGINNING && ahead > CG_WORTH * trial.cost).then(|| {
                let needs = tens(done as f64 + ahead);
                Advice::new(trial.otherwise, format!("CG needs about {needs} iterations; {}", trial.reason))
            });
            return self.advice.is_some();
        }
        let (reason, next) = if self.method == Method::MULTIGRID {
            let reason = (is_far([MANY, MANY]) || (self.is_eager && is_far(EARLY))).then(|| {
                let smallest = self.forecast.smallest();
                format!("multigrid has reduced the residual only to {smallest:.1e} in {done} iterations")
            });
            (reason, Method::BICGSTAB)
        } else {
            let [batch, all] = self.sources.map(|n| n as f64);
            let whole = done as f64 + ahead;
            let gain = match self.is_trial {
                true => all * (whole - self.solve),
                false => batch * (ahead - self.solve) + (all - batch) * (whole - self.solve),
            };
            let is_forecast = done >= BEGINNING;
            settled = self.is_trial && is_forecast && gain < CLEAR * self.setup;
            let worth = if all == 1.0 { ALONE * self.setup } else { self.setup };
            let goes_to_multigrid = is_forecast && gain > worth;
            let progress = || {
                let sides = match self.sources[1] {
                    1 => "the right-hand side".into(),
                    _ => format!("each of {all} right-hand sides"),
                };
                match whole {
                    many if many < 1e6 => format!("BiCGstab needs about {} iterations for {sides}", tens(many)),
                    _ => format!("BiCGstab hardly reduces the residual of {sides}"),
                }
            };
            let reason = goes_to_multigrid.then(|| {
                format!(
                    "{}; multigrid costs as much as about {:.0} iterations for the setup and {:.0} for each \
                     right-hand side",
                    progress(),
                    self.setup,
                    self.solve
                )
            });
            if self.may_try_cg && is_forecast && (goes_to_multigrid || whole > LONG) {
                let trial = match &reason {
                    Some(reason) => CgTrial {
                        otherwise: Method::MULTIGRID,
                        cost: self.setup / all + self.solve,
                        reason: reason.clone(),
                    },
                    None => CgTrial {
                        otherwise: Method::BICGSTAB,
                        // A trial is discarded, so that BiCGstab begins again.
                        cost: if self.is_trial { whole } else { ahead },
                        reason: progress(),
                    },
                };
                let reason = format!("{}; CG gets a trial", progress());
                self.advice = Some(Advice { method: Method::CG, reason, cg_trial: Some(trial) });
                return true;
            }
            (reason, Method::MULTIGRID)
        };
        let late = self.budget.as_mut().and_then(|budget| budget.ends(event, before + done));
        self.advice = match (reason, late) {
            (Some(reason), _) => Some(Advice::new(next, reason)),
            (None, late) => late.map(|reason| Advice::new(Method::CG, reason)),
        };
        self.advice.is_some() || settled
    }
    /// Whether the adviser is for solves by this method.
    pub fn is_for(&self, method: &Method) -> bool {
        self.method == method
    }
    /// Returns the recommendation for which the solve was stopped.
    pub fn advice(&self) -> Option<&Advice> {
        self.advice.as_ref()
    }
}

/// Returns a number of iterations, rounded to tens.
fn tens(iterations: f64) -> f64 {
    10.0 * (iterations / 10.0).round()
}

/// Returns the cost of a setup relative to that of a setup with default parameters.
fn relative_setup(params: &MultigridParams) -> f64 {
    let usual = MultigridParams::default();
    let steps = |p: &MultigridParams| 0.1 + 0.08 * p.relaxations as f64 + 0.2 * p.improvements as f64;
    // The exponent 5/3 is a compromise between costs that grow linearly and costs that grow quadratically with the number of vectors.
    (params.vectors as f64 / usual.vectors as f64).powf(5.0 / 3.0) * steps(params) / steps(&usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::{TimeBoundary, WilsonParams};
    use solvers::IterationKind;

    /// Returns the iteration at which an adviser stops a solve whose residual falls by `factor` each time, down to 1e-10.
    fn stops(mut adviser: Adviser, factor: f64) -> Option<usize> {
        let stop = stop_of(&mut adviser, factor)?;
        assert!(adviser.advice().is_some());
        Some(stop)
    }
    /// Returns the iteration at which an adviser stops a solve, with or without advice.
    fn stop_of(adviser: &mut Adviser, factor: f64) -> Option<usize> {
        let mut residual = 1.0;
        for iteration in 0..10_000 {
            let event = Iteration { iteration, residuals: &[residual], kind: IterationKind::Iterate };
            if adviser.stops(&event, 0) {
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
    fn forecasts_follow_the_slow_part() {
        // Residuals as those of clover at 429 iterations: 10⁻² after 20, and then a factor of ten in 56, with peaks.
        let residual = |n: usize| {
            let peak = if n % 7 == 3 { 8.0 } else { 1.0 };
            peak * (10f64.powf(-(n as f64) / 8.0) + 10f64.powf(-1.6 - n as f64 / 51.0))
        };
        let mut forecast = IterationForecast::new(1e-10);
        for iteration in 0..=200 {
            let event = Iteration { iteration, residuals: &[residual(iteration)], kind: IterationKind::Iterate };
            let all = iteration as f64 + forecast.ahead(&event);
            let (least, most) = match iteration {
                0..40 => (0.0, f64::INFINITY),
                40..60 => (200.0, 450.0),
                60..100 => (320.0, 450.0),
                _ => (400.0, 450.0),
            };
            assert!((least..=most).contains(&all), "{iteration}: {all}");
        }
    }

    /// Checks that a plateau does not count as stagnation: 10⁻² after 20 iterations, and no progress in 80 further ones.
    #[test]
    fn a_plateau_limits_the_forecast() {
        let mut forecast = IterationForecast::new(1e-10);
        let mut ahead = 0.0;
        for iteration in 0..=100 {
            let residual = 10f64.powf(-0.1 * iteration.min(20) as f64);
            ahead = forecast.ahead(&Iteration { iteration, residuals: &[residual], kind: IterationKind::Iterate });
        }
        // Two of ten powers of ten took 100 iterations.
        assert!((ahead - PLATEAU * 400.0).abs() < 1e-6, "{ahead}");
    }

    #[test]
    fn multigrid_takes_over_where_it_pays() {
        let operator = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
        let request = Request { precision: Precision::Half, ..Request::new(operator) };
        let of = |sources, batch, made| {
            Adviser::of_bicgstab(&Request { sources, ..request.clone() }, 1e-10, batch, made, true)
        };
        // Iterations that a solve takes, as factors.
        let taking = |iterations: f64| 1e-10f64.powf(1.0 / iterations);
        assert_eq!(stops(of(0, 1, false), taking(1500.0)), None, "a setup for one right-hand side is longer");
        assert_eq!(stops(of(0, 1, false), taking(8000.0)), Some(BEGINNING));
        assert_eq!(stops(of(12, 1, false), taking(1500.0)), Some(BEGINNING));
        assert_eq!(stops(of(12, 12, false), taking(1500.0)), Some(BEGINNING));
        assert_eq!(stops(of(12, 12, false), taking(300.0)), None);
        assert_eq!(stops(of(12, 12, true), taking(300.0)), Some(BEGINNING));
        // An iteration in double costs almost four times as much, multigrid the same.
        let double = Adviser::of_bicgstab(&Request::new(operator), 1e-10, 1, false, true);
        assert_eq!(stops(double, taking(2000.0)), Some(BEGINNING));
        assert_eq!(stops(of(0, 1, false), 1.0), Some(BEGINNING), "what does not converge");
    }

    /// Checks that the first right-hand side decides for a batch: for multigrid, for BiCGstab, or not yet.
    #[test]
    fn one_right_hand_side_decides_for_all() {
        let operator = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
        let request = Request { precision: Precision::Half, ..Request::new(operator) };
        let trial = || Adviser::of_bicgstab(&request, 1e-10, 12, false, true).for_trial();
        let taking = |iterations: f64| 1e-10f64.powf(1.0 / iterations);
        // A setup costs as much as about 240 iterations for each of twelve right-hand sides, and multigrid about 95.
        for (iterations, stop, method) in
            [(1500.0, Some(BEGINNING), Some(Method::MULTIGRID)), (150.0, Some(BEGINNING), None), (290.0, None, None)]
        {
            let mut adviser = trial();
            assert_eq!(stop_of(&mut adviser, taking(iterations)), stop, "{iterations}");
            assert_eq!(adviser.advice().map(|advice| advice.method), method, "{iterations}");
        }
        assert!(trial().may_try());
        assert!(!Adviser::without_multigrid(1e-10).may_try() && !Adviser::of_multigrid(1e-10).may_try());
    }

    /// Checks that CG takes over when half of the iterations are done and there is hardly any progress. A converging solve is left alone,
    /// and so is one that has only just begun.
    #[test]
    fn a_hopeless_solve_ends_at_half_of_its_iterations() {
        let within = |most| Adviser::without_multigrid(1e-10).within(most);
        let taking = |iterations: f64| 1e-10f64.powf(1.0 / iterations);
        assert_eq!(stops(within(2000), 1.0), Some(1000));
        assert_eq!(stops(within(2000), 1.01), Some(1000), "a residual that grows");
        assert_eq!(stops(within(2000), taking(4000.0)), Some(1000));
        assert_eq!(stops(within(2000), taking(1900.0)), None);
        assert_eq!(stops(within(2000), taking(2300.0)), None, "it may become faster");
        assert_eq!(stops(within(150), 1.0), Some(LEAST));
        assert_eq!(stops(within(100), 1.0), None, "too few are left");
        assert_eq!(stops(Adviser::without_multigrid(1e-10), 1.0), None);
    }

    /// Checks that CG gets a trial if BiCGstab needs many iterations or multigrid is advised, and that another method takes over as soon as
    /// the forecast of CG is too high.
    #[test]
    fn cg_gets_a_trial_of_long_solves() {
        let operator = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
        let request = Request { precision: Precision::Half, sources: 12, ..Request::new(operator) };
        let taking = |iterations: f64| 1e-10f64.powf(1.0 / iterations);
        let with_cg = |adviser: Adviser| adviser.with_cg(true);
        let trial_of = |mut adviser: Adviser, iterations| {
            let stop = stop_of(&mut adviser, taking(iterations));
            stop.map(|stop| (stop, adviser.advice().expect("advice").clone()))
        };
        assert_eq!(trial_of(with_cg(Adviser::without_multigrid(1e-10)), 0.9 * LONG), None);
        let (stop, advice) = trial_of(with_cg(Adviser::without_multigrid(1e-10)), 800.0).expect("a long solve");
        let trial = advice.cg_trial.expect("a trial");
        assert_eq!((stop, advice.method, trial.otherwise), (BEGINNING, Method::CG, Method::BICGSTAB));
        // BiCGstab needs 740 more iterations. CG may need 80 % of them after any of its iterations.
        let of_cg = |iterations| trial_of(Adviser::of_cg(1e-10, trial.clone()), iterations);
        assert_eq!(of_cg(600.0), None);
        let (stop, back) = of_cg(700.0).expect("CG is too slow");
        assert_eq!((stop, back.method, back.cg_trial), (CG_BEGINNING, Method::BICGSTAB, None));
        // Multigrid costs 2400 / 12 + 165 iterations for each of 12 sources that are solved one by one.
        let multigrid = with_cg(Adviser::of_bicgstab(&request, 1e-10, 1, false, true));
        let (_, advice) = trial_of(multigrid, 1500.0).expect("a setup pays");
        let trial = advice.cg_trial.expect("a trial");
        assert_eq!((advice.method, trial.otherwise), (Method::CG, Method::MULTIGRID));
        assert!((trial.cost - 365.0).abs() < 1.0, "{}", trial.cost);
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
