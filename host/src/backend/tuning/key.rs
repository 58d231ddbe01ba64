//! What a measured time belongs to. A shape is taken from the cache only if all of it agrees, but for the number of sites, of
//! which the nearest counts ([`Tuner::shape`](super::Tuner::shape)).
use crate::backend::KernelImage;

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
    for KernelImage { module, codes } in images {
        let mut part = |part: &[u8]| {
            // Lengths keep what moves from one part to the next from going unseen.
            crc.update(&(part.len() as u64).to_le_bytes());
            crc.update(part);
            bytes += part.len();
        };
        part(module.as_bytes());
        for code in codes {
            part(format!("{} {}", code.architecture, code.form.extension()).as_bytes());
            part(code.bytes());
        }
    }
    format!("{:08x}-{bytes}", crc.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{CodeForm, KernelCode};

    #[test]
    fn any_change_of_the_kernels_is_seen() {
        let image = |module: &str, cubin: &[u8], ptx: &str| {
            let [old, new] = ["sm_80", "sm_90"].map(|name| name.parse().unwrap());
            let ptx = KernelCode::new(CodeForm::Ptx, old, ptx.into());
            let cubin = KernelCode::new(CodeForm::Cubin, new, cubin.to_vec());
            KernelImage { module: module.into(), codes: vec![ptx, cubin] }
        };
        let hash = kernels_hash(&[image("a", b"code", "text")]);
        assert_eq!(hash, kernels_hash(&[image("a", b"code", "text")]));
        for other in [image("b", b"code", "text"), image("a", b"cod", "etext"), image("a", b"code", "texT")] {
            assert_ne!(hash, kernels_hash(&[other]));
        }
        assert_ne!(hash, kernels_hash(&[]));
        let mut ptx_only = image("a", b"code", "text");
        ptx_only.codes.truncate(1);
        assert_ne!(hash, kernels_hash(&[ptx_only]));
    }
}
