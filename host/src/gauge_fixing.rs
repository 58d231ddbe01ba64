//! Temporal gauge: links in t that are 1, but for one time slice (Clark et al. 2009, section 4.3).
//!
//! A gauge transformation g takes U_μ(x) to g(x) U_μ(x) g†(x+μ̂) and ψ(x) to g(x) ψ(x); solutions and products are the
//! same, rotated. With g(x+t̂) = g(x) U_t(x), from g = 1 on the first slice on, every U_t becomes 1 except those from the
//! last slice to the first, which hold what is left: the product of all links in t at that point of space. Kernels for
//! links in temporal gauge then read three directions of four.
//!
//! ```
//! use ferrite::lattice::Lattice;
//! use ferrite::{gauge_fixing, generate, measure};
//!
//! let lattice = Lattice::new([4, 4, 4, 8])?;
//! let gauge = generate::weak_field(lattice, 1, 0.2);
//! let (fixed, transformation) = gauge_fixing::temporal_gauge(&gauge);
//! let (before, after) = (measure::plaquette(&gauge), measure::plaquette(&fixed));
//! assert!((before.mean - after.mean).abs() < 1e-14);
//!
//! let source = generate::random_source(lattice, 2);
//! let mut rotated = source.clone();
//! transformation.apply(&mut rotated);
//! // … solve with `fixed` and `rotated` …
//! transformation.apply_inverse(&mut rotated);
//! # Ok::<(), ferrite::lattice::LatticeError>(())
//! ```
use crate::field::host::{HostGauge, HostSpinor, Matrix};
use crate::lattice::Lattice;
use crate::matrix::{adjoint, product, times, unit};
use crate::measure;
use rayon::prelude::*;

/// A gauge transformation: a matrix g(x) of SU(3) at every site.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformation {
    lattice: Lattice,
    matrices: Vec<Matrix>,
}

impl Transformation {
    /// The extents.
    pub fn lattice(&self) -> Lattice {
        self.lattice
    }
    /// g(x) in lexicographic order of sites.
    pub fn matrices(&self) -> &[Matrix] {
        &self.matrices
    }
    /// ψ(x) ← g(x) ψ(x). Panics when the lattices differ.
    pub fn apply(&self, psi: &mut HostSpinor) {
        self.rotate(psi, |g| *g);
    }
    /// ψ(x) ← g†(x) ψ(x): takes [`apply`](Self::apply) back. Panics when the lattices differ.
    pub fn apply_inverse(&self, psi: &mut HostSpinor) {
        self.rotate(psi, adjoint);
    }
    fn rotate(&self, psi: &mut HostSpinor, matrix: impl Fn(&Matrix) -> Matrix + Sync) {
        assert_eq!(psi.lattice(), self.lattice, "transformation and field are on the same lattice");
        psi.sites_mut().par_iter_mut().zip(&self.matrices).for_each(|(site, g)| {
            let g = matrix(g);
            site.iter_mut().for_each(|spin| *spin = times(&g, spin));
        });
    }
    /// g(x) U_μ(x) g†(x+μ̂). Panics when the lattices differ.
    pub fn links(&self, gauge: &HostGauge) -> HostGauge {
        assert_eq!(gauge.lattice(), self.lattice, "transformation and links are on the same lattice");
        let link = |index: usize| {
            let (x, mu) = (index / 4, index % 4);
            let next = self.lattice.neighbour(x, mu, true);
            product(&product(&self.matrices[x], gauge.link(x, mu)), &adjoint(&self.matrices[next]))
        };
        let links = (0..gauge.links().len()).into_par_iter().map(link).collect();
        HostGauge::from_links(self.lattice, links)
    }
}

/// Links in temporal gauge, and the transformation that leads there. Links in t on all slices but the last are exactly 1.
///
/// Links must be in SU(3). Those of a file in single precision are to 1e-7 only: the transformation is in SU(3) all the
/// same, as is every link that becomes 1, so that fields then differ by that much, as they do where links are
/// reconstructed.
pub fn temporal_gauge(gauge: &HostGauge) -> (HostGauge, Transformation) {
    let lattice = gauge.lattice();
    let space = lattice.volume() / lattice.size()[3];
    let mut matrices = vec![unit(); lattice.volume()];
    // Slice by slice, as each follows from the one before.
    for t in 1..lattice.size()[3] {
        let (done, rest) = matrices.split_at_mut(t * space);
        let before = &done[(t - 1) * space..];
        rest[..space].par_iter_mut().enumerate().for_each(|(x, g)| {
            *g = product(&before[x], gauge.link((t - 1) * space + x, 3));
            // Rounding errors would add up from slice to slice.
            measure::reunitarise_link(g);
        });
    }
    let transformation = Transformation { lattice, matrices };
    let mut fixed = transformation.links(gauge);
    let last = lattice.volume() - space;
    fixed.links_mut()[..4 * last].par_chunks_mut(4).for_each(|links| links[3] = unit());
    (fixed, transformation)
}
