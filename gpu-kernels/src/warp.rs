//! Kernels that a warp of a GPU computes together: 32 lanes add up their values.
//!
//! On a CPU a warp is a loop over its lanes. Sums are taken in the order in which a GPU's lanes exchange numbers, so that both
//! give the same bits.

use crate::algebra::{Complex, complex};

/// Number of lanes of a warp.
pub const LANES: u32 = 32;

/// Kernel in which a warp, or PARTS warps together, compute each call i for each right-hand side. A launch of `n`
/// threads, a multiple of 32 PARTS, makes the calls i in `0..n / (32 PARTS)`. The kernel is generic over formats.
///
/// # Safety
/// The contract of [`Kernel`](crate::Kernel) holds for calls of [`warp`](Self::warp).
pub unsafe trait WarpKernel<F>: Copy + Send + Sync + 'static {
    /// Number of warps that compute a call together. Several warps are a block on a GPU.
    const PARTS: u32 = 1;
    /// Computes call `i` for one right-hand side. All lanes call every function of `warp` together.
    ///
    /// # Safety
    /// The pointers inside the struct are valid for the reads and writes of call `i`, in format `F`.
    unsafe fn warp(&self, warp: Warp, i: u32, rhs: u32);
}

/// The lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub struct Warp {
    #[cfg(target_arch = "nvptx64")]
    lane: u32,
    /// Index of the warp among the warps that compute a call together.
    #[cfg(target_arch = "nvptx64")]
    part: u32,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Warp {
    /// Creates a warp, whose lanes a loop computes.
    #[cfg(all(feature = "cpu", not(test)))]
    pub(crate) fn new() -> Self {
        Warp {}
    }
    /// Calls `f` for every lane. Afterwards, all lanes can read what any lane wrote to memory.
    #[inline(always)]
    pub fn each(self, f: impl FnMut(u32)) {
        (0..LANES).for_each(f);
    }
    /// Calls `f` once. Afterwards, all lanes can read what it wrote to memory.
    #[inline(always)]
    pub fn once(self, f: impl FnOnce()) {
        f();
    }
    /// Waits for all lanes of the warp.
    #[inline(always)]
    pub fn wait(self) {}
    /// Returns Σ f(lane) over all lanes of the warp.
    #[inline(always)]
    pub fn sum<const K: usize>(self, mut f: impl FnMut(u32) -> [f32; K]) -> [f32; K] {
        let mut lanes = [[0.0; K]; LANES as usize];
        for lane in 0..LANES {
            lanes[lane as usize] = f(lane);
        }
        for half in [16, 8, 4, 2, 1] {
            for lane in 0..half {
                lanes[lane] = core::array::from_fn(|k| lanes[lane][k] + lanes[lane + half][k]);
            }
        }
        lanes[0]
    }
    /// Sums the K / 2 complex numbers f(lane), with K = 32 or 64, over lanes. If `bits` is 0, the sums are over all
    /// lanes. Otherwise `bits` is 1 or 2, and lanes with equal bits from bit `low` on form a group with its own sums. A
    /// lane passes each sum to `take` with the number of its group and the index of the sum.
    #[inline(always)]
    pub fn sum_complex<const K: usize>(
        self,
        [low, bits]: [u32; 2],
        mut f: impl FnMut(u32) -> [f32; K],
        mut take: impl FnMut(u32, u32, Complex<f32>),
    ) {
        let mut lanes = [[0.0; K]; LANES as usize];
        for lane in 0..LANES {
            lanes[lane as usize] = f(lane);
        }
        let mut added = 0;
        for exchange in 0..LANES.ilog2() - bits {
            let mask = mask(low, bits, exchange);
            added |= mask;
            for lane in (0..LANES).filter(|lane| lane & added == 0) {
                let others = lanes[(lane | mask) as usize];
                lanes[lane as usize].iter_mut().zip(&others).for_each(|(sum, other)| *sum += other);
            }
        }
        for group in 0..1 << bits {
            let sums = &lanes[(group << low) as usize];
            for number in 0..K / 2 {
                take(group, number as u32, complex(sums[2 * number], sums[2 * number + 1]));
            }
        }
    }
    /// Sums f(part, lane) over the four lanes 4 q … 4 q + 3 of each quad, and over all parts. `take` receives q and the
    /// sums.
    #[inline(always)]
    pub fn sum_quads<const PARTS: u32, const K: usize>(
        self,
        mut f: impl FnMut(u32, u32) -> [f32; K],
        mut take: impl FnMut(u32, [f32; K]),
    ) {
        for quad in 0..LANES / 4 {
            let mut of_part = |part: u32| -> [f32; K] {
                let [a, b, c, d] = [0, 1, 2, 3].map(|k| f(part, 4 * quad + k));
                core::array::from_fn(|k| (a[k] + c[k]) + (b[k] + d[k]))
            };
            let mut sums = of_part(0);
            for part in 1..PARTS {
                let others = of_part(part);
                sums = core::array::from_fn(|k| sums[k] + others[k]);
            }
            take(quad, sums);
        }
    }
    /// Returns the largest first number of f(lane) over all lanes, and the smallest second number that occurs with it.
    #[inline(always)]
    pub fn largest(self, mut f: impl FnMut(u32) -> (f32, u32)) -> (f32, u32) {
        let mut best = f(0);
        for lane in 1..LANES {
            best = larger(best, f(lane));
        }
        best
    }
}

/// Returns the bit in which two lanes that exchange sums differ, for exchange number `exchange`. Exchanges proceed from the
/// highest bit down, and skip the `bits` bits from bit `low` on that a group has in common.
#[inline(always)]
fn mask(low: u32, bits: u32, exchange: u32) -> u32 {
    let above = LANES.ilog2() - low - bits;
    1 << (LANES.ilog2() - 1 - exchange - if exchange < above { 0 } else { bits })
}

/// Returns the pair with the larger first number, or with the smaller second number if the first numbers are equal.
#[inline(always)]
fn larger(a: (f32, u32), b: (f32, u32)) -> (f32, u32) {
    if b.0 > a.0 || b.0 == a.0 && b.1 < a.1 { b } else { a }
}

#[cfg(target_arch = "nvptx64")]
impl Warp {
    /// Returns the lane and part of a thread from its number among the threads that compute a call together.
    #[inline(always)]
    pub(crate) fn new(thread: u32) -> Self {
        Warp { lane: thread % LANES, part: thread / LANES }
    }
    /// Calls `f` for every lane. Afterwards, all lanes can read what any lane wrote to memory.
    #[inline(always)]
    pub fn each(self, mut f: impl FnMut(u32)) {
        f(self.lane);
        crate::threads::synchronize_warp();
    }
    /// Calls `f` once. Afterwards, all lanes can read what it wrote to memory.
    #[inline(always)]
    pub fn once(self, f: impl FnOnce()) {
        if self.lane == 0 {
            f();
        }
        self.wait();
    }
    /// Waits for all lanes of the warp.
    #[inline(always)]
    pub fn wait(self) {
        crate::threads::synchronize_warp();
    }
    /// Returns Σ f(lane) over all lanes of the warp.
    #[inline(always)]
    pub fn sum<const K: usize>(self, mut f: impl FnMut(u32) -> [f32; K]) -> [f32; K] {
        let mut values = f(self.lane);
        macro_rules! fold {
            ($($mask:literal)*) => {$({
                let mut k = 0;
                while k < K {
                    values[k] += f32::from_bits(crate::threads::shuffle_bits(values[k].to_bits(), $mask));
                    k += 1;
                }
            })*};
        }
        fold!(16 8 4 2 1);
        values
    }
    /// Sums the K / 2 complex numbers f(lane), with K = 32 or 64, over lanes. If `bits` is 0, the sums are over all
    /// lanes. Otherwise `bits` is 1 or 2, and lanes with equal bits from bit `low` on form a group with its own sums. A
    /// lane passes each sum to `take` with the number of its group and the index of the sum.
    #[inline(always)]
    pub fn sum_complex<const K: usize>(
        self,
        [low, bits]: [u32; 2],
        mut f: impl FnMut(u32) -> [f32; K],
        mut take: impl FnMut(u32, u32, Complex<f32>),
    ) {
        // Each lane of a pair sends one half of its values to the other lane, and adds the received values to its other
        // half. The loop is written out, because compilers would not unroll such a long loop and would put its numbers
        // into memory.
        let mut values = f(self.lane);
        let mut number = 0;
        macro_rules! exchange {
            ($shift:literal: $($k:literal)*) => {{
                let mask = mask(low, bits, $shift - 1);
                let upper = self.lane & mask != 0;
                let half = const { K >> $shift };
                if upper {
                    number += half as u32;
                }
                $(if $k < half {
                    let (low, high) = (values[$k], values[$k + half]);
                    let (mine, others) = if upper { (high, low) } else { (low, high) };
                    values[$k] = mine + f32::from_bits(crate::threads::shuffle_bits(others.to_bits(), mask));
                })*
            }};
        }
        exchange!(1: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
        exchange!(2: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        exchange!(3: 0 1 2 3 4 5 6 7);
        let mut count = K as u32 >> (LANES.ilog2() - bits);
        if bits < 2 {
            exchange!(4: 0 1 2 3);
        }
        if bits < 1 {
            exchange!(5: 0 1);
            if K == 32 {
                // A lane with one part of a complex number receives the other part.
                let next = f32::from_bits(crate::threads::shuffle_bits(values[0].to_bits(), 1));
                values[1] = next;
                count = if number % 2 == 0 { 2 } else { 0 };
            }
        }
        let group = (self.lane >> low) & ((1 << bits) - 1);
        // `take` has only one call, so that it is inlined into the kernel.
        let mut k = 0;
        while k < count {
            let pick = |a: usize, b: usize, c: usize, d: usize| match k {
                0 => values[a],
                2 => values[b],
                4 => values[c],
                _ => values[d],
            };
            take(group, (number + k) / 2, complex(pick(0, 2, 4, 6), pick(1, 3, 5, 7)));
            k += 2;
        }
    }
    /// Sums f(part, lane) over the four lanes 4 q … 4 q + 3 of each quad, and over all parts. `take` receives q and the
    /// sums.
    #[inline(always)]
    pub fn sum_quads<const PARTS: u32, const K: usize>(
        self,
        mut f: impl FnMut(u32, u32) -> [f32; K],
        mut take: impl FnMut(u32, [f32; K]),
    ) {
        const { assert!((PARTS as usize - 1) * 8 * K <= crate::threads::MOST_PART_SUMS) };
        let mut values = f(self.part, self.lane);
        macro_rules! fold {
            ($($mask:literal)*) => {$({
                let mut k = 0;
                while k < K {
                    values[k] += f32::from_bits(crate::threads::shuffle_bits(values[k].to_bits(), $mask));
                    k += 1;
                }
            })*};
        }
        fold!(2 1);
        let (quad, first) = (self.lane / 4, self.lane % 4 == 0);
        if PARTS > 1 {
            let place = |part: u32, k: usize| ((part - 1) * 8 + quad) * K as u32 + k as u32;
            if first && self.part > 0 {
                let mut k = 0;
                while k < K {
                    // SAFETY: no other thread writes that place.
                    unsafe { crate::threads::put_part_sum(place(self.part, k), values[k]) };
                    k += 1;
                }
            }
            crate::threads::synchronize_block();
            let mut part = 1;
            while part < PARTS && self.part == 0 {
                let mut k = 0;
                while k < K {
                    // SAFETY: it was written before all threads of the block were waited for.
                    values[k] += unsafe { crate::threads::part_sum(place(part, k)) };
                    k += 1;
                }
                part += 1;
            }
        }
        if first && self.part == 0 {
            take(quad, values);
        }
    }
    /// Returns the index of this thread's lane in the warp.
    #[inline(always)]
    pub fn lane(self) -> u32 {
        self.lane
    }
    /// Returns the index of the warp among the warps that compute a call together.
    #[inline(always)]
    pub fn part(self) -> u32 {
        self.part
    }
    /// Returns sums over all parts. Each part passes PARTS groups of four numbers in each lane, and receives the sums
    /// of one group, whose index is that of the part.
    #[inline(always)]
    pub fn sum_of_parts<const PARTS: usize>(self, values: [[f32; 4]; PARTS]) -> [f32; 4] {
        const { assert!(PARTS * PARTS * 4 * LANES as usize <= crate::threads::MOST_PART_SUMS) };
        let place = |part: u32, group: u32, k: u32| ((part * PARTS as u32 + group) * 4 + k) * LANES + self.lane;
        let mut group = 0;
        while group < PARTS {
            let mut k = 0;
            while k < 4 {
                // SAFETY: no other thread writes that place.
                unsafe { crate::threads::put_part_sum(place(self.part, group as u32, k), values[group][k as usize]) };
                k += 1;
            }
            group += 1;
        }
        crate::threads::synchronize_block();
        let mut sums = [0.0; 4];
        let mut part = 0;
        while part < PARTS as u32 {
            let mut k = 0;
            while k < 4 {
                // SAFETY: it was written before all threads of the block were waited for.
                sums[k as usize] += unsafe { crate::threads::part_sum(place(part, self.part, k)) };
                k += 1;
            }
            part += 1;
        }
        // The threads wait here, because the next sums may overwrite the partial sums in shared memory.
        crate::threads::synchronize_block();
        sums
    }
    /// Returns the largest first number of f(lane) over all lanes, and the smallest second number that occurs with it.
    #[inline(always)]
    pub fn largest(self, mut f: impl FnMut(u32) -> (f32, u32)) -> (f32, u32) {
        let mut best = f(self.lane);
        macro_rules! fold {
            ($($mask:literal)*) => {$({
                let value = f32::from_bits(crate::threads::shuffle_bits(best.0.to_bits(), $mask));
                best = larger(best, (value, crate::threads::shuffle_bits(best.1, $mask)));
            })*};
        }
        fold!(16 8 4 2 1);
        best
    }
}

/// Calls `f` with each of the columns of a lane. The `count` columns are distributed over the lanes.
#[inline(always)]
pub(crate) fn each_column(lane: u32, count: u32, mut f: impl FnMut(u32)) {
    let mut column = lane;
    while column < count {
        f(column);
        column += LANES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_lanes_are_summed_apart() {
        let warp = Warp {};
        for (low, bits) in [(0, 0), (3, 0), (0, 1), (2, 1), (4, 1), (0, 2), (1, 2), (3, 2)] {
            let value = |lane: u32, k: usize| (lane * lane + 1000 * k as u32) as f32;
            let mut calls = 0;
            warp.sum_complex::<32>(
                [low, bits],
                |lane| core::array::from_fn(|k| value(lane, k)),
                |group, number, z| {
                    let mine = |lane: &u32| (lane >> low) & ((1 << bits) - 1) == group;
                    let sum = |k: usize| (0..LANES).filter(mine).map(|lane| value(lane, k)).sum::<f32>();
                    assert_eq!(z, complex(sum(2 * number as usize), sum(2 * number as usize + 1)), "{low}, {bits}");
                    calls += 1;
                },
            );
            assert_eq!(calls, 16 << bits);
        }
    }
}
