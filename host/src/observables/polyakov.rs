//! Polyakov loop: the trace of the product of all links in t at a point of space.
use crate::backend::view;
use crate::domain::{DeviceError, Domain, Result};
use crate::field::GaugeField;
use gpu_kernels::field::ThinLinks;
use gpu_kernels::gauge_force::{TEMPORAL_LINE, TemporalLine};
use gpu_kernels::lattice::Bordered;
use gpu_kernels::{Format, Precision};
use num_complex::Complex64;

/// *Collective.* Computes the mean over space of tr Π_t U_t / 3, for links in double precision.
pub fn polyakov_loop(links: &GaugeField) -> Result<Complex64> {
    links.expect_in(Precision::Double)?;
    let domain = links.domain();
    let [x, y, z, t] = domain.local().size();
    let sites = x / 2 * y * z;
    let mut lines = Vec::with_capacity(2 * sites);
    for parity in 0..2 {
        lines.extend(temporal_lines(domain, links.both(), links.bordered(), parity, sites, t)?);
    }
    // If t is partitioned, a line in t belongs to several processes. Their products are multiplied in the order of t.
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

type LineMatrix = [Complex64; 9];

/// Computes the products of local links along t, in double precision.
fn temporal_lines(
    domain: &Domain,
    links: [ThinLinks; 2],
    lattice: Bordered,
    parity: usize,
    sites: usize,
    length: usize,
) -> Result<Vec<LineMatrix>> {
    let buffer = domain.backend().allocate(sites * size_of::<LineMatrix>(), "products of links along t")?;
    let out = view::host_array(&buffer, 9 * sites);
    let geometry = domain.geometry();
    let kernel = TemporalLine { links, lattice, geometry, out, parity: parity as u32, length: length as u32 };
    domain.backend().launch(&TEMPORAL_LINE, Format::NONE, &kernel, sites as u32, 1)?;
    let mut lines = vec![LineMatrix::default(); sites];
    domain.backend().download(&buffer, 0, bytemuck::cast_slice_mut(&mut lines))?;
    Ok(lines)
}

/// Joins the lines of all processes at this process's place in space, in the order of t. The result is used only on the first of them.
fn join(domain: &Domain, mine: &[LineMatrix]) -> Result<Vec<LineMatrix>> {
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
    let unit: LineMatrix = std::array::from_fn(|k| if k % 4 == 0 { Complex64::ONE } else { Complex64::ZERO });
    let mut product = vec![unit; mine.len()];
    for (_, bytes) in column {
        let mut lines = vec![LineMatrix::default(); mine.len()];
        bytemuck::cast_slice_mut::<LineMatrix, u8>(&mut lines).copy_from_slice(bytes);
        for (p, next) in product.iter_mut().zip(lines) {
            let old = *p;
            *p = std::array::from_fn(|k| (0..3).map(|j| old[3 * (k / 3) + j] * next[3 * j + k % 3]).sum());
        }
    }
    Ok(product)
}
