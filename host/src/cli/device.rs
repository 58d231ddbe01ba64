//! Which device computes.
use super::text::bytes;
use super::{Failure, Outcome};
use crate::config::Settings;
use ferrite::backend::{Backend, Cpu, Memory};
use ferrite::tune::{Mode, Tuner};
use serde_json::{Value, json};
#[cfg(feature = "cuda")]
use tracing::warn;
use tracing::{debug, info};

/// `--backend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A GPU if one works, else the CPU.
    Auto,
    /// A GPU or nothing.
    Cuda,
    /// The CPU.
    Cpu,
}

/// What the user said about devices, checked.
#[derive(Clone, Debug)]
pub struct DeviceChoice {
    kind: Kind,
    /// `None`: by the rank of the process on its machine.
    device: Option<usize>,
    threads: Option<usize>,
    /// `--tuning`: [`Mode::Use`] or [`Mode::Off`]; `tune` searches.
    pub tuning: Mode,
}

/// An open device.
pub enum Device {
    /// Threads.
    Cpu(Cpu),
    /// A GPU.
    #[cfg(feature = "cuda")]
    Cuda(ferrite::backend::Cuda),
}

/// Runs `$body` with `$backend` bound to whichever backend the device is: static dispatch starts here.
macro_rules! on_device {
    ($device:expr, $backend:ident => $body:expr) => {
        match $device {
            $crate::cli::device::Device::Cpu($backend) => $body,
            #[cfg(feature = "cuda")]
            $crate::cli::device::Device::Cuda($backend) => $body,
        }
    };
}
pub(crate) use on_device;

impl DeviceChoice {
    /// Takes the keys `backend`, `device`, `threads` and `tuning`; notes mistakes in `settings`.
    pub fn from_settings(settings: &mut Settings) -> Self {
        let kinds = [("auto", Kind::Auto), ("cuda", Kind::Cuda), ("cpu", Kind::Cpu)];
        let kind = settings.choice("backend", &kinds).unwrap_or(Kind::Auto);
        let device = settings.count("device", 0..=1023);
        let threads = settings.count("threads", 1..=1024);
        let tuning = settings.choice("tuning", &[("on", Mode::Use), ("off", Mode::Off)]).unwrap_or_default();
        if kind == Kind::Cpu && device.is_some() {
            settings.conflict("device", "backend", "--device chooses a GPU: leave it out with the CPU backend");
        }
        DeviceChoice { kind, device, threads, tuning }
    }
    /// `--threads`.
    pub fn threads(&self) -> Option<usize> {
        self.threads
    }
    /// Opens the device and gives the threads of host work their number.
    pub fn open(&self) -> Outcome<Device> {
        self.start_threads();
        let device = match self.kind {
            Kind::Cpu => Device::Cpu(Cpu::new(self.threads)),
            Kind::Cuda => self.gpu()?,
            // A GPU that was asked for by number must not silently become the CPU.
            Kind::Auto if self.device.is_some() => self.gpu()?,
            Kind::Auto => match self.gpu() {
                Ok(gpu) => gpu,
                // A search that failed on a GPU has nothing to do on the CPU.
                Err(why) if matches!(self.tuning, Mode::Search { .. }) && has_gpu() => return Err(why),
                // A program without CUDA has nothing to fall back from.
                Err(why) if !cfg!(feature = "cuda") => {
                    debug!("{}", why.message);
                    Device::Cpu(Cpu::new(self.threads))
                }
                Err(why) => {
                    info!("{}; going on with the CPU", why.message);
                    Device::Cpu(Cpu::new(self.threads))
                }
            },
        };
        debug!("computing on {}", device.describe());
        Ok(device)
    }
    /// Threads for reading files and other work of the host.
    pub fn start_threads(&self) {
        if let Some(threads) = self.threads {
            // Fails only if the pool exists already, which then has its default size.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        }
    }
    #[cfg(feature = "cuda")]
    fn gpu(&self) -> Outcome<Device> {
        use comms::{Communicator, Solo};
        let device = self.device.unwrap_or_else(|| Solo::new().node_rank());
        let cuda = ferrite::backend::Cuda::with_tuning(device, ferrite::tune::Tuning::new(self.tuning))?;
        if let Some(problem) = cuda.tuner().problem() {
            warn!("{problem}; kernels run with default block sizes");
        }
        self_test(&cuda)?;
        Ok(Device::Cuda(cuda))
    }
    #[cfg(not(feature = "cuda"))]
    fn gpu(&self) -> Outcome<Device> {
        let message = "this program was built without CUDA (cargo feature `cuda`): build it with that feature, or run \
                       with --backend cpu";
        Err(Failure::refused(message))
    }
}

#[cfg(feature = "cuda")]
fn has_gpu() -> bool {
    ferrite::backend::Cuda::devices().is_ok_and(|devices| !devices.is_empty())
}
#[cfg(not(feature = "cuda"))]
fn has_gpu() -> bool {
    false
}

/// Runs one kernel, so that a driver that cannot load ours is found out before files are read.
#[cfg(feature = "cuda")]
fn self_test(cuda: &ferrite::backend::Cuda) -> Outcome {
    use ferrite::{domain::Domain, field::SpinorSpace, lattice::Lattice};
    use gpu_kernels::storage::Double;
    use solvers::VectorSpace;
    let lattice = Lattice::new([2; 4]).map_err(Failure::refused)?;
    let space = SpinorSpace::<_, Double>::new(&Domain::single(cuda.clone(), lattice)?, 1);
    let mut norm = [f64::NAN];
    space.norm2(&space.allocate()?, &mut norm)?;
    match norm {
        [0.0] => Ok(()),
        [wrong] => Err(Failure::failed(format!(
            "{} computes wrongly: the norm of a zero field is {wrong}; use another one with --device or --backend cpu",
            cuda.device()
        ))),
    }
}

impl Device {
    /// `cpu` or `cuda`.
    pub fn name(&self) -> &'static str {
        on_device!(self, b => b.name())
    }
    /// For people.
    pub fn describe(&self) -> String {
        on_device!(self, b => b.device())
    }
    /// What is known of launch parameters; a CPU has none.
    pub fn tuner(&self) -> Option<&Tuner> {
        match self {
            Device::Cpu(_) => None,
            #[cfg(feature = "cuda")]
            Device::Cuda(cuda) => Some(cuda.tuner()),
        }
    }
    /// Block sizes of the kernels launched so far, as an array of objects; none on a CPU.
    pub fn launches(&self) -> Value {
        match self {
            Device::Cpu(_) => json!([]),
            #[cfg(feature = "cuda")]
            Device::Cuda(cuda) => {
                let launches = cuda.launches();
                let object = |l: &ferrite::backend::BlockSize| {
                    json!({
                        "kernel": l.launch.kernel, "sites": l.launch.sites, "nrhs": l.launch.nrhs, "block": l.block
                    })
                };
                launches.iter().map(object).collect()
            }
        }
    }
    /// Free and total memory.
    pub fn memory(&self) -> Outcome<Memory> {
        Ok(on_device!(self, b => b.memory())?)
    }
    /// Refuses before the start what the device's memory cannot hold.
    pub fn require(&self, needs: &[(&str, usize)], what: &str) -> Outcome {
        let needed: usize = needs.iter().map(|(_, n)| n).sum();
        let memory = self.memory()?;
        if needed <= memory.free {
            return Ok(());
        }
        let parts: Vec<_> = needs.iter().map(|(name, n)| format!("{name} {}", bytes(*n))).collect();
        Err(Failure::refused(format!(
            "{what} needs {} on {}, which has {} free of {} ({}); use a smaller lattice, fewer right-hand sides, a lower \
             precision, or another device",
            bytes(needed),
            self.describe(),
            bytes(memory.free),
            bytes(memory.total),
            parts.join(", ")
        )))
    }
}
