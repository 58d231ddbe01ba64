//! Several right-hand sides in a thread give the bits of each alone: every hopping term, every format, links read
//! from the field and links that were kept. Fields hold random numbers; what a kernel makes of them is another test's.
#![allow(clippy::undocumented_unsafe_blocks, reason = "the contract is written once, at the first of them")]
use gpu_kernels::diagonal::{AnyDiagonal, CloverBlocks, DiagonalArguments, Mass, SiteDiagonal};
use gpu_kernels::dslash::{Dslash, DslashDot, DslashDots, Plain};
use gpu_kernels::field::{Clover, Field, Links};
use gpu_kernels::ghost::Ghosts;
use gpu_kernels::lattice::{Geometry, Region};
use gpu_kernels::memory::Chunk;
use gpu_kernels::multi_rhs::{MultiRhsKernel, MultiRhsReduction, StageLinks};
use gpu_kernels::random::Philox;
use gpu_kernels::staggered::{Hops, Improved, Naive, Phases, StaggeredDslash, StaggeredFormat};
use gpu_kernels::storage::{
    CloverFormat, Double, Fp16, Half, LinkFormat, NumberFormat, PADDING, Recon8, Recon8T, Recon12, Recon12H, Recon12T,
    Recon13, Recon18, Reconstruct, Single, Slots,
};
use gpu_kernels::wilson::{
    AllForms, Exterior, FixedForms, Forms, HopForms, Hopping, Interior, SumForms, WilsonDslash, WilsonFormat,
};
use gpu_kernels::{Kernel, Reduction};

/// Odd extents, and a last tile that is not full.
const GEOMETRY: Geometry = Geometry::new([2, 6, 4, 6]);
const NRHS: usize = 12;

/// Aligned memory with 32-bit words that are moderate numbers in every format.
struct TestMemory(Vec<Chunk>);

impl TestMemory {
    fn new(seed: u64, bytes: usize) -> Self {
        let mut stream = Philox::new(seed, 0, 0);
        // Of both signs; between 0.25 and 0.5 as a float of 32 bits, near 1.7 as two of 16.
        let mut word = || 0x3e80_3e80 | (stream.next_u32() & 0x80ff_80ff);
        TestMemory((0..bytes.div_ceil(16)).map(|_| Chunk(std::array::from_fn(|_| word()))).collect())
    }
    fn address(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

fn sites() -> u32 {
    GEOMETRY.half_volume()
}
fn step() -> u32 {
    sites().div_ceil(PADDING as u32)
}
fn field_bytes(site: usize) -> usize {
    NRHS * step() as usize * PADDING * site
}
fn links<P: NumberFormat, R: LinkFormat<P>>(seed: u64) -> TestMemory {
    TestMemory::new(seed, step() as usize * PADDING * R::SITE_BYTES)
}

/// All memory of the result, and all sums.
type Outcome = (Vec<Chunk>, Vec<f64>);

/// Runs what computes `N` right-hand sides at a site over all of them.
fn outcome<const N: usize>(out: &mut TestMemory, mut compute: impl FnMut(u32, u32) -> Vec<f64>) -> Outcome {
    let fresh = TestMemory::new(1, 16 * out.0.len());
    out.0.copy_from_slice(&fresh.0);
    let mut sums = vec![Vec::new(); NRHS];
    for first in (0..NRHS).step_by(N) {
        for i in 0..sites() {
            let values = compute(i, first as u32);
            let each = values.len() / N;
            (0..N).for_each(|k| sums[first + k].extend(&values[each * k..each * (k + 1)]));
        }
    }
    assert!(out.0 != fresh.0, "something is written");
    (out.0.clone(), sums.concat())
}

/// `$what` for these numbers of right-hand sides at a time. (Each is a kernel that has to be compiled.)
macro_rules! several {
    ($($count:literal)*, $name:expr, $out:ident, $one:ident, $n:ident => $what:expr) => {
        $(several!(@ $count $name, $out, $one, $n => $what);)*
    };
    (@ $count:literal $name:expr, $out:ident, $one:ident, $n:ident => $what:expr) => {{
        const $n: usize = $count;
        assert!(outcome::<$n>($out, $what) == $one, "{}, {} at a time", $name, $count);
    }};
}

/// A hopping term without sums.
fn plain<F, K: Dslash<F>>(name: &str, out: &mut TestMemory, make: &dyn Fn(*mut u8) -> K) -> Outcome {
    let kernel = make(out.address());
    // SAFETY: here and below, every pointer of a kernel is to memory of its test, of the size of its field.
    let one = outcome::<1>(out, |i, rhs| unsafe {
        Kernel::<Plain<F>>::site(&kernel, i, rhs);
        vec![]
    });
    several!(2, name, out, one, N => |i, first| unsafe {
        MultiRhsKernel::<Plain<F>>::multi_rhs::<N>(&kernel, i, first);
        vec![]
    });
    one
}

/// A hopping term whose links can be kept.
fn staged_dslash<F, K>(name: &str, out: &mut TestMemory, make: &dyn Fn(*mut u8) -> K)
where
    K: Dslash<F> + StageLinks<F> + Dslash<<K as StageLinks<F>>::Staged>,
{
    let one = plain::<F, K>(name, out, make);
    let kernel = make(out.address());
    assert!(<K as StageLinks<F>>::BYTES.is_multiple_of(64), "whole slots for four directions");
    several!(2, format!("{name}, links kept"), out, one, N => |i, first| unsafe {
        let staged = <K as StageLinks<F>>::for_rhs(StageLinks::<F>::stage(&kernel, i), first);
        MultiRhsKernel::<Plain<<K as StageLinks<F>>::Staged>>::multi_rhs::<N>(&staged, i, first);
        vec![]
    });
}

/// A hopping term with sums in format `S`, which has V of them.
fn sums<S, K, const V: usize>(name: &str, out: &mut TestMemory, make: &dyn Fn(*mut u8) -> K) -> Outcome
where
    K: MultiRhsReduction<S> + Reduction<S, Values = [f64; V]>,
{
    let kernel = make(out.address());
    let one = outcome::<1>(out, |i, rhs| unsafe { Reduction::<S>::site(&kernel, i, rhs).to_vec() });
    assert!(one.1.len() == V * NRHS * sites() as usize && one.1.iter().all(|x| *x != 0.0), "{name}");
    several!(2, name, out, one, N => |i, first| unsafe { MultiRhsReduction::<S>::multi_rhs::<N>(&kernel, i, first).concat() });
    one
}

/// A hopping term with sums in format `S` whose links can be kept.
fn staged_sums<S, K, const V: usize>(name: &str, out: &mut TestMemory, make: &dyn Fn(*mut u8) -> K)
where
    K: MultiRhsReduction<S> + Reduction<S, Values = [f64; V]> + StageLinks<S>,
    K: MultiRhsReduction<<K as StageLinks<S>>::Staged> + Reduction<<K as StageLinks<S>>::Staged, Values = [f64; V]>,
{
    let one = sums::<S, K, V>(name, out, make);
    let kernel = make(out.address());
    several!(2, format!("{name}, links kept"), out, one, N => |i, first| unsafe {
        let staged = <K as StageLinks<S>>::for_rhs(StageLinks::<S>::stage(&kernel, i), first);
        MultiRhsReduction::<<K as StageLinks<S>>::Staged>::multi_rhs::<N>(&staged, i, first).concat()
    });
}

/// Operands of Wilson-like hopping terms, with their memory.
struct Operands {
    dslashes: [WilsonDslash; 2],
    clover: Clover,
    _memory: [TestMemory; 5],
}

/// Memory for results, and operands.
fn operands<P: CloverFormat, R: LinkFormat<P>>() -> (TestMemory, Operands) {
    let bytes = field_bytes(P::SPINOR_BYTES);
    let [mut input, mut x, mut w, out] = [2, 3, 4, 1].map(|seed| TestMemory::new(seed, bytes));
    let mut clover = TestMemory::new(5, field_bytes(P::CLOVER_BYTES) / NRHS);
    let mut packed = links::<P, R>(6);
    // SAFETY: the memory stays with the views of it.
    let operands = unsafe {
        let (links, read) = (Links::new(packed.address(), R::STORAGE), Field::new(input.address(), step()));
        let dslashes = [0, 1].map(|parity| WilsonDslash {
            out: Field::none(),
            x: Field::new(x.address(), step()),
            w: Field::new(w.address(), step()),
            sum: 0,
            dagger: 0,
            b: (-0.4).into(),
            diagonal: DiagonalArguments::mass(0.75),
            hopping: Hopping {
                input: read,
                links,
                geometry: GEOMETRY,
                region: Region::WHOLE,
                parity,
                time: 1.5.into(),
                time_across: (-1.5).into(),
            },
            ghosts: Ghosts::NONE,
        });
        Operands { dslashes, clover: Clover::new(clover.address()), _memory: [input, x, w, clover, packed] }
    };
    (out, operands)
}
fn field(address: *mut u8) -> Field {
    unsafe { Field::new(address, step()) }
}

type InteriorForm<P, R, A, W> = WilsonFormat<(P, R), A, Interior, W>;
type ExteriorForm<P, R, W> = WilsonFormat<(P, R), AnyDiagonal, Exterior, W>;

/// WilsonFormat with a diagonal in the forms of `W`: by the kernel for the interior, and by the kernel for the exterior, which sees no
/// ghosts here and has to give the same.
fn dslashes_with<P: CloverFormat, R: LinkFormat<P, Pair: Slots>, A: SiteDiagonal, W: Forms>(
    out: &mut TestMemory,
    dslashes: [WilsonDslash; 2],
    diagonal: DiagonalArguments,
    sums: &[u32],
) {
    for dslash in dslashes {
        for sum in sums.iter().copied() {
            for dagger in [0, 1] {
                let dslash = WilsonDslash { sum, dagger, diagonal, ..dslash };
                let name = format!("{diagonal:?}, sum {sum}, dagger {dagger}");
                let make = |out| WilsonDslash { out: field(out), ..dslash };
                staged_dslash::<InteriorForm<P, R, A, W>, _>(&name, out, &make);
                let interior = plain::<InteriorForm<P, R, A, W>, _>(&name, out, &make);
                assert!(interior == plain::<ExteriorForm<P, R, AllForms>, _>(&name, out, &make), "{name}: exterior");
                // In place.
                let in_place = |out| WilsonDslash { out: field(out), x: field(out), ..dslash };
                staged_dslash::<InteriorForm<P, R, A, W>, _>(&name, out, &in_place);
            }
        }
    }
}

/// WilsonFormat with sums.
fn sums_with<P: CloverFormat, R: LinkFormat<P, Pair: Slots>, A: SiteDiagonal>(
    out: &mut TestMemory,
    dslashes: [WilsonDslash; 2],
    diagonal: DiagonalArguments,
) {
    for dslash in dslashes {
        let make = |out| WilsonDslash { out: field(out), sum: 1, diagonal, ..dslash };
        staged_sums::<DslashDot<InteriorForm<P, R, A, FixedForms>>, _, 3>("with a dot product", out, &make);
        staged_sums::<DslashDots<InteriorForm<P, R, A, FixedForms>>, _, 8>("with dot products", out, &make);
        let interior = sums::<DslashDots<InteriorForm<P, R, A, FixedForms>>, _, 8>("with dot products", out, &make);
        assert!(
            interior == sums::<DslashDots<ExteriorForm<P, R, FixedForms>>, _, 8>("with dot products", out, &make),
            "exterior"
        );
    }
}

/// One that reads everything: links, the clover term, x and w.
fn one_row<P: CloverFormat, R: LinkFormat<P, Pair: Slots>>() {
    let (mut out, Operands { dslashes, clover, _memory }) = operands::<P, R>();
    for dslash in dslashes {
        let diagonal = DiagonalArguments::clover(clover, true);
        let make = |out| WilsonDslash { out: field(out), sum: 1, diagonal, ..dslash };
        staged_sums::<DslashDots<InteriorForm<P, R, CloverBlocks, FixedForms>>, _, 8>("clover", &mut out, &make);
    }
}

/// WilsonFormat of a staggered operator.
fn staggered_with<P: NumberFormat, H: Hops<P>>(dslash: StaggeredDslash) {
    let bytes = field_bytes(P::COLOUR_BYTES);
    let [mut x, mut w, mut out] = [3, 4, 1].map(|seed| TestMemory::new(seed, bytes));
    let dslash = StaggeredDslash { x: field(x.address()), w: field(w.address()), ..dslash };
    for sum in [0, 1] {
        let make = |out| StaggeredDslash { out: field(out), sum, ..dslash };
        let interior = plain::<StaggeredFormat<P, H, Interior, false>, _>("staggered", &mut out, &make);
        let (kernel, memory) = (make(out.address()), &mut out);
        several!(3 4, "staggered", memory, interior, N => |i, first| unsafe {
            MultiRhsKernel::<Plain<StaggeredFormat<P, H, Interior, false>>>::multi_rhs::<N>(&kernel, i, first);
            vec![]
        });
        assert!(
            interior == plain::<StaggeredFormat<P, H, Exterior, false>, _>("staggered", &mut out, &make),
            "exterior"
        );
    }
    let make = |out| StaggeredDslash { out: field(out), ..dslash };
    let interior = sums::<DslashDot<StaggeredFormat<P, H, Interior, true>>, _, 3>("staggered", &mut out, &make);
    let (kernel, memory) = (make(out.address()), &mut out);
    several!(3 4, "staggered", memory, interior, N => |i, first| unsafe {
        MultiRhsReduction::<DslashDot<StaggeredFormat<P, H, Interior, true>>>::multi_rhs::<N>(&kernel, i, first).concat()
    });
    assert!(
        interior == sums::<DslashDot<StaggeredFormat<P, H, Exterior, true>>, _, 3>("staggered", &mut out, &make),
        "exterior"
    );
}

/// All hopping terms of staggered operators, with links of thin links' format for the naive one, and long ones for the other.
fn staggered<P: NumberFormat, R: LinkFormat<P>>()
where
    R::Full: LinkFormat<P>,
{
    let mut input = TestMemory::new(2, field_bytes(P::COLOUR_BYTES));
    let (mut fat, mut long) = (links::<P, R::Full>(5), links::<P, R>(6));
    // SAFETY: as above.
    unsafe {
        let (fat, long) = (Links::new(fat.address(), R::Full::STORAGE), Links::new(long.address(), R::STORAGE));
        for parity in [0, 1] {
            let dslash = StaggeredDslash {
                out: Field::none(),
                x: Field::none(),
                w: Field::none(),
                sum: 1,
                parity,
                a: 0.75.into(),
                b: (-0.4).into(),
                input: Field::new(input.address(), step()),
                geometry: GEOMETRY,
                region: Region::WHOLE,
                phases: Phases::new([0b1000, 0b1001, 0b1011, 0]),
                across: (-1.0).into(),
                links: fat,
                factor: 0.9.into(),
                long,
                long_factor: (-0.04).into(),
                ghosts: Ghosts::NONE,
            };
            staggered_with::<P, Naive<R>>(StaggeredDslash { links: long, ..dslash });
            staggered_with::<P, Improved<R>>(dslash);
        }
    }
}

#[test]
fn rows_of_wilson_operators() {
    let (mut out, Operands { dslashes, clover, _memory }) = operands::<Single, Recon12>();
    let (mass, out) = (DiagonalArguments::mass(0.75), &mut out);
    let [inverse, term] = [true, false].map(|inverse| DiagonalArguments::clover(clover, inverse));
    dslashes_with::<Single, Recon12, Mass, HopForms>(out, dslashes, mass, &[0, 1]);
    sums_with::<Single, Recon12, Mass>(out, dslashes, mass);
    dslashes_with::<Single, Recon12, CloverBlocks, HopForms>(out, dslashes, inverse, &[0, 1]);
    dslashes_with::<Single, Recon12, CloverBlocks, SumForms>(out, dslashes, term, &[1]);
    sums_with::<Single, Recon12, CloverBlocks>(out, dslashes, inverse);
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
