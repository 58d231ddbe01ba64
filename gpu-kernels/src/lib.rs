//! Lattice QCD kernels: one source for the GPU and the CPU.
#![cfg_attr(target_arch = "nvptx64", no_std)]

/// One compiled kernel: what `entry!` records about it.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// Name of the entry point in PTX.
    pub name: &'static str,
    /// Which PTX module (file) it goes to; modules are loaded when first used.
    pub module: &'static str,
    /// Register cap: becomes `.maxnreg`; `cargo xtask check-ptx` fails above it. 0: the assembler chooses.
    pub registers: u32,
    /// Hot kernels may not spill, use local memory or generic loads.
    pub hot: bool,
}

/// Every kernel of the crate.
pub fn instances() -> &'static [Instance] {
    &[]
}
