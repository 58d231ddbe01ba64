//! Domain of a calculation: a device, this process's part of the lattice, and the other processes. Exchanges with them
//! are those of [`halo`](crate::halo), which a domain keeps.
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

/// A device and the part of a lattice that it holds. Cheap to clone.
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
    /// Whether the interior is computed while faces travel.
    overlap: bool,
    /// The halo of the room above, which does not outlive the domain.
    kept: Arc<Kept>,
    /// Which ends in t are those of the whole lattice.
    ends: u32,
    /// Directions at whose ends hops stop, as this is a part of another domain's lattice.
    closed: u32,
    /// Whether sites are in [lane order](gpu_kernels::lattice::lanes) where extents allow it.
    lanes: bool,
}

/// A value of a type that is not known here.
type Kept = OnceLock<Box<dyn Any + Send + Sync>>;

impl Domain {
    /// The whole lattice on one device.
    pub fn single(backend: impl Into<Arc<dyn Backend>>, lattice: Lattice) -> Result<Self> {
        Self::new(backend, lattice, ProcessGrid::SINGLE, Arc::new(Solo::new()))
    }
    /// The part of `global` that falls to this process of `grid`.
    ///
    /// On GPUs the processes of a machine open each other's ghost zones when they first hop over a cut, and CUDA
    /// forbids freeing what others have open: call [`release`](Self::release) on all processes after the last hop, before
    /// the last clone of the domain is dropped.
    ///
    /// # Errors
    /// A grid that does not fit the lattice, a part of more sites than [`MOST_LOCAL_SITES`], and those of the device.
    ///
    /// # Panics
    /// When `network` has not as many processes as the grid.
    pub fn new(
        backend: impl Into<Arc<dyn Backend>>,
        global: Lattice,
        grid: ProcessGrid,
        network: Arc<dyn Network>,
    ) -> Result<Self> {
        Self::with_transport(backend, global, grid, network, Transport::default(), true)
    }
    /// *Collective.* The same with a choice of how faces get to other processes, and whether the interior is computed
    /// meanwhile.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new).
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
        // Hops out of a part would be those of some lanes only.
        let lanes = backend.has_lanes() && grid.size() == 1;
        let (kept, ends) = (Arc::default(), upper | lower);
        let shape = DomainShape { global, local, grid, network, transport, overlap, kept, ends, closed: 0, lanes };
        Ok(Domain { backend, shape: Arc::new(shape) })
    }
    /// This process's part with a ghost zone of `width` sites, an even number, of its neighbours' in the directions that are
    /// cut: a domain of its own that talks to nobody. Operators on it are those of [blocks](crate::halo::HopBoundary::Blocks).
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
            // An end of the whole lattice that is cut is within this one. Ghost zones of fields have its sign, and hops have none.
            ends: if border[3] > 0 { 0 } else { self.shape.ends },
            closed,
            lanes: self.shape.lanes && border == [0; 4],
            ..(*self.shape).clone()
        };
        Ok(Domain { backend: self.backend.clone(), shape: Arc::new(shape) })
    }
    /// The same device, processes and exchanges with another lattice for the part of each: that on which coarse vectors are
    /// kept.
    pub(crate) fn with_local(&self, local: Lattice) -> Result<Self> {
        let dims = self.shape.grid.dims();
        let global = Lattice::new(std::array::from_fn(|mu| local.size()[mu] * dims[mu]))?;
        if local.volume() > MOST_LOCAL_SITES {
            return Err(DeviceError::PartTooLarge { local });
        }
        let shape = DomainShape { global, local, closed: 0, lanes: false, ..(*self.shape).clone() };
        Ok(Domain { backend: self.backend.clone(), shape: Arc::new(shape) })
    }
    /// Directions, one bit each, in which the lattice is a part of a larger one.
    pub(crate) fn closed(&self) -> u32 {
        self.shape.closed | self.cut()
    }
    /// Whether the first sites in t, or the last, are those of the whole lattice.
    pub(crate) fn has_end(&self, upper: bool) -> bool {
        self.shape.ends & if upper { UPPER_END } else { LOWER_END } != 0
    }
    /// Whether a field of this process's part is what it says to be.
    pub(crate) fn expect(&self, what: &'static str, found: Lattice) -> Result {
        let expected = self.local();
        if found == expected { Ok(()) } else { Err(DeviceError::OtherLattice { what, found, expected }) }
    }
    /// The same of a field that is on the device already.
    pub(crate) fn expect_here(&self, what: &'static str, found: &Self) -> Result {
        self.expect(what, found.local())?;
        if self.backend.is(&*found.backend) {
            return Ok(());
        }
        Err(DeviceError::OtherDevice { what, found: found.backend.device(), expected: self.backend.device() })
    }
    /// A launch at all sites of each parity, with these arguments for it.
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
    /// The device.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }
    /// The lattice of all processes together.
    pub fn global(&self) -> Lattice {
        self.shape.global
    }
    /// This process's part.
    pub fn local(&self) -> Lattice {
        self.shape.local
    }
    /// How the lattice is cut.
    pub fn grid(&self) -> &ProcessGrid {
        &self.shape.grid
    }
    /// The other processes.
    pub fn network(&self) -> &dyn Network {
        &*self.shape.network
    }
    /// The requested transport of faces.
    pub(crate) fn transport(&self) -> Transport {
        self.shape.transport
    }
    /// Whether the interior is computed while faces travel.
    pub(crate) fn overlap(&self) -> bool {
        self.shape.overlap
    }
    /// Directions that are cut, one bit each.
    pub(crate) fn cut(&self) -> u32 {
        (0..4).map(|mu| u32::from(self.shape.grid.is_partitioned(mu)) << mu).sum()
    }
    /// Returns the value that this domain and its clones keep for a room above; `make` makes it at the first call.
    ///
    /// # Panics
    /// When it is called for values of two types.
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
    /// Global coordinates of the local lattice's first site.
    pub fn origin(&self) -> [usize; 4] {
        self.shape.grid.origin(self.network().rank(), self.global().size())
    }
    /// This process's part as a box of the whole lattice.
    pub fn section(&self) -> Section {
        Section { global: self.global(), origin: self.origin(), local: self.local() }
    }
    /// Sites of one parity, half of the local ones.
    pub fn half_sites(&self) -> u32 {
        self.local().half_volume() as u32
    }
    /// The local lattice as kernels see it.
    pub fn geometry(&self) -> Geometry {
        self.geometry_with([0; 4])
    }
    /// The local lattice with a border of so many sites at both ends of each direction.
    fn geometry_with(&self, border: [u32; 4]) -> Geometry {
        let size = self.local().size();
        let geometry = Geometry::part(std::array::from_fn(|mu| size[mu] as u32 + 2 * border[mu]), self.shape.ends);
        if self.shape.lanes { geometry.in_lane_order() } else { geometry }
    }
    /// The local lattice with borders of so many sites, even numbers, at both ends of each direction.
    pub(crate) fn bordered_by(&self, border: [u32; 4]) -> Bordered {
        let geometry = self.geometry_with(border);
        if border == [0; 4] {
            return Bordered::bare(geometry);
        }
        Bordered { geometry, inner: Region::new(border, self.local().size().map(|e| e as u32)) }
    }
    /// `width` in the directions that are cut.
    pub(crate) fn border(&self, width: u32) -> [u32; 4] {
        std::array::from_fn(|mu| if self.shape.grid.is_partitioned(mu) { width } else { 0 })
    }
    /// Where the local lattice is in the whole one.
    pub(crate) fn position(&self) -> Position {
        let [x, y, z, _] = self.global().size().map(|e| e as u32);
        Position { origin: self.origin().map(|x| x as u32), extents: [x, y, z] }
    }
    /// Waits for the reductions launched so far and sums them over all processes.
    pub fn sums(&self, out: &mut [f64]) -> Result {
        self.backend.sums(out)?;
        self.sum(out)
    }
    /// *Collective.* Sums of terms that are sites' own: the same bits however the lattice is cut.
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
    /// *Collective.* The largest number of all processes.
    pub(crate) fn largest(&self, mine: f64) -> Result<f64> {
        Ok(self.largest_of(vec![mine])?[0])
    }
    /// *Collective.* Place by place, the largest of the numbers of all processes.
    pub(crate) fn largest_of(&self, mut mine: Vec<f64>) -> Result<Vec<f64>> {
        let bytes: Vec<u8> = mine.iter().copied().flat_map(f64::to_le_bytes).collect();
        for bytes in self.shape.network.all_gather(&bytes)? {
            for (largest, bytes) in mine.iter_mut().zip(bytes.as_chunks().0) {
                *largest = largest.max(f64::from_le_bytes(*bytes));
            }
        }
        Ok(mine)
    }
    /// *Collective.* Sums over all processes, in a fixed order.
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
        assert!(said.unwrap().iter().all(|said| said.contains("6×8192×16384×2 has with its border")));
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
