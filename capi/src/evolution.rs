//! Hybrid Monte Carlo: whole trajectories, and molecular dynamics step by step.
use crate::array::fe_array;
use crate::call::{extents, given, leave_record, make, nothing_in, options, refused, store};
use crate::device::{OnDevice, OpenDevice, beside, fe_device, free, with};
use crate::gauge::fe_gauge;
use ferrite::field::host::HostGauge;
use ferrite::hmc::links::StopSignal;
use ferrite_records::object;
use ferrite_tasks::bounds::number;
use ferrite_tasks::ensemble::chain::RunningChain;
use ferrite_tasks::evolution::{KeptMomenta, KeptQuarks, QuarkSolvers, gauge_action};
use ferrite_tasks::host_fields::check_finite;
use ferrite_tasks::{Failure, Outcome};
use std::cell::RefCell;
use std::ffi::c_char;
use std::rc::Rc;

/// Markov chain of hybrid Monte Carlo, whose links and momenta stay on the device.
pub struct fe_chain {
    device: Rc<OpenDevice>,
    chain: RefCell<RunningChain>,
}

/// Momenta of links: a traceless anti-Hermitian matrix for each link.
pub struct fe_momenta {
    device: Rc<OpenDevice>,
    own: RefCell<KeptMomenta>,
}

/// Quarks of molecular dynamics, with their pseudofermions.
pub struct fe_quarks {
    device: Rc<OpenDevice>,
    own: RefCell<KeptQuarks>,
}

impl OnDevice for fe_chain {
    fn device(&self) -> &Rc<OpenDevice> {
        &self.device
    }
}
impl OnDevice for fe_momenta {
    fn device(&self) -> &Rc<OpenDevice> {
        &self.device
    }
}
impl OnDevice for fe_quarks {
    fn device(&self) -> &Rc<OpenDevice> {
        &self.device
    }
}

/// Outcome of a trajectory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct fe_trajectory {
    /// 1 if the trajectory was accepted, otherwise 0.
    pub accepted: i32,
    /// Set to 0.
    pub reserved: i32,
    /// ΔH.
    pub delta_h: f64,
    /// Mean plaquette of the links after the Metropolis step.
    pub plaquette: f64,
    /// Seconds of the trajectory.
    pub seconds: f64,
}

/// *Collective.* Starts a Markov chain from links, and stores it in `*out`.
///
/// `options` is a JSON object: `gauge` (`{"action": "iwasaki", "beta": 1.9}`, with `u0`, `xi`, … if they apply), `quarks` (a list of
/// objects with `kind`, `"two"`, `"one"` or `"staggered"`, `operator`, and its parameters; `heavier`, `twists`, `method`, `level`,
/// `masses`, `flavours`, `pseudofermions`), `length` (1), `steps` (a list, outermost level first), `gauge_steps`, `integrator`
/// (`"omelyan"`), `gauge_integrator`, `seed`, `thermalise` (0), `precision` (`"double"`), `dynamics_tol`, `action_tol` and `friction`.
///
/// # Safety
/// `gauge` is a handle that has not been freed; `options` is a text with a final zero; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_chain_new(
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *mut *mut fe_chain,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let plan = options(options_json)?.chain()?.plan()?;
            make(out, || {
                let device = gauge.device();
                let chain = RunningChain::new(&device.tasks().domain(&gauge.own.part)?, &gauge.own.gauge, plan)?;
                Ok(fe_chain { device: device.clone(), chain: RefCell::new(chain) })
            })
        })
    }
}

/// *Collective.* Generates the trajectory `number`, counted from 1, and stores its outcome in `*out`. With `reverse` other than 0, it is
/// also run back to its start, and the record has the deviation of links and momenta. If a solver fails, the trajectory is rejected, and
/// the record has the reason.
///
/// # Safety
/// `chain` is a handle that has not been freed; `out` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_chain_trajectory(
    chain: *const fe_chain,
    number: i64,
    reverse: i32,
    out: *mut fe_trajectory,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(chain, "chain", |chain| {
            let number =
                u32::try_from(number).ok().filter(|number| (1..u32::MAX).contains(number)).ok_or_else(|| {
                    refused("number", &format!("{number}: expected a whole number from 1 to {}", u32::MAX - 1))
                })?;
            let mut chain = chain.chain.borrow_mut();
            let made = chain.trajectory(number, reverse != 0, StopSignal::new(|| false))?;
            let found = fe_trajectory {
                accepted: made.accepted.into(),
                reserved: 0,
                delta_h: made.delta_h,
                plaquette: made.plaquette,
                seconds: made.seconds,
            };
            store(out, found);
            leave_record(object(made));
            Ok(())
        })
    }
}

/// *Collective.* Stores the present links of a chain in `*out`.
///
/// # Safety
/// `chain` is a handle that has not been freed; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_chain_gauge(chain: *const fe_chain, out: *mut *mut fe_gauge) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe { with(chain, "chain", |chain| make(out, || fe_gauge::new(&chain.device, chain.chain.borrow().links()?))) }
}

/// Frees a chain.
///
/// # Safety
/// `chain` is null or a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_chain_free(chain: *mut fe_chain) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { free(chain) }
}

/// *Collective.* Makes momenta that are zero on a lattice, and stores them in `*out`.
///
/// # Safety
/// `device` is a device that has not been freed; `lattice` points to four numbers; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_momenta_new(
    device: *const fe_device,
    lattice: *const i64,
    out: *mut *mut fe_momenta,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(device, "device", |device| {
            let (device, lattice) = (device.device(), extents(lattice)?);
            let part = device.part(lattice)?;
            make(out, || {
                let own = RefCell::new(KeptMomenta::zero(device.tasks(), part)?);
                Ok(fe_momenta { device: device.clone(), own })
            })
        })
    }
}

/// Draws momenta with the weight exp(−½ Σ |P|²) from a seed and the number of a trajectory.
///
/// # Safety
/// `momenta` is a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_momenta_draw(momenta: *const fe_momenta, seed: u64, trajectory: u32) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { with(momenta, "momenta", |momenta| momenta.own.borrow_mut().draw(seed, trajectory)) }
}

/// Replaces momenta by the traceless anti-Hermitian parts of the matrices of an array, with the axes of `fe_gauge_new`.
///
/// # Safety
/// `momenta` is a handle that has not been freed; `array` describes memory that may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_momenta_set(momenta: *const fe_momenta, array: *const fe_array) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(momenta, "momenta", |momenta| {
            let array = given(array, "array")?.check("array", &momenta.device)?;
            let mut own = momenta.own.borrow_mut();
            array.expect_shape("array", &HostGauge::unit(own.part().local).shape())?;
            let numbers = array.read();
            check_finite("array", &numbers)?;
            own.set(&HostGauge::from_numbers(&array.shape, &numbers)?)
        })
    }
}

/// Copies momenta to an array with the axes of `fe_gauge_new`.
///
/// # Safety
/// `momenta` is a handle that has not been freed; `array` describes memory that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_momenta_get(momenta: *const fe_momenta, array: *const fe_array) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(momenta, "momenta", |momenta| {
            let array = given(array, "array")?.check("array", &momenta.device)?;
            let matrices = momenta.own.borrow().matrices()?;
            array.expect_shape("array", &matrices.shape())?;
            array.write(matrices.numbers());
            Ok(())
        })
    }
}

/// *Collective.* Stores the kinetic energy ½ Σ |P|² of momenta in `*out`, minus its mean of 4 for each link.
///
/// # Safety
/// `momenta` is a handle that has not been freed; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_momenta_energy(momenta: *const fe_momenta, out: *mut f64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(momenta, "momenta", |momenta| {
            store(out, momenta.own.borrow().kinetic_energy()?);
            Ok(())
        })
    }
}

/// Frees momenta.
///
/// # Safety
/// `momenta` is null or a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_momenta_free(momenta: *mut fe_momenta) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { free(momenta) }
}

/// *Collective.* Stores the value of a gauge action in `*out`. `options` is a JSON object with `action` (`"wilson"`, `"symanzik-tree"`,
/// `"luscher-weisz"`, `"iwasaki"` or `"dbw2"`), `beta`, and `u0`, `xi`, … if they apply.
///
/// # Safety
/// `gauge` is a handle that has not been freed; `options` is a text with a final zero; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_action(gauge: *const fe_gauge, options_json: *const c_char, out: *mut f64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let action = options(options_json)?.gauge_action()?;
            store(out, gauge_action(gauge.device().tasks(), &gauge.own, &action)?);
            Ok(())
        })
    }
}

/// Fails unless momenta are on the part of the lattice that links are on, and a step is finite.
fn check(momenta: &KeptMomenta, gauge: &fe_gauge, step: f64) -> Outcome {
    number("step", step, "a finite number", |_| true)?;
    match momenta.part() == gauge.own.part {
        true => Ok(()),
        false => Err(refused("momenta", "they are on another lattice than the links")),
    }
}

/// *Collective.* Adds the force of a gauge action to momenta: P ← P − ε ∂S, where ε is `step`. `options` are those of `fe_gauge_action`.
///
/// # Safety
/// `gauge` and `momenta` are handles that have not been freed; `options` is a text with a final zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_force(
    gauge: *const fe_gauge,
    options_json: *const c_char,
    step: f64,
    momenta: *const fe_momenta,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let action = options(options_json)?.gauge_action()?;
            let mut momenta = beside(momenta, "momenta", gauge.device())?.own.borrow_mut();
            check(&momenta, gauge, step)?;
            momenta.kick_by_gauge(gauge.device().tasks(), &gauge.own, &action, step)
        })
    }
}

/// *Collective.* Moves links, U ← exp(ε P) U with ε = `step`, and stores them in `*out`.
///
/// # Safety
/// `gauge` and `momenta` are handles that have not been freed; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_move(
    gauge: *const fe_gauge,
    momenta: *const fe_momenta,
    step: f64,
    out: *mut *mut fe_gauge,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let momenta = beside(momenta, "momenta", gauge.device())?.own.borrow();
            check(&momenta, gauge, step)?;
            let device = gauge.device();
            make(out, || fe_gauge::new(device, momenta.moved(device.tasks(), &gauge.own, step)?))
        })
    }
}

/// *Collective.* Makes quarks of molecular dynamics, and stores them in `*out`. Their rational functions suit the spectrum on `gauge`.
///
/// `options` are those of an entry of `quarks` of `fe_chain_new`, and `precision` (`"double"`), `dynamics_tol`, `action_tol` (1e-12) and
/// `seed` (1) of the spectral bounds.
///
/// # Safety
/// `gauge` is a handle that has not been freed; `options` is a text with a final zero; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_quarks_new(
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *mut *mut fe_quarks,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let mut given = options(options_json)?;
            let precision = given.take_or("precision", "double".to_string())?;
            let solvers = QuarkSolvers {
                single: precision == "single",
                dynamics_tol: given.take_or("dynamics_tol", None)?,
                action_tol: given.take_or("action_tol", 1e-12)?,
                seed: given.take_or("seed", 1)?,
            };
            if !["single", "double"].contains(&precision.as_str()) {
                return Err(Failure::refused(format!("precision = {precision}: expected double or single")));
            }
            for (name, tol) in [("dynamics_tol", solvers.dynamics_tol), ("action_tol", Some(solvers.action_tol))] {
                let expected = "a number of at least 1e-18 and below 1";
                number(name, tol.unwrap_or(1e-8), expected, |tol| (1e-18..1.0).contains(&tol))?;
            }
            let quarks = given.quarks()?;
            make(out, || {
                let own = KeptQuarks::new(gauge.device().tasks(), &gauge.own, &quarks, solvers)?;
                Ok(fe_quarks { device: gauge.device().clone(), own: RefCell::new(own) })
            })
        })
    }
}

/// *Collective.* Draws the pseudofermions of quarks for links from a seed and the number of a trajectory, and stores their action in
/// `*action`.
///
/// # Safety
/// `quarks` and `gauge` are handles that have not been freed; `action` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_quarks_draw(
    quarks: *const fe_quarks,
    gauge: *const fe_gauge,
    seed: u64,
    trajectory: u32,
    action: *mut f64,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(quarks, "quarks", |quarks| {
            let gauge = beside(gauge, "gauge", &quarks.device)?;
            let drawn = quarks.own.borrow_mut().draw(quarks.device.tasks(), &gauge.own, seed, trajectory)?;
            store(action, drawn);
            Ok(())
        })
    }
}

/// *Collective.* Stores the action of the pseudofermions of quarks on links in `*action`.
///
/// # Safety
/// `quarks` and `gauge` are handles that have not been freed; `action` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_quarks_action(quarks: *const fe_quarks, gauge: *const fe_gauge, action: *mut f64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(quarks, "quarks", |quarks| {
            let gauge = beside(gauge, "gauge", &quarks.device)?;
            store(action, quarks.own.borrow().action(quarks.device.tasks(), &gauge.own)?);
            Ok(())
        })
    }
}

/// *Collective.* Adds the force of quarks on links to momenta: P ← P − ε ∂S, where ε is `step`.
///
/// # Safety
/// `quarks`, `gauge` and `momenta` are handles that have not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_quarks_force(
    quarks: *const fe_quarks,
    gauge: *const fe_gauge,
    step: f64,
    momenta: *const fe_momenta,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(quarks, "quarks", |quarks| {
            let device = &quarks.device;
            let gauge = beside(gauge, "gauge", device)?;
            let mut momenta = beside(momenta, "momenta", device)?.own.borrow_mut();
            check(&momenta, gauge, step)?;
            momenta.kick_by_quarks(device.tasks(), &gauge.own, &quarks.own.borrow(), step)
        })
    }
}

/// Frees quarks.
///
/// # Safety
/// `quarks` is null or a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_quarks_free(quarks: *mut fe_quarks) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { free(quarks) }
}
