//! A device on which lattices of any extents are partitioned over one process grid, for interfaces that open a device once and work on many
//! lattices.
use crate::batches::{BatchChoice, Batches, bytes};
use crate::communicator::RunCommunicator;
use crate::device::{Processor, fair_threads};
use crate::failure::FailureKind;
use crate::layout::GridRank;
use crate::text::count;
use crate::{Failure, Outcome};
use comms::{ProcessGrid, Solo};
use ferrite::backend::Backend;
use ferrite::domain::Domain;
use ferrite::files::SharedFile;
use ferrite::halo::Needs;
use ferrite::lattice::{Lattice, Section};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

/// Description of a device to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedDevice {
    /// Name of the device: `cpu` or `cuda`.
    pub name: String,
    /// Number of the GPU; `None` for the rank of the process on its host.
    pub index: Option<usize>,
    /// Number of CPU threads; `None` for all cores, or for this process's share of them.
    pub threads: Option<usize>,
    /// Number of processes in x, y, z and t; `None` to partition t among all processes.
    pub grid: Option<[usize; 4]>,
}

/// Open device, with the processes that partition lattices among them.
pub struct GridDevice {
    backend: Arc<dyn Backend>,
    comm: RunCommunicator,
    place: GridRank,
    ordinal: Option<usize>,
    /// Number of threads for host code; `None` for all cores.
    threads: Option<usize>,
    /// Number of processes that share the device's memory.
    sharers: usize,
    /// Domains of partitioned lattices, one for each lattice. They are kept until the end, because other processes may have their ghost
    /// zones open.
    domains: RefCell<Vec<Domain>>,
}

impl NamedDevice {
    /// *Collective.* Opens the device of each process. `comm` is `None` if this process works alone.
    ///
    /// # Errors
    /// Grids or names that differ between processes, a grid of another number of processes, and a device that cannot be opened.
    pub fn open(&self, comm: Option<RunCommunicator>) -> Outcome<GridDevice> {
        let place = comm.as_ref().map_or(Ok(GridRank::SINGLE), |comm| self.place(comm))?;
        let comm = comm.unwrap_or_else(alone);
        let threads = match self.threads {
            None if place.is_shared() => Some(fair_threads(&comm)?),
            threads => threads,
        };
        let ordinal = (self.name == "cuda").then(|| self.index.unwrap_or(comm.network().node_rank()));
        let processor = self.processor(ordinal, threads);
        let (backend, name) =
            comm.agree(processor.and_then(|it| it.place().map(|place| (it.into_backend(), place))))?;
        let sharers = if place.is_shared() { comm.alike(&name)? } else { 1 };
        Ok(GridDevice { backend, comm, place, ordinal, threads, sharers, domains: RefCell::default() })
    }
    /// *Collective.* Returns the process grid and the rank of this process. Fails if processes request different grids or devices.
    fn place(&self, comm: &RunCommunicator) -> Outcome<GridRank> {
        let dims = self.grid.unwrap_or([1, 1, 1, comm.size()]);
        let all = comm.texts(&format!("{dims:?} and {}", self.name))?;
        if let Some(other) = all.iter().position(|said| *said != all[0]) {
            let (first, other) = (&all[0], format!("rank {other} has {}", all[other]));
            return Err(Failure::refused(format!(
                "processes have different grids or devices: rank 0 has {first}, but {other}; give all processes the \
                 same grid and device"
            )));
        }
        let grid = ProcessGrid::new(dims).map_err(Failure::refused)?;
        if grid.size() != comm.size() {
            let [own, all] = [grid.size(), comm.size()].map(|size| count(size, "process"));
            let [x, y, z, t] = dims;
            return Err(Failure::refused(format!(
                "grid = ({x}, {y}, {z}, {t}) has {own}, but comm has {all}: choose a grid of {all}"
            )));
        }
        Ok(GridRank { grid, rank: comm.rank() })
    }
    fn processor(&self, ordinal: Option<usize>, threads: Option<usize>) -> Outcome<Processor> {
        match (self.name.as_str(), ordinal) {
            ("cpu", _) => Processor::cpu(threads),
            ("cuda", Some(ordinal)) => Processor::gpu(ordinal, self.index.is_some()),
            (other, _) => Err(Failure::refused(format!("'{other}' is not a device: choose 'cpu' or 'cuda'"))),
        }
    }
}

/// Returns the communicator of a process that works alone.
fn alone() -> RunCommunicator {
    RunCommunicator::of(Solo::new())
}

impl GridDevice {
    /// Returns the backend that runs kernels.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }
    /// Returns the communicator of the processes.
    pub fn comm(&self) -> &RunCommunicator {
        &self.comm
    }
    /// Returns the process grid with the rank of this process.
    pub fn place(&self) -> GridRank {
        self.place
    }
    /// Returns the number of the GPU; `None` for a CPU.
    pub fn ordinal(&self) -> Option<usize> {
        self.ordinal
    }
    /// Returns the number of threads for host code; `None` for all cores.
    pub fn threads(&self) -> Option<usize> {
        self.threads
    }
    /// Returns the domain of this process's part of a lattice. Domains of partitioned lattices are created once.
    ///
    /// # Errors
    /// A section of another device; failures of the device.
    pub fn domain(&self, part: &Section) -> Outcome<Domain> {
        if *part != self.place.section(part.global)? {
            let (local, global) = (part.local, part.global);
            return Err(Failure::refused(format!(
                "the field covers {local} of a lattice {global}, but this device holds another part of that lattice: use \
                 the device for which the field was made"
            )));
        }
        if !self.place.is_shared() {
            return Ok(Domain::single(self.backend.clone(), part.global)?);
        }
        let mut domains = self.domains.borrow_mut();
        if let Some(known) = domains.iter().find(|domain| domain.global() == part.global) {
            return Ok(known.clone());
        }
        let domain = Domain::new(self.backend.clone(), part.global, self.place.grid, self.comm.network())?;
        domains.push(domain.clone());
        Ok(domain)
    }
    /// Returns a domain with two time slices on each process, for operations that act within time slices.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn domain_of_two_times(&self, part: &Section) -> Outcome<Domain> {
        let [x, y, z, _] = part.local.size();
        self.domain(&self.place.section_of(Lattice::new([x, y, z, 2])?)?)
    }
    /// *Collective.* Returns the number of free bytes on the device with least free memory among those of all processes.
    ///
    /// # Errors
    /// Failures of the device or of messages.
    pub fn free(&self) -> Outcome<usize> {
        let free = self.backend.memory()?.free;
        if !self.place.is_shared() {
            return Ok(free);
        }
        let mine = free / self.sharers;
        Ok(self.comm.numbers(mine as f64)?.into_iter().fold(mine as f64, f64::min) as usize)
    }
    /// *Collective.* Splits `n` right-hand sides of a solve into batches of the requested size. Without a request, the batches are as large
    /// as memory allows if `beside` bytes stay free.
    ///
    /// # Errors
    /// Too little memory for one right-hand side.
    pub fn split(
        &self,
        batch: BatchChoice,
        n: usize,
        beside: usize,
        needs: impl Fn(usize) -> Needs,
    ) -> Outcome<Batches> {
        let free = self.free()?.saturating_sub(beside);
        let (batches, needed) = batch.split_with_needs(free, n, needs);
        if batch.requested.is_none() && bytes(&needed) > free {
            let why = format!(
                "the solve needs {:.2} GB on {}, which has {:.2} GB free: use a smaller lattice, a lower precision, \
                 or another device",
                bytes(&needed) as f64 * 1e-9,
                self.backend.device(),
                free as f64 * 1e-9
            );
            return Err(Failure::refused(why).of_kind(FailureKind::Device));
        }
        Ok(batches)
    }
    /// Passes a file to `work` that all processes read or write together.
    pub fn with_file<T>(&self, path: &Path, work: impl FnOnce(SharedFile<'_>) -> Outcome<T>) -> Outcome<T> {
        work(SharedFile::new(path, &*self.comm.network()))
    }
    /// Separates this process from the other processes: from now on it works alone.
    pub fn leave(&mut self) {
        (self.comm, self.place) = (alone(), GridRank::SINGLE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comms::Threads;

    fn cpu(grid: Option<[usize; 4]>) -> NamedDevice {
        NamedDevice { name: "cpu".into(), threads: Some(1), grid, ..NamedDevice::default() }
    }

    #[test]
    fn sections_are_where_the_grid_puts_them() {
        let place = GridRank { grid: ProcessGrid::new([1, 1, 2, 2]).unwrap(), rank: 3 };
        let global = Lattice::new([4, 4, 4, 8]).unwrap();
        let section = place.section(global).unwrap();
        assert_eq!((section.origin, section.local.size()), ([0, 0, 2, 4], [4, 4, 2, 4]));
        assert_eq!(place.section_of(section.local).unwrap(), section);
        assert!(place.section(Lattice::new([4, 4, 4, 6]).unwrap()).is_ok());
        assert_eq!(GridRank::SINGLE.section(global).unwrap(), global.into());
    }

    #[test]
    fn devices_are_opened_alike_on_all_processes() {
        let each = |grids: [Option<[usize; 4]>; 2]| {
            let run = Threads::run(2, |threads| {
                let comm = RunCommunicator::of(threads);
                let device = cpu(grids[comm.rank()]).open(Some(comm));
                Ok::<_, String>(
                    device.map_or_else(|why| why.message, |device| format!("{:?}", device.place().grid.dims())),
                )
            });
            run.unwrap_or_else(|failure| panic!("{failure}"))
        };
        assert_eq!(each([None, None]), ["[1, 1, 1, 2]"; 2]);
        assert_eq!(each([Some([2, 1, 1, 1]); 2]), ["[2, 1, 1, 1]"; 2]);
        assert!(each([None, Some([2, 1, 1, 1])]).iter().all(|why| why.contains("different grids")));
        let other_size = "grid = (2, 2, 1, 1) has 4 processes, but comm has 2 processes: choose a grid of 2 processes";
        assert_eq!(each([Some([2, 2, 1, 1]); 2]), [other_size; 2]);
        assert!(
            NamedDevice { name: "tpu".into(), ..cpu(None) }
                .open(None)
                .is_err_and(|why| why.message.starts_with("'tpu'"))
        );
    }

    #[test]
    fn a_part_of_another_device_is_refused() {
        let device = cpu(None).open(None).unwrap();
        let global = Lattice::new([2, 2, 2, 4]).unwrap();
        assert!(device.domain(&global.into()).is_ok());
        let half = GridRank { grid: ProcessGrid::new([1, 1, 1, 2]).unwrap(), rank: 1 }.section(global).unwrap();
        assert!(device.domain(&half).is_err_and(|why| why.message.contains("holds another part of that lattice")));
    }
}
