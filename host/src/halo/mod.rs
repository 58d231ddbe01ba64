//! Halo exchange: hops that reach sites of other processes (Babich et al. 2011, section 6).
//!
//! A kernel packs the faces of all partitioned directions. Each end of each of these directions has its own stream, which sends the packed
//! face to the neighbour's ghost zone. Meanwhile the main stream computes the interior. The stream of the first end also packs faces and
//! computes the exteriors, one kernel for each direction as soon as its zones are filled. With four partitioned directions there are nine
//! streams, and none of them waits for the whole device.
mod border;
mod choose;
mod exchange;
mod kept;
mod memory;
mod peers;
mod regions;
mod trace;
mod transport;
mod upload;
mod zones;

pub use choose::{fastest, transports};
pub(crate) use exchange::Zones;
pub(crate) use kept::Halo;
pub use memory::{Exchanges, HaloField, Needs};
pub use trace::Span;

use crate::backend::{Backend, Call, Stream, view};
use crate::domain::{Domain, Result};
use crate::field::DeviceField;
use exchange::ExchangeContext;
use gpu_kernels::faces::{Faces, PACK_COLOURS, PACK_SITES, PACK_SPINORS, PackColours, PackSites, PackSpinors};
use gpu_kernels::ghost::{Ghosts, zone_steps};
use gpu_kernels::lattice::{Divisor, Geometry, Region};
use gpu_kernels::schwarz::Blocks;
use gpu_kernels::storage::PADDING;
use gpu_kernels::{FermionKind, Format, Precision};
use regions::{Parts, RegionPart};
use trace::{Trace, Track, direction};

/// Source of the values that hops read beyond the ends of the local lattice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HopBoundary {
    /// Values come from the neighbouring processes.
    #[default]
    Neighbours,
    /// No values: the local lattice is divided into blocks of these extents, and hops out of a block contribute zero. Each block is a
    /// separate system. The extents are even and divide those of the lattice. A direction in which one block is the whole lattice remains
    /// periodic.
    Blocks([usize; 4]),
}

/// Returns the number of bytes of a site in a ghost zone. For spinors, only the half that a hop needs is sent.
pub(crate) fn zone_bytes(kind: FermionKind, precision: Precision) -> usize {
    match kind {
        FermionKind::Wilson => precision.half_spinor_bytes(),
        FermionKind::Staggered => kind.site_bytes(precision),
    }
}

/// Launches the kernel that packs the faces of a field for its neighbours.
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

/// Parameters of a hopping term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// Number of steps of the longest hop.
    pub steps: u32,
    /// Parity of the sites on which the result is computed.
    pub parity: usize,
    /// Whether to apply the Hermitian conjugate of the hopping term.
    pub dagger: bool,
    /// Source of the values beyond the ends of the local lattice.
    pub boundary: HopBoundary,
    /// Number of blocks of the field to process, counted from the first; there are L_s blocks for each right-hand side.
    pub blocks: usize,
}

/// A part of the sites whose hops leave this device.
pub(crate) struct ExteriorPart<'a> {
    /// Number of the part, from 1; the interior is part 0.
    pub part: usize,
    pub region: Region,
    /// Number of sites in the region.
    pub sites: u32,
    /// Ghost zones that the hops of these sites read.
    pub ghosts: Ghosts,
    /// Stream on which to compute; `None` for the main stream.
    pub stream: Option<&'a Stream>,
}

/// Launches the interior; the arguments are its region and the number of its sites.
pub(crate) type InteriorLaunch<'a> = &'a mut dyn FnMut(Region, u32) -> Result;
/// Launches one part of the exterior.
pub(crate) type ExteriorLaunch<'a> = &'a mut dyn FnMut(ExteriorPart<'_>) -> Result;

/// Applies a hopping term to `input`. It calls `interior` for the sites whose hops stay on this device, and `exterior` for each part of the
/// other sites. Both are called through pointers, so that this function is compiled only once for all kernels.
pub(crate) fn hop(input: &DeviceField, hop: Hop, interior: InteriorLaunch<'_>, exterior: ExteriorLaunch<'_>) -> Result {
    let domain = input.domain();
    let geometry = domain.geometry();
    if let HopBoundary::Blocks(extents) = hop.boundary {
        let blocks = Blocks::new(&geometry, extents.map(|extent| extent as u32));
        return in_blocks(domain, &blocks, interior, exterior);
    }
    let Some(halo) = domain.halo()? else {
        return interior(Region::WHOLE, domain.half_sites());
    };
    // A hop must not reach beyond the neighbouring process.
    domain.grid().check(domain.global().size(), hop.steps as usize)?;
    let bytes = zone_bytes(input.kind(), input.precision()) * hop.blocks;
    let zones = LevelZones { geometry, steps: hop.steps, spinors: 1, bytes };
    let pack = |backend: &dyn Backend, stream: &Stream, faces: Faces, to: Ghosts| {
        pack(backend, stream, input, faces, to, hop.dagger, hop.blocks as u32)
    };
    between_neighbours(domain, halo, zones, hop.parity, &pack, interior, exterior)
}

/// Applies a hopping term of one step on a coarse level of multigrid, from the other parity to `parity`, like [`hop`]. Each site has
/// `spinors` spinors in single precision.
pub(crate) fn hop_on_level(
    input: &DeviceField,
    (geometry, spinors): (Geometry, u32),
    parity: usize,
    nrhs: usize,
    interior: InteriorLaunch<'_>,
    exterior: ExteriorLaunch<'_>,
) -> Result {
    let domain = input.domain();
    let Some(halo) = domain.halo()? else {
        return interior(Region::WHOLE, geometry.half_volume());
    };
    let bytes = input.kind().site_bytes(input.precision()) * nrhs;
    let pack = |backend: &dyn Backend, stream: &Stream, faces: Faces, to: Ghosts| {
        let kernel = PackSites { input: input.view(), faces, to, spinors: Divisor::new(spinors) };
        let call = Call::of(&PACK_SITES, Format::of(input.precision()), &kernel)?;
        Ok(backend.run(Some(stream), call, faces.sites() * spinors, nrhs as u32)?)
    };
    between_neighbours(
        domain,
        halo,
        LevelZones { geometry, steps: 1, spinors, bytes },
        parity,
        &pack,
        interior,
        exterior,
    )
}

/// Size of the ghost zones around a lattice.
#[derive(Clone, Copy)]
struct LevelZones {
    geometry: Geometry,
    /// Number of layers of a zone.
    steps: u32,
    /// Number of spinors on a site.
    spinors: u32,
    /// Number of bytes of a spinor, for all right-hand sides together.
    bytes: usize,
}

/// Function that packs faces on a stream; the last argument contains the places for the packed faces.
type Pack<'a> = dyn Fn(&dyn Backend, &Stream, Faces, Ghosts) -> Result + 'a;

/// Applies a hopping term from the other parity to `parity` on a partitioned lattice.
fn between_neighbours(
    domain: &Domain,
    halo: &Halo,
    zones: LevelZones,
    parity: usize,
    pack: &Pack<'_>,
    interior: InteriorLaunch<'_>,
    exterior: ExteriorLaunch<'_>,
) -> Result {
    let LevelZones { geometry, steps, spinors, bytes } = zones;
    let parts = Parts::new(&geometry, halo.cut(), steps);
    let zone = |mu: usize| match halo.cut() >> mu & 1 {
        0 => 0,
        _ => zone_steps(geometry.face_sites(mu) * spinors, steps),
    };
    let sizes: [u32; 4] = std::array::from_fn(zone);
    let bytes = sizes.map(|size| size as usize * PADDING * bytes);
    let backend = domain.backend();
    let mut exchanges = halo.exchanges();
    let exchange = exchanges.exchange(domain, bytes)?;
    let ghosts = |zones: Zones| view::ghosts(zones, sizes, halo.cut(), &geometry);
    let faces = Faces::new(geometry, 1 - parity as u32, steps, halo.cut());
    let recorder = halo.recorder();
    let trace = Trace::new(recorder.as_ref());
    let mut interior = || match parts.interior {
        Some(RegionPart { region, sites }) => {
            trace.device(backend, Track::Main, None, &|| "interior".into(), &mut || interior(region, sites))
        }
        None => Ok(()),
    };
    // Faces are packed while the interior is computed: a kernel that writes into neighbours' memory spends most of its time waiting.
    let (track, stream) = halo.packing();
    let places = exchange.begin(backend, Some(stream))?;
    let mut pack = || pack(backend, stream, faces, ghosts(places));
    trace.device(backend, track, Some(stream), &|| "pack".into(), &mut pack)?;
    let zones = exchange.zones();
    let mut exterior = |mu: usize, order: Option<&Stream>| match parts.exteriors[mu] {
        Some(RegionPart { region, sites }) => {
            let name = || format!("exterior {}", direction(mu));
            let track = if order.is_some() { track } else { Track::Main };
            let part = || ExteriorPart { part: 1 + mu, region, sites, ghosts: ghosts(zones), stream: order };
            trace.device(backend, track, order, &name, &mut || exterior(part()))
        }
        None => Ok(()),
    };
    let context = ExchangeContext { backend, trace, streams: &halo.streams, packing: Some(stream) };
    exchange.run(context, domain.overlap(), &mut interior, &mut exterior)
}

/// *Collective.* Performs one exchange with the neighbours in partitioned directions on the main stream. `pack` receives the places for
/// packed faces, `[μ][forward]`, of `bytes[μ]` bytes each. Returns this process's zones. They remain valid until the exchange after the
/// next one of equal size, or until the domain is released.
pub(crate) fn exchange_once(
    domain: &Domain,
    halo: &Halo,
    bytes: [usize; 4],
    pack: &mut dyn FnMut(&Zones) -> Result,
) -> Result<Zones> {
    let backend = domain.backend();
    let bytes = std::array::from_fn(|mu| if halo.cut() >> mu & 1 == 1 { bytes[mu] } else { 0 });
    let mut exchanges = halo.exchanges();
    let exchange = exchanges.exchange(domain, bytes)?;
    pack(&exchange.begin(backend, None)?)?;
    let context = ExchangeContext { backend, trace: Trace::new(None), streams: &halo.streams, packing: None };
    exchange.run(context, true, &mut || Ok(()), &mut |_, _| Ok(()))?;
    Ok(exchange.zones())
}

/// Applies [`hop`] within blocks; nothing is exchanged.
fn in_blocks(domain: &Domain, blocks: &Blocks, interior: InteriorLaunch<'_>, exterior: ExteriorLaunch<'_>) -> Result {
    let geometry = domain.geometry();
    let (size, block) = (geometry.size(), blocks.extents());
    let closed: u32 = (0..4).map(|mu| u32::from(block[mu] < size[mu]) << mu).sum();
    let closed = closed | domain.closed();
    let ghosts = Ghosts::closed(closed, *blocks);
    if blocks.count() > 1 {
        // With several blocks, most sites are near an end of their block, so all are computed as exterior.
        let (region, sites) = (Region::WHOLE, domain.half_sites());
        return exterior(ExteriorPart { part: 1, region, sites, ghosts, stream: None });
    }
    let parts = Parts::new(&geometry, closed, 1);
    if let Some(RegionPart { region, sites }) = parts.interior {
        interior(region, sites)?;
    }
    for (mu, part) in parts.exteriors.iter().enumerate() {
        if let Some(RegionPart { region, sites }) = *part {
            exterior(ExteriorPart { part: 1 + mu, region, sites, ghosts, stream: None })?;
        }
    }
    Ok(())
}
