//! Smearing of quark fields and of links by their formulas on whole lattices, without any code of kernels.
//!
//! Conventions are Chroma's; only links in x, y and z are used or changed.
use crate::reference::{adjoint, multiply as product};
use ferrite::field::host::{ColourVector, HostColour, HostGauge, HostSpinor, Matrix, Spinor};
use num_complex::Complex64;

/// Rows made orthonormal, the third by the first two; whether that is possible.
fn orthonormalise(u: &mut Matrix) -> bool {
    let dot = |a: &[Complex64; 3], b: &[Complex64; 3]| -> Complex64 { (0..3).map(|k| a[k].conj() * b[k]).sum() };
    for row in 0..2 {
        if row == 1 {
            let (first, shadow) = (u[0], dot(&u[0], &u[1]));
            (0..3).for_each(|k| u[1][k] -= shadow * first[k]);
        }
        let norm = dot(&u[row], &u[row]).re.sqrt();
        if norm == 0.0 || !norm.is_finite() {
            return false;
        }
        u[row].iter_mut().for_each(|z| *z /= norm);
    }
    let [a, b, _] = *u;
    let minor = |j: usize, k: usize| (a[j] * b[k] - a[k] * b[j]).conj();
    u[2] = [minor(1, 2), minor(2, 0), minor(0, 1)];
    true
}

/// `to` += `factor` U ψ, or U† ψ.
fn add_transported(to: &mut Spinor, factor: Complex64, u: &Matrix, dagger: bool, psi: &Spinor) {
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
fn step(gauge: &HostGauge, psi: &HostSpinor, sigma: f64, momentum: [f64; 3]) -> HostSpinor {
    let lattice = gauge.lattice();
    let hop = |k: usize| sigma * Complex64::cis(-std::f64::consts::TAU * momentum[k] / lattice.size()[k] as f64);
    let sites = (0..lattice.volume()).map(|x| {
        let mut sum = psi.sites()[x].map(|spin| spin.map(|z| z * (1.0 - 6.0 * sigma)));
        for k in 0..3 {
            let (ahead, behind) = (lattice.neighbour(x, k, true), lattice.neighbour(x, k, false));
            add_transported(&mut sum, hop(k), gauge.link(x, k), false, &psi.sites()[ahead]);
            add_transported(&mut sum, hop(k).conj(), gauge.link(behind, k), true, &psi.sites()[behind]);
        }
        sum
    });
    HostSpinor::from_sites(lattice, sites.collect())
}

/// (1 + w² Δ / (4 n))ⁿ ψ with the covariant Laplace operator Δ of three dimensions: for large n a Gaussian of width w,
/// exp(w² Δ / 4), with factors e^{−iκ} of hops forwards for a momentum in units of 2π/L. Chroma's `GAUGE_INV_GAUSSIAN` with `wvf_param` = w and `wvfIntPar` = n. On anisotropic lattices links
/// and coefficients are the same.
///
/// Panics when the fields' lattices differ.
pub fn gaussian(gauge: &HostGauge, psi: &HostSpinor, width: f64, steps: usize, momentum: [f64; 3]) -> HostSpinor {
    assert_eq!(gauge.lattice(), psi.lattice(), "links and field are on the same lattice");
    let sigma = width * width / (4.0 * steps as f64);
    (0..steps).fold(psi.clone(), |psi, _| step(gauge, &psi, sigma, momentum))
}

/// `to` += `factor` W v, or W† v.
fn add_transported_colour(to: &mut ColourVector, factor: Complex64, w: &Matrix, dagger: bool, v: &ColourVector) {
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
pub fn gaussian_staggered(
    gauge: &HostGauge,
    chi: &HostColour,
    width: f64,
    steps: usize,
    momentum: [f64; 3],
) -> HostColour {
    assert_eq!(gauge.lattice(), chi.lattice(), "links and field are on the same lattice");
    let lattice = gauge.lattice();
    let sigma = width * width / (16.0 * steps as f64);
    let hop = |k: usize| sigma * Complex64::cis(-2.0 * std::f64::consts::TAU * momentum[k] / lattice.size()[k] as f64);
    let double: Vec<[Matrix; 3]> = (0..lattice.volume())
        .map(|x| std::array::from_fn(|k| product(gauge.link(x, k), gauge.link(lattice.neighbour(x, k, true), k))))
        .collect();
    let two = |x: usize, k: usize, ahead: bool| lattice.neighbour(lattice.neighbour(x, k, ahead), k, ahead);
    let step = |chi: HostColour| {
        let sites = (0..lattice.volume()).map(|x| {
            let mut sum = chi.sites()[x].map(|z| z * (1.0 - 6.0 * sigma));
            for (k, forwards) in double[x].iter().enumerate() {
                let (ahead, behind) = (two(x, k, true), two(x, k, false));
                add_transported_colour(&mut sum, hop(k), forwards, false, &chi.sites()[ahead]);
                add_transported_colour(&mut sum, hop(k).conj(), &double[behind][k], true, &chi.sites()[behind]);
            }
            sum
        });
        HostColour::from_sites(lattice, sites.collect())
    };
    (0..steps).fold(chi.clone(), |chi, _| step(chi))
}

/// The mean over all orders of shifts in some of the directions, each ½ [U_k(x) χ(x+k̂) + U_k†(x−k̂) χ(x−k̂)].
///
/// Panics when the fields' lattices differ.
pub fn shifted(gauge: &HostGauge, chi: &HostColour, directions: &[usize]) -> HostColour {
    assert_eq!(gauge.lattice(), chi.lattice(), "links and field are on the same lattice");
    let lattice = gauge.lattice();
    let step = |chi: &HostColour, k: usize| {
        let site = |x: usize| {
            let (mut sum, half) = ([Complex64::ZERO; 3], Complex64::from(0.5));
            let (ahead, behind) = (lattice.neighbour(x, k, true), lattice.neighbour(x, k, false));
            add_transported_colour(&mut sum, half, gauge.link(x, k), false, &chi.sites()[ahead]);
            add_transported_colour(&mut sum, half, gauge.link(behind, k), true, &chi.sites()[behind]);
            sum
        };
        HostColour::from_sites(lattice, (0..lattice.volume()).map(site).collect())
    };
    let orders: Vec<Vec<usize>> = match *directions {
        [x] => vec![vec![x]],
        [x, y] => vec![vec![x, y], vec![y, x]],
        [x, y, z] => vec![vec![x, y, z], vec![x, z, y], vec![y, x, z], vec![y, z, x], vec![z, x, y], vec![z, y, x]],
        _ => panic!("one to three directions"),
    };
    let mut mean = HostColour::zero(lattice);
    for order in &orders {
        let end = order.iter().fold(chi.clone(), |chi, k| step(&chi, *k));
        for (mean, end) in mean.numbers_mut().iter_mut().zip(end.numbers()) {
            *mean += end / orders.len() as f64;
        }
    }
    mean
}

/// The W in SU(3) with the largest Re tr W V†, found from V made unitary by its rows and improved in SU(2) subgroups
/// (Cabibbo and Marinari) until nothing changes any more. V must not be singular: then, `None`. Where Re tr W V† has several
/// maxima it may be one that is not the largest.
pub fn project(v: &Matrix) -> Option<Matrix> {
    project_with_sweeps(v).map(|(w, _)| w)
}

/// [`project`], with the number of sweeps over the subgroups that it took.
pub fn project_with_sweeps(v: &Matrix) -> Option<(Matrix, usize)> {
    let mut w = *v;
    if !orthonormalise(&mut w) {
        return None;
    }
    let mut x = product(&w, &adjoint(v));
    let mut sweeps = 0;
    while sweeps < 100_000 {
        sweeps += 1;
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
    orthonormalise(&mut w).then_some((w, sweeps))
}

/// APE smearing of the links in x, y, z by staples in these directions: in each of `steps` steps, U becomes the
/// [`project`]ion of `weight` U + Σ staples. Chroma's `APE_SMEAR` with `link_smear_fact` = `weight`; the share of each
/// of the four staples is 1 / (weight + 4). A sum of links and staples that is singular leaves its link as it is.
pub fn ape(gauge: &HostGauge, weight: f64, steps: usize) -> HostGauge {
    let lattice = gauge.lattice();
    let mut gauge = gauge.clone();
    for _ in 0..steps {
        let links = (0..4 * lattice.volume()).map(|index| {
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
