//! Operators on resident links, and the requests of applications for them.
use crate::check::Mistakes;
use crate::define::UNSET_REAL;
use crate::enums::*;
use crate::links::{LoadedClover, LoadedLinks, multiply};
use crate::memory::Width;
use crate::order::{Fields, Sites};
use crate::staggered::sign_of_phases;
use crate::state::State;
use crate::structs::QudaInvertParam;
use ferrite::field::host::{ColourVector, HostGauge, Spinor};
use ferrite::field::{DeviceClover, HermitianBlock};
use ferrite::lattice::Section;
use ferrite::operators::fat_links::Improvement;
use ferrite::operators::{
    Anisotropy, CloverParams, Operator, Schur, StaggeredOperator, StaggeredParams, StaggeredPhases, TWISTED,
    TWISTED_CLOVER, TimeBoundary, WilsonLike, WilsonParams,
};
use ferrite_tasks::dirac::LinkedDirac;
use ferrite_tasks::grid_device::GridDevice;
use ferrite_tasks::host_fields::HostFields;
use ferrite_tasks::{Failure, Outcome, with_fields};
use std::ffi::c_void;
use std::sync::Arc;

/// Operator on resident links, with what the device keeps of them.
pub struct CachedOperator {
    hops: Hops,
    dirac: LinkedDirac,
    /// Hopping parameter for which the device has the clover term of the application.
    given_for: Option<f64>,
}

impl CachedOperator {
    /// Changes the operator to one with the same hops.
    pub fn change(&mut self, operator: Operator) {
        self.dirac.set_operator(operator);
    }
}

/// Kind of hops, which determines the links of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hops {
    Wilson,
    Staggered,
    Improved,
}

/// Quarks of an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quarks {
    /// Wilson quarks, with a clover term or without.
    Wilson(WilsonQuarks),
    /// Staggered quarks, M = 2m − D.
    Staggered {
        /// Mass.
        mass: f64,
        /// Whether quarks hop over fat and long links.
        is_improved: bool,
    },
}

/// Wilson quarks of one flavour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonQuarks {
    /// Hopping parameter κ.
    pub kappa: f64,
    /// Whether the operator has the loaded clover term.
    pub has_clover: bool,
    /// Twisted mass μ: M = 1 + 2iκμγ5 − κ D, or with the clover term instead of 1.
    pub twist: f64,
}

impl WilsonQuarks {
    /// Returns whether A, the part of M that does not hop, is a number.
    pub fn has_number(self) -> bool {
        !self.has_clover && self.twist == 0.0
    }
    /// Returns the quarks with the opposite twisted mass, whose M is γ5 M† γ5.
    pub fn partner(self) -> Self {
        WilsonQuarks { twist: -self.twist, ..self }
    }
}

/// Matrix of a system or a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// M or M†.
    Plain {
        /// Whether the matrix is M†.
        dagger: bool,
    },
    /// M†M.
    Normal,
}

/// Even-odd complement, on the sites of one parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complement {
    /// Parity of the sites.
    pub parity: usize,
    /// Whether the complement is A − κ² D A⁻¹ D, and not its product with A⁻¹.
    pub is_asymmetric: bool,
}

/// Request for a product or a solve, made after a check of all fields that change the answer.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Quarks of the operator.
    pub quarks: Quarks,
    /// Normalisation of products and solutions.
    pub normalisation: QudaMassNormalization,
    /// Matrix of the system or product.
    pub form: Form,
    /// Even-odd complement; `None` for the operator on all sites.
    pub complement: Option<Complement>,
    /// Precision of fields.
    pub width: Width,
    /// Whether fields have the chiral basis.
    pub is_chiral: bool,
}

impl Quarks {
    /// Checks the fields of a structure that determine an operator.
    pub fn of(param: &QudaInvertParam, mistakes: &mut Mistakes) -> Self {
        let types = [
            QUDA_WILSON_DSLASH,
            QUDA_CLOVER_WILSON_DSLASH,
            QUDA_TWISTED_MASS_DSLASH,
            QUDA_TWISTED_CLOVER_DSLASH,
            QUDA_STAGGERED_DSLASH,
            QUDA_ASQTAD_DSLASH,
        ];
        mistakes.expect("dslash_type", "QudaDslashType", param.dslash_type, &types);
        if [QUDA_STAGGERED_DSLASH, QUDA_ASQTAD_DSLASH].contains(&param.dslash_type) {
            if !param.mass.is_finite() {
                mistakes.add(format!("mass = {}: expected a finite number", param.mass));
            }
            let is_improved = param.dslash_type == QUDA_ASQTAD_DSLASH;
            return Quarks::Staggered { mass: param.mass, is_improved };
        }
        if !(param.kappa.is_finite() && param.kappa != 0.0) {
            mistakes.add(format!("kappa = {}: expected a number other than 0", param.kappa));
        }
        let has_clover = [QUDA_CLOVER_WILSON_DSLASH, QUDA_TWISTED_CLOVER_DSLASH].contains(&param.dslash_type);
        let mut twist = 0.0;
        if [QUDA_TWISTED_MASS_DSLASH, QUDA_TWISTED_CLOVER_DSLASH].contains(&param.dslash_type) {
            mistakes.expect("twist_flavor", "QudaTwistFlavorType", param.twist_flavor, &[QUDA_TWIST_SINGLET]);
            if !param.mu.is_finite() || param.mu == UNSET_REAL {
                mistakes.add(format!("mu = {}: expected a finite number", param.mu));
            }
            twist = param.mu;
        }
        Quarks::Wilson(WilsonQuarks { kappa: param.kappa, has_clover, twist })
    }
    /// Returns whether the quarks are staggered.
    pub fn are_staggered(self) -> bool {
        matches!(self, Quarks::Staggered { .. })
    }
    fn hops(self) -> Hops {
        match self {
            Quarks::Wilson(_) => Hops::Wilson,
            Quarks::Staggered { is_improved: true, .. } => Hops::Improved,
            Quarks::Staggered { is_improved: false, .. } => Hops::Staggered,
        }
    }
}

/// Checks the fields of a structure that describe the fields in memory.
pub fn expect_fields(param: &QudaInvertParam, mistakes: &mut Mistakes) {
    mistakes.expect_location("input_location", param.input_location);
    mistakes.expect_location("output_location", param.output_location);
    mistakes.expect("dirac_order", "QudaDiracFieldOrder", param.dirac_order, &[QUDA_DIRAC_ORDER]);
    if !is_staggered(param) {
        mistakes.expect("gamma_basis", "QudaGammaBasis", param.gamma_basis, &BASES);
    }
}

/// Bases of spinors that applications may have.
const BASES: [QudaGammaBasis; 2] = [QUDA_DEGRAND_ROSSI_GAMMA_BASIS, QUDA_CHIRAL_GAMMA_BASIS];

/// Returns whether a structure describes spinors in the chiral basis.
pub fn is_chiral(param: &QudaInvertParam) -> bool {
    !is_staggered(param) && param.gamma_basis == QUDA_CHIRAL_GAMMA_BASIS
}

fn is_staggered(param: &QudaInvertParam) -> bool {
    [QUDA_STAGGERED_DSLASH, QUDA_ASQTAD_DSLASH, QUDA_LAPLACE_DSLASH].contains(&param.dslash_type)
}

impl Wanted {
    /// Checks the fields of a structure that change the answer, and collects what is wrong with them.
    pub fn of(param: &QudaInvertParam) -> Outcome<Self> {
        let mut mistakes = Mistakes::default();
        let quarks = Quarks::of(param, &mut mistakes);
        expect_fields(param, &mut mistakes);
        let solutions =
            [QUDA_MAT_SOLUTION, QUDA_MATDAG_MAT_SOLUTION, QUDA_MATPC_SOLUTION, QUDA_MATPCDAG_MATPC_SOLUTION];
        mistakes.expect("solution_type", "QudaSolutionType", param.solution_type, &solutions);
        mistakes.expect("dagger", "QudaDagType", param.dagger, &[QUDA_DAG_NO, QUDA_DAG_YES]);
        let normalisations = [QUDA_KAPPA_NORMALIZATION, QUDA_MASS_NORMALIZATION, QUDA_ASYMMETRIC_MASS_NORMALIZATION];
        mistakes.expect("mass_normalization", "QudaMassNormalization", param.mass_normalization, &normalisations);
        if param.distance_pc_alpha0 != 0.0 && param.distance_pc_alpha0 != UNSET_REAL && param.distance_pc_t0 >= 0 {
            mistakes.add(
                "distance_pc_alpha0 and distance_pc_t0: distance preconditioning is not offered: expected 0 and -1",
            );
        }
        if param.tm_rho != 0.0 && param.tm_rho != UNSET_REAL {
            mistakes.add(format!("tm_rho = {} is not offered: expected 0", param.tm_rho));
        }
        mistakes.expect_0("use_resident_solution", param.use_resident_solution);
        mistakes.expect_0("make_resident_solution", param.make_resident_solution);
        let is_normal = [QUDA_MATDAG_MAT_SOLUTION, QUDA_MATPCDAG_MATPC_SOLUTION].contains(&param.solution_type);
        let dagger = param.dagger == QUDA_DAG_YES;
        if is_normal && dagger {
            mistakes.add("dagger = QUDA_DAG_YES is not offered for M†M: expected QUDA_DAG_NO");
        }
        let is_complement = [QUDA_MATPC_SOLUTION, QUDA_MATPCDAG_MATPC_SOLUTION].contains(&param.solution_type);
        let kinds =
            [QUDA_MATPC_EVEN_EVEN, QUDA_MATPC_ODD_ODD, QUDA_MATPC_EVEN_EVEN_ASYMMETRIC, QUDA_MATPC_ODD_ODD_ASYMMETRIC];
        if is_complement {
            mistakes.expect("matpc_type", "QudaMatPCType", param.matpc_type, &kinds);
        }
        mistakes.finish()?;
        let complement = is_complement.then(|| Complement::of(param.matpc_type));
        let form = if is_normal { Form::Normal } else { Form::Plain { dagger } };
        let (width, is_chiral) = (Width::of("cpu_prec", param.cpu_prec)?, is_chiral(param));
        Ok(Wanted { quarks, normalisation: param.mass_normalization, form, complement, width, is_chiral })
    }
    /// Returns the fields of the application.
    pub fn fields(&self, lattice: ferrite::lattice::Lattice) -> Fields {
        let sites = self.complement.map_or(Sites::All, |complement| Sites::Parity(complement.parity));
        Fields { lattice, sites, width: self.width, is_chiral: self.is_chiral }
    }
}

impl Complement {
    /// Returns the complement of a kind of QUDA.
    pub fn of(kind: QudaMatPCType) -> Self {
        Complement {
            parity: usize::from([QUDA_MATPC_ODD_ODD, QUDA_MATPC_ODD_ODD_ASYMMETRIC].contains(&kind)),
            is_asymmetric: [QUDA_MATPC_EVEN_EVEN_ASYMMETRIC, QUDA_MATPC_ODD_ODD_ASYMMETRIC].contains(&kind),
        }
    }
}

/// Reads fields of an application.
///
/// # Safety
/// The arrays have the fields, and nothing writes to them during the call.
pub unsafe fn read(
    device: &GridDevice,
    fields: Fields,
    quarks: Quarks,
    name: &str,
    arrays: &[*mut c_void],
) -> Outcome<HostFields> {
    let backend = &**device.backend();
    match quarks.are_staggered() {
        true => {
            // SAFETY: the caller's promise.
            let read = |array: &*mut c_void| unsafe { fields.read::<ColourVector>(backend, name, *array) };
            Ok(HostFields::Staggered(arrays.iter().map(read).collect::<Outcome<_>>()?))
        }
        false => {
            // SAFETY: the caller's promise.
            let read = |array: &*mut c_void| unsafe { fields.read::<Spinor>(backend, name, *array) };
            Ok(HostFields::Wilson(arrays.iter().map(read).collect::<Outcome<_>>()?))
        }
    }
}

/// Writes fields to memory of an application.
///
/// # Safety
/// The arrays have room for the fields, and nothing else uses them during the call.
pub unsafe fn write(
    device: &GridDevice,
    fields: Fields,
    name: &str,
    arrays: &[*mut c_void],
    from: &HostFields,
) -> Outcome {
    let backend = &**device.backend();
    with_fields!(from, from => {
        for (array, field) in arrays.iter().zip(from) {
            // SAFETY: the caller's promise.
            unsafe { fields.write(backend, name, *array, field) }?;
        }
        Ok(())
    })
}

/// Returns the part of the lattice that fields of an operator are on.
pub fn part_of(state: &State, quarks: Quarks) -> Outcome<Section> {
    let of = |links: &Option<LoadedLinks>| links.as_ref().map(|loaded| loaded.links.part);
    match quarks {
        Quarks::Staggered { is_improved: true, .. } => of(&state.fat).ok_or_else(no_improved_links),
        _ => Ok(state.wilson()?.links.part),
    }
}

fn no_improved_links() -> Failure {
    Failure::refused(
        "there are no fat or long links: call loadGaugeQuda with QUDA_ASQTAD_FAT_LINKS and QUDA_ASQTAD_LONG_LINKS first",
    )
}

/// Returns the links −U of a staggered operator without the signs of MILC's phases, which kernels apply again: QUDA's M = 2m − D is twice
/// Ferrite's m + D/2 on these links.
fn without_phases(loaded: &LoadedLinks) -> Outcome<HostGauge> {
    let mut gauge = HostGauge::clone(loaded.links.host()?);
    multiply(&mut gauge, &loaded.links.part, |site, mu| -StaggeredPhases::Milc.sign(site, mu));
    Ok(gauge)
}

/// Returns the links of a thin staggered operator: those of SU(3) with −1, with the phases that the application gave them, and without
/// MILC's phases. [`without_phases`] says why.
fn staggered_links(loaded: &LoadedLinks) -> Outcome<HostGauge> {
    let links = loaded.special_unitary()?;
    if (links.factor_in_space - 1.0).abs() > 1e-5 {
        return Err(Failure::refused("the links in space have a factor, but staggered quarks have no anisotropy"));
    }
    let (mut gauge, factors) = (HostGauge::clone(&links.gauge), loaded.factors);
    multiply(&mut gauge, &loaded.links.part, |site, mu| {
        -StaggeredPhases::Milc.sign(site, mu) * sign_of_phases(factors, site, mu)
    });
    Ok(gauge)
}

/// Returns the operator for quarks, whose signs of the boundary condition are in the links if the quarks are improved.
pub fn operator(state: &State, quarks: Quarks) -> Outcome<Operator> {
    match quarks {
        Quarks::Wilson(quarks) => Ok(wilson_like(state, quarks)?.into()),
        Quarks::Staggered { mass, is_improved: true, .. } => {
            Ok(StaggeredOperator::hisq(StaggeredParams::new(mass, TimeBoundary::Periodic), 0.0).into())
        }
        Quarks::Staggered { mass, is_improved: false, .. } => {
            let boundary = boundary(state.wilson()?);
            Ok(StaggeredOperator::naive(StaggeredParams::new(mass, boundary)).into())
        }
    }
}

fn boundary(loaded: &LoadedLinks) -> TimeBoundary {
    if loaded.factors.is_antiperiodic { TimeBoundary::Antiperiodic } else { TimeBoundary::Periodic }
}

/// Returns the operator of Wilson quarks on the resident links. A clover term of the application is not part of it: [`prepare`] gives it to
/// the device.
pub fn wilson_like(state: &State, WilsonQuarks { kappa, has_clover, twist }: WilsonQuarks) -> Outcome<WilsonLike> {
    let loaded = state.wilson()?;
    let (links, anisotropy) = (loaded.special_unitary()?, loaded.factors.anisotropy);
    let found = links.factor_in_space;
    if (found * anisotropy - 1.0).abs() > 1e-5 {
        return Err(Failure::refused(format!(
            "the links in space have the norm {found}, but the anisotropy {anisotropy} makes it {}: load the links with \
             their factor",
            1.0 / anisotropy
        )));
    }
    // M = 1/(2κ) − hops, whose diagonal is 1 + 3/ξ + m.
    let mass = 0.5 / kappa - 1.0 - 3.0 / anisotropy;
    let wilson = WilsonParams { mass, boundary: boundary(loaded), anisotropy: Anisotropy { xi: anisotropy, nu: 1.0 } };
    if !has_clover {
        return Ok(match twist == 0.0 {
            true => wilson.into(),
            false => WilsonLike::new(&TWISTED, wilson, [twist, 0.0, 0.0], Schur::default()),
        });
    }
    let none = || Failure::refused("there is no clover term: call loadCloverQuda first");
    let [space, time] = match state.clover.as_ref().ok_or_else(none)? {
        // The coefficients are those of 1 − κ D, which is 2κ M.
        LoadedClover::OfLinks { coefficients, gauge } => {
            let differs = || {
                gauge.lattice() != links.gauge.lattice()
                    || gauge.numbers().iter().zip(links.gauge.numbers()).any(|(a, b)| (a - b).norm() > 1e-5)
            };
            if !Arc::ptr_eq(gauge, &links.gauge) && differs() {
                return Err(Failure::refused(
                    "the clover term was made from other links than those that are loaded: load the clover term again",
                ));
            }
            coefficients.map(|coefficient| coefficient / kappa)
        }
        LoadedClover::Given { .. } if twist != 0.0 => {
            return Err(Failure::refused(
                "dslash_type = QUDA_TWISTED_CLOVER_DSLASH is not offered with a clover term of the application: let \
                 loadCloverQuda make the term from the resident links, with null pointers",
            ));
        }
        LoadedClover::Given { .. } => [0.0; 2],
    };
    Ok(match twist == 0.0 {
        true => CloverParams { wilson, space, time }.with_schur(Schur::default()),
        false => WilsonLike::new(&TWISTED_CLOVER, wilson, [space, time, twist], Schur::default()),
    })
}

/// Makes the operator on the resident links, or changes the one that is there.
pub fn prepare(state: &mut State, quarks: Quarks) -> Outcome {
    let operator = operator(state, quarks)?;
    let diagonal = operator.parameters::<WilsonLike>().map_or(1.0, |operator| operator.wilson.diagonal());
    if let Some(known) = &mut state.operator
        && known.hops == quarks.hops()
    {
        known.dirac.set_operator(operator);
        return give_clover(state, quarks, diagonal);
    }
    let (device, part) = (state.device()?, part_of(state, quarks)?);
    let dirac = match quarks.hops() {
        Hops::Wilson => LinkedDirac::new(device, operator, part, state.wilson()?.special_unitary()?.gauge.clone())?,
        Hops::Staggered => LinkedDirac::new(device, operator, part, Arc::new(staggered_links(state.wilson()?)?))?,
        Hops::Improved => {
            let (Some(fat), Some(long)) = (&state.fat, &state.long) else { return Err(no_improved_links()) };
            if fat.links.part != long.links.part {
                return Err(Failure::refused("fat and long links are on different lattices: load both again"));
            }
            let (fat, long) = (without_phases(fat)?, without_phases(long)?);
            LinkedDirac::improved(operator, part, Improvement::from_host(&device.domain(&part)?, &fat, &long)?)
        }
    };
    state.operator = Some(CachedOperator { hops: quarks.hops(), dirac, given_for: None });
    crate::call::note("copies links to the device")?;
    give_clover(state, quarks, diagonal)
}

/// Gives the clover term of the application to the device, if there is one and the operator has it. `diagonal` is the operator's value where
/// links are 1, without hops.
fn give_clover(state: &mut State, quarks: Quarks, diagonal: f64) -> Outcome {
    let (Quarks::Wilson(WilsonQuarks { kappa, has_clover: true, .. }), Some(LoadedClover::Given { blocks })) =
        (quarks, &state.clover)
    else {
        return Ok(());
    };
    let Some(known) = state.operator.as_mut().filter(|known| known.given_for != Some(kappa)) else { return Ok(()) };
    // Ferrite's A is 1/(2κ) times the one of the application.
    let scaled: Vec<_> = blocks.iter().map(|both| both.map(|block| scaled(&block, 0.5 / kappa))).collect();
    let configuration = known.dirac.configuration();
    configuration.set_clover_term(DeviceClover::of_host(configuration.domain(), diagonal, &scaled)?);
    known.given_for = Some(kappa);
    Ok(())
}

fn scaled(block: &HermitianBlock, factor: f64) -> HermitianBlock {
    HermitianBlock {
        diagonal: block.diagonal.map(|number| factor * number),
        lower: block.lower.map(|number| factor * number),
    }
}

/// Returns the device and the operator that was prepared last.
pub fn prepared(state: &State) -> Outcome<(&GridDevice, &LinkedDirac)> {
    let none = || Failure::failed("there is no operator");
    Ok((state.device()?, &state.operator.as_ref().ok_or_else(none)?.dirac))
}
