//! Several right-hand sides in a thread give the bits of each alone: every row of the operators, every format, links read
//! from the field and links that were kept. Fields hold random numbers; what a kernel makes of them is another test's.
#![allow(clippy::undocumented_unsafe_blocks, reason = "the contract is written once, at the first of them")]
use gpu_kernels::algebra::Real;
use gpu_kernels::clover::{CloverDslash, CloverDslashAdd, CloverRow};
use gpu_kernels::field::{Clover, Field, Links};
use gpu_kernels::ghost::Nothing;
use gpu_kernels::lattice::{Geometry, Region};
use gpu_kernels::memory::Chunk;
use gpu_kernels::random::Philox;
use gpu_kernels::row::{RowDot, RowDots};
use gpu_kernels::sides::{Stage, SumTogether, Together};
use gpu_kernels::staggered::{Dslash, DslashAdd, Hops, Improved, Naive, Number, Phases};
use gpu_kernels::storage::{
    CloverFormat, Double, Fp16, Half, LinkFormat, Precision, Recon8, Recon8T, Recon12, Recon12H, Recon12T, Recon13,
    Recon18, Single, SiteFormat, Slots, Spinors, TILE,
};
use gpu_kernels::wilson::{Hopping, WilsonDslash, WilsonDslashAdd};

/// Odd extents, and a last tile that is not full.
const GEOMETRY: Geometry = Geometry::new([2, 6, 4, 6]);
const SIDES: usize = 12;

/// Aligned memory with 32-bit words that are moderate numbers in every format.
struct Memory(Vec<Chunk>);

impl Memory {
    fn new(seed: u64, bytes: usize) -> Self {
        let mut stream = Philox::new(seed, 0, 0);
        // Of both signs; between 0.25 and 0.5 as a float of 32 bits, near 1.7 as two of 16.
        let mut word = || 0x3e80_3e80 | (stream.next_u32() & 0x80ff_80ff);
        Memory((0..bytes.div_ceil(16)).map(|_| Chunk(std::array::from_fn(|_| word()))).collect())
    }
    fn address(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

fn sites() -> u32 {
    GEOMETRY.half_volume()
}
fn tiles() -> u32 {
    sites().div_ceil(TILE as u32)
}
fn field_bytes(site: usize) -> usize {
    SIDES * tiles() as usize * TILE * site
}
fn links<P: Precision, R: LinkFormat<P>>(seed: u64) -> Memory {
    Memory::new(seed, tiles() as usize * TILE * R::SITE_BYTES)
}

/// What was written and the sums, all of them.
type Outcome = (Vec<Chunk>, Vec<f64>);

/// Runs what computes `N` right-hand sides at a site over all of them.
fn outcome<const N: usize>(out: &mut Memory, mut compute: impl FnMut(u32, u32) -> Vec<f64>) -> Outcome {
    let fresh = Memory::new(1, 16 * out.0.len());
    out.0.copy_from_slice(&fresh.0);
    let mut sums = vec![Vec::new(); SIDES];
    for first in (0..SIDES).step_by(N) {
        for i in 0..sites() {
            let values = compute(i, first as u32);
            let each = values.len() / N;
            (0..N).for_each(|k| sums[first + k].extend(&values[each * k..each * (k + 1)]));
        }
    }
    assert!(out.0 != fresh.0, "something is written");
    (out.0.clone(), sums.concat())
}

/// `$what` for two and three right-hand sides at a time. (Each is a kernel that has to be compiled.)
macro_rules! several {
    ($name:expr, $out:ident, $one:ident, $n:ident => $what:expr) => {
        several!(@ $name, $out, $one, $n => $what; 2 3)
    };
    (@ $name:expr, $out:ident, $one:ident, $n:ident => $what:expr; $($count:literal)*) => {$({
        const $n: usize = $count;
        assert!(outcome::<$n>($out, $what) == $one, "{}, {} at a time", $name, $count);
    })*};
}

/// A kernel.
fn kernel<K: Together>(out: &mut Memory, make: impl Fn(*mut u8) -> K) -> Outcome {
    let (name, kernel) = (K::NAME.join("_"), make(out.address()));
    // SAFETY: here and below, every pointer of a kernel is to memory of its test, of the size of its field.
    let one = outcome::<1>(out, |i, rhs| unsafe {
        kernel.site(i, rhs);
        vec![]
    });
    several!(name, out, one, N => |i, first| unsafe {
        kernel.sides::<N>(i, first);
        vec![]
    });
    one
}

/// A kernel whose links can be kept.
fn staged<K: Together + Stage<Staged: Together>>(out: &mut Memory, make: impl Fn(*mut u8) -> K) {
    let one = kernel(out, &make);
    let (name, kernel) = (K::NAME.join("_"), make(out.address()));
    assert!(K::BYTES.is_multiple_of(64), "whole slots for four directions");
    several!(format!("{name}, links kept"), out, one, N => |i, first| unsafe {
        K::turned(kernel.stage(i), first).sides::<N>(i, first);
        vec![]
    });
}

/// A row with sums.
fn sums<K: SumTogether<Values = [f64; V]>, const V: usize>(out: &mut Memory, make: impl Fn(*mut u8) -> K) -> Outcome {
    let (name, kernel) = (K::NAME.join("_"), make(out.address()));
    let one = outcome::<1>(out, |i, rhs| unsafe { kernel.site(i, rhs).to_vec() });
    assert!(one.1.len() == V * SIDES * sites() as usize && one.1.iter().all(|x| *x != 0.0), "{name}");
    several!(name, out, one, N => |i, first| unsafe { kernel.sides::<N>(i, first).concat() });
    one
}

/// The same with links that can be kept.
fn staged_sums<K, const V: usize>(out: &mut Memory, make: impl Fn(*mut u8) -> K)
where
    K: SumTogether<Values = [f64; V]> + Stage<Staged: SumTogether<Values = [f64; V]>>,
{
    let one = sums(out, &make);
    let (name, kernel) = (K::NAME.join("_"), make(out.address()));
    several!(format!("{name}, links kept"), out, one, N => |i, first| unsafe {
        K::turned(kernel.stage(i), first).sides::<N>(i, first).concat()
    });
}

/// What rows of the Wilson operators read, and the memory of all that.
struct Operands<P: CloverFormat, R> {
    hopping: [Hopping<P, R>; 2],
    x: Field<Spinors<P>>,
    w: Field<Spinors<P>>,
    clover: Clover<P>,
    _memory: [Memory; 5],
}

/// Memory for results, and operands.
fn operands<P: CloverFormat, R: LinkFormat<P>>() -> (Memory, Operands<P, R>) {
    let bytes = field_bytes(P::SPINOR_BYTES);
    let [mut input, mut x, mut w, out] = [2, 3, 4, 1].map(|seed| Memory::new(seed, bytes));
    let mut clover = Memory::new(5, field_bytes(P::CLOVER_BYTES) / SIDES);
    let mut packed = links::<P, R>(6);
    let real = |x: f64| <P::Real as Real>::from_f64(x);
    let (geometry, region, time, time_across) = (GEOMETRY, Region::WHOLE, real(1.5), real(-1.5));
    // SAFETY: the memory stays with the views of it.
    let operands = unsafe {
        let (links, read) = (Links::new(packed.address()), Field::new(input.address(), tiles()));
        Operands {
            hopping: [0, 1].map(|parity| Hopping { input: read, links, geometry, region, parity, time, time_across }),
            x: Field::new(x.address(), tiles()),
            w: Field::new(w.address(), tiles()),
            clover: Clover::new(clover.address()),
            _memory: [input, x, w, clover, packed],
        }
    };
    (out, operands)
}
fn field<F: SiteFormat>(address: *mut u8) -> Field<F> {
    unsafe { Field::new(address, tiles()) }
}

/// All rows of the Wilson and the Wilson-clover operator.
fn all_rows<P: CloverFormat, R: LinkFormat<P, Pair: Slots>>() {
    let (mut out, Operands { hopping, x, w, clover, _memory }) = operands::<P, R>();
    let (a, b) = (<P::Real as Real>::from_f64(0.75), <P::Real as Real>::from_f64(-0.4));
    let (out, inverse) = (&mut out, clover);
    for hopping in hopping {
        staged(out, |out| WilsonDslash::<P, R, false> { out: field(out), hopping });
        staged(out, |out| WilsonDslash::<P, R, true> { out: field(out), hopping });
        let row = |out| WilsonDslashAdd::<P, R, false> { out: field(out), x, a, b, hopping };
        staged(out, row);
        staged_sums(out, |out| RowDot { row: row(out), w });
        staged_sums(out, |out| RowDots { row: row(out), w });
        // In place.
        staged(out, |out| WilsonDslashAdd::<P, R, false> { out: field(out), x: field(out), a, b, hopping });

        staged(out, |out| CloverDslash::<P, R, false> { out: field(out), inverse, hopping });
        let row = |out| CloverDslashAdd::<P, R> { out: field(out), x, b, inverse, hopping };
        staged(out, row);
        staged_sums(out, |out| RowDots { row: row(out), w });
        staged(out, |out| CloverRow::<P, R, false> { out: field(out), x, b, clover, hopping });
        staged(out, |out| CloverRow::<P, R, true> { out: field(out), x, b, clover, hopping });
    }
}

/// One that reads everything: links, the clover term, x and w.
fn one_row<P: CloverFormat, R: LinkFormat<P, Pair: Slots>>() {
    let (mut out, Operands { hopping, x, w, clover: inverse, _memory }) = operands::<P, R>();
    let b = <P::Real as Real>::from_f64(-0.4);
    for hopping in hopping {
        let row = |out| CloverDslashAdd::<P, R> { out: field(out), x, b, inverse, hopping };
        staged_sums(&mut out, |out| RowDots { row: row(out), w });
    }
}

/// Rows of a staggered operator.
fn rows<H: Hops>(hops: H, (a, b): (Number<H>, Number<H>)) {
    let bytes = field_bytes(<H::Precision as Precision>::COLOUR_BYTES);
    let [mut x, mut w, mut out] = [3, 4, 1].map(|seed| Memory::new(seed, bytes));
    let (x, w) = (field(x.address()), field(w.address()));
    kernel(&mut out, |out| Dslash { out: field(out), hops });
    let row = |out| DslashAdd { out: field(out), x, a, b, hops };
    kernel(&mut out, row);
    sums(&mut out, |out| RowDot { row: row(out), w });
}

/// All rows of the staggered operators, with links of thin links' format for the naive one, and long ones for the other.
fn staggered<P: Precision, R: LinkFormat<P>>()
where
    R::Full: LinkFormat<P>,
{
    let mut input = Memory::new(2, field_bytes(P::COLOUR_BYTES));
    let (mut fat, mut long) = (links::<P, R::Full>(5), links::<P, R>(6));
    let real = |x: f64| <P::Real as Real>::from_f64(x);
    let phases = Phases::new([0b1000, 0b1001, 0b1011, 0]);
    // SAFETY: as above.
    unsafe {
        let input = Field::new(input.address(), tiles());
        let (fat, long) = (Links::<P, R::Full>::new(fat.address()), Links::<P, R>::new(long.address()));
        let (geometry, region, beyond) = (GEOMETRY, Region::WHOLE, Nothing);
        for parity in [0, 1] {
            let (factor, across) = (real(0.9), real(-1.0));
            let near = Naive { input, links: fat, geometry, region, phases, parity, factor, across, beyond };
            let naive = Naive { input, links: long, geometry, region, phases, parity, factor, across, beyond };
            rows(naive, (real(0.75), real(-0.4)));
            rows(Improved { near, long, factor: real(-0.04) }, (real(0.75), real(-0.4)));
        }
    }
}

#[test]
fn rows_of_wilson_operators() {
    all_rows::<Single, Recon12>();
}
#[test]
fn formats_of_wilson_operators() {
    one_row::<Double, Recon18>();
    one_row::<Double, Recon8T>();
    one_row::<Single, Recon8>();
    one_row::<Single, Recon12T>();
    one_row::<Half, Recon18>();
    one_row::<Half, Recon12>();
    one_row::<Fp16, Recon18>();
    one_row::<Fp16, Recon12T>();
}
#[test]
fn staggered_rows() {
    staggered::<Double, Recon12>();
    staggered::<Single, Recon12H>();
    staggered::<Half, Recon13>();
}
