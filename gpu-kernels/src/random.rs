//! Counter-based random numbers (Philox 4×32-10, Salmon et al. 2011). The numbers of a site depend on the seed and the site
//! only, not on the order of the calls, the process grid or the backend.
use crate::algebra::elementary;

/// Stream of random numbers by Philox for one key and one counter, in blocks of four 32-bit words.
#[derive(Clone, Debug)]
pub struct Philox {
    key: [u32; 2],
    counter: [u32; 4],
    block: [u32; 4],
    used: usize,
}

impl Philox {
    /// Creates the random stream with the key `seed`, the number `stream` (for example of a site and a direction) and
    /// the number `substream` (for example of a trajectory or a sweep).
    #[inline(always)]
    pub fn new(seed: u64, stream: u64, substream: u32) -> Self {
        let counter = [0, substream, stream as u32, (stream >> 32) as u32];
        Philox { key: [seed as u32, (seed >> 32) as u32], counter, block: [0; 4], used: 4 }
    }
    /// Returns 32 random bits.
    #[inline(always)]
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.block = philox(self.counter, self.key);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }
    /// Returns a uniform random number in (0, 1), never 0 or 1, with 52 random bits.
    #[inline(always)]
    pub fn uniform(&mut self) -> f64 {
        let bits = (self.next_u32() as u64) << 32 | self.next_u32() as u64;
        uniform(bits)
    }
    /// Returns two uniform random numbers in (0, 1) from a new block, each like [`uniform`](Self::uniform). The rest of
    /// the current block is dropped. Kernels use this function, because they must not count words at run time.
    #[inline(always)]
    pub fn uniform_pair(&mut self) -> [f64; 2] {
        let [a, b, c, d] = philox(self.counter, self.key);
        self.counter[0] = self.counter[0].wrapping_add(1);
        self.used = 4;
        [uniform((a as u64) << 32 | b as u64), uniform((c as u64) << 32 | d as u64)]
    }
}

/// Purposes of random streams, which are the four uppermost bits of a stream's number.
pub mod purpose {
    /// Purpose of the streams for the heat bath of links.
    pub const HEATBATH: u64 = 8 << 60;
    /// Purpose of the streams for momenta.
    pub const MOMENTA: u64 = 9 << 60;
    /// Purpose of the streams for pseudofermions; the pseudofermion's number is in the bits from [`WHICH`] on.
    pub const PSEUDOFERMIONS: u64 = 10 << 60;
    /// Purpose of the streams for noise vectors of observables; the vector's number is in the bits from [`WHICH`] on.
    pub const NOISE: u64 = 11 << 60;
    /// Purpose of the stream for the Metropolis step of a trajectory.
    pub const METROPOLIS: u64 = 12 << 60;
    /// Purpose of the streams for random start vectors of the multigrid setup; the vector's number is in the bits from
    /// [`WHICH`] on.
    pub const NEAR_NULL_VECTORS: u64 = 13 << 60;
    /// Position of the lowest bit of a vector's number in a stream's number. The vector's number is below 2¹²; the
    /// number of the site is in the bits below.
    pub const WHICH: u32 = 48;
}

/// Returns a number in (0, 1) from the upper 52 bits plus one half.
#[inline(always)]
fn uniform(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) * (1.0 / 4_503_599_627_370_496.0)
}

impl Philox {
    /// Returns two independent normal random numbers with mean 0 and variance 1 (Box and Muller 1958), from a new block
    /// like [`uniform_pair`](Self::uniform_pair). They have the same bits on every backend.
    #[inline(always)]
    pub fn gaussian_pair(&mut self) -> [f64; 2] {
        let [u, v] = self.uniform_pair();
        let radius = elementary::sqrt(-2.0 * elementary::ln(u));
        let [sin, cos] = elementary::sin_cos_turns(v);
        [radius * cos, radius * sin]
    }
}

/// Normal random numbers that need not have the same bits on every machine.
#[cfg(not(target_arch = "nvptx64"))]
impl Philox {
    /// Returns two independent normal random numbers with mean 0 and variance 1 (Box and Muller 1958).
    pub fn normal_pair(&mut self) -> [f64; 2] {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (core::f64::consts::TAU * self.uniform()).sin_cos();
        [radius * cos, radius * sin]
    }
}

/// Returns a block of four words after ten rounds of the generator.
#[inline(always)]
fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    for _ in 0..10 {
        let (p, q) = (c[0] as u64 * 0xD251_1F53, c[2] as u64 * 0xCD9E_8D57);
        c = [(q >> 32) as u32 ^ c[1] ^ k[0], q as u32, (p >> 32) as u32 ^ c[3] ^ k[1], p as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    // The known answers of the generator's own distribution (Random123, kat_vectors).
    #[test]
    fn known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }
}
