//! Links of other processes around the local lattice.
use super::trace::Trace;
use super::{Halo, exchange_of};
use crate::backend::{Backend, view};
use crate::domain::{Domain, Result};
use gpu_kernels::field::ThinLinks;
use gpu_kernels::lattice::Region;
use gpu_kernels::smeared::CopyThin;
use gpu_kernels::storage::TILE;
use std::sync::PoisonError;

impl<B: Backend> Halo<B> {
    /// *Collective.* Fills a border of `width` sites, no more than any neighbour has, from the neighbours' links: one
    /// direction after the other, each with the borders that are there already, so that corners come with it.
    pub fn fill_border(&self, domain: &Domain<B>, width: u32, links: [ThinLinks; 2]) -> Result {
        let backend = domain.backend();
        let (geometry, border) = (domain.bordered(width).geometry, domain.border(width));
        let (whole, local) = (geometry.size(), domain.local().size().map(|extent| extent as u32));
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        for mu in (0..4).filter(|mu| self.cut >> mu & 1 == 1) {
            // A slab of the border's width from `start` on.
            let slab = |start: u32| {
                let interval = |nu: usize| match nu.cmp(&mu) {
                    std::cmp::Ordering::Less => (0, whole[nu]),
                    std::cmp::Ordering::Equal => (start, width),
                    std::cmp::Ordering::Greater => (border[nu], local[nu]),
                };
                let intervals: [(u32, u32); 4] = std::array::from_fn(interval);
                Region::new(intervals.map(|(start, _)| start), intervals.map(|(_, length)| length))
            };
            // For what lies beyond the backward and beyond the forward end: from where, and to where.
            let sources = [slab(local[mu]), slab(width)];
            let targets = [slab(0), slab(width + local[mu])];
            let sites = sources[0].sites(&geometry);
            let half = (sites as usize).div_ceil(TILE) * TILE * ThinLinks::SITE_BYTES;
            let mut bytes = [0; 4];
            bytes[mu] = 2 * half;
            let exchange = exchange_of(self.transport, &mut exchanges, domain, bytes)?;
            let memory = |zone: *mut u8, parity: usize| view::message_links(zone.wrapping_add(parity * half));
            let (packed, zones) = (exchange.begin(backend, None)?, exchange.zones());
            for (parity, links) in links.into_iter().enumerate() {
                for forward in 0..2 {
                    let out = memory(packed[mu][forward], parity);
                    let (from, to) = (sources[forward], Region::WHOLE);
                    let kernel = CopyThin { input: links, from, out, to, geometry, parity: parity as u32 };
                    backend.launch(&kernel, sites, 1)?;
                }
            }
            exchange.run(
                (backend, &Trace::new(None)),
                (&self.streams, None),
                true,
                || Ok(()),
                |_, _| {
                    for (parity, links) in links.into_iter().enumerate() {
                        for forward in 0..2 {
                            let input = memory(zones[mu][forward], parity);
                            let (from, to) = (Region::WHOLE, targets[forward]);
                            let kernel = CopyThin { input, from, out: links, to, geometry, parity: parity as u32 };
                            backend.launch(&kernel, sites, 1)?;
                        }
                    }
                    Ok(())
                },
            )?;
        }
        Ok(())
    }
}
