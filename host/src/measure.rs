//! Numbers that say whether a gauge field is the right one: plaquettes, link trace, distance from SU(3).
//!
//! All are computed in double precision on the host, in parallel, and summed in fixed point: the same field gives the
//! same bits whatever the number of threads, and of processes that have a part of it each.
mod exact;
mod part;

pub(crate) use exact::Exact;
pub(crate) use part::Part;

use crate::field::host::{HostGauge, Matrix};
use crate::files;
use crate::halo::Network;
use crate::lattice::Section;
use crate::matrix::product;
use num_complex::Complex64;
use rayon::prelude::*;

/// Sites per partial sum.
const BLOCK: usize = 512;

/// Mean of Re tr P / 3 over the lattice, P = U_μ(x) U_ν(x+μ̂) U_μ†(x+ν̂) U_ν†(x). One for the unit field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plaquette {
    /// Over all six planes.
    pub mean: f64,
    /// Over xy, xz, yz.
    pub spatial: f64,
    /// Over xt, yt, zt.
    pub temporal: f64,
}

/// The link farthest from SU(3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unitarity {
    /// The larger of ‖U U† − 1‖ (Frobenius norm) and |det U − 1|; NaN if the link is not finite.
    pub violation: f64,
    /// Lexicographic index of its site.
    pub site: usize,
    /// Its direction, 0 to 3 for x, y, z, t.
    pub mu: usize,
}

/// Mean, spatial and temporal plaquette.
pub fn plaquette(gauge: &HostGauge) -> Plaquette {
    Plaquette::of_sums(plaquette_sums(&Part::whole(gauge)), gauge.lattice().volume())
}

/// *Collective.* [`plaquette`] of a field of which each process has a section.
///
/// # Errors
/// Sections that do not make up the lattice, on all processes; processes that do not answer.
pub fn plaquette_of_part(
    gauge: &HostGauge,
    section: &Section,
    network: &dyn Network,
) -> Result<Plaquette, files::Problem> {
    files::measured_in_parts(gauge, section, network)
}

/// Mean of Re tr U / 3 over all links.
pub fn link_trace(gauge: &HostGauge) -> f64 {
    link_trace_of_sum(trace_sum(gauge), gauge.lattice().volume())
}

/// Sums of Re tr P over the spatial and over the temporal planes at the sites of a part.
pub(crate) fn plaquette_sums(part: &Part) -> [Exact; 2] {
    sum_over_sites(part.gauge.lattice().volume(), |site| site_plaquettes(part, site))
}

/// Sum of Re tr U over the links of a part.
pub(crate) fn trace_sum(gauge: &HostGauge) -> Exact {
    let [sum] = sum_over_sites(gauge.lattice().volume(), |site| {
        [(0..4).map(|mu| gauge.link(site, mu)).map(|u| u[0][0].re + u[1][1].re + u[2][2].re).sum()]
    });
    sum
}

/// [`link_trace`] of a lattice of `volume` sites.
pub(crate) fn link_trace_of_sum(sum: Exact, volume: usize) -> f64 {
    sum.total() / (12.0 * volume as f64)
}

impl Plaquette {
    /// Of the sums over a lattice of `volume` sites.
    pub(crate) fn of_sums(sums: [Exact; 2], volume: usize) -> Self {
        // Three planes of either sort, three colours.
        let [spatial, temporal] = sums.map(|sum| sum.total() / (9.0 * volume as f64));
        Plaquette { mean: 0.5 * (spatial + temporal), spatial, temporal }
    }
}

/// Finds the link farthest from SU(3). A link that is not finite counts as farther than any other.
pub fn unitarity(gauge: &HostGauge) -> Unitarity {
    // NaN must win, hence the total order, in which a positive NaN is above infinity.
    let (index, violation) = gauge
        .links()
        .par_iter()
        .map(|u| violation(u).abs())
        .enumerate()
        .reduce(|| (0, 0.0), |a, b| if b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)).is_gt() { b } else { a });
    Unitarity { violation, site: index / 4, mu: index % 4 }
}

/// Distance of one matrix from SU(3): the larger of ‖U U† − 1‖ (Frobenius norm) and |det U − 1|.
pub fn violation(u: &Matrix) -> f64 {
    let third = third_row(&u[0], &u[1]);
    let determinant: Complex64 = (0..3).map(|k| third[k].conj() * u[2][k]).sum();
    let (norm, off) = (violation_of_u3(u), (determinant - 1.0).norm());
    // `f64::max` would drop a NaN.
    if norm.is_nan() || off.is_nan() { f64::NAN } else { norm.max(off) }
}

/// Distance of one matrix from U(3): ‖U U† − 1‖ (Frobenius norm).
pub fn violation_of_u3(u: &Matrix) -> f64 {
    let mut square = 0.0;
    for i in 0..3 {
        for j in 0..3 {
            let product: Complex64 = (0..3).map(|k| u[i][k] * u[j][k].conj()).sum();
            let unit = if i == j { 1.0 } else { 0.0 };
            square += (product - unit).norm_sqr();
        }
    }
    square.sqrt()
}

/// Projects every link to SU(3): Gram–Schmidt on rows 0 and 1, row 2 = conj(row 0 × row 1). Takes rounding errors
/// away, for example of links stored in single precision; a link far from SU(3) becomes some SU(3) matrix.
pub fn reunitarise(gauge: &mut HostGauge) {
    gauge.links_mut().par_iter_mut().for_each(reunitarise_link);
}

impl HostGauge {
    /// [`reunitarise`].
    pub fn reunitarise(&mut self) {
        reunitarise(self);
    }
}

/// The third row of the SU(3) matrix with rows `a` and `b`: conj(a × b).
pub(crate) fn third_row(a: &[Complex64; 3], b: &[Complex64; 3]) -> [Complex64; 3] {
    std::array::from_fn(|i| {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        (a[j] * b[k] - a[k] * b[j]).conj()
    })
}

/// [`reunitarise`] for one matrix of any size of elements; false if its first two rows are (nearly) parallel or zero.
pub(crate) fn orthonormalise(u: &mut Matrix) -> bool {
    let norm2 = |row: &[Complex64; 3]| row.iter().map(Complex64::norm_sqr).sum::<f64>();
    let overlap: Complex64 = u[0].iter().zip(&u[1]).map(|(a, b)| a.conj() * b).sum();
    let (first, second) = (norm2(&u[0]), norm2(&u[1]));
    // The square of the sine of the angle between them.
    let sine2 = 1.0 - overlap.norm_sqr() / (first * second);
    let independent = sine2 > 1e-6;
    if independent {
        reunitarise_link(u);
        // What one projection leaves of the first row in the second is rounding over the sine: twice is enough.
        if sine2 < 0.01 {
            reunitarise_link(u);
        }
    }
    independent
}

/// [`reunitarise`] for one matrix near SU(3).
pub(crate) fn reunitarise_link(u: &mut Matrix) {
    normalise(&mut u[0]);
    let [first, second, third] = u;
    let overlap: Complex64 = first.iter().zip(&*second).map(|(a, b)| a.conj() * b).sum();
    for (b, a) in second.iter_mut().zip(&*first) {
        *b -= overlap * a;
    }
    normalise(second);
    *third = third_row(first, second);
}

fn normalise(row: &mut [Complex64; 3]) {
    let norm = row.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
    for c in row {
        *c /= norm;
    }
}

/// Sums of Re tr P at one site: over the spatial and over the temporal planes.
fn site_plaquettes(part: &Part, site: usize) -> [f64; 2] {
    let coordinates = part.gauge.lattice().coordinates(site);
    let forward: [&[Matrix]; 4] = std::array::from_fn(|mu| part.forward(coordinates, mu));
    let mut sums = [0.0; 2];
    for nu in 1..4 {
        for (mu, ahead) in forward[..nu].iter().enumerate() {
            let there = product(part.gauge.link(site, mu), &ahead[nu]);
            let back = product(part.gauge.link(site, nu), &forward[nu][mu]);
            let trace = there.iter().flatten().zip(back.iter().flatten());
            sums[usize::from(nu == 3)] += trace.map(|(a, b)| a.re * b.re + a.im * b.im).sum::<f64>();
        }
    }
    sums
}

fn sum_over_sites<const N: usize>(volume: usize, f: impl Fn(usize) -> [f64; N] + Sync) -> [Exact; N] {
    let block = |b: usize| {
        let mut sums = [Exact::default(); N];
        for site in b * BLOCK..volume.min((b + 1) * BLOCK) {
            sums.iter_mut().zip(f(site)).for_each(|(sum, term)| sum.add(term));
        }
        sums
    };
    let blocks: Vec<[Exact; N]> = (0..volume.div_ceil(BLOCK)).into_par_iter().map(block).collect();
    let all = |k: usize| blocks.iter().map(|sums| sums[k]).fold(Exact::default(), Exact::combine);
    std::array::from_fn(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Lattice;

    #[test]
    fn unit_field_is_one() {
        let gauge = HostGauge::unit(Lattice::new([2, 4, 2, 6]).unwrap());
        assert_eq!(plaquette(&gauge), Plaquette { mean: 1.0, spatial: 1.0, temporal: 1.0 });
        assert_eq!(link_trace(&gauge), 1.0);
        assert_eq!(unitarity(&gauge).violation, 0.0);
    }

    #[test]
    fn worst_link_is_found_and_mended() {
        let mut gauge = HostGauge::unit(Lattice::new([2, 2, 4, 2]).unwrap());
        gauge.links_mut()[4 * 7 + 2][1][2] = Complex64::new(0.0, 1e-3);
        let worst = unitarity(&gauge);
        assert_eq!((worst.site, worst.mu), (7, 2));
        assert!((worst.violation - 1e-3 * 2f64.sqrt()).abs() < 1e-5, "{worst:?}");
        gauge.reunitarise();
        assert!(unitarity(&gauge).violation < 1e-15);
        gauge.links_mut()[4 * 9 + 3][0][0].re = f64::NAN;
        let worst = unitarity(&gauge);
        assert!(worst.violation.is_nan() && (worst.site, worst.mu) == (9, 3), "{worst:?}");
    }

    #[test]
    fn determinant_counts() {
        // Unitary, but its determinant is −1.
        let mut gauge = HostGauge::unit(Lattice::new([2; 4]).unwrap());
        gauge.links_mut()[5][2][2].re = -1.0;
        assert!((unitarity(&gauge).violation - 2.0).abs() < 1e-15);
    }
}
