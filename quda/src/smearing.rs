//! Smearing of links, gradient flow and gauge fixing.
use crate::check::{Mistakes, check_size, given, is_on, not_offered};
use crate::define::UNSET_INT;
use crate::enums::*;
use crate::links::{LoadedLinks, arrays, taken};
use crate::loops::observe;
use crate::setup::say;
use crate::state::{Links, State};
use crate::structs::{QudaGaugeObservableParam, QudaGaugeParam, QudaGaugeSmearParam};
use ferrite::field::GaugeField;
use ferrite::gauge::ape_hyp::{ProjectedSmearing, Projection, SumsOfStaples};
use ferrite::gauge::fixing::relax::{Gauge, Relaxation, omega_for};
use ferrite::hmc::stout::StoutSmearing;
use ferrite::observables::flow::{Flow, FlowAction};
use ferrite_tasks::bounds::number;
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;

/// Observables that a call measures at its start and after every `meas_interval` steps.
struct Measurements {
    first: *mut QudaGaugeObservableParam,
    taken: usize,
    interval: usize,
}

impl Measurements {
    /// Checks the first structure.
    unsafe fn new(first: *mut QudaGaugeObservableParam, interval: u32) -> Outcome<Self> {
        // SAFETY: the promise of the caller's caller.
        let given = unsafe { given(first, "obs_param") }?;
        check_size(given.struct_size, size_of::<QudaGaugeObservableParam>())?;
        if interval == 0 {
            return Err(Failure::refused("meas_interval = 0: expected at least 1"));
        }
        Ok(Measurements { first, taken: 0, interval: interval as usize })
    }
    /// Measures after `steps` steps, if it is time.
    unsafe fn after(
        &mut self,
        steps: usize,
        links: &GaugeField,
        say_it: impl Fn(&QudaGaugeObservableParam),
    ) -> Outcome {
        if !steps.is_multiple_of(self.interval) {
            return Ok(());
        }
        // SAFETY: the application gives a structure for each measurement.
        let param = unsafe { &mut *self.first.add(self.taken) };
        // SAFETY: as above.
        unsafe { observe(links, param) }?;
        say_it(param);
        self.taken += 1;
        Ok(())
    }
}

/// Step of a smearing.
type SmearingStep = dyn Fn(&GaugeField) -> ferrite::domain::Result<GaugeField>;

/// Returns whether a smearing is of the directions in space only.
fn is_spatial(param: &QudaGaugeSmearParam, or_else: i32) -> Outcome<bool> {
    match if param.dir_ignore == UNSET_INT || param.dir_ignore < 0 { or_else } else { param.dir_ignore } {
        3 => Ok(true),
        4.. => Ok(false),
        other => Err(Failure::refused(format!("dir_ignore = {other} is not offered: expected 3 or 4"))),
    }
}

/// Smears the resident links, and keeps the result as smeared links.
///
/// # Safety
/// `smear_param` points to a structure, and `obs_param` to one for each measurement.
pub unsafe fn smear(smear_param: *mut QudaGaugeSmearParam, obs_param: *mut QudaGaugeObservableParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(smear_param, "smear_param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeSmearParam>())?;
    // SAFETY: as above.
    let mut measurements = unsafe { Measurements::new(obs_param, param.meas_interval) }?;
    let projected = |sums: SumsOfStaples, spatial: bool| ProjectedSmearing {
        sums,
        levels: 1,
        spatial,
        projection: Projection::Polar,
    };
    let step: Box<SmearingStep> = match param.smear_type {
        QUDA_GAUGE_SMEAR_APE => {
            let smearing = projected(SumsOfStaples::Ape(param.alpha), is_spatial(param, 3)?);
            Box::new(move |links| smearing.smeared(links))
        }
        QUDA_GAUGE_SMEAR_STOUT => {
            let smearing = StoutSmearing { rho: param.rho, levels: 1, spatial: is_spatial(param, 3)? };
            Box::new(move |links| smearing.smeared(links))
        }
        QUDA_GAUGE_SMEAR_HYP => {
            let spatial = is_spatial(param, 4)?;
            let alpha = [param.alpha1, param.alpha2, param.alpha3];
            let alpha = if spatial { [alpha[1], alpha[2], 0.0] } else { alpha };
            let smearing = projected(SumsOfStaples::Hyp(alpha), spatial);
            Box::new(move |links| smearing.smeared(links))
        }
        other => {
            let offered = "expected QUDA_GAUGE_SMEAR_APE, QUDA_GAUGE_SMEAR_STOUT or QUDA_GAUGE_SMEAR_HYP";
            return Err(not_offered("smear_type", "QudaGaugeSmearType", other, offered));
        }
    };
    State::with(|state| {
        let loaded = state.wilson()?;
        let (part, factors) = (loaded.links.part, loaded.factors);
        let mut links = loaded.links.field(state.device()?)?.copied()?;
        let tell = |steps: usize| {
            move |param: &QudaGaugeObservableParam| {
                if is_on(param.compute_qcharge) {
                    say(QUDA_SUMMARIZE, &format!("Q charge at step {steps:03} = {:+.16e}", param.qcharge));
                }
            }
        };
        // SAFETY: as above.
        unsafe { measurements.after(0, &links, tell(0)) }?;
        for steps in 1..=param.n_steps as usize {
            links = step(&links)?;
            // SAFETY: as above.
            unsafe { measurements.after(steps, &links, tell(steps)) }?;
        }
        state.smeared = Some(LoadedLinks::new(Links::of_device(part, links), factors));
        Ok(())
    })
}

/// Integrates the gradient flow of the resident links, or of smeared links with `restart`, and keeps the result as smeared links.
///
/// # Safety
/// As for [`smear`].
pub unsafe fn flow(smear_param: *mut QudaGaugeSmearParam, obs_param: *mut QudaGaugeObservableParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(smear_param, "smear_param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeSmearParam>())?;
    // SAFETY: as above.
    let mut measurements = unsafe { Measurements::new(obs_param, param.meas_interval) }?;
    let action = match param.smear_type {
        QUDA_GAUGE_SMEAR_WILSON_FLOW => FlowAction::Wilson,
        QUDA_GAUGE_SMEAR_SYMANZIK_FLOW => FlowAction::Symanzik,
        other => {
            let offered = "expected QUDA_GAUGE_SMEAR_WILSON_FLOW or QUDA_GAUGE_SMEAR_SYMANZIK_FLOW";
            return Err(not_offered("smear_type", "QudaGaugeSmearType", other, offered));
        }
    };
    let (epsilon, start) = (param.epsilon, if is_on(param.restart) { param.t0 } else { 0.0 });
    number("epsilon", epsilon, "a finite number", |_| true)?;
    State::with(|state| {
        let loaded = match (is_on(param.restart), &state.smeared) {
            (false, _) => state.wilson()?,
            (true, Some(smeared)) => smeared,
            (true, None) => return Err(Failure::refused("restart: there are no smeared links to continue from")),
        };
        let (part, factors) = (loaded.links.part, loaded.factors);
        let mut flow = Flow::new(loaded.links.field(state.device()?)?, action)?;
        let tell = |steps: usize| {
            let time = start + epsilon * steps as f64;
            move |param: &QudaGaugeObservableParam| {
                if is_on(param.compute_qcharge) {
                    let [all, space, with_t] = param.energy;
                    say(
                        QUDA_SUMMARIZE,
                        &format!(
                            "flow t = {time:.6e}: E = {all:.16e}, {space:.16e}, {with_t:.16e}, Q = {:+.16e}",
                            param.qcharge
                        ),
                    );
                }
            }
        };
        // SAFETY: as above.
        unsafe { measurements.after(0, flow.links(), tell(0)) }?;
        for steps in 1..=param.n_steps as usize {
            flow.step(epsilon).map_err(Failure::failed)?;
            // SAFETY: as above.
            unsafe { measurements.after(steps, flow.links(), tell(steps)) }?;
        }
        let flowed = flow.links().copied()?;
        state.smeared = Some(LoadedLinks::new(Links::of_device(part, flowed), factors));
        Ok(())
    })
}

/// Fixes links of the application to Landau (`gauge_dir` 4) or Coulomb gauge (3) by over-relaxation.
///
/// # Safety
/// `gauge` has links as `param` describes them.
pub unsafe fn fix_by_relaxation(
    gauge: *mut c_void,
    gauge_dir: u32,
    steps: u32,
    verbose_interval: u32,
    relax_boost: f64,
    tolerance: f64,
    _reunit_interval: u32,
    stop_by_theta: u32,
    param: *mut QudaGaugeParam,
) -> Outcome<i32> {
    number("relax_boost", relax_boost, "a number of at least 1 and below 2", |x| (1.0..2.0).contains(&x))?;
    let request =
        FixingRequest { gauge_dir, steps, verbose_interval, omega: Some(relax_boost), tolerance, stop_by_theta };
    // SAFETY: the caller's promise.
    unsafe { fix(gauge, &request, param) }
}

/// Fixes links as [`fix_by_relaxation`] does, with an over-relaxation parameter that suits the lattice, in place of steepest descent with
/// Fourier acceleration.
///
/// # Safety
/// As for [`fix_by_relaxation`].
pub unsafe fn fix_by_descent(
    gauge: *mut c_void,
    gauge_dir: u32,
    steps: u32,
    verbose_interval: u32,
    _alpha: f64,
    _autotune: u32,
    tolerance: f64,
    stop_by_theta: u32,
    param: *mut QudaGaugeParam,
) -> Outcome<i32> {
    let request = FixingRequest { gauge_dir, steps, verbose_interval, omega: None, tolerance, stop_by_theta };
    // SAFETY: the caller's promise.
    unsafe { fix(gauge, &request, param) }
}

/// Arguments of both calls that fix a gauge.
struct FixingRequest {
    gauge_dir: u32,
    steps: u32,
    verbose_interval: u32,
    omega: Option<f64>,
    tolerance: f64,
    stop_by_theta: u32,
}

unsafe fn fix(gauge: *mut c_void, request: &FixingRequest, param: *mut QudaGaugeParam) -> Outcome<i32> {
    // SAFETY: the promise of the caller's caller.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    let mut mistakes = Mistakes::default();
    let kind = match request.gauge_dir {
        4 => Gauge::Landau,
        3 => Gauge::Coulomb,
        other => {
            mistakes.add(format!("gauge_dir = {other}: expected 4 for Landau gauge or 3 for Coulomb gauge"));
            Gauge::Landau
        }
    };
    mistakes.finish()?;
    number("tolerance", request.tolerance, "a number of at least 0", |tol| tol >= 0.0)?;
    State::with(|state| {
        // SAFETY: as above.
        let loaded = unsafe { taken(state, "gauge", gauge, param) }?;
        let (device, part, factors) = (state.device()?, loaded.links.part, loaded.factors);
        let omega = request.omega.unwrap_or_else(|| omega_for(part.global, kind));
        let mut relaxation = Relaxation::new(&device.domain(&part)?, loaded.links.host()?, kind, omega)?;
        // QUDA's divergence is twice Ferrite's, so its square is four times as large. Its action is the functional.
        let mut state_now = relaxation.state()?;
        for sweep in 1..=request.steps {
            let before = state_now.functional;
            state_now = relaxation.relax(1)?;
            let (theta, change) = (4.0 * state_now.theta, (state_now.functional - before).abs());
            if request.verbose_interval > 0 && sweep % request.verbose_interval == 0 {
                let action = state_now.functional;
                say(
                    QUDA_VERBOSE,
                    &format!("step {sweep}: action {action:.16e}, theta {theta:.6e}, change {change:.6e}"),
                );
            }
            if if request.stop_by_theta != 0 { theta } else { change } < request.tolerance {
                break;
            }
        }
        let sweeps = relaxation.sweeps();
        let (theta, wanted) = (4.0 * state_now.theta, request.tolerance);
        if request.stop_by_theta != 0 && (theta >= wanted || theta.is_nan()) && wanted > 0.0 {
            say(
                QUDA_SUMMARIZE,
                &format!("WARNING: the gauge condition has theta = {theta:.3e} after {sweeps} steps, not {wanted:.3e}"),
            );
        }
        let fixed = relaxation.finish()?;
        // SAFETY: as above.
        let (_, arrays) = unsafe { arrays(state, "gauge", gauge, param) }?;
        // SAFETY: as above.
        unsafe { arrays.write_links(state.backend()?, &fixed) }?;
        if is_on(param.make_resident_gauge) {
            state.operator = None;
            state.wilson = Some(LoadedLinks::new(Links::of_host(part, fixed), factors));
        }
        Ok(0)
    })
}
