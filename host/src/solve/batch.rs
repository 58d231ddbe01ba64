//! Batches of right-hand sides: their sizes, and the combined results of all batches.
//!
//! Right-hand sides that are solved together share the links that kernels read, so a few large batches are faster than many small ones. The
//! memory of the device limits the size of a batch, because each right-hand side has its own vectors.
use super::methods::Method;
use super::report::{Escalation, MultigridReport, Report, SolveFailure, gflops};
use super::run::Solved;
use super::shifts::{ShiftsReport, SolvedShifts};
use crate::field::host::{Fermion, HostField};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{GivenUp, Info, SolveError, Unsolved};
use std::ops::Range;

/// Sizes of batches, the largest first. A batch shrinks through these sizes while right-hand sides finish. 12 and 3 are the numbers of
/// components of a source. Batches of more than 16 would be little faster, because the links are then a small share of the memory traffic.
pub const BATCH_SIZES: [usize; 8] = solvers::WIDTHS;

/// Splits `n` right-hand sides into batches with sizes from [`BATCH_SIZES`], none larger than `most` (at least 1). There are as few batches
/// as possible. Among such splits, the one with the smallest largest batch is chosen, because it needs least memory. Larger batches come
/// first.
///
/// ```
/// use ferrite::solve::batches;
/// assert_eq!(batches(12, 16), [12]);
/// assert_eq!(batches(12, 8), [6, 6]);
/// assert_eq!(batches(5, 16), [3, 2]);
/// ```
pub fn batches(n: usize, most: usize) -> Vec<usize> {
    let sizes: Vec<usize> = BATCH_SIZES.into_iter().filter(|size| *size <= most.max(1)).collect();
    // `best[k]` describes the best split of k right-hand sides: the number of batches, the size of the largest batch, and the size of the
    // batch that was added last.
    let mut best = vec![(0, 0, 0)];
    for k in 1..=n {
        let with = |size: &usize| {
            let (count, largest, _) = best[k.checked_sub(*size)?];
            Some((count + 1, largest.max(*size), *size))
        };
        // `best` has an element for each k, because a batch of one is always possible.
        best.extend(sizes.iter().filter_map(with).min());
    }
    let mut split = Vec::new();
    let mut rest = n;
    while let Some((_, _, last)) = best.get(rest).filter(|(_, _, last)| *last > 0) {
        split.push(*last);
        rest -= last;
    }
    split.sort_unstable_by(|a, b| b.cmp(a));
    split
}

/// Returns the largest size of [`BATCH_SIZES`] that is at most `n` and for which `fits` returns true, for example because the device has
/// enough free memory; `None` if not even one right-hand side fits.
pub fn largest_batch(n: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    BATCH_SIZES.into_iter().find(|size| *size <= n && fits(*size))
}

/// Solves for all sources in batches: first for `sizes[0]` sources together, then for the next `sizes[1]`, and so on. `solve` receives the
/// sources and guesses of a batch. `sizes` add up to the number of sources. Solutions and report have the form of a single solve:
/// iterations are counted for each right-hand side and for the slowest one, and work and times add up.
///
/// If a batch does not converge, the other batches are solved nevertheless. After an observer has stopped a batch, solutions of later
/// batches stay at their guess, or at zero.
///
/// # Errors
/// [`SolveFailure`] of the batch that was stopped, or else of the first batch that failed, with the best iterates of all batches.
pub fn in_batches<T: Fermion>(
    sizes: &[usize],
    sources: &[HostField<T>],
    guess: Option<&[HostField<T>]>,
    mut solve: impl FnMut(&[HostField<T>], Option<&[HostField<T>]>) -> Solved<T>,
) -> Solved<T> {
    let mut solutions = Vec::new();
    let (report, failure) = for_batches(sizes, sources.len(), guess.is_some(), |batch| {
        let (found, report, error) = match solve(&sources[batch.clone()], guess.map(|guess| &guess[batch])) {
            Ok((found, report)) => (found, report, None),
            Err(SolveFailure::Unfinished { error, solutions, report }) => (solutions, *report, Some(error)),
            Err(other) => return Err(other),
        };
        solutions.extend(found);
        Ok((report, error))
    })?;
    let left = solutions.len()..sources.len();
    solutions.extend(guess.map_or_else(|| zeros(&sources[left.clone()]), |guess| guess[left.clone()].to_vec()));
    match failure {
        None => Ok((solutions, report)),
        Some(error) => Err(SolveFailure::Unfinished { error, solutions, report: Box::new(report) }),
    }
}

/// Solves for `n` right-hand sides in batches with the given sizes. `solve`, which stores sources and solutions itself, receives the range
/// of right-hand sides of a batch. It returns the report and, if a solver gave up, the reason. After an observer has stopped a batch, later
/// batches are not solved; `guessed` states that there are guesses for them, whose residuals are unknown.
///
/// # Errors
/// The error of the first batch that could not start.
pub fn for_batches<T: Fermion>(
    sizes: &[usize],
    n: usize,
    guessed: bool,
    mut solve: impl FnMut(Range<usize>) -> Result<(Report, Option<Unsolved>), SolveFailure<T>>,
) -> Result<(Report, Option<Unsolved>), SolveFailure<T>> {
    let (mut whole, mut failure) = (None::<Report>, None::<Unsolved>);
    for batch in ranges(sizes, n) {
        let done = batch.start;
        if let (Some(SolveError::Cancelled { .. }), Some(whole)) = (&failure, &mut whole) {
            whole.left_out(batch.len(), guessed);
            continue;
        }
        let (report, error) = solve(batch).map_err(|failure| failure.counted_from(done))?;
        // A stop by the observer replaces an earlier failure to converge as the reason.
        if let Some(error) = error
            && (failure.is_none() || matches!(error, SolveError::Cancelled { .. }))
        {
            failure = Some(error.counted_from(done));
        }
        whole = Some(match whole {
            None => report,
            Some(whole) => whole.beside(report),
        });
    }
    let none = SolveFailure::Solver(SolveError::Invalid("no right-hand sides"));
    Ok((whole.ok_or(none)?, failure))
}

/// Solves systems with several shifts or masses for all sources, in batches of sources. Solutions are ordered by shift and then by
/// right-hand side.
///
/// # Errors
/// The error of the first batch that could not start.
pub fn shifts_in_batches<F: Fermion>(
    sizes: &[usize],
    sources: &[HostField<F>],
    mut solve: impl FnMut(&[HostField<F>]) -> SolvedShifts<F>,
) -> SolvedShifts<F> {
    let mut whole: Option<(Vec<Vec<HostField<F>>>, ShiftsReport)> = None;
    for batch in ranges(sizes, sources.len()) {
        let done = batch.start;
        let sources = &sources[batch];
        let mut solve = |sources| solve(sources).map_err(|failure| failure.counted_from(done));
        whole = Some(match whole {
            None => solve(sources)?,
            Some((mut solutions, mut report)) if report.cancelled => {
                solutions.iter_mut().for_each(|of_shift| of_shift.extend(zeros(sources)));
                report.shifts.iter_mut().for_each(|shift| shift.true_residual.extend(vec![1.0; sources.len()]));
                (solutions, report)
            }
            Some((mut solutions, report)) => {
                let (found, next) = solve(sources)?;
                solutions.iter_mut().zip(found).for_each(|(all, more)| all.extend(more));
                (solutions, report.beside(next))
            }
        });
    }
    whole.ok_or(SolveFailure::Solver(SolveError::Invalid("no right-hand sides")))
}

/// Returns the ranges of the batches, and a last range for the remaining right-hand sides up to `n`.
fn ranges(sizes: &[usize], n: usize) -> impl Iterator<Item = Range<usize>> {
    let mut begin = 0;
    let all = sizes.iter().copied().chain([n]);
    all.map(move |size| {
        let end = (begin + size).min(n);
        std::mem::replace(&mut begin, end)..end
    })
    .filter(|range| !range.is_empty())
}

fn zeros<T: Fermion>(like: &[HostField<T>]) -> Vec<HostField<T>> {
    like.iter().map(|field| HostField::zero(field.lattice())).collect()
}

impl Report {
    /// Combines the report of this batch with that of a batch that was solved after it.
    fn beside(self, next: Report) -> Report {
        // The report contains the formats of the batch that escalated furthest.
        let formats = if next.height() > self.height() { &next } else { &self };
        let (precision, outer, reconstruction) = (formats.precision, formats.outer, formats.reconstruction);
        let (seconds, done) = (self.seconds + next.seconds, self.true_residual.len());
        let info = beside(self.info, next.info);
        Report {
            gflops: gflops(info.flops, seconds),
            info,
            true_residual: [self.true_residual, next.true_residual].concat(),
            converged: self.converged && next.converged,
            precision,
            outer,
            escalations: [self.escalations, later(next.escalations, done)].concat(),
            method: next.method,
            method_changes: [self.method_changes, next.method_changes].concat(),
            tried: all_of(self.tried, next.tried),
            may_help: self.may_help.or(next.may_help),
            gave_up: self.gave_up.or(next.gave_up.map(|error| error.counted_from(done))),
            multigrid: beside_multigrid(self.multigrid, next.multigrid),
            reconstruction,
            seconds,
            total_seconds: self.total_seconds + next.total_seconds,
        }
    }
    /// Returns a number that grows with each escalation.
    fn height(&self) -> usize {
        let digits = |precision| match precision {
            Precision::Fp16 => 0,
            Precision::Half => 1,
            Precision::Single => 2,
            Precision::Double => 3,
        };
        let links = match self.reconstruction {
            LinkStorage { half: true, fine, .. } => usize::from(fine),
            LinkStorage::FULL => 3,
            _ => 2,
        };
        // An escalation from half to single precision may also change the links to 16 bits. The factor 4 lets the height increase in this
        // case too.
        4 * (digits(self.precision) + digits(self.outer)) + links
    }
    /// Adds `n` right-hand sides that were not solved.
    fn left_out(&mut self, n: usize, guessed: bool) {
        // Without a guess the solution is zero and the relative residual 1; the residual of a guess is not computed.
        let residual = if guessed { f64::NAN } else { 1.0 };
        let before = self.info.iterations_per_rhs.len();
        self.converged = false;
        self.true_residual.extend(vec![residual; n]);
        self.info.converged = false;
        self.info.failed.extend(before..before + n);
        self.info.true_residual.extend(vec![residual; n]);
        self.info.iterations_per_rhs.extend(vec![0; n]);
        self.info.history.extend(vec![vec![residual]; n]);
    }
}

/// Returns the escalations of a batch, with right-hand sides counted after the `done` ones before the batch.
fn later(escalations: Vec<Escalation>, done: usize) -> Vec<Escalation> {
    escalations
        .into_iter()
        .map(|escalation| Escalation { reason: escalation.reason.counted_from(done), ..escalation })
        .collect()
}

/// Returns the methods of two batches, each of them once.
fn all_of(mut methods: Vec<&'static Method>, more: Vec<&'static Method>) -> Vec<&'static Method> {
    for method in more {
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    methods
}

/// Combines the multigrid reports of two batches, which share the setup.
fn beside_multigrid(first: Option<MultigridReport>, next: Option<MultigridReport>) -> Option<MultigridReport> {
    let (Some(mut all), Some(next)) = (first.clone(), next.clone()) else { return first.or(next) };
    for (level, more) in all.levels.iter_mut().zip(next.levels) {
        level.iterations += more.iterations;
        level.seconds += more.seconds;
    }
    Some(all)
}

/// Combines the solver reports of two batches.
fn beside(first: Info, next: Info) -> Info {
    let before = first.iterations_per_rhs.len();
    let mut work = first.preconditioner;
    work += next.preconditioner;
    Info {
        iterations: first.iterations.max(next.iterations),
        iterations_per_rhs: [first.iterations_per_rhs, next.iterations_per_rhs].concat(),
        converged: first.converged && next.converged,
        failed: first.failed.into_iter().chain(next.failed.into_iter().map(|j| before + j)).collect(),
        given_up: {
            let counted = next.given_up.into_iter().map(|one| GivenUp { rhs: before + one.rhs, ..one });
            first.given_up.into_iter().chain(counted).collect()
        },
        true_residual: [first.true_residual, next.true_residual].concat(),
        history: [first.history, next.history].concat(),
        reductions: first.reductions + next.reductions,
        reliable_updates: first.reliable_updates + next.reliable_updates,
        restarts: first.restarts + next.restarts,
        precise_applications: first.precise_applications + next.precise_applications,
        sloppy_applications: first.sloppy_applications + next.sloppy_applications,
        precise_rhs: first.precise_rhs + next.precise_rhs,
        sloppy_rhs: first.sloppy_rhs + next.sloppy_rhs,
        preconditioner: work,
        flops: first.flops + next.flops,
    }
}

impl ShiftsReport {
    /// Combines the report of this batch with that of a batch that was solved after it.
    fn beside(mut self, next: ShiftsReport) -> ShiftsReport {
        for (mine, theirs) in self.shifts.iter_mut().zip(next.shifts) {
            mine.iterations = mine.iterations.max(theirs.iterations);
            mine.refinement_iterations = mine.refinement_iterations.max(theirs.refinement_iterations);
            mine.reliable_updates += theirs.reliable_updates;
            let done = mine.true_residual.len();
            mine.escalations.extend(later(theirs.escalations, done));
            mine.true_residual.extend(theirs.true_residual);
            mine.failure = mine.failure.take().or(theirs.failure.map(|error| error.counted_from(done)));
            mine.gave_up = mine.gave_up.take().or(theirs.gave_up.map(|error| error.counted_from(done)));
        }
        let (seconds, work) = (self.seconds + next.seconds, self.gflops * self.seconds + next.gflops * next.seconds);
        ShiftsReport {
            shifts: self.shifts,
            converged: self.converged && next.converged,
            first_precision: self.first_precision.or(next.first_precision),
            reconstruction: self.reconstruction,
            first_seconds: self.first_seconds + next.first_seconds,
            seconds,
            total_seconds: self.total_seconds + next.total_seconds,
            gflops: gflops(1e9 * work, seconds),
            cancelled: self.cancelled || next.cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::host::HostColour;
    use crate::lattice::Lattice;
    use crate::solve::Method;
    use crate::solve::ShiftOutcome;
    use solvers::RhsFailure;

    /// All ways to write `n` as a sum of sizes, by trying everything.
    fn best_by_trying(n: usize, most: usize, largest: usize) -> Option<(usize, usize)> {
        if n == 0 {
            return Some((0, largest));
        }
        let sizes = BATCH_SIZES.into_iter().filter(|size| *size <= most && *size <= n);
        let tries = sizes.filter_map(|size| best_by_trying(n - size, size, largest.max(size)));
        tries.map(|(count, largest)| (count + 1, largest)).min()
    }

    #[test]
    fn batches_are_few_and_even() {
        assert!(batches(0, 16).is_empty());
        for (most, expected) in [(16, vec![12]), (12, vec![12]), (11, vec![6; 2]), (7, vec![6; 2]), (5, vec![4; 3])] {
            assert_eq!(batches(12, most), expected, "at most {most}");
        }
        assert_eq!(batches(12, 0), [1; 12]);
        assert_eq!(batches(12, 1), [1; 12]);
        assert_eq!(batches(24, 64), [12, 12]);
        assert_eq!(batches(13, 16), [12, 1]);
        for n in 1..40 {
            for most in 1..20 {
                let split = batches(n, most);
                assert_eq!(split.iter().sum::<usize>(), n);
                assert!(split.iter().all(|size| BATCH_SIZES.contains(size) && *size <= most));
                assert_eq!(Some((split.len(), split[0])), best_by_trying(n, most, 0), "{n} of at most {most}");
                assert!(split.is_sorted_by(|a, b| a >= b));
            }
        }
    }

    #[test]
    fn the_largest_batch_that_fits() {
        assert_eq!(largest_batch(12, |n| 100 * n <= 1000), Some(8));
        assert_eq!(largest_batch(12, |_| true), Some(12));
        assert_eq!(largest_batch(5, |_| true), Some(4));
        assert_eq!(largest_batch(12, |_| false), None);
        assert_eq!(largest_batch(0, |_| true), None);
    }

    fn stagnation(rhs: usize) -> Unsolved {
        SolveError::Stagnation { iterations: 0, rhs, residual: 1.0, info: Box::default() }
    }

    /// A solve of a batch that did nothing, but for escalations, for a right-hand side each.
    fn report(nrhs: usize, escalations: &[(usize, Precision)]) -> Report {
        let escalation = |&(rhs, precision): &(usize, Precision)| Escalation {
            iterations: 0,
            reason: stagnation(rhs),
            precision,
            outer: Precision::Double,
            reconstruction: LinkStorage::of(12),
        };
        Report {
            info: Info { iterations_per_rhs: vec![0; nrhs], history: vec![vec![1.0]; nrhs], ..Info::default() },
            precision: escalations.last().map_or(Precision::Half, |(_, precision)| *precision),
            outer: Precision::Double,
            reconstruction: LinkStorage::of(12),
            escalations: escalations.iter().map(escalation).collect(),
            method: Method::BICGSTAB,
            method_changes: Vec::new(),
            tried: vec![Method::BICGSTAB],
            may_help: None,
            gave_up: None,
            multigrid: None,
            true_residual: vec![1.0; nrhs],
            converged: false,
            seconds: 0.0,
            total_seconds: 0.0,
            gflops: 0.0,
        }
    }

    #[test]
    fn right_hand_sides_are_counted_through() {
        let lattice = Lattice::new([2, 2, 2, 2]).unwrap();
        let sources = vec![HostColour::zero(lattice); 5];
        let mut batch = 0;
        let solve = |sources: &[HostColour], _: Option<&[HostColour]>| {
            batch += 1;
            let mut report = report(sources.len(), &[]);
            if batch != 2 {
                return Ok((sources.to_vec(), report));
            }
            report.info.failed = vec![1];
            report.info.given_up = vec![GivenUp { rhs: 1, why: RhsFailure::Plateau, iteration: 7 }];
            let info = Box::new(report.info.clone());
            let error = SolveError::Stagnation { iterations: 0, rhs: 1, residual: 1.0, info };
            Err(SolveFailure::Unfinished { error, solutions: sources.to_vec(), report: Box::new(report) })
        };
        let Err(SolveFailure::Unfinished { error, solutions, report }) = in_batches(&[2, 2, 1], &sources, None, solve)
        else {
            panic!("the second batch failed")
        };
        assert!(matches!(error, SolveError::Stagnation { rhs: 3, .. }), "{error}");
        assert_eq!((&error.info().unwrap().failed[..], &report.info.failed[..]), (&[3][..], &[3][..]));
        for info in [error.info().unwrap(), &report.info] {
            assert_eq!(info.given_up, [GivenUp { rhs: 3, why: RhsFailure::Plateau, iteration: 7 }]);
        }
        // Nothing was done in no time.
        assert_eq!((solutions.len(), report.gflops), (5, 0.0));
    }

    #[test]
    fn formats_are_those_of_the_batch_that_went_highest() {
        use Precision::{Double, Half, Single};
        let low = [(0, Single)];
        let all = report(2, &low).beside(report(2, &low)).beside(report(1, &[low[0], (0, Double)]));
        assert_eq!(all.precision, Double);
        let reasons: Vec<Unsolved> = all.escalations.into_iter().map(|escalation| escalation.reason).collect();
        // Right-hand sides count from the first of all.
        assert_eq!(reasons, [0, 2, 4, 4].map(stagnation));
        assert_eq!(report(1, &[]).beside(report(1, &low)).precision, Single);
        assert_eq!(report(1, &low).beside(report(1, &[])).precision, Single);
        assert_eq!(report(1, &[]).beside(report(1, &[])).precision, Half);
    }

    #[test]
    fn failures_of_shifts_are_counted_through() {
        let batch = |failure| {
            let shift = ShiftOutcome {
                shift: 0.1,
                iterations: 0,
                refinement_iterations: 0,
                reliable_updates: 0,
                true_residual: vec![1.0; 3],
                escalations: Vec::new(),
                gave_up: None,
                failure,
            };
            ShiftsReport {
                shifts: vec![shift],
                converged: false,
                first_precision: None,
                reconstruction: LinkStorage::FULL,
                first_seconds: 0.0,
                seconds: 0.0,
                total_seconds: 0.0,
                gflops: 0.0,
                cancelled: false,
            }
        };
        let later = batch(None).beside(batch(Some(stagnation(1))));
        assert_eq!(later.shifts[0].failure, Some(stagnation(4)));
        // The first one is reported.
        assert_eq!(batch(Some(stagnation(2))).beside(later).shifts[0].failure, Some(stagnation(2)));
    }

    #[test]
    fn ranges_cover_all() {
        let of = |sizes: &[usize], n| ranges(sizes, n).collect::<Vec<_>>();
        assert_eq!(of(&[2, 1], 3), [0..2, 2..3]);
        // Sizes that do not add up lose nothing.
        assert_eq!(of(&[2], 5), [0..2, 2..5]);
        assert_eq!(of(&[4, 4], 5), [0..4, 4..5]);
    }
}
