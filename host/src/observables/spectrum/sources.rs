//! Sources with one component, at a time of the whole lattice. A point source, [`generate::point`](crate::gauge::generate::point), can be
//! smeared by [`smearing`](super::smearing).
use crate::field::host::{Fermion, HostField};
use crate::lattice::Section;
use gpu_kernels::random::Philox;
use num_complex::Complex64;
use rayon::prelude::*;

/// Stream of noise, different from those of [`generate`](crate::gauge::generate).
const NOISE: u32 = 0x5a32_0001;

fn on_wall<T: Fermion>(
    section: Section,
    time: usize,
    component: usize,
    value: impl Fn(usize) -> Complex64 + Sync,
) -> HostField<T> {
    assert!(component < T::COMPONENTS && time < section.global.size()[3], "a component and a time that are there");
    let mut field = HostField::<T>::zero(section.local);
    let plane = section.local.volume() / section.local.size()[3];
    if let Some(local) = time.checked_sub(section.origin[3]).filter(|t| *t < section.local.size()[3]) {
        let begin = local * plane * T::COMPONENTS;
        let numbers = &mut field.numbers_mut()[begin..begin + plane * T::COMPONENTS];
        numbers.par_chunks_exact_mut(T::COMPONENTS).enumerate().for_each(|(k, site)| {
            site[component] = value(section.global_index(local * plane + k));
        });
    }
    field
}

/// Returns a wall source: `component` is 1 at all sites of the time slice `time`, and all other numbers are 0. If the links are in a fixed
/// gauge, quarks from this source have momentum 0. Panics if the lattice has no such time, or the field no such component.
pub fn wall<T: Fermion>(section: impl Into<Section>, time: usize, component: usize) -> HostField<T> {
    on_wall(section.into(), time, component, |_| Complex64::ONE)
}

/// Returns a noise source: `component` is a random number (±1 ± i)/√2 at each site of the time slice `time`, the same for all components.
/// Averaged over seeds, products of two propagators from such sources are sums over all points of the time slice (Foster and Michael 1999).
/// Panics like [`wall`].
pub fn noise_wall<T: Fermion>(section: impl Into<Section>, time: usize, component: usize, seed: u64) -> HostField<T> {
    on_wall(section.into(), time, component, |site| z2(seed, site))
}

/// Returns the random number (±1 ± i)/√2 of a site.
fn z2(seed: u64, site: usize) -> Complex64 {
    let bits = Philox::new(seed, site as u64, NOISE).next_u32();
    let sign = |bit: u32| {
        if bits >> bit & 1 == 0 { std::f64::consts::FRAC_1_SQRT_2 } else { -std::f64::consts::FRAC_1_SQRT_2 }
    };
    Complex64::new(sign(0), sign(1))
}

/// Whether a site of the whole lattice is an even number of steps from `origin` in x, y and z each, and thus in the same corner of the
/// hypercubes.
fn is_corner(section: Section, origin: [usize; 4], site: usize) -> bool {
    let place = section.global.coordinates(site);
    (0..3).all(|k| (place[k] + origin[k]).is_multiple_of(2))
}

/// Returns a [`wall`] for staggered quarks: 1 at the sites of the origin's time that are an even number of steps from the origin in x, y
/// and z. These sites are one corner of the hypercubes, an eighth of all sites (Gupta et al. 1991). The phases φ(x − x₀) of local mesons
/// are the same from each of these sites; in a sum over all sites of the time slice they would cancel. Panics like [`wall`].
pub fn corner_wall<T: Fermion>(section: impl Into<Section>, origin: [usize; 4], component: usize) -> HostField<T> {
    let section = section.into();
    on_wall(section, origin[3], component, |site| {
        if is_corner(section, origin, site) { Complex64::ONE } else { Complex64::ZERO }
    })
}

/// Returns a [`noise_wall`] that is zero except at the sites of [`corner_wall`]. Averaged over seeds, products of two propagators from such
/// sources are sums over the sites of one corner of the hypercubes. Panics like [`wall`].
pub fn noise_corner_wall<T: Fermion>(
    section: impl Into<Section>,
    origin: [usize; 4],
    component: usize,
    seed: u64,
) -> HostField<T> {
    let section = section.into();
    on_wall(section, origin[3], component, |site| {
        if is_corner(section, origin, site) { z2(seed, site) } else { Complex64::ZERO }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::host::{ColourVector, Spinor};
    use crate::lattice::Lattice;

    #[test]
    fn walls_are_at_one_time() {
        let lattice = Lattice::new([2, 4, 6, 4]).unwrap();
        let wall = wall::<Spinor>(lattice, 3, 7);
        assert_eq!(wall.norm2(), 48.0);
        assert_eq!(wall.sites()[lattice.index([1, 2, 3, 3])][2][1], Complex64::ONE);
        let noise = noise_wall::<ColourVector>(lattice, 1, 2, 5);
        assert!((noise.norm2() - 48.0).abs() < 1e-12);
        let other = noise_wall::<ColourVector>(lattice, 1, 0, 5);
        let at = |field: &HostField<ColourVector>, c: usize| -> Vec<Complex64> {
            field.sites().iter().map(|v| v[c]).collect()
        };
        assert_eq!(at(&noise, 2), at(&other, 0));
        // No sign wins.
        let sum: Complex64 = at(&noise, 2).iter().sum();
        assert!(sum.norm() < 4.0 * 48f64.sqrt(), "{sum}");
        assert_ne!(noise, noise_wall::<ColourVector>(lattice, 1, 2, 6));
    }

    #[test]
    fn corner_walls_are_at_an_eighth_of_the_sites() {
        let lattice = Lattice::new([2, 4, 6, 4]).unwrap();
        let origin = [1, 2, 3, 1];
        let (ones, noise) =
            (corner_wall::<ColourVector>(lattice, origin, 1), noise_corner_wall::<ColourVector>(lattice, origin, 1, 5));
        let whole = noise_wall::<ColourVector>(lattice, 1, 1, 5);
        for index in 0..lattice.volume() {
            let [x, y, z, t] = lattice.coordinates(index);
            let there = (x % 2, y % 2, z % 2, t) == (1, 0, 1, 1);
            let expected = if there { Complex64::ONE } else { Complex64::ZERO };
            assert_eq!(ones.sites()[index], [Complex64::ZERO, expected, Complex64::ZERO]);
            assert_eq!(noise.sites()[index][1], expected * whole.sites()[index][1]);
        }
        assert_eq!(ones.norm2(), 6.0);
    }
}
