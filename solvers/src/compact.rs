//! Batches that become smaller: right-hand sides that are finished leave, and those that are not move to the front.
//!
//! Vectors and the arrays of numbers that belong to them are rearranged together, by a [`Plan`] that
//! [`Run::compact`](crate::reliable::Run::compact) makes after an update. From then on a *slot* of a block is not the
//! caller's right-hand side of that number.

use crate::traits::VectorSpace;

/// Which slots change places, and how many are left.
pub(crate) struct Plan {
    swaps: Vec<(usize, usize)>,
    width: usize,
}

impl Plan {
    /// The plan that keeps the slots that `keep` says, if it pays: where a quarter of them leaves at least. Each width
    /// that a batch goes through costs the swaps, and on a GPU kernels that have to be tuned for it.
    pub fn new(width: usize, keep: impl Fn(usize) -> bool) -> Option<Self> {
        let left = (0..width).filter(|&slot| keep(slot)).count();
        if left == 0 || 4 * left > 3 * width {
            return None;
        }
        let holes = (0..left).filter(|&slot| !keep(slot));
        let late = (left..width).filter(|&slot| keep(slot));
        Some(Self { swaps: holes.zip(late).collect(), width: left })
    }

    /// Slots that are left.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The pairs that change places.
    pub fn swaps(&self) -> &[(usize, usize)] {
        &self.swaps
    }

    /// Numbers of slots in their new order, those that leave cut off.
    pub fn numbers<T>(&self, numbers: &mut Vec<T>) {
        self.swaps.iter().for_each(|&(i, j)| numbers.swap(i, j));
        numbers.truncate(self.width);
    }

    /// The vectors of a block in their new order. `scratch` loses its content.
    pub fn vectors<S: VectorSpace>(
        &self,
        space: &S,
        x: &mut S::Vector,
        scratch: &mut S::Vector,
    ) -> Result<(), S::Error> {
        self.swaps.iter().try_for_each(|&(i, j)| space.swap_sides(x, (i, j), scratch))
    }
}

/// A right-hand side that may have to be rearranged.
pub(crate) enum Rhs<'a, V> {
    /// The caller's, with memory for a copy, without which a batch stays as wide as it is.
    Given(&'a V, Option<&'a mut V>),
    /// The solver's own, which nobody needs afterwards.
    Own(&'a mut V),
}

impl<V> Rhs<'_, V> {
    /// In the present order.
    pub fn get(&self) -> &V {
        match self {
            Rhs::Given(b, _) => b,
            Rhs::Own(b) => b,
        }
    }

    /// Whether it can be rearranged.
    pub fn can_move(&self) -> bool {
        !matches!(self, Rhs::Given(_, None))
    }

    /// Follows a plan. `space` still has all sides the first time.
    pub fn follow<S: VectorSpace<Vector = V>>(
        &mut self,
        space: &S,
        plan: &Plan,
        scratch: &mut V,
    ) -> Result<(), S::Error> {
        if let Rhs::Given(b, copy) = self
            && let Some(copy) = copy.take()
        {
            space.copy(b, copy)?;
            *self = Rhs::Own(copy);
        }
        match self {
            Rhs::Own(b) => plan.vectors(space, b, scratch),
            Rhs::Given(..) => Ok(()),
        }
    }
}

/// Whether a solve of `system` may make its batch smaller, and so needs memory for a copy of b.
pub(crate) fn shrinks(system: &impl crate::operator::System) -> bool {
    let sides = system.precise().nrhs();
    sides > 1 && system.narrow(sides)
}

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn plans_keep_whoever_is_not_finished() {
        for mask in 0..1u32 << 8 {
            let keep = |slot: usize| mask >> slot & 1 == 1;
            let left = mask.count_ones() as usize;
            let Some(plan) = Plan::new(8, keep) else {
                assert!(left == 0 || left > 6, "{mask:b}");
                continue;
            };
            assert!((1..=6).contains(&left) && plan.width() == left);
            let mut slots: Vec<usize> = (0..8).collect();
            plan.numbers(&mut slots);
            assert!(slots.len() == left && slots.iter().all(|slot| keep(*slot)), "{mask:b} {slots:?}");
            slots.sort_unstable();
            slots.dedup();
            assert_eq!(slots.len(), left, "{mask:b}");
        }
        assert!(Plan::new(1, |_| true).is_none());
    }
}
