//! Hierarchies to test multigrid with: sparse matrices, aggregates, and the Wilson operator of the Schwinger model.

use crate::common::{Broken, I, Random, Space, c, dot, normalised, plus};
use num_complex::Complex64;
use solvers::{LinearOperator, TransferOperator, VectorSpace};
use std::cell::Cell;
use std::collections::BTreeMap;

/// A sparse matrix, the entries of each row by their columns.
pub type Rows = Vec<BTreeMap<usize, Complex64>>;

/// A sparse matrix as an operator.
pub struct Sparse<'a> {
    space: &'a Space,
    entries: Vec<(usize, Complex64)>,
    /// Indices in `entries` at which the rows begin, and the end of the last row.
    starts: Vec<usize>,
    pub applications: Cell<usize>,
    /// Number of right-hand sides in all applications.
    pub rhs: Cell<usize>,
}

impl<'a> Sparse<'a> {
    pub fn new(space: &'a Space, rows: &Rows) -> Self {
        assert_eq!(rows.len(), space.n);
        let mut starts = vec![0];
        starts.extend(rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        }));
        let entries = rows.iter().flatten().map(|(column, entry)| (*column, *entry)).collect();
        Self { space, entries, starts, applications: Cell::new(0), rhs: Cell::new(0) }
    }
}

impl LinearOperator<Space> for Sparse<'_> {
    fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.applications.set(self.applications.get() + 1);
        self.rhs.set(self.rhs.get() + self.space.nrhs());
        for j in 0..self.space.nrhs() {
            let x = self.space.rhs(x, j);
            for (out, row) in out[j * self.space.n..].iter_mut().zip(self.starts.windows(2)) {
                *out = self.entries[row[0]..row[1]].iter().map(|(column, entry)| entry * x[*column]).sum();
            }
        }
        self.space.round(out);
        Ok(())
    }
    fn apply_dagger(&self, _: &Vec<Complex64>, _: &mut Vec<Complex64>) -> Result<(), Broken> {
        panic!("multigrid does not ask for this")
    }
    fn narrow(&self, _: usize) -> bool {
        true
    }
    fn flops(&self) -> f64 {
        8.0 * self.entries.len() as f64
    }
}

/// A + σ.
pub fn shifted(rows: &Rows, sigma: f64) -> Rows {
    let mut rows = rows.clone();
    rows.iter_mut().enumerate().for_each(|(i, row)| *row.entry(i).or_default() += sigma);
    rows
}

/// Vectors that are orthonormal in each of some sets of indices, and zero elsewhere: the columns of P.
pub struct AggregateVectors {
    /// Indices of an aggregate.
    sets: Vec<Vec<usize>>,
    /// `columns[a][k]` belongs to the coarse index a n + k for n vectors in an aggregate.
    columns: Vec<Vec<Vec<Complex64>>>,
}

impl AggregateVectors {
    /// Cuts vectors into the sets and orthonormalises the pieces, by modified Gram-Schmidt done twice.
    pub fn new(sets: &[Vec<usize>], vectors: &[Vec<Complex64>]) -> Self {
        let orthonormal = |set: &Vec<usize>| {
            let mut columns: Vec<Vec<Complex64>> = Vec::new();
            for vector in vectors {
                let mut column: Vec<Complex64> = set.iter().map(|i| vector[*i]).collect();
                for _ in 0..2 {
                    column = normalised(&columns.iter().fold(column, |x, q| plus(&x, -dot(q, &x), q)));
                }
                columns.push(column);
            }
            columns
        };
        Self { sets: sets.to_vec(), columns: sets.iter().map(orthonormal).collect() }
    }

    /// Vectors in an aggregate.
    pub fn per_set(&self) -> usize {
        self.columns[0].len()
    }

    /// Numbers of a coarse vector.
    pub fn coarse_n(&self) -> usize {
        self.sets.len() * self.per_set()
    }

    /// P† A P.
    pub fn galerkin(&self, rows: &Rows) -> Rows {
        let per_set = self.per_set();
        let mut place = vec![(0, 0); rows.len()];
        for (a, set) in self.sets.iter().enumerate() {
            set.iter().enumerate().for_each(|(at, i)| place[*i] = (a, at));
        }
        let mut coarse = vec![BTreeMap::new(); self.coarse_n()];
        for (i, row) in rows.iter().enumerate() {
            let (a, at) = place[i];
            for (column, entry) in row {
                let (b, from) = place[*column];
                for k in 0..per_set {
                    for l in 0..per_set {
                        let product = self.columns[a][k][at].conj() * entry * self.columns[b][l][from];
                        *coarse[a * per_set + k].entry(b * per_set + l).or_default() += product;
                    }
                }
            }
        }
        coarse
    }

    /// P† x.
    pub fn restrict(&self, x: &[Complex64], coarse: &mut [Complex64]) {
        for (set, (columns, coarse)) in self.sets.iter().zip(self.columns.iter().zip(coarse.chunks_mut(self.per_set())))
        {
            for (column, coarse) in columns.iter().zip(coarse) {
                *coarse = set.iter().zip(column).map(|(i, p)| p.conj() * x[*i]).sum();
            }
        }
    }

    /// P x.
    pub fn prolong(&self, x: &[Complex64], fine: &mut [Complex64]) {
        for (set, (columns, x)) in self.sets.iter().zip(self.columns.iter().zip(x.chunks(self.per_set()))) {
            for (at, i) in set.iter().enumerate() {
                fine[*i] = x.iter().zip(columns).map(|(x, column)| x * column[at]).sum();
            }
        }
    }
}

/// P and R = P† for the blocks of two spaces.
pub struct BlockTransfer<'a> {
    pub fine: &'a Space,
    pub coarse: &'a Space,
    pub aggregates: &'a AggregateVectors,
    /// Whether it says that it can become narrower.
    pub narrows: bool,
}

impl<'a> BlockTransfer<'a> {
    pub fn new(fine: &'a Space, coarse: &'a Space, aggregates: &'a AggregateVectors) -> Self {
        assert_eq!(coarse.n, aggregates.coarse_n());
        Self { fine, coarse, aggregates, narrows: true }
    }
}

impl TransferOperator<Space, Space> for BlockTransfer<'_> {
    fn restrict(&self, fine: &Vec<Complex64>, coarse: &mut Vec<Complex64>) -> Result<(), Broken> {
        for j in 0..self.fine.nrhs() {
            self.aggregates.restrict(self.fine.rhs(fine, j), &mut coarse[j * self.coarse.n..][..self.coarse.n]);
        }
        self.coarse.round(coarse);
        Ok(())
    }
    fn prolong(&self, coarse: &Vec<Complex64>, fine: &mut Vec<Complex64>) -> Result<(), Broken> {
        for j in 0..self.fine.nrhs() {
            self.aggregates.prolong(self.coarse.rhs(coarse, j), &mut fine[j * self.fine.n..][..self.fine.n]);
        }
        self.fine.round(fine);
        Ok(())
    }
    fn narrow(&self, _: usize) -> bool {
        self.narrows
    }
    fn flops(&self) -> f64 {
        8.0 * (self.fine.n * self.aggregates.per_set()) as f64
    }
}

/// The matrices of three levels, and what lies between them.
pub struct Hierarchy {
    pub rows: [Rows; 3],
    pub aggregates: [AggregateVectors; 2],
}

impl Hierarchy {
    /// Builds the hierarchy of an operator on a torus of `size`² sites with two numbers each, from near-null vectors. Aggregates of each
    /// level are blocks of sites of one chirality; the near-null vectors of the second level are the restricted ones of the first.
    pub fn new(rows: &Rows, size: usize, blocks: [usize; 2], vectors: &[Vec<Complex64>]) -> Self {
        let first = AggregateVectors::new(&chiral_blocks(size, blocks[0], 2), vectors);
        let restricted = |v: &Vec<Complex64>| {
            let mut coarse = vec![Complex64::ZERO; first.coarse_n()];
            first.restrict(v, &mut coarse);
            coarse
        };
        let vectors: Vec<_> = vectors.iter().map(restricted).collect();
        let second = AggregateVectors::new(&chiral_blocks(size / blocks[0], blocks[1], 2 * vectors.len()), &vectors);
        let coarse = first.galerkin(rows);
        let coarsest = second.galerkin(&coarse);
        Self { rows: [rows.clone(), coarse, coarsest], aggregates: [first, second] }
    }
    pub fn spaces(&self, nrhs: usize) -> [Space; 3] {
        [0, 1, 2].map(|level| Space::double(self.rows[level].len(), nrhs))
    }
    pub fn operators<'a>(&self, spaces: &'a [Space; 3]) -> [Sparse<'a>; 3] {
        [0, 1, 2].map(|level| Sparse::new(&spaces[level], &self.rows[level]))
    }
    pub fn transfers<'a>(&'a self, spaces: &'a [Space; 3]) -> [BlockTransfer<'a>; 2] {
        [0, 1].map(|level| BlockTransfer::new(&spaces[level], &spaces[level + 1], &self.aggregates[level]))
    }
}

/// A gauge field of the Schwinger model on a torus of `size`², angles of the links in both directions at each site: heated
/// by Metropolis from unit links.
pub fn metropolis(size: usize, beta: f64, sweeps: usize, seed: u64) -> Vec<[f64; 2]> {
    let mut random = Random(seed);
    let mut theta = vec![[0.0; 2]; size * size];
    let site = |x: usize, y: usize| x % size * size + y % size;
    for _ in 0..sweeps {
        for x in 0..size {
            for y in 0..size {
                for mu in 0..2 {
                    // The two plaquettes of the link, without it.
                    let (ahead, left, corner) = if mu == 0 {
                        (site(x + 1, y), site(x, y + size - 1), site(x + 1, y + size - 1))
                    } else {
                        (site(x, y + 1), site(x + size - 1, y), site(x + size - 1, y + 1))
                    };
                    let (here, up) = (site(x, y), if mu == 0 { site(x, y + 1) } else { site(x + 1, y) });
                    let nu = 1 - mu;
                    let one = theta[ahead][nu] - theta[up][mu] - theta[here][nu];
                    let other = theta[left][nu] - theta[left][mu] - theta[corner][nu];
                    let energy = |angle: f64| -beta * ((angle + one).cos() + (angle + other).cos());
                    let (old, new) = (theta[here][mu], theta[here][mu] + 0.8 * random.real());
                    if 0.5 * (random.real() + 1.0) < (energy(old) - energy(new)).exp() {
                        theta[here][mu] = new;
                    }
                }
            }
        }
    }
    theta
}

/// γ₁ = σ₁ and γ₂ = σ₂.
pub const SCHWINGER_GAMMA: [[[Complex64; 2]; 2]; 2] = [
    [[Complex64::ZERO, Complex64::ONE], [Complex64::ONE, Complex64::ZERO]],
    [[Complex64::ZERO, c(0.0, -1.0)], [I, Complex64::ZERO]],
];

/// The Wilson operator of the Schwinger model, without a mass: 2 − ½ Σ_μ (1 − γ_μ) U_μ(x) δ_{x+μ} + (1 + γ_μ) Ū_μ(x−μ) δ_{x−μ}
/// with γ = σ₁, σ₂, so that the two spin components are the chiralities.
pub fn wilson(size: usize, theta: &[[f64; 2]]) -> Rows {
    let mut rows: Rows = (0..2 * size * size).map(|i| BTreeMap::from([(i, c(2.0, 0.0))])).collect();
    for x in 0..size {
        for y in 0..size {
            for (mu, gamma) in SCHWINGER_GAMMA.iter().enumerate() {
                let here = x * size + y;
                let there = if mu == 0 { (x + 1) % size * size + y } else { x * size + (y + 1) % size };
                let link = Complex64::from_polar(1.0, theta[here][mu]);
                for (s, t) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let one = if s == t { 1.0 } else { 0.0 };
                    *rows[2 * here + s].entry(2 * there + t).or_default() -= 0.5 * (one - gamma[s][t]) * link;
                    *rows[2 * there + s].entry(2 * here + t).or_default() -= 0.5 * (one + gamma[s][t]) * link.conj();
                }
            }
        }
    }
    rows
}

/// Blocks of `block`² sites of a torus of `size`² with `components` numbers on a site, each for both chiralities apart: the
/// first and the second half of the numbers.
pub fn chiral_blocks(size: usize, block: usize, components: usize) -> Vec<Vec<usize>> {
    let (blocks, half) = (size / block, components / 2);
    let set = |a: usize| {
        let (x, y, chirality) = (a / 2 / blocks * block, a / 2 % blocks * block, a % 2);
        let sites = (0..block * block).map(move |at| (x + at / block) * size + y + at % block);
        sites.flat_map(|site| (0..half).map(move |k| site * components + chirality * half + k)).collect()
    };
    (0..2 * blocks * blocks).map(set).collect()
}
