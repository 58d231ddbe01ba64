//! Checks that a field is physical and agrees with its header. All checks are collective: every process gets the same result.
use super::parts::FileParts;
use super::{FilePrecision, Printed, Problem, ReadOptions};
use crate::field::host::{Fermion, HostField, HostGauge, Matrix};
use crate::gauge::GaugePart;
use crate::gauge::measure::{self, Plaquettes, Unitarity};
use crate::lattice::FixedPointSum;
use crate::lattice::Section;
use crate::network::Network;
use num_complex::Complex64;
use rayon::prelude::*;

/// Returns the largest accepted distance of links from SU(3). Files of other programs in single precision deviate by up to 6e-7, due to
/// rounding. Files in double precision were often converted from single precision (an example of QDP++ deviates by 6e-7), so their limit
/// must be larger than that. Corrupt high bits, and links that are fat or long, deviate far more than either limit.
fn unitarity_limit(precision: FilePrecision) -> f64 {
    match precision {
        FilePrecision::Single => 1e-4,
        FilePrecision::Double => 1e-5,
    }
}

/// *Collective.* Checks that all links are finite and, unless `options` allow other links, in SU(3). Returns the link that is farthest from
/// SU(3), with its site in the whole lattice.
pub(crate) fn links(
    gauge: &HostGauge,
    precision: FilePrecision,
    options: &ReadOptions,
    parts: &FileParts,
) -> Result<Unitarity, Problem> {
    const NAMES: [&str; 4] = ["link U_x", "link U_y", "link U_z", "link U_t"];
    let section = parts.mine();
    let finite = |link: &Matrix| link.iter().flatten().all(|c| c.is_finite());
    let bad = gauge.links().par_iter().position_first(|link| !finite(link));
    let bad = bad.map_or(u64::MAX, |bad| (4 * section.global_index(bad / 4) + bad % 4) as u64);
    let worst = measure::unitarity(gauge);
    let index = (4 * section.global_index(worst.site) + worst.mu) as u64;
    let all = parts.collect([bad, worst.violation.to_bits(), index])?;
    let place = |index: u64| (NAMES[(index % 4) as usize], section.global.coordinates((index / 4) as usize));
    if let Some(bad) = first(all.iter().map(|[bad, ..]| *bad)) {
        let (what, site) = place(bad);
        return Err(Problem::NotFinite { what, site });
    }
    // A NaN must count as the largest violation: the total order of floating-point numbers puts a positive NaN above infinity. Among equal
    // violations, the first link is reported.
    let farther =
        |a: &[u64; 3], b: &[u64; 3]| f64::from_bits(a[1]).total_cmp(&f64::from_bits(b[1])).then(b[2].cmp(&a[2]));
    let [_, violation, index] = all.into_iter().max_by(farther).unwrap_or_default();
    let violation = f64::from_bits(violation);
    let limit = unitarity_limit(precision);
    // The comparison is written so that NaN fails: products of finite numbers may overflow.
    let within = violation <= limit;
    if options.allow_non_unitary || within {
        return Ok(Unitarity { violation, site: (index / 4) as usize, mu: (index % 4) as usize });
    }
    let (what, site) = place(index);
    Err(Problem::NotUnitary { what, site, violation, limit })
}

/// *Collective.* Returns whether the links U_t are zero on the last time slice only, which openQCD's files have for open boundary
/// conditions in t.
pub(crate) fn has_open_boundary(gauge: &HostGauge, parts: &FileParts) -> Result<bool, Problem> {
    let section = parts.mine();
    let (last, sites) = (section.global.size()[3] - 1, section.local.size()[..3].iter().product::<usize>());
    let mut counts = [0; 2];
    for (t, slice) in gauge.links().chunks_exact(4 * sites).enumerate() {
        let is_zero = |site: &&[Matrix]| site[3].iter().flatten().all(|z| *z == Complex64::ZERO);
        let zero = slice.par_chunks_exact(4).filter(is_zero).count();
        counts[usize::from(section.origin[3] + t == last)] += (sites - zero) as u64;
    }
    let [elsewhere, at_end] = parts.collect(counts)?.into_iter().fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
    Ok(at_end == 0 && elsewhere > 0)
}

/// *Collective.* Checks that all links could be projected to SU(3); a singular matrix has no unique projection.
pub(crate) fn reunitarised(gauge: &HostGauge, parts: &FileParts) -> Result<(), Problem> {
    match links(gauge, FilePrecision::Double, &ReadOptions::default(), parts) {
        Err(Problem::NotFinite { what, site } | Problem::NotUnitary { what, site, .. }) => {
            Err(Problem::NotReunitarised { what, site })
        }
        checked => checked.map(|_| ()),
    }
}

/// *Collective.* Checks that all numbers of a fermion field are finite.
pub(crate) fn fermion<T: Fermion>(field: &HostField<T>, parts: &FileParts) -> Result<(), Problem> {
    let section = parts.mine();
    let bad = field.numbers().par_iter().position_first(|number: &Complex64| !number.is_finite());
    let bad = bad.map_or(u64::MAX, |bad| section.global_index(bad / T::COMPONENTS) as u64);
    let all = parts.collect([bad])?;
    match first(all.into_iter().flatten()) {
        None => Ok(()),
        Some(bad) => {
            let site = section.global.coordinates(bad as usize);
            Err(Problem::NotFinite { what: T::NAME, site })
        }
    }
}

/// Returns the smallest of the given indices; `u64::MAX` stands for none.
fn first(places: impl Iterator<Item = u64>) -> Option<u64> {
    places.min().filter(|place| *place != u64::MAX)
}

/// *Collective.* Computes the mean plaquettes of a field that is distributed over processes. [`plaquette`](measure::plaquette) computes
/// those of a whole field.
///
/// # Errors
/// Fails on all processes if the sections do not make up the lattice, or if the communication fails.
pub fn plaquette_of_part(gauge: &HostGauge, section: &Section, network: &dyn Network) -> Result<Plaquettes, Problem> {
    let ((), parts) = FileParts::meet(network, section, &[gauge.lattice()], Ok(()))?;
    measured(gauge, &parts).map(|(plaquette, _)| plaquette)
}

/// *Collective.* Computes the mean plaquettes and the mean link trace of the whole field.
pub(crate) fn measured(gauge: &HostGauge, parts: &FileParts) -> Result<(Plaquettes, f64), Problem> {
    let part = GaugePart::exchange(gauge, &parts.sections, parts.network)?;
    let [spatial, temporal] = measure::plaquette_sums(&part);
    let mine = [spatial, temporal, measure::trace_sum(gauge)].map(FixedPointSum::words);
    let all = parts.collect::<9>(std::array::from_fn(|k| mine[k / 3][k % 3]))?;
    let total = |k: usize| {
        let sums = all.iter().map(|words| FixedPointSum::from_words(words.as_chunks().0[k]));
        sums.fold(FixedPointSum::default(), FixedPointSum::combine)
    };
    let volume = parts.mine().global.volume();
    Ok((Plaquettes::of_sums([total(0), total(1)], volume), measure::link_trace_of_sum(total(2), volume)))
}

/// Returns the accepted difference between a value in a header and that of the links. It is large, because programs sum in the precision of
/// the links. The check finds links in another order or normalisation, which change the plaquette by far more; the checksum finds corrupt
/// bits.
pub(crate) fn tolerance(stored: &Printed, precision: FilePrecision) -> f64 {
    // The resolution is 0 if the header stores all bits of the value, as in files of openQCD, which contain no checksum. Only the last bits
    // depend on the order of the sum.
    if stored.resolution == 0.0 {
        return 1e-10;
    }
    let sums = if precision == FilePrecision::Single { 1e-5 } else { 1e-6 };
    sums + stored.resolution.min(1e-2)
}

/// Checks that the value of a header agrees with that of the links.
pub(crate) fn value(
    name: &'static str,
    stored: Printed,
    computed: f64,
    precision: FilePrecision,
) -> Result<(), Problem> {
    if stored.agrees(computed, precision) {
        return Ok(());
    }
    let tolerance = tolerance(&stored, precision);
    Err(Problem::HeaderValue { name, stored: stored.value, computed, tolerance })
}
