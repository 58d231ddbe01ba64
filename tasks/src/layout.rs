//! Partition of a command's lattice among its processes.
use super::communicator::RunCommunicator;
use super::{Failure, Outcome};
use comms::ProcessGrid;
use ferrite::backend::{Backend, Cpu};
use ferrite::domain::Transport;
use ferrite::domain::{Domain, Result};
use ferrite::files::SharedFile;
use ferrite::halo::fastest;
use ferrite::lattice::{Lattice, Section};
use ferrite::network::Network;
use ferrite_inputs::values::{Extents, Switch, Word};
use ferrite_inputs::{Given, Input, vocabularies};
use ferrite_records::place as records;
use serde::Deserialize;
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;
use tracing::{debug, info};

/// Names of the transports of faces.
pub const TRANSPORTS: [(&str, Transport); 4] =
    [("direct", Transport::Direct), ("copy", Transport::Copy), ("mpi", Transport::Mpi), ("host", Transport::Host)];

/// Process grid, with the rank of this process in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridRank {
    /// Number of processes in x, y, z and t.
    pub grid: ProcessGrid,
    /// Rank of this process.
    pub rank: usize,
}

impl GridRank {
    /// Grid of a single process.
    pub const SINGLE: GridRank = GridRank { grid: ProcessGrid::SINGLE, rank: 0 };

    /// Returns whether several processes share each lattice.
    pub fn is_shared(&self) -> bool {
        self.grid.size() > 1
    }
    /// Returns this process's part of a lattice.
    ///
    /// # Errors
    /// A lattice that the grid does not cut into equal parts.
    pub fn section(&self, global: Lattice) -> Outcome<Section> {
        if !self.is_shared() {
            return Ok(global.into());
        }
        self.grid.check(global.size(), 0).map_err(Failure::refused)?;
        let local = Lattice::of_any_extents(self.grid.local_extents(global.size()))?;
        Ok(Section { global, origin: self.grid.origin(self.rank, global.size()), local })
    }
    /// Returns the section of this process on the lattice whose parts have the extents `local`.
    ///
    /// # Errors
    /// A lattice that the grid does not cut into equal parts.
    pub fn section_of(&self, local: Lattice) -> Outcome<Section> {
        let (extents, parts) = (local.size(), self.grid.dims());
        self.section(Lattice::of_any_extents(std::array::from_fn(|mu| extents[mu] * parts[mu]))?)
    }
}

/// Partition of a lattice: the process grid, and the extents of the part that each process has.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Grid of the processes.
    pub grid: ProcessGrid,
    /// Extents of the local lattice of a process.
    pub local: Lattice,
}

impl Cut {
    /// Returns the record of the processes.
    pub fn record(&self) -> records::LayoutRecord {
        records::LayoutRecord { processes: self.grid.size(), grid: self.grid.dims(), ..Default::default() }
    }
}

/// Choice of the process grid, the transport of faces and the overlap by the user.
#[derive(Clone, Debug)]
pub struct LayoutChoice {
    grid: Option<[usize; 4]>,
    /// Requested transport; `None` for the fastest.
    transport: Option<Transport>,
    overlap: bool,
}

vocabularies! {
    /// Values of `--transport`.
    Transports: Transport = TRANSPORTS;
}

/// Keys of the process grid and of the transport, which every input has.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct LayoutKeys {
    grid: Given<Extents>,
    transport: Given<Word<Transports>>,
    no_overlap: Given<Switch>,
}

impl LayoutChoice {
    /// Reads the keys, and adds their mistakes to the input.
    pub fn of(input: &mut Input) -> Self {
        let LayoutKeys { grid, transport, no_overlap } = input.read("");
        LayoutChoice { grid: grid.value(), transport: transport.value(), overlap: !no_overlap.is_on() }
    }
    /// Returns the choice with the grid `grid`, unless the user requested one.
    #[must_use]
    pub fn or_grid(self, grid: [usize; 4]) -> Self {
        LayoutChoice { grid: self.grid.or(Some(grid)), ..self }
    }
    /// Returns the requested grid; `None` if none was requested.
    pub fn grid(&self) -> Option<[usize; 4]> {
        self.grid
    }
    /// Returns the number of processes of a run that has not started yet: `asked` if it is given, otherwise the size of the requested grid,
    /// or 1 without a grid.
    pub fn processes(&self, asked: Option<usize>) -> usize {
        // An invalid grid counts as one process here. It is reported when the lattice is partitioned.
        let of_grid = |dims: [usize; 4]| ProcessGrid::new(dims).map_or(1, |grid| grid.size());
        asked.or(self.grid.map(of_grid)).unwrap_or(1)
    }
    /// Partitions a lattice among `processes` for operators with hops of `hops` sites, 0 for none. The result is the same on all processes.
    pub fn plan(&self, processes: usize, lattice: Lattice, hops: usize) -> Outcome<Cut> {
        let refused = |why: comms::GridError| Failure::refused(why).shared();
        let grid = match self.grid {
            None => ProcessGrid::best(processes, lattice.size(), hops).map_err(refused)?,
            Some(dims) => {
                let grid = ProcessGrid::new(dims);
                let grid = grid.map_err(|why| refused(why.with_grids_for(processes, lattice.size(), hops)))?;
                grid.check_for(processes, lattice.size(), hops).map_err(refused)?;
                grid
            }
        };
        // Extents for operators are even, because the grid has been checked.
        let local = Lattice::of_any_extents(grid.local_extents(lattice.size()));
        Ok(Cut { grid, local: local.map_err(|why| Failure::refused(why).shared())? })
    }
    /// Partitions a lattice among the processes of this run.
    pub fn cut(&self, comm: &RunCommunicator, lattice: Lattice, hops: usize) -> Outcome<Layout> {
        let cut = self.plan(comm.size(), lattice, hops)?;
        let Cut { grid, local } = cut;
        if comm.size() > 1 {
            debug!("process grid {grid}: each process has {local} of {lattice}");
        }
        let section = GridRank { grid, rank: comm.rank() }.section(lattice).map_err(Failure::shared)?;
        let chosen = self.transport.map_or_else(OnceCell::new, OnceCell::from);
        Ok(Layout { section, cut, network: comm.network(), transport: chosen, overlap: self.overlap })
    }
    /// Partitions a lattice among the processes of this run, for work without a device. If the lattice has odd extents, those of the parts
    /// may also be odd.
    pub fn cut_for_host(&self, comm: &RunCommunicator, lattice: Lattice) -> Outcome<Layout> {
        self.cut(comm, lattice, usize::from(lattice.require_even().is_ok()))
    }
}

/// Partition of a lattice among processes, with the transport of faces.
#[derive(Clone)]
pub struct Layout {
    /// This process's part of the lattice.
    pub section: Section,
    cut: Cut,
    network: Arc<dyn Network>,
    /// Requested transport, or the fastest one after it was measured.
    transport: OnceCell<Transport>,
    overlap: bool,
}

impl Layout {
    /// Returns the whole lattice.
    pub fn lattice(&self) -> Lattice {
        self.section.global
    }
    /// Returns this process's part of the lattice.
    pub fn local(&self) -> Lattice {
        self.section.local
    }
    /// Returns the process grid and the extents of the local lattice.
    pub fn cut(&self) -> Cut {
        self.cut
    }
    /// Returns the process grid.
    pub fn grid(&self) -> &ProcessGrid {
        &self.cut.grid
    }
    /// Returns the network of the processes.
    pub fn network(&self) -> &dyn Network {
        &*self.network
    }
    /// Returns a file that all processes read or write together, each its part.
    pub fn share<'a>(&'a self, path: &'a Path) -> SharedFile<'a> {
        SharedFile::new(path, self.network()).part(&self.section)
    }
    /// *Collective.* Returns the domain of this process's part on a device. If no transport is requested, the fastest one is measured first
    /// on GPUs.
    pub fn domain(&self, backend: &dyn Backend) -> Result<Domain> {
        self.domain_with(backend, self.transport(backend)?)
    }
    /// Returns the domain of this process's part on the CPU of its host, independently of the device in use.
    pub fn domain_on_host(&self) -> Result<Domain> {
        self.domain_with(&Cpu::new(None), Transport::default())
    }
    fn domain_with(&self, backend: &dyn Backend, transport: Transport) -> Result<Domain> {
        let network = Arc::clone(&self.network);
        Domain::with_transport(backend, self.lattice(), self.cut.grid, network, transport, self.overlap)
    }
    /// *Collective.* Returns the transport of faces: the requested one. Without a request, it is the fastest one by a measurement on
    /// several GPUs, otherwise the default.
    pub fn transport(&self, backend: &dyn Backend) -> Result<Transport> {
        Ok(match self.transport.get() {
            Some(transport) => *transport,
            None if self.cut.grid.size() == 1 || backend.name() == "cpu" => Transport::default(),
            None => {
                let fastest = fastest(|transport| self.domain_with(backend, transport))?;
                match fastest {
                    Transport::Direct | Transport::Copy => {
                        debug!(
                            "GPUs can access each other: faces are sent by the fastest transport, {}",
                            fastest.name()
                        );
                    }
                    Transport::Mpi => {
                        debug!("the GPUs cannot access each other: faces are sent as messages between GPUs (mpi)")
                    }
                    // The transport through host memory is slow, so its message is shown by default.
                    Transport::Host => {
                        info!("the GPUs cannot access each other: faces are sent through the host's memory (host)")
                    }
                }
                *self.transport.get_or_init(|| fastest)
            }
        })
    }
    /// Returns the layout with this transport for faces and this choice of overlap.
    #[must_use]
    pub fn with(self, transport: Transport, overlap: bool) -> Self {
        Layout { transport: OnceCell::from(transport), overlap, ..self }
    }
    /// Returns the layout of a lattice with `times` time slices in each process and the same partition of space.
    #[must_use]
    pub fn of_times(&self, times: usize) -> Self {
        let resized = |lattice: Lattice, times: usize| {
            let [x, y, z, _] = lattice.size();
            Lattice::new([x, y, z, times]).expect("extents that were even and no larger before")
        };
        let Section { global, mut origin, local } = self.section;
        origin[3] = origin[3] / local.size()[3] * times;
        let local = resized(local, times);
        let section = Section { global: resized(global, times * self.grid().dims()[3]), origin, local };
        Layout { section, cut: Cut { local, ..self.cut }, ..self.clone() }
    }
    /// Returns the record of the processes for a benchmark, with the transport of faces if any are sent.
    pub fn record_with_transport(&self) -> records::LayoutRecord {
        let mut record = self.record();
        if let Some(transport) = self.transport.get().filter(|_| self.cut.grid.size() > 1) {
            (record.transport, record.overlap) = (Some(transport.name().into()), Some(self.overlap));
        }
        record
    }
    /// Returns the record of the processes.
    pub fn record(&self) -> records::LayoutRecord {
        self.cut.record()
    }
}
