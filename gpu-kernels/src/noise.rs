//! Noise for traces of inverse operators, and its products with solutions.
use crate::Kernel;
use crate::algebra::{Colour, Complex};
use crate::contraction::{SiteNumbers, column};
use crate::field::Field;
use crate::lattice::{Divisor, Geometry, Position};
use crate::random::Philox;
use crate::storage::{Colours, NumberFormat, SiteKind, Sites, Spinors, StaggeredFermion};
use crate::transfer::HostArray;

/// Position of the number of the noise vector in the stream's number. Sites have numbers below 2⁴⁸, noise vectors below 2¹⁶.
const NUMBER: u32 = 48;

/// Draws parts of noise vectors at the sites of one parity, one part for each right-hand side. Components are ±1 or (±1
/// ± i)/√2 at the times, parities, spins and colours of the part, and zero elsewhere.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct NoiseParts {
    /// Field for the noise, one part of a vector for each right-hand side.
    pub field: Field,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Position of the local lattice in the whole lattice.
    pub position: Position,
    /// Parity of the sites in the whole lattice.
    pub parity: u32,
    /// Index of the first right-hand side; the index is part + parts · vector.
    pub first: u32,
    /// Number of parts of a vector.
    pub parts: Divisor,
    /// Numbers of colours, spins, parities and times into which vectors are partitioned. The index of a part is
    /// colour + colours (spin + spins (parity + parities time)).
    pub counts: [u32; 4],
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of the substream of random numbers.
    pub substream: u32,
    /// Kind of noise: 1 for ±1, 0 for (±1 ± i)/√2.
    pub is_real: u32,
}
// SAFETY: call (i, rhs) writes the value of its own site and right-hand side only.
unsafe impl<K: SiteKind, P: NumberFormat> Kernel<Sites<K, P>> for NoiseParts {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let (vector, part) = self.parts.divide(self.first + rhs);
        let [colours, spins, parities, times] = self.counts;
        let (colour, rest) = (part % colours, part / colours);
        let (spin, rest) = (rest % spins, rest / spins);
        let (parity, time) = (rest % parities, rest / parities);
        let site = self.geometry.site(i, self.parity);
        let there = self.parity % parities == parity && (self.position.origin[3] + site.t) % times == time;
        let stream = (vector as u64) << NUMBER | self.position.lexicographic(&site);
        let bits = Philox::new(self.seed, stream, self.substream).next_u32();
        let value = K::from_host(|component| {
            let (s, c, bits) = (component as u32 / 3, component as u32 % 3, bits >> (2 * component));
            let sign = |bit: u32| if bits >> bit & 1 == 0 { 1.0 } else { -1.0 };
            if !(there && s % spins == spin && c % colours == colour) {
                Complex::ZERO
            } else if self.is_real == 1 {
                Complex { re: sign(0), im: 0.0 }
            } else {
                Complex { re: sign(0), im: sign(1) }.scale(core::f64::consts::FRAC_1_SQRT_2)
            }
        });
        unsafe { self.field.store::<Sites<K, P>>(i, rhs, &K::cast(value)) }
    }
}

/// Products of noise and solution, Σ_c η*_{sc} ψ_{tc}, at the sites of one parity, for one right-hand side of each
/// field. Spinors give the numbers `4 s + t`; colour vectors give one number.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct NoiseSpins {
    /// η
    pub noise: Field,
    /// ψ
    pub solution: Field,
    /// Output array `[4 s + t][site]`.
    pub out: HostArray,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: call i writes the numbers of its own site only.
unsafe impl<P: NumberFormat> Kernel<Spinors<P>> for NoiseSpins {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let noise = unsafe { column::<P>(&self.noise, i, 0) }.0;
        let solution = unsafe { column::<P>(&self.solution, i, 0) }.0;
        let put = unsafe { SiteNumbers::new(self.out, &self.geometry, i, self.parity, 0) };
        macro_rules! put {
            ($s:literal: $($t:literal)*) => {$( unsafe { put.number(4 * $s + $t, noise[$s].dot(solution[$t])) }; )*};
        }
        put!(0: 0 1 2 3);
        put!(1: 0 1 2 3);
        put!(2: 0 1 2 3);
        put!(3: 0 1 2 3);
    }
}
// SAFETY: call i writes the number of its own site only.
unsafe impl<P: NumberFormat> Kernel<Colours<P>> for NoiseSpins {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let noise: Colour<f64> = StaggeredFermion::cast(unsafe { self.noise.load::<Colours<P>>(i, 0) });
        let solution = StaggeredFermion::cast(unsafe { self.solution.load::<Colours<P>>(i, 0) });
        let put = unsafe { SiteNumbers::new(self.out, &self.geometry, i, self.parity, 0) };
        unsafe { put.number(0, noise.dot(solution)) };
    }
}

crate::kernels! { FAMILY = "noise";
    setup NOISE_PARTS "noise_parts": [NoiseParts] => double_spinors, double_colours;
    setup NOISE_SPINS "noise_spins": [NoiseSpins] => double_spinors, double_colours;
}
