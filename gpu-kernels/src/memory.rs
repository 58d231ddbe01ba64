//! Global memory of kernels: 16-byte chunks, and the few instructions that differ between GPU and CPU.
#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

/// Chunk of 16 bytes, the unit in which fields are read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Chunk(pub [u32; 4]);

/// Half of a chunk, 8 bytes, for records whose size is not a multiple of 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct HalfChunk(pub [u32; 2]);

/// Address in device memory, or in host memory for the CPU backend.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Global(pub *mut u8);

// SAFETY: an address; the contract of `Kernel::site` defines who may use it, and when.
unsafe impl Send for Global {}
// SAFETY: as above.
unsafe impl Sync for Global {}

/// Returns `x`, hidden from the optimiser of compilers for GPUs.
#[inline(always)]
pub fn opaque(x: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let mut x = x;
        // SAFETY: an instruction that does nothing.
        unsafe { asm!("// {0}", inout(reg32) x, options(pure, nomem, nostack)) };
        x
    }
    #[cfg(not(target_arch = "nvptx64"))]
    x
}

/// Kind of access to memory, which determines the instruction on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing writes the field while the kernel runs, so that the read-only path is used.
    Shared,
    /// Like `Shared`, but data is read only once and does not displace other data from the first-level cache.
    Once,
    /// The kernel itself writes the element that it reads.
    Own,
}

#[cfg(target_arch = "nvptx64")]
macro_rules! load {
    ($instruction:literal, $address:expr, [$($w:ident),*], $slots:literal, $from:literal, $options:tt) => {{
        $(let $w: u32;)*
        load!(@asm $options, concat!($instruction, " {{", $slots, "}}, [{", $from, "}];"), $address, $($w),*);
        [$($w),*]
    }};
    (@asm (shared), $text:expr, $address:expr, $($w:ident),*) => {
        asm!($text, $(out(reg32) $w,)* in(reg64) $address, options(pure, nomem, nostack))
    };
    (@asm (own), $text:expr, $address:expr, $($w:ident),*) => {
        asm!($text, $(out(reg32) $w,)* in(reg64) $address, options(nostack))
    };
}

impl Global {
    /// Returns the address `self + bytes`.
    ///
    /// # Safety
    /// The address is inside the same allocation.
    #[inline(always)]
    pub unsafe fn offset(self, bytes: usize) -> Self {
        Global(unsafe { self.0.add(bytes) })
    }
    /// Reads 16 bytes at the address `self + bytes`.
    ///
    /// # Safety
    /// `self + bytes` is valid and aligned, and read as `access` promises.
    #[inline(always)]
    pub unsafe fn load16(self, bytes: usize, access: Access) -> Chunk {
        let address = unsafe { self.0.add(bytes) };
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            Chunk(match access {
                Access::Shared => {
                    load!("ld.global.nc.v4.b32", address, [a, b, c, d], "{0}, {1}, {2}, {3}", 4, (shared))
                }
                Access::Once => load!(
                    "ld.global.nc.L1::no_allocate.v4.b32",
                    address,
                    [a, b, c, d],
                    "{0}, {1}, {2}, {3}",
                    4,
                    (shared)
                ),
                Access::Own => load!("ld.global.v4.b32", address, [a, b, c, d], "{0}, {1}, {2}, {3}", 4, (own)),
            })
        }
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe {
            let _ = access;
            *(address as *const Chunk)
        }
    }
    /// Reads 8 bytes at the address `self + bytes`.
    ///
    /// # Safety
    /// The contract of [`load16`](Self::load16) holds.
    #[inline(always)]
    pub unsafe fn load8(self, bytes: usize, access: Access) -> HalfChunk {
        let address = unsafe { self.0.add(bytes) };
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            HalfChunk(match access {
                Access::Shared => load!("ld.global.nc.v2.b32", address, [a, b], "{0}, {1}", 2, (shared)),
                Access::Once => {
                    load!("ld.global.nc.L1::no_allocate.v2.b32", address, [a, b], "{0}, {1}", 2, (shared))
                }
                Access::Own => load!("ld.global.v2.b32", address, [a, b], "{0}, {1}", 2, (own)),
            })
        }
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe {
            let _ = access;
            *(address as *const HalfChunk)
        }
    }
    /// Reads a 32-bit float at the address `self + bytes`.
    ///
    /// # Safety
    /// The contract of [`load16`](Self::load16) holds.
    #[inline(always)]
    pub unsafe fn load4(self, bytes: usize, access: Access) -> f32 {
        let address = unsafe { self.0.add(bytes) };
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            let word: u32;
            match access {
                Access::Own => asm!("ld.global.b32 {0}, [{1}];", out(reg32) word, in(reg64) address, options(nostack)),
                _ => asm!("ld.global.nc.b32 {0}, [{1}];", out(reg32) word, in(reg64) address,
                    options(pure, nomem, nostack)),
            }
            f32::from_bits(word)
        }
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe {
            let _ = access;
            *(address as *const f32)
        }
    }
    /// Writes 16 bytes at the address `self + bytes`.
    ///
    /// # Safety
    /// `self + bytes` is valid and aligned, and no other thread writes there.
    #[inline(always)]
    pub unsafe fn store16(self, bytes: usize, chunk: Chunk) {
        let address = unsafe { self.0.add(bytes) };
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            let [a, b, c, d] = chunk.0;
            asm!("st.global.v4.b32 [{4}], {{{0}, {1}, {2}, {3}}};", in(reg32) a, in(reg32) b, in(reg32) c,
                in(reg32) d, in(reg64) address, options(nostack));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe {
            *(address as *mut Chunk) = chunk
        }
    }
    /// Writes 8 bytes at the given address.
    ///
    /// # Safety
    /// The contract of [`store16`](Self::store16) holds.
    #[inline(always)]
    pub unsafe fn store8(self, bytes: usize, chunk: HalfChunk) {
        let address = unsafe { self.0.add(bytes) };
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            let [a, b] = chunk.0;
            asm!("st.global.v2.b32 [{2}], {{{0}, {1}}};", in(reg32) a, in(reg32) b, in(reg64) address,
                options(nostack));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe {
            *(address as *mut HalfChunk) = chunk
        }
    }
    /// Writes a 32-bit float at the address `self + bytes`.
    ///
    /// # Safety
    /// The contract of [`store16`](Self::store16) holds.
    #[inline(always)]
    pub unsafe fn store4(self, bytes: usize, x: f32) {
        let address = unsafe { self.0.add(bytes) };
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            asm!("st.global.b32 [{1}], {0};", in(reg32) x.to_bits(), in(reg64) address, options(nostack));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe {
            *(address as *mut f32) = x
        }
    }
}

/// Access to the shared memory of a block.
#[cfg(target_arch = "nvptx64")]
pub mod shared {
    use super::{Chunk, HalfChunk, asm};

    /// Reads 16 bytes of shared memory at `address`.
    ///
    /// # Safety
    /// The address is valid and aligned, and written by no other thread meanwhile.
    #[inline(always)]
    pub unsafe fn load16(address: u32) -> Chunk {
        let (a, b, c, d);
        unsafe {
            asm!("ld.shared.v4.b32 {{{0}, {1}, {2}, {3}}}, [{4}];", out(reg32) a, out(reg32) b, out(reg32) c,
                out(reg32) d, in(reg32) address, options(nostack, readonly));
        }
        Chunk([a, b, c, d])
    }
    /// Reads 8 bytes of shared memory at `address`.
    ///
    /// # Safety
    /// The contract of [`load16`] holds.
    #[inline(always)]
    pub unsafe fn load8(address: u32) -> HalfChunk {
        let (a, b);
        unsafe {
            asm!("ld.shared.v2.b32 {{{0}, {1}}}, [{2}];", out(reg32) a, out(reg32) b, in(reg32) address,
                options(nostack, readonly));
        }
        HalfChunk([a, b])
    }
    /// Writes 16 bytes to shared memory at `address`.
    ///
    /// # Safety
    /// The address is valid and aligned, and used by no other thread meanwhile.
    #[inline(always)]
    pub unsafe fn store16(address: u32, chunk: Chunk) {
        let [a, b, c, d] = chunk.0;
        unsafe {
            asm!("st.shared.v4.b32 [{4}], {{{0}, {1}, {2}, {3}}};", in(reg32) a, in(reg32) b, in(reg32) c,
                in(reg32) d, in(reg32) address, options(nostack));
        }
    }
    /// Writes 8 bytes to shared memory at `address`.
    ///
    /// # Safety
    /// The contract of [`store16`] holds.
    #[inline(always)]
    pub unsafe fn store8(address: u32, chunk: HalfChunk) {
        let [a, b] = chunk.0;
        unsafe {
            asm!("st.shared.v2.b32 [{2}], {{{0}, {1}}};", in(reg32) a, in(reg32) b, in(reg32) address,
                options(nostack));
        }
    }
}

/// Returns the float whose low 16 bits are the low 16 bits of `word` and whose high 16 bits are those of `high`. A GPU
/// needs one byte permutation.
#[inline(always)]
pub fn low_half_over(word: u32, high: u32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    return f32::from_bits(permute::<0x7610>(word, high));
    #[cfg(not(target_arch = "nvptx64"))]
    return f32::from_bits((word & 0xffff) | (high & 0xffff_0000));
}
/// Returns the float whose low 16 bits are the high 16 bits of `word` and whose high 16 bits are those of `high`.
#[inline(always)]
pub fn high_half_over(word: u32, high: u32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    return f32::from_bits(permute::<0x7632>(word, high));
    #[cfg(not(target_arch = "nvptx64"))]
    return f32::from_bits((word >> 16) | (high & 0xffff_0000));
}
/// Returns a word with the low half of `low` in its low half and the low half of `high` in its high half.
#[inline(always)]
pub fn join_low_halves(low: u32, high: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return permute::<0x5410>(low, high);
    #[cfg(not(target_arch = "nvptx64"))]
    return (low & 0xffff) | (high << 16);
}
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn permute<const SELECT: u32>(a: u32, b: u32) -> u32 {
    let out: u32;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("prmt.b32 {0}, {1}, {2}, {3};", out(reg32) out, in(reg32) a, in(reg32) b, const SELECT,
            options(pure, nomem, nostack));
    }
    out
}

/// Returns 1/x, rounded on a GPU as on a CPU except for a few arguments, so that fixed-point codes agree.
#[inline(always)]
pub fn reciprocal(x: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        use crate::algebra::Real;
        let approximate: f32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!("rcp.approx.ftz.f32 {0}, {1};", out(reg32) approximate, in(reg32) x, options(pure, nomem, nostack));
        }
        Real::mul_add(Real::mul_add(-x, approximate, 1.0), approximate, approximate)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    return 1.0 / x;
}

/// Returns the larger of two numbers, or NaN if either is NaN, so that NaN is not lost when a field is stored.
#[inline(always)]
pub fn max_or_nan(a: f32, b: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let out: f32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!("max.NaN.f32 {0}, {1}, {2};", out(reg32) out, in(reg32) a, in(reg32) b,
                options(pure, nomem, nostack));
        }
        out
    }
    #[cfg(not(target_arch = "nvptx64"))]
    return if a > b || a.is_nan() { a } else { b };
}
