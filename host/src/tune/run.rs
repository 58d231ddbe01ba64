//! Launching what solves launch, on scratch fields, so that a tuner that searches sees all of it.
use crate::backend::Backend;
use crate::bench::Options;
use crate::domain::{DeviceError, Domain, Result};
use crate::workload::{self, Extent};
use gpu_kernels::storage::{FourSpins, OneSpin};

/// A group of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operations {
    /// The Wilson operator.
    Wilson,
    /// The Wilson-clover operator, with what it takes from the Wilson operator.
    Clover,
    /// The naive staggered operator.
    Staggered,
    /// The asqtad operator, and with it HISQ.
    Improved,
    /// Linear algebra of the solvers on spinors, and changes of precision.
    LinearAlgebra,
    /// The same on colour vectors.
    ColourAlgebra,
}

/// Calls every operation of a group once, with and without dagger, on random fields. With the backend in
/// [`Mode::Search`](super::Mode::Search) that tunes their kernels; otherwise it only takes time.
pub fn launch_all(backend: &dyn Backend, operations: Operations, options: &Options) -> Result {
    let domain = Domain::single(backend, options.lattice)?;
    let mut visit = |_, call: &mut dyn FnMut() -> Result| call();
    match operations {
        Operations::Wilson => workload::wilson(&domain, options, Extent::All, &mut visit)?,
        Operations::Clover => workload::clover(&domain, options, Extent::All, &mut visit)?,
        Operations::Staggered => workload::naive(&domain, options, Extent::All, &mut visit)?,
        Operations::Improved => workload::improved(&domain, options, Extent::All, &mut visit)?,
        Operations::LinearAlgebra => workload::linear_algebra::<FourSpins>(&domain, options, Extent::All, &mut visit)?,
        Operations::ColourAlgebra => workload::linear_algebra::<OneSpin>(&domain, options, Extent::All, &mut visit)?,
    }
    backend.synchronize().map_err(DeviceError::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::lattice::Lattice;
    use crate::solve::{IterationPrecision, Reconstruction};

    #[test]
    fn all_operations_run() {
        let options = Options {
            lattice: Lattice::new([2, 4, 2, 4]).unwrap(),
            precisions: vec![IterationPrecision::Double, IterationPrecision::Single, IterationPrecision::Half],
            reconstructions: vec![
                Reconstruction::Eighteen,
                Reconstruction::Twelve,
                Reconstruction::Eight,
                Reconstruction::Nine,
                Reconstruction::ThirteenShort,
            ],
            nrhs: 2,
        };
        use Operations::*;
        for operations in [Wilson, Clover, Staggered, Improved, LinearAlgebra, ColourAlgebra] {
            launch_all(&Cpu::new(Some(1)), operations, &options).unwrap();
        }
    }
}
