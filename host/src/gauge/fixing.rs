//! Gauge fixing: temporal gauge, and Coulomb and Landau gauge in [`relax`].
//!
//! In temporal gauge, links in t are 1 except on one time slice (Clark et al. 2009, section 4.3).
//!
//! A gauge transformation g changes U_μ(x) to g(x) U_μ(x) g†(x+μ̂) and ψ(x) to g(x) ψ(x). Solutions transform like ψ. The transformation
//! g(x+t̂) = g(x) U_t(x), with g = 1 on the first time slice, turns every U_t into 1 except on the last slice. There U_t becomes the
//! product of all links in t at that point of space. Kernels for links in temporal gauge read only three of four directions.
//!
//! ```
//! use ferrite::field::host::HostSpinor;
//! use ferrite::gauge::{fixing, generate, measure};
//! use ferrite::lattice::Lattice;
//!
//! let lattice = Lattice::new([4, 4, 4, 8])?;
//! let gauge = generate::weak_field(lattice, 1, 0.2);
//! let (fixed, transformation) = fixing::temporal_gauge(&gauge);
//! let (before, after) = (measure::plaquette(&gauge), measure::plaquette(&fixed));
//! assert!((before.mean - after.mean).abs() < 1e-14);
//!
//! let source: HostSpinor = generate::random_source(lattice, 2);
//! let mut rotated = source.clone();
//! transformation.apply(&mut rotated);
//! // … solve with `fixed` and `rotated` …
//! transformation.apply_inverse(&mut rotated);
//! # Ok::<(), ferrite::lattice::LatticeError>(())
//! ```
pub mod relax;

use super::su3::{adjoint, product, reunitarise_link, times, unit};
use crate::domain::Domain;
use crate::field::host::{Fermion, HostField, HostGauge, Matrix};
use crate::lattice::Lattice;
use crate::network::{HostBuffer, Message, Network};
use comms::{CommError, Direction, Tag};
use num_complex::Complex64;
use rayon::prelude::*;

/// A gauge transformation: an SU(3) matrix g(x) on every site.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformation {
    lattice: Lattice,
    matrices: Vec<Matrix>,
}

impl Transformation {
    /// Returns the lattice of the transformation.
    pub fn lattice(&self) -> Lattice {
        self.lattice
    }
    /// Returns the matrices g(x) in lexicographic order of the sites.
    pub fn matrices(&self) -> &[Matrix] {
        &self.matrices
    }
    /// Computes ψ(x) ← g(x) ψ(x). Panics if the lattices differ.
    pub fn apply<T: Fermion>(&self, psi: &mut HostField<T>) {
        self.rotate(psi, |g| *g);
    }
    /// Computes ψ(x) ← g†(x) ψ(x), which undoes [`apply`](Self::apply). Panics if the lattices differ.
    pub fn apply_inverse<T: Fermion>(&self, psi: &mut HostField<T>) {
        self.rotate(psi, adjoint);
    }
    fn rotate<T: Fermion>(&self, psi: &mut HostField<T>, matrix: impl Fn(&Matrix) -> Matrix + Sync) {
        assert_eq!(psi.lattice(), self.lattice, "transformation and field are on the same lattice");
        psi.sites_mut().par_iter_mut().zip(&self.matrices).for_each(|(site, g)| {
            let g = matrix(g);
            let colours: &mut [[Complex64; 3]] = bytemuck::cast_slice_mut(std::slice::from_mut(site));
            colours.iter_mut().for_each(|spin| *spin = times(&g, spin));
        });
    }
    /// Returns the transformed links g(x) U_μ(x) g†(x+μ̂). Panics if the lattices differ.
    pub fn links(&self, gauge: &HostGauge) -> HostGauge {
        self.links_with(gauge, &[const { None }; 4])
    }
    /// Returns the transformed links g(x) U_μ(x) g†(x+μ̂) on a part of a lattice. In a partitioned direction μ, `ahead[μ]` has the matrices
    /// of the sites that follow the last ones, in the order of sites.
    fn links_with(&self, gauge: &HostGauge, ahead: &[Option<Vec<Matrix>>; 4]) -> HostGauge {
        assert_eq!(gauge.lattice(), self.lattice, "transformation and links are on the same lattice");
        let size = self.lattice.size();
        let link = |index: usize| {
            let (x, mu) = (index / 4, index % 4);
            let site = self.lattice.coordinates(x);
            let next = match &ahead[mu] {
                Some(ahead) if site[mu] + 1 == size[mu] => &ahead[on_face(size, mu, site)],
                _ => &self.matrices[self.lattice.neighbour(x, mu, true)],
            };
            product(&product(&self.matrices[x], gauge.link(x, mu)), &adjoint(next))
        };
        let links = (0..gauge.links().len()).into_par_iter().map(link).collect();
        HostGauge::from_links(self.lattice, links)
    }
}

/// Returns the links in temporal gauge, and the transformation to it. Links in t are exactly 1, except on the last time slice.
///
/// The links must be in SU(3). Links from a file in single precision are in SU(3) only up to 1e-7. The transformation and the unit links
/// are in SU(3) nevertheless, so the transformed field differs from the original by about 1e-7, as with reconstructed links.
pub fn temporal_gauge(gauge: &HostGauge) -> (HostGauge, Transformation) {
    let (transformation, _) = Transformation::along_t(gauge, None);
    let fixed = with_unit_links(transformation.links(gauge), true);
    (fixed, transformation)
}

/// *Collective.* Computes [`temporal_gauge`] of a gauge field that is distributed over processes, with the same bits as on one process.
/// Panics if the links are not on this process's part of the lattice.
///
/// # Errors
/// Fails if the communication fails.
pub fn temporal_gauge_on(domain: &Domain, gauge: &HostGauge) -> Result<(HostGauge, Transformation), CommError> {
    assert_eq!(gauge.lattice(), domain.local(), "links are those of the process's part");
    let (grid, network, size) = (domain.grid(), domain.network(), domain.local().size());
    let to = |mu: usize, direction: Direction| grid.neighbour(network.rank(), mu, direction);
    let (place, parts) = (grid.coordinates(network.rank())[3], grid.dims()[3]);
    // The parts are computed in the order of t: each waits for the slice of the part before it.
    let first = match place {
        0 => None,
        _ => Some(receive(network, to(3, Direction::Backward), TAG, size[0] * size[1] * size[2])?.finish()?),
    };
    let (transformation, next) = Transformation::along_t(gauge, first);
    if place + 1 < parts {
        send(network, to(3, Direction::Forward), TAG, &next)?.wait()?;
    }
    let mut ahead = [const { None }; 4];
    for (mu, ahead) in ahead.iter_mut().enumerate().filter(|(mu, _)| grid.is_partitioned(*mu)) {
        let tag = TAG + 1 + mu as Tag;
        let mut face = Vec::with_capacity(gauge.lattice().volume() / size[mu]);
        for (x, g) in transformation.matrices.iter().enumerate() {
            if gauge.lattice().coordinates(x)[mu] == 0 {
                face.push(*g);
            }
        }
        let reception = receive(network, to(mu, Direction::Forward), tag, face.len())?;
        send(network, to(mu, Direction::Backward), tag, &face)?.wait()?;
        *ahead = Some(reception.finish()?);
    }
    let fixed = with_unit_links(transformation.links_with(gauge, &ahead), place + 1 == parts);
    Ok((fixed, transformation))
}

impl Transformation {
    /// Computes g(x+t̂) = g(x) U_t(x) from the first time slice on, where g is `first`, or 1 without it. Also returns g on the slice that
    /// follows the last one.
    fn along_t(gauge: &HostGauge, first: Option<Vec<Matrix>>) -> (Self, Vec<Matrix>) {
        let lattice = gauge.lattice();
        let slices = lattice.size()[3];
        let space = lattice.volume() / slices;
        let mut matrices = first.unwrap_or_else(|| vec![unit(); space]);
        matrices.resize((slices + 1) * space, unit());
        // Each time slice follows from the one before, so they are computed in order.
        for t in 1..=slices {
            let (done, rest) = matrices.split_at_mut(t * space);
            let before = &done[(t - 1) * space..];
            rest[..space].par_iter_mut().enumerate().for_each(|(x, g)| {
                *g = product(&before[x], gauge.link((t - 1) * space + x, 3));
                // Without this projection to SU(3), rounding errors would accumulate from slice to slice.
                reunitarise_link(g);
            });
        }
        let next = matrices.split_off(slices * space);
        (Transformation { lattice, matrices }, next)
    }
}

/// Sets links in t to 1, from which they differ by rounding only. Links on the last time slice of the whole lattice remain unchanged; this
/// process has that slice if `has_last`.
fn with_unit_links(mut links: HostGauge, has_last: bool) -> HostGauge {
    let lattice = links.lattice();
    let unit_sites = if has_last { lattice.volume() - lattice.volume() / lattice.size()[3] } else { lattice.volume() };
    links.links_mut()[..4 * unit_sites].par_chunks_mut(4).for_each(|links| links[3] = unit());
    links
}

/// Returns the index of a site among the sites with the same coordinate in direction μ, in the order of sites.
fn on_face(size: [usize; 4], mu: usize, site: [usize; 4]) -> usize {
    (0..4).rev().filter(|nu| *nu != mu).fold(0, |index, nu| index * size[nu] + site[nu])
}

/// First tag of the messages: TAG for the time slice that is passed on, and TAG + 1 + μ for the faces. The tags of messages for plaquettes
/// are smaller.
const TAG: Tag = 0x4700;

/// Message with matrices that is being received.
struct MatrixReception(Box<dyn Message>);

impl MatrixReception {
    fn finish(mut self) -> Result<Vec<Matrix>, CommError> {
        self.0.wait()?;
        let bytes = self.0.bytes()?;
        Ok(bytes.chunks_exact(size_of::<Matrix>()).map(bytemuck::pod_read_unaligned).collect())
    }
}

fn receive(network: &dyn Network, from: usize, tag: Tag, count: usize) -> Result<MatrixReception, CommError> {
    let memory = vec![0u8; count * size_of::<Matrix>()];
    let mut message = network.receiver(from, tag, HostBuffer(Box::new(memory)))?;
    message.start()?;
    Ok(MatrixReception(message))
}

fn send(network: &dyn Network, to: usize, tag: Tag, matrices: &[Matrix]) -> Result<Box<dyn Message>, CommError> {
    let memory: Vec<u8> = bytemuck::cast_slice(matrices).to_vec();
    let mut message = network.sender(to, tag, HostBuffer(Box::new(memory)))?;
    message.start()?;
    Ok(message)
}
