//! State of the interface between calls: the device, links, momenta, and operators.
use crate::links::{LoadedClover, LoadedLinks};
use crate::multigrid::Setups;
use crate::operator::CachedOperator;
use crate::processes::ApplicationGrid;
use ferrite::backend::Backend;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::hmc::momenta::MomentumField;
use ferrite::lattice::{Lattice, Section};
use ferrite_tasks::grid_device::GridDevice;
use ferrite_tasks::{Failure, Outcome};
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

/// State of the interface between calls.
#[derive(Default)]
pub struct State {
    /// Grid of the application's processes.
    pub grid: Option<ApplicationGrid>,
    /// Operators of the last solves or products.
    pub operator: Option<CachedOperator>,
    /// Links of type QUDA_WILSON_LINKS.
    pub wilson: Option<LoadedLinks>,
    /// Links of type QUDA_ASQTAD_FAT_LINKS.
    pub fat: Option<LoadedLinks>,
    /// Links of type QUDA_ASQTAD_LONG_LINKS.
    pub long: Option<LoadedLinks>,
    /// Links of type QUDA_SMEARED_LINKS.
    pub smeared: Option<LoadedLinks>,
    /// Multigrid setups.
    pub setups: Setups,
    /// Clover term.
    pub clover: Option<LoadedClover>,
    /// Resident momenta.
    pub momenta: Option<MomentumField>,
    /// Device, which is dropped after what is on it.
    device: Option<GridDevice>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

impl State {
    /// Calls `work` with what the interface keeps.
    pub fn with<T>(work: impl FnOnce(&mut State) -> Outcome<T>) -> Outcome<T> {
        STATE.with_borrow_mut(work)
    }
    /// Frees everything.
    pub fn end() {
        drop(STATE.take());
    }
    /// Returns whether a device is open.
    pub fn is_open(&self) -> bool {
        self.device.is_some()
    }
    /// Keeps a device.
    pub fn open(&mut self, device: GridDevice) {
        self.device = Some(device);
    }
    /// Returns the open device.
    pub fn device(&self) -> Outcome<&GridDevice> {
        self.device.as_ref().ok_or_else(|| Failure::refused("no device is open: call initQuda first"))
    }
    /// Returns the backend of the open device.
    pub fn backend(&self) -> Outcome<&dyn Backend> {
        Ok(&**self.device()?.backend())
    }
    /// Returns the part of the lattice of this process, whose extents an application gives.
    pub fn part(&self, extents: [i32; 4]) -> Outcome<Section> {
        let local = Lattice::new(extents.map(|n| usize::try_from(n).unwrap_or(0)))?;
        self.device()?.place().section_of(local)
    }
    /// Returns the links of type QUDA_WILSON_LINKS.
    pub fn wilson(&self) -> Outcome<&LoadedLinks> {
        self.wilson.as_ref().ok_or_else(|| Failure::refused("there are no links: call loadGaugeQuda first"))
    }
}

/// Links on the host, on the device, or both. They never change.
pub struct Links {
    /// Part of the lattice that the links are on.
    pub part: Section,
    host: OnceCell<Arc<HostGauge>>,
    device: OnceCell<GaugeField>,
}

impl Links {
    /// Keeps links of the host.
    pub fn of_host(part: Section, gauge: HostGauge) -> Self {
        Links { part, host: OnceCell::from(Arc::new(gauge)), device: OnceCell::new() }
    }
    /// Keeps links of the device.
    pub fn of_device(part: Section, field: GaugeField) -> Self {
        Links { part, host: OnceCell::new(), device: OnceCell::from(field) }
    }
    /// Returns the links on the host.
    pub fn host(&self) -> Outcome<&Arc<HostGauge>> {
        if self.host.get().is_none() {
            let field = self.device.get().ok_or_else(|| Failure::failed("there are no links"))?;
            let gauge = Arc::new(field.download()?);
            return Ok(self.host.get_or_init(|| gauge));
        }
        self.host.get().ok_or_else(|| Failure::failed("there are no links"))
    }
    /// *Collective.* Returns the links on the device.
    pub fn field(&self, device: &GridDevice) -> Outcome<&GaugeField> {
        if self.device.get().is_none() {
            let field = GaugeField::upload(&device.domain(&self.part)?, self.host()?)?;
            return Ok(self.device.get_or_init(|| field));
        }
        self.device.get().ok_or_else(|| Failure::failed("there are no links"))
    }
}
