//! The CPU backend: the kernels' own source, called for one site after the other by all threads.
use super::{Backend, Buffer, Memory, REDUCTION_SLOTS, Result};
use gpu_kernels::memory::Chunk;
use gpu_kernels::{Kernel, Reduction, Values};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Sites that one task takes. Fixed, because the order of sums depends on it.
const BLOCK: u32 = 1024;

/// Threads of this machine.
#[derive(Clone)]
pub struct Cpu {
    shared: Arc<Shared>,
}

struct Shared {
    pool: rayon::ThreadPool,
    vectors: Vectors,
    sums: Mutex<[f64; REDUCTION_SLOTS]>,
}

/// Memory of the CPU backend.
pub struct CpuBuffer {
    chunks: Vec<Chunk>,
    // The address is taken once, mutably, so that views made from it may write.
    address: *mut u8,
}
// SAFETY: the address points into the buffer's own allocation; kernels that use it are launched through `Cpu`, whose
// calls run to their end, and write disjoint elements (contract of `Kernel`).
unsafe impl Send for CpuBuffer {}
// SAFETY: as above.
unsafe impl Sync for CpuBuffer {}

impl Buffer for CpuBuffer {
    fn bytes(&self) -> usize {
        16 * self.chunks.len()
    }
    fn address(&self) -> *mut u8 {
        self.address
    }
}

/// Which vector instructions the machine has. Kernels are compiled once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vectors {
    Avx512,
    Avx2,
    Portable,
}

impl Vectors {
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("fma")
            {
                return Vectors::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Vectors::Avx2;
            }
        }
        Vectors::Portable
    }
}

impl Cpu {
    /// A backend with its own threads; `None`: as many as the machine has.
    pub fn new(threads: Option<usize>) -> Self {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.unwrap_or(0))
            .thread_name(|i| format!("ferrite-{i}"))
            .build()
            .expect("the operating system gives threads");
        let shared = Shared { pool, vectors: Vectors::detect(), sums: Mutex::new([0.0; REDUCTION_SLOTS]) };
        Cpu { shared: Arc::new(shared) }
    }
    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.shared.pool.current_num_threads()
    }
    /// The vector instructions in use: `AVX-512`, `AVX2`, `portable`.
    pub fn instructions(&self) -> &'static str {
        match self.shared.vectors {
            Vectors::Avx512 => "AVX-512",
            Vectors::Avx2 => "AVX2",
            Vectors::Portable => "portable",
        }
    }
}

/// Calls `kernel` for a range of sites, in code compiled for the machine's vector instructions.
#[inline]
fn run<K: Kernel>(vectors: Vectors, kernel: &K, sites: Range<u32>, rhs: u32) {
    #[inline(always)]
    fn sites_of<K: Kernel>(kernel: &K, sites: Range<u32>, rhs: u32) {
        for i in sites {
            // SAFETY: the launcher gives every index once; the caller of `launch` vouches for the pointers.
            unsafe { kernel.site(i, rhs) }
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
        fn avx512<K: Kernel>(kernel: &K, sites: Range<u32>, rhs: u32) {
            sites_of(kernel, sites, rhs)
        }
        #[target_feature(enable = "avx2,fma")]
        fn avx2<K: Kernel>(kernel: &K, sites: Range<u32>, rhs: u32) {
            sites_of(kernel, sites, rhs)
        }
        match vectors {
            // SAFETY: the machine was seen to have these instructions.
            Vectors::Avx512 => return unsafe { avx512(kernel, sites, rhs) },
            // SAFETY: as above.
            Vectors::Avx2 => return unsafe { avx2(kernel, sites, rhs) },
            Vectors::Portable => {}
        }
    }
    let _ = vectors;
    sites_of(kernel, sites, rhs)
}

/// As [`run`], adding up what the kernel returns.
#[inline]
fn sum<K: Reduction>(vectors: Vectors, kernel: &K, sites: Range<u32>, rhs: u32) -> K::Values {
    #[inline(always)]
    fn sum_of<K: Reduction>(kernel: &K, sites: Range<u32>, rhs: u32) -> K::Values {
        // A loop, not `fold`: a closure of its own might not be compiled for the vector instructions.
        let mut total = K::Values::ZERO;
        for i in sites {
            // SAFETY: as in `run`.
            total = total.add(unsafe { kernel.site(i, rhs) });
        }
        total
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
        fn avx512<K: Reduction>(kernel: &K, sites: Range<u32>, rhs: u32) -> K::Values {
            sum_of(kernel, sites, rhs)
        }
        #[target_feature(enable = "avx2,fma")]
        fn avx2<K: Reduction>(kernel: &K, sites: Range<u32>, rhs: u32) -> K::Values {
            sum_of(kernel, sites, rhs)
        }
        match vectors {
            // SAFETY: the machine was seen to have these instructions.
            Vectors::Avx512 => return unsafe { avx512(kernel, sites, rhs) },
            // SAFETY: as above.
            Vectors::Avx2 => return unsafe { avx2(kernel, sites, rhs) },
            Vectors::Portable => {}
        }
    }
    let _ = vectors;
    sum_of(kernel, sites, rhs)
}

fn block(b: u32, n: u32) -> Range<u32> {
    b * BLOCK..((b + 1) * BLOCK).min(n)
}

impl Backend for Cpu {
    type Buffer = CpuBuffer;
    type Event = Instant;

    fn name(&self) -> &'static str {
        "cpu"
    }
    fn device(&self) -> String {
        format!("CPU, {} threads, {}", self.threads(), self.instructions())
    }
    fn memory(&self) -> Result<Memory> {
        // Linux tells; elsewhere we do not guess.
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find(|l| l.starts_with(name))?;
            Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * 1024)
        };
        Ok(Memory {
            free: field("MemAvailable:").unwrap_or(usize::MAX),
            total: field("MemTotal:").unwrap_or(usize::MAX),
        })
    }

    fn allocate(&self, bytes: usize, what: &str) -> Result<CpuBuffer> {
        let count = bytes.div_ceil(16);
        let too_little = |backend: &Self| super::BackendError::OutOfMemory {
            what: what.into(),
            bytes,
            free: backend.memory().map_or(0, |m| m.free),
            device: "this machine".into(),
        };
        if bytes > self.memory()?.free {
            return Err(too_little(self));
        }
        let mut chunks = Vec::new();
        chunks.try_reserve_exact(count).map_err(|_| too_little(self))?;
        chunks.resize(count, Chunk::default());
        let address = chunks.as_mut_ptr().cast();
        Ok(CpuBuffer { chunks, address })
    }
    fn upload(&self, data: &[u8], to: &mut CpuBuffer, offset: usize) -> Result {
        assert!(offset + data.len() <= to.bytes(), "upload beyond the buffer");
        // SAFETY: inside the buffer, which is borrowed mutably.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to.address.add(offset), data.len()) };
        Ok(())
    }
    fn download(&self, from: &CpuBuffer, offset: usize, data: &mut [u8]) -> Result {
        assert!(offset + data.len() <= from.bytes(), "download beyond the buffer");
        // SAFETY: inside the buffer; launches have run to their end.
        unsafe { std::ptr::copy_nonoverlapping(from.address.add(offset), data.as_mut_ptr(), data.len()) };
        Ok(())
    }
    fn copy(&self, from: &CpuBuffer, to: &mut CpuBuffer, bytes: usize) -> Result {
        assert!(bytes <= from.bytes() && bytes <= to.bytes(), "copy beyond a buffer");
        const PIECE: usize = 1 << 18;
        let (source, target) = (from.address as usize, to.address as usize);
        self.shared.pool.install(|| {
            (0..bytes.div_ceil(PIECE)).into_par_iter().for_each(|k| {
                let (start, length) = (k * PIECE, PIECE.min(bytes - k * PIECE));
                // SAFETY: two different buffers, disjoint pieces inside both.
                unsafe {
                    std::ptr::copy_nonoverlapping((source + start) as *const u8, (target + start) as *mut u8, length)
                };
            })
        });
        Ok(())
    }
    fn clear(&self, buffer: &mut CpuBuffer) -> Result {
        self.shared
            .pool
            .install(|| buffer.chunks.par_iter_mut().with_min_len(4096).for_each(|c| *c = Chunk::default()));
        Ok(())
    }

    fn launch<K: Kernel>(&self, kernel: &K, n: u32, nrhs: u32) -> Result {
        let (kernel, vectors) = (*kernel, self.shared.vectors);
        self.shared.pool.install(|| {
            (0..n.div_ceil(BLOCK) * nrhs).into_par_iter().for_each(|task| {
                let blocks = n.div_ceil(BLOCK);
                run(vectors, &kernel, block(task % blocks, n), task / blocks);
            })
        });
        Ok(())
    }
    fn reduce<K: Reduction>(&self, kernel: &K, n: u32, nrhs: u32, slot: usize) -> Result {
        let count = K::Values::COUNT;
        assert!(slot + nrhs as usize * count <= REDUCTION_SLOTS, "too many sums in one round");
        let (kernel, vectors) = (*kernel, self.shared.vectors);
        let blocks = n.div_ceil(BLOCK);
        let partial: Vec<K::Values> = self.shared.pool.install(|| {
            let tasks = (0..blocks * nrhs).into_par_iter();
            tasks.map(|task| sum(vectors, &kernel, block(task % blocks, n), task / blocks)).collect()
        });
        let mut sums = self.shared.sums.lock().unwrap_or_else(|e| e.into_inner());
        for (rhs, blocks) in partial.chunks(blocks as usize).enumerate() {
            let total = blocks.iter().fold(K::Values::ZERO, |total, &b| total.add(b));
            for k in 0..count {
                sums[slot + rhs * count + k] = total.get(k);
            }
        }
        Ok(())
    }
    fn sums(&self, out: &mut [f64]) -> Result {
        let sums = self.shared.sums.lock().unwrap_or_else(|e| e.into_inner());
        out.copy_from_slice(&sums[..out.len()]);
        Ok(())
    }

    fn record(&self) -> Result<Instant> {
        Ok(Instant::now())
    }
    fn seconds_between(&self, from: &Instant, to: &Instant) -> Result<f64> {
        Ok(to.duration_since(*from).as_secs_f64())
    }
    fn synchronize(&self) -> Result {
        Ok(())
    }
}
