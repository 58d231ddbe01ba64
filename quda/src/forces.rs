//! Forces of quarks from solutions of applications.
use crate::check::{Mistakes, check_size, count, given, is_on};
use crate::enums::*;
use crate::links::{LoadedClover, LoadedLinks, taken};
use crate::memory::Width;
use crate::momenta::{put, take};
use crate::operator::{Quarks, Wanted, WilsonQuarks, read, wilson_like};
use crate::order::{Fields, Sites};
use crate::state::State;
use crate::structs::{QudaGaugeParam, QudaInvertParam};
use ferrite::Precision;
use ferrite::field::host::HostSpinor;
use ferrite::field::{DeviceField, FullField, GaugeField};
use ferrite::hmc::fermions::{QuarkOperator, QuarkSmearing};
use ferrite::hmc::force::Force;
use ferrite::hmc::hop_force;
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::wilson::WilsonQuarks as EvolvingQuarks;
use ferrite::hmc::wilson::determinant::BlockDeterminant;
use ferrite::hmc::wilson::shifted::kick_by_solutions;
use ferrite::operators::fat_links::PathCoefficients;
use ferrite::operators::{Schur, StaggeredParams, StaggeredPhases, TimeBoundary};
use ferrite_tasks::bounds::number;
use ferrite_tasks::host_fields::HostFields;
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;

/// Largest number of vectors in a call.
const MOST_VECTORS: usize = 1024;

/// Vectors of the force of improved staggered quarks, with their coefficients.
#[derive(Clone, Debug)]
pub struct HisqVectors {
    /// Fields with X on the even and D X on the odd sites.
    pub fields: Vec<*mut c_void>,
    /// Precision of the fields.
    pub width: Width,
    /// Coefficient of each vector.
    pub weights: Vec<f64>,
    /// Correction ε of the Naik term of each vector.
    pub epsilons: Vec<f64>,
}

impl HisqVectors {
    /// Reads the vectors and coefficients of a call: for each vector the coefficients of one hop and of three, and then for each of the last
    /// `with_epsilon` vectors those of its correction ε.
    ///
    /// # Errors
    /// Coefficients that are not those of HISQ.
    ///
    /// # Safety
    /// `quarks` has `number` pointers, and `coefficients` has `number` + `with_epsilon` pointers to two numbers.
    pub unsafe fn of(
        quarks: *mut *mut c_void,
        (number, with_epsilon): (i32, i32),
        coefficients: *const *mut f64,
        width: Width,
    ) -> Outcome<Self> {
        let count = count("num", number, MOST_VECTORS)?;
        let with_epsilon = usize::try_from(with_epsilon).ok().filter(|with| *with <= count);
        let with_epsilon =
            with_epsilon.ok_or_else(|| Failure::refused(format!("num_naik: expected a number from 0 to {count}")))?;
        if quarks.is_null() || coefficients.is_null() {
            return Err(Failure::refused("quark or coeff is a null pointer"));
        }
        // SAFETY: the caller's promise.
        let (fields, rows) = unsafe {
            (std::slice::from_raw_parts(quarks, count), std::slice::from_raw_parts(coefficients, count + with_epsilon))
        };
        let row = |j: usize| match rows[j].is_null() {
            true => Err(Failure::refused("coeff: a row is a null pointer")),
            // SAFETY: as above.
            false => Ok(unsafe { [*rows[j], *rows[j].add(1)] }),
        };
        let (mut weights, mut epsilons) = (Vec::new(), Vec::new());
        for j in 0..count {
            let [hop, three_hops] = row(j)?;
            // The correction adds ε/8 to one hop and −ε/24 to three.
            let epsilon = match (j + with_epsilon).checked_sub(count) {
                None => 0.0,
                Some(k) => {
                    let [one, three] = row(count + k)?;
                    if (three + one / 3.0).abs() > ROUNDING * hop.abs() {
                        return Err(Failure::refused(format!(
                            "coeff[{}] = {one}, {three}: expected c and −c/3, as of the correction of the Naik term",
                            count + k
                        )));
                    }
                    8.0 * one / hop
                }
            };
            if !hop.is_finite() || !epsilon.is_finite() || (three_hops + hop / 24.0).abs() > ROUNDING * hop.abs() {
                return Err(Failure::refused(format!(
                    "coeff[{j}] = {hop}, {three_hops}: expected finite numbers c and −c/24, as of HISQ quarks"
                )));
            }
            weights.push(hop);
            // One ε for all vectors of a quark, whose coefficients are rounded.
            let known = epsilons.iter().copied().find(|known: &f64| (known - epsilon).abs() < ROUNDING);
            epsilons.push(known.unwrap_or(epsilon));
        }
        Ok(HisqVectors { fields: fields.to_vec(), width, weights, epsilons })
    }
}

/// Largest difference of coefficients that are the same: applications may keep them in single precision.
const ROUNDING: f64 = 1e-6;

/// Checks that the path coefficients of a call are those of HISQ, for links with staggered phases.
///
/// # Safety
/// The pointers are null or have six numbers.
unsafe fn check_paths(second: *const f64, first: *const f64) -> Outcome {
    // Each staple brings a sign from the phases.
    let with_phases = |c: PathCoefficients| [c.one_link, c.naik, -c.three, c.five, -c.seven, c.lepage];
    for (name, given, expected) in [
        ("fat7_coeff", first, with_phases(PathCoefficients::fat7())),
        ("level2_coeff", second, with_phases(PathCoefficients::hisq(0.0))),
    ] {
        if given.is_null() {
            return Err(Failure::refused(format!("{name}: the pointer is null")));
        }
        // SAFETY: the caller's promise.
        let given = unsafe { std::slice::from_raw_parts(given, 6) };
        if given.iter().zip(expected).any(|(given, expected)| (given - expected).abs() > ROUNDING) {
            return Err(Failure::refused(format!("{name} = {given:?} is not offered: HISQ has {expected:?}")));
        }
    }
    Ok(())
}

/// Adds dt times the force of HISQ quarks to momenta.
///
/// # Safety
/// The fields of the vectors are on the lattice of the links.
pub unsafe fn kick_hisq(
    state: &State,
    thin: &LoadedLinks,
    vectors: &HisqVectors,
    dt: f64,
    momenta: &mut MomentumField,
) -> Outcome {
    let (device, part) = (state.device()?, thin.links.part);
    let domain = device.domain(&part)?;
    let links = GaugeField::upload(&domain, &thin.special_unitary()?.gauge)?;
    let links = EvolvingLinks::new(&links, Precision::Double)?;
    // Chroma's phases belong to −D.
    let (phases, sign) = match thin.factors.phases {
        QUDA_STAGGERED_PHASE_CHROMA => (StaggeredPhases::Lexicographic, -1.0),
        _ => (StaggeredPhases::Milc, 1.0),
    };
    let boundary = if thin.factors.is_antiperiodic { TimeBoundary::Antiperiodic } else { TimeBoundary::Periodic };
    let params = StaggeredParams { phases, ..StaggeredParams::new(0.0, boundary) };
    let fields = Fields { lattice: part.local, sites: Sites::All, width: vectors.width, is_chiral: false };
    let staggered = Quarks::Staggered { mass: 0.0, is_improved: true };
    let mut epsilons = vectors.epsilons.clone();
    epsilons.sort_by(f64::total_cmp);
    epsilons.dedup();
    for epsilon in epsilons {
        let chosen = || (0..vectors.weights.len()).filter(|j| vectors.epsilons[*j] == epsilon);
        let arrays: Vec<_> = chosen().map(|j| vectors.fields[j]).collect();
        let weights: Vec<_> = chosen().map(|j| sign * vectors.weights[j]).collect();
        // SAFETY: the caller's promise.
        let HostFields::Staggered(host) = unsafe { read(device, fields, staggered, "quark", &arrays) }? else {
            return Err(Failure::failed("the fields have spin"));
        };
        let on_device = FullField::of_host(&domain, &host)?;
        let operator = QuarkOperator::new(params, QuarkSmearing::Hisq { epsilon });
        hop_force(&operator, (&on_device.even, &on_device.odd), &weights, &links, dt, momenta)
            .map_err(Failure::failed)?;
    }
    Ok(())
}

/// Adds the force of HISQ quarks to momenta: vectors X on the even and D X on the odd sites. Without resident momenta, those of the
/// application are replaced by the force times dt.
///
/// # Safety
/// `momentum` and `u_link` have momenta and links as `param` describes them; the others are as for [`HisqVectors::of`] and `check_paths`.
pub unsafe fn hisq(
    momentum: *mut c_void,
    dt: f64,
    level2_coeff: *mut f64,
    fat7_coeff: *mut f64,
    _w_link: *const c_void,
    _v_link: *const c_void,
    u_link: *const c_void,
    quark: *mut *mut c_void,
    num: i32,
    num_naik: i32,
    coeff: *mut *mut f64,
    param: *mut QudaGaugeParam,
) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    number("dt", dt, "a finite number", |_| true)?;
    // SAFETY: as above.
    unsafe { check_paths(level2_coeff, fat7_coeff) }?;
    let width = Width::of("cpu_prec", param.cpu_prec)?;
    // SAFETY: as above.
    let vectors = unsafe { HisqVectors::of(quark, (num, num_naik), coeff, width) }?;
    let phased = QudaGaugeParam { staggered_phase_applied: 1, ..*param };
    State::with(|state| {
        // SAFETY: as above.
        let thin = unsafe { taken(state, "u_link", u_link.cast_mut(), &phased) }?;
        let mut momenta = match is_on(param.use_resident_mom) {
            // SAFETY: as above.
            true => unsafe { take(state, "momentum", momentum, param) }?,
            false => MomentumField::zero(&state.device()?.domain(&thin.links.part)?, Precision::Double)?,
        };
        // SAFETY: as above.
        unsafe { kick_hisq(state, &thin, &vectors, dt, &mut momenta) }?;
        // SAFETY: as above.
        unsafe { put(state, "momentum", momentum, param, momenta) }
    })
}

/// Returns quarks with the loaded clover term on evolving links, with the asymmetric complement.
///
/// # Errors
/// A clover term of the application, of which the dependence on the links is unknown.
pub fn clover_quarks(state: &State, kappa: f64) -> Outcome<(EvolvingQuarks, EvolvingLinks)> {
    let loaded = state.wilson()?;
    if let Some(LoadedClover::Given { .. }) = state.clover {
        return Err(Failure::refused(
            "the clover term is one of the application: forces and logarithms of determinants need a term that \
             loadCloverQuda makes from the resident links, with null pointers",
        ));
    }
    let operator = wilson_like(state, WilsonQuarks { kappa, has_clover: true, twist: 0.0 })?;
    let quarks = EvolvingQuarks::new(ferrite::operators::WilsonLike { schur: Schur::Asymmetric, ..operator });
    let domain = state.device()?.domain(&loaded.links.part)?;
    let links = GaugeField::upload(&domain, &loaded.special_unitary()?.gauge)?;
    Ok((quarks, EvolvingLinks::new(&links, Precision::Double)?))
}

/// Returns the even half of a field on the device.
pub fn even_half(domain: &ferrite::domain::Domain, field: &HostSpinor) -> Outcome<DeviceField> {
    Ok(FullField::of_host(domain, std::slice::from_ref(field))?.even)
}

/// Adds the force of quarks with a clover term to momenta: of Σ_j c_j φ†(M̂†M̂ + σ_j)⁻¹ φ from the solutions x_j on the even sites, and of
/// −n ln det A on the odd sites, where n is `multiplicity`.
///
/// # Safety
/// `mom` has momenta as `gauge_param` describes them; `x` has `nvector` fields as `inv_param` describes them, and `coeff` as many numbers.
pub unsafe fn clover(
    mom: *mut c_void,
    dt: f64,
    x: *mut *mut c_void,
    _p: *mut *mut c_void,
    coeff: *mut f64,
    kappa2: f64,
    ck: f64,
    nvector: i32,
    multiplicity: f64,
    _gauge: *mut c_void,
    gauge_param: *mut QudaGaugeParam,
    inv_param: *mut QudaInvertParam,
) -> Outcome {
    // SAFETY: the caller's promise.
    let (param, inverse) = unsafe { (given(gauge_param, "gauge_param")?, given(inv_param, "inv_param")?) };
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    check_size(inverse.struct_size, size_of::<QudaInvertParam>())?;
    number("dt", dt, "a finite number", |_| true)?;
    let count = count("nvector", nvector, MOST_VECTORS)?;
    let mut mistakes = Mistakes::default();
    mistakes.expect("dslash_type", "QudaDslashType", inverse.dslash_type, &[QUDA_CLOVER_WILSON_DSLASH]);
    let kinds = [QUDA_MATPC_EVEN_EVEN_ASYMMETRIC];
    mistakes.expect("matpc_type", "QudaMatPCType", inverse.matpc_type, &kinds);
    mistakes.expect("dagger", "QudaDagType", inverse.dagger, &[QUDA_DAG_YES]);
    let solutions = [QUDA_MATPCDAG_MATPC_SOLUTION];
    mistakes.expect("solution_type", "QudaSolutionType", inverse.solution_type, &solutions);
    let normalisations = [QUDA_KAPPA_NORMALIZATION];
    mistakes.expect("mass_normalization", "QudaMassNormalization", inverse.mass_normalization, &normalisations);
    mistakes.expect_0("use_resident_solution", inverse.use_resident_solution);
    let kappa = inverse.kappa;
    if (kappa2 + kappa * kappa).abs() > 1e-12 * kappa * kappa {
        mistakes.add(format!("kappa2 = {kappa2}: expected −κ² = {}", -kappa * kappa));
    }
    if multiplicity.fract() != 0.0 || !(0.0..=1e6).contains(&multiplicity) {
        mistakes.add(format!("multiplicity = {multiplicity}: expected a whole number of quarks"));
    }
    if x.is_null() || coeff.is_null() {
        mistakes.add("x or coeff is a null pointer");
    }
    mistakes.finish()?;
    // SAFETY: as above.
    let (x, coeff) = unsafe { (std::slice::from_raw_parts(x, count), std::slice::from_raw_parts(coeff, count)) };
    let wanted = Wanted::of(&QudaInvertParam { dagger: QUDA_DAG_NO, ..*inverse })?;
    State::with(|state| {
        let (quarks, links) = clover_quarks(state, kappa)?;
        let clover = match &state.clover {
            Some(LoadedClover::OfLinks { coefficients, .. }) => *coefficients,
            _ => [0.0; 2],
        };
        if clover.iter().any(|coefficient| (8.0 * ck + coefficient).abs() > 1e-12 * coefficient.abs()) {
            return Err(Failure::refused(format!(
                "ck = {ck}: expected −1/8 of the coefficient {} of the clover term",
                clover[0]
            )));
        }
        // SAFETY: as above.
        let mut momenta = unsafe { take(state, "mom", mom, param) }?;
        if is_on(param.overwrite_mom) {
            momenta.scale(0.0)?;
        }
        let (device, part) = (state.device()?, state.wilson()?.links.part);
        let domain = device.domain(&part)?;
        // SAFETY: as above.
        let HostFields::Wilson(host) = unsafe { read(device, wanted.fields(part.local), wanted.quarks, "x", x) }?
        else {
            return Err(Failure::failed("the fields have no spin"));
        };
        // QUDA's M̂ is 2κ times Ferrite's.
        let weight = |coefficient: &f64| 4.0 * kappa * kappa * coefficient;
        let pair = |(field, coefficient): (&HostSpinor, &f64)| Ok((weight(coefficient), even_half(&domain, field)?));
        let solutions = host.iter().zip(coeff).map(pair).collect::<Outcome<Vec<_>>>()?;
        kick_by_solutions(&quarks, &links, &solutions, dt, &mut momenta).map_err(Failure::failed)?;
        if multiplicity != 0.0 {
            let determinant = BlockDeterminant::new("clover term".into(), quarks, multiplicity as u32);
            determinant.kick(&links, dt, &mut momenta).map_err(Failure::failed)?;
        }
        // SAFETY: as above.
        unsafe { put(state, "mom", mom, param, momenta) }
    })
}
