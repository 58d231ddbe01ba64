//! Domain of a calculation: a device with this process's part of the lattice, and a connection with the other processes. The module
//! [`halo`](crate::halo) makes the exchanges with other processes; the domain keeps their state.
mod error;
mod part;
mod sums;
mod transport;

pub use error::{DeviceError, MOST_LOCAL_SITES, Result};
pub use part::Part;
pub(crate) use sums::{PartialSums, SumTarget};
pub use transport::Transport;

use crate::backend::Backend;
use crate::lattice::{FixedPointSum, Lattice, Section};
use crate::network::Network;
use comms::{ProcessGrid, Solo};
use gpu_kernels::lattice::{Bordered, Geometry, LOWER_END, Position, Region, UPPER_END};
use gpu_kernels::{Format, Instances};
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// A device and the part of the lattice that it holds. A clone is cheap and shares everything.
#[derive(Clone)]
pub struct Domain {
    backend: Arc<dyn Backend>,
    shape: Arc<DomainShape>,
}

#[derive(Clone)]
struct DomainShape {
    global: Lattice,
    local: Lattice,
    grid: ProcessGrid,
    network: Arc<dyn Network>,
    transport: Transport,
    /// Whether the interior is computed while faces are sent.
    overlap: bool,
    /// State of halo exchanges. The module [`halo`](crate::halo) makes it, and it lives as long as the domain.
    kept: Arc<Kept>,
    /// Ends in t that are also ends of the whole lattice: a combination of `LOWER_END` and `UPPER_END`.
    ends: u32,
    /// Directions μ (bit μ) at whose ends hops stop, because this domain is a block of another domain's lattice.
    closed: u32,
    /// Whether sites are in [lane order](gpu_kernels::lattice::lanes), if the extents allow it.
    lanes: bool,
}

/// A value whose type is private to the module that makes it.
type Kept = OnceLock<Box<dyn Any + Send + Sync>>;

impl Domain {
    /// Makes a domain that holds the whole lattice on one device.
    pub fn single(backend: impl Into<Arc<dyn Backend>>, lattice: Lattice) -> Result<Self> {
        Self::new(backend, lattice, ProcessGrid::SINGLE, Arc::new(Solo::new()))
    }
    /// *Collective.* Makes the domain of this process in `grid`: a device with this process's part of the lattice `global`.
    ///
    /// On GPUs, processes of a machine open each other's ghost zones at the first hop in a partitioned direction. CUDA forbids freeing
    /// memory that another process has open. Therefore call [`release`](Self::release) on all processes after the last hop, before the last
    /// clone of the domain is dropped.
    ///
    /// # Errors
    /// Fails if the grid does not fit the lattice, if a part has more sites than [`MOST_LOCAL_SITES`], or if the device fails.
    ///
    /// # Panics
    /// Panics if the number of processes of `network` differs from that of the grid.
    pub fn new(
        backend: impl Into<Arc<dyn Backend>>,
        global: Lattice,
        grid: ProcessGrid,
        network: Arc<dyn Network>,
    ) -> Result<Self> {
        Self::with_transport(backend, global, grid, network, Transport::default(), true)
    }
    /// *Collective.* Makes a domain like [`new`](Self::new), with the given transport of faces. With `overlap`, the interior is computed
    /// while faces are sent.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    ///
    /// # Panics
    /// See [`new`](Self::new).
    pub fn with_transport(
        backend: impl Into<Arc<dyn Backend>>,
        global: Lattice,
        grid: ProcessGrid,
        network: Arc<dyn Network>,
        transport: Transport,
        overlap: bool,
    ) -> Result<Self> {
        let backend = backend.into();
        grid.check(global.size(), 1)?;
        assert_eq!(grid.size(), network.size(), "the grid {grid} has all processes");
        let local = Lattice::new(grid.local_extents(global.size()))?;
        if Part::new(local, &grid).bordered_sites() > MOST_LOCAL_SITES / 2 {
            return Err(DeviceError::PartTooLarge { local });
        }
        let (place, parts) = (grid.coordinates(network.rank())[3], grid.dims()[3]);
        let upper = if place + 1 == parts { UPPER_END } else { 0 };
        let lower = if place == 0 { LOWER_END } else { 0 };
        // Lane order is used on one process only. On several processes, only some lanes of a vector would have hops that leave the part.
        let lanes = backend.has_lanes() && grid.size() == 1;
        let (kept, ends) = (Arc::default(), upper | lower);
        let shape = DomainShape { global, local, grid, network, transport, overlap, kept, ends, closed: 0, lanes };
        Ok(Domain { backend, shape: Arc::new(shape) })
    }
    /// Returns a domain that holds this process's part and a ghost zone of the neighbours' sites in partitioned directions. The zone is
    /// `width` sites wide, an even number. The domain does not communicate: its operators act within
    /// [blocks](crate::halo::HopBoundary::Blocks).
    pub(crate) fn with_ghost_zone(&self, width: u32) -> Result<Self> {
        let border = self.border(width);
        let local = self.local().size();
        let lattice = Lattice::new(std::array::from_fn(|mu| local[mu] + 2 * border[mu] as usize))?;
        if lattice.volume() > MOST_LOCAL_SITES {
            return Err(DeviceError::PartTooLarge { local: self.local() });
        }
        let closed = (0..4).map(|mu| u32::from(border[mu] > 0) << mu).sum();
        let shape = DomainShape {
            global: lattice,
            local: lattice,
            grid: ProcessGrid::SINGLE,
            network: Arc::new(Solo::new()),
            kept: Arc::default(),
            // If t is partitioned, an end of the whole lattice can lie inside the lattice with the ghost zone. The ghost zones of fields
            // contain the sign of the boundary condition, so hops must not apply it.
            ends: if border[3] > 0 { 0 } else { self.shape.ends },
            closed,
            lanes: self.shape.lanes && border == [0; 4],
            ..(*self.shape).clone()
        };
        Ok(Domain { backend: self.backend.clone(), shape: Arc::new(shape) })
    }
    /// Returns a domain with the same device and processes, whose part on this process is `local`. It holds the coarse vectors of
    /// multigrid.
    pub(crate) fn with_local(&self, local: Lattice) -> Result<Self> {
        let dims = self.shape.grid.dims();
        let global = Lattice::new(std::array::from_fn(|mu| local.size()[mu] * dims[mu]))?;
        if local.volume() > MOST_LOCAL_SITES {
            return Err(DeviceError::PartTooLarge { local });
        }
        let shape = DomainShape { global, local, closed: 0, lanes: false, ..(*self.shape).clone() };
        Ok(Domain { backend: self.backend.clone(), shape: Arc::new(shape) })
    }
    /// Returns the directions μ (bit μ) in which this lattice is a part of a larger one.
    pub(crate) fn closed(&self) -> u32 {
        self.shape.closed | self.cut()
    }
    /// Whether the first time slice (with `upper` the last) is at an end of the whole lattice.
    pub(crate) fn has_end(&self, upper: bool) -> bool {
        self.shape.ends & if upper { UPPER_END } else { LOWER_END } != 0
    }
    /// Checks that `found` is the lattice of this process's part; `what` names the field in the error.
    pub(crate) fn expect(&self, what: &'static str, found: Lattice) -> Result {
        let expected = self.local();
        if found == expected { Ok(()) } else { Err(DeviceError::OtherLattice { what, found, expected }) }
    }
    /// Checks that a field has the lattice of this process's part and is in the memory of this domain's device.
    pub(crate) fn expect_here(&self, what: &'static str, found: &Self) -> Result {
        self.expect(what, found.local())?;
        if self.backend.is(&*found.backend) {
            return Ok(());
        }
        Err(DeviceError::OtherDevice { what, found: found.backend.device(), expected: self.backend.device() })
    }
    /// Launches a kernel on all sites, first the even, then the odd ones; `arguments` returns its arguments for a parity.
    pub(crate) fn launch_on_parities<A: Copy>(
        &self,
        kernel: &Instances<A>,
        format: Format,
        nrhs: usize,
        arguments: impl Fn(usize) -> A,
    ) -> Result {
        (0..2).try_for_each(|parity| {
            Ok(self.backend.launch(kernel, format, &arguments(parity), self.half_sites(), nrhs as u32)?)
        })
    }
    /// Returns the device of the domain.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }
    /// Returns the whole lattice, which all processes share.
    pub fn global(&self) -> Lattice {
        self.shape.global
    }
    /// Returns this process's part of the lattice.
    pub fn local(&self) -> Lattice {
        self.shape.local
    }
    /// Returns the process grid that partitions the lattice.
    pub fn grid(&self) -> &ProcessGrid {
        &self.shape.grid
    }
    /// Returns the connection with the other processes.
    pub fn network(&self) -> &dyn Network {
        &*self.shape.network
    }
    /// Returns the transport of faces that was requested.
    pub(crate) fn transport(&self) -> Transport {
        self.shape.transport
    }
    /// Whether the interior is computed while faces are sent.
    pub(crate) fn overlap(&self) -> bool {
        self.shape.overlap
    }
    /// Returns the partitioned directions μ as bits.
    pub(crate) fn cut(&self) -> u32 {
        (0..4).map(|mu| u32::from(self.shape.grid.is_partitioned(mu)) << mu).sum()
    }
    /// Returns a value that the domain and its clones keep for another module; `make` makes it in the first call.
    ///
    /// # Panics
    /// Panics if it is called for values of different types.
    pub(crate) fn kept<T: Any + Send + Sync>(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let kept = match self.shape.kept.get() {
            Some(kept) => kept,
            None => {
                let made = Box::new(make()?);
                self.shape.kept.get_or_init(|| made)
            }
        };
        Ok(kept.downcast_ref().expect("a domain keeps values of one type"))
    }
    /// Returns the global coordinates of the first site of the local lattice.
    pub fn origin(&self) -> [usize; 4] {
        self.shape.grid.origin(self.network().rank(), self.global().size())
    }
    /// Returns this process's part as a box of the whole lattice.
    pub fn section(&self) -> Section {
        Section { global: self.global(), origin: self.origin(), local: self.local() }
    }
    /// Returns the number of local sites of one parity.
    pub fn half_sites(&self) -> u32 {
        self.local().half_volume() as u32
    }
    /// Returns the geometry of the local lattice for kernels.
    pub fn geometry(&self) -> Geometry {
        self.geometry_with([0; 4])
    }
    /// Returns the geometry of the local lattice with a border of `border[μ]` sites at both ends of each direction.
    fn geometry_with(&self, border: [u32; 4]) -> Geometry {
        let size = self.local().size();
        let geometry = Geometry::part(std::array::from_fn(|mu| size[mu] as u32 + 2 * border[mu]), self.shape.ends);
        if self.shape.lanes { geometry.in_lane_order() } else { geometry }
    }
    /// Returns the local lattice with a border of `border[μ]` sites, an even number, at both ends of each direction.
    pub(crate) fn bordered_by(&self, border: [u32; 4]) -> Bordered {
        let geometry = self.geometry_with(border);
        if border == [0; 4] {
            return Bordered::bare(geometry);
        }
        Bordered { geometry, inner: Region::new(border, self.local().size().map(|e| e as u32)) }
    }
    /// Returns `width` for each partitioned direction, and 0 for the others.
    pub(crate) fn border(&self, width: u32) -> [u32; 4] {
        std::array::from_fn(|mu| if self.shape.grid.is_partitioned(mu) { width } else { 0 })
    }
    /// Returns the position of the local lattice in the whole lattice.
    pub(crate) fn position(&self) -> Position {
        let [x, y, z, _] = self.global().size().map(|e| e as u32);
        Position { origin: self.origin().map(|x| x as u32), extents: [x, y, z] }
    }
    /// *Collective.* Waits for the reductions launched so far, and writes the sums of their values over all processes to `out`.
    pub fn sums(&self, out: &mut [f64]) -> Result {
        self.backend.sums(out)?;
        self.sum(out)
    }
    /// *Collective.* Adds the sums of all processes; the result has the same bits on every process grid.
    pub(crate) fn exact_sums<const N: usize>(&self, mine: [FixedPointSum; N]) -> Result<[f64; N]> {
        let bytes: Vec<u8> = mine.iter().flat_map(|sum| sum.words()).flat_map(u64::to_le_bytes).collect();
        let mut total = [FixedPointSum::default(); N];
        for bytes in self.shape.network.all_gather(&bytes)? {
            for (total, words) in total.iter_mut().zip(bytes.as_chunks::<24>().0) {
                let word = |k: usize| u64::from_le_bytes(words.as_chunks().0[k]);
                *total = total.combine(FixedPointSum::from_words([word(0), word(1), word(2)]));
            }
        }
        Ok(total.map(FixedPointSum::total))
    }
    /// *Collective.* Returns the largest of the numbers that the processes pass.
    pub(crate) fn largest(&self, mine: f64) -> Result<f64> {
        Ok(self.largest_of(vec![mine])?[0])
    }
    /// *Collective.* Returns the largest value over all processes for each element of the lists that they pass.
    pub(crate) fn largest_of(&self, mut mine: Vec<f64>) -> Result<Vec<f64>> {
        let bytes: Vec<u8> = mine.iter().copied().flat_map(f64::to_le_bytes).collect();
        for bytes in self.shape.network.all_gather(&bytes)? {
            for (largest, bytes) in mine.iter_mut().zip(bytes.as_chunks().0) {
                *largest = largest.max(f64::from_le_bytes(*bytes));
            }
        }
        Ok(mine)
    }
    /// *Collective.* Replaces each value by its sum over all processes, which is computed in a fixed order.
    pub fn sum(&self, values: &mut [f64]) -> Result {
        Ok(self.shape.network.sum(values)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use comms::{CommError, Threads};

    fn large() -> Lattice {
        Lattice::new([192, 192, 192, 384]).unwrap()
    }

    #[test]
    fn one_device_does_not_hold_what_it_cannot_count() {
        let refused = |domain: Result<Domain>| domain.err().unwrap().to_string();
        let alone = refused(Domain::single(Cpu::new(Some(1)), large()));
        assert!(alone.contains("192×192×192×384") && alone.contains("2147483647"), "{alone}");
        // Small enough, but not with its border.
        let wide = Lattice::new([6, 1 << 13, 1 << 14, 4]).unwrap();
        assert!(wide.volume() / 2 <= MOST_LOCAL_SITES);
        let said = Threads::run(2, |world| {
            let grid = ProcessGrid::new([1, 1, 1, 2]).unwrap();
            Ok::<_, CommError>(refused(Domain::new(Cpu::new(Some(1)), wide, grid, Arc::new(world))))
        });
        assert!(said.unwrap().iter().all(|said| said.contains("6×8192×16384×2 and its border")));
    }

    #[test]
    fn a_lattice_beyond_32_bits_is_shared() {
        let grid = ProcessGrid::new([1, 1, 1, 4]).unwrap();
        let last = Threads::run(4, |world| {
            let domain = Domain::new(Cpu::new(Some(1)), large(), grid, Arc::new(world)).unwrap();
            let geometry = domain.geometry();
            let site = geometry.site(domain.half_sites() - 1, 0);
            let [on_device, on_host] = [
                domain.position().lexicographic(&site),
                domain.section().global_index(domain.local().volume() - 1) as u64,
            ];
            Ok::<_, CommError>([on_device, on_host])
        });
        let last = last.unwrap();
        let quarter = large().volume() as u64 / 4;
        assert_eq!(last, [1, 2, 3, 4].map(|n| [n * quarter - 1; 2]));
    }
}
