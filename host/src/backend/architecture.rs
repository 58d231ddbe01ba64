//! Architectures and compute capabilities: they determine which compiled kernels a GPU can run.
use std::fmt;
use std::str::FromStr;

/// Compute capability of a GPU: its major and minor number.
pub type Capability = (i32, i32);

/// Architecture for which kernels are compiled. `Display` gives NVIDIA's name: `sm_80` stands for compute capability 8.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Architecture {
    capability: Capability,
    /// Whether the code runs only on GPUs of exactly this capability. The name of the architecture then ends in `a`.
    exact: bool,
}

impl Architecture {
    /// Returns the oldest architecture for which kernels are compiled.
    pub fn oldest() -> Self {
        gpu_kernels::OLDEST_ARCHITECTURE.parse().expect("it is the name of an architecture")
    }
    /// Returns the compute capability of the architecture.
    pub fn capability(self) -> Capability {
        self.capability
    }
}

impl FromStr for Architecture {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = text.strip_prefix("sm_").ok_or(())?;
        // Code for `sm_100f` is treated like code for `sm_100`: it runs on GPUs of the same major capability.
        let digits = rest.strip_suffix(['a', 'f']).unwrap_or(rest);
        let number = Some(digits).filter(|digits| digits.bytes().all(|c| c.is_ascii_digit())).ok_or(())?;
        let number: i32 = number.parse().map_err(|_| ())?;
        Ok(Architecture { capability: (number / 10, number % 10), exact: rest.ends_with('a') })
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((major, minor), end) = (self.capability, if self.exact { "a" } else { "" });
        write!(f, "sm_{major}{minor}{end}")
    }
}

/// Form in which a module of kernels is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeForm {
    /// PTX: text that the driver compiles for the GPU in use.
    Ptx,
    /// Machine code of one architecture.
    Cubin,
}

impl CodeForm {
    /// Returns the extension of names of files in this form: `ptx` or `cubin`.
    pub fn extension(self) -> &'static str {
        match self {
            CodeForm::Ptx => "ptx",
            CodeForm::Cubin => "cubin",
        }
    }
    /// Whether a GPU can run code of this form. Machine code runs only on GPUs of the same major capability; PTX has no such limit. In both
    /// cases, the capability of the GPU must not be lower than that of `architecture`. Code for an exact architecture, such as `sm_90a`,
    /// runs on GPUs of exactly this capability only.
    pub fn runs_on(self, architecture: Architecture, gpu: Capability) -> bool {
        let made_for = architecture.capability;
        match self {
            _ if architecture.exact => gpu == made_for,
            CodeForm::Ptx => gpu >= made_for,
            CodeForm::Cubin => gpu.0 == made_for.0 && gpu.1 >= made_for.1,
        }
    }
}

/// Returns the indices of the codes that a GPU can run, the best first: machine code before PTX, and newer architectures before older ones.
pub fn usable(codes: &[(CodeForm, Architecture)], gpu: Capability) -> Vec<usize> {
    let mut usable: Vec<usize> = (0..codes.len()).filter(|k| codes[*k].0.runs_on(codes[*k].1, gpu)).collect();
    usable.sort_by_key(|k| std::cmp::Reverse(codes[*k]));
    usable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn architecture(name: &str) -> Architecture {
        name.parse().unwrap()
    }

    #[test]
    fn names() {
        for (name, capability) in [("sm_80", (8, 0)), ("sm_90", (9, 0)), ("sm_90a", (9, 0)), ("sm_121", (12, 1))] {
            assert_eq!(architecture(name).capability(), capability);
            assert_eq!(architecture(name).to_string(), name);
        }
        for name in ["", "sm_", "sm_x", "80", "compute_80", "sm_+90", "sm_90x"] {
            assert_eq!(name.parse::<Architecture>(), Err(()), "{name}");
        }
        assert_eq!(Architecture::oldest().capability(), (8, 0));
    }

    #[test]
    fn each_gpu_gets_the_best_code() {
        use CodeForm::{Cubin, Ptx};
        fn best<'a>(codes: &[(CodeForm, &'a str)], gpu: Capability) -> Option<(CodeForm, &'a str)> {
            let parsed: Vec<_> = codes.iter().map(|(form, name)| (*form, architecture(name))).collect();
            usable(&parsed, gpu).first().map(|k| codes[*k])
        }
        // What is there for most modules, and for those with instructions of 9.0.
        let plain = [(Ptx, "sm_80"), (Cubin, "sm_80"), (Cubin, "sm_90")];
        let sums = [(Ptx, "sm_80"), (Ptx, "sm_90"), (Cubin, "sm_80"), (Cubin, "sm_90")];
        for (gpu, of_plain, of_sums) in [
            ((7, 0), None, None),
            ((7, 5), None, None),
            ((8, 0), Some((Cubin, "sm_80")), Some((Cubin, "sm_80"))),
            ((8, 6), Some((Cubin, "sm_80")), Some((Cubin, "sm_80"))),
            ((8, 9), Some((Cubin, "sm_80")), Some((Cubin, "sm_80"))),
            ((9, 0), Some((Cubin, "sm_90")), Some((Cubin, "sm_90"))),
            ((10, 0), Some((Ptx, "sm_80")), Some((Ptx, "sm_90"))),
            ((12, 1), Some((Ptx, "sm_80")), Some((Ptx, "sm_90"))),
        ] {
            assert_eq!(best(&plain, gpu), of_plain, "{gpu:?}");
            assert_eq!(best(&sums, gpu), of_sums, "{gpu:?}");
        }
        // PTX for 8.0 alone serves all.
        for gpu in [(8, 0), (8, 9), (9, 0), (12, 0)] {
            assert_eq!(best(&[(Ptx, "sm_80")], gpu), Some((Ptx, "sm_80")));
        }
        let chosen = [(Ptx, "sm_80"), (Cubin, "sm_86"), (Cubin, "sm_90a"), (Cubin, "sm_100")];
        for (gpu, code) in [
            ((8, 0), (Ptx, "sm_80")),
            ((8, 9), (Cubin, "sm_86")),
            ((9, 0), (Cubin, "sm_90a")),
            ((10, 3), (Cubin, "sm_100")),
            ((11, 0), (Ptx, "sm_80")),
        ] {
            assert_eq!(best(&chosen, gpu), Some(code), "{gpu:?}");
        }
        assert_eq!(best(&[(Cubin, "sm_90"), (Ptx, "sm_90")], (8, 0)), None);
    }

    #[test]
    fn what_the_driver_refuses_is_followed_by_ptx() {
        let codes = [(CodeForm::Ptx, "sm_80"), (CodeForm::Cubin, "sm_80"), (CodeForm::Cubin, "sm_86")];
        let parsed = codes.map(|(form, name)| (form, architecture(name)));
        assert_eq!(usable(&parsed, (8, 7)), [2, 1, 0]);
    }
}
