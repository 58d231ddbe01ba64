//! Measurements of the speed of kernels, next to the bandwidth of a plain copy measured in the same run.
pub mod accuracy;
mod halo;
pub mod scaling;
pub mod solver;

pub use halo::timeline;

use crate::domain::{Domain, Result};
use crate::operators::Definition;
use crate::workload::{self, Extent, Options, Visit};
use gpu_kernels::{FermionKind, LinkStorage};

/// One measured operation.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchRow {
    /// Name of the operation: `wilson_dslash`, `axpy`, `copy` ….
    pub operator: String,
    /// Name of the precision: `double`, `single`, `half`, `fp16`; empty for a copy.
    pub precision: &'static str,
    /// Storage of the links: `18`, `12`, `12t` …; empty where there are no links.
    pub reconstruct: &'static str,
    /// Extents X, Y, Z, T.
    pub lattice: [usize; 4],
    /// Number of right-hand sides in one call.
    pub nrhs: usize,
    /// Time of one call: the median of several batches.
    pub microseconds: f64,
    /// 10⁹ floating-point operations per second of all processes, by the community's standard count.
    pub gflops: f64,
    /// 10⁹ bytes per second of compulsory traffic of one process: every link and every spinor once.
    pub gbps: f64,
    /// `gbps` over the copy bandwidth measured in the same run.
    pub fraction_of_copy: f64,
}

/// Number of batches whose median is taken.
const BATCHES: usize = 7;
/// Target length of a batch in seconds.
const BATCH_SECONDS: f64 = 0.01;

/// *Collective.* Returns the median time in seconds of one call of `work`, of the slowest process, after a warm-up that also determines how
/// many calls fill a batch.
fn time(domain: &Domain, work: impl FnMut() -> Result) -> Result<f64> {
    time_in(domain, BATCHES, BATCH_SECONDS, work)
}

/// *Collective.* Returns the median time in seconds of one call of `work` in `batches` batches of `seconds` seconds, of the slowest
/// process.
fn time_in(domain: &Domain, batches: usize, seconds: f64, mut work: impl FnMut() -> Result) -> Result<f64> {
    let backend = domain.backend();
    let mut batch = |calls: usize| -> Result<f64> {
        let from = backend.record()?;
        for _ in 0..calls {
            work()?;
        }
        let to = backend.record()?;
        Ok(backend.seconds_between(&from, &to)? / calls as f64)
    };
    batch(2)?;
    let one = domain.largest(batch(3)?)?;
    let calls = ((seconds / one) as usize).clamp(1, 1000);
    let mut times = (0..batches).map(|_| batch(calls)).collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    domain.largest(times[batches / 2])
}

/// Measures the bytes per second of a copy inside the device's memory, with read and written bytes counted.
pub fn copy_bandwidth(domain: &Domain) -> Result<f64> {
    let backend = domain.backend();
    // Far larger than any cache, small enough for every GPU; less on a CPU, where it takes longer.
    let bytes = if backend.name() == "cpu" { 1 << 27 } else { 1 << 30 };
    let from = backend.allocate(bytes, "the copy benchmark")?;
    let mut to = backend.allocate(bytes, "the copy benchmark")?;
    let seconds = time(domain, || Ok(backend.copy(&from, &mut to, bytes)?))?;
    Ok(2.0 * bytes as f64 / seconds)
}

/// Measures the copy by itself.
pub fn copy(domain: &Domain) -> Result<Vec<BenchRow>> {
    let bandwidth = copy_bandwidth(domain)?;
    let bytes = if domain.backend().name() == "cpu" { 1usize << 27 } else { 1 << 30 };
    Ok(vec![BenchRow {
        operator: "copy".into(),
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

/// Times the operations that `workload` visits.
fn measure(
    domain: &Domain,
    options: &Options,
    workload: impl FnOnce(&Domain, &Options, Extent, Visit) -> Result,
) -> Result<Vec<BenchRow>> {
    let bandwidth = copy_bandwidth(domain)?;
    let processes = domain.grid().size() as f64;
    let mut rows = Vec::new();
    workload(domain, options, Extent::Shown, &mut |operation, call| {
        let seconds = time(domain, call)?;
        rows.push(BenchRow {
            operator: operation.name,
            precision: operation.precision.name(),
            reconstruct: operation.storage.map_or("", LinkStorage::name),
            lattice: domain.global().size(),
            nrhs: options.nrhs,
            microseconds: seconds * 1e6,
            gflops: operation.flops / seconds * 1e-9,
            gbps: operation.bytes / processes / seconds * 1e-9,
            fraction_of_copy: operation.bytes / processes / seconds / bandwidth,
        });
        Ok(())
    })?;
    domain.backend().synchronize()?;
    Ok(rows)
}

/// Measures an operator: the hopping term from one parity to the other, by itself and with the additions that a solver makes, and the
/// even-odd matrix. For improved staggered operators link storages are those of the long links, which are in U(3) for storages that keep a
/// phase.
pub fn operator(domain: &Domain, definition: &'static Definition, options: &Options) -> Result<Vec<BenchRow>> {
    measure(domain, options, |domain, options, extent, visit| {
        workload::operator(domain, definition, options, extent, visit)
    })
}

/// Measures linear algebra on spinors of one parity.
pub fn blas(domain: &Domain, options: &Options) -> Result<Vec<BenchRow>> {
    measure(domain, options, |domain, options, extent, visit| {
        workload::linear_algebra(domain, FermionKind::Wilson, options, extent, visit)
    })
}

/// Measures linear algebra on colour vectors of one parity.
pub fn colour_blas(domain: &Domain, options: &Options) -> Result<Vec<BenchRow>> {
    measure(domain, options, |domain, options, extent, visit| {
        workload::linear_algebra(domain, FermionKind::Staggered, options, extent, visit)
    })
}
