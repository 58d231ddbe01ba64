//! Parameters of multigrid, and the choice of aggregates if none are given.
use crate::backend::Backend;
use crate::lattice::Lattice;
use crate::operators::WilsonLike;
use gpu_kernels::{LinkStorage, Precision};
use solvers::{CaGcrParams, InnerGcrParams};

/// Largest number of levels below the finest one.
pub const MOST_COARSENINGS: usize = 3;

/// Parameters of multigrid. The defaults suit light quarks on any lattice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultigridParams {
    /// Number of near-null vectors on each level: a multiple of 8.
    pub vectors: usize,
    /// Extents of the aggregates of each level, in sites of that level. With `None`, extents are chosen for the lattice; if none are
    /// suitable, there is no coarser level.
    pub blocks: [Option<[usize; 4]>; MOST_COARSENINGS],
    /// Largest number of levels, including the finest one, if `blocks` does not set the aggregates.
    pub levels: usize,
    /// Number of GCR steps in each relaxation of a random vector during setup.
    pub relaxation_steps: usize,
    /// Number of relaxations of each random vector.
    pub relaxations: usize,
    /// Number of times that the cycle improves its own near-null vectors.
    pub improvements: usize,
    /// Precision of near-null vectors and coarse operators: half or single. With `None`, half on a GPU and single on a CPU, where
    /// conversions cost more than memory.
    pub precision: Option<Precision>,
    /// Precision of the smoother and of the relaxation of random vectors: half, single or fp16. With `None`, the precision of near-null
    /// vectors. If both precisions are `None`, solves on a GPU use fp16, whose kernels are faster, if the build has fp16 kernels.
    pub smoother: Option<Precision>,
    /// Whether levels are checked after the setup.
    pub check: bool,
    /// Parameters of the cycle.
    pub cycle: CycleParams,
}

impl Default for MultigridParams {
    fn default() -> Self {
        MultigridParams {
            vectors: 24,
            blocks: [None; MOST_COARSENINGS],
            levels: 3,
            relaxation_steps: 8,
            relaxations: 4,
            improvements: 4,
            precision: None,
            smoother: None,
            check: false,
            cycle: CycleParams::default(),
        }
    }
}

/// Parameters of a multigrid cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CycleParams {
    /// Number of steps of minimum residual, the smoother of the finest level, before the coarse correction; 0 for no pre-smoothing.
    pub pre_smoothing: usize,
    /// Number of steps of the finest level's smoother after the coarse correction.
    pub post_smoothing: usize,
    /// Relaxation parameter ω of the finest level's smoother.
    pub omega: f64,
    /// Number of steps of communication-avoiding GCR, the smoother of coarse levels, after the coarse correction.
    pub coarse_smoothing: usize,
    /// Parameters of GCR on coarse levels that have a coarser one. For several right-hand sides, the tolerance is multiplied by 0.6: coarse
    /// iterations then cost less per right-hand side, because all of them share the reads of the coarse matrices.
    pub inner: InnerGcrParams,
    /// Parameters of communication-avoiding GCR on the coarsest level.
    pub coarsest: CaGcrParams,
}

impl Default for CycleParams {
    fn default() -> Self {
        CycleParams {
            pre_smoothing: 0,
            post_smoothing: 6,
            omega: 1.1,
            coarse_smoothing: 2,
            inner: InnerGcrParams { steps: 8, tol: 0.25 },
            coarsest: CaGcrParams { basis: 8, max_cycles: 4, tol: 0.1 },
        }
    }
}

impl CycleParams {
    /// Returns the parameters of GCR on coarse levels that have a coarser one, for `nrhs` right-hand sides.
    pub(super) fn inner_for(&self, nrhs: usize) -> InnerGcrParams {
        let tol = if nrhs > 1 { SEVERAL * self.inner.tol } else { self.inner.tol };
        InnerGcrParams { tol, ..self.inner }
    }
}

/// Factor of the tolerance of coarse levels for several right-hand sides; docs/measurements/multigrid.md gives the reason.
const SEVERAL: f64 = 0.6;

/// Reason why multigrid cannot be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MultigridError {
    /// A number of near-null vectors that kernels do not support.
    #[error("{0} near-null vectors: their number must be a multiple of 8, from 8 to {most}", most = MOST_VECTORS)]
    Vectors(usize),
    /// Aggregates that do not divide a level.
    #[error(
        "aggregates of {}: each extent must divide the {}×{}×{}×{} of level {level} on each process into an even \
         number of parts{}", extents(*block), lattice[0], lattice[1], lattice[2], lattice[3], suggestion(*fitting)
    )]
    Block {
        /// Extents of the aggregates.
        block: [usize; 4],
        /// Number of the level, of which 0 is the finest.
        level: usize,
        /// Extents of the level's lattice on each process.
        lattice: [usize; 4],
        /// Extents of aggregates that fit, if there are any.
        fitting: Option<[usize; 4]>,
    },
    /// Aggregates on which vectors have fewer numbers than there are near-null vectors, so that these cannot be orthonormal.
    #[error(
        "aggregates of {} on level {level} have {numbers} components of each chirality, fewer than the {vectors} \
         near-null vectors{}",
        extents(*block), remedy(*least, *fitting, *numbers)
    )]
    FewNumbers {
        /// Extents of an aggregate.
        block: [usize; 4],
        /// Number of the level, of which 0 is the finest.
        level: usize,
        /// Number of components of a vector on an aggregate for each chirality.
        numbers: usize,
        /// Number of near-null vectors.
        vectors: usize,
        /// Smallest number of sites of an aggregate that suffices.
        least: usize,
        /// Extents of the smallest aggregate that suffices and divides the level, if there is one.
        fitting: Option<[usize; 4]>,
    },
    /// Aggregates of one site below the finest level, which would not make a coarser level.
    #[error(
        "aggregates of 1×1×1×1 on level {level} make no coarser level: remove them{}",
        fitting.map_or(String::new(), |block| format!(", or choose larger ones, such as {}", typed(block)))
    )]
    SingleSites {
        /// Number of the level, of which 0 is the finest.
        level: usize,
        /// Extents of the smallest aggregate of several sites that divides the level, if there is one.
        fitting: Option<[usize; 4]>,
    },
    /// A lattice for which no aggregates exist.
    #[error(
        "a lattice of {0} on each process cannot be divided into an even number of aggregates of several sites: choose \
         another solver, such as bicgstab, or fewer processes if there are several"
    )]
    TooSmall(Lattice),
    /// Smoother or coarse-level solver without steps.
    #[error("the smoother and the coarse-level solvers of multigrid need at least one step")]
    NoSteps,
    /// Relaxation parameter ω that is not between 0 and 2.
    #[error("the relaxation factor of multigrid's smoother must be above 0 and below 2")]
    Omega,
    /// Tolerance of a coarse-level solver that is not between 0 and 1.
    #[error("the tolerances of the coarse-level solvers must be above 0 and below 1")]
    Tolerance,
    /// Precision without kernels.
    #[error(
        "near-null vectors and coarse operators are stored in half or single precision; the smoother runs in one of \
         these or in fp16"
    )]
    Precision,
}

/// Largest number of near-null vectors of a level.
pub const MOST_VECTORS: usize = gpu_kernels::coarse::MOST_COARSE_VECTORS as usize;

fn extents([x, y, z, t]: [usize; 4]) -> String {
    format!("{x}×{y}×{z}×{t}")
}
/// Returns extents in the form in which users give them.
fn typed([x, y, z, t]: [usize; 4]) -> String {
    format!("{x},{y},{z},{t}")
}
fn suggestion(fitting: Option<[usize; 4]>) -> String {
    fitting.map_or(String::new(), |block| format!("; for example {}", typed(block)))
}
/// Returns advice if `numbers` components for each chirality are too few: aggregates of at least `least` sites, or fewer vectors.
fn remedy(least: usize, fitting: Option<[usize; 4]>, numbers: usize) -> String {
    let larger = fitting.map(|block| format!("aggregates of at least {least} sites, such as {}", typed(block)));
    let most = numbers - numbers % VECTORS_STEP;
    let fewer = (most > 0).then(|| format!("at most {most} vectors"));
    match (larger, fewer) {
        (Some(larger), Some(fewer)) => format!(": choose {larger}, or {fewer}"),
        (Some(one), None) | (None, Some(one)) => format!(": choose {one}"),
        (None, None) => ": choose another solver, such as bicgstab, or fewer processes if there are several".into(),
    }
}

/// The number of near-null vectors must be a multiple of this number.
const VECTORS_STEP: usize = 8;
/// Number of complex components of a spinor for each chirality.
const NUMBERS_OF_SPINOR: usize = 6;

/// Smallest number of sites of an aggregate that the program chooses.
const LEAST_SITES: usize = 8;

impl MultigridParams {
    /// Returns the precision of near-null vectors and coarse operators on a backend.
    pub fn precision_on(&self, backend: &dyn Backend) -> Precision {
        self.precision.unwrap_or(if backend.name() == "cpu" { Precision::Single } else { Precision::Half })
    }
    /// Returns the precision of the smoother on a backend.
    pub fn smoother_on(&self, backend: &dyn Backend) -> Precision {
        self.smoother.unwrap_or_else(|| self.precision_on(backend))
    }
    /// Returns these parameters with the precision of the smoother set for an operator on a backend. The smoother uses fp16 if neither its
    /// precision nor that of near-null vectors is given, near-null vectors are in half precision, and the build has fp16 kernels for the
    /// operator.
    pub fn smoothing_on(&self, backend: &dyn Backend, operator: &WilsonLike) -> Self {
        let usual = self.smoother_on(backend);
        let is_free = self.smoother.is_none() && self.precision.is_none() && usual == Precision::Half;
        let exists = |storage| operator.definition.exists(Precision::Fp16, storage);
        // Two rows of a link do not suffice for links with the phases of twisted boundary conditions.
        let has_two_rows = || operator.theta.are_zero() && exists(LinkStorage::FULL.with_two_rows());
        let has_fp16 = exists(LinkStorage::FULL) || has_two_rows();
        let smoother = if is_free && has_fp16 { Precision::Fp16 } else { usual };
        MultigridParams { smoother: Some(smoother), ..*self }
    }
    /// Returns the aggregates of all levels for a process's part of the lattice, after a check of all parameters.
    ///
    /// # Errors
    /// [`MultigridError`].
    pub fn aggregates(&self, local: Lattice) -> Result<Vec<[usize; 4]>, MultigridError> {
        let CycleParams { post_smoothing, coarse_smoothing, omega, inner, coarsest, .. } = self.cycle;
        if !(VECTORS_STEP..=MOST_VECTORS).contains(&self.vectors) || !self.vectors.is_multiple_of(VECTORS_STEP) {
            return Err(MultigridError::Vectors(self.vectors));
        }
        let smooths = matches!(self.smoother, None | Some(Precision::Half | Precision::Single | Precision::Fp16));
        if !smooths || !matches!(self.precision, None | Some(Precision::Half | Precision::Single)) {
            return Err(MultigridError::Precision);
        }
        if [post_smoothing, coarse_smoothing, inner.steps, coarsest.basis, coarsest.max_cycles].contains(&0) {
            return Err(MultigridError::NoSteps);
        }
        if !(omega > 0.0 && omega < 2.0) {
            return Err(MultigridError::Omega);
        }
        if [inner.tol, coarsest.tol].into_iter().any(|tol| !(tol > 0.0 && tol < 1.0)) {
            return Err(MultigridError::Tolerance);
        }
        let (mut lattice, mut blocks) = (local.size(), Vec::new());
        let given = self.blocks.iter().take_while(|block| block.is_some()).count();
        for level in 0..MOST_COARSENINGS {
            let block = match self.blocks[level] {
                Some(block) => block,
                None if given > 0 || level + 1 >= self.levels => break,
                None => match chosen(lattice, level) {
                    Some(block) => block,
                    None => break,
                },
            };
            if (0..4).any(|mu| block[mu] == 0 || lattice[mu] % (2 * block[mu]) != 0) {
                let fitting = chosen(lattice, level);
                return Err(MultigridError::Block { block, level, lattice, fitting });
            }
            self.expect_numbers(block, level, lattice)?;
            blocks.push(block);
            lattice = std::array::from_fn(|mu| lattice[mu] / block[mu]);
        }
        if blocks.is_empty() { Err(MultigridError::TooSmall(local)) } else { Ok(blocks) }
    }
    /// Refuses aggregates on which near-null vectors cannot be orthonormal for each chirality, and aggregates that make no coarser level.
    /// `lattice` are the extents of the level.
    fn expect_numbers(&self, block: [usize; 4], level: usize, lattice: [usize; 4]) -> Result<(), MultigridError> {
        let (sites, vectors) = (block.iter().product::<usize>(), self.vectors);
        // Numbers are counted for one chirality. A site of a coarse level has one of them for each near-null vector.
        let on_site = if level == 0 { NUMBERS_OF_SPINOR } else { vectors };
        let (numbers, least) = (on_site * sites, vectors.div_ceil(on_site).max(2));
        if numbers < vectors {
            let fitting = smallest(lattice, least);
            return Err(MultigridError::FewNumbers { block, level, numbers, vectors, least, fitting });
        }
        if sites < 2 {
            return Err(MultigridError::SingleSites { level, fitting: smallest(lattice, least) });
        }
        Ok(())
    }
}

/// Returns the smallest aggregate with at least `least` sites that divides a level with these extents into even numbers of parts. Among
/// aggregates of one size it prefers small longest edges, and then long edges in t.
fn smallest(lattice: [usize; 4], least: usize) -> Option<[usize; 4]> {
    let along =
        lattice.map(|extent| (1..=extent / 2).filter(|part| extent.is_multiple_of(2 * part)).collect::<Vec<_>>());
    let [x, y, z, t] = &along;
    let all = x
        .iter()
        .flat_map(|x| y.iter().flat_map(move |y| z.iter().flat_map(move |z| t.iter().map(move |t| [*x, *y, *z, *t]))));
    let size = |block: &[usize; 4]| block.iter().product::<usize>();
    all.filter(|block| size(block) >= least).min_by_key(|block| (size(block), block.iter().copied().max(), *block))
}

/// Chooses an aggregate for a level with these extents: 4 sites long on the finest level and 2 on others, or the next size that divides the
/// level. Returns `None` if the aggregate has too few sites to pay.
fn chosen(lattice: [usize; 4], level: usize) -> Option<[usize; 4]> {
    let liked: &[usize] = if level == 0 { &[4, 3, 5, 6, 2, 7] } else { &[2, 3] };
    let along = |extent: usize| liked.iter().copied().find(|block| extent.is_multiple_of(2 * block)).unwrap_or(1);
    let block = lattice.map(along);
    (block.iter().product::<usize>() >= LEAST_SITES).then_some(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aggregates(size: [usize; 4]) -> Result<Vec<[usize; 4]>, MultigridError> {
        MultigridParams::default().aggregates(Lattice::new(size).unwrap())
    }

    #[test]
    fn aggregates_fit_the_lattice() {
        for (size, expected) in [
            ([32, 32, 32, 64], vec![[4; 4], [2; 4]]),
            ([24, 24, 24, 64], vec![[4; 4], [3, 3, 3, 2]]),
            ([16, 16, 16, 32], vec![[4; 4], [2; 4]]),
            ([8, 8, 8, 16], vec![[4; 4]]),
            ([12, 12, 12, 24], vec![[3, 3, 3, 4]]),
            ([2, 4, 6, 8], vec![[1, 2, 3, 4]]),
            ([20, 20, 20, 40], vec![[5, 5, 5, 4]]),
        ] {
            let mut found = aggregates(size).unwrap();
            found.truncate(expected.len());
            assert_eq!(found, expected, "{size:?}");
        }
        assert!(matches!(aggregates([2, 2, 2, 4]), Err(MultigridError::TooSmall(_))));
    }

    #[test]
    fn aggregates_that_do_not_fit_are_refused_with_some_that_do() {
        let blocks = [Some([4, 4, 4, 8]), None, None];
        let params = MultigridParams { blocks, ..Default::default() };
        let error = params.aggregates(Lattice::new([8, 8, 8, 8]).unwrap()).unwrap_err().to_string();
        assert!(
            error.contains("4×4×4×8") && error.contains("level 0") && error.contains("for example 4,4,4,4"),
            "{error}"
        );
        let params = MultigridParams { vectors: 20, ..Default::default() };
        assert_eq!(params.aggregates(Lattice::new([8; 4]).unwrap()), Err(MultigridError::Vectors(20)));
    }

    /// More near-null vectors than numbers cannot be orthonormal: 6 numbers of each chirality on a site of the lattice, and as many as
    /// there are vectors on one of a coarse level.
    #[test]
    fn aggregates_with_too_few_numbers_are_refused_with_the_smallest_that_do() {
        let found = |vectors: usize, blocks: &[[usize; 4]], size: [usize; 4]| {
            let mut params = MultigridParams { vectors, ..Default::default() };
            params.blocks.iter_mut().zip(blocks).for_each(|(place, block)| *place = Some(*block));
            params.aggregates(Lattice::new(size).unwrap()).map_err(|error| error.to_string())
        };
        let refused = |vectors, blocks: &[[usize; 4]], size, words: &[&str]| {
            let error = found(vectors, blocks, size).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        };
        refused(
            24,
            &[[1; 4]],
            [8; 4],
            &["1×1×1×1 on level 0 have 6 components", "the 24 near-null", "at least 4 sites, such as 1,1,2,2"],
        );
        refused(24, &[[1, 1, 1, 2]], [8; 4], &["have 12 components", "such as 1,1,2,2, or at most 8 vectors"]);
        refused(
            64,
            &[[1, 1, 2, 4]],
            [8; 4],
            &["have 48 components", "at least 11 sites, such as 2,2,2,2, or at most 48 vectors"],
        );
        refused(64, &[[1; 4]], [2; 4], &["choose another solver"]);
        refused(
            8,
            &[[2; 4], [1; 4]],
            [8; 4],
            &["on level 1 make no coarser level: remove them, or choose larger ones, such as 1,1,1,2"],
        );
        assert_eq!(found(24, &[[1, 1, 2, 2], [1, 1, 1, 2]], [8; 4]), Ok(vec![[1, 1, 2, 2], [1, 1, 1, 2]]));
        assert_eq!(found(8, &[[1, 1, 1, 2]], [4; 4]), Ok(vec![[1, 1, 1, 2]]));
    }
}
