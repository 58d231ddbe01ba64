//! Staggered hopping terms and the operators made of them, naive and improved.
use super::fat_links::regular;
use super::wilson_like::THETA;
use super::{Case, Kind, upload};
use crate::accuracy::Accuracy;
use crate::formats::{self, LinkFormat};
use crate::links;
use crate::reference::{combine, dot, norm2, on_parity, transform_links, turned};
use crate::report::{CheckReport, Scope, Tolerance, larger, relative_error};
use crate::staggered_reference as reference;
use crate::staggered_reference::{Boundary, EtaPhases, shift, transform_colour};
use ferrite::backend::Backend;
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{ColourVector, HostColour, HostGauge};
use ferrite::field::{DeviceGauge, FieldShape, FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::fat_links::{Improvement, PathCoefficients};
use ferrite::operators::{
    EvenOdd, EvenOddStaggered, Staggered, StaggeredLinks, StaggeredParams, StaggeredPhases, TimeBoundary,
};
use ferrite::{FermionKind, LinkStorage, Precision};
use num_complex::Complex64;
use rayon::prelude::*;
use solvers::LinearOperator;
use std::sync::Arc;

/// Tadpole factor of asqtad.
const U0: f64 = 0.9;
/// σ
const SHIFT: f64 = 0.375;

/// Phases and boundary conditions, as the operators and as the reference call them.
const CONVENTIONS: [(StaggeredPhases, EtaPhases, TimeBoundary, f64); 4] = [
    (StaggeredPhases::Milc, EtaPhases::Milc, TimeBoundary::Periodic, 1.0),
    (StaggeredPhases::Milc, EtaPhases::Milc, TimeBoundary::Antiperiodic, -1.0),
    (StaggeredPhases::Lexicographic, EtaPhases::Standard, TimeBoundary::Periodic, 1.0),
    (StaggeredPhases::Lexicographic, EtaPhases::Standard, TimeBoundary::Antiperiodic, -1.0),
];

/// Small and odd-shaped lattices. Where an extent is 2, three steps are one back, and in t cross the boundary once or
/// twice; where it is 4 they are one back too.
pub fn staggered_cases() -> Vec<Case> {
    let mut cases = super::small_cases();
    let lattice = Lattice::new([6, 4, 8, 2]).expect("even extents");
    cases.push(Case::new(generate::random(lattice, 7), 220));
    cases
}

/// Every check of the naive and of the asqtad operator in every precision and reconstruction.
pub fn staggered_kernels(backend: &dyn Backend, case: &Case, report: &mut CheckReport) -> Result {
    let domain = case.domain(backend)?;
    let thin = GaugeField::upload(&domain, &case.gauge)?;
    let asqtad = Improvement::from_paths(&GaugeField::upload(&domain, &case.gauge)?, &PathCoefficients::asqtad(U0))?;
    let links = reference::ReferenceLinks::asqtad(&case.gauge, U0);
    let built = asqtad_error(U0);
    // As for Wilson, reconstruct 8 is not for links whose first row is (a, 0, 0).
    let singular = [thin.singular_links()?, asqtad.singular_long_links()?];
    let scope = case.scope("recon-8", "");
    let expected = [singular_links(&case.gauge, 1.0), singular_links(&links.long, asqtad.long_scale)];
    report.holds(&scope, "number of singular links, thin and long", singular == expected);

    let kept = |storage: LinkStorage| singular == [0, 0] || !storage.has_singular_links();
    for precision in formats::fields(FermionKind::Staggered) {
        let fields = Fields::new(&domain, precision, case)?;
        let naive = reference::StaggeredDirac::naive(&case.gauge, case.mass, EtaPhases::Milc, Boundary::Sign(1.0));
        let naive = fields.exact("naive", naive);
        let improved = fields.exact("asqtad", links.operator(case.mass, EtaPhases::Milc, Boundary::Sign(1.0)));
        let here = |(other, storage): &LinkFormat| *other == precision && kept(*storage);
        for format @ (_, storage) in formats::naive().into_iter().filter(here) {
            let packed = StaggeredLinks::naive(Arc::new(thin.pack(precision, storage)?));
            operators(&fields, &naive, (packed, storage), &Budget::naive(&case.gauge, format), report)?;
        }
        // Long links of asqtad are in SU(3).
        let here = |format: &LinkFormat| here(format) && !format.1.keeps_phase();
        for format @ (_, storage) in formats::improved().into_iter().filter(here) {
            let budget = Budget::improved(&links, &asqtad, format, built);
            operators(&fields, &improved, (asqtad.pack(precision, storage)?, storage), &budget, report)?;
        }
    }
    Ok(())
}

/// The naive, the asqtad and the HISQ operator with twisted boundary conditions, in every format for links in U(3), against those of
/// thin links with phases: fat links then have the phase of one hop, long ones that of three.
pub fn staggered_phases_of_hops(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    let case = &Case::new(generate::weak_field(Lattice::new([2, 4, 6, 8]).expect("even extents"), 80, 0.3), 81);
    let domain = case.domain(backend)?;
    let (thin, phases) = (GaugeField::upload(&domain, &case.gauge)?, THETA.of_hops(case.lattice()));
    let turned = turned(&case.gauge, THETA.0);
    let asqtad = Improvement::from_paths(&thin, &PathCoefficients::asqtad(U0))?;
    let hisq = Improvement::hisq(&thin, -0.1)?;
    let links = [reference::ReferenceLinks::asqtad(&turned, U0), reference::ReferenceLinks::hisq(&turned, -0.1)];
    for precision in formats::fields(FermionKind::Staggered) {
        let fields = Fields::new(&domain, precision, case)?;
        let sign = Boundary::Sign(1.0);
        let exact = reference::StaggeredDirac::naive(&turned, case.mass, EtaPhases::Milc, sign);
        let exact = fields.exact("naive, twisted boundary", exact);
        let here = |(other, storage): &LinkFormat| *other == precision && *storage == storage.with_all_reals();
        for format @ (_, storage) in formats::naive().into_iter().filter(here) {
            let packed = StaggeredLinks::naive(Arc::new(thin.pack_with(phases, precision, storage)?));
            operators(&fields, &exact, (packed, storage), &Budget::naive(&turned, format), report)?;
        }
        let here = |(other, storage): &LinkFormat| *other == precision && *storage == storage.with_phase();
        let both = [("asqtad, twisted boundary", &asqtad), ("HISQ, twisted boundary", &hisq)];
        for ((name, made), links) in both.into_iter().zip(&links) {
            let exact = fields.exact(name, links.operator(case.mass, EtaPhases::Milc, sign));
            // Components may be larger by as much as a phase mixes real and imaginary parts.
            let scales = [std::f64::consts::SQRT_2 * made.fat_scale, made.long_scale];
            for format @ (_, storage) in formats::improved().into_iter().filter(here) {
                // HISQ's links are also made by a projection, whose errors are those of rounding.
                let built = [4.0 * asqtad_error(U0), 1e-14];
                let budget = Budget::of_both([&links.fat, &links.long], scales, format, built);
                let packed = made.pack_with(phases, precision, storage)?;
                operators(&fields, &exact, (packed, storage), &budget, report)?;
            }
        }
    }
    Ok(())
}

/// Links over `scale` whose first row is (a, 0, 0), or nearly.
fn singular_links(gauge: &HostGauge, scale: f64) -> usize {
    let second = |u: &[[Complex64; 3]; 3]| (u[0][1].norm_sqr() + u[0][2].norm_sqr()) / (scale * scale);
    gauge.links().iter().filter(|u| second(u) < 1e-6).count()
}

/// The HISQ operator from links on the host, whose long links are in U(3), the same with determinants that are hard to
/// keep, and fat links without long ones, which have 18 reals.
pub fn improved_kernels(backend: &dyn Backend, case: &Case, report: &mut CheckReport) -> Result {
    let domain = case.domain(backend)?;
    let hisq = reference::ReferenceLinks::hisq(&case.gauge, -0.1);
    let naik = reference::LinkCoefficients::hisq(-0.1).naik;
    // Fat links so small that the long ones decide.
    let small = hisq.fat.links().iter().map(|u| u.map(|row| row.map(|z| z / 16.0))).collect();
    let fat = HostGauge::from_links(case.lattice(), small);
    let cut = reference::ReferenceLinks { fat, long: with_determinants_near_the_cut(&hisq.long, naik, CUT_SCALE) };
    // The number that is in them: one from their norms has rounding errors, which would be those of reconstructed rows.
    let from_host = |links: &reference::ReferenceLinks, long_scale: f64| -> Result<Improvement> {
        Ok(Improvement { long_scale, ..Improvement::from_host(&domain, &links.fat, &links.long)? })
    };
    let in_u3 = [("HISQ", &hisq, from_host(&hisq, naik)?), ("determinants near −1", &cut, from_host(&cut, CUT_SCALE)?)];
    let c = PathCoefficients { naik: 0.0, ..PathCoefficients::asqtad(U0) };
    let from_paths = Improvement::from_paths(&GaugeField::upload(&domain, &case.gauge)?, &c)?;
    let coefficients = reference::LinkCoefficients { naik: 0.0, ..reference::LinkCoefficients::asqtad(U0) };
    let fat = reference::ReferenceLinks::new(&case.gauge, &coefficients);
    for precision in formats::fields(FermionKind::Staggered) {
        let fields = Fields::new(&domain, precision, case)?;
        let exact = |name, links: &reference::ReferenceLinks| {
            fields.exact(name, links.operator(case.mass, EtaPhases::Milc, Boundary::Sign(1.0)))
        };
        for (name, links, made) in &in_u3 {
            let exact = exact(name, links);
            let singular = made.singular_long_links()?;
            let same = singular == singular_links(&links.long, made.long_scale);
            report.holds(&case.scope("recon-9", name), "number of singular long links", same);
            let kept = |storage: LinkStorage| {
                storage == storage.with_phase() && (singular == 0 || !storage.has_singular_links())
            };
            let here = |(other, storage): &LinkFormat| *other == precision && kept(*storage);
            for format @ (_, storage) in formats::improved().into_iter().filter(here) {
                let budget = Budget::improved(links, made, format, 0.0);
                operators(&fields, &exact, (made.pack(precision, storage)?, storage), &budget, report)?;
            }
        }
        let (exact, storage) = (exact("fat links", &fat), LinkStorage::FULL);
        let budget = Budget::improved(&fat, &from_paths, (precision, storage), asqtad_error(U0));
        operators(&fields, &exact, (from_paths.pack(precision, storage)?, storage), &budget, report)?;
    }
    Ok(())
}

/// Scale of the links whose determinants are near −1.
const CUT_SCALE: f64 = 1.5;

/// Divides each link by `scale`, gives it a phase that makes its determinant hard to keep, and multiplies it by `new_scale`. Determinants
/// are where the angle jumps from π to −π, where formulae of half an angle change over, and in between.
fn with_determinants_near_the_cut(gauge: &HostGauge, scale: f64, new_scale: f64) -> HostGauge {
    use std::f64::consts::{FRAC_PI_2, PI};
    let angles = [PI, -PI + 1e-15, PI - 1e-9, -PI + 1e-4, FRAC_PI_2, -FRAC_PI_2, 0.0, 1e-12, 3.0, -3.1, -2.0];
    let turned = |(k, u): (usize, &[[Complex64; 3]; 3])| {
        let u = u.map(|row| row.map(|z| z / scale));
        let det: Complex64 = links::cross(u[0], u[1]).iter().zip(u[2]).map(|(n, z)| n.conj() * z).sum();
        let turn = new_scale * Complex64::cis((angles[k % angles.len()] - det.arg()) / 3.0);
        u.map(|row| row.map(|z| turn * z))
    };
    HostGauge::from_links(gauge.lattice(), gauge.links().iter().enumerate().map(turned).collect())
}

/// Error of making an asqtad link in double, here and in the reference, as ‖δF‖ / √3: every path is a product of up to seven links, where
/// each multiplication rounds by less than two units in the mean. Errors of both add up as a random walk, but those of different paths
/// perhaps do not.
pub(super) fn asqtad_error(u0: f64) -> f64 {
    let c = reference::LinkCoefficients::asqtad(u0);
    let paths = c.one_link + 6.0 * c.three + 24.0 * c.five + 48.0 * c.seven - 6.0 * c.lepage;
    2.0 * (12f64).sqrt() * Precision::Double.unit() * paths
}

/// Links of one kind in a format, as tolerances need them.
pub(super) struct Kept {
    /// Number of sites that a hop goes.
    steps: i64,
    /// ‖δU‖ / √3 in the mean over the links (rms), and the largest |δU_ij|: what storage does.
    rms: f64,
    worst: f64,
    /// ‖U‖ / √3 in the mean, and the largest |U_ij|.
    size: f64,
    largest: f64,
}

impl Kept {
    /// Errors of links that are kept divided by `scale`.
    pub(super) fn new(gauge: &HostGauge, format: LinkFormat, scale: f64, steps: i64, built: f64) -> Self {
        let stored = gauge.links().iter().map(|u| u.map(|row| row.map(|z| z / scale))).collect();
        let [rms, worst] = links::errors(&HostGauge::from_links(gauge.lattice(), stored), format);
        let (precision, storage) = format;
        // As for Wilson: reconstruction is exact where storage is much coarser than arithmetic.
        let factor = scale.abs() * if precision.is_coarse() { 1.5 } else { 1.5 + links::arithmetic(storage) };
        let elements = gauge.numbers();
        let square = elements.iter().map(|z| z.norm_sqr()).sum::<f64>() / (3 * gauge.links().len()) as f64;
        let largest = elements.iter().map(|z| z.norm()).fold(0.0, f64::max);
        Kept { steps, rms: factor * rms + built, worst: factor * worst + 5.0 * built, size: square.sqrt(), largest }
    }
}

/// Errors of fields.
pub(super) struct Off {
    /// ‖δ‖ of each right-hand side.
    pub(super) norms: Vec<f64>,
    /// The largest |δ| of a real component at every site of each right-hand side.
    pub(super) sites: Vec<Vec<f64>>,
}

/// Errors from storing links and from computing with them in a precision.
pub(super) struct Budget {
    pub(super) kinds: Vec<Kept>,
    pub(super) precision: Precision,
}

fn peaks(v: &HostColour) -> Vec<f64> {
    v.sites().iter().map(|c| c.iter().fold(0.0, |l: f64, z| l.max(z.re.abs()).max(z.im.abs()))).collect()
}

impl Budget {
    fn naive(gauge: &HostGauge, format: LinkFormat) -> Self {
        Budget { kinds: vec![Kept::new(gauge, format, 1.0, 1, 0.0)], precision: format.0 }
    }
    fn improved(links: &reference::ReferenceLinks, made: &Improvement, format: LinkFormat, built: f64) -> Self {
        Self::of_both([&links.fat, &links.long], [made.fat_scale, made.long_scale], format, [built, 0.0])
    }
    /// Fat links are kept over the largest component where the format cannot hold it: errors are the same for all
    /// components in that unit, however small they are.
    pub(super) fn of_both(
        [fat, long]: [&HostGauge; 2],
        [fat_scale, long_scale]: [f64; 2],
        format: LinkFormat,
        built: [f64; 2],
    ) -> Self {
        let (precision, storage) = format;
        let fixed_point = precision == Precision::Half || storage.half;
        let fat_scale = if fixed_point { fat_scale } else { 1.0 };
        let fat = Kept::new(fat, (precision, storage.with_all_reals()), fat_scale, 1, built[0]);
        Budget { kinds: vec![fat, Kept::new(long, format, long_scale, 3, built[1])], precision }
    }
    /// Error of b D v, before it is stored, for v with errors of its own.
    ///
    /// *Norm*: eight hops of each kind, independent of each other: √8 ‖δU‖ ‖v‖ from links, and √8 ‖U‖ ‖δv‖, half as
    /// much again for small lattices; and the roundings of products and sums, each at most a unit, as a random walk.
    ///
    /// *Sites*: every component is a sum of three products of complex numbers for each hop, |δU_ij v_j| ≤ √2 |δU_ij|
    /// times the peak of v there; and a rounding for each of six real products.
    pub(super) fn hop(&self, b: f64, v: &[HostColour], before: Option<&Off>) -> Off {
        let lattice = v[0].lattice();
        let root_of_sum =
            |f: &dyn Fn(&Kept) -> f64| (8.0 * self.kinds.iter().map(|k| f(k).powi(2)).sum::<f64>()).sqrt();
        let unit = self.precision.unit();
        let (error, size) = (root_of_sum(&|k| k.rms + 5.0 * unit * k.size), root_of_sum(&|k| k.size));
        let old = |j: usize| before.map_or(0.0, |off| off.norms[j]);
        let norms = v.iter().enumerate().map(|(j, v)| b * (error * norm2(v).sqrt() + 1.5 * size * old(j))).collect();
        let three = 3.0 * std::f64::consts::SQRT_2;
        let site_by_site = |(j, v): (usize, &HostColour)| {
            let peaks = peaks(v);
            let bound = |x: usize| {
                let x = lattice.coordinates(x);
                let mut sum = 0.0;
                for k in &self.kinds {
                    for (mu, steps) in (0..4).flat_map(|mu| [(mu, k.steps), (mu, -k.steps)]) {
                        let from = shift(lattice, x, mu, steps);
                        sum += (three * k.worst + 6.0 * unit * k.largest) * peaks[from];
                        sum += before.map_or(0.0, |off| three * k.largest * off.sites[j][from]);
                    }
                }
                b * sum
            };
            (0..lattice.volume()).into_par_iter().map(bound).collect()
        };
        Off { norms, sites: v.iter().enumerate().map(site_by_site).collect() }
    }
    /// Adds the error of storing the field, times b.
    pub(super) fn stored(&self, mut off: Off, b: f64, v: &[HostColour]) -> Off {
        let tol = self.precision.sum_of(1);
        for (j, v) in v.iter().enumerate() {
            off.norms[j] += b * tol.relative * norm2(v).sqrt();
            off.sites[j].iter_mut().zip(peaks(v)).for_each(|(off, peak)| *off += b * tol.worst * peak);
        }
        off
    }
    /// Returns the tolerance relative to the result, with the error of storing it.
    pub(super) fn tolerance(&self, off: &Off, out: &[HostColour]) -> Tolerance {
        let mut tol = Tolerance { relative: 0.0, worst: 0.0 };
        for (j, out) in out.iter().enumerate() {
            tol.relative = larger(tol.relative, off.norms[j] / norm2(out).sqrt());
            for (off, peak) in off.sites[j].iter().zip(peaks(out)).filter(|(_, peak)| *peak > 0.0) {
                tol.worst = larger(tol.worst, off / peak);
            }
        }
        let sum = self.precision.sum_of(1);
        Tolerance { relative: tol.relative + sum.relative, worst: tol.worst + sum.worst }
    }
}

/// Three right-hand sides ψ and x on a device, one by itself, and what they are there: the reference starts from the
/// input as it is stored, so that errors are those of links and kernels.
struct Fields<'a> {
    case: &'a Case,
    domain: Domain,
    precision: Precision,
    psi: FullField,
    x: FullField,
    single: FullField,
    stored: Vec<HostColour>,
    stored_x: Vec<HostColour>,
}

/// An operator's D ψ, D D ψ and D x for all conventions: everything else follows, as hops lead to the other parity.
struct Exact {
    name: &'static str,
    images: Vec<[Vec<HostColour>; 3]>,
}

impl<'a> Fields<'a> {
    fn new(domain: &Domain, precision: Precision, case: &'a Case) -> Result<Self> {
        let (psi, stored) = upload(domain, precision, ColourVector::block(case, 0))?;
        let (x, stored_x) = upload(domain, precision, ColourVector::block(case, 1))?;
        let (single, _) = upload(domain, precision, &ColourVector::block(case, 0)[..1])?;
        Ok(Fields { case, domain: domain.clone(), precision, psi, x, single, stored, stored_x })
    }
    fn zero(&self, nrhs: usize) -> Result<FullField> {
        FullField::zero(&self.domain, FieldShape::colours(self.precision, nrhs))
    }
    fn exact(&self, name: &'static str, operator: reference::StaggeredDirac) -> Exact {
        let images = |(_, phases, _, sign): (StaggeredPhases, EtaPhases, TimeBoundary, f64)| {
            let operator = reference::StaggeredDirac { phases, boundary: Boundary::Sign(sign), ..operator };
            let d = |v: &[HostColour]| v.iter().map(|v| operator.derivative(v)).collect::<Vec<_>>();
            let hops = d(&self.stored);
            [d(&hops), d(&self.stored_x), hops]
        };
        Exact { name, images: CONVENTIONS.map(images).into() }
    }
}

/// Σ_k c_k v_k for each right-hand side, on one parity or on both.
fn sum(parity: Option<usize>, terms: &[(f64, &[HostColour])]) -> Vec<HostColour> {
    let one = |j: usize| combine(&terms.iter().map(|(c, v)| (Complex64::from(*c), &v[j])).collect::<Vec<_>>());
    let all = (0..terms[0].1.len()).map(one);
    all.map(|v| if let Some(parity) = parity { on_parity(parity, &v) } else { v }).collect()
}
/// v on one parity, zero on the other.
fn on(parity: usize, v: &[HostColour]) -> Vec<HostColour> {
    v.iter().map(|v| on_parity(parity, v)).collect()
}

/// D, a x + b D, M and M†, M†M + σ on both parities, with sums, what solves begin and end with, and the rows of M, for
/// all conventions, on three right-hand sides and on one.
fn operators(
    fields: &Fields,
    exact: &Exact,
    (links, storage): (StaggeredLinks, LinkStorage),
    budget: &Budget,
    report: &mut CheckReport,
) -> Result {
    let Fields { case, precision, psi, x, single, stored, stored_x, .. } = fields;
    let (links, mass, name, nrhs) = (Arc::new(links), case.mass, exact.name, stored.len());
    let (mut out, mut single_out) = (fields.zero(nrhs)?, fields.zero(1)?);
    // Of the hops, which depends on ψ but not on signs.
    let hop = budget.hop(1.0, stored, None);
    let part = |b: f64, off: &Off| Off {
        norms: off.norms.iter().map(|n| b * n).collect(),
        sites: off.sites.iter().map(|sites| sites.iter().map(|s| b * s).collect()).collect(),
    };
    for ((phases, _, boundary, _), [twice, hops_of_x, hops]) in CONVENTIONS.into_iter().zip(&exact.images) {
        let scope = &case.scope(&formats::name((*precision, storage)), &format!("{phases:?} {boundary:?}"));
        let operation = |what: &str| format!("{name} {what}");
        let staggered = Staggered::new(links.clone(), StaggeredParams { mass, boundary, phases });

        for parity in 0..2 {
            staggered.dslash(parity, psi.parity(1 - parity), out.parity_mut(parity))?;
            staggered.dslash(parity, single.parity(1 - parity), single_out.parity_mut(parity))?;
        }
        let result = out.download()?;
        let same = single_out.download()?[0] == result[0];
        report.holds(scope, &operation("D, one right-hand side, bits"), same);
        report.fields(scope, &operation("D"), result, hops, budget.tolerance(&hop, hops));

        // Dyadic numbers, which are exact in every precision.
        let (a, b) = (1.75, -0.625);
        for parity in 0..2 {
            let (x, psi) = (x.parity(parity), psi.parity(1 - parity));
            staggered.dslash_add(parity, (a, x), (b, psi), out.parity_mut(parity))?;
        }
        let expected = sum(None, &[(a, stored_x), (b, hops)]);
        let tol = budget.tolerance(&part(b.abs(), &hop), &expected);
        report.fields(scope, &operation("a x + b D"), out.download()?, &expected, tol);

        let even_odd = EvenOddStaggered::new(staggered.clone(), nrhs)?;
        for (dagger, half, what) in [(false, 0.5, "M"), (true, -0.5, "M†")] {
            let expected = sum(None, &[(mass, stored), (half, hops)]);
            staggered.full(dagger, psi, &mut out)?;
            let off = part(0.5, &hop);
            let tol = budget.tolerance(&off, &expected);
            report.fields(scope, &operation(what), out.download()?, &expected, tol);
            // The hopping term is stored on the way.
            for parity in 0..2 {
                even_odd.apply_parity(parity, dagger, psi, out.parity_mut(parity))?;
            }
            let tol = budget.tolerance(&budget.stored(off, 0.5, hops), &expected);
            report.fields(scope, &operation(&format!("{what}, rows")), out.download()?, &expected, tol);
        }

        for (parity, shift, what) in [(0, 0.0, "M†M, even"), (0, SHIFT, "M†M + σ, even"), (1, SHIFT, "M†M + σ, odd")]
        {
            let what = operation(what);
            let operator = EvenOddStaggered::shifted(staggered.clone(), parity, shift, nrhs)?;
            let alone = EvenOddStaggered::shifted(staggered.clone(), parity, shift, 1)?;
            let (mut image, mut of_one) = (fields.zero(nrhs)?, fields.zero(1)?);
            operator.apply(psi.parity(parity), image.parity_mut(parity))?;
            alone.apply(single.parity(parity), of_one.parity_mut(parity))?;
            let result = image.download()?;
            report.holds(scope, &format!("{what}, one right-hand side, bits"), of_one.download()?[0] == result[0]);
            operator.apply_dagger(psi.parity(parity), image.parity_mut(parity))?;
            report.holds(scope, &format!("{what}, dagger, bits"), image.download()? == result);
            let expected = sum(Some(parity), &[(mass * mass + shift, stored), (-0.25, twice)]);
            let between = on(1 - parity, hops);
            let first = budget.stored(budget.hop(1.0, &on(parity, stored), None), 1.0, &between);
            let tol = budget.tolerance(&budget.hop(0.25, &between, Some(&first)), &expected);
            let compared = (&result[..], &expected[..], tol);
            super::apply_dot((&operator, parity), (psi, stored), (x, stored_x), compared, (scope, &what), report)?;
            super::cg_step((&operator, parity), (psi, stored), (x, stored_x), (&result, tol), (scope, &what), report)?;
            report.fields(scope, &what, result, &expected, tol);
        }

        // From the full system to the even sites and back; both halves of the source differ from those of ψ.
        let mut even = fields.zero(nrhs)?;
        even_odd.prepare(x, &mut even.even)?;
        let expected = sum(Some(0), &[(mass, stored_x), (-0.5, hops_of_x)]);
        let tol = budget.tolerance(&budget.hop(0.5, &on(1, stored_x), None), &expected);
        report.fields(scope, &operation("prepare"), even.download()?, &expected, tol);

        let mut solution = fields.zero(nrhs)?;
        solution.upload(ColourVector::block(case, 0))?;
        even_odd.reconstruct(x, &mut solution)?;
        let odd = sum(Some(1), &[(1.0 / mass, stored_x), (-0.5 / mass, hops)]);
        let expected = sum(None, &[(1.0, &on(0, stored)), (1.0, &odd)]);
        let tol = budget.tolerance(&budget.hop(0.5 / mass, &on(0, stored), None), &odd);
        report.fields(scope, &operation("reconstruct"), solution.download()?, &expected, tol);
    }
    Ok(())
}

/// Checks properties that hold whatever the links are, for the naive, the asqtad and the HISQ operator in double, with links that are made
/// on the device from rough ones.
pub fn staggered_properties(backend: &dyn Backend, lattice: Lattice, seed: u64, report: &mut CheckReport) -> Result {
    let domain = Domain::single(backend, lattice)?;
    let gauge = generate::weak_field(lattice, seed, 0.3);
    let g: Vec<_> = generate::random(lattice, seed + 1).links().iter().copied().step_by(4).collect();
    let both = [gauge.clone(), transform_links(&gauge, &g)];
    let all = Properties { domain: &domain, g: &g, seed };

    let full = (Precision::Double, LinkStorage::FULL);
    let naive = |gauge: &HostGauge| -> Result<StaggeredLinks> {
        Ok(StaggeredLinks::naive(Arc::new(DeviceGauge::upload(&domain, gauge, full.0, full.1)?)))
    };
    all.check("naive", naive(&both[0])?, naive(&both[1])?, report)?;
    let thin = |k: usize| GaugeField::upload(&domain, &both[k]);
    let asqtad = |k: usize| Improvement::from_paths(&thin(k)?, &PathCoefficients::asqtad(U0))?.pack(full.0, full.1);
    all.check("asqtad", asqtad(0)?, asqtad(1)?, report)?;
    let scope = Scope { format: "double".into(), detail: lattice.to_string() };
    let mut hisq = |k: usize| regular(Improvement::hisq(&thin(k)?, -0.1), (&scope, report));
    let (Some(here), Some(there)) = (hisq(0)?, hisq(1)?) else { return Ok(()) };
    all.check("HISQ", here.pack(full.0, full.1)?, there.pack(full.0, full.1)?, report)
}

struct Properties<'a> {
    domain: &'a Domain,
    g: &'a [[[Complex64; 3]; 3]],
    seed: u64,
}

impl Properties<'_> {
    fn upload(&self, v: &HostColour) -> Result<FullField> {
        Ok(upload(self.domain, Precision::Double, std::slice::from_ref(v))?.0)
    }
    fn zero(&self) -> Result<FullField> {
        FullField::zero(self.domain, FieldShape::colours(Precision::Double, 1))
    }
    /// M v, or M† v.
    fn m(&self, operator: &Staggered, dagger: bool, v: &HostColour) -> Result<HostColour> {
        let mut out = self.zero()?;
        operator.full(dagger, &self.upload(v)?, &mut out)?;
        Ok(out.download()?.remove(0))
    }
    /// D v
    fn d(&self, operator: &Staggered, v: &HostColour) -> Result<HostColour> {
        let (input, mut out) = (self.upload(v)?, self.zero()?);
        for parity in 0..2 {
            operator.dslash(parity, input.parity(1 - parity), out.parity_mut(parity))?;
        }
        Ok(out.download()?.remove(0))
    }
    fn check(&self, name: &str, links: StaggeredLinks, rotated: StaggeredLinks, report: &mut CheckReport) -> Result {
        let lattice = self.domain.local();
        let (links, rotated) = (Arc::new(links), Arc::new(rotated));
        let (u, v): (HostColour, _) =
            (generate::random_source(lattice, self.seed + 2), generate::random_source(lattice, self.seed + 3));
        let epsilon = |v: &HostColour| combine(&[(1.0.into(), &on_parity(0, v)), ((-1.0).into(), &on_parity(1, v))]);
        for (phases, _, boundary, _) in CONVENTIONS {
            let params = StaggeredParams { mass: 0.1, boundary, phases };
            let scope =
                Scope { format: "double recon-18".into(), detail: format!("{lattice} {phases:?} {boundary:?}") };
            let [operator, there] = [&links, &rotated].map(|links| Staggered::new(links.clone(), params));
            let mut error = |what: &str, error: f64, tol: f64| {
                report.error(&scope, &format!("{name}: {what}"), error, tol);
            };
            let dv = self.d(&operator, &v)?;

            // g (D v) = D' (g v), with other links in every path.
            let (here, there) = (transform_colour(&dv, self.g), self.d(&there, &transform_colour(&v, self.g))?);
            error("gauge covariance", relative_error(&[there], &[here]), 1e-13);

            // (u, D v) = −(D u, v): two sums with different roundings.
            let (a, b) = (dot(&u, &dv), dot(&self.d(&operator, &u)?, &v));
            error("D† = −D", (a + b).norm() / (norm2(&u) * norm2(&dv)).sqrt(), 1e-14);

            // ε M ε = M†, where nothing but signs changes.
            let (image, dagger) = (self.m(&operator, false, &epsilon(&v))?, self.m(&operator, true, &v)?);
            error("ε M ε = M†, bits", f64::from(u8::from(epsilon(&image) != dagger)), 0.0);

            // M†M stays on a parity, and is there what solves apply.
            for parity in 0..2 {
                let half = on_parity(parity, &v);
                let image = self.m(&operator, true, &self.m(&operator, false, &half)?)?;
                let size = norm2(&image);
                error("M†M decouples parities", (norm2(&on_parity(1 - parity, &image)) / size).sqrt(), 1e-14);
                let mut alone = self.zero()?;
                let even_odd = EvenOddStaggered::shifted(operator.clone(), parity, 0.0, 1)?;
                even_odd.apply(self.upload(&half)?.parity(parity), alone.parity_mut(parity))?;
                error("M†M on one parity", relative_error(&alone.download()?, &[image]), 1e-14);
            }
        }
        Ok(())
    }
}
