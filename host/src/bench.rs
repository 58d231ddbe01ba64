//! Measurements: how fast kernels run, next to the bandwidth of a plain copy measured in the same run.
use crate::backend::Backend;
use crate::dirac::{
    CLOVER_FLOPS, CloverParams, DSLASH_ADD_FLOPS, DSLASH_FLOPS, EvenOddClover, Schur, TimeBoundary, Wilson,
    WilsonParams,
};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::host::HostGauge;
use crate::field::{DeviceClover, DeviceGauge, DeviceSpinor, SpinorSpace, StagedGauge};
use crate::lattice::Lattice;
use crate::solve::{IterationPrecision, Reconstruction, with_formats};
use crate::{gauge_fixing, generate};
use gpu_kernels::storage::{
    CloverFormat, Double, Fp16, Half, LinkFormat, Precision, Recon8, Recon8T, Recon12, Recon12T, Recon18, Single,
};
use num_complex::Complex64;
use solvers::{LinearOperator, VectorSpace};
use std::borrow::Cow;
use std::sync::Arc;

/// One measured operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `wilson_dslash`, `axpy`, `copy` ….
    pub operator: &'static str,
    /// `double`, `single`, `half`, `fp16`; empty for a copy.
    pub precision: &'static str,
    /// `18`, `12`, `12t` …; empty where there are no links.
    pub reconstruct: &'static str,
    /// X, Y, Z, T.
    pub lattice: [usize; 4],
    /// Right-hand sides in one call.
    pub nrhs: usize,
    /// Time of one call: the median of several batches.
    pub microseconds: f64,
    /// 10⁹ floating-point operations per second, counted as everybody counts them.
    pub gflops: f64,
    /// 10⁹ bytes per second of compulsory traffic: every link and every spinor once.
    pub gbps: f64,
    /// `gbps` over the copy bandwidth measured in the same run.
    pub fraction_of_copy: f64,
}

/// How links are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// In any gauge.
    Plain(Reconstruction),
    /// In temporal gauge, where links in t are read across the boundary only.
    Temporal(Reconstruction),
}

impl Links {
    /// Whether there are kernels for them in a precision. In temporal gauge 12 reals are kept in every precision, 8 in
    /// double and single.
    pub fn exist_in(self, precision: IterationPrecision) -> bool {
        let floating = matches!(precision, IterationPrecision::Double | IterationPrecision::Single);
        match self {
            Links::Plain(_) | Links::Temporal(Reconstruction::Twelve) => true,
            Links::Temporal(Reconstruction::Eight) => floating,
            Links::Temporal(Reconstruction::Eighteen) => false,
        }
    }
    fn is_temporal(self) -> bool {
        matches!(self, Links::Temporal(_))
    }
}

/// Calls a macro with the types of a precision and of links that [exist in it](Links::exist_in); no rows for others.
macro_rules! with_links {
    ($precision:expr, $links:expr, $then:ident) => {
        match ($links, $precision) {
            (Links::Plain(reconstruction), precision) => with_formats!(precision, reconstruction, $then),
            (Links::Temporal(Reconstruction::Twelve), IterationPrecision::Double) => $then!(Double, Recon12T),
            (Links::Temporal(Reconstruction::Twelve), IterationPrecision::Single) => $then!(Single, Recon12T),
            (Links::Temporal(Reconstruction::Twelve), IterationPrecision::Half) => $then!(Half, Recon12T),
            (Links::Temporal(Reconstruction::Twelve), IterationPrecision::Fp16) => $then!(Fp16, Recon12T),
            (Links::Temporal(Reconstruction::Eight), IterationPrecision::Double) => $then!(Double, Recon8T),
            (Links::Temporal(Reconstruction::Eight), IterationPrecision::Single) => $then!(Single, Recon8T),
            (Links::Temporal(_), _) => Vec::new(),
        }
    };
}

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The lattice.
    pub lattice: Lattice,
    /// Precisions.
    pub precisions: Vec<IterationPrecision>,
    /// How links are kept; what does not exist in a precision is left out.
    pub links: Vec<Links>,
    /// Right-hand sides.
    pub nrhs: usize,
}

/// Batches whose median is taken.
const BATCHES: usize = 7;
/// Aimed length of a batch in seconds.
const BATCH_SECONDS: f64 = 0.01;

/// Median time in seconds of one call of `work`, after a warm-up that also finds how many calls fill a batch.
fn time<B: Backend>(backend: &B, mut work: impl FnMut() -> Result) -> Result<f64> {
    let mut batch = |calls: usize| -> Result<f64> {
        let from = backend.record()?;
        for _ in 0..calls {
            work()?;
        }
        let to = backend.record()?;
        Ok(backend.seconds_between(&from, &to)? / calls as f64)
    };
    batch(2)?;
    let one = batch(3)?;
    let calls = ((BATCH_SECONDS / one) as usize).clamp(1, 1000);
    let mut times = (0..BATCHES).map(|_| batch(calls)).collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[BATCHES / 2])
}

/// Bytes per second of a copy inside the device's memory, read and written bytes counted.
pub fn copy_bandwidth<B: Backend>(backend: &B) -> Result<f64> {
    // Far larger than any cache, small enough for every GPU; less on a CPU, where it takes longer.
    let bytes = if backend.name() == "cpu" { 1 << 27 } else { 1 << 30 };
    let from = backend.allocate(bytes, "the copy benchmark")?;
    let mut to = backend.allocate(bytes, "the copy benchmark")?;
    let seconds = time(backend, || Ok(backend.copy(&from, &mut to, bytes)?))?;
    Ok(2.0 * bytes as f64 / seconds)
}

/// The copy by itself.
pub fn copy<B: Backend>(backend: &B) -> Result<Vec<Row>> {
    let bandwidth = copy_bandwidth(backend)?;
    let bytes = if backend.name() == "cpu" { 1usize << 27 } else { 1 << 30 };
    Ok(vec![Row {
        operator: "copy",
        precision: "",
        reconstruct: "",
        lattice: [0; 4],
        nrhs: 1,
        microseconds: 2e6 * bytes as f64 / bandwidth,
        gflops: 0.0,
        gbps: bandwidth * 1e-9,
        fraction_of_copy: 1.0,
    }])
}

/// The Wilson hopping term from one parity to the other, by itself and in a x + b D ψ.
pub fn dslash<B: Backend>(backend: &B, options: &Options) -> Result<Vec<Row>> {
    let bandwidth = copy_bandwidth(backend)?;
    let domain = Domain::single(backend.clone(), options.lattice)?;
    let mut rows = Vec::new();
    let gauge = generate::random(options.lattice, 1);
    for (gauge, links) in gauges(&gauge, options) {
        let staged = StagedGauge::upload(&domain, &gauge)?;
        for &precision in &options.precisions {
            for &links in &links {
                macro_rules! measure {
                    ($precision:ident, $recon:ident) => {
                        wilson::<B, $precision, $recon>(&staged, options)?
                    };
                }
                rows.extend(with_links!(precision, links, measure));
            }
        }
    }
    rows.iter_mut().for_each(|row| row.fraction_of_copy = row.gbps * 1e9 / bandwidth);
    Ok(rows)
}

/// The links as they are, and in temporal gauge, each with the formats to measure in that gauge, where there are any.
fn gauges<'a>(gauge: &'a HostGauge, options: &'a Options) -> impl Iterator<Item = (Cow<'a, HostGauge>, Vec<Links>)> {
    [false, true].into_iter().filter_map(move |temporal| {
        let links: Vec<_> = options.links.iter().copied().filter(|links| links.is_temporal() == temporal).collect();
        let in_gauge =
            || if temporal { Cow::Owned(gauge_fixing::temporal_gauge(gauge).0) } else { Cow::Borrowed(gauge) };
        (!links.is_empty()).then(|| (in_gauge(), links))
    })
}

fn wilson<B: Backend, P: Precision, R: LinkFormat<P>>(staged: &StagedGauge<B>, options: &Options) -> Result<Vec<Row>> {
    let links: Arc<DeviceGauge<B, P, R>> = Arc::new(staged.pack()?);
    let domain = links.domain().clone();
    let wilson = Wilson::new(links, WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic));
    let mut fields = random_fields::<B, P, 4>(&domain, options.nrhs)?;
    let sites = options.lattice.half_volume() as f64;
    let row = |operator, flops: f64, spinors: usize, seconds: f64| {
        let bytes = sites * (R::READ_BYTES + options.nrhs * spinors * P::SPINOR_BYTES) as f64;
        Row {
            operator,
            precision: P::NAME,
            reconstruct: R::NAME,
            lattice: options.lattice.size(),
            nrhs: options.nrhs,
            microseconds: seconds * 1e6,
            gflops: flops * sites * options.nrhs as f64 / seconds * 1e-9,
            gbps: bytes / seconds * 1e-9,
            fraction_of_copy: 0.0,
        }
    };
    // Both parities in turn, the result of one call the input of the next: what a solver does.
    let backend = domain.backend().clone();
    let mut calls = 0;
    let plain = time(&backend, || {
        calls += 1;
        fields.rotate_left(1);
        let [input, out, ..] = &mut fields;
        wilson.dslash(calls % 2, false, input, out)
    })?;
    let added = time(&backend, || {
        calls += 1;
        fields.rotate_left(1);
        let [input, out, x, _] = &mut fields;
        wilson.dslash_add(calls % 2, false, (1.0, x), (-0.01, input), out)
    })?;
    Ok(vec![row("wilson_dslash", DSLASH_FLOPS, 2, plain), row("wilson_dslash_add", DSLASH_ADD_FLOPS, 3, added)])
}

/// The Wilson-clover operator: A⁻¹ D in one pass, and the symmetric even-odd matrix.
pub fn clover<B: Backend>(backend: &B, options: &Options) -> Result<Vec<Row>> {
    let bandwidth = copy_bandwidth(backend)?;
    let domain = Domain::single(backend.clone(), options.lattice)?;
    // Weak enough that no clover block is near singular.
    let gauge = generate::weak_field(options.lattice, 1, 0.2);
    let params = CloverParams::isotropic(WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic), 1.0, 1.0);
    let mut rows = Vec::new();
    for (gauge, links) in gauges(&gauge, options) {
        let staged = StagedGauge::upload(&domain, &gauge)?;
        let term = params.term(&staged.pack::<Double, Recon18>()?)?;
        for &precision in &options.precisions {
            for &links in &links {
                macro_rules! measure {
                    ($precision:ident, $recon:ident) => {
                        clover_rows::<B, $precision, $recon>(&staged, &term, params, options)?
                    };
                }
                rows.extend(with_links!(precision, links, measure));
            }
        }
    }
    rows.iter_mut().for_each(|row| row.fraction_of_copy = row.gbps * 1e9 / bandwidth);
    Ok(rows)
}

fn clover_rows<B: Backend, P: CloverFormat, R: LinkFormat<P>>(
    staged: &StagedGauge<B>,
    term: &DeviceClover<B, Double>,
    params: CloverParams,
    options: &Options,
) -> Result<Vec<Row>> {
    let links: Arc<DeviceGauge<B, P, R>> = Arc::new(staged.pack()?);
    let domain = links.domain().clone();
    let term = Arc::new(term.convert::<P>()?);
    let operator = EvenOddClover::new(Wilson::new(links, params.wilson), term, Schur::Symmetric, options.nrhs)?;
    let mut fields = random_fields::<B, P, 4>(&domain, options.nrhs)?;
    let sites = options.lattice.half_volume() as f64;
    let nrhs = options.nrhs;
    let row = |name, flops: f64, bytes: f64, seconds: f64| Row {
        operator: name,
        precision: P::NAME,
        reconstruct: R::NAME,
        lattice: options.lattice.size(),
        nrhs,
        microseconds: seconds * 1e6,
        gflops: flops * nrhs as f64 / seconds * 1e-9,
        gbps: bytes / seconds * 1e-9,
        fraction_of_copy: 0.0,
    };
    let backend = domain.backend().clone();
    let mut calls = 0;
    let dslash = time(&backend, || {
        calls += 1;
        fields.rotate_left(1);
        let [input, out, ..] = &mut fields;
        operator.dslash(calls % 2, false, input, out)
    })?;
    let matrix = time(&backend, || {
        fields.rotate_left(1);
        let [input, out, ..] = &mut fields;
        operator.apply(input, out)
    })?;
    let bytes = sites * (R::READ_BYTES + P::CLOVER_BYTES + nrhs * 2 * P::SPINOR_BYTES) as f64;
    Ok(vec![
        row("clover_dslash", (DSLASH_FLOPS + CLOVER_FLOPS) * sites, bytes, dslash),
        row("clover_matrix", operator.flops(), operator.bytes(), matrix),
    ])
}

/// Fields with random numbers in them: zeros could run faster than data.
fn random_fields<B: Backend, P: Precision, const N: usize>(
    domain: &Domain<B>,
    nrhs: usize,
) -> Result<[DeviceSpinor<B, P>; N]> {
    let mut full = crate::field::FullSpinor::zero(domain, nrhs)?;
    full.upload(&vec![generate::random_source(domain.local(), 2); nrhs])?;
    let space = SpinorSpace::<B, P>::new(domain, nrhs);
    let fields = (0..N)
        .map(|_| {
            let mut field = space.allocate()?;
            space.copy(&full.even, &mut field)?;
            Ok(field)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(fields.try_into().unwrap_or_else(|_| unreachable!("N fields were made")))
}

/// Linear algebra on fields of one parity.
pub fn blas<B: Backend>(backend: &B, options: &Options) -> Result<Vec<Row>> {
    let bandwidth = copy_bandwidth(backend)?;
    let domain = Domain::single(backend.clone(), options.lattice)?;
    let mut rows = Vec::new();
    for &precision in &options.precisions {
        rows.extend(match precision {
            IterationPrecision::Double => algebra::<B, Double>(&domain, options),
            IterationPrecision::Single => algebra::<B, Single>(&domain, options),
            IterationPrecision::Half => algebra::<B, Half>(&domain, options),
            IterationPrecision::Fp16 => algebra::<B, Fp16>(&domain, options),
        }?);
    }
    rows.iter_mut().for_each(|row| row.fraction_of_copy = row.gbps * 1e9 / bandwidth);
    Ok(rows)
}

fn algebra<B: Backend, P: Precision>(domain: &Domain<B>, options: &Options) -> Result<Vec<Row>> {
    let nrhs = options.nrhs;
    let space = SpinorSpace::<B, P>::new(domain, nrhs);
    let [x, mut y, z, w, mut v] = random_fields::<B, P, 5>(domain, nrhs)?;
    let sites = options.lattice.half_volume() as f64 * nrhs as f64;
    // Coefficients that neither grow nor shrink the fields over thousands of calls.
    let (a, b) = (vec![Complex64::new(0.5, 0.0); nrhs], vec![Complex64::new(0.5, 0.0); nrhs]);
    let (half, minus) = (vec![0.5; nrhs], vec![-0.5; nrhs]);
    let (mut norms, mut dots) = (vec![0.0; nrhs], vec![Complex64::ZERO; nrhs]);
    let mut rows = Vec::new();
    // `fields`: how many are read or written; flops per real component.
    let mut measure = |operator, fields: usize, flops: f64, work: &mut dyn FnMut() -> Result| -> Result {
        let seconds = time(domain.backend(), work)?;
        rows.push(Row {
            operator,
            precision: P::NAME,
            reconstruct: "",
            lattice: options.lattice.size(),
            nrhs,
            microseconds: seconds * 1e6,
            gflops: flops * 24.0 * sites / seconds * 1e-9,
            gbps: sites * (fields * P::SPINOR_BYTES) as f64 / seconds * 1e-9,
            fraction_of_copy: 0.0,
        });
        Ok(())
    };
    // A solver waits for each of its sums; the first row shows the kernel without that.
    measure("norm2_kernel", 1, 2.0, &mut || space.start_norm2(&x))?;
    domain.sums(&mut norms)?;
    measure("norm2", 1, 2.0, &mut || space.norm2(&x, &mut norms))?;
    measure("dot_norm2", 2, 6.0, &mut || space.dot_norm2(&x, &z, &mut dots, &mut norms))?;
    measure("axpy", 3, 4.0, &mut || space.axpby(&a, &x, &b, &mut y))?;
    measure("axpy_norm2", 3, 6.0, &mut || space.axpy_norm2(&vec![Complex64::ZERO; nrhs], &x, &mut y, &mut norms))?;
    measure("cg_update", 5, 4.0, &mut || space.cg_update(&minus, &half, &x, &mut v, &mut y))?;
    measure("bicgstab_direction", 4, 8.0, &mut || space.bicgstab_direction(&a, &b, &x, &z, &mut y))?;
    measure("bicgstab_update", 7, 18.0, &mut || {
        let none = vec![Complex64::ZERO; nrhs];
        space.bicgstab_update(&none, &none, &x, &z, &w, &mut v, &mut y, &mut dots, &mut norms)
    })?;
    domain.backend().synchronize().map_err(DeviceError::from)?;
    Ok(rows)
}
