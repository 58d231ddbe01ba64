//! How the lattice of a command is cut over its processes.
use super::text;
use super::world::World;
use super::{Failure, Outcome};
use crate::config::Settings;
use comms::ProcessGrid;
use ferrite::backend::Backend;
use ferrite::domain::{Domain, Result};
use ferrite::halo::{Network, Transport};
use ferrite::lattice::{Lattice, Section};
use serde_json::{Value, json};
use std::sync::Arc;
use tracing::info;

/// Names of the transports.
pub const TRANSPORTS: [(&str, Transport); 3] =
    [("direct", Transport::Direct), ("copy", Transport::Copy), ("host", Transport::Host)];

/// `--grid`, `--transport`, `--no-overlap`.
#[derive(Clone, Debug)]
pub struct LayoutChoice {
    grid: Option<[usize; 4]>,
    transport: Transport,
    overlap: bool,
}

impl LayoutChoice {
    /// Takes the keys; notes mistakes in `settings`.
    pub fn from_settings(settings: &mut Settings) -> Self {
        LayoutChoice {
            grid: settings.parsed("grid", text::extents),
            transport: settings.choice("transport", &TRANSPORTS).unwrap_or_default(),
            overlap: !settings.is_on("no-overlap"),
        }
    }
    /// Cuts a lattice for operators that reach `hops` sites far. All processes get the same answer.
    pub fn cut(&self, world: &World, lattice: Lattice, hops: usize) -> Outcome<Layout> {
        let refused = |why: comms::GridError| Failure::refused(why).shared();
        let grid = match self.grid {
            None => ProcessGrid::best(world.size(), lattice.size(), hops).map_err(refused)?,
            Some(dims) => {
                let grid = ProcessGrid::new(dims).map_err(refused)?;
                grid.check_for(world.size(), lattice.size(), hops).map_err(refused)?;
                grid
            }
        };
        let size = lattice.size();
        let local = Lattice::new(grid.local_extents(size)).map_err(|why| Failure::refused(why).shared())?;
        if world.size() > 1 {
            info!("process grid {grid}: each has {local} of {lattice}");
        }
        let section = Section { global: lattice, origin: grid.origin(world.rank(), size), local };
        Ok(Layout { section, grid, network: world.network(), transport: self.transport, overlap: self.overlap })
    }
}

/// How a lattice is cut.
#[derive(Clone)]
pub struct Layout {
    /// This process's part.
    pub section: Section,
    grid: ProcessGrid,
    network: Arc<dyn Network>,
    transport: Transport,
    overlap: bool,
}

impl Layout {
    /// The whole lattice.
    pub fn lattice(&self) -> Lattice {
        self.section.global
    }
    /// This process's part of it.
    pub fn local(&self) -> Lattice {
        self.section.local
    }
    /// The processes.
    pub fn network(&self) -> &dyn Network {
        &*self.network
    }
    /// *Collective.* The part on a device.
    pub fn domain<B: Backend>(&self, backend: &B) -> Result<Domain<B>> {
        let Layout { grid, transport, overlap, .. } = *self;
        Domain::with_transport(backend.clone(), self.lattice(), grid, Arc::clone(&self.network), transport, overlap)
    }
    /// With another way for faces to travel.
    #[must_use]
    pub fn with(self, transport: Transport, overlap: bool) -> Self {
        Layout { transport, overlap, ..self }
    }
    /// What JSON says of it.
    pub fn describe(&self) -> Value {
        json!({ "processes": self.grid.size(), "grid": self.grid.dims() })
    }
}
