//! Smearing on the host: covariant Gaussian smearing of fermion fields, and APE smearing of links.
//!
//! Both leave time slices to themselves: only links in x, y and z are used or changed. Conventions are Chroma's.
//!
//! ```
//! use ferrite::gauge::{generate, smear};
//! use ferrite::lattice::Lattice;
//!
//! let lattice = Lattice::new([4, 4, 4, 8])?;
//! let gauge = generate::weak_field(lattice, 1, 0.2);
//! let links = smear::ape(&gauge, 2.5, 1);
//! let point = generate::point_source(lattice, [0, 0, 0, 0], 0, 0).unwrap();
//! let shell = smear::gaussian(&links, &point, 2.0, 5);
//! assert!(shell.norm2() > 0.0);
//! # Ok::<(), ferrite::lattice::LatticeError>(())
//! ```
use super::su3::{adjoint, orthonormalise, product};
use crate::field::host::{ColourVector, HostColour, HostGauge, HostSpinor, Matrix, Spinor};
use num_complex::Complex64;
use rayon::prelude::*;

/// `to` += `factor` U ψ, or U† ψ.
fn add_transported(to: &mut Spinor, factor: f64, u: &Matrix, dagger: bool, psi: &Spinor) {
    for (to, psi) in to.iter_mut().zip(psi) {
        for (a, to) in to.iter_mut().enumerate() {
            for (b, psi) in psi.iter().enumerate() {
                let element = if dagger { u[b][a].conj() } else { u[a][b] };
                *to += factor * element * psi;
            }
        }
    }
}

/// (1 + σ Δ) ψ with the covariant Laplace operator of three dimensions,
/// (Δ ψ)(x) = Σ_{k=x,y,z} U_k(x) ψ(x+k̂) + U_k†(x−k̂) ψ(x−k̂) − 2 ψ(x).
fn step(gauge: &HostGauge, psi: &HostSpinor, sigma: f64) -> HostSpinor {
    let lattice = gauge.lattice();
    let sites = (0..lattice.volume()).into_par_iter().map(|x| {
        let mut sum = psi.sites()[x].map(|spin| spin.map(|z| z * (1.0 - 6.0 * sigma)));
        for k in 0..3 {
            let (ahead, behind) = (lattice.neighbour(x, k, true), lattice.neighbour(x, k, false));
            add_transported(&mut sum, sigma, gauge.link(x, k), false, &psi.sites()[ahead]);
            add_transported(&mut sum, sigma, gauge.link(behind, k), true, &psi.sites()[behind]);
        }
        sum
    });
    HostSpinor::from_sites(lattice, sites.collect())
}

/// (1 + w² Δ / (4 n))ⁿ ψ with the covariant Laplace operator Δ of three dimensions: for large n a Gaussian of width w,
/// exp(w² Δ / 4). Chroma's `GAUGE_INV_GAUSSIAN` with `wvf_param` = w and `wvfIntPar` = n. On anisotropic lattices links
/// and coefficients are the same.
///
/// Panics when the fields' lattices differ.
pub fn gaussian(gauge: &HostGauge, psi: &HostSpinor, width: f64, steps: usize) -> HostSpinor {
    assert_eq!(gauge.lattice(), psi.lattice(), "links and field are on the same lattice");
    let sigma = width * width / (4.0 * steps as f64);
    (0..steps).fold(psi.clone(), |psi, _| step(gauge, &psi, sigma))
}

/// `to` += `factor` W v, or W† v.
fn add_transported_colour(to: &mut ColourVector, factor: f64, w: &Matrix, dagger: bool, v: &ColourVector) {
    for (a, to) in to.iter_mut().enumerate() {
        for (b, v) in v.iter().enumerate() {
            *to += factor * if dagger { w[b][a].conj() } else { w[a][b] } * v;
        }
    }
}

/// [`gaussian`] for staggered quarks, (1 + w² Δ₂ / (4 n))ⁿ χ with steps of two sites, which stay in the same corner of the
/// hypercubes and so keep spin and taste:
///
/// (Δ₂ χ)(x) = ¼ Σ_{k=x,y,z} W_k(x) χ(x+2k̂) + W_k†(x−2k̂) χ(x−2k̂) − 2 χ(x), W_k(x) = U_k(x) U_k(x+k̂).
///
/// For large n it is exp(w² Δ / 4) of the same width w, in units of a, as [`gaussian`] has. The phases of two hops in one
/// direction cancel, so that the links are those without phases.
///
/// Panics when the fields' lattices differ.
pub fn gaussian_staggered(gauge: &HostGauge, chi: &HostColour, width: f64, steps: usize) -> HostColour {
    assert_eq!(gauge.lattice(), chi.lattice(), "links and field are on the same lattice");
    let lattice = gauge.lattice();
    let sigma = width * width / (16.0 * steps as f64);
    let double: Vec<[Matrix; 3]> = (0..lattice.volume())
        .into_par_iter()
        .map(|x| std::array::from_fn(|k| product(gauge.link(x, k), gauge.link(lattice.neighbour(x, k, true), k))))
        .collect();
    let two = |x: usize, k: usize, ahead: bool| lattice.neighbour(lattice.neighbour(x, k, ahead), k, ahead);
    let step = |chi: HostColour| {
        let sites = (0..lattice.volume()).into_par_iter().map(|x| {
            let mut sum = chi.sites()[x].map(|z| z * (1.0 - 6.0 * sigma));
            for (k, forwards) in double[x].iter().enumerate() {
                let (ahead, behind) = (two(x, k, true), two(x, k, false));
                add_transported_colour(&mut sum, sigma, forwards, false, &chi.sites()[ahead]);
                add_transported_colour(&mut sum, sigma, &double[behind][k], true, &chi.sites()[behind]);
            }
            sum
        });
        HostColour::from_sites(lattice, sites.collect())
    };
    (0..steps).fold(chi.clone(), |chi, _| step(chi))
}

/// The W in SU(3) with the largest Re tr W V†, found from V made unitary by its rows and improved in SU(2) subgroups
/// (Cabibbo and Marinari) until nothing changes any more. V must not be singular: then, `None`.
pub fn project(v: &Matrix) -> Option<Matrix> {
    let mut w = *v;
    if !orthonormalise(&mut w) {
        return None;
    }
    let mut x = product(&w, &adjoint(v));
    for _ in 0..1000 {
        let mut change = 0f64;
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            // The part of x in the quaternions, a₀ + i a·σ; its conjugate makes the trace largest.
            let a = [(x[i][i] + x[j][j]).re, (x[i][j] + x[j][i]).im, (x[i][j] - x[j][i]).re, (x[i][i] - x[j][j]).im];
            let norm = a.iter().map(|a| a * a).sum::<f64>().sqrt();
            if norm == 0.0 {
                continue;
            }
            let a = a.map(|a| a / norm);
            change = change.max(a[1..].iter().fold((1.0 - a[0]).abs(), |m, a| m.max(a.abs())));
            let (p, q) = (Complex64::new(a[0], -a[3]), Complex64::new(-a[2], -a[1]));
            for m in [&mut w, &mut x] {
                let (upper, lower) = (m[i], m[j]);
                m[i] = std::array::from_fn(|k| p * upper[k] + q * lower[k]);
                m[j] = std::array::from_fn(|k| p.conj() * lower[k] - q.conj() * upper[k]);
            }
        }
        if change < 1e-15 {
            break;
        }
    }
    // Rounding errors of many rotations.
    orthonormalise(&mut w).then_some(w)
}

/// APE smearing of the links in x, y, z by staples in these directions: in each of `steps` steps, U becomes the
/// [`project`]ion of `weight` U + Σ staples. Chroma's `APE_SMEAR` with `link_smear_fact` = `weight`; the share of each
/// of the four staples is 1 / (weight + 4). A sum of links and staples that is singular leaves its link as it is.
pub fn ape(gauge: &HostGauge, weight: f64, steps: usize) -> HostGauge {
    let lattice = gauge.lattice();
    let mut gauge = gauge.clone();
    for _ in 0..steps {
        let links = (0..4 * lattice.volume()).into_par_iter().map(|index| {
            let (x, mu) = (index / 4, index % 4);
            let link = gauge.link(x, mu);
            if mu == 3 {
                return *link;
            }
            let mut sum = link.map(|row| row.map(|z| weight * z));
            let mut add = |staple: Matrix| {
                sum.iter_mut().flatten().zip(staple.iter().flatten()).for_each(|(to, from)| *to += from);
            };
            let along = lattice.neighbour(x, mu, true);
            for nu in (0..3).filter(|nu| *nu != mu) {
                let (up, down) = (lattice.neighbour(x, nu, true), lattice.neighbour(x, nu, false));
                let there = product(gauge.link(x, nu), gauge.link(up, mu));
                add(product(&there, &adjoint(gauge.link(along, nu))));
                let corner = lattice.neighbour(along, nu, false);
                let there = product(&adjoint(gauge.link(down, nu)), gauge.link(down, mu));
                add(product(&there, gauge.link(corner, nu)));
            }
            project(&sum).unwrap_or(*link)
        });
        gauge = HostGauge::from_links(lattice, links.collect());
    }
    gauge
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauge::su3::violation;
    use crate::gauge::{generate, measure};
    use crate::lattice::Lattice;

    #[test]
    fn the_norm_on_unit_links_is_that_of_the_plane_waves() {
        // Δ has the eigenvalues −4 Σ sin²(p/2); a point has all plane waves alike.
        let lattice = Lattice::new([4, 6, 2, 2]).unwrap();
        let point = generate::point_source(lattice, [1, 2, 0, 1], 2, 1).unwrap();
        let smeared = gaussian(&HostGauge::unit(lattice), &point, 1.5, 7);
        let mut expected = 0.0;
        for k in 0..48 {
            let n = lattice.coordinates(k);
            let angle = |mu: usize| std::f64::consts::PI * n[mu] as f64 / lattice.size()[mu] as f64;
            let laplace: f64 = (0..3).map(|mu| -4.0 * angle(mu).sin().powi(2)).sum();
            expected += (1.0 + 1.5 * 1.5 / 28.0 * laplace).powi(14) / 48.0;
        }
        assert!((smeared.norm2() / expected - 1.0).abs() < 1e-12, "{} {expected}", smeared.norm2());
        let elsewhere = smeared.sites().iter().enumerate().filter(|(x, _)| lattice.coordinates(*x)[3] != 1);
        assert!(elsewhere.flat_map(|(_, s)| s.iter().flatten()).all(|z| z.norm() == 0.0));
    }

    /// Steps of two sites: eigenvalues −Σ sin² p, nothing in other corners, and the transport is that along the links.
    #[test]
    fn staggered_shells_stay_in_their_corner() {
        let lattice = Lattice::new([4, 8, 2, 2]).unwrap();
        let point = generate::point_colour_source(lattice, [1, 2, 0, 1], 1).unwrap();
        let smeared = gaussian_staggered(&HostGauge::unit(lattice), &point, 1.5, 7);
        let mut expected = 0.0;
        for k in 0..64 {
            let n = lattice.coordinates(k);
            let angle = |mu: usize| std::f64::consts::TAU * n[mu] as f64 / lattice.size()[mu] as f64;
            let laplace: f64 = (0..3).map(|mu| -angle(mu).sin().powi(2)).sum();
            expected += (1.0 + 1.5 * 1.5 / 28.0 * laplace).powi(14) / 64.0;
        }
        assert!((smeared.norm2() / expected - 1.0).abs() < 1e-12, "{} {expected}", smeared.norm2());
        let gauge = generate::random(lattice, 4);
        let smeared = gaussian_staggered(&gauge, &point, 1.5, 1);
        for (x, found) in smeared.sites().iter().enumerate() {
            let [a, b, c, t] = lattice.coordinates(x);
            assert!((a % 2, b % 2, c % 2, t) == (1, 0, 0, 1) || found.iter().all(|z| z.norm() == 0.0));
        }
        // One step to y − 2: the column of U_y(y−2) U_y(y−1), times σ = w²/16.
        let (near, far) = (lattice.index([1, 1, 0, 1]), lattice.index([1, 0, 0, 1]));
        for (row, found) in smeared.sites()[far].iter().enumerate() {
            let (first, second) = (gauge.link(far, 1), gauge.link(near, 1));
            let path: Complex64 = (0..3).map(|k| first[row][k] * second[k][1]).sum();
            assert!((found - path * (1.5 * 1.5 / 16.0)).norm() < 1e-14);
        }
    }

    #[test]
    fn projections_maximise_the_trace() {
        let lattice = Lattice::new([2; 4]).unwrap();
        let (links, noise) = (generate::random(lattice, 1), generate::random(lattice, 2));
        let trace = |w: &Matrix, v: &Matrix| {
            let x = product(w, &adjoint(v));
            (x[0][0] + x[1][1] + x[2][2]).re
        };
        let near = generate::weak_field(lattice, 3, 0.05);
        for ((u, v), r) in links.links().iter().zip(noise.links()).zip(near.links()) {
            let mut sum = *u;
            sum.iter_mut().flatten().zip(v.iter().flatten()).for_each(|(a, b)| *a += 0.5 * b);
            let w = project(&sum).unwrap();
            assert!(violation(&w) < 1e-14);
            assert!(trace(&product(r, &w), &sum) <= trace(&w, &sum) + 1e-12);
            let again = project(&w).unwrap();
            assert!(again.iter().flatten().zip(w.iter().flatten()).all(|(a, b)| (a - b).norm() < 1e-13));
        }
    }

    #[test]
    fn smearing_links_smooths_space_and_keeps_time() {
        let lattice = Lattice::new([4, 4, 4, 2]).unwrap();
        let gauge = generate::weak_field(lattice, 5, 0.2);
        let smeared = ape(&gauge, 2.5, 2);
        let (before, after) = (measure::plaquette(&gauge), measure::plaquette(&smeared));
        assert!(1.0 - after.spatial < 0.3 * (1.0 - before.spatial), "{before:?} {after:?}");
        assert!((0..lattice.volume()).all(|x| smeared.link(x, 3) == gauge.link(x, 3)));
        assert!(measure::unitarity(&smeared).violation < 1e-13);
        assert_eq!(ape(&HostGauge::unit(lattice), 2.5, 1), HostGauge::unit(lattice));
    }
}
