//! What a measured time belongs to. A shape is taken from the cache only if all of it agrees, but for the number of sites, of
//! which the nearest counts ([`Tuner::shape`](super::Tuner::shape)).
use crate::backend::{KernelImage, Ptx};

/// A device as the cache tells it from others, with what decides the speed of its kernels besides their arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceKey {
    /// Marketing name, without the number that a machine gives it.
    pub device: String,
    /// Version of CUDA that the driver offers.
    pub driver: String,
    /// Hash of the compiled kernels, see [`kernels_hash`].
    pub kernels: String,
}

/// One kind of launch. Both parities of a lattice, and lattices of the same volume, share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaunchKey {
    /// Entry point: kernel, precision and reconstruction, as in `wilson_dslash_single_12`.
    pub kernel: String,
    /// Sites that a launch treats: for most kernels half of the lattice.
    pub sites: u32,
    /// Right-hand sides of a launch.
    pub nrhs: u32,
}

/// A hash of PTX and machine code: kernels that were compiled anew may want other launch parameters.
pub fn kernels_hash(images: &[KernelImage]) -> String {
    let (mut crc, mut bytes) = (crc32fast::Hasher::new(), 0);
    for KernelImage { module, cubin, ptx } in images {
        let parts = [module.as_bytes(), cubin.as_deref().unwrap_or_default(), ptx.as_ref().map_or(&[][..], Ptx::bytes)];
        for part in parts {
            // Lengths keep what moves from one part to the next from going unseen.
            crc.update(&(part.len() as u64).to_le_bytes());
            crc.update(part);
            bytes += part.len();
        }
    }
    format!("{:08x}-{bytes}", crc.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_of_the_kernels_is_seen() {
        let image = |module: &str, cubin: &[u8], ptx: &str| KernelImage {
            module: module.into(),
            cubin: Some(cubin.to_vec().into()),
            ptx: Some(Ptx::new(ptx.into())),
        };
        let hash = kernels_hash(&[image("a", b"code", "text")]);
        assert_eq!(hash, kernels_hash(&[image("a", b"code", "text")]));
        for other in [image("b", b"code", "text"), image("a", b"cod", "etext"), image("a", b"code", "texT")] {
            assert_ne!(hash, kernels_hash(&[other]));
        }
        assert_ne!(hash, kernels_hash(&[]));
        let no_cubin = KernelImage { cubin: None, ..image("a", b"", "text") };
        assert_ne!(hash, kernels_hash(&[no_cubin]));
    }
}
