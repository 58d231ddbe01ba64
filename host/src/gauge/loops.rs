//! Closed paths of links, and mean values of their traces.
use crate::domain::{DeviceError, Result};
use crate::field::GaugeField;
use gpu_kernels::gauge_force::{LOOP, Loop};
use gpu_kernels::{Format, Precision};

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

impl LoopPath {
    /// Returns the largest distance of the loop from its first site along each axis, in sites, forward or backward.
    fn reach(&self) -> [usize; 4] {
        let (mut place, mut reach) = ([0i32; 4], [0; 4]);
        for &(mu, forward) in &self.steps {
            place[mu] += if forward { 1 } else { -1 };
            reach[mu] = reach[mu].max(place[mu].unsigned_abs() as usize);
        }
        reach
    }
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

/// *Collective.* Computes the mean of Re tr L over all sites of the whole lattice for each path; the links must be in double precision.
///
/// # Errors
/// [`DeviceError::PathTooLong`] if a path leaves the border of links in a partitioned direction. The border is 4 sites wide, or 2 if a
/// local extent is below 4. Fails also if the device fails.
///
/// # Panics
/// Panics if a path has more than eight steps, or a direction other than 0 to 3.
pub fn mean_traces(links: &GaugeField, paths: &[LoopPath]) -> Result<Vec<f64>> {
    links.expect_in(Precision::Double)?;
    let (domain, lattice) = (links.domain(), links.bordered());
    for (number, path) in paths.iter().enumerate() {
        assert!(path.steps.len() <= 8, "paths have at most eight steps");
        let border = links.border().map(|width| width as usize);
        for (axis, reach) in path.reach().into_iter().enumerate() {
            if domain.grid().is_partitioned(axis) && reach > border[axis] {
                return Err(DeviceError::PathTooLong { axis, reach, border: border[axis] });
            }
        }
        let code = |(mu, forward): (usize, bool)| 2 * mu as u32 + u32::from(!forward);
        let steps = path.steps.iter().rev().fold(0, |codes, step| codes << 4 | code(*step));
        for parity in 0..2 {
            let kernel =
                Loop { links: links.both(), lattice, parity: parity as u32, steps, length: path.steps.len() as u32 };
            let (format, size) = (Format::of(Precision::Double), (domain.half_sites(), 1));
            domain.backend().reduce(&LOOP, format, &kernel, size, 2 * number + parity)?;
        }
    }
    let mut sums = vec![0.0; 2 * paths.len()];
    domain.sums(&mut sums)?;
    let volume = domain.global().volume() as f64;
    Ok(sums.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / volume).collect())
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
