//! Closed paths of links, and mean values of their traces.
use crate::backend::REDUCTION_SLOTS;
use crate::domain::{DeviceError, Result};
use crate::field::GaugeField;
use gpu_kernels::gauge_force::{LOOP, LinkPath, Loop, PATH_SUM, PathSum};
use gpu_kernels::{Format, Precision};
use num_complex::Complex64;

/// Shape of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    /// Plaquette of 1×1 links.
    Plaquette,
    /// Rectangle of 2×1 links.
    Rectangle,
    /// Parallelogram of six links along three axes: (μ, ν, ρ, −μ, −ν, −ρ).
    Parallelogram,
}

/// A closed path of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopPath {
    /// Shape of the loop.
    pub kind: LoopKind,
    /// Steps of the loop: the direction μ of each, and whether it goes forward.
    pub steps: Vec<(usize, bool)>,
}

/// Returns the largest distance of a path from its first site along each axis, in sites, forward or backward.
fn reach(steps: &Steps) -> [usize; 4] {
    let (mut place, mut reach) = ([0i32; 4], [0; 4]);
    for &(mu, forward) in steps {
        place[mu] += if forward { 1 } else { -1 };
        reach[mu] = reach[mu].max(place[mu].unsigned_abs() as usize);
    }
    reach
}

/// Returns the 6 plaquettes, 12 rectangles and 16 parallelograms of a site. Each loop is listed once, in one of its two orientations.
pub fn closed_loops() -> Vec<LoopPath> {
    let forward = |mu: usize| (mu, true);
    let backward = |mu: usize| (mu, false);
    let planes = || (0..4).flat_map(|mu| (mu + 1..4).map(move |nu| (mu, nu)));
    let plaquettes = planes().map(|(mu, nu)| LoopPath {
        kind: LoopKind::Plaquette,
        steps: vec![forward(mu), forward(nu), backward(mu), backward(nu)],
    });
    let rectangle = |(long, short): (usize, usize)| LoopPath {
        kind: LoopKind::Rectangle,
        steps: vec![forward(long), forward(long), forward(short), backward(long), backward(long), backward(short)],
    };
    let rectangles = planes().flat_map(|(mu, nu)| [(mu, nu), (nu, mu)]).map(rectangle);
    let triples = (0..4).map(|left_out| (0..4).filter(|mu| *mu != left_out).collect::<Vec<_>>());
    // The first step is always forward, and each of the other two goes forward or backward, so that each loop is listed once.
    let parallelograms = triples.flat_map(|axes| {
        [(true, true), (true, false), (false, true), (false, false)].map(|(second, third)| {
            let [a, b, c] = [(axes[0], true), (axes[1], second), (axes[2], third)];
            let back = |(mu, way): (usize, bool)| (mu, !way);
            LoopPath { kind: LoopKind::Parallelogram, steps: vec![a, b, c, back(a), back(b), back(c)] }
        })
    });
    plaquettes.chain(rectangles).chain(parallelograms).collect()
}

/// Steps of a path: the direction μ of each, and whether it goes forward.
pub type Steps = [(usize, bool)];

/// Largest number of steps of a path.
pub const MOST_STEPS_OF_A_PATH: usize = 16;

/// Returns the argument of kernels for a path from the sites of a parity.
///
/// # Errors
/// [`DeviceError::PathTooLong`] if a path leaves the border of links in a partitioned direction. The border is 4 sites wide, or 2 if a
/// local extent is below 4. Fails also if the links are not in double precision.
///
/// # Panics
/// Panics if the path has more than [`MOST_STEPS_OF_A_PATH`] steps, or a direction other than 0 to 3.
pub(crate) fn link_path(links: &GaugeField, steps: &Steps, parity: usize) -> Result<LinkPath> {
    links.expect_in(Precision::Double)?;
    assert!(steps.len() <= MOST_STEPS_OF_A_PATH, "paths have at most {MOST_STEPS_OF_A_PATH} steps");
    let border = links.border().map(|width| width as usize);
    for (axis, reach) in reach(steps).into_iter().enumerate() {
        if links.domain().grid().is_partitioned(axis) && reach > border[axis] {
            return Err(DeviceError::PathTooLong { axis, reach, border: border[axis] });
        }
    }
    let code = |(mu, forward): (usize, bool)| 2 * mu as u64 + u64::from(!forward);
    let length = steps.len() as u32;
    let steps = steps.iter().rev().fold(0, |codes, step| codes << 4 | code(*step));
    Ok(LinkPath { links: links.both(), lattice: links.bordered(), parity: parity as u32, steps, length })
}

/// *Collective.* Computes the mean of tr L over all sites of the whole lattice for each closed path L; the links must be in double
/// precision.
///
/// # Errors
/// [`DeviceError::PathTooLong`] if a path leaves the border of links in a partitioned direction. The border is 4 sites wide, or 2 if a
/// local extent is below 4. Fails also if the device fails.
///
/// # Panics
/// Panics if a path has more than [`MOST_STEPS_OF_A_PATH`] steps, or a direction other than 0 to 3.
pub fn mean_complex_traces<'a>(
    links: &GaugeField,
    paths: impl IntoIterator<Item = &'a Steps>,
) -> Result<Vec<Complex64>> {
    let (domain, format) = (links.domain(), Format::of(Precision::Double));
    let volume = domain.global().volume() as f64;
    let paths: Vec<&Steps> = paths.into_iter().collect();
    let mut means = Vec::with_capacity(paths.len());
    for together in paths.chunks(REDUCTION_SLOTS / 4) {
        for (number, steps) in together.iter().enumerate() {
            for parity in 0..2 {
                let kernel = Loop { path: link_path(links, steps, parity)? };
                let size = (domain.half_sites(), 1);
                domain.backend().reduce(&LOOP, format, &kernel, size, 4 * number + 2 * parity)?;
            }
        }
        let mut sums = vec![0.0; 4 * together.len()];
        domain.sums(&mut sums)?;
        means.extend(sums.chunks_exact(4).map(|s| Complex64::new(s[0] + s[2], s[1] + s[3]) / volume));
    }
    Ok(means)
}

/// *Collective.* Computes the mean of Re tr L over all sites of the whole lattice for each path; the links must be in double precision.
///
/// # Errors
/// The errors of [`mean_complex_traces`].
pub fn mean_traces(links: &GaugeField, paths: &[LoopPath]) -> Result<Vec<f64>> {
    let means = mean_complex_traces(links, paths.iter().map(|path| path.steps.as_slice()))?;
    Ok(means.into_iter().map(|mean| mean.re).collect())
}

/// Paths from each site x for one direction μ, with their factors: one list for each direction.
pub type PathsOfLinks<'a> = [&'a [(f64, Vec<(usize, bool)>)]; 4];

/// *Collective.* Returns G_μ(x) = Σ c L, sums of paths from x; the links must be in double precision.
///
/// # Errors
/// The errors of [`mean_complex_traces`].
pub fn sums_of_paths(links: &GaugeField, paths: PathsOfLinks<'_>) -> Result<GaugeField> {
    let (domain, out) = (links.domain(), links.empty_like()?);
    for (mu, paths) in paths.into_iter().enumerate() {
        for (factor, steps) in paths {
            for parity in 0..2 {
                let path = link_path(links, steps, parity)?;
                let kernel = PathSum { path, out: out.links(parity), factor: *factor, mu: mu as u32 };
                let format = Format::of(Precision::Double);
                domain.backend().launch(&PATH_SUM, format, &kernel, domain.half_sites(), 1)?;
            }
        }
    }
    out.fill_border()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_of_a_site() {
        let loops = closed_loops();
        let count = |kind| loops.iter().filter(|path| path.kind == kind).count();
        assert_eq!(
            (count(LoopKind::Plaquette), count(LoopKind::Rectangle), count(LoopKind::Parallelogram)),
            (6, 12, 16)
        );
        for path in &loops {
            // They close, and are all different.
            for mu in 0..4 {
                let along = |forward| path.steps.iter().filter(|step| **step == (mu, forward)).count();
                assert_eq!(along(true), along(false), "{path:?}");
            }
            assert_eq!(loops.iter().filter(|other| *other == path).count(), 1);
        }
    }
}
