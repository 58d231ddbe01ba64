//! Launching what solves launch, on scratch fields, so that a tuner that searches sees all of it.
use crate::backend::Backend;
use crate::bench::Options;
use crate::domain::{DeviceError, Domain, Result};
use crate::workload::{self, Extent};
use gpu_kernels::FermionKind;

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
        Operations::LinearAlgebra => {
            workload::linear_algebra(&domain, FermionKind::Wilson, options, Extent::All, &mut visit)?
        }
        Operations::ColourAlgebra => {
            workload::linear_algebra(&domain, FermionKind::Staggered, options, Extent::All, &mut visit)?
        }
    }
    backend.synchronize().map_err(DeviceError::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::lattice::Lattice;
    use gpu_kernels::{LinkStorage, Precision};

    #[test]
    fn all_operations_run() {
        let options = Options {
            lattice: Lattice::new([2, 4, 2, 4]).unwrap(),
            precisions: vec![Precision::Double, Precision::Single, Precision::Half],
            reconstructions: vec![
                LinkStorage::FULL,
                LinkStorage::of(12),
                LinkStorage::of(8),
                LinkStorage::of(9),
                LinkStorage::of(13).in_half(),
            ],
            nrhs: 2,
        };
        use Operations::*;
        for operations in [Wilson, Clover, Staggered, Improved, LinearAlgebra, ColourAlgebra] {
            launch_all(&Cpu::new(Some(1)), operations, &options).unwrap();
        }
    }
}
