//! Which device computes.
use super::text::bytes;
use super::{Failure, Outcome};
use crate::config::Settings;
use ferrite::backend::{Backend, Cpu, Memory};
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
    /// Takes the keys `backend`, `device` and `threads`; notes mistakes in `settings`.
    pub fn from_settings(settings: &mut Settings) -> Self {
        let kinds = [("auto", Kind::Auto), ("cuda", Kind::Cuda), ("cpu", Kind::Cpu)];
        let kind = settings.choice("backend", &kinds).unwrap_or(Kind::Auto);
        let device = settings.count("device", 0..=1023);
        let threads = settings.count("threads", 1..=1024);
        if kind == Kind::Cpu && device.is_some() {
            settings.conflict("device", "backend", "--device chooses a GPU: leave it out with the CPU backend");
        }
        DeviceChoice { kind, device, threads }
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
        let cuda = ferrite::backend::Cuda::new(device)?;
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
