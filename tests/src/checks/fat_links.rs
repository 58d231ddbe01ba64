//! Links of improved staggered fermions: fat and long links, the projection to U(3), and what formats need of them.
use crate::accuracy::{Accuracy, summation};
use crate::report::{CheckReport, Scope, Tolerance};
use crate::staggered_reference::{self as reference, LinkCoefficients, project, unitary_links};
use crate::testkit::lattice;
use crate::testkit::matrix::{adjoint, determinant, farthest, multiply, scale, unit};
use ferrite::Precision;
use ferrite::backend::Backend;
use ferrite::domain::{DeviceError, Domain, Result};
use ferrite::field::GaugeField;
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::fat_links::{self, Improvement, LinkGroup, PathCoefficients};
use num_complex::Complex64;

/// Random and rough links on odd-shaped lattices: with extents 2, paths of three steps and Lepage's staples end where
/// shorter ones do; with 4, a long link and a thin one backward join the same sites.
pub fn link_cases() -> Vec<HostGauge> {
    vec![
        generate::random(lattice([2, 4, 6, 8]), 31),
        generate::weak_field(lattice([6, 2, 4, 10]), 32, 0.3),
        generate::random(lattice([6, 4, 8, 2]), 33),
        generate::weak_field(lattice([4; 4]), 34, 0.3),
        generate::random(lattice([2; 4]), 35),
    ]
}

/// Coefficients that differ from each other, with families left out.
fn coefficients() -> Vec<LinkCoefficients> {
    let all = LinkCoefficients { one_link: 0.7, three: 0.11, five: -0.053, seven: 0.029, lepage: -0.19, naik: -0.3 };
    vec![
        all,
        LinkCoefficients { seven: 0.0, naik: 0.23, ..all },
        LinkCoefficients { five: 0.0, one_link: -0.7, ..all },
        LinkCoefficients { lepage: 0.0, ..all },
        LinkCoefficients { three: 0.0, ..all },
        LinkCoefficients { five: 0.0, seven: 0.0, ..all },
        LinkCoefficients { five: 0.0, seven: 0.0, lepage: 0.0, ..all },
        LinkCoefficients { three: 0.0, five: 0.0, seven: 0.0, ..all },
        LinkCoefficients { three: 0.0, five: 0.0, lepage: 0.0, naik: 0.0, ..all },
        LinkCoefficients { one_link: 0.0, naik: 1.0, ..LinkCoefficients::naive() },
        LinkCoefficients::naive(),
    ]
}

fn paths(c: &LinkCoefficients) -> PathCoefficients {
    let &LinkCoefficients { one_link, three, five, seven, lepage, naik } = c;
    PathCoefficients { one_link, naik, three, five, seven, lepage }
}
/// Σ |c| over all paths.
fn magnitude(c: &LinkCoefficients) -> f64 {
    let LinkCoefficients { one_link, three, five, seven, lepage, .. } = c;
    LinkCoefficients {
        one_link: one_link.abs(),
        three: three.abs(),
        five: five.abs(),
        seven: seven.abs(),
        lepage: lepage.abs(),
        naik: 0.0,
    }
    .sum()
}

/// The largest real or imaginary part.
fn largest(gauge: &HostGauge) -> f64 {
    super::peak(gauge.numbers())
}
fn peak(u: &Matrix) -> f64 {
    super::peak(u.as_flattened())
}

/// Tolerance for links whose elements are off by `off`: of ‖δF‖ / ‖F‖, and of one element over the largest of its matrix.
fn within(off: f64, links: &HostGauge) -> Tolerance {
    if off == 0.0 {
        return Tolerance { relative: 0.0, worst: 0.0 };
    }
    let elements = links.numbers();
    let rms = (elements.iter().map(|z| z.norm_sqr()).sum::<f64>() / elements.len() as f64).sqrt();
    let smallest = links.links().iter().map(peak).filter(|p| *p > 0.0).fold(f64::INFINITY, f64::min);
    // Worst among many thousands.
    Tolerance { relative: off / rms, worst: 8.0 * off / smallest }
}

/// Error of the elements of links made of paths with coefficients that sum up to `magnitude`: elements of unitary matrices are 0.6 in the
/// mean; six multiplications, each of which rounds an element six times by up to a unit of that, here and in the reference, are a random
/// walk of 72 steps.
fn path_error(magnitude: f64) -> f64 {
    0.6 * (72f64).sqrt() * Precision::Double.unit() * magnitude
}

/// Returns links that have a projection. Notes a failure if that is denied.
pub(super) fn regular<T>(result: Result<T>, (scope, report): (&Scope, &mut CheckReport)) -> Result<Option<T>> {
    match result {
        Ok(links) => Ok(Some(links)),
        Err(DeviceError::SingularLinks { .. }) => {
            report.holds(scope, "links have a projection to U(3)", false);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Fat links, long links and the projection on the device against the reference, and what [`Improvement`] says of them.
pub fn fat_links(backend: &dyn Backend, gauge: &HostGauge, report: &mut CheckReport) -> Result {
    let lattice = gauge.lattice();
    let domain = Domain::single(backend, lattice)?;
    let scope = |detail: &str| Scope { format: "double".into(), detail: format!("{lattice} {detail}") };
    let thin = GaugeField::upload(&domain, gauge)?;
    report.holds(&scope(""), "thin links, bits", thin.download()? == *gauge);

    for (name, own, theirs) in [
        ("asqtad", PathCoefficients::asqtad(0.9), LinkCoefficients::asqtad(0.9)),
        ("Fat7", PathCoefficients::fat7(), LinkCoefficients::fat7()),
        ("HISQ", PathCoefficients::hisq(-0.1), LinkCoefficients::hisq(-0.1)),
    ] {
        let theirs = paths(&theirs);
        let pairs = [
            (own.one_link, theirs.one_link),
            (own.naik, theirs.naik),
            (own.three, theirs.three),
            (own.five, theirs.five),
            (own.seven, theirs.seven),
            (own.lepage, theirs.lepage),
        ];
        // Powers of u_0 in a different order.
        let same = pairs.iter().all(|(a, b)| (a - b).abs() <= 8.0 * Precision::Double.unit() * b.abs());
        report.holds(&scope(name), "coefficients", same);
    }

    for (number, c) in coefficients().into_iter().chain([LinkCoefficients::asqtad(0.9)]).enumerate() {
        let scope = scope(&format!("coefficients {number}"));
        let made = Improvement::from_paths(&thin, &paths(&c))?;
        let exact = reference::ReferenceLinks::new(gauge, &c);
        let (fat, long) = (made.fat.download()?, made.long.download()?);
        report.links(&scope, "fat links", &fat, &exact.fat, within(path_error(magnitude(&c)), &exact.fat));
        report.links(&scope, "long links", &long, &exact.long, within(path_error(c.naik.abs()), &exact.long));
        let own = [fat_links::fat_links(&thin, &paths(&c))?, fat_links::long_links(&thin, c.naik)?];
        let same = own[0].download()? == fat && own[1].download()? == long;
        report.holds(&scope, "fat and long links by themselves, bits", same);
        scales(&made, &fat, magnitude(&c), (&scope, report));
        let in_su3 = c.naik != 0.0;
        let group = if in_su3 { LinkGroup::Su3 } else { LinkGroup::Neither };
        report.holds(&scope, "group of long links", made.long_group == group);
        report.holds(&scope, "scale of long links", made.long_scale == if in_su3 { c.naik } else { 1.0 });
        from_host(&domain, &exact, group, (&scope, report))?;
        if in_su3 {
            report.holds(&scope, "no singular long links", made.singular_long_links()? == 0);
        }
    }

    projection(&domain, gauge, (&scope("Fat7"), report))?;
    let scope = scope("HISQ");
    let Some(made) = regular(Improvement::hisq(&thin, -0.1), (&scope, report))? else { return Ok(()) };
    let (fat, long) = (made.fat.download()?, made.long.download()?);
    let (v, w) = (reference::fat_links(gauge, &LinkCoefficients::fat7()), unitary_links(gauge));
    let c = LinkCoefficients::hisq(-0.1);
    let exact = reference::ReferenceLinks::new(&w, &c);
    // Errors of V grow with the worst amplification of any.
    let grown = v.links().iter().map(amplification).fold(1.0, f64::max) * path_error(1.0) / path_error(magnitude(&c));
    let tol = |magnitude: f64, links| within((1.0 + grown) * path_error(magnitude), links);
    report.links(&scope, "HISQ, fat links", &fat, &exact.fat, tol(magnitude(&c), &exact.fat));
    report.links(&scope, "HISQ, long links", &long, &exact.long, tol(magnitude(&c), &exact.long));
    scales(&made, &fat, magnitude(&c), (&scope, report));
    report.holds(&scope, "long links are in U(3)", made.long_group == LinkGroup::U3 && made.long_scale == c.naik);
    from_host(&domain, &exact, LinkGroup::U3, (&scope, report))?;
    let Some(without) = regular(Improvement::hisq(&thin, -1.0), (&scope, report))? else { return Ok(()) };
    report.holds(&scope, "no long links where ε = −1", without.long_group == LinkGroup::Neither);
    Ok(())
}

/// No component is larger than the scale of fat links, which is at most 2^¼ times the largest where that is at least a
/// quarter of the bound on all.
fn scales(made: &Improvement, fat: &HostGauge, bound: f64, (scope, report): (&Scope, &mut CheckReport)) {
    let (scale, largest) = (made.fat_scale, largest(fat));
    report.holds(scope, "scale of fat links: none is larger", largest <= scale);
    let promised = (2f64.powf(0.25) * largest).max(0.25 * bound).max(f64::MIN_POSITIVE) * (1.0 + 1e-14);
    report.holds(scope, "scale of fat links: not much larger", scale <= promised);
}

/// Links from the host are those of the host, with scales that make them fit.
fn from_host(
    domain: &Domain,
    links: &reference::ReferenceLinks,
    group: LinkGroup,
    (scope, report): (&Scope, &mut CheckReport),
) -> Result {
    let made = Improvement::from_host(domain, &links.fat, &links.long)?;
    let same = made.fat.download()? == links.fat && made.long.download()? == links.long;
    report.holds(scope, "from the host, bits", same);
    let fits = made.fat_scale == largest(&links.fat).max(f64::MIN_POSITIVE);
    report.holds(scope, "from the host, scale of fat links", fits);
    report.holds(scope, "from the host, group of long links", made.long_group == group);
    let long = largest(&links.long);
    let fit = long <= made.long_scale.abs() * (1.0 + summation(9 * links.long.links().len()));
    report.holds(scope, "from the host, long links fit", fit);
    if group != LinkGroup::Neither {
        let u = links.long.link(0, 0);
        let c = made.long_scale;
        let unit = project(&scale((1.0 / c).into(), u));
        let off = farthest(u.as_flattened(), scale(c.into(), &unit).as_flattened());
        // The scale is a sum over all elements.
        let tol = summation(9 * links.long.links().len());
        report.error(scope, "from the host, scale of long links", off / c.abs(), tol);
        if group == LinkGroup::Su3 {
            // L = c U: the determinant has the sign of c.
            report.error(scope, "from the host, determinant", (determinant(&unit) - 1.0).norm(), 1e-14);
        }
    }
    Ok(())
}
/// Factor by which the rounding of cofactors grows in the inverse: s³ / |det V| for singular values of size s. It is larger than the
/// condition number if two of them are small.
fn amplification(v: &Matrix) -> f64 {
    let size = (v.iter().flatten().map(|z| z.norm_sqr()).sum::<f64>() / 3.0).sqrt();
    size.powi(3) / determinant(v).norm()
}

/// The projection of fat links, and of matrices that are hard to project: tiny and huge, and with condition numbers up
/// to 10⁸.
fn projection(domain: &Domain, gauge: &HostGauge, (scope, report): (&Scope, &mut CheckReport)) -> Result {
    let fat = reference::fat_links(gauge, &LinkCoefficients::fat7());
    let mut hard = generate::random(gauge.lattice(), 36);
    for (k, (u, v)) in hard.links_mut().iter_mut().zip(gauge.links()).enumerate() {
        // U diag(1, 1/s, 1/s²) V times a power of ten and a phase.
        let s = 10f64.powi(k as i32 % 5);
        let factor = Complex64::from_polar(10f64.powi(k as i32 % 41 - 20), k as f64);
        let stretched: Matrix = std::array::from_fn(|a| v[a].map(|z| factor * z / s.powi(a as i32)));
        *u = multiply(u, &stretched);
    }
    for (name, v) in [("fat links", &fat), ("hard matrices", &hard)] {
        let projected = fat_links::project_u3(&GaugeField::upload(domain, v)?);
        let Some(w) = regular(projected, (scope, report))? else { continue };
        let w = w.download()?;
        let (mut unitary, mut hermitian, mut same) = (0f64, 0f64, 0f64);
        for (w, v) in w.links().iter().zip(v.links()) {
            let distance = |a: &Matrix, b: &Matrix| farthest(a.as_flattened(), b.as_flattened());
            unitary = unitary.max(distance(&multiply(&adjoint(w), w), &unit()));
            // V = W H with H Hermitian.
            let h = multiply(&adjoint(w), v);
            hermitian = hermitian.max(distance(&h, &adjoint(&h)) / peak(v) / amplification(v));
            same = same.max(distance(w, &project(v)) / amplification(v));
        }
        report.error(scope, &format!("U(3) of {name}: unitary"), unitary, 1e-14);
        report.error(scope, &format!("U(3) of {name}: V = W H, over the amplification"), hermitian, 1e-14);
        report.error(scope, &format!("U(3) of {name}: as the reference, over the amplification"), same, 1e-14);
    }
    Ok(())
}

/// Matrices without a projection are an error, and not links.
pub fn singular_matrices(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    let lattice = Lattice::new([2, 4, 2, 4])?;
    let domain = Domain::single(backend, lattice)?;
    let scope = Scope { format: "double".into(), detail: lattice.to_string() };
    let gauge = generate::weak_field(lattice, 37, 0.3);
    let is_singular = |result: Result| -> Result<bool> {
        match result {
            Err(DeviceError::SingularLinks { violation }) => Ok(violation.is_nan() || violation > 1e-10),
            Err(error) => Err(error),
            Ok(_) => Ok(false),
        }
    };
    let regular = is_singular(fat_links::project_u3(&GaugeField::upload(&domain, &gauge)?).map(|_| ()))?;
    report.holds(&scope, "regular links have a projection", !regular);
    for (place, name) in [(0, "first"), (4 * lattice.volume() - 1, "last"), (37, "some")] {
        let mut with = |what: &str, change: &dyn Fn(&mut Matrix)| {
            let mut gauge = gauge.clone();
            change(&mut gauge.links_mut()[place]);
            let thin = GaugeField::upload(&domain, &gauge)?;
            let found = is_singular(fat_links::project_u3(&thin).map(|_| ()))?;
            report.holds(&scope, &format!("singular: {what}, {name} link"), found);
            // Neighbours have this link in their staples: a number that is none makes many.
            if gauge.links()[place].iter().flatten().any(|z| !z.is_finite()) {
                let found = is_singular(Improvement::hisq(&thin, 0.0).map(|_| ()))?;
                report.holds(&scope, &format!("singular: {what}, {name} link, HISQ"), found);
            }
            Result::Ok(())
        };
        with("zero", &|u| *u = Matrix::default())?;
        with("rank 1", &|u| (u[1], u[2]) = (u[0], u[0]))?;
        with("rank 2", &|u| u[1] = [Complex64::ZERO; 3])?;
        with("NaN", &|u| u[2][1].im = f64::NAN)?;
        with("infinite", &|u| u[0][2].re = f64::INFINITY)?;
    }
    // Links with a phase in common are in U(3), and so they are with one on a single link; a third root of 1 changes nothing.
    let su3 = generate::random(lattice, 38);
    let turned = |angle: f64, links: std::ops::Range<usize>| {
        let mut long = su3.clone();
        long.links_mut()[links]
            .as_flattened_mut()
            .as_flattened_mut()
            .iter_mut()
            .for_each(|z| *z *= Complex64::cis(angle));
        long
    };
    let third = std::f64::consts::TAU / 3.0;
    for (what, long, group) in [
        ("none", su3.clone(), LinkGroup::Su3),
        ("one in common", turned(0.3, 0..4 * lattice.volume()), LinkGroup::U3),
        ("one on a link", turned(1e-3, 37..38), LinkGroup::U3),
        ("a third of a turn", turned(third, 37..38), LinkGroup::Su3),
    ] {
        let made = Improvement::from_host(&domain, &gauge, &long)?;
        report.holds(&scope, &format!("group of long links with phases: {what}"), made.long_group == group);
    }
    // Links that are nearly a number times SU(3): norm and determinant are, to the square of this.
    let mut long = su3.clone();
    let stretch = |u: &mut Matrix| (0..2).for_each(|a| u[a] = u[a].map(|z| z * [1.001, 0.999][a]));
    stretch(&mut long.links_mut()[37]);
    let made = Improvement::from_host(&domain, &gauge, &long)?;
    report.holds(&scope, "long links not quite in SU(3)", made.long_group == LinkGroup::Neither);
    // Nor does one number fit all of them any more.
    long.links_mut()[5].as_flattened_mut().iter_mut().for_each(|z| *z *= 5.0);
    let made = Improvement::from_host(&domain, &gauge, &long)?;
    report.holds(&scope, "long links of different sizes fit", made.long_scale == largest(&long));

    // Unit links have the first row (1, 0, 0), and so have their long links.
    let thin = GaugeField::upload(&domain, &HostGauge::unit(lattice))?;
    let made = Improvement::from_paths(&thin, &PathCoefficients::asqtad(0.9))?;
    let all = made.singular_long_links()? == 4 * lattice.volume();
    report.holds(&scope, "singular long links of unit links", all);
    // |a_2|² + |a_3|² = sin² of these angles, above and below 10⁻⁶, once the number in all links is divided out.
    let mut long = su3;
    for (place, angle) in [(37, 2e-3f64), (5, 5e-4)] {
        let (s, c) = angle.sin_cos();
        long.links_mut()[place] = [[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]].map(|row| row.map(Complex64::from));
    }
    long.numbers_mut().iter_mut().for_each(|z| *z /= 24.0);
    let made = Improvement::from_host(&domain, &gauge, &long)?;
    report.holds(&scope, "singular long links over their number", made.singular_long_links()? == 1);
    Ok(())
}
