//! Solves with operators on resident links.
use crate::check::{Mistakes, check_size, count, given, is_on, not_offered};
use crate::enums::*;
use crate::fields::{add, dot, epsilon, gamma5, keep_parity, scale, squares};
use crate::operator::{
    Complement, Form, Quarks, Wanted, WilsonQuarks, operator, part_of, prepare, prepared, read, wilson_like, write,
};
use crate::products::{diagonal, no_square, product};
use crate::setup::say;
use crate::state::State;
use crate::structs::{QUDA_MAX_MULTI_SHIFT, QUDA_MAX_MULTI_SRC, QudaInvertParam};
use ferrite::field::host::Spinor;
use ferrite::field::{DeviceField, FullField};
use ferrite::hmc::fermions::ShiftedSolver;
use ferrite::hmc::wilson::shifted::solve_shifted;
use ferrite::operators::{DiagonalForm, Schur, WilsonLike};
use ferrite_records::solve::{ObservedShifts, ObservedSolve, SystemOutcome};
use ferrite_tasks::dirac::SystemSeries;
use ferrite_tasks::host_fields::HostFields;
use ferrite_tasks::solver::{MOST_ITERATIONS, SolverSettings};
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;
use std::time::Instant;

/// Solves for one right-hand side.
///
/// # Safety
/// `x` and `b` are fields on the lattice of the resident links, as `param` describes them.
pub unsafe fn invert(x: *mut c_void, b: *mut c_void, param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { solve(&[x], &[b], given(param, "param")?) }
}

/// Solves for `num_src` right-hand sides.
///
/// # Safety
/// `x` and `b` are arrays of `num_src` fields on the lattice of the resident links, as `param` describes them.
pub unsafe fn invert_several(x: *mut *mut c_void, b: *mut *mut c_void, param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    let count = count("num_src", param.num_src, QUDA_MAX_MULTI_SRC)?;
    if x.is_null() || b.is_null() {
        return Err(Failure::refused("_hp_x or _hp_b is a null pointer"));
    }
    // SAFETY: the caller's promise.
    let (x, b) = unsafe { (std::slice::from_raw_parts(x, count), std::slice::from_raw_parts(b, count)) };
    // SAFETY: as above.
    unsafe { solve(x, b, param) }
}

/// Does nothing: solves do not keep earlier solutions for guesses.
pub fn flush_guesses(_index: i32) -> Outcome {
    Ok(())
}

/// Largest number of corrections of solves of which Ferrite solves another form.
const MOST_CORRECTIONS: usize = 5;

/// Sums over the solves of a call.
#[derive(Default)]
struct SolveOutcome {
    iterations: usize,
    seconds: f64,
    /// Floating-point operations in units of 10⁹, as applications divide them by the seconds.
    operations: f64,
    residuals: Vec<f64>,
    failure: Option<String>,
}

impl SolveOutcome {
    /// Adds a solve.
    fn add(&mut self, observed: &ObservedSolve) {
        let outcome = &observed.outcome;
        self.iterations += outcome.iterations;
        self.seconds += outcome.seconds;
        self.operations += outcome.gflops * outcome.seconds;
        self.residuals.clone_from(&outcome.true_residuals);
        self.failure = self.failure.take().or_else(|| observed.failure.clone());
    }
    /// Adds a solve of several systems.
    fn add_series(&mut self, observed: &ObservedShifts) {
        let outcome = &observed.outcome;
        let of_system = |system: &SystemOutcome| system.iterations + system.refinement_iterations;
        self.iterations += outcome.systems.iter().map(of_system).max().unwrap_or(0);
        self.seconds += outcome.seconds;
        self.operations += outcome.gflops * outcome.seconds;
        self.residuals = outcome.systems.iter().flat_map(|system| system.true_residuals.clone()).collect();
        self.failure = self.failure.take().or_else(|| observed.failure.clone());
    }
    /// Stores the outcome in the fields of the application's structure, and warns if a residual is above its tolerance.
    fn store(&self, param: &mut QudaInvertParam, tolerances: &[f64]) {
        param.iter = self.iterations as i32;
        param.secs = self.seconds;
        param.gflops = self.operations;
        param.true_res.iter_mut().zip(&self.residuals).for_each(|(to, residual)| *to = *residual);
        let misses = |(residual, tol): (&f64, &f64)| residual > tol || residual.is_nan();
        if let Some(worst) = self.residuals.iter().zip(tolerances).position(misses) {
            let why = self.failure.as_deref().unwrap_or_default();
            let residual = self.residuals[worst];
            say(QUDA_SUMMARIZE, &format!("WARNING: the solve did not converge: the residual is {residual:.3e}; {why}"));
        }
    }
}

/// Solver of systems in Ferrite's normalisation on the prepared operator.
struct Solver<'a> {
    state: &'a mut State,
    settings: SolverSettings,
    outcome: SolveOutcome,
}

impl Solver<'_> {
    /// Solves with M, from an initial guess if there is one.
    fn solved(&mut self, sources: &HostFields, guess: Option<&HostFields>) -> Outcome<HostFields> {
        let (device, dirac) = prepared(self.state)?;
        let (solutions, observed) = dirac.solve(device, sources, guess, &self.settings, &mut ())?;
        self.outcome.add(&observed);
        Ok(solutions)
    }
    /// Solves with M† = γ5 M γ5, where M is the operator with the opposite twisted mass.
    fn solved_with_dagger(&mut self, quarks: WilsonQuarks, sources: &HostFields) -> Outcome<HostFields> {
        let mut fields = sources.clone();
        gamma5(&mut fields);
        self.change_operator(quarks.partner())?;
        let solutions = self.solved(&fields, None);
        self.change_operator(quarks)?;
        let mut solutions = solutions?;
        gamma5(&mut solutions);
        Ok(solutions)
    }
    /// Changes the numbers of the prepared operator.
    fn change_operator(&mut self, quarks: WilsonQuarks) -> Outcome {
        if quarks.twist != 0.0 {
            let changed = operator(self.state, Quarks::Wilson(quarks))?;
            self.state.operator.as_mut().ok_or_else(|| Failure::failed("there is no operator"))?.change(changed);
        }
        Ok(())
    }
    /// Solves with M†M of staggered quarks for several shifts. Returns the solutions system by system.
    fn solved_with_square(&mut self, sources: &HostFields, shifts: Vec<f64>) -> Outcome<HostFields> {
        let (device, dirac) = prepared(self.state)?;
        let series = SystemSeries::Shifts(shifts);
        let (solutions, observed) = dirac.solve_series(device, sources, &series, &self.settings, &mut ())?;
        self.outcome.add_series(&observed);
        Ok(solutions)
    }
    /// Solves (M̂†M̂ + σ) x = b of Wilson-like quarks by multi-shift CG in double precision, to the tolerance of each σ. QUDA multiplies
    /// offsets like the matrix.
    fn solved_with_complements(
        &mut self,
        wanted: &Wanted,
        (quarks, complement): (WilsonQuarks, Complement),
        sources: &HostFields,
        offsets: &[f64],
        tolerances: &[f64],
    ) -> Outcome<HostFields> {
        let HostFields::Wilson(fields) = sources else { return Err(Failure::failed("the fields have no spin")) };
        let begin = Instant::now();
        let (_, dirac) = prepared(self.state)?;
        let (configuration, parity) = (dirac.configuration(), complement.parity);
        let schur = if complement.is_asymmetric { Schur::Asymmetric } else { Schur::Symmetric };
        let operator = WilsonLike { schur, ..wilson_like(self.state, quarks)? };
        let operator = configuration.wilson_like(operator, 1)?.on_parity(parity);
        let domain = configuration.domain();
        let FullField { even, odd } = FullField::of_host(domain, &fields[..1])?;
        let b = if parity == 0 { even } else { odd };
        // Ferrite's symmetric M̂ is QUDA's, and its asymmetric one is that of the mass.
        let own = if complement.is_asymmetric { 4.0 * quarks.kappa * quarks.kappa } else { 1.0 };
        let scaled = factor_of_sources(wanted);
        let shifts: Vec<f64> = offsets.iter().map(|offset| offset * scaled / own).collect();
        let solver = ShiftedSolver {
            single: false,
            tol: tolerances.to_vec(),
            together: false,
            max_iterations: self.settings.max_iterations.unwrap_or(MOST_ITERATIONS),
        };
        let solved = solve_shifted(&operator, &solver, &shifts, &b).map_err(Failure::failed)?;
        let mut solutions = Vec::new();
        for here in solved.solutions {
            let there = DeviceField::zero(domain, here.shape())?;
            let (even, odd) = if parity == 0 { (here, there) } else { (there, here) };
            solutions.extend(FullField { even, odd }.download::<Spinor>()?);
        }
        let mut solutions = HostFields::Wilson(solutions);
        scale(&mut solutions, 1.0 / own);
        self.outcome.iterations += solved.iterations;
        self.outcome.residuals = self.residuals_of_shifts(wanted, sources, &solutions, offsets, scaled)?;
        self.outcome.seconds += begin.elapsed().as_secs_f64();
        Ok(solutions)
    }
    /// Returns ‖b − (M̂†M̂ + σ) x‖ / ‖b‖ for each offset σ, multiplied by a factor.
    fn residuals_of_shifts(
        &self,
        wanted: &Wanted,
        sources: &HostFields,
        solutions: &HostFields,
        offsets: &[f64],
        factor: f64,
    ) -> Outcome<Vec<f64>> {
        let HostFields::Wilson(fields) = solutions else { return Err(Failure::failed("the fields have no spin")) };
        let norm = self.norms(sources)?[0].max(1e-300);
        let mut residuals = Vec::new();
        for (field, offset) in fields.iter().zip(offsets) {
            let field = HostFields::Wilson(vec![field.clone()]);
            let mut rest = sources.clone();
            add(&mut rest, -1.0, &product(self.state, wanted, &field)?);
            add(&mut rest, -offset * factor, &field);
            residuals.push(self.norms(&rest)?[0] / norm);
        }
        Ok(residuals)
    }
    /// Solves with the complement S = A − ¼ D A⁻¹ D on one parity, or with S†: the other half of the source of a whole system is 0.
    fn solved_with_complement(
        &mut self,
        quarks: WilsonQuarks,
        (parity, dagger): (usize, bool),
        sources: &HostFields,
    ) -> Outcome<HostFields> {
        let mut solutions = if dagger { self.solved_with_dagger(quarks, sources) } else { self.solved(sources, None) }?;
        keep_parity(&mut solutions, parity);
        Ok(solutions)
    }
    /// Solves approximately with the product of [`product`].
    fn approximately(&mut self, wanted: &Wanted, sources: &HostFields) -> Outcome<HostFields> {
        let mut solutions = match (wanted.quarks, wanted.complement, wanted.form) {
            (Quarks::Wilson(_), None, Form::Plain { dagger: false }) => self.solved(sources, None)?,
            (Quarks::Wilson(quarks), None, Form::Plain { dagger: true }) => self.solved_with_dagger(quarks, sources)?,
            (Quarks::Wilson(quarks), None, Form::Normal) => {
                let half = self.solved_with_dagger(quarks, sources)?;
                self.solved(&half, None)?
            }
            (Quarks::Wilson(quarks), Some(Complement { parity, is_asymmetric }), form) => {
                // The symmetric complement is A⁻¹ S, and its adjoint S† A⁻†.
                let times = |state: &State, dagger: bool, fields: HostFields| match is_asymmetric {
                    true => Ok(fields),
                    false => diagonal(state, quarks, DiagonalForm { parity, inverse: false, dagger }, &fields),
                };
                match form {
                    Form::Plain { dagger: false } => {
                        let b = times(self.state, false, sources.clone())?;
                        self.solved_with_complement(quarks, (parity, false), &b)?
                    }
                    Form::Plain { dagger: true } => {
                        let x = self.solved_with_complement(quarks, (parity, true), sources)?;
                        times(self.state, true, x)?
                    }
                    Form::Normal => {
                        let half = self.solved_with_complement(quarks, (parity, true), sources)?;
                        let half = times(self.state, true, half)?;
                        let half = times(self.state, false, half)?;
                        self.solved_with_complement(quarks, (parity, false), &half)?
                    }
                }
            }
            (Quarks::Staggered { .. }, None, Form::Plain { dagger }) => {
                let mut fields = sources.clone();
                if dagger {
                    epsilon(&mut fields);
                }
                let mut solutions = self.solved(&fields, None)?;
                if dagger {
                    epsilon(&mut solutions);
                }
                solutions
            }
            (Quarks::Staggered { .. }, _, _) => self.solved_with_square(sources, vec![0.0])?,
        };
        // The inverse of the factor between QUDA's matrix and Ferrite's.
        let own = match (wanted.quarks, wanted.complement) {
            (Quarks::Staggered { .. }, Some(_)) => 4.0,
            (Quarks::Staggered { .. }, None) => 2.0,
            (Quarks::Wilson(_), Some(Complement { is_asymmetric: false, .. })) => 1.0,
            (Quarks::Wilson(WilsonQuarks { kappa, .. }), _) => 2.0 * kappa,
        };
        scale(&mut solutions, if wanted.form == Form::Normal { 1.0 / (own * own) } else { 1.0 / own });
        Ok(solutions)
    }
    /// Returns the norms of fields on all processes.
    fn norms(&self, fields: &HostFields) -> Outcome<Vec<f64>> {
        let comm = self.state.device()?.comm();
        let sum = |mine: f64| Ok(comm.numbers(mine)?.into_iter().sum::<f64>().sqrt());
        squares(fields).into_iter().map(sum).collect()
    }
    /// Returns the factor that makes a tolerance relative to the norms of the sources, for a residual that may be absolute.
    fn factor_of_tolerance(&self, residual_type: QudaResidualType, sources: &HostFields) -> Outcome<f64> {
        if residual_type == i32::MIN || residual_type & QUDA_L2_ABSOLUTE_RESIDUAL == 0 {
            return Ok(1.0);
        }
        let largest = self.norms(sources)?.into_iter().fold(0.0, f64::max).max(1e-300);
        let is_both = residual_type & QUDA_L2_RELATIVE_RESIDUAL != 0;
        Ok(if is_both { (1.0 / largest).min(1.0) } else { 1.0 / largest })
    }
    /// Solves with the product of [`product`], from a guess or from 0: each solve lowers the residual, and the last product decides.
    fn exactly(
        &mut self,
        wanted: &Wanted,
        sources: &HostFields,
        guess: Option<HostFields>,
        tol: f64,
    ) -> Outcome<HostFields> {
        let norms = self.norms(sources)?;
        let mut solutions = match guess {
            Some(guess) => guess,
            None => self.approximately(wanted, sources)?,
        };
        for correction in 0.. {
            let mut rest = sources.clone();
            add(&mut rest, -1.0, &product(self.state, wanted, &solutions)?);
            let rests = self.norms(&rest)?;
            self.outcome.residuals = rests.iter().zip(&norms).map(|(rest, norm)| rest / norm.max(1e-300)).collect();
            if correction == MOST_CORRECTIONS || self.outcome.residuals.iter().all(|residual| *residual <= tol) {
                break;
            }
            // The residual has to fall to the tolerance of the whole system.
            let residuals = self.outcome.residuals.clone();
            let largest = residuals.iter().copied().fold(tol, f64::max);
            self.settings.tol = Some((tol / largest).min(0.1));
            add(&mut solutions, 1.0, &self.approximately(wanted, &rest)?);
        }
        Ok(solutions)
    }
}

/// Returns the factor by which QUDA multiplies sources, so that products have the normalisation that an application chooses.
fn factor_of_sources(wanted: &Wanted) -> f64 {
    let (kappa, one) = match (wanted.quarks, wanted.normalisation, wanted.complement) {
        (Quarks::Staggered { mass, .. }, QUDA_KAPPA_NORMALIZATION, _) => (mass, 1),
        (Quarks::Staggered { .. }, ..) => (0.0, 0),
        (Quarks::Wilson(_), QUDA_KAPPA_NORMALIZATION, _) => (0.0, 0),
        (Quarks::Wilson(WilsonQuarks { kappa, .. }), QUDA_MASS_NORMALIZATION, Some(_)) => (kappa, 2),
        (Quarks::Wilson(WilsonQuarks { kappa, .. }), ..) => (kappa, 1),
    };
    (2.0 * kappa).powi(if wanted.form == Form::Normal { 2 * one } else { one })
}

/// Returns the settings of a solve, and checks what it does not offer.
fn settings_of(state: &State, param: &QudaInvertParam, quarks: Quarks) -> Outcome<SolverSettings> {
    if param.residual_type & QUDA_HEAVY_QUARK_RESIDUAL != 0 && param.residual_type != i32::MIN {
        let offered = "expected QUDA_L2_RELATIVE_RESIDUAL";
        return Err(not_offered("residual_type", "QudaResidualType", param.residual_type, offered));
    }
    let multigrid = match param.inv_type_precondition {
        QUDA_MG_INVERTER if !quarks.are_staggered() => Some(state.setups.settings(param.preconditioner)?),
        _ => None,
    };
    let is_double = quarks.are_staggered() && param.cuda_prec_sloppy == QUDA_DOUBLE_PRECISION;
    Ok(SolverSettings {
        precision: is_double.then(|| "double".into()),
        solver: multigrid.is_some().then(|| "multigrid".into()),
        multigrid: multigrid.unwrap_or_default(),
        tol: Some(param.tol),
        max_iterations: usize::try_from(param.maxiter).ok(),
        // Thin staggered links have signs, with which they are not in SU(3).
        reconstruct: matches!(quarks, Quarks::Staggered { is_improved: false, .. }).then(|| "18".into()),
        ..SolverSettings::default()
    })
}

/// Solves for all right-hand sides together.
unsafe fn solve(x: &[*mut c_void], b: &[*mut c_void], param: &mut QudaInvertParam) -> Outcome {
    check_size(param.struct_size, size_of::<QudaInvertParam>())?;
    let wanted = Wanted::of(param)?;
    let is_direct = wanted.complement.is_none() && matches!(wanted.form, Form::Plain { dagger: false });
    if wanted.quarks.are_staggered() && wanted.complement.is_some() && wanted.form == Form::Normal {
        return Err(no_square());
    }
    State::with(|state| {
        let settings = settings_of(state, param, wanted.quarks)?;
        let fields = wanted.fields(part_of(state, wanted.quarks)?.local);
        prepare(state, wanted.quarks)?;
        let device = state.device()?;
        // SAFETY: the promise of the caller's caller.
        let mut sources = unsafe { read(device, fields, wanted.quarks, "b", b) }?;
        let guess = match param.use_init_guess {
            // SAFETY: as above.
            QUDA_USE_INIT_GUESS_YES => Some(unsafe { read(device, fields, wanted.quarks, "x", x) }?),
            _ => None,
        };
        scale(&mut sources, factor_of_sources(&wanted));
        let mut solver = Solver { state, settings, outcome: SolveOutcome::default() };
        // An absolute residual may be above the norm of the source.
        let tol = (param.tol * solver.factor_of_tolerance(param.residual_type, &sources)?).min(0.99);
        solver.settings.tol = Some(tol);
        let solutions = match (is_direct, wanted.quarks) {
            (true, quarks) => {
                let own = if let Quarks::Wilson(WilsonQuarks { kappa, .. }) = quarks { 2.0 * kappa } else { 2.0 };
                scale(&mut sources, 1.0 / own);
                solver.solved(&sources, guess.as_ref())?
            }
            (false, _) => solver.exactly(&wanted, &sources, guess, tol)?,
        };
        if is_on(param.compute_action) {
            // SAFETY: as above.
            let b = unsafe { read(solver.state.device()?, fields, wanted.quarks, "b", &b[..1]) }?;
            param.action = action(solver.state, &[1.0], &b, &solutions)?;
        }
        // SAFETY: as above.
        unsafe { write(solver.state.device()?, fields, "x", x, &solutions) }?;
        solver.outcome.store(param, &vec![tol; x.len()]);
        Ok(())
    })
}

/// Solves (M̂†M̂ + σ) x = b, or (4m² − D² + σ) x = b of staggered quarks, for all offsets σ. For staggered quarks the mass of the structure
/// does not count: the offsets are 4m².
///
/// # Safety
/// `x` is an array of `num_offset` fields, and `b` is a field, on one parity of the lattice of the resident links.
pub unsafe fn invert_shifted(x: *mut *mut c_void, b: *mut c_void, param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { solve_shifted_systems(x, b, given(param, "param")?, false) }
}

/// Solves as [`invert_shifted`] does, but iterates all staggered systems until the first one has converged.
///
/// # Safety
/// As for [`invert_shifted`].
pub unsafe fn invert_shifted_together(x: *mut *mut c_void, b: *mut c_void, param: &mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { solve_shifted_systems(x, b, param, true) }
}

unsafe fn solve_shifted_systems(
    x: *mut *mut c_void,
    b: *mut c_void,
    param: &mut QudaInvertParam,
    shifts_together: bool,
) -> Outcome {
    check_size(param.struct_size, size_of::<QudaInvertParam>())?;
    let count = count("num_offset", param.num_offset, QUDA_MAX_MULTI_SHIFT)?;
    if x.is_null() {
        return Err(Failure::refused("_hp_x is a null pointer"));
    }
    let offsets = param.offset[..count].to_vec();
    let mut mistakes = Mistakes::default();
    if offsets.iter().any(|offset| !(offset.is_finite() && *offset >= 0.0)) || !offsets.is_sorted() {
        mistakes.add(format!("offset = {offsets:?}: expected numbers of at least 0 that do not decrease"));
    }
    mistakes.finish()?;
    // SAFETY: the caller's promise.
    let x = unsafe { std::slice::from_raw_parts(x, count) };
    let is_staggered = [QUDA_STAGGERED_DSLASH, QUDA_ASQTAD_DSLASH].contains(&param.dslash_type);
    let mass = if is_staggered { (offsets[0] / 4.0).sqrt() } else { param.mass };
    let wanted = Wanted::of(&QudaInvertParam { mass, ..*param })?;
    let quarks = match (wanted.quarks, wanted.complement, wanted.form) {
        (Quarks::Staggered { .. }, Some(_), Form::Plain { .. }) => None,
        (Quarks::Wilson(quarks), Some(complement), Form::Normal) => Some((quarks, complement)),
        _ => {
            return Err(Failure::refused(
                "solution_type and matpc_type: several offsets are offered with QUDA_MATPC_SOLUTION for staggered \
                 quarks, and with QUDA_MATPCDAG_MATPC_SOLUTION for others",
            ));
        }
    };
    // The solver's tolerance is that of the most exact system.
    let tolerances: Vec<f64> =
        param.tol_offset[..count].iter().map(|tol| if *tol > 0.0 && *tol < 1.0 { *tol } else { param.tol }).collect();
    let tol = tolerances.iter().copied().fold(param.tol, f64::min);
    State::with(|state| {
        let settings = SolverSettings { tol: Some(tol), shifts_together, ..settings_of(state, param, wanted.quarks)? };
        let fields = wanted.fields(part_of(state, wanted.quarks)?.local);
        prepare(state, wanted.quarks)?;
        let device = state.device()?;
        // SAFETY: the caller's promise.
        let mut sources = unsafe { read(device, fields, wanted.quarks, "b", &[b]) }?;
        scale(&mut sources, factor_of_sources(&wanted));
        let mut solver = Solver { state, settings, outcome: SolveOutcome::default() };
        let solutions = match quarks {
            None => {
                let mut quarter = sources.clone();
                scale(&mut quarter, 0.25);
                let shifts = offsets.iter().map(|offset| (offset - offsets[0]) / 4.0).collect();
                solver.solved_with_square(&quarter, shifts)?
            }
            Some(quarks) => solver.solved_with_complements(&wanted, quarks, &sources, &offsets, &tolerances)?,
        };
        if is_on(param.compute_action) {
            param.action = action(solver.state, &param.residue[..count], &sources, &solutions)?;
        }
        // SAFETY: as above.
        unsafe { write(solver.state.device()?, fields, "x", x, &solutions) }?;
        let residuals = &solver.outcome.residuals;
        param.true_res_offset.iter_mut().zip(residuals).for_each(|(to, residual)| *to = *residual);
        param.iter_res_offset.iter_mut().zip(residuals).for_each(|(to, residual)| *to = *residual);
        solver.outcome.store(param, &tolerances);
        Ok(())
    })
}

/// Returns Σ_i r_i b†x_i.
fn action(state: &State, residues: &[f64], source: &HostFields, solutions: &HostFields) -> Outcome<[f64; 2]> {
    let sum = dot(residues, source, solutions);
    let comm = state.device()?.comm();
    Ok([comm.numbers(sum.re)?.into_iter().sum(), comm.numbers(sum.im)?.into_iter().sum()])
}
