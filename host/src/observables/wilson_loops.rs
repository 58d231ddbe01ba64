//! Wilson loops W(R, T) for the static potential, on the host.
//!
//! W(R, T) = Re tr [S(x; R) L(x+R; T) S†(x+T t̂; R) L†(x; T)] / 3 is averaged over all x and over all R that cubic rotations and
//! reflections turn into one another. S is a product of links in space, and L a product of T links in t. W is 1 on unit links. Along an
//! axis, S is the product of the links. Off the axes, R = n d with d one of [`DIRECTIONS`], and S is a product of n factors. Each factor is
//! the mean over all shortest paths along d: 2 paths for (1, 1, 0), 6 for (1, 1, 1), 3 for (2, 1, 0).
//!
//! Links are first transformed to axial gauge, in which links in t are 1 except for the last ones, P(x). Loops that do not cross the
//! boundary are then traces of two S, and others are traces of P†(x) S(x) P(x+R) and S.
use crate::field::host::{HostGauge, Matrix};
use crate::gauge::su3::{adjoint, product, unit};
use crate::lattice::Lattice;
use num_complex::Complex64;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Wilson loops W(R, T) at one separation R, as means over a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct WilsonLoops {
    /// Separation R in lattice units, with its components in descending order.
    pub separation: [usize; 3],
    /// Values W(R, T) for T = 1, 2, …
    pub values: Vec<f64>,
}

/// Directions of R: the axes, and the off-axis directions of Bolder et al. (2001).
pub const DIRECTIONS: [[usize; 3]; 6] = [[1, 0, 0], [1, 1, 0], [1, 1, 1], [2, 1, 0], [2, 1, 1], [2, 2, 1]];

impl WilsonLoops {
    /// Returns the distance |R| in lattice units.
    pub fn distance(&self) -> f64 {
        (self.separation.iter().map(|x| x * x).sum::<usize>() as f64).sqrt()
    }
}

/// Returns all separations R with |R| up to `distance`, in the order of |R|. Each separation is returned as a direction and an integer
/// multiple of this direction.
pub fn separations(distance: usize, off_axis: bool) -> Vec<([usize; 3], usize)> {
    let directions = if off_axis { &DIRECTIONS[..] } else { &DIRECTIONS[..1] };
    let square = |([x, y, z], n): &([usize; 3], usize)| n * n * (x * x + y * y + z * z);
    let times = |d: [usize; 3]| (1..=distance).map(move |n| (d, n));
    let mut all: Vec<_> =
        directions.iter().flat_map(|d| times(*d)).filter(|one| square(one) <= distance * distance).collect();
    all.sort_by_key(|one| (square(one), one.0.map(|x| one.1 * x)));
    all
}

/// Returns the bytes of host memory that [`wilson_loops`] adds to the links.
pub fn bytes(lattice: Lattice, off_axis: bool) -> usize {
    // A site needs matrices for three spatial links, for four products (that of a direction, the product so far, the next one, and the one
    // across the boundary), and for products of shorter paths.
    (3 + 4 + if off_axis { 5 } else { 1 }) * size_of::<Matrix>() * lattice.volume()
}

/// Computes Wilson loops up to a distance R and a time T in lattice units. Panics if `distance` is 0 or more than half of the smallest
/// extent in space, or if `time` is 0 or more than half of the extent in t.
pub fn wilson_loops(gauge: &HostGauge, distance: usize, time: usize, off_axis: bool) -> Vec<WilsonLoops> {
    let found = wilson_loops_while(gauge, distance, time, off_axis, &mut || ControlFlow::Continue(()));
    found.expect("nothing ended it")
}

/// Computes [`wilson_loops`], and calls `after` after each product of links along a path. Returns `None` if `after` returns `Break`.
///
/// # Panics
/// Like [`wilson_loops`].
pub fn wilson_loops_while(
    gauge: &HostGauge,
    distance: usize,
    time: usize,
    off_axis: bool,
    after: &mut dyn FnMut() -> ControlFlow<()>,
) -> Option<Vec<WilsonLoops>> {
    let [x, y, z, t] = gauge.lattice().size();
    assert!((1..=x.min(y).min(z) / 2).contains(&distance) && (1..=t / 2).contains(&time), "loops that fit");
    let axial = AxialLinks::of(gauge);
    let all = separations(distance, off_axis);
    let mut found: Vec<WilsonLoops> =
        all.iter().map(|(d, n)| WilsonLoops { separation: d.map(|x| n * x), values: vec![0.0; time] }).collect();
    for direction in DIRECTIONS {
        let longest = all.iter().filter(|(d, _)| *d == direction).map(|(_, n)| *n).max().unwrap_or(0);
        let turned = if longest > 0 { rotations(direction) } else { Vec::new() };
        for d in &turned {
            let step = axial.mean_path(*d);
            let mut whole = step.clone();
            for n in 1..=longest {
                if after().is_break() {
                    return None;
                }
                if n > 1 {
                    whole = axial.behind(&step, &whole, *d);
                }
                let at = all.iter().position(|one| *one == (direction, n));
                let Some(values) = at.map(|k| &mut found[k].values) else { continue };
                let traces = axial.traces(&whole, d.map(|x| x * n as i64), time);
                values.iter_mut().zip(traces).for_each(|(sum, trace)| *sum += trace / turned.len() as f64);
            }
        }
    }
    Some(found)
}

/// Returns the rotations and reflections of a direction, one of each pair of opposites.
fn rotations(direction: [usize; 3]) -> Vec<[i64; 3]> {
    let d = direction.map(|x| x as i64);
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let signs = (0..8).map(|bits: i64| [0, 1, 2].map(|k| 1 - 2 * (bits >> k & 1)));
    let mut all: Vec<[i64; 3]> = signs.flat_map(|s| orders.map(|o| [0, 1, 2].map(|k| s[k] * d[o[k]]))).collect();
    all.retain(|d| d.iter().find(|x| **x != 0).is_some_and(|first| *first > 0));
    all.sort_unstable();
    all.dedup();
    all
}

/// Links in axial gauge.
struct AxialLinks {
    /// Extents X, Y, Z.
    space: [usize; 3],
    /// Number of sites at one time.
    plane: usize,
    /// Links in x, y and z, by site.
    links: [Vec<Matrix>; 3],
    /// Last links P in t, by place in space.
    last: Vec<Matrix>,
}

impl AxialLinks {
    fn of(gauge: &HostGauge) -> Self {
        let lattice = gauge.lattice();
        let [x, y, z, t] = lattice.size();
        let plane = x * y * z;
        // The transformation is g(x, t+1) = g(x, t) U_t(x, t), with g = 1 at t = 0.
        let mut turned = vec![unit(); lattice.volume()];
        for time in 1..t {
            let (before, here) = turned.split_at_mut(time * plane);
            let before = &before[(time - 1) * plane..];
            here[..plane].par_iter_mut().enumerate().for_each(|(place, g)| {
                *g = product(&before[place], gauge.link((time - 1) * plane + place, 3));
            });
        }
        let last = (0..plane).into_par_iter().map(|place| {
            let site = (t - 1) * plane + place;
            product(&turned[site], gauge.link(site, 3))
        });
        let last = last.collect();
        let links = [0, 1, 2].map(|mu| {
            let one = |site: usize| {
                let next = lattice.neighbour(site, mu, true);
                product(&product(&turned[site], gauge.link(site, mu)), &adjoint(&turned[next]))
            };
            (0..lattice.volume()).into_par_iter().map(one).collect()
        });
        AxialLinks { space: [x, y, z], plane, links, last }
    }
    /// Returns the place of x + d for each place x at one time.
    fn shifted(&self, d: [i64; 3]) -> Vec<usize> {
        let [x, y, _] = self.space;
        let one = |place: usize| {
            let at = [place % x, place / x % y, place / (x * y)];
            let [a, b, c]: [usize; 3] =
                std::array::from_fn(|k| (at[k] as i64 + d[k]).rem_euclid(self.space[k] as i64) as usize);
            a + x * (b + y * c)
        };
        (0..self.plane).map(one).collect()
    }
    /// Computes A(x) B(x + d).
    fn behind(&self, a: &[Matrix], b: &[Matrix], d: [i64; 3]) -> Vec<Matrix> {
        let shifted = self.shifted(d);
        let one = |site: usize| product(&a[site], &b[site - site % self.plane + shifted[site % self.plane]]);
        (0..a.len()).into_par_iter().map(one).collect()
    }
    /// Computes the mean of the products along all shortest paths from x to x + d. The share |d_i| / Σ |d_j| of these paths begins in
    /// direction i.
    fn mean_path(&self, d: [i64; 3]) -> Vec<Matrix> {
        let length: i64 = d.iter().map(|x| x.abs()).sum();
        let mut sum: Vec<Matrix> = Vec::new();
        for mu in (0..3).filter(|mu| d[*mu] != 0) {
            let mut first = [0; 3];
            first[mu] = d[mu].signum();
            let step: Vec<Matrix> = if d[mu] > 0 {
                self.links[mu].clone()
            } else {
                let from = self.shifted(first);
                let back = |site: usize| adjoint(&self.links[mu][site - site % self.plane + from[site % self.plane]]);
                (0..self.links[mu].len()).into_par_iter().map(back).collect()
            };
            let path = match length {
                1 => step,
                _ => {
                    let rest = self.mean_path([0, 1, 2].map(|k| d[k] - first[k]));
                    self.behind(&step, &rest, first)
                }
            };
            let share = d[mu].abs() as f64 / length as f64;
            if sum.is_empty() {
                sum = vec![Matrix::default(); path.len()];
            }
            sum.par_iter_mut().zip(&path).for_each(|(sum, path)| {
                sum.as_flattened_mut().iter_mut().zip(path.as_flattened()).for_each(|(sum, z)| *sum += z * share);
            });
        }
        sum
    }
    /// Computes the means over sites of Re tr / 3 of the loops with these spatial products, for T = 1 to `time`.
    fn traces(&self, whole: &[Matrix], r: [i64; 3], time: usize) -> Vec<f64> {
        let (plane, shifted) = (self.plane, self.shifted(r));
        let times = whole.len() / plane;
        // `across` holds the products P†(x) S(x) P(x+R) of loops that cross the boundary. Such loops begin in the last `time` time slices.
        let first = (times - time) * plane;
        let across: Vec<Matrix> = (first..whole.len())
            .into_par_iter()
            .map(|site| {
                let place = site % plane;
                product(&product(&adjoint(&self.last[place]), &whole[site]), &self.last[shifted[place]])
            })
            .collect();
        let of_slice = |t: usize| -> Vec<f64> {
            let one = |length: usize| {
                let (begin, end) = (t * plane, (t + length) % times * plane);
                let begins =
                    if t + length < times { &whole[begin..begin + plane] } else { &across[begin - first..][..plane] };
                begins.iter().zip(&whole[end..end + plane]).map(|(a, b)| real_trace(a, b)).sum::<f64>()
            };
            (1..=time).map(one).collect()
        };
        let slices: Vec<Vec<f64>> = (0..times).into_par_iter().map(of_slice).collect();
        (0..time).map(|k| slices.iter().map(|slice| slice[k]).sum::<f64>() / (3 * whole.len()) as f64).collect()
    }
}

/// Computes Re tr A B†.
fn real_trace(a: &Matrix, b: &Matrix) -> f64 {
    let pairs = a.as_flattened().iter().zip(b.as_flattened());
    pairs.map(|(a, b): (&Complex64, &Complex64)| a.re * b.re + a.im * b.im).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_those_of_the_cube() {
        let counts: Vec<usize> = DIRECTIONS.iter().map(|d| rotations(*d).len()).collect();
        assert_eq!(counts, [3, 6, 4, 12, 12, 12]);
        let found: Vec<[usize; 3]> = separations(3, true).iter().map(|(d, n)| d.map(|x| n * x)).collect();
        assert_eq!(
            found,
            [[1, 0, 0], [1, 1, 0], [1, 1, 1], [2, 0, 0], [2, 1, 0], [2, 1, 1], [2, 2, 0], [2, 2, 1], [3, 0, 0]]
        );
        assert_eq!(separations(2, false), [([1, 0, 0], 1), ([1, 0, 0], 2)]);
    }
}
