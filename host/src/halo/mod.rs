//! How hops reach sites that other processes have (Babich et al. 2011, section 6).
//!
//! A kernel packs the faces of all directions that are cut. Each end of each of them has a stream of its own, which takes
//! the packed face to the neighbour's ghost zone, while the main stream computes the interior. The first of these also
//! packs, and computes the sites near the ends: one kernel for each direction, as soon as its zones are filled, one after
//! the other. Nine streams in all, none of which waits for the whole device.
mod border;
mod choose;
mod memory;
mod regions;
mod upload;

pub use choose::{fastest, transports};
pub use memory::{Exchanges, HaloField, Needs};

use crate::backend::{Backend, Call, Stream, view};
use crate::domain::{Domain, ExchangeContext, Result, Trace, Track, Zones, direction, exchange_of, lock};
use crate::field::DeviceField;
use gpu_kernels::faces::{Faces, PACK_COLOURS, PACK_SPINORS, PackColours, PackSpinors};
use gpu_kernels::ghost::{Ghosts, zone_tiles};
use gpu_kernels::lattice::Region;
use gpu_kernels::schwarz::Blocks;
use gpu_kernels::storage::TILE;
use gpu_kernels::{FermionKind, Precision};
use regions::{Parts, RegionPart};

/// What hops read beyond the ends of the local lattice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HopBoundary {
    /// Other processes' sites.
    #[default]
    Neighbours,
    /// Nothing: the local lattice is cut into blocks of these extents, even ones that divide it, and fields are taken to be
    /// zero beyond the ends of a block, but for a direction in which one block is the whole lattice. Each block has its
    /// own system then.
    Blocks([usize; 4]),
}

/// Bytes of a site in a ghost zone: of spinors only what a hop needs travels.
pub(crate) fn zone_bytes(kind: FermionKind, precision: Precision) -> usize {
    match kind {
        FermionKind::Wilson => precision.half_spinor_bytes(),
        FermionKind::Staggered => kind.site_bytes(precision),
    }
}

/// Launches the kernel that packs the faces of a field.
fn pack(
    backend: &dyn Backend,
    stream: &Stream,
    field: &DeviceField,
    faces: Faces,
    to: Ghosts,
    dagger: bool,
    nrhs: u32,
) -> Result {
    let (input, format, sites) = (field.view(), field.format(), faces.sites());
    let spinors = PackSpinors { input, faces, to, dagger: u32::from(dagger) };
    let colours = PackColours { input, faces, to };
    let call = match field.kind() {
        FermionKind::Wilson => Call::of(&PACK_SPINORS, format, &spinors)?,
        FermionKind::Staggered => Call::of(&PACK_COLOURS, format, &colours)?,
    };
    Ok(backend.run(Some(stream), call, sites, nrhs)?)
}

/// How an operator hops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// Steps of the longest hop.
    pub steps: u32,
    /// Parity of the sites that it reaches.
    pub parity: usize,
    /// The Hermitian conjugate.
    pub dagger: bool,
    /// What it finds beyond the ends.
    pub boundary: HopBoundary,
    /// Right-hand sides, the first ones of a field.
    pub nrhs: usize,
}

/// Sites whose hops leave this device.
pub(crate) struct Outside<'a> {
    /// Which part, from 1: 0 is that of the sites whose hops do not.
    pub part: usize,
    pub region: Region,
    /// Their number.
    pub sites: u32,
    /// What their hops find.
    pub ghosts: Ghosts,
    /// Where to compute them; `None`: in the main order of work.
    pub stream: Option<&'a Stream>,
}

/// Computes the sites of a region, which are so many.
pub(crate) type InteriorLaunch<'a> = &'a mut dyn FnMut(Region, u32) -> Result;
/// Computes sites whose hops leave this device.
pub(crate) type ExteriorLaunch<'a> = &'a mut dyn FnMut(Outside<'_>) -> Result;

/// Applies a hopping term to `input`: calls `inside` with the sites whose hops stay on this device, and `outside` with
/// the others, part after part. Each is called through a pointer, so that this is compiled once for all kernels.
pub(crate) fn hop(input: &DeviceField, hop: Hop, inside: InteriorLaunch<'_>, outside: ExteriorLaunch<'_>) -> Result {
    let domain = input.domain();
    let geometry = domain.geometry();
    if let HopBoundary::Blocks(extents) = hop.boundary {
        let blocks = Blocks::new(&geometry, extents.map(|extent| extent as u32));
        return in_blocks(domain, &blocks, inside, outside);
    }
    let Some(halo) = domain.halo() else {
        return inside(Region::WHOLE, domain.half_sites());
    };
    // A hop must not pass beyond the neighbour.
    domain.grid().check(domain.global().size(), hop.steps as usize)?;
    let parts = Parts::new(&geometry, halo.cut(), hop.steps);
    let zone = |mu: usize| if halo.cut() >> mu & 1 == 1 { zone_tiles(geometry.face_sites(mu), hop.steps) } else { 0 };
    let tiles: [u32; 4] = std::array::from_fn(zone);
    let nrhs = hop.nrhs;
    let bytes = tiles.map(|tiles| tiles as usize * TILE * zone_bytes(input.kind(), input.precision()) * nrhs);
    let backend = domain.backend();
    let mut exchanges = lock(&halo.exchanges);
    let exchange = exchange_of(halo.transport, &halo.warned, &mut exchanges, domain, bytes)?;
    let ghosts = |zones: Zones| view::ghosts(zones, tiles, halo.cut(), &geometry);
    let faces = Faces::new(geometry, 1 - hop.parity as u32, hop.steps, halo.cut());
    let mut recorder = lock(&halo.recorder);
    let trace = Trace::new(recorder.as_mut());
    let mut inside = || match parts.interior {
        Some(RegionPart { region, sites }) => {
            trace.device(backend, Track::Main, None, &|| "interior".into(), &mut || inside(region, sites))
        }
        None => Ok(()),
    };
    // Faces are packed beside the interior: where that writes into neighbours' memory it waits more than it works.
    let (track, stream) = halo.packing();
    let places = exchange.begin(backend, Some(stream))?;
    let mut pack = || pack(backend, stream, input, faces, ghosts(places), hop.dagger, nrhs as u32);
    trace.device(backend, track, Some(stream), &|| "pack".into(), &mut pack)?;
    let zones = exchange.zones();
    let mut outside = |mu: usize, order: Option<&Stream>| match parts.exteriors[mu] {
        Some(RegionPart { region, sites }) => {
            let name = || format!("exterior {}", direction(mu));
            let track = if order.is_some() { track } else { Track::Main };
            let part = || Outside { part: 1 + mu, region, sites, ghosts: ghosts(zones), stream: order };
            trace.device(backend, track, order, &name, &mut || outside(part()))
        }
        None => Ok(()),
    };
    let context = ExchangeContext { backend, trace: &trace, streams: &halo.streams, packing: Some(stream) };
    exchange.run(context, halo.overlap, &mut inside, &mut outside)
}

/// [`hop`] without neighbours: nothing is sent.
fn in_blocks(domain: &Domain, blocks: &Blocks, inside: InteriorLaunch<'_>, outside: ExteriorLaunch<'_>) -> Result {
    let geometry = domain.geometry();
    let (size, block) = (geometry.size(), blocks.extents());
    let closed: u32 = (0..4).map(|mu| u32::from(block[mu] < size[mu]) << mu).sum();
    let closed = closed | domain.closed();
    let ghosts = Ghosts::closed(closed, *blocks);
    if blocks.count() > 1 {
        // Most sites are near an end of their block.
        let (region, sites) = (Region::WHOLE, domain.half_sites());
        return outside(Outside { part: 1, region, sites, ghosts, stream: None });
    }
    let parts = Parts::new(&geometry, closed, 1);
    if let Some(RegionPart { region, sites }) = parts.interior {
        inside(region, sites)?;
    }
    for (mu, part) in parts.exteriors.iter().enumerate() {
        if let Some(RegionPart { region, sites }) = *part {
            outside(Outside { part: 1 + mu, region, sites, ghosts, stream: None })?;
        }
    }
    Ok(())
}
