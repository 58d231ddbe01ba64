//! Solving M ψ = η: even-odd preconditioning, the solvers in any precision, and the check of the answer.
use crate::backend::Backend;
use crate::dirac::{CloverParams, EvenOdd, EvenOddClover, EvenOddWilson, Schur, Wilson, WilsonParams};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::host::{HostGauge, HostSpinor};
use crate::field::{DeviceClover, DeviceGauge, DeviceSpinor, FullSpinor, SpinorSpace, StagedGauge};
use gpu_kernels::storage::{CloverFormat, Double, Fp16, Half, LinkFormat, Precision, Recon8, Recon12, Recon18, Single};
use solvers::{
    BicgstabParams, BicgstabWorkspace, CgNormalWorkspace, CgParams, Info, Mixed, Observer, Precise, SolveError, System,
    VectorSpace, bicgstab, cgnr,
};
use std::sync::Arc;
use std::time::Instant;

/// Which Krylov method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// BiCGstab on the Schur complement.
    #[default]
    Bicgstab,
    /// CG on the normal equations of the Schur complement.
    Cg,
}

/// Precision of the iteration. Reliable updates and the final check are always in double.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IterationPrecision {
    /// 64-bit floating point.
    #[default]
    Double,
    /// 32-bit floating point.
    Single,
    /// 16-bit fixed point with a norm per site.
    Half,
    /// 16-bit floating point without one: faster, less precise, and for fields near 1 only.
    Fp16,
}

/// How many reals of a link are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reconstruction {
    Eighteen,
    #[default]
    Twelve,
    Eight,
}

/// Calls a macro with the types of a precision and a reconstruction that are known at run time.
macro_rules! with_formats {
    ($precision:expr, $reconstruction:expr, $then:ident) => {
        with_formats!(@each $precision, $reconstruction, $then,
            Double Single Half Fp16, Eighteen Recon18, Twelve Recon12, Eight Recon8)
    };
    (@each $precision:expr, $reconstruction:expr, $then:ident, $($p:ident)*, $a:ident $ra:ident, $b:ident $rb:ident,
        $c:ident $rc:ident) => {
        match ($precision, $reconstruction) {
            $(
                (IterationPrecision::$p, Reconstruction::$a) => $then!($p, $ra),
                (IterationPrecision::$p, Reconstruction::$b) => $then!($p, $rb),
                (IterationPrecision::$p, Reconstruction::$c) => $then!($p, $rc),
            )*
        }
    };
}
pub(crate) use with_formats;

/// Which operator M.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operator {
    /// Wilson.
    Wilson(WilsonParams),
    /// Wilson-clover, with the Schur complement to solve.
    Clover(CloverParams, Schur),
}
impl From<WilsonParams> for Operator {
    fn from(params: WilsonParams) -> Self {
        Operator::Wilson(params)
    }
}
impl From<CloverParams> for Operator {
    fn from(params: CloverParams) -> Self {
        Operator::Clover(params, Schur::default())
    }
}
impl Operator {
    /// Its name: `Wilson` or `Wilson-clover`.
    pub fn name(&self) -> &'static str {
        match self {
            Operator::Wilson(_) => "Wilson",
            Operator::Clover(..) => "Wilson-clover",
        }
    }
    /// Mass, boundary condition and anisotropy.
    pub fn wilson(&self) -> WilsonParams {
        match self {
            Operator::Wilson(params) => *params,
            Operator::Clover(params, _) => params.wilson,
        }
    }
}

/// What to solve and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The operator.
    pub operator: Operator,
    /// The method.
    pub method: Method,
    /// Precision of the iteration.
    pub precision: IterationPrecision,
    /// Storage of the links in the iteration. `Twelve` and `Eight` need SU(3) links.
    pub reconstruction: Reconstruction,
    /// Asked ‖η − M ψ‖ / ‖η‖ of the full system.
    pub tol: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// δ of the reliable updates (Clark et al. 2009, Algorithm 2); `None`: the solver's default.
    pub delta: Option<f64>,
}

impl Request {
    /// BiCGstab in double to 1e-10.
    pub fn new(operator: impl Into<Operator>) -> Self {
        Request {
            operator: operator.into(),
            method: Method::default(),
            precision: IterationPrecision::default(),
            reconstruction: Reconstruction::default(),
            tol: 1e-10,
            max_iterations: 10_000,
            delta: None,
        }
    }
    /// Device memory that the solve needs at its peak for `nrhs` right-hand sides on `sites` sites of one parity, with
    /// names for what takes it.
    pub fn memory(&self, sites: usize, nrhs: usize) -> Vec<(&'static str, usize)> {
        let precise = DeviceSpinor::<crate::backend::Cpu, Double>::bytes_for(sites, nrhs);
        let (sloppy, links) = match (self.precision, self.reconstruction) {
            (IterationPrecision::Double, r) => (precise, link_bytes::<Double>(r, sites)),
            (IterationPrecision::Single, r) => {
                (DeviceSpinor::<crate::backend::Cpu, Single>::bytes_for(sites, nrhs), link_bytes::<Single>(r, sites))
            }
            (IterationPrecision::Half, r) => {
                (DeviceSpinor::<crate::backend::Cpu, Half>::bytes_for(sites, nrhs), link_bytes::<Half>(r, sites))
            }
            (IterationPrecision::Fp16, r) => {
                (DeviceSpinor::<crate::backend::Cpu, Fp16>::bytes_for(sites, nrhs), link_bytes::<Fp16>(r, sites))
            }
        };
        let vectors = match self.method {
            Method::Bicgstab => 7,
            Method::Cg => 6,
        };
        // The clover operator keeps an intermediate result more.
        let more = usize::from(matches!(self.operator, Operator::Clover(..)));
        let mut parts = vec![
            ("links as read from the host", 8 * sites * 144),
            ("links in double", link_bytes::<Double>(Reconstruction::Eighteen, sites)),
            ("links of the iteration", links),
            ("source, solution and residual in double", (9 + more) * precise),
            ("vectors of the iteration", (vectors + more) * sloppy),
            ("transfer of a spinor field", 2 * 192 * sites * nrhs),
        ];
        if let Operator::Clover(..) = self.operator {
            let iteration = match self.precision {
                IterationPrecision::Double => clover_bytes::<Double>(sites),
                IterationPrecision::Single => clover_bytes::<Single>(sites),
                IterationPrecision::Half => clover_bytes::<Half>(sites),
                IterationPrecision::Fp16 => clover_bytes::<Fp16>(sites),
            };
            parts.push(("clover term and its inverse in double", clover_bytes::<Double>(sites)));
            parts.push(("clover term and its inverse of the iteration", iteration));
        }
        parts
    }
}

/// Of A and A⁻¹ on both parities.
fn clover_bytes<P: CloverFormat>(sites: usize) -> usize {
    4 * DeviceClover::<crate::backend::Cpu, P>::bytes_for(sites)
}

fn link_bytes<P: Precision>(reconstruction: Reconstruction, sites: usize) -> usize
where
    Recon18: LinkFormat<P>,
    Recon12: LinkFormat<P>,
    Recon8: LinkFormat<P>,
{
    2 * match reconstruction {
        Reconstruction::Eighteen => DeviceGauge::<crate::backend::Cpu, P, Recon18>::bytes_for(sites),
        Reconstruction::Twelve => DeviceGauge::<crate::backend::Cpu, P, Recon12>::bytes_for(sites),
        Reconstruction::Eight => DeviceGauge::<crate::backend::Cpu, P, Recon8>::bytes_for(sites),
    }
}

/// What a solve did. Residuals are those of the full system, computed at the end as ‖η − M ψ‖ / ‖η‖ in double with the
/// unfused operator.
#[derive(Clone, Debug)]
pub struct Report {
    /// The solver's own account, on the Schur complement.
    pub info: Info,
    /// ‖η − M ψ‖ / ‖η‖ per right-hand side.
    pub true_residual: Vec<f64>,
    /// Whether every true residual is at or below the tolerance.
    pub converged: bool,
    /// The reconstruction in use: `Twelve` where `Eight` was asked for but some links are singular.
    pub reconstruction: Reconstruction,
    /// Seconds of the iteration, transfers excluded.
    pub seconds: f64,
    /// Seconds from the first transfer to the last.
    pub total_seconds: f64,
    /// Operator applications only, over `seconds`.
    pub gflops: f64,
}

/// Why there is no solution.
#[derive(Debug, thiserror::Error)]
pub enum SolveFailure {
    /// The solver could not start.
    #[error(transparent)]
    Solver(SolveError<DeviceError>),
    /// The solver gave up, or the observer stopped it.
    #[error("{error}")]
    Unfinished {
        /// Why.
        #[source]
        error: SolveError<DeviceError>,
        /// The best iterate of each right-hand side.
        solutions: Vec<HostSpinor>,
        /// What is known of these iterates.
        report: Box<Report>,
    },
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Solves M ψ_j = η_j for all sources together. The observer sees every iteration and can stop it.
pub fn solve_wilson<B: Backend>(
    domain: &Domain<B>,
    gauge: &HostGauge,
    sources: &[HostSpinor],
    request: &Request,
    observer: &mut impl Observer,
) -> std::result::Result<(Vec<HostSpinor>, Report), SolveFailure> {
    let staged = StagedGauge::upload(domain, gauge)?;
    let exact = Arc::new(staged.pack::<Double, Recon18>()?);
    // Reconstruct 8 has no singular links; a field with any is kept with 12.
    let singular = request.reconstruction == Reconstruction::Eight && staged.singular_links()? > 0;
    let reconstruction = if singular { Reconstruction::Twelve } else { request.reconstruction };
    let request = &Request { reconstruction, ..*request };
    let nrhs = sources.len();
    match request.operator {
        Operator::Wilson(params) => {
            let precise = EvenOddWilson::new(Wilson::new(exact, params), nrhs)?;
            macro_rules! with {
                ($precision:ty, $recon:ty) => {{
                    let links = Arc::new(staged.pack::<$precision, $recon>()?);
                    drop(staged);
                    let sloppy = EvenOddWilson::new(Wilson::new(links, params), nrhs)?;
                    run(domain, &precise, &sloppy, sources, request, observer)
                }};
            }
            with_formats!(request.precision, reconstruction, with)
        }
        Operator::Clover(params, schur) => {
            let term = Arc::new(params.term(&exact)?);
            let precise = EvenOddClover::new(Wilson::new(exact, params.wilson), term.clone(), schur, nrhs)?;
            macro_rules! with {
                ($precision:ty, $recon:ty) => {{
                    let links = Arc::new(staged.pack::<$precision, $recon>()?);
                    drop(staged);
                    let term = Arc::new(term.convert::<$precision>()?);
                    let sloppy = EvenOddClover::new(Wilson::new(links, params.wilson), term, schur, nrhs)?;
                    run(domain, &precise, &sloppy, sources, request, observer)
                }};
            }
            with_formats!(request.precision, reconstruction, with)
        }
    }
}

/// The solve itself. Operators are trait objects, so that the solvers are compiled once for each pair of precisions and
/// not for each operator and reconstruction too.
fn run<B: Backend, S: Precision>(
    domain: &Domain<B>,
    precise: &dyn EvenOdd<B, Double>,
    sloppy: &dyn EvenOdd<B, S>,
    sources: &[HostSpinor],
    request: &Request,
    observer: &mut impl Observer,
) -> std::result::Result<(Vec<HostSpinor>, Report), SolveFailure> {
    let begin = Instant::now();
    let nrhs = sources.len();
    let (space, sloppy_space) = (SpinorSpace::<B, Double>::new(domain, nrhs), SpinorSpace::<B, S>::new(domain, nrhs));

    let mut eta = FullSpinor::zero(domain, nrhs)?;
    eta.upload(sources)?;
    let mut psi = FullSpinor::<B, Double>::zero(domain, nrhs)?;
    let mut rhs = space.allocate()?;
    precise.prepare(&eta, &mut rhs)?;

    // What the solver is asked for is a residual of the Schur complement, relative to its right-hand side.
    let (source_norms, rhs_norms) = (full_norms(&space, &eta)?, norms(&space, &rhs)?);
    let ratio = source_norms.iter().zip(&rhs_norms).filter(|(_, rhs)| **rhs > 0.0).map(|(source, rhs)| source / rhs);
    let tol = request.tol * (ratio.fold(f64::INFINITY, f64::min) / precise.residual_factor()).min(1.0);

    domain.backend().synchronize().map_err(DeviceError::from)?;
    let start = Instant::now();
    let system = Mixed::new(&space, precise, &sloppy_space, sloppy);
    let mut tol = tol;
    let mut total: Option<Info> = None;
    let mut true_residual;
    let failure = loop {
        let (info, failure) = match iterate(&system, &rhs, &mut psi.even, tol, request, observer) {
            Ok(info) => (info, None),
            Err(error) => match error.info().cloned() {
                Some(info) => (info, Some(error)),
                None => return Err(SolveFailure::Solver(error)),
            },
        };
        total = Some(match total {
            Some(before) => before.followed_by(info),
            None => info,
        });
        precise.reconstruct(&eta, &mut psi)?;
        true_residual = residuals(&space, precise, &eta, &psi, &source_norms)?;
        // The full system's residual is not quite the one that was aimed at: aim again, from where we are.
        let worst = true_residual.iter().copied().fold(0.0, f64::max);
        if failure.is_some() || worst <= request.tol || !worst.is_finite() || tol < 1e-16 {
            break failure;
        }
        tol *= 0.5 * request.tol / worst;
    };
    let info = total.expect("the loop ran");
    let seconds = start.elapsed().as_secs_f64();

    let solutions = psi.download()?;
    let report = Report {
        converged: failure.is_none() && true_residual.iter().all(|&r| r <= request.tol),
        gflops: info.flops / seconds * 1e-9,
        info,
        reconstruction: request.reconstruction,
        true_residual,
        seconds,
        total_seconds: begin.elapsed().as_secs_f64(),
    };
    match failure {
        None => Ok((solutions, report)),
        Some(error) => Err(SolveFailure::Unfinished { error, solutions, report: Box::new(report) }),
    }
}

/// Runs the method asked for.
fn iterate<Y: System<Error = DeviceError>>(
    system: &Y,
    rhs: &Precise<Y>,
    x: &mut Precise<Y>,
    tol: f64,
    request: &Request,
    observer: &mut impl Observer,
) -> std::result::Result<Info, SolveError<DeviceError>> {
    // On the very same links and in double the iteration needs no reliable updates. Reconstructed links are others: those
    // of a file in single precision are unitary to 1e-7 only, and so far from their reconstruction.
    let same = request.precision == IterationPrecision::Double && request.reconstruction == Reconstruction::Eighteen;
    let delta = request.delta.or(same.then_some(0.0));
    let max_iterations = request.max_iterations;
    match request.method {
        Method::Bicgstab => {
            let params = BicgstabParams { tol, max_iterations, delta, ..Default::default() };
            let mut workspace = BicgstabWorkspace::new(system).map_err(SolveError::Backend)?;
            bicgstab(system, rhs, x, &params, &mut workspace, observer)
        }
        Method::Cg => {
            let params = CgParams { tol, max_iterations, delta, ..Default::default() };
            let mut workspace = CgNormalWorkspace::new(system).map_err(SolveError::Backend)?;
            cgnr(system, rhs, x, &params, &mut workspace, observer)
        }
    }
}

/// ‖x_j‖
fn norms<B: Backend>(space: &SpinorSpace<B, Double>, x: &DeviceSpinor<B, Double>) -> Result<Vec<f64>> {
    let mut norms = vec![0.0; space.nrhs()];
    space.norm2(x, &mut norms)?;
    norms.iter_mut().for_each(|n| *n = n.sqrt());
    Ok(norms)
}

/// ‖x_j‖ over both parities.
fn full_norms<B: Backend>(space: &SpinorSpace<B, Double>, x: &FullSpinor<B, Double>) -> Result<Vec<f64>> {
    let (even, odd) = (norms(space, &x.even)?, norms(space, &x.odd)?);
    Ok(even.into_iter().zip(odd).map(|(e, o)| e.hypot(o)).collect())
}

/// ‖η_j − M ψ_j‖ / ‖η_j‖, zero for η_j = 0 and ψ_j = 0.
fn residuals<B: Backend>(
    space: &SpinorSpace<B, Double>,
    operator: &dyn EvenOdd<B, Double>,
    eta: &FullSpinor<B, Double>,
    psi: &FullSpinor<B, Double>,
    source_norms: &[f64],
) -> Result<Vec<f64>> {
    let nrhs = space.nrhs();
    let mut squares = vec![0.0; nrhs];
    let mut parts = vec![0.0; nrhs];
    let mut image = space.allocate()?;
    for parity in 0..2 {
        operator.row(parity, false, psi, &mut image)?;
        space.sub_norm2(eta.parity(parity), &mut image, &mut parts)?;
        squares.iter_mut().zip(&parts).for_each(|(sum, part)| *sum += part);
    }
    let relative = |(square, norm): (f64, &f64)| if *norm > 0.0 { square.sqrt() / norm } else { square.sqrt() };
    Ok(squares.into_iter().zip(source_norms).map(relative).collect())
}
