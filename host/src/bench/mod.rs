//! Measurements of the speed of kernels, compared with the bandwidth of a copy measured in the same run.
mod halo;
pub mod scaling;
pub mod solver;

pub use halo::timeline;

use crate::domain::{Domain, Result};
use crate::operators::Definition;
use crate::workload::{self, Extent, Options, Visit};
use gpu_kernels::{FermionKind, LinkStorage};

/// Speed of one operation in one format.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchRow {
    /// Name of the operation, such as `wilson_dslash`, `axpy` or `copy`.
    pub operator: String,
    /// Name of the precision: `double`, `single`, `half`, `fp16`; empty for a copy.
    pub precision: &'static str,
    /// Storage of the links, such as `18`, `12` or `12t`; empty for an operation without links.
    pub reconstruct: &'static str,
    /// Extents X, Y, Z, T of the whole lattice; zeros for a copy.
    pub lattice: [usize; 4],
    /// Number of right-hand sides in one call.
    pub nrhs: usize,
    /// Time of one call in microseconds: the median of several batches.
    pub microseconds: f64,
    /// Rate of all processes together in 10⁹ floating-point operations per second, by the standard count of the community.
    pub gflops: f64,
    /// Memory traffic of one process in 10⁹ bytes per second. Only compulsory traffic counts: every link and every spinor once.
    pub gbps: f64,
    /// Ratio of `gbps` to the bandwidth of a copy measured in the same run.
    pub fraction_of_copy: f64,
}

/// Number of batches; the median of their times counts.
const BATCHES: usize = 7;
/// Target length of a batch in seconds.
const BATCH_SECONDS: f64 = 0.01;

/// *Collective.* Returns the time of one call of `work` in seconds: the median over batches, for the slowest process.
fn time(domain: &Domain, work: impl FnMut() -> Result) -> Result<f64> {
    time_in(domain, BATCHES, BATCH_SECONDS, work)
}

/// *Collective.* Returns the time of one call of `work` in seconds: the median of `batches` batches of about `seconds` seconds each, for
/// the slowest process. A warm-up determines how many calls fill a batch.
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

/// Measures the bandwidth of a copy within the device's memory, in bytes per second; read and written bytes both count.
pub fn copy_bandwidth(domain: &Domain) -> Result<f64> {
    let backend = domain.backend();
    // The size is far larger than any cache and small enough for every GPU. It is smaller on a CPU, where a copy takes longer.
    let bytes = if backend.name() == "cpu" { 1 << 27 } else { 1 << 30 };
    let from = backend.allocate(bytes, "the copy benchmark")?;
    let mut to = backend.allocate(bytes, "the copy benchmark")?;
    let seconds = time(domain, || Ok(backend.copy(&from, &mut to, bytes)?))?;
    Ok(2.0 * bytes as f64 / seconds)
}

/// Measures the bandwidth of a copy within the device's memory, and returns it as the only row of a table.
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

/// Times the operations that `workload` visits, and returns a row for each.
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

/// Measures the operations of an operator, and returns a row for each: the hopping term from one parity to the other, alone and with the
/// additions that a solver needs, and the even-odd matrix. The link storages of improved staggered operators apply to the long links. For
/// storages that keep a phase, the links are in U(3).
pub fn operator(domain: &Domain, definition: &'static Definition, options: &Options) -> Result<Vec<BenchRow>> {
    measure(domain, options, |domain, options, extent, visit| {
        workload::operator(domain, definition, options, extent, visit)
    })
}

/// Measures the operations of linear algebra on spinors of one parity, and returns a row for each.
pub fn blas(domain: &Domain, options: &Options) -> Result<Vec<BenchRow>> {
    measure(domain, options, |domain, options, extent, visit| {
        workload::linear_algebra(domain, FermionKind::Wilson, options, extent, visit)
    })
}

/// Measures the operations of linear algebra on colour vectors of one parity, and returns a row for each.
pub fn colour_blas(domain: &Domain, options: &Options) -> Result<Vec<BenchRow>> {
    measure(domain, options, |domain, options, extent, visit| {
        workload::linear_algebra(domain, FermionKind::Staggered, options, extent, visit)
    })
}
