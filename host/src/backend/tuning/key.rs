//! Keys of the tune cache: the device and the launch of a measured time. A shape is taken from the cache only if the whole key
//! agrees, except the number of sites, of which the nearest is taken ([`Tuner::shape`](super::Tuner::shape)).
use crate::backend::KernelImage;

/// Identity of a device in the cache, with all that determines the speed of its kernels besides their arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceKey {
    /// Marketing name, without the number of the device in its machine.
    pub device: String,
    /// Version of CUDA that the driver supports.
    pub driver: String,
    /// Hash of the compiled kernels, see [`kernels_hash`].
    pub kernels: String,
}

/// Identity of one kind of launch. Both parities of a lattice share it, and so do lattices of the same volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaunchKey {
    /// Name of the entry point: kernel, precision and reconstruction, as in `wilson_dslash_single_12`.
    pub kernel: String,
    /// Number of sites of a launch: for most kernels half of the lattice.
    pub sites: u32,
    /// Number of right-hand sides of a launch.
    pub nrhs: u32,
}

/// Returns a hash of PTX and machine code: recompiled kernels may need other launch parameters.
pub fn kernels_hash(images: &[KernelImage]) -> String {
    let (mut crc, mut bytes) = (crc32fast::Hasher::new(), 0);
    for KernelImage { module, codes } in images {
        let mut part = |part: &[u8]| {
            // With the lengths, bytes that move from one part to the next also change the hash.
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
