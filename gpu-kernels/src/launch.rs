//! What a kernel is, and the macros that turn instances of generic kernels into PTX entry points.

/// Work done independently for every site index in `0..n` and every right-hand side.
///
/// # Safety
/// `site(i, rhs)` may be called for all sites and right-hand sides at once, from different threads. Whoever implements
/// the trait promises that different calls write different elements, and that it has no address but those of views such as
/// [`Field`](crate::field::Field): whoever makes a view promises that its memory has all sites and right-hand sides that
/// kernels with it are launched for.
pub unsafe trait Kernel: Copy + Send + Sync + 'static {
    /// The parts of the entry point's name, joined by `_`: kernel, precision, reconstruction ….
    const NAME: &'static [&'static str];
    /// Computes one site of one right-hand side.
    ///
    /// # Safety
    /// The pointers inside the struct must be valid for site `i` and the sites it reads.
    unsafe fn site(&self, i: u32, rhs: u32);
    /// Which site call number `i` of a launch computes: site `i`, if the kernel does not compute a part of the lattice.
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        i
    }
    /// The same for a launch that computes several right-hand sides together, for which another order may be faster.
    #[inline(always)]
    fn place_together(&self, i: u32) -> u32 {
        self.place(i)
    }
}

/// A kernel that also returns numbers to be summed over all sites, separately for every right-hand side.
///
/// # Safety
/// As for [`Kernel`].
pub unsafe trait Reduction: Copy + Send + Sync + 'static {
    /// The parts of the entry point's name.
    const NAME: &'static [&'static str];
    /// What is summed: `[f64; K]`.
    type Values: Values;
    /// Threads per block on a GPU: at most 256, and 128 with 16 values, whose sums over a warp a block shares, but with
    /// [`WARPS`](Self::WARPS). Fixed for a kernel, because the order of the sum depends on it.
    const THREADS: u32 = 256;
    /// Most blocks per right-hand side on a GPU, where threads have several sites; also part of the order of the sum.
    const BLOCKS: u32 = 1056;
    /// Whether a thread may have several sites. Without, there are as many blocks as sites need, and no loop, from which
    /// compilers take out all that is the same for all sites, into registers that are not there.
    const LOOPS: bool = true;
    /// Whether a warp on a GPU computes all right-hand sides of its sites together, with `WarpSum` in place of
    /// [`site`](Self::site): at most 32, for at most one of which each thread has the sums.
    const WARPS: bool = false;
    /// Computes one site of one right-hand side.
    ///
    /// # Safety
    /// The pointers inside the struct must be valid for site `i` and the sites it reads.
    unsafe fn site(&self, i: u32, rhs: u32) -> Self::Values;
    /// As [`Kernel::place`].
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        i
    }
    /// As [`Kernel::place_together`].
    #[inline(always)]
    fn place_together(&self, i: u32) -> u32 {
        self.place(i)
    }
}

/// A few numbers that are summed together.
pub trait Values: Copy + Send + Sync + 'static {
    /// How many.
    const COUNT: usize;
    /// All zero.
    const ZERO: Self;
    /// Component-wise sum.
    fn add(self, other: Self) -> Self;
    /// Applies `f` to every component, unrolled.
    fn map(self, f: impl FnMut(f64) -> f64) -> Self;
    /// Component `k`; only for constant `k` on the GPU.
    fn get(&self, k: usize) -> f64;
}

macro_rules! values {
    ($($count:literal: $($k:literal)*;)*) => {$(
        impl Values for [f64; $count] {
            const COUNT: usize = $count;
            const ZERO: Self = [0.0; $count];
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                [$(self[$k] + other[$k]),*]
            }
            #[inline(always)]
            fn map(self, mut f: impl FnMut(f64) -> f64) -> Self {
                [$(f(self[$k])),*]
            }
            #[inline(always)]
            fn get(&self, k: usize) -> f64 {
                self[k]
            }
        }
    )*};
}
values! {
    1: 0;
    2: 0 1;
    3: 0 1 2;
    4: 0 1 2 3;
    8: 0 1 2 3 4 5 6 7;
    16: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15;
}

/// One compiled kernel: what [`entry!`](crate::entry) records about it.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// Name of the entry point in PTX.
    pub name: &'static str,
    /// The name as [`Kernel::NAME`] gives it; a test compares the two.
    pub parts: &'static [&'static str],
    /// Which PTX module (file) it goes to; modules are loaded when first used.
    pub module: &'static str,
    /// Register cap: becomes `.maxnreg`, and `cargo xtask check-ptx` fails above it. 0: the assembler chooses.
    pub registers: u32,
    /// Hot kernels may not spill, use local memory or generic loads.
    pub hot: bool,
    /// The other ways in which it is compiled for GPUs.
    pub variants: &'static [crate::sides::Variant],
    /// The instance on the CPU.
    #[cfg(all(feature = "cpu", not(test)))]
    pub cpu: crate::cpu::Entry,
}

/// The instances of one source file. They are compiled to PTX together, and apart from those of other files.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name of the file.
    pub name: &'static str,
    /// Its kernels.
    pub instances: &'static [Instance],
}

/// An entry point in PTX.
#[derive(Clone, Copy, Debug)]
pub struct EntryPoint {
    /// Its name.
    pub name: &'static str,
    /// The PTX module.
    pub module: &'static str,
    /// As [`Instance::registers`].
    pub registers: u32,
    /// As [`Instance::hot`].
    pub hot: bool,
}

impl Instance {
    /// For one right-hand side in a thread, and the variants.
    pub fn entry_points(&self) -> impl Iterator<Item = EntryPoint> + use<> {
        let Instance { name, module, registers, hot, variants, .. } = *self;
        let one = EntryPoint { name, module, registers, hot };
        let more = variants.iter().map(move |v| EntryPoint { name: v.name, registers: v.registers, ..one });
        core::iter::once(one).chain(more)
    }
}

/// Names the instances of generic kernels that exist in PTX, one line each:
///
/// `kernel "wilson_single" wilson_dslash_single_12: WilsonDslash<Single, Recon12, false>, registers 168;`
///
/// The first word is `kernel` or `reduce` for what solvers call in their loops, `setup` or `observe` for a kernel or a
/// reduction outside them, which may spill; `warps` for a hot reduction with [`Reduction::WARPS`]. Then the module, the entry point, the type and the register cap. Further ways
/// to compute several right-hand sides follow with caps of their own: `, sides 2 at 128` for two in a thread,
/// `, looped 2 at 168` for two at a time, until a thread has computed all.
#[macro_export]
macro_rules! entry {
    ($list:ident of $family:tt: $($kind:ident $module:literal $name:ident: $kernel:ty, registers $registers:literal
        $(, $way:ident $sides:literal at $cap:literal)*;)*) => {
        // Static, not const: the functions it points to are compiled in this crate and in no other.
        pub(crate) static $list: $crate::Family = $crate::Family { name: $family, instances: &[$(
            $crate::Instance {
                name: stringify!($name),
                parts: $crate::entry!(@parts $kind $kernel),
                module: $module,
                registers: $registers,
                hot: $crate::entry!(@hot $kind),
                variants: &[$($crate::sides::Variant {
                    name: concat!(stringify!($name), "_", stringify!($way), "_", stringify!($sides)),
                    way: $crate::sides::Way { sides: $sides, looped: $crate::entry!(@looped $way) },
                    registers: $cap,
                    shared: $crate::entry!(@shared $way $kernel),
                }),*],
                #[cfg(all(feature = "cpu", not(test)))]
                cpu: $crate::entry!(@cpu $kind $kernel),
            },
        )*] };
        // `cargo xtask build-ptx` compiles each family by itself.
        #[cfg(all(target_arch = "nvptx64", feature = $family))]
        mod entry_points {
            use super::*;
            $(
                $crate::entry!(@entry $kind $name $kernel);
                $($crate::entry!(@variant $kind $way $sides $name $kernel);)*
            )*
        }
    };
    (@hot setup) => { false };
    (@hot observe) => { false };
    (@hot $kind:ident) => { true };
    (@looped sides) => { false };
    (@looped looped) => { true };
    (@shared sides $kernel:ty) => { 0 };
    (@shared looped $kernel:ty) => {
        <$kernel as $crate::sides::Stage>::BYTES as u32 * $crate::sides::LOOPED_THREADS
    };
    (@parts warps $kernel:ty) => { $crate::entry!(@parts reduce $kernel) };
    (@parts observe $kernel:ty) => { $crate::entry!(@parts reduce $kernel) };
    (@parts reduce $kernel:ty) => { <$kernel as $crate::Reduction>::NAME };
    (@parts $kind:ident $kernel:ty) => { <$kernel as $crate::Kernel>::NAME };
    (@cpu warps $kernel:ty) => { $crate::cpu_entry!(sum, $kernel) };
    (@cpu observe $kernel:ty) => { $crate::cpu_entry!(sum, $kernel) };
    (@cpu reduce $kernel:ty) => { $crate::cpu_entry!(sum, $kernel) };
    (@cpu $kind:ident $kernel:ty) => { $crate::cpu_entry!(run, $kernel) };
    (@entry observe $name:ident $kernel:ty) => { $crate::entry!(@entry reduce $name $kernel); };
    (@entry reduce $name:ident $kernel:ty) => {
        /// # Safety
        /// As [`Reduction::site`](crate::Reduction::site).
        // Both ends are compiled by the same compiler from the same source.
        #[allow(improper_ctypes_definitions)]
        #[unsafe(no_mangle)]
        pub unsafe extern "ptx-kernel" fn $name(kernel: $kernel, n: u32, sums: $crate::device::Sums) {
            unsafe { $crate::device::reduce(&kernel, n, sums) }
        }
    };
    (@entry warps $name:ident $kernel:ty) => {
        /// # Safety
        /// As [`WarpSum::warp`](crate::device::WarpSum::warp).
        // Both ends are compiled by the same compiler from the same source.
        #[allow(improper_ctypes_definitions)]
        #[unsafe(no_mangle)]
        pub unsafe extern "ptx-kernel" fn $name(kernel: $kernel, n: u32, sums: $crate::device::Sums, nrhs: u32) {
            unsafe { $crate::device::warps::sum(&kernel, n, sums, nrhs) }
        }
    };
    (@entry $kind:ident $name:ident $kernel:ty) => {
        /// # Safety
        /// As [`Kernel::site`](crate::Kernel::site).
        // Both ends are compiled by the same compiler from the same source.
        #[allow(improper_ctypes_definitions)]
        #[unsafe(no_mangle)]
        pub unsafe extern "ptx-kernel" fn $name(kernel: $kernel, n: u32) {
            unsafe { $crate::device::run(&kernel, n) }
        }
    };
    (@variant reduce $way:ident $sides:literal $name:ident $kernel:ty) => {
        const _: () = {
            /// # Safety
            /// As [`SumTogether::sides`](crate::sides::SumTogether::sides).
            #[allow(improper_ctypes_definitions)]
            #[unsafe(export_name = concat!(stringify!($name), "_", stringify!($way), "_", stringify!($sides)))]
            pub unsafe extern "ptx-kernel" fn entry(kernel: $kernel, n: u32, sums: $crate::device::Sums, nrhs: u32) {
                unsafe { $crate::device::$way::sum::<$kernel, $sides>(&kernel, n, sums, nrhs) }
            }
        };
    };
    (@variant $kind:ident $way:ident $sides:literal $name:ident $kernel:ty) => {
        const _: () = {
            /// # Safety
            /// As [`Together::sides`](crate::sides::Together::sides).
            #[allow(improper_ctypes_definitions)]
            #[unsafe(export_name = concat!(stringify!($name), "_", stringify!($way), "_", stringify!($sides)))]
            pub unsafe extern "ptx-kernel" fn entry(kernel: $kernel, n: u32, nrhs: u32) {
                unsafe { $crate::device::$way::run::<$kernel, $sides>(&kernel, n, nrhs) }
            }
        };
    };
}
