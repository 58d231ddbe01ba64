//! Borders of links and ghost zones of fields: sites of other processes around the local lattice.
use super::Halo;
use super::exchange::ExchangeContext;
use super::trace::Trace;
use crate::backend::{Stream, view};
use crate::domain::{Domain, Result};
use crate::field::{DeviceField, GaugeField};
use gpu_kernels::field::ThinLinks;
use gpu_kernels::lattice::{Geometry, Region};
use gpu_kernels::smeared::{COPY_THIN, CopyThin};
use gpu_kernels::storage::PADDING;
use gpu_kernels::transfer::{COPY_REGION, CopySites};
use gpu_kernels::{Format, Precision};
use std::cmp::Ordering;

/// A slab of a lattice with a border, and the memory of the message that is made from the slab or copied into it.
struct Slab {
    region: Region,
    /// Number of sites of one parity.
    sites: u32,
    message: *mut u8,
    /// Direction in which data are copied.
    way: SlabDirection,
}

enum SlabDirection {
    /// Copy from the slab into a message to the neighbour.
    Out,
    /// Copy from a message into the slab; the neighbour is at the forward or the backward end of direction μ.
    In { mu: usize, forward: bool },
}

impl Halo {
    /// *Collective.* Fills the border of `links` with the links of the neighbours. The border is `border[μ]` sites wide, an even number in
    /// partitioned directions, and not wider than the part of any neighbour.
    pub fn fill_links(&self, domain: &Domain, border: [u32; 4], links: [ThinLinks; 2], precision: Precision) -> Result {
        let (backend, geometry) = (domain.backend(), domain.bordered_by(border).geometry);
        let half = |sites: u32| GaugeField::bytes_for(precision, sites as usize);
        let copy = |slab: Slab| {
            let Slab { region, sites, message, way } = slab;
            for (parity, links) in links.into_iter().enumerate() {
                let (message, parity) =
                    (view::message_links(message.wrapping_add(parity * half(sites))), parity as u32);
                let kernel = match way {
                    SlabDirection::Out => {
                        CopyThin { input: links, from: region, out: message, to: Region::WHOLE, geometry, parity }
                    }
                    SlabDirection::In { .. } => {
                        CopyThin { input: message, from: Region::WHOLE, out: links, to: region, geometry, parity }
                    }
                };
                backend.launch(&COPY_THIN, Format::of(precision), &kernel, sites, 1)?;
            }
            Ok(())
        };
        self.fill(domain, border, geometry, |sites| 2 * half(sites), copy)
    }
    /// *Collective.* Copies the first `nrhs` right-hand sides of a field, on the sites of `parity`, to a field on the [lattice with a ghost
    /// zone](Domain::with_ghost_zone) of `width` sites, and fills the ghost zone from the neighbours. Both fields have the same format.
    /// Sites beyond an end of the whole lattice in t are multiplied by `across`.
    pub fn fill_ghost_zone(
        &self,
        input: &DeviceField,
        nrhs: usize,
        out: &mut DeviceField,
        parity: u32,
        width: u32,
        across: f64,
    ) -> Result {
        let shape = input.shape().with_nrhs(nrhs);
        out.expect(out.domain(), shape)?;
        let format = input.format();
        let (domain, geometry, nrhs) = (input.domain(), out.domain().geometry(), shape.blocks() as u32);
        let (backend, border) = (domain.backend(), domain.border(width));
        let (from, to) = (Region::WHOLE, domain.bordered_by(border).inner);
        let (factor, field) = (1.0, out.view());
        let body = CopySites { input: input.view(), from, out: field, to, geometry, parity, factor };
        backend.launch(&COPY_REGION, format, &body, domain.half_sites(), nrhs)?;
        let step = |sites: u32| sites.div_ceil(PADDING as u32);
        let copy = |slab: Slab| {
            let Slab { region, sites, message, way } = slab;
            let (message, whole) = (view::message_field(message, step(sites)), Region::WHOLE);
            let kernel = match way {
                SlabDirection::Out => {
                    CopySites { input: field, from: region, out: message, to: whole, geometry, parity, factor }
                }
                SlabDirection::In { mu, forward } => {
                    let factor = if mu == 3 && domain.has_end(forward) { across } else { 1.0 };
                    CopySites { input: message, from: whole, out: field, to: region, geometry, parity, factor }
                }
            };
            Ok(backend.launch(&COPY_REGION, format, &kernel, sites, nrhs)?)
        };
        let bytes = |sites: u32| shape.bytes(sites as usize);
        self.fill(domain, border, geometry, bytes, copy)
    }
    /// *Collective.* Exchanges slabs of the border's width, one direction after another. A slab includes the borders that are already
    /// filled, so that corners are exchanged too. `bytes` returns the size of a message for a number of sites of each parity.
    fn fill(
        &self,
        domain: &Domain,
        border: [u32; 4],
        geometry: Geometry,
        bytes: impl Fn(u32) -> usize,
        copy: impl Fn(Slab) -> Result,
    ) -> Result {
        let backend = domain.backend();
        let (whole, local) = (geometry.size(), domain.local().size().map(|extent| extent as u32));
        let mut exchanges = self.exchanges();
        for mu in (0..4).filter(|mu| self.cut() >> mu & 1 == 1) {
            let width = border[mu];
            // `slab` returns the slab of the border's width that begins at `start`.
            let slab = |start: u32| {
                let interval = |nu: usize| match nu.cmp(&mu) {
                    Ordering::Less => (0, whole[nu]),
                    Ordering::Equal => (start, width),
                    Ordering::Greater => (border[nu], local[nu]),
                };
                let intervals: [(u32, u32); 4] = std::array::from_fn(interval);
                Region::new(intervals.map(|(start, _)| start), intervals.map(|(_, length)| length))
            };
            // Index 0 is for the message that fills the receiver's backward zone, index 1 for the forward zone.
            let sources = [slab(local[mu]), slab(width)];
            let targets = [slab(0), slab(width + local[mu])];
            let sites = sources[0].sites(&geometry);
            let mut message = [0; 4];
            message[mu] = bytes(sites);
            let exchange = exchanges.exchange(domain, message)?;
            let (packed, zones) = (exchange.begin(backend, None)?, exchange.zones());
            for (forward, region) in sources.into_iter().enumerate() {
                copy(Slab { region, sites, message: packed[mu][forward], way: SlabDirection::Out })?;
            }
            let mut unpack = |_: usize, _: Option<&Stream>| {
                targets.into_iter().enumerate().try_for_each(|(forward, region)| {
                    let way = SlabDirection::In { mu, forward: forward == 1 };
                    copy(Slab { region, sites, message: zones[mu][forward], way })
                })
            };
            let context = ExchangeContext { backend, trace: Trace::new(None), streams: &self.streams, packing: None };
            exchange.run(context, true, &mut || Ok(()), &mut unpack)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::Cpu;
    use crate::domain::{DeviceError, Domain};
    use crate::field::host::{HostSpinor, Spinor};
    use crate::field::{FieldShape, FullField};
    use crate::lattice::Lattice;
    use comms::{ProcessGrid, Threads};
    use gpu_kernels::Precision;
    use num_complex::Complex64;
    use std::sync::Arc;

    /// Ghost zones of fields with a fifth dimension are those of their blocks as right-hand sides.
    #[test]
    fn ghost_zones_are_filled_in_all_slices() {
        const WIDTH: u32 = 2;
        let global = Lattice::new([4, 2, 4, 8]).unwrap();
        let flat = FieldShape::spinors(Precision::Double, 6);
        let found = Threads::run(2, |world| {
            let grid = ProcessGrid::new([1, 1, 1, 2]).unwrap();
            let domain = Domain::new(Cpu::new(Some(1)), global, grid, Arc::new(world))?;
            let wide = domain.with_ghost_zone(WIDTH)?;
            let block = |k: usize| {
                let (mut field, section) = (HostSpinor::zero(domain.local()), domain.section());
                for (index, spinor) in field.sites_mut().iter_mut().enumerate() {
                    let site = section.global_index(index);
                    spinor[k % 4][k % 3] = Complex64::new(site as f64, k as f64 + 1.0);
                }
                field
            };
            let host: Vec<_> = (0..6).map(block).collect();
            let mut filled = Vec::new();
            for shape in [flat, flat.with_nrhs(2).with_ls(3)] {
                let (mut field, mut out) = (FullField::zero(&domain, shape)?, FullField::zero(&wide, shape)?);
                field.upload(&host)?;
                let halo = domain.halo()?.expect("the lattice is cut");
                for parity in 0..2 {
                    let (from, to) = (field.parity(parity), out.parity_mut(parity));
                    halo.fill_ghost_zone(from, shape.nrhs, to, parity as u32, WIDTH, -1.0)?;
                }
                filled.push(out.download::<Spinor>()?);
            }
            let ends = |field: &HostSpinor| field.sites()[0][0][0].re;
            Ok::<_, DeviceError>((filled[0] == filled[1], ends(&filled[1][0])))
        });
        for (same, end) in found.unwrap() {
            assert!(same && end != 0.0);
        }
    }
}
