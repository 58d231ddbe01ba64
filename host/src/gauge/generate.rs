//! Fields made from a seed: unit, random and weak links, and random and point sources.
//!
//! The random numbers of a link or a site depend only on the seed and on the place in the global lattice, so that a seed gives the same
//! field on every machine, process grid and backend. Every function makes a [`Section`] of a field; a [`Lattice`](crate::lattice::Lattice)
//! converts to the section that contains all of it.
use super::su3;
use crate::field::host::{Fermion, HostColour, HostField, HostGauge, HostSpinor, Matrix};
use crate::lattice::Section;
use gpu_kernels::random::Philox;
use num_complex::Complex64;
use rayon::prelude::*;

/// Substreams of the random generator. Each use of a seed has its own, so that different uses never share random numbers.
const LINKS: u32 = 1;
const SOURCE: u32 = 2;

fn normal(stream: &mut Philox) -> Complex64 {
    let [re, im] = stream.normal_pair();
    Complex64::new(re, im)
}

/// Returns links U = P(`unit` · 1 + `noise` · N), where N has normal complex elements and P makes the matrix unitary.
fn noisy(section: Section, seed: u64, unit: f64, noise: f64) -> HostGauge {
    let mut gauge = HostGauge::unit(section.local);
    gauge.links_mut().par_iter_mut().enumerate().for_each(|(index, link)| {
        let global = 4 * section.global_index(index / 4) + index % 4;
        let mut stream = Philox::new(seed, global as u64, LINKS);
        loop {
            let mut u = Matrix::default();
            for (i, row) in u.iter_mut().enumerate() {
                for (j, element) in row.iter_mut().enumerate() {
                    let diagonal = if i == j { unit } else { 0.0 };
                    *element = noise * normal(&mut stream) + diagonal;
                }
            }
            // In the rare case that two rows are nearly parallel and do not form a basis, the matrix is drawn again.
            if su3::orthonormalise(&mut u) {
                *link = u;
                return;
            }
        }
    });
    gauge
}

/// Returns a weak gauge field: unit links plus random noise, projected to SU(3) (Babich, Clark and Joó 2010, section VII.A). `noise` is the
/// standard deviation of the real and imaginary parts of the noise; 0.1 gives a plaquette near 0.9.
///
/// # Panics
/// Panics if `noise` is not a number, or outside ±10⁵⁰: products of elements of links would overflow.
pub fn weak_field(section: impl Into<Section>, seed: u64, noise: f64) -> HostGauge {
    assert!(noise.abs() <= 1e50, "noise of {noise}: links are drawn until they can be projected to SU(3)");
    noisy(section.into(), seed, 1.0, noise)
}

/// Returns independent random links with the Haar measure of SU(3), which is the limit of infinitely strong coupling.
pub fn random(section: impl Into<Section>, seed: u64) -> HostGauge {
    noisy(section.into(), seed, 0.0, 1.0)
}

/// Returns a source with independent normal complex components η, each with ⟨|η|²⟩ = 2.
pub fn random_source<T: Fermion>(section: impl Into<Section>, seed: u64) -> HostField<T> {
    noise_source(section, seed, 0)
}

/// Number of independent sources that [`noise_source`] can make from one seed.
pub const NOISE_SOURCES: u32 = 1 << 24;

/// Returns random source `number` of a seed. The number must be below [`NOISE_SOURCES`]. Source 0 is [`random_source`], and all sources are
/// independent.
pub fn noise_source<T: Fermion>(section: impl Into<Section>, seed: u64, number: u32) -> HostField<T> {
    let section = section.into();
    let mut source = HostField::<T>::zero(section.local);
    // The number of the source occupies the bits above those that distinguish different uses of a seed.
    let substream = SOURCE | (number % NOISE_SOURCES) << 8;
    source.sites_mut().par_iter_mut().enumerate().for_each(|(index, site)| {
        let mut stream = Philox::new(seed, section.global_index(index) as u64, substream);
        for component in bytemuck::cast_slice_mut::<_, Complex64>(std::slice::from_mut(site)) {
            *component = normal(&mut stream);
        }
    });
    source
}

/// Returns a point source: one component at one site of the whole lattice is 1, and all others are 0. `component` is `[spin, colour]` or
/// `[colour]`. Returns `None` if the site or the component does not exist.
pub fn point<T: Fermion>(section: impl Into<Section>, site: [usize; 4], component: &[usize]) -> Option<HostField<T>> {
    let section = section.into();
    let inside = |place: &[usize], extents: &[usize]| {
        place.len() == extents.len() && place.iter().zip(extents).all(|(x, extent)| x < extent)
    };
    if !inside(&site, &section.global.size()) || !inside(component, T::SHAPE) {
        return None;
    }
    let index = component.iter().zip(T::SHAPE).fold(0, |index, (k, extent)| index * extent + k);
    let mut source = HostField::<T>::zero(section.local);
    if let Some(site) = section.locate(site) {
        source.numbers_mut()[T::COMPONENTS * section.local.index(site) + index] = Complex64::ONE;
    }
    Some(source)
}

/// Returns a point source of Wilson fermions, which is 1 for one site, spin and colour, and 0 elsewhere. Returns `None` if the site or the
/// component does not exist.
pub fn point_source(section: impl Into<Section>, site: [usize; 4], spin: usize, colour: usize) -> Option<HostSpinor> {
    point(section, site, &[spin, colour])
}

/// Returns a point source of staggered fermions, which is 1 for one site and colour, and 0 elsewhere. Returns `None` if the site or the
/// component does not exist.
pub fn point_colour_source(section: impl Into<Section>, site: [usize; 4], colour: usize) -> Option<HostColour> {
    point(section, site, &[colour])
}
