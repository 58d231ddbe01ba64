//! Batches that become smaller: finished right-hand sides leave, and the others move to the front.
//!
//! A [`Compaction`] rearranges vectors together with the arrays of numbers that belong to them.
//! [`ReliableSolve::compact`](crate::reliable::ReliableSolve::compact) makes it after an update. From then on, the number of
//! a *slot* of a block differs from that of the caller's right-hand side.

use crate::operator::System;
use crate::traits::{LinearOperator, VectorSpace, narrow_all};
use std::ops::Index;

/// Widths that a batch takes as it becomes smaller, in descending order. Threads of a GPU share these numbers of
/// right-hand sides evenly, unlike 7, for example. Each width is at most three quarters of the previous one. Widths
/// above 16 are multiples of four.
pub const WIDTHS: [usize; 8] = [16, 12, 8, 6, 4, 3, 2, 1];

/// Plan that makes a batch smaller: the slots to swap, and the number of slots that remain.
pub(crate) struct Compaction {
    swaps: Vec<(usize, usize)>,
    width: usize,
}

impl Compaction {
    /// Returns the compaction that keeps the slots selected by `keep`, or `None` if no slot is selected or fewer than a
    /// quarter of the slots would leave. The new width is the smallest of [`WIDTHS`] that suffices, or above 16 the
    /// next multiple of four; slots that are not selected fill it up.
    pub fn new(width: usize, keep: impl Fn(usize) -> bool) -> Option<Self> {
        let kept = (0..width).filter(|&slot| keep(slot)).count();
        let fits = WIDTHS.into_iter().rev().find(|&size| size >= kept);
        let left = fits.unwrap_or(kept.next_multiple_of(4));
        if kept == 0 || 4 * left > 3 * width {
            return None;
        }
        let late = (left..width).filter(|&slot| keep(slot));
        let holes = (0..left).filter(|&slot| !keep(slot));
        Some(Self { swaps: holes.zip(late).collect(), width: left })
    }

    /// Returns the number of slots that remain.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the pairs of slots to swap.
    pub fn swaps(&self) -> &[(usize, usize)] {
        &self.swaps
    }

    /// Rearranges scalars, one for each slot, to their new order, and removes those of slots that leave.
    pub fn scalars<T>(&self, scalars: &mut Vec<T>) {
        self.swaps.iter().for_each(|&(i, j)| scalars.swap(i, j));
        scalars.truncate(self.width);
    }

    /// Rearranges rows of scalars to the new order; each row has one scalar for each slot.
    pub fn rows<T: Copy>(&self, rows: &mut Vec<T>, slots: usize) {
        let kept = rows.chunks_exact(slots).flat_map(|row| {
            let mut row = row.to_vec();
            self.scalars(&mut row);
            row
        });
        *rows = kept.collect();
    }

    /// Rearranges the vectors of a block to their new order. `scratch` loses its content.
    pub fn vectors<S: VectorSpace>(
        &self,
        space: &S,
        x: &mut S::Vector,
        scratch: &mut S::Vector,
    ) -> Result<(), S::Error> {
        self.swaps.iter().try_for_each(|&(i, j)| space.swap_rhs(x, (i, j), scratch))
    }
}

/// Right-hand side of the caller in each slot of a batch; right-hand sides that left come last.
pub(crate) struct BatchSlots {
    rhs: Vec<usize>,
    /// Slots that were swapped, in chronological order.
    swaps: Vec<(usize, usize)>,
}

impl BatchSlots {
    /// Creates the slots in the caller's order.
    pub fn new(nrhs: usize) -> Self {
        Self { rhs: (0..nrhs).collect(), swaps: Vec::new() }
    }

    /// Returns the right-hand sides in the first `slots` slots.
    pub fn first(&self, slots: usize) -> &[usize] {
        &self.rhs[..slots]
    }

    /// Applies `compaction` to the order of the slots.
    pub fn follow(&mut self, compaction: &Compaction) {
        compaction.swaps().iter().for_each(|&(i, j)| self.rhs.swap(i, j));
        self.swaps.extend(compaction.swaps());
    }

    /// Restores the caller's order of a block that followed all compactions. `scratch` loses its content.
    pub fn put_back<S: VectorSpace>(
        &self,
        space: &S,
        x: &mut S::Vector,
        scratch: &mut S::Vector,
    ) -> Result<(), S::Error> {
        self.swaps.iter().rev().try_for_each(|&(i, j)| space.swap_rhs(x, (i, j), scratch))
    }
}

impl Index<usize> for BatchSlots {
    type Output = usize;
    fn index(&self, slot: usize) -> &usize {
        &self.rhs[slot]
    }
}

/// Sets the batch width of all parts of a solve, and restores the full width, however the solve ends.
pub(crate) struct BatchWidth<'a> {
    narrow: Box<dyn Fn(usize) -> bool + 'a>,
    full: usize,
    narrowed: bool,
}

impl<'a> BatchWidth<'a> {
    /// Creates the batch width of a solve whose spaces and operators have memory for `full` right-hand sides. `narrow`
    /// sets the width of all of them, or returns false if it cannot.
    pub fn new(full: usize, narrow: impl Fn(usize) -> bool + 'a) -> Self {
        Self { narrow: Box::new(narrow), full, narrowed: false }
    }

    /// Returns whether all spaces and operators can become narrower.
    pub fn can_change(&self) -> bool {
        self.narrowed || self.full > 1 && (self.narrow)(self.full)
    }

    /// Sets the batch width to `nrhs`. Call this method only if the width [can change](Self::can_change).
    pub fn set(&mut self, nrhs: usize) {
        (self.narrow)(nrhs);
        self.narrowed = true;
    }

    /// Restores the full batch width, and returns whether the width was smaller before.
    pub fn restore(&mut self) -> bool {
        let narrowed = std::mem::take(&mut self.narrowed);
        if narrowed {
            (self.narrow)(self.full);
        }
        narrowed
    }
}

impl Drop for BatchWidth<'_> {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Narrows both a space and an operator on it, or neither of them. Returns whether it did.
pub(crate) fn narrow_both<S: VectorSpace>(
    space: &S,
    operator: &(impl LinearOperator<S> + ?Sized),
    nrhs: usize,
) -> bool {
    narrow_all(space.nrhs(), nrhs, &[&|n| space.narrow(n), &|n| operator.narrow(n)])
}

/// A right-hand side that a compaction may have to rearrange.
pub(crate) enum Rhs<'a, V> {
    /// Right-hand side of the caller, with memory for a copy. Without a copy the batch keeps its width.
    Given(&'a V, Option<&'a mut V>),
    /// Right-hand side that belongs to the solver and may be rearranged in place.
    Own(&'a mut V),
}

impl<V> Rhs<'_, V> {
    /// Returns the right-hand side in the current order of the slots.
    pub fn get(&self) -> &V {
        match self {
            Rhs::Given(b, _) => b,
            Rhs::Own(b) => b,
        }
    }

    /// Returns whether the right-hand side can be rearranged.
    pub fn can_move(&self) -> bool {
        !matches!(self, Rhs::Given(_, None))
    }

    /// Applies a compaction to the right-hand side. Before the first call, `space` must have all right-hand sides.
    pub fn follow<S: VectorSpace<Vector = V>>(
        &mut self,
        space: &S,
        compaction: &Compaction,
        scratch: &mut V,
    ) -> Result<(), S::Error> {
        if let Rhs::Given(b, copy) = self
            && let Some(copy) = copy.take()
        {
            space.copy(b, copy)?;
            *self = Rhs::Own(copy);
        }
        match self {
            Rhs::Own(b) => compaction.vectors(space, b, scratch),
            Rhs::Given(..) => Ok(()),
        }
    }
}

/// Allocates memory for a copy of b if a solve of `system` may make its batch smaller; otherwise returns `None`.
pub(crate) fn copy_of_rhs<P: VectorSpace>(
    system: &impl System<Precise = P, Error = P::Error>,
) -> Result<Option<P::Vector>, P::Error> {
    let nrhs = system.precise().nrhs();
    if nrhs > 1 && system.narrow(nrhs) { system.precise().allocate().map(Some) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::Compaction;

    #[test]
    fn plans_keep_whoever_is_not_finished() {
        for mask in 0..1u32 << 8 {
            let keep = |slot: usize| mask >> slot & 1 == 1;
            let kept = mask.count_ones() as usize;
            let left = [None, Some(1), Some(2), Some(3), Some(4), Some(6), Some(6), None, None][kept];
            let Some(plan) = Compaction::new(8, keep) else {
                assert_eq!(left, None, "{mask:b}");
                continue;
            };
            assert_eq!(Some(plan.width()), left, "{mask:b}");
            let mut slots: Vec<usize> = (0..8).collect();
            plan.scalars(&mut slots);
            assert!((0..8).filter(|slot| keep(*slot)).all(|slot| slots.contains(&slot)), "{mask:b} {slots:?}");
            slots.sort_unstable();
            slots.dedup();
            assert_eq!(slots.len(), plan.width(), "{mask:b}");
        }
        assert!(Compaction::new(1, |_| true).is_none());
        assert_eq!(Compaction::new(40, |slot| slot % 2 == 0).map(|plan| plan.width()), Some(20));
    }
}
