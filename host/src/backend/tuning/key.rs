//! Keys of the tune cache, which identify the device and the launch of a measured time. A measured shape is used only if the whole key
//! agrees. Only the number of sites may differ: [`Tuner::shape`](super::Tuner::shape) then takes the nearest.
use crate::backend::KernelImage;

/// Identity of a device in the cache: everything besides the arguments that determines the speed of its kernels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceKey {
    /// Marketing name of the device, without its number in the machine.
    pub device: String,
    /// Version of CUDA that the driver supports.
    pub driver: String,
    /// Hash of the compiled kernels, from [`kernels_hash`].
    pub kernels: String,
}

/// Identity of a kind of launch. Both parities of a lattice have the same key, and also lattices of equal volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaunchKey {
    /// Name of the entry point: kernel, precision and reconstruction, as in `wilson_dslash_single_12`.
    pub kernel: String,
    /// Number of sites of a launch; for most kernels half of the lattice's sites.
    pub sites: u32,
    /// Number of right-hand sides of a launch.
    pub nrhs: u32,
}

/// Returns a hash of the compiled kernels. It changes with the compiled code, because other code may need other launch parameters.
pub fn kernels_hash(images: &[KernelImage]) -> String {
    let (mut crc, mut bytes) = (crc32fast::Hasher::new(), 0);
    for KernelImage { module, codes } in images {
        let mut part = |part: &[u8]| {
            // The lengths are hashed too, so that moving bytes from one part to the next changes the hash.
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
