//! Configurations made from a seed: unit, random and weak field; random and point sources.
//!
//! The random numbers of a link or a site depend only on the seed and on the place in the global lattice, so that the same seed gives the
//! same field on every machine, process grid and backend. Every function makes a [`Section`] of such a field; a
//! [`Lattice`](crate::lattice::Lattice) is one, too.
use super::su3;
use crate::field::host::{Fermion, HostColour, HostField, HostGauge, HostSpinor, Matrix};
use crate::lattice::Section;
use gpu_kernels::random::Philox;
use num_complex::Complex64;
use rayon::prelude::*;

/// Substreams of the generator: different uses of one seed never share numbers.
const LINKS: u32 = 1;
const SOURCE: u32 = 2;

fn normal(stream: &mut Philox) -> Complex64 {
    let [re, im] = stream.normal_pair();
    Complex64::new(re, im)
}

/// Returns links whose elements are `unit` · 1 + `noise` · (normal complex numbers), made unitary again.
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
            // Two nearly parallel rows, which do not form a basis, are very rare: draw again.
            if su3::orthonormalise(&mut u) {
                *link = u;
                return;
            }
        }
    });
    gauge
}

/// Returns a weak field: unit links, mixed with random noise and made unitary again (Babich, Clark and Joó 2010, section VII.A). `noise` is
/// the standard deviation of the real and imaginary parts that are added; 0.1 gives a plaquette near 0.9.
///
/// # Panics
/// If the noise is not a number, or outside ±10⁵⁰, where products of the elements of links overflow.
pub fn weak_field(section: impl Into<Section>, seed: u64, noise: f64) -> HostGauge {
    assert!(noise.abs() <= 1e50, "noise of {noise}: links are drawn until they can be projected to SU(3)");
    noisy(section.into(), seed, 1.0, noise)
}

/// Returns independent links with the Haar measure of SU(3): the limit of infinitely strong coupling.
pub fn random(section: impl Into<Section>, seed: u64) -> HostGauge {
    noisy(section.into(), seed, 0.0, 1.0)
}

/// Returns a source with independent normal components, ⟨|η|²⟩ = 2 each.
pub fn random_source<T: Fermion>(section: impl Into<Section>, seed: u64) -> HostField<T> {
    noise_source(section, seed, 0)
}

/// Number of independent sources that [`noise_source`] makes from a seed.
pub const NOISE_SOURCES: u32 = 1 << 24;

/// Returns source `number` of a seed, below [`NOISE_SOURCES`]; the first is [`random_source`], and all are independent.
pub fn noise_source<T: Fermion>(section: impl Into<Section>, seed: u64, number: u32) -> HostField<T> {
    let section = section.into();
    let mut source = HostField::<T>::zero(section.local);
    // The number is stored above the bits that distinguish uses.
    let substream = SOURCE | (number % NOISE_SOURCES) << 8;
    source.sites_mut().par_iter_mut().enumerate().for_each(|(index, site)| {
        let mut stream = Philox::new(seed, section.global_index(index) as u64, substream);
        for component in bytemuck::cast_slice_mut::<_, Complex64>(std::slice::from_mut(site)) {
            *component = normal(&mut stream);
        }
    });
    source
}

/// Returns a source that is one at a single site of the whole lattice and component, `[spin, colour]` or `[colour]`, and zero elsewhere.
/// `None` if the site is outside the lattice or there is no such component.
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

/// Returns a source that is one at a single site, spin and colour, and zero elsewhere. `None` if these are outside the lattice.
pub fn point_source(section: impl Into<Section>, site: [usize; 4], spin: usize, colour: usize) -> Option<HostSpinor> {
    point(section, site, &[spin, colour])
}

/// Returns a source that is one at a single site and colour, and zero elsewhere. `None` if these are outside the lattice.
pub fn point_colour_source(section: impl Into<Section>, site: [usize; 4], colour: usize) -> Option<HostColour> {
    point(section, site, &[colour])
}
