//! Numbers by which a gauge field is verified: plaquettes, link trace, and distance from SU(3).
//!
//! Functions for host fields compute in double precision, in parallel, and sum in fixed point. The same field gives the same bits for any
//! number of threads and processes.
use super::part::GaugePart;
use super::su3::{product, violation};
use crate::domain::Result;
use crate::field::GaugeField;
use crate::field::host::{HostGauge, Matrix};
use crate::lattice::FixedPointSum;
use gpu_kernels::gauge::{PLAQUETTE, Plaquette};
use gpu_kernels::{Format, Precision};
use rayon::prelude::*;

/// Name of the mean plaquette in results, messages and JSON.
pub const PLAQUETTE_NAME: &str = "plaquette";
/// Name of the mean link trace, Re tr U / 3, in results, messages and JSON.
pub const LINK_TRACE_NAME: &str = "link trace";
/// Number of sites of each partial sum.
const BLOCK: usize = 512;

/// Mean plaquettes: averages of Re tr P / 3 with P = U_μ(x) U_ν(x+μ̂) U_μ†(x+ν̂) U_ν†(x). They are 1 for the unit field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plaquettes {
    /// Mean over all six planes.
    pub mean: f64,
    /// Mean over the spatial planes xy, xz and yz.
    pub spatial: f64,
    /// Mean over the temporal planes xt, yt and zt.
    pub temporal: f64,
}

/// Link that is farthest from SU(3), with its distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unitarity {
    /// Larger of ‖U U† − 1‖ (Frobenius norm) and |det U − 1|; NaN if an element of the link is not finite.
    pub violation: f64,
    /// Lexicographic index of the site at which the link starts.
    pub site: usize,
    /// Direction μ of the link, 0 to 3 for x to t.
    pub mu: usize,
}

/// Computes the mean plaquette, and the means over spatial and temporal planes.
pub fn plaquette(gauge: &HostGauge) -> Plaquettes {
    Plaquettes::of_sums(plaquette_sums(&GaugePart::whole(gauge)), gauge.lattice().volume())
}

/// Computes the mean of Re tr U / 3 over all links.
pub fn link_trace(gauge: &HostGauge) -> f64 {
    link_trace_of_sum(trace_sum(gauge), gauge.lattice().volume())
}

/// Sums Re tr P over the spatial planes and over the temporal planes at the sites of a part.
pub(crate) fn plaquette_sums(part: &GaugePart) -> [FixedPointSum; 2] {
    sum_over_sites(part.gauge.lattice().volume(), |site| site_plaquettes(part, site))
}

/// Sums Re tr U over all links of a part.
pub(crate) fn trace_sum(gauge: &HostGauge) -> FixedPointSum {
    let [sum] = sum_over_sites(gauge.lattice().volume(), |site| {
        [(0..4).map(|mu| gauge.link(site, mu)).map(|u| u[0][0].re + u[1][1].re + u[2][2].re).sum()]
    });
    sum
}

/// Computes [`link_trace`] of a lattice of `volume` sites from the sum of all traces.
pub(crate) fn link_trace_of_sum(sum: FixedPointSum, volume: usize) -> f64 {
    sum.total() / (12.0 * volume as f64)
}

impl Plaquettes {
    /// Computes the mean plaquettes of a lattice of `volume` sites from the sums over spatial and temporal planes.
    pub(crate) fn of_sums(sums: [FixedPointSum; 2], volume: usize) -> Self {
        // A site has three spatial and three temporal planes, and the trace is divided by three colours.
        let [spatial, temporal] = sums.map(|sum| sum.total() / (9.0 * volume as f64));
        Plaquettes { mean: 0.5 * (spatial + temporal), spatial, temporal }
    }
}

/// Finds the link that is farthest from SU(3). A link that is not finite counts as farther than any other.
pub fn unitarity(gauge: &HostGauge) -> Unitarity {
    // A NaN must count as the farthest: the total order of floating-point numbers puts a positive NaN above infinity.
    let (index, violation) = gauge
        .links()
        .par_iter()
        .map(|u| violation(u).abs())
        .enumerate()
        .reduce(|| (0, 0.0), |a, b| if b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)).is_gt() { b } else { a });
    Unitarity { violation, site: index / 4, mu: index % 4 }
}

/// Sums Re tr P at one site over the spatial planes and over the temporal planes.
fn site_plaquettes(part: &GaugePart, site: usize) -> [f64; 2] {
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

impl GaugeField {
    /// *Collective.* Computes the mean plaquettes and the mean link trace, both as Re tr / 3, on the device, for the whole lattice.
    pub fn plaquette(&self) -> Result<(Plaquettes, f64)> {
        self.expect_in(Precision::Double)?;
        for parity in 0..2 {
            let kernel = Plaquette {
                here: self.links(parity),
                there: self.links(1 - parity),
                lattice: self.bordered(),
                parity: parity as u32,
            };
            let size = (self.domain().half_sites(), 1);
            self.domain().backend().reduce(&PLAQUETTE, Format::of(Precision::Double), &kernel, size, 3 * parity)?;
        }
        let mut s = [0.0; 6];
        self.domain().sums(&mut s)?;
        let volume = self.domain().global().volume() as f64;
        let (spatial, temporal) = ((s[0] + s[3]) / (9.0 * volume), (s[1] + s[4]) / (9.0 * volume));
        let plaquette = Plaquettes { mean: 0.5 * (spatial + temporal), spatial, temporal };
        Ok((plaquette, (s[2] + s[5]) / (12.0 * volume)))
    }
}

fn sum_over_sites<const N: usize>(volume: usize, f: impl Fn(usize) -> [f64; N] + Sync) -> [FixedPointSum; N] {
    let block = |b: usize| {
        let mut sums = [FixedPointSum::default(); N];
        for site in b * BLOCK..volume.min((b + 1) * BLOCK) {
            sums.iter_mut().zip(f(site)).for_each(|(sum, term)| sum.add(term));
        }
        sums
    };
    let blocks: Vec<[FixedPointSum; N]> = (0..volume.div_ceil(BLOCK)).into_par_iter().map(block).collect();
    let all = |k: usize| blocks.iter().map(|sums| sums[k]).fold(FixedPointSum::default(), FixedPointSum::combine);
    std::array::from_fn(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Lattice;
    use num_complex::Complex64;

    #[test]
    fn unit_field_is_one() {
        let gauge = HostGauge::unit(Lattice::new([2, 4, 2, 6]).unwrap());
        assert_eq!(plaquette(&gauge), Plaquettes { mean: 1.0, spatial: 1.0, temporal: 1.0 });
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
