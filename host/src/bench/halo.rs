//! Timeline of halo exchanges while an operator is applied.
use crate::domain::{Domain, Result};
use crate::halo::Span;
use crate::operators::Definition;
use crate::workload::Options;
use crate::workload::{self, Extent};

/// *Collective.* Returns the timeline of this process for two applications of the hopping term, one from each parity, after a warm-up. The
/// timeline is empty if there is only one process.
pub fn timeline(domain: &Domain, definition: &'static Definition, options: &Options) -> Result<Vec<Span>> {
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
    workload::operator(domain, definition, options, Extent::Shown, &mut visit)?;
    Ok(spans)
}
