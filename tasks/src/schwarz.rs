//! Settings of the preconditioner of GCR-DD, from flags and inputs.
use comms::ProcessGrid;
use ferrite::Precision;
use ferrite::lattice::Lattice;
use ferrite::solve::Schwarz;
use ferrite::solve::names::PRECISIONS;
use ferrite_inputs::values::{Count, Extents, Kind, Meaning, Number, Parsed, Word};
use ferrite_inputs::{Given, Input, rules, vocabularies};
use serde::Deserialize;

rules! {
    /// Relaxation parameter of the minimum-residual steps.
    Relaxation: "a number above 0 and below 2", |w| w > 0.0 && w < 2.0;
}
vocabularies! {
    /// Precisions of the preconditioner.
    Precisions: Precision = PRECISIONS;
}

/// Number of sites by which the domains of GCR-DD overlap, as typed.
#[derive(Debug)]
pub struct Overlap;
impl Parsed for Overlap {
    type Out = usize;
    const KIND: Kind = Kind::Count;
    fn parse(text: &str) -> Result<usize, String> {
        match text {
            "0" => Ok(0),
            "2" => Ok(2),
            _ => Err("is none of 0, 2".into()),
        }
    }
}

/// Keys of the preconditioner of GCR-DD.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct SchwarzKeys {
    mr_steps: Given<Count<1, 1000>>,
    mr_omega: Given<Number<Relaxation>>,
    domain_precision: Given<Word<Precisions>>,
    domain: Given<Extents>,
    domain_overlap: Given<Meaning<Overlap>>,
    kmax: Given<Count<1, 1000>>,
}

/// Reads the parameters of the preconditioner. `local` has the extents of the local lattice, if they are known.
pub fn resolve(input: &mut Input, local: Option<Lattice>) -> Schwarz {
    let default = Schwarz::default();
    let keys: SchwarzKeys = input.read("");
    let schwarz = Schwarz {
        steps: keys.mr_steps.or(default.steps),
        omega: keys.mr_omega.or(1.0),
        precision: keys.domain_precision.or(default.precision),
        domain: keys.domain.value(),
        overlap: keys.domain_overlap.or(default.overlap),
        k_max: keys.kmax.or(default.k_max),
    };
    let parts = Schwarz { domain: schwarz.domain, ..default };
    if let Some(Err(why)) = local.map(|local| parts.check(local, &ProcessGrid::SINGLE)) {
        input.wrong(&keys.domain, why);
    }
    if schwarz.overlap > 0 && schwarz.domain.is_some() {
        let [domain, overlap] = ["domain", "domain-overlap"].map(|key| input.spelled(key, ""));
        let why = format!("overlapping domains are the local lattices of the processes: remove {domain} or {overlap}");
        input.conflict("domain", "domain-overlap", &why);
    }
    schwarz
}
