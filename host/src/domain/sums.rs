//! Sums of a reduction that is launched in several parts.
use super::{Domain, Result};
use crate::backend::{Backend, Call, DeviceBuffer, MAX_RHS_PER_LAUNCH, REDUCTION_SLOTS, Stream};

/// Largest number of values of a reduction.
const WIDTH: usize = 8;

/// Destination of the sums of a reduction.
#[derive(Clone, Copy)]
pub(crate) enum SumTarget<'a> {
    /// Host memory; the host adds the parts.
    Host,
    /// Device memory from this number on; kernels read the sums of the parts.
    Device(&'a DeviceBuffer, usize),
}

impl SumTarget<'_> {
    /// Launches a reduction on `stream`, or on the main stream if `stream` is `None`.
    pub fn reduce(
        &self,
        backend: &dyn Backend,
        stream: Option<&Stream>,
        kernel: Call<'_>,
        n: u32,
        nrhs: u32,
        slot: usize,
    ) -> Result {
        match self {
            SumTarget::Host => backend.sum(stream, kernel, n, nrhs, slot)?,
            SumTarget::Device(buffer, first) => backend.sum_into(stream, kernel, n, nrhs, (buffer, first + slot))?,
        }
        Ok(())
    }
}

/// Parts of a reduction that have been launched, with the number of values that each has for a right-hand side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartialSums {
    nrhs: usize,
    widths: [usize; 5],
}

impl PartialSums {
    /// Returns sums for `nrhs` right-hand sides, of which no part has been launched.
    pub fn new(nrhs: usize) -> Self {
        PartialSums { nrhs, widths: [0; 5] }
    }
    /// Records a part with `width` values for each right-hand side, and returns its first slot.
    pub fn slot(&mut self, part: usize, width: usize) -> usize {
        debug_assert!(width <= WIDTH && self.nrhs <= MAX_RHS_PER_LAUNCH);
        self.widths[part] = width;
        part * WIDTH * self.nrhs
    }
    /// Returns the number of slots between the first slots of consecutive parts.
    pub fn stride(&self) -> u32 {
        (WIDTH * self.nrhs) as u32
    }
    /// Returns the number of values for a right-hand side in each part; 0 for a part that was not launched.
    pub fn widths(&self) -> [u32; 5] {
        self.widths.map(|width| width as u32)
    }
    /// *Collective.* Waits for the launched parts, and writes their sums to `out`, added over the parts and then over the processes in a
    /// fixed order. `out` has `out.len()` / nrhs values for each right-hand side. If a part has more values, `pick` lists the indices of
    /// those to use.
    pub fn collect(&self, domain: &Domain, pick: &[usize], out: &mut [f64]) -> Result {
        let mut slots = [0.0; REDUCTION_SLOTS];
        let last = self.widths.iter().rposition(|width| *width > 0).unwrap_or(0);
        let slots = &mut slots[..(last + 1) * WIDTH * self.nrhs];
        domain.backend().sums(slots)?;
        let wanted = out.len() / self.nrhs;
        out.fill(0.0);
        for (part, width) in self.widths.into_iter().enumerate().filter(|(_, width)| *width > 0) {
            for (j, out) in out.chunks_exact_mut(wanted).enumerate() {
                let values = &slots[part * WIDTH * self.nrhs + j * width..][..width];
                for (k, out) in out.iter_mut().enumerate() {
                    *out += values[if width == wanted { k } else { pick[k] }];
                }
            }
        }
        domain.sum(out)
    }
}
