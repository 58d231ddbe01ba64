//! Products of blocks of vectors with small matrices, for block solvers.
use super::device::DeviceField;
use super::space::FieldSpace;
use crate::backend::view;
use crate::domain::Result;
use gpu_kernels::Precision;
use gpu_kernels::block::{BLOCK_UPDATE, BlockUpdate, GRAM, GRAM_TILE, Gram};
use gpu_kernels::field::Field;
use gpu_kernels::gram_of_warps::{GRAM_OF_WARPS, GramOfWarps};
use gpu_kernels::lattice::Divisor;
use gpu_kernels::per_rhs::MAX_RHS_WITH_NUMBERS;
use num_complex::Complex64;
use solvers::VectorSpace;
use std::ops::Range;

/// Largest number of vectors for which products by warps are not worthwhile.
const FEW: usize = 4;

impl FieldSpace {
    /// Computes [`gram`](VectorSpace::gram) with one launch and one wait for each slice of a fifth dimension and each 16 × 16 right-hand
    /// sides.
    pub(super) fn products_of_all(&self, x: &DeviceField, y: &DeviceField, out: &mut [Complex64]) -> Result {
        let n = self.nrhs();
        self.expect(x, n)?;
        self.expect(y, n)?;
        for s in 0..self.shape.ls {
            // A launch has space for the sums of 16 × 16 products. Other launches with numbers for each right-hand side also take 16 at a
            // time.
            for first_x in (0..n).step_by(MAX_RHS_WITH_NUMBERS) {
                for first_y in (0..n).step_by(MAX_RHS_WITH_NUMBERS) {
                    let [rows, columns] = [first_x, first_y].map(|first| first..n.min(first + MAX_RHS_WITH_NUMBERS));
                    self.products_of_slice((x.slice(s), rows), (y.slice(s), columns), |pair, product| {
                        let sum = if s == 0 { product } else { out[pair] + product };
                        out[pair] = sum;
                    })?;
                }
            }
        }
        Ok(())
    }
    /// Computes the products of some right-hand sides of two slices. `take` receives each product with its index in the matrix of all
    /// products.
    fn products_of_slice(
        &self,
        (x, rows): (Field, Range<usize>),
        (y, columns): (Field, Range<usize>),
        mut take: impl FnMut(usize, Complex64),
    ) -> Result {
        let (n, bytes, [high, wide]) = (self.nrhs(), self.shape.site_bytes(), GRAM_TILE);
        let (m, k) = (rows.len(), columns.len());
        let along = k.div_ceil(wide);
        let tiles = m.div_ceil(high) * along;
        let kernel = Gram {
            x: x.from_rhs(rows.start, bytes),
            y: y.from_rhs(columns.start, bytes),
            last_x: m as u32 - 1,
            last_y: k as u32 - 1,
            along: Divisor::new(along as u32),
        };
        let (backend, sites) = (self.domain().backend(), self.domain().half_sites());
        // A warp always does the work for the largest number of vectors that it can hold, so with few vectors most of the work is wasted.
        // The number of vectors from which this kernel is faster has not been measured.
        let size = (sites, tiles as u32);
        if (FEW + 1..=GramOfWarps::MOST).contains(&m.max(k)) {
            backend.reduce(&GRAM_OF_WARPS, self.format(), &GramOfWarps(kernel), size, 0)?;
        } else {
            backend.reduce(&GRAM, self.format(), &kernel, size, 0)?;
        }
        let mut sums = vec![0.0; 2 * high * wide * tiles];
        self.domain().sums(&mut sums)?;
        for (tile, sums) in sums.chunks_exact(2 * high * wide).enumerate() {
            for (pair, sum) in sums.chunks_exact(2).enumerate() {
                let (i, j) = (tile / along * high + pair / wide, tile % along * wide + pair % wide);
                if i < m && j < k {
                    take((rows.start + i) * n + columns.start + j, Complex64::new(sum[0], sum[1]));
                }
            }
        }
        Ok(())
    }

    /// Computes y_j ← Σ_i x_i a_ij; with `add` the old y_j is added.
    pub(super) fn combine(&self, a: &[Complex64], x: &DeviceField, y: &mut DeviceField, add: bool) -> Result {
        let (n, full, backend) = (self.nrhs(), self.shape.nrhs, self.domain().backend());
        self.expect(x, n)?;
        self.expect(y, n)?;
        let numbers: Vec<u8> = a[..n * n].iter().flat_map(|&a| bytes(self.precision(), a)).collect();
        let number = bytes(self.precision(), Complex64::ZERO).len();
        let mut table = self.table.borrow_mut();
        let table = match &mut *table {
            Some(table) => table,
            none => none.insert(backend.allocate(full * full * number, "coefficients of a block")?),
        };
        // Launches and copies keep their order, so the previous launch has read the table before it changes.
        backend.upload(&numbers, table, 0)?;
        for s in 0..self.shape.ls {
            let kernel = BlockUpdate {
                x: x.slice(s),
                y: y.slice(s),
                a: view::coefficients(table, n * n, number),
                count: n as u32,
                add: add.into(),
            };
            let groups = kernel.count.div_ceil(BlockUpdate::outputs(self.format()));
            backend.launch(&BLOCK_UPDATE, self.format(), &kernel, self.domain().half_sites(), groups)?;
        }
        Ok(())
    }
}

/// Returns a number as it stands in a table: in the precision of the kernel's arithmetic.
fn bytes(precision: Precision, c: Complex64) -> Vec<u8> {
    let parts = [c.re, c.im];
    match precision {
        Precision::Double => parts.iter().flat_map(|x| x.to_ne_bytes()).collect(),
        _ => parts.iter().flat_map(|&x| (x as f32).to_ne_bytes()).collect(),
    }
}
