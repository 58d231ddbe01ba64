//! BiCGstab or multigrid: which of them a solve takes where it may choose, and when it changes from one to the other.
//!
//! Nobody knows how many iterations BiCGstab takes before it has done some. So it begins, and as soon as what it has left to do,
//! for all right-hand sides together, would take clearly longer than to set multigrid up and solve with it, multigrid goes on
//! from its iterate. All costs are counted in iterations, so that every process decides alike.
use super::request::{Method, Request};
use crate::multigrid::MultigridParams;
use solvers::Iteration;

/// A change of the method of a solve.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodChange {
    /// Iterations done before.
    pub iterations: usize,
    /// The method from here on.
    pub method: Method,
    /// Why.
    pub reason: String,
}

impl MethodChange {
    /// Multigrid could not be set up.
    pub(super) fn without_multigrid(iterations: usize, error: &dyn std::error::Error) -> Self {
        let reason = format!("multigrid cannot be set up: {error}");
        MethodChange { iterations, method: Method::Bicgstab, reason }
    }
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
    method: Method,
    /// Right-hand sides of this solve and of those after it, this one included.
    sources: [usize; 2],
    /// Iterations that the setup is worth.
    setup: f64,
    advice: Option<String>,
}

impl Adviser {
    /// For BiCGstab, in a solve for `batch` right-hand sides to the residual `tol`; with `made`, there are near-null vectors already.
    pub fn of_bicgstab(request: &Request, tol: f64, batch: usize, made: bool) -> Self {
        let setup = if made { REBUILD } else { SETUP * relative_setup(&request.multigrid) };
        let sources = [batch, request.sources.max(batch)];
        Adviser { forecast: Forecast::new(tol), method: Method::Bicgstab, sources, setup, advice: None }
    }
    /// For multigrid.
    pub fn of_multigrid(tol: f64) -> Self {
        Adviser { forecast: Forecast::new(tol), method: Method::Multigrid, sources: [1, 1], setup: 0.0, advice: None }
    }
    /// Whether the solve had better stop here and go on in another way: [`advice`](Self::advice) has the reason then.
    pub fn stops(&mut self, event: &Iteration<'_>) -> bool {
        let ahead = self.forecast.ahead(event);
        let done = event.iteration;
        self.advice = match self.method {
            Method::Multigrid => (done >= MANY && ahead > MANY as f64).then(|| {
                format!("multigrid has reduced the residual to {:.1e} in {done} iterations", self.forecast.smallest)
            }),
            _ => {
                let [batch, all] = self.sources.map(|n| n as f64);
                let gain = batch * (ahead - SOLVE) + (all - batch) * (done as f64 + ahead - SOLVE);
                (done >= BEGINNING && gain > MARGIN * self.setup).then(|| {
                    let whole = match done as f64 + ahead {
                        many if many < 1e6 => format!("about {:.0}", 10.0 * (many / 10.0).round()),
                        _ => "more than a million".into(),
                    };
                    format!(
                        "BiCGstab takes {whole} iterations for each of {all} right-hand sides; multigrid takes as long as about {:.0} \
                         of them for the setup and {SOLVE} for a right-hand side",
                        self.setup
                    )
                })
            }
        };
        self.advice.is_some()
    }
    /// Whether it watches this method.
    pub fn is_for(&self, method: Method) -> bool {
        self.method == method
    }
    /// Why the solve was stopped.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
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
            if adviser.stops(&event) {
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
        let of = |sources, batch, made| Adviser::of_bicgstab(&Request { sources, ..request }, 1e-10, batch, made);
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

    #[test]
    fn multigrid_that_does_not_converge_ends() {
        assert_eq!(stops(Adviser::of_multigrid(1e-10), 0.4), None);
        assert_eq!(stops(Adviser::of_multigrid(1e-10), 0.88), None);
        assert_eq!(stops(Adviser::of_multigrid(1e-10), 0.99), Some(MANY));
    }
}
