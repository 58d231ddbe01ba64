//! Quark propagators on a device, and correlators of hadrons.
use crate::array::fe_array;
use crate::call::{given, leave_record, make, nothing_in, options, refused, store};
use crate::device::{OnDevice, OpenDevice, beside, free, with};
use crate::gauge::fe_gauge;
use crate::operator::{fe_operator, fe_solution, finish_solve};
use ferrite::FermionKind;
use ferrite::field::FullField;
use ferrite::lattice::Section;
use ferrite::num_complex::Complex64;
use ferrite::observables::spectrum::smearing::{GaussianSmearing, MOST_SMEARING_STEPS};
use ferrite_tasks::bounds::{at_most, number};
use ferrite_tasks::dirac::{LinkedSmearing, ProfileSource, on_device, propagator_shape};
use ferrite_tasks::host_fields::HostFields;
use ferrite_tasks::json::JsonOptions;
use ferrite_tasks::spectrum::contraction::Contraction;
use ferrite_tasks::spectrum::sink::SinkRequest;
use ferrite_tasks::{Failure, Outcome};
use serde_json::json;
use std::ffi::c_char;
use std::rc::Rc;

/// Solutions for all components of a source, in the memory of a device.
pub struct fe_propagator {
    device: Rc<OpenDevice>,
    field: Rc<FullField>,
    part: Section,
    kind: FermionKind,
}

impl OnDevice for fe_propagator {
    fn device(&self) -> &Rc<OpenDevice> {
        &self.device
    }
}

/// Removes Gaussian smearing from options: `width`, `steps`, and `momentum`. Returns it with its links, if there are some.
fn smearing(given: &mut JsonOptions, gauge: Option<&fe_gauge>, part: &Section) -> Outcome<Option<LinkedSmearing>> {
    let Some(gauge) = gauge else { return Ok(None) };
    let smearing = GaussianSmearing {
        width: given.needed("width")?,
        steps: given.needed("steps")?,
        momentum: given.take_or("momentum", [0.0; 3])?,
    };
    number("width", smearing.width, "a number of at least 0", |width| width >= 0.0)?;
    at_most("steps", smearing.steps as u64, MOST_SMEARING_STEPS as u64)?;
    smearing.momentum.iter().try_for_each(|p| number("momentum", *p, "finite numbers", |_| true))?;
    if gauge.own.part != *part {
        return Err(refused("gauge", "the links of the Gaussian smearing are on another lattice than the propagator"));
    }
    Ok(Some(LinkedSmearing { gauge: gauge.own.gauge.clone(), smearing }))
}

/// Returns links that may be null.
unsafe fn links<'a>(gauge: *const fe_gauge, device: &Rc<OpenDevice>) -> Outcome<Option<&'a fe_gauge>> {
    if gauge.is_null() {
        return Ok(None);
    }
    // SAFETY: the promise of the caller's caller.
    unsafe { beside(gauge, "gauge", device) }.map(Some)
}

/// *Collective.* Solves for all components of a source on one time slice, 12 for Wilson-like operators and 3 for staggered ones, and stores
/// the propagator in `*out`. It stays on the device.
///
/// `profile` has the amplitudes z, y, x of the source, the same for each spin and colour, on this process's part of the lattice; null for
/// the point `origin`. With `gauge`, the source is smeared: `options` then has `width`, `steps` and `momentum` of the Gaussian. `options`
/// is a JSON object with `origin` (x, y, z, t; of a profile, t counts), and the options of `fe_solve`. If the solver gives up, the
/// propagator is made from the best iterates, and the call returns `FE_SOLVER`.
///
/// # Safety
/// `op` is a handle that has not been freed, `gauge` is one or null; `profile` is null or describes memory that may be read; `options` is
/// a text with a final zero; `out` is valid for writes; `solution` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_propagator_new(
    op: *const fe_operator,
    profile: *const fe_array,
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *mut *mut fe_propagator,
    solution: *mut fe_solution,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(op, "op", |op| {
            store(solution, fe_solution::default());
            let (own, mut given_options) = (&op.own, options(options_json)?);
            let (device, part) = (&own.device, own.part);
            let origin: [usize; 4] = given_options.needed("origin")?;
            let [nx, ny, nz, nt] = part.global.size();
            if origin.iter().zip([nx, ny, nz, nt]).any(|(x, n)| *x >= n) {
                return Err(Failure::refused(format!(
                    "options: origin = {origin:?} is not on the lattice {}",
                    part.global
                )));
            }
            let smearing = smearing(&mut given_options, links(gauge, device)?, &part)?;
            let settings = given_options.solver()?;
            let [x, y, z, _] = part.local.size();
            let profile = match profile.is_null() {
                false => {
                    let array = given(profile, "profile")?.check("profile", device)?;
                    array.expect_shape("profile", &[z, y, x])?;
                    array.read()
                }
                true => {
                    let mut point = vec![Complex64::ZERO; x * y * z];
                    let at: [Option<usize>; 3] = std::array::from_fn(|mu| {
                        let inside = origin[mu].checked_sub(part.origin[mu])?;
                        (inside < part.local.size()[mu]).then_some(inside)
                    });
                    if let [Some(i), Some(j), Some(k)] = at {
                        point[(k * y + j) * x + i] = Complex64::ONE;
                    }
                    point
                }
            };
            let source = ProfileSource { time: origin[3], profile: Some(profile) };
            let mut failure = None;
            make(out, || {
                let (field, observed) =
                    own.dirac.propagator(device.tasks(), &source, smearing.as_ref(), &settings, &mut ())?;
                failure = Some(finish_solve(&observed, solution));
                let kind = own.dirac.kind();
                Ok(fe_propagator { device: device.clone(), field: Rc::new(field), part, kind })
            })?;
            failure.unwrap_or(Ok(()))
        })
    }
}

/// *Collective.* Solves for the sequential propagator through a sink, and stores it in `*out`. It stays on the device.
///
/// `options` is a JSON object with `sink` (the number of Γ of a meson, or `[projector, flavour]` of the nucleon), `momentum`, `origin`,
/// `time`, `antiperiodic`, and the options of `fe_solve`. With `gauge`, propagator and sources are smeared at the sink: `options` then has
/// `width` and `steps`.
///
/// # Safety
/// As for `fe_propagator_new`; `from` is a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_propagator_through(
    op: *const fe_operator,
    from: *const fe_propagator,
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *mut *mut fe_propagator,
    solution: *mut fe_solution,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(op, "op", |op| {
            store(solution, fe_solution::default());
            let own = &op.own;
            let (device, part) = (&own.device, own.part);
            let (from, mut given) = (beside(from, "from", device)?, options(options_json)?);
            if from.part != part || from.kind != FermionKind::Wilson || own.dirac.kind() != FermionKind::Wilson {
                let why = "sequential propagators need Wilson-like quarks and an operator on the same lattice";
                return Err(refused("from", why));
            }
            let mut place = json!({});
            for name in ["sink", "momentum", "origin", "time", "antiperiodic"] {
                place[name] = given.take(name).unwrap_or_default();
            }
            let sink: SinkRequest =
                serde_json::from_value(place).map_err(|why| Failure::refused(format!("options: {why}")))?;
            let links = links(gauge, device)?;
            let smearing = smearing(&mut given, links, &part)?;
            let settings = given.solver()?;
            let mut failure = None;
            make(out, || {
                let work = (device.tasks(), &*from.field, &sink);
                let (field, observed) =
                    own.dirac.propagator_through(work.0, work.1, work.2, smearing.as_ref(), &settings, &mut ())?;
                failure = Some(finish_solve(&observed, solution));
                Ok(fe_propagator { device: device.clone(), field: Rc::new(field), part, kind: from.kind })
            })?;
            failure.unwrap_or(Ok(()))
        })
    }
}

/// *Collective.* Copies a propagator from an array with the axes component, t, z, y, x, spin and colour (12 components), or component, t, z, y, x and
/// colour (3 components), to the device of `gauge` or links on the same lattice, and stores it in `*out`.
///
/// # Safety
/// `gauge` is a handle that has not been freed; `array` describes memory that may be read; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_propagator_from(
    gauge: *const fe_gauge,
    array: *const fe_array,
    out: *mut *mut fe_propagator,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let (device, part) = (gauge.device(), gauge.own.part);
            let array = given(array, "array")?.check("array", device)?;
            let kind = if array.shape.len() == 7 { FermionKind::Wilson } else { FermionKind::Staggered };
            array.expect_shape("array", &propagator_shape(kind, &part))?;
            make(out, || {
                let fields = HostFields::of_propagator(kind, &array.shape, &array.read())?;
                fields.check_finite("array")?;
                let field = on_device(device.tasks(), &part, &fields)?;
                Ok(fe_propagator { device: device.clone(), field: Rc::new(field), part, kind })
            })
        })
    }
}

/// Copies a propagator to an array with the axes of `fe_propagator_from`.
///
/// # Safety
/// `propagator` is a handle that has not been freed; `array` describes memory that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_propagator_get(propagator: *const fe_propagator, array: *const fe_array) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(propagator, "propagator", |propagator| {
            let array = given(array, "array")?.check("array", &propagator.device)?;
            array.expect_shape("array", &propagator_shape(propagator.kind, &propagator.part))?;
            let unpacked = propagator.field.unpack()?;
            let mut numbers = vec![Complex64::ZERO; unpacked.len()];
            unpacked.download(0, &mut numbers)?;
            array.write(&numbers);
            Ok(())
        })
    }
}

/// *Collective.* Smears a propagator at its sink with a Gaussian, on all time slices, and stores the result in `*out`. `options` is a JSON
/// object with `width`, `steps` and `momentum`.
///
/// # Safety
/// `propagator` and `gauge` are handles that have not been freed; `options` is a text with a final zero; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_propagator_smear(
    propagator: *const fe_propagator,
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *mut *mut fe_propagator,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(propagator, "propagator", |propagator| {
            let fe_propagator { device, part, kind, .. } = propagator;
            let (gauge, mut given) = (beside(gauge, "gauge", device)?, options(options_json)?);
            let smearing = smearing(&mut given, Some(gauge), part)?.ok_or_else(|| refused("gauge", "no links"))?;
            given.finish(&["width", "steps", "momentum"])?;
            make(out, || {
                let field = smearing.copy_of(device.tasks(), part, &propagator.field)?;
                Ok(fe_propagator { device: device.clone(), field: Rc::new(field), part: *part, kind: *kind })
            })
        })
    }
}

/// Frees a propagator.
///
/// # Safety
/// `propagator` is null or a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_propagator_free(propagator: *mut fe_propagator) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { free(propagator) }
}

/// *Collective.* Contracts the propagators of a quark and an antiquark (`other`, null for the same) to correlators, which are stored in an
/// array.
///
/// `options` is a JSON object with `hadron`, `origin` (x, y, z, t of the source) and `momenta` (a list of three whole numbers each, in units
/// of 2π/L). Hadrons, their other options and the axes of the array are: `"mesons"` with `pairs` of numbers of Γ at sink and source:
/// momentum, pair, time; `"nucleon"` with `antiperiodic`: momentum, parity, time; `"staggered-mesons"`: meson, momentum, time;
/// `"staggered-nucleon"` with `antiperiodic` and `milc_phases`: momentum, time; `"charge"` with `source` and `antiperiodic`, from a
/// propagator and a sequential one, which needs `gauge`: momentum, time. Γ has the number a + 2b + 4c + 8d for γ_x^a γ_y^b γ_z^c γ_t^d, so
/// that the pion is 15.
///
/// # Safety
/// `quark` is a handle that has not been freed; `other` and `gauge` are such handles or null; `options` is a text with a final zero; `out`
/// describes memory that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_contract(
    quark: *const fe_propagator,
    other: *const fe_propagator,
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *const fe_array,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(quark, "quark", |quark| {
            let (device, part) = (&quark.device, quark.part);
            let request: Contraction = options(options_json)?.contraction()?;
            let other = if other.is_null() { quark } else { beside(other, "other", device)? };
            let gauge = links(gauge, device)?;
            if other.part != part || gauge.is_some_and(|gauge| gauge.own.part != part) {
                return Err(refused("other", "quark, antiquark and links are on different lattices"));
            }
            if [quark.kind, other.kind] != [request.kind(); 2] {
                return Err(refused("quark", "the hadron needs propagators of other quarks: Wilson-like or staggered"));
            }
            request.check(&part, device.tasks().place())?;
            let array = given(out, "out")?.check("out", device)?;
            let shape = request.shape(&part);
            array.expect_shape("out", &shape)?;
            let links = gauge.map(|gauge| &*gauge.own.gauge);
            array.write(&request.correlators(&quark.field, &other.field, links)?);
            leave_record(json!({ "shape": shape }));
            Ok(())
        })
    }
}
