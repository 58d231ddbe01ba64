//! Gauge actions of plaquettes, rectangles and parallelograms, and their forces.
use super::force::Force;
use super::links::MovingLinks;
use super::momenta::MomentumField;
use crate::backend::view;
use crate::domain::{DeviceError, Domain, Result};
use crate::field::ThinGauge;
use gpu_kernels::field::{Matrices, ThinLinks};
use gpu_kernels::gauge_force::{
    FIELD_STRENGTH, FieldStrength, GaugeForce, LOOP, Loop, SYMANZIK_FORCE_DOUBLE, SYMANZIK_FORCE_SINGLE, TIME_LINE,
    TimeLine, WILSON_FORCE,
};
use gpu_kernels::lattice::Bordered;
use gpu_kernels::storage::TILE;
use gpu_kernels::{Format, Precision};
use num_complex::Complex64;

/// S = (β/3) Σ_x [c_P Σ Re tr (1 − P) + c_R Σ Re tr (1 − R) + c_C Σ Re tr (1 − C)] over the 6 plaquettes, 12 rectangles and
/// 16 parallelograms of each site: closed paths of six links along three axes, (μ, ν, ρ, −μ, −ν, −ρ).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaugeAction {
    /// β
    pub beta: f64,
    /// c_P
    pub plaquette: f64,
    /// c_R
    pub rectangle: f64,
    /// c_C
    pub parallelogram: f64,
}

impl GaugeAction {
    /// Wilson's: plaquettes only.
    pub fn wilson(beta: f64) -> Self {
        GaugeAction { beta, plaquette: 1.0, rectangle: 0.0, parallelogram: 0.0 }
    }
    /// Symanzik's at tree level, with the tadpole factor u_0: c_R = −1 / (20 u_0²) (Lüscher and Weisz 1985). β is the factor
    /// of the plaquette, which is 5/3 of that in actions normalised to c_0 + 8 c_1 = 1.
    pub fn tree_level_symanzik(beta: f64, u0: f64) -> Self {
        GaugeAction { rectangle: -0.05 / (u0 * u0), ..Self::wilson(beta) }
    }
    /// Symanzik's to one loop, without quarks, as MILC has it: c_R = −(1 + 0.4805 α) / (20 u_0²) and
    /// c_C = −0.03325 α / u_0² with α = −4 ln u_0 / 3.0684 (Lepage and Mackenzie 1993; Alford et al. 1995).
    pub fn one_loop_symanzik(beta: f64, u0: f64) -> Self {
        let (square, ln) = (u0 * u0, u0.ln());
        GaugeAction {
            rectangle: -(1.0 - 0.6264 * ln) / (20.0 * square),
            parallelogram: 0.04335 * ln / square,
            ..Self::wilson(beta)
        }
    }
    fn is_improved(&self) -> bool {
        self.rectangle != 0.0 || self.parallelogram != 0.0
    }
    /// *Collective.* S of links in double precision.
    pub fn value(&self, links: &ThinGauge) -> Result<f64> {
        let loops = closed_loops();
        let wanted = if self.is_improved() { loops.as_slice() } else { &loops[..6] };
        let traces = mean_traces(links, wanted)?;
        let volume = links.domain().global().volume() as f64;
        let sum: f64 = wanted.iter().zip(traces).map(|(path, trace)| self.factor(path) * (3.0 - trace)).sum();
        Ok(self.beta / 3.0 * volume * sum)
    }
    fn factor(&self, path: &LoopPath) -> f64 {
        match path.kind {
            LoopKind::Plaquette => self.plaquette,
            LoopKind::Rectangle => self.rectangle,
            LoopKind::Parallelogram => self.parallelogram,
        }
    }
    /// P ← P − ε ∂S
    fn push(&self, links: &ThinGauge, step: f64, momenta: &mut MomentumField) -> Result {
        momenta.expect_on(links.domain())?;
        let factor = step * self.beta / 3.0;
        let coefficients = [factor * self.plaquette, factor * self.rectangle, factor * self.parallelogram];
        let (domain, lattice) = (links.domain(), links.bordered());
        let format = Format::between(links.precision(), momenta.precision());
        let kernel = match (self.is_improved(), links.precision()) {
            (false, _) => &WILSON_FORCE,
            (true, Precision::Double) => &SYMANZIK_FORCE_DOUBLE,
            (true, _) => &SYMANZIK_FORCE_SINGLE,
        };
        for parity in 0..2 {
            let (links, momenta, parity) = (links.both(), momenta.view(parity), parity as u32);
            let arguments = GaugeForce { links, momenta, lattice, parity, coefficients };
            domain.backend().launch(kernel, format, &arguments, domain.half_sites(), 4)?;
        }
        Ok(())
    }
}

/// A gauge action as a force.
pub struct GaugeDrive {
    /// The action.
    pub action: GaugeAction,
    /// Whether staples are multiplied in single precision, or in double.
    pub single: bool,
}

impl Force for GaugeDrive {
    fn name(&self) -> String {
        "gauge".into()
    }
    fn push(
        &self,
        links: &MovingLinks,
        step: f64,
        momenta: &mut MomentumField,
    ) -> std::result::Result<(), super::Error> {
        let precision = if self.single { Precision::Single } else { Precision::Double };
        Ok(self.action.push(&*links.thin(precision)?, step, momenta)?)
    }
}

/// What a closed loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    /// One link by one.
    Plaquette,
    /// One link by two.
    Rectangle,
    /// Six links along three axes, (μ, ν, ρ, −μ, −ν, −ρ).
    Parallelogram,
}

/// A closed loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopPath {
    /// What it is.
    pub kind: LoopKind,
    /// Its steps: direction, and whether forward.
    pub steps: Vec<(usize, bool)>,
}

impl LoopPath {
    /// How far from its first site it goes, forward or backward, along each axis.
    fn reach(&self) -> [usize; 4] {
        let (mut place, mut reach) = ([0i32; 4], [0; 4]);
        for &(mu, forward) in &self.steps {
            place[mu] += if forward { 1 } else { -1 };
            reach[mu] = reach[mu].max(place[mu].unsigned_abs() as usize);
        }
        reach
    }
}

/// The 6 plaquettes, 12 rectangles and 16 parallelograms that belong to a site, each in one of its two directions.
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
    // The first step forward, the others either way: each loop once.
    let parallelograms = triples.flat_map(|axes| {
        [(true, true), (true, false), (false, true), (false, false)].map(|(second, third)| {
            let [a, b, c] = [(axes[0], true), (axes[1], second), (axes[2], third)];
            let back = |(mu, way): (usize, bool)| (mu, !way);
            LoopPath { kind: LoopKind::Parallelogram, steps: vec![a, b, c, back(a), back(b), back(c)] }
        })
    });
    plaquettes.chain(rectangles).chain(parallelograms).collect()
}

/// *Collective.* Mean Re tr L over the sites of the whole lattice for each path, of links in double precision.
///
/// # Errors
/// [`DeviceError::PathTooLong`] for a path that leaves the border of links in a direction that is cut, which is 4 sites wide,
/// or 2 where a part of the lattice is no longer than that; and failures of the device.
///
/// # Panics
/// On a path of more than eight steps, and on a direction that is none of 0 to 3.
pub fn mean_traces(links: &ThinGauge, paths: &[LoopPath]) -> Result<Vec<f64>> {
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

/// What the clover-leaf field strength F says of links; means over the lattice but for the charge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldStrengths {
    /// −Σ_{i<j} tr F_ij²
    pub space: f64,
    /// −Σ_i tr F_it²
    pub time: f64,
    /// −(1/32π²) Σ_x ε_μνρσ tr F_μν F_ρσ: the topological charge, F being anti-Hermitian.
    pub charge: f64,
}

impl FieldStrengths {
    /// The energy density, −½ Σ_μν tr F_μν².
    pub fn energy(&self) -> f64 {
        self.space + self.time
    }
}

/// *Collective.* The field strength of links in double precision.
pub fn field_strengths(links: &ThinGauge) -> Result<FieldStrengths> {
    links.expect_in(Precision::Double)?;
    let (domain, lattice) = (links.domain(), links.bordered());
    for parity in 0..2 {
        let kernel = FieldStrength { links: links.both(), lattice, parity: parity as u32 };
        domain.backend().reduce(&FIELD_STRENGTH, Format::NONE, &kernel, (domain.half_sites(), 1), 3 * parity)?;
    }
    let mut sums = [0.0; 6];
    domain.sums(&mut sums)?;
    let volume = domain.global().volume() as f64;
    let [space, time, dual] = std::array::from_fn(|k| sums[k] + sums[3 + k]);
    // ε has eight elements for each of the three pairs of planes.
    let charge = 8.0 * dual / (32.0 * std::f64::consts::PI.powi(2));
    Ok(FieldStrengths { space: space / volume, time: time / volume, charge })
}

/// *Collective.* The mean over space of tr Π_t U_t / 3, of links in double precision.
pub fn polyakov_loop(links: &ThinGauge) -> Result<Complex64> {
    links.expect_in(Precision::Double)?;
    let domain = links.domain();
    let [x, y, z, t] = domain.local().size();
    let sites = x / 2 * y * z;
    let mut lines = Vec::with_capacity(2 * sites);
    for parity in 0..2 {
        lines.extend(time_lines(domain, links.both(), links.bordered(), parity, sites, t)?);
    }
    // The lines of processes that have the same place in space, one after the other in t, are joined.
    let grid = *domain.grid();
    let whole = if grid.dims()[3] == 1 { lines } else { join(domain, &lines)? };
    let mut sums = [0.0; 2];
    if grid.coordinates(domain.network().rank())[3] == 0 {
        let trace: Complex64 = whole.iter().map(|m| m[0] + m[4] + m[8]).sum();
        sums = [trace.re, trace.im];
    }
    domain.sum(&mut sums)?;
    let [gx, gy, gz, _] = domain.global().size();
    Ok(Complex64::new(sums[0], sums[1]) / (3 * gx * gy * gz) as f64)
}

type Line = [Complex64; 9];

/// Local products of links in double precision along t.
fn time_lines(
    domain: &Domain,
    links: [ThinLinks; 2],
    lattice: Bordered,
    parity: usize,
    sites: usize,
    length: usize,
) -> Result<Vec<Line>> {
    let bytes = sites.div_ceil(TILE) * TILE * Matrices::site_bytes::<f64>();
    let buffer = domain.backend().allocate(bytes, "products of links along t")?;
    let out = view::matrices(&buffer, sites, Matrices::site_bytes::<f64>());
    let kernel = TimeLine { links, lattice, out, parity: parity as u32, length: length as u32 };
    domain.backend().launch(&TIME_LINE, Format::NONE, &kernel, sites as u32, 1)?;
    let mut words = vec![Complex64::ZERO; bytes / 16];
    domain.backend().download(&buffer, 0, bytemuck::cast_slice_mut(&mut words))?;
    // `[tile][element][site]`
    let line = |i: usize| std::array::from_fn(|k| words[(i / TILE * 9 + k) * TILE + i % TILE]);
    Ok((0..sites).map(line).collect())
}

/// The products of all processes' lines with this place in space, in the order of t; only of use to the first of them.
fn join(domain: &Domain, mine: &[Line]) -> Result<Vec<Line>> {
    let grid = *domain.grid();
    let all = domain.network().all_gather(bytemuck::cast_slice(mine)).map_err(DeviceError::from)?;
    let here = grid.coordinates(domain.network().rank());
    let mut column: Vec<(usize, &Vec<u8>)> = all
        .iter()
        .enumerate()
        .map(|(rank, bytes)| (grid.coordinates(rank), bytes))
        .filter(|(at, _)| at[..3] == here[..3])
        .map(|(at, bytes)| (at[3], bytes))
        .collect();
    column.sort_by_key(|(t, _)| *t);
    let unit: Line = std::array::from_fn(|k| if k % 4 == 0 { Complex64::ONE } else { Complex64::ZERO });
    let mut product = vec![unit; mine.len()];
    for (_, bytes) in column {
        let mut lines = vec![Line::default(); mine.len()];
        bytemuck::cast_slice_mut::<Line, u8>(&mut lines).copy_from_slice(bytes);
        for (p, next) in product.iter_mut().zip(lines) {
            let old = *p;
            *p = std::array::from_fn(|k| (0..3).map(|j| old[3 * (k / 3) + j] * next[3 * j + k % 3]).sum());
        }
    }
    Ok(product)
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
