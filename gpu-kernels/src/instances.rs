//! Compiled instances of kernels, and the macro that generates PTX entry points and CPU functions from them.
use crate::format::Format;
use crate::multi_rhs::Variant;
use core::marker::PhantomData;

/// Compiled instance of a kernel in one format.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// Name of the entry point in PTX: the name of the kernel with the suffix of the format.
    pub name: &'static str,
    /// Format of the fields and links.
    pub format: Format,
    /// PTX module (file) that contains the entry point. Modules are loaded when first used.
    pub module: &'static str,
    /// Whether the kernel is in a hot loop, and therefore may not spill, use local memory or use generic loads.
    pub hot: bool,
    /// Number of warps that compute a call together if the kernel is a [`WarpKernel`](crate::warp::WarpKernel), else
    /// `None`.
    pub warps: Option<u32>,
    /// Launch parameters of the sum if the kernel is a reduction, else `None`.
    pub sum: Option<Sum>,
    /// Variants of the kernel for GPUs with other blockings of right-hand sides.
    pub variants: &'static [Variant],
    /// Functions that run the instance on the CPU.
    #[cfg(all(feature = "cpu", not(test)))]
    pub cpu: crate::cpu::Functions,
}

/// Properties of a [`Reduction`](crate::Reduction) that a launch needs; they are the constants of the trait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Number of values that are summed for each right-hand side.
    pub values: usize,
    /// Number of threads per block.
    pub threads: u32,
    /// Maximum number of blocks per right-hand side.
    pub blocks: u32,
    /// Whether a thread may sum over several sites.
    pub loops: bool,
    /// Whether a warp sums all right-hand sides of its sites.
    pub warps: bool,
}

impl Sum {
    /// Returns `None`, because the kernel `K` has no sums.
    pub const fn none<F, K: crate::Kernel<F>>() -> Option<Self> {
        None
    }
    /// Returns the properties of the reduction `K`.
    pub const fn of<F, K: crate::Reduction<F>>() -> Self {
        use crate::Values;
        let (values, threads) = (<K::Values as Values>::COUNT, K::THREADS);
        assert!(values <= MOST_VALUES && threads <= 256);
        Sum { values, threads, blocks: K::BLOCKS, loops: K::LOOPS, warps: K::WARPS }
    }
}

/// Maximum number of values that a reduction sums for each right-hand side.
pub const MOST_VALUES: usize = 16;

/// Table of the instances of a kernel in all its formats.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of the kernel.
    pub name: &'static str,
    /// Instances that this build contains, as one array for each list of formats.
    pub lists: &'static [&'static [Instance]],
    /// Formats for which the kernel is compiled with all features, as one array for each list of formats.
    pub all: &'static [&'static [PossibleFormat]],
}

/// Format for which a kernel is compiled if certain cargo features are on.
#[derive(Clone, Copy, Debug)]
pub struct PossibleFormat {
    /// Format of the instance.
    pub format: Format,
    /// Cargo features that the format needs, each with whether it is on in this build.
    pub features: &'static [(&'static str, bool)],
}

impl Table {
    /// Returns all instances that this build contains.
    pub fn instances(&self) -> impl Iterator<Item = &'static Instance> + use<> {
        self.lists.iter().copied().flatten()
    }
    /// Returns the instance for `format`, or `None` if this build does not contain it.
    pub fn instance(&self, format: Format) -> Option<&'static Instance> {
        self.instances().find(|instance| instance.format == format)
    }
    /// Returns the cargo features that are missing for an instance of `format`. The list is empty if the instance
    /// exists, or if no feature provides it.
    pub fn missing_features(&self, format: Format) -> impl Iterator<Item = &'static str> + use<> {
        let possible = self.all.iter().copied().flatten().find(move |possible| possible.format == format);
        possible.into_iter().flat_map(|possible| possible.features).filter(|(_, on)| !on).map(|(feature, _)| *feature)
    }
}

/// Table of a kernel with arguments of type `A`, in all its formats.
#[derive(Debug)]
pub struct Instances<A>(pub &'static Table, pub(crate) PhantomData<fn(&A)>);
/// Table of a reduction with arguments of type `A`, in all its formats.
#[derive(Debug)]
pub struct SumInstances<A>(pub &'static Table, pub(crate) PhantomData<fn(&A)>);

/// Kernels of one source file. They are compiled to PTX together, and separately from those of other files.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Name of the source file, without extension.
    pub name: &'static str,
    /// Kernels of the file.
    pub tables: &'static [&'static Table],
    /// Architectures, such as `sm_90`, for which the kernels are compiled in addition to [`OLDEST_ARCHITECTURE`], to
    /// use the instructions of the architecture. The name of the architecture is a cargo feature of the source.
    pub also_for: &'static [&'static str],
}

/// Oldest GPU architecture on which kernels run. Every family has PTX for this architecture.
pub const OLDEST_ARCHITECTURE: &str = "sm_80";

impl Family {
    /// Returns all instances of all kernels of the family.
    pub fn instances(&self) -> impl Iterator<Item = &'static Instance> + use<> {
        self.tables.iter().flat_map(|table| table.instances())
    }
}

/// Entry point of a kernel in PTX.
#[derive(Clone, Copy, Debug)]
pub struct EntryPoint {
    /// Name of the entry point.
    pub name: &'static str,
    /// PTX module that contains the entry point.
    pub module: &'static str,
    /// Whether the kernel is in a hot loop, as in [`Instance::hot`].
    pub hot: bool,
    /// Whether this entry point is one of [`Instance::variants`].
    pub variant: bool,
    /// Whether several warps compute a call of the kernel together.
    pub parts: bool,
}

impl Instance {
    /// Returns the entry points of the instance: first the one for one right-hand side in a thread, then those of the
    /// variants.
    pub fn entry_points(&self) -> impl Iterator<Item = EntryPoint> + use<> {
        let Instance { name, module, hot, variants, warps, .. } = *self;
        let one = EntryPoint { name, module, hot, variant: false, parts: warps.is_some_and(|together| together > 1) };
        let more = variants.iter().map(move |v| EntryPoint { name: v.name, variant: true, ..one });
        core::iter::once(one).chain(more)
    }
}

/// Defines the table of a family: its kernels, each with the lists of formats (`format_lists.rs`) for which it is compiled.
///
/// ```text
/// kernels! { FAMILY = "wilson";
///     kernel WILSON_DSLASH "wilson_dslash": [WilsonDslash as WithMass] => wide_links(looped 1), narrow_links(rhs 2);
/// }
/// ```
///
/// `FAMILY = "wilson" also for "sm_90"` adds a PTX for an architecture with instructions of its own
/// ([`Family::also_for`](crate::Family::also_for)).
///
/// The first word of a line is the kind of kernel. `kernel` and `reduce` stand for a kernel and a reduction in the loops of
/// solvers, `setup` and `observe` for those outside, which may spill. `warps` stands for a hot reduction with
/// [`Reduction::WARPS`](crate::Reduction::WARPS), `by_warps` and `setup_by_warps` for a
/// [`WarpKernel`](crate::warp::WarpKernel). The static by which the kernel is launched, its name, and the struct of arguments
/// follow. With `as`, the struct implements the kernel for that wrapper of each format. Parentheses contain further blockings
/// of several right-hand sides: with `rhs 2` a thread has two of them, with `looped 2` it computes all, two at a time. With
/// `, in lanes` after the struct, a CPU computes groups of sites at once in formats that the lists mark with `lanes`. With
/// `, any AnyWilsonLinks`, a CPU has one instance for all storages of links in a precision
/// ([`AnyLinks`](crate::storage::AnyLinks)), except for groups of sites. Register caps are in `registers.toml`.
#[macro_export]
macro_rules! kernels {
    ($family:ident = $source:tt $(also for $architecture:literal)*; $($kind:ident $handle:ident $name:literal: $kernel:tt
        => $($list:ident $(($($blocking:ident $rhs:literal),*))?),+;)*) => {
        $(
            #[doc = $crate::kernels!(@doc $kernel)]
            pub static $handle: $crate::kernels!(@handle $kind $kernel) =
                $crate::kernels!(@wrap $kind)(&$handle::TABLE, core::marker::PhantomData);
            // Each kernel has a module of its own, because the compiler works on modules in parallel and skips modules
            // that an edit leaves unchanged.
            #[allow(non_snake_case)]
            mod $handle {
                #[allow(unused_imports, reason = "formats and kernels name some")]
                use super::*;
                // The table is a static and not a constant, so that its functions are compiled in this crate only.
                pub static TABLE: $crate::Table = $crate::Table {
                    name: $name,
                    lists: &[$($list! { instances $kind $source $name $kernel [$($($blocking $rhs)*)?] }),+],
                    all: &[$($list! { possible $kind $source $name $kernel [] }),+],
                };
                $crate::kernels! { @any $kind $kernel }
            }
        )*
        pub(crate) static $family: $crate::Family =
            $crate::Family { name: $source, tables: &[$($handle.0),*], also_for: &[$($architecture),*] };
        // `cargo xtask build-ptx` compiles each family separately.
        #[cfg(all(target_arch = "nvptx64", feature = $source))]
        #[allow(unused_imports, reason = "formats name some")]
        mod entry_points {
            use super::*;
            use $crate::format::Between;
            use $crate::storage::*;
            $($($list! { entry_points $kind $source $name $kernel [$($($blocking $rhs)*)?] })+)*
        }
    };
    (instances [$([$($feature:literal)*] $part:literal $suffix:literal $($lanes:ident)?: $format:ty;)*]
        $kind:ident $source:literal $name:literal $kernel:tt $variants:tt) => {{
        #[allow(unused_imports, reason = "formats name some")]
        use $crate::{format::Between, storage::*};
        &[$(
            #[cfg(all($(feature = $feature),*))]
            $crate::kernels!(@instance $kind concat!($source, $part), concat!($name, $suffix), $format, $kernel $variants [$($lanes)?]),
        )*]
    }};
    (possible [$([$($feature:literal)*] $part:literal $suffix:literal $($lanes:ident)?: $format:ty;)*]
        $kind:ident $source:literal $name:literal $kernel:tt $variants:tt) => {{
        #[allow(unused_imports, reason = "formats name some")]
        use $crate::{format::Between, storage::*};
        &[$($crate::PossibleFormat {
            format: <$format as $crate::format::KernelFormat>::FORMAT,
            features: &[$(($feature, cfg!(feature = $feature))),*],
        }),*]
    }};
    (entry_points [$([$($feature:literal)*] $part:literal $suffix:literal $($lanes:ident)?: $format:ty;)*]
        $kind:ident $source:literal $name:literal $kernel:tt $variants:tt) => {$(
        #[cfg(all($(feature = $feature),*))]
        const _: () = {
            $crate::kernels! { @entries $kind concat!($name, $suffix), $format, $kernel $variants }
        };
    )*};
    (@instance $kind:ident $module:expr, $name:expr, $format:ty, $kernel:tt [$($blocking:ident $rhs:literal)*] $lanes:tt) => {
        $crate::Instance {
            name: $name,
            format: <$format as $crate::format::KernelFormat>::FORMAT,
            module: $module,
            hot: $crate::kernels!(@hot $kind),
            warps: $crate::kernels!(@warps $kind $crate::kernels!(@arguments $kernel), $crate::kernels!(@format $kernel $format)),
            sum: $crate::kernels!(@sum $kind $crate::kernels!(@arguments $kernel), $crate::kernels!(@format $kernel $format)),
            variants: &[$($crate::multi_rhs::Variant {
                name: concat!($name, "_", stringify!($blocking), "_", stringify!($rhs)),
                blocking: $crate::multi_rhs::RhsBlocking { rhs: $rhs, looped: $crate::kernels!(@looped $blocking) },
                shared: $crate::kernels!(@shared $kind $blocking $crate::kernels!(@arguments $kernel), $crate::kernels!(@format $kernel $format)),
            }),*],
            #[cfg(all(feature = "cpu", not(test)))]
            cpu: $crate::kernels!(@cpu $lanes $kernel $kind $crate::kernels!(@arguments $kernel), $crate::kernels!(@format $kernel $format), $format),
        }
    };
    (@entries $kind:ident $name:expr, $format:ty, $kernel:tt [$($blocking:ident $rhs:literal)*]) => {
        $crate::kernels! { @entry $kind $name, $crate::kernels!(@arguments $kernel), $crate::kernels!(@format $kernel $format) }
        $($crate::kernels! { @variant $kind $blocking $rhs $name, $crate::kernels!(@arguments $kernel), $crate::kernels!(@format $kernel $format) })*
    };
    (@doc [$kernel:ty $(as $wrap:ident)? $(, in lanes)? $(, any $any:ident)?]) => { concat!("[`", stringify!($kernel), "`]") };
    (@arguments [$kernel:ty $(as $wrap:ident)? $(, in lanes)? $(, any $any:ident)?]) => { $kernel };
    (@format [$kernel:ty $(, in lanes)? $(, any $any:ident)?] $format:ty) => { $format };
    (@format [$kernel:ty as $wrap:ident $(, in lanes)? $(, any $any:ident)?] $format:ty) => { $wrap<$format> };
    (@handle setup [$kernel:ty $(as $wrap:ident)? $(, in lanes)? $(, any $any:ident)?]) => { $crate::Instances<$kernel> };
    (@handle kernel [$kernel:ty $(as $wrap:ident)? $(, in lanes)? $(, any $any:ident)?]) => { $crate::Instances<$kernel> };
    (@handle by_warps [$kernel:ty $(as $wrap:ident)? $(, in lanes)? $(, any $any:ident)?]) => { $crate::Instances<$kernel> };
    (@handle setup_by_warps [$kernel:ty $(as $wrap:ident)? $(, in lanes)? $(, any $any:ident)?]) => { $crate::Instances<$kernel> };
    (@handle $kind:ident [$kernel:ty $(as $wrap:ident)? $(, in lanes)? $(, any $any:ident)?]) => { $crate::SumInstances<$kernel> };
    (@wrap setup) => { $crate::Instances };
    (@wrap kernel) => { $crate::Instances };
    (@wrap by_warps) => { $crate::Instances };
    (@wrap setup_by_warps) => { $crate::Instances };
    (@wrap $kind:ident) => { $crate::SumInstances };
    (@hot setup) => { false };
    (@hot observe) => { false };
    (@hot setup_by_warps) => { false };
    (@hot $kind:ident) => { true };
    (@warps by_warps $kernel:ty, $format:ty) => { Some(<$kernel as $crate::warp::WarpKernel<$format>>::PARTS) };
    (@warps setup_by_warps $kernel:ty, $format:ty) => { Some(<$kernel as $crate::warp::WarpKernel<$format>>::PARTS) };
    (@warps $kind:ident $kernel:ty, $format:ty) => { None };
    (@sum by_warps $kernel:ty, $format:ty) => { None };
    (@sum setup_by_warps $kernel:ty, $format:ty) => { None };
    (@sum setup $kernel:ty, $format:ty) => { $crate::Sum::none::<$format, $kernel>() };
    (@sum kernel $kernel:ty, $format:ty) => { $crate::Sum::none::<$format, $kernel>() };
    (@sum $kind:ident $kernel:ty, $format:ty) => { Some($crate::Sum::of::<$format, $kernel>()) };
    (@looped rhs) => { false };
    (@looped looped) => { true };
    (@shared $kind:ident rhs $kernel:ty, $format:ty) => { 0 };
    (@shared by_warps looped $kernel:ty, $format:ty) => { 0 };
    (@shared $kind:ident looped $kernel:ty, $format:ty) => {
        <$kernel as $crate::multi_rhs::StageLinks<$format>>::BYTES as u32 * $crate::multi_rhs::LOOPED_THREADS
    };
    (@cpu [lanes] [$arguments:ty $(as $wrap:ident)?, in lanes, any $any:ident] $kind:ident $kernel:ty, $format:ty, $links:ty) => {
        $crate::cpu_functions!($kind groups_and_any, $kernel, $format, $crate::kernels!(@any_format $($wrap)?, $any $links))
    };
    (@cpu $lanes:tt [$arguments:ty $(as $wrap:ident)? $(, in lanes)?, any $any:ident] $kind:ident $kernel:ty, $format:ty, $links:ty) => {
        $crate::cpu_functions!(@any $crate::kernels!(@any_format $($wrap)?, $any $links))
    };
    (@cpu [lanes] [$arguments:ty $(as $wrap:ident)?, in lanes] $kind:ident $kernel:ty, $format:ty, $links:ty) => {
        $crate::cpu_functions!($kind groups, $kernel, $format, ())
    };
    (@cpu $lanes:tt $arguments:tt $kind:ident $kernel:ty, $format:ty, $links:ty) => {
        $crate::cpu_functions!($kind sites, $kernel, $format, ())
    };
    (@any_format $wrap:ident, $any:ident $links:ty) => { $wrap<(<$links as $crate::format::Linked>::Precision, $any)> };
    (@any $kind:ident [$kernel:ty $(as $wrap:ident)? $(, in lanes)?, any $any:ident]) => {
        #[cfg(all(feature = "cpu", not(test)))]
        $crate::any_functions! { $kind, $kernel }
    };
    (@any $kind:ident $kernel:tt) => {};
    (@entry setup $name:expr, $kernel:ty, $format:ty) => { $crate::kernels! { @entry kernel $name, $kernel, $format } };
    (@entry observe $name:expr, $kernel:ty, $format:ty) => { $crate::kernels! { @entry reduce $name, $kernel, $format } };
    (@entry kernel $name:expr, $kernel:ty, $format:ty) => {
        /// Entry point of a kernel.
        ///
        /// # Safety
        /// The contract of [`Kernel::site`](crate::Kernel::site) holds.
        // The same compiler compiles the host code and the kernels from the same source, so the layout of the arguments
        // agrees.
        #[allow(improper_ctypes_definitions)]
        #[unsafe(export_name = $name)]
        pub unsafe extern "ptx-kernel" fn entry(kernel: $kernel, n: u32) {
            unsafe { $crate::device::run::<$format, $kernel>(&kernel, n) }
        }
    };
    (@entry setup_by_warps $name:expr, $kernel:ty, $format:ty) => {
        $crate::kernels! { @entry by_warps $name, $kernel, $format }
    };
    (@entry by_warps $name:expr, $kernel:ty, $format:ty) => {
        /// Entry point of a kernel that warps compute.
        ///
        /// # Safety
        /// The contract of [`WarpKernel::warp`](crate::warp::WarpKernel::warp) holds.
        #[allow(improper_ctypes_definitions)]
        #[unsafe(export_name = $name)]
        pub unsafe extern "ptx-kernel" fn entry(kernel: $kernel, n: u32) {
            unsafe { $crate::device::run_by_warps::<$format, $kernel>(&kernel, n) }
        }
    };
    (@entry reduce $name:expr, $kernel:ty, $format:ty) => {
        /// Entry point of a reduction.
        ///
        /// # Safety
        /// The contract of [`Reduction::site`](crate::Reduction::site) holds.
        #[allow(improper_ctypes_definitions)]
        #[unsafe(export_name = $name)]
        pub unsafe extern "ptx-kernel" fn entry(kernel: $kernel, n: u32, sums: $crate::device::Sums) {
            unsafe { $crate::device::reduce::<$format, $kernel>(&kernel, n, sums) }
        }
    };
    (@entry warps $name:expr, $kernel:ty, $format:ty) => {
        /// Entry point of a reduction in which warps compute all right-hand sides.
        ///
        /// # Safety
        /// The contract of [`WarpSum::warp`](crate::device::WarpSum::warp) holds.
        #[allow(improper_ctypes_definitions)]
        #[unsafe(export_name = $name)]
        pub unsafe extern "ptx-kernel" fn entry(kernel: $kernel, n: u32, sums: $crate::device::Sums, nrhs: u32) {
            unsafe { $crate::device::warps::sum::<$format, $kernel>(&kernel, n, sums, nrhs) }
        }
    };
    (@variant reduce $blocking:ident $rhs:literal $name:expr, $kernel:ty, $format:ty) => {
        const _: () = {
            /// Entry point of a reduction for several right-hand sides.
            ///
            /// # Safety
            /// The contract of [`MultiRhsReduction::multi_rhs`](crate::multi_rhs::MultiRhsReduction::multi_rhs) holds.
            #[allow(improper_ctypes_definitions)]
            #[unsafe(export_name = concat!($name, "_", stringify!($blocking), "_", stringify!($rhs)))]
            pub unsafe extern "ptx-kernel" fn entry(kernel: $kernel, n: u32, sums: $crate::device::Sums, nrhs: u32) {
                unsafe { $crate::device::$blocking::sum::<$format, $kernel, $rhs>(&kernel, n, sums, nrhs) }
            }
        };
    };
    (@variant by_warps looped $rhs:literal $name:expr, $kernel:ty, $format:ty) => {
        const _: () = {
            /// Entry point of a kernel that warps compute for all right-hand sides.
            ///
            /// # Safety
            /// The contract of [`LoopedWarpKernel::warp_looped`](crate::device::LoopedWarpKernel::warp_looped) holds.
            #[allow(improper_ctypes_definitions)]
            #[unsafe(export_name = concat!($name, "_looped_", stringify!($rhs)))]
            pub unsafe extern "ptx-kernel" fn entry(kernel: $kernel, n: u32, nrhs: u32) {
                unsafe { $crate::device::looped::run_by_warps::<$format, $kernel, $rhs>(&kernel, n, nrhs) }
            }
        };
    };
    (@variant kernel $blocking:ident $rhs:literal $name:expr, $kernel:ty, $format:ty) => {
        const _: () = {
            /// Entry point of a kernel for several right-hand sides.
            ///
            /// # Safety
            /// The contract of [`MultiRhsKernel::multi_rhs`](crate::multi_rhs::MultiRhsKernel::multi_rhs) holds.
            #[allow(improper_ctypes_definitions)]
            #[unsafe(export_name = concat!($name, "_", stringify!($blocking), "_", stringify!($rhs)))]
            pub unsafe extern "ptx-kernel" fn entry(kernel: $kernel, n: u32, nrhs: u32) {
                unsafe { $crate::device::$blocking::run::<$format, $kernel, $rhs>(&kernel, n, nrhs) }
            }
        };
    };
}

#[cfg(test)]
mod tests {
    /// Checks, with any features, that the compiled formats are the possible formats whose features are all on.
    #[test]
    fn formats_are_missing_for_want_of_features_only() {
        for table in crate::FAMILIES.iter().flat_map(|family| family.tables) {
            let mut present = 0;
            for possible in table.all.iter().copied().flatten() {
                let is_there = table.instance(possible.format).is_some();
                let missing = table.missing_features(possible.format).count();
                assert_eq!(is_there, missing == 0, "{} in '{}'", table.name, possible.format);
                present += usize::from(is_there);
            }
            assert_eq!(present, table.instances().count(), "{}", table.name);
        }
    }
}
