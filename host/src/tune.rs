//! Launches of all kernels that solves use, on scratch fields, for a tuner that searches.
use crate::backend::Backend;
use crate::domain::{DeviceError, Domain, Result};
use crate::operators::Definition;
use crate::workload::Options;
use crate::workload::{self, Extent};
use gpu_kernels::FermionKind;

/// Group of operations whose kernels are launched together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operations {
    /// Hopping term and even-odd matrices of an operator.
    Operator(&'static Definition),
    /// Linear algebra of the solvers on fields of one fermion type, and changes of precision.
    LinearAlgebra(FermionKind),
}

/// Calls every operation of a group once on random fields, operators also with dagger. If the mode of the backend is
/// [`Mode::Search`](crate::backend::tuning::Mode::Search), this tunes their kernels; otherwise it has no effect.
pub fn launch_all(backend: &dyn Backend, operations: Operations, options: &Options) -> Result {
    let domain = Domain::single(backend, options.lattice)?;
    let mut visit = |_, call: &mut dyn FnMut() -> Result| call();
    match operations {
        Operations::Operator(definition) => {
            workload::operator(&domain, definition, options, Extent::All, &mut visit)?;
        }
        Operations::LinearAlgebra(kind) => {
            workload::linear_algebra(&domain, kind, options, Extent::All, &mut visit)?;
        }
    }
    backend.synchronize().map_err(DeviceError::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::field::FERMION_KINDS;
    use crate::lattice::Lattice;
    use crate::operators::OPERATORS;
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
        let kinds = FERMION_KINDS.map(Operations::LinearAlgebra);
        for operations in OPERATORS.into_iter().map(Operations::Operator).chain(kinds) {
            launch_all(&Cpu::new(Some(1)), operations, &options).unwrap();
        }
    }
}
