//! Memory of a run that makes an ensemble and measures on it: links, momenta, pseudofermions, and the noise vectors of condensates, which
//! reuse the memory of forces.
use super::condensate::condensate_bytes;
use crate::domain::Part;
use crate::field::{DeviceClover, FieldShape};
use crate::halo::{Exchanges, HaloField, Needs};
use crate::hmc::fermions::{QuarkOperator, QuarkSmearing};
use crate::hmc::momenta::MomentumField;
use crate::hmc::quarks::MonomialNeeds;
use crate::hmc::stout::StoutSmearing;
use crate::multigrid::{MultigridParams, OUTER_DIRECTIONS};
use crate::solve::widths;
use gpu_kernels::Precision;

/// Properties of an [ensemble](crate::hmc) that determine its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct EnsembleProperties {
    /// Whether links and momenta are in single precision.
    pub single_links: bool,
    /// Largest number of pseudofermions of a monomial of staggered quarks; 0 without staggered quarks.
    pub pseudofermions: usize,
    /// Whether some staggered quarks hop over fat and long links.
    pub improved: bool,
    /// Whether some quarks are HISQ quarks, whose fat and long links share the links of a first level.
    pub hisq: bool,
    /// Number of different hopping terms of staggered quarks. Each hopping term has its own links; several monomials may share a hopping
    /// term.
    pub operators: usize,
    /// Number of noise vectors for which systems of a condensate are solved together; 0 without condensates.
    pub noise: usize,
    /// Total number of levels of stout links, summed over the different smearings of the quarks.
    pub stout_levels: usize,
    /// Whether [identities](crate::hmc::identities) are measured.
    pub identities: bool,
    /// Properties of Wilson-like quarks, if there are any.
    pub wilson: Option<WilsonVectors>,
}

/// Properties of Wilson-like quarks that determine their memory.
#[derive(Clone, Debug, PartialEq)]
pub struct WilsonVectors {
    /// Number of pseudofermions of all parts of the action.
    pub pseudofermions: usize,
    /// Largest number of pseudofermions that share a rational function; 0 without rational functions.
    pub rational: usize,
    /// Whether some tables of quarks have two flavours, which need no rational function.
    pub exact: bool,
    /// Whether forces and their solvers are in single precision.
    pub single: bool,
    /// Whether the diagonal term of some operator consists of blocks that depend on the links, such as a clover term.
    pub has_blocks: bool,
    /// Whether the diagonal term of some operator is the exponential of a clover term.
    pub exponential: bool,
    /// Number of stored solutions from which initial guesses are made, for all pseudofermions together.
    pub guesses: usize,
    /// Multigrid parameters of all quarks that use multigrid. The setup of each is kept for a whole trajectory.
    pub multigrid: Vec<MultigridParams>,
}

/// Number of vectors of a monomial for each pseudofermion: the number of poles that its rational functions rarely exceed.
const POLES: usize = 24;

impl EnsembleProperties {
    /// Returns the properties of an ensemble with these quarks. The first element of `single` states whether links and momenta are in
    /// single precision; the second one, whether the solvers of molecular dynamics are. `noise` is the number of noise vectors of a
    /// condensate that are solved for together, and `identities` whether identities are measured.
    pub fn of(quarks: &[MonomialNeeds], single: [bool; 2], noise: usize, identities: bool) -> Self {
        let mut operators: Vec<QuarkOperator> = Vec::new();
        let mut stout: Vec<StoutSmearing> = Vec::new();
        for needs in quarks {
            operators.extend(needs.operator.filter(|operator| !operators.contains(operator)));
            stout.extend(needs.stout.filter(|smearing| !stout.contains(smearing)));
        }
        let (staggered, wilson): (Vec<&MonomialNeeds>, Vec<&MonomialNeeds>) =
            quarks.iter().partition(|needs| needs.operator.is_some());
        EnsembleProperties {
            single_links: single[0],
            pseudofermions: staggered.iter().map(|needs| needs.pseudofermions).max().unwrap_or(0),
            improved: operators.iter().any(|operator| operator.smearing.is_improved()),
            hisq: operators.iter().any(|operator| matches!(operator.smearing, QuarkSmearing::Hisq { .. })),
            operators: operators.len(),
            noise,
            identities,
            stout_levels: stout.iter().map(|smearing| smearing.levels).sum(),
            wilson: (!wilson.is_empty()).then(|| WilsonVectors {
                pseudofermions: wilson.iter().map(|needs| needs.pseudofermions).sum(),
                rational: wilson.iter().map(|needs| needs.rational).max().unwrap_or(0),
                exact: wilson.iter().any(|needs| needs.rational == 0),
                single: single[1],
                has_blocks: wilson.iter().any(|needs| needs.has_blocks),
                exponential: wilson.iter().any(|needs| needs.is_exponential),
                guesses: wilson.iter().map(|needs| needs.guesses).sum(),
                multigrid: wilson.iter().filter_map(|needs| needs.multigrid).collect(),
            }),
        }
    }
    /// Returns the device memory of a process whose part of the lattice is `part`, in bytes for each named use.
    pub fn memory(&self, part: Part) -> Needs {
        let (sites, wide) = (part.sites(), part.bordered_sites());
        let (links, momenta) =
            (part.links_bytes(Precision::Double), 2 * MomentumField::bytes_for(Precision::Double, sites));
        let mut needs = vec![("links and their copies", 6 * links), ("momenta", 2 * momenta)];
        if self.identities {
            // The identities need the force of the whole action and the gradient of loops, which is one field more than molecular dynamics
            // needs.
            needs.push(("identities", momenta));
        }
        let mut exchanges = Exchanges::of(part).border(Precision::Double);
        if self.single_links {
            exchanges = exchanges.border(Precision::Single);
        }
        if self.pseudofermions > 0 {
            // Forces need solutions and directions for all poles, and pairs of vectors on the bordered lattice.
            let vector = |sites| FieldShape::colours(Precision::Double, 1).bytes(sites);
            let of_forces = self.pseudofermions * ((2 * POLES + 8) * vector(sites) + 2 * POLES * vector(wide));
            // Condensates are measured while forces need no memory, so only the larger of both counts.
            let vectors = of_forces.max(condensate_bytes(sites, self.noise));
            needs.push(("vectors of solvers, forces and condensates", vectors));
            needs.push(("links of operators", 4 * links * self.operators));
            let hops = HaloField::Colours(if self.improved { 3 } else { 1 });
            let nrhs: Vec<usize> = [self.pseudofermions, self.noise].into_iter().flat_map(widths).collect();
            let width = part.border().into_iter().max().unwrap_or(0);
            for precision in [Precision::Double, Precision::Single] {
                let pairs = [POLES * self.pseudofermions];
                exchanges = exchanges.hops(hops, precision, &nrhs).ghost_zone(
                    width,
                    FieldShape::colours(precision, 1).site_bytes(),
                    &pairs,
                );
            }
        }
        if let Some(wilson) = &self.wilson {
            let vector = |precision, sites| FieldShape::spinors(precision, 1).bytes(sites);
            let of_forces = if wilson.single { Precision::Single } else { Precision::Double };
            let (own, low) = (vector(Precision::Double, sites), vector(of_forces, sites));
            // A force needs X and Y on all sites, copies of X and Y with ghost zones if there are neighbouring processes, and the field
            // that multiplies dA.
            let pair = 5 * low + if wide > sites { 4 * vector(of_forces, wide) } else { 0 };
            // Solvers have vectors in two precisions. Each stored solution also has a basis vector and the image of that vector.
            let exact = if wilson.exact { 10 * own + 3 * wilson.guesses * own + 2 * pair } else { 0 };
            // A rational function needs solutions and directions for all of its poles. The function of molecular dynamics has half as many
            // poles as that of the action.
            let poles = wilson.rational * POLES;
            let rational = (2 * poles * own).max(poles / 2 * (2 * low + pair));
            let vectors = (wilson.pseudofermions + 8) * own + exact.max(rational);
            needs.push(("vectors of solvers and forces", vectors));
            needs.push(("links of operators", 4 * links));
            needs.push(("gradients of links", if wilson.has_blocks { 3 * links } else { links }));
            if wilson.has_blocks {
                let blocks = |precision| 4 * DeviceClover::bytes_for(precision, sites);
                needs.push(("clover terms", 2 * (blocks(Precision::Double) + blocks(Precision::Single))));
            }
            if !wilson.multigrid.is_empty() {
                let of = |params: &MultigridParams| params.bytes(part.local, 1);
                let kept: usize = wilson.multigrid.iter().map(|params| of(params).solve).sum();
                let setup = wilson.multigrid.iter().map(|params| of(params).peak() - of(params).solve).max();
                // `outer` counts the directions of the outer solver, and 2 · `links` the operators in the precisions of the cycle.
                let outer = 2 * (OUTER_DIRECTIONS + 1) * low;
                needs.push(("multigrid", kept + setup.unwrap_or(0) + outer + 2 * links));
                for params in &wilson.multigrid {
                    exchanges = params.exchanges(exchanges, part.local, 1, widths);
                }
            }
            if wilson.exponential {
                // Memory is needed for the exponents of clover terms on both parities in double precision, and for two fields of blocks on
                // one parity that a force uses.
                let blocks = |precision| 2 * DeviceClover::bytes_for(precision, sites);
                needs.push(("derivatives of clover terms", blocks(Precision::Double) + blocks(of_forces)));
            }
            for precision in [Precision::Double, Precision::Single] {
                let site = FieldShape::spinors(precision, 1).site_bytes();
                exchanges = exchanges.hops(HaloField::Spinors, precision, &[1]).ghost_zone(2, site, &[2, poles / 2]);
            }
        }
        if self.stout_levels > 0 {
            // Memory is needed for stout links of all levels in double and single precision, and for the fields of their derivative.
            let derivative = MomentumField::bytes_for(Precision::Double, 2 * wide);
            needs.push(("stout links", 2 * self.stout_levels * links + derivative));
            // Gradients with respect to stout links have a border in the precision of the solver, which may be single.
            exchanges = exchanges.border(Precision::Single);
            if self.pseudofermions > 0 {
                needs.push(("gradients of stout links", links));
            }
        }
        if self.improved {
            needs.push(("fat and long links, their gradients and paths", (8 + 2 * self.operators) * links));
        }
        if self.hisq {
            needs.push(("links of the first level of HISQ, and their gradients", 4 * links));
            // Gradients with respect to links of the first level have a border in the precision of the solver, which may be single.
            exchanges = exchanges.border(Precision::Single);
        }
        needs.extend(exchanges.needs());
        needs
    }
}
