//! What exchanges with other processes do while an operator is applied.
use super::Options;
use crate::domain::{Domain, Result};
use crate::halo::Span;
use crate::tune::Operations;
use crate::workload::{self, Extent};

/// *Collective.* The timeline of this process while an operator is applied twice, from each parity to the other, after it
/// was applied a few times; empty for linear algebra, and for one process.
pub fn timeline(domain: &Domain, operations: Operations, options: &Options) -> Result<Vec<Span>> {
    let mut spans = Vec::new();
    let mut first = true;
    let mut visit = |_, call: &mut dyn FnMut() -> Result| {
        if std::mem::take(&mut first) {
            for _ in 0..4 {
                call()?;
            }
            spans = domain.timeline(|| call().and_then(|()| call()))?;
        }
        Ok(())
    };
    let workload = match operations {
        Operations::Wilson => workload::wilson,
        Operations::Clover => workload::clover,
        Operations::Staggered => workload::naive,
        Operations::Improved => workload::improved,
        Operations::LinearAlgebra | Operations::ColourAlgebra => return Ok(spans),
    };
    workload(domain, options, Extent::Shown, &mut visit)?;
    Ok(spans)
}
