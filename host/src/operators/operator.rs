//! Operators as users choose them: what each is called, which parameters it has, and how its even-odd system is made.
use super::angles::{BoundaryAngles, THETA, TimeBoundary};
use super::diagonal::Diagonal;
use super::even_odd::EvenOdd;
use super::keys::{Key, Keys};
use super::smearing::Smearing;
use super::staggered_links::StaggeredLinks;
// A definition has its family's term, and the family's parameters have their definition.
use super::wilson_family::Term;
use crate::domain::{DeviceError, Result};
use crate::field::{DeviceGauge, FieldShape};
use crate::halo::HaloField;
use gpu_kernels::blas::{AXPBY, CONVERT};
use gpu_kernels::transfer::{PACK, PACK_THIN_LINKS};
use gpu_kernels::{FermionKind, Format, LinkStorage, Precision, Table};
use serde_json::{Map, Value};
use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

/// An operator with parameters as typed, and what is said of them beside an answer.
pub type Resolved = (Operator, Map<String, Value>);

/// An operator that users can choose.
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// Its name in sentences.
    pub title: &'static str,
    /// What lives on the sites.
    pub kind: FermionKind,
    /// M, in a line.
    pub formula: &'static str,
    /// Its parameters but those that [all operators have](Self::all_keys).
    pub keys: &'static [&'static Key],
    /// The operator with these parameters as typed, and what is said of them beside an answer; `None` where something is wrong
    /// or missing, which the keys then know.
    pub resolve: fn(&mut dyn Keys) -> Option<Resolved>,
    /// JSON keys beside an answer, by [`resolve`](Self::resolve) and [`OperatorParameters::describe_smearing`], with
    /// what they mean. [`OUTPUT_OF_ALL`] comes on top.
    pub output: &'static [(&'static str, &'static str)],
    /// The operator with parameters for a benchmark.
    pub sample: fn() -> Operator,
    /// Whether it has kernels that no operator before it in the registry has.
    pub has_own_kernels: bool,
    /// Whether fat and long links take the place of those of a configuration.
    pub links: LinkRecipe,
    /// The diagonal term A, of a Wilson-like operator M = A − h D.
    pub term: Option<Term>,
    /// Kernels of its hops.
    pub(crate) kernels: OperatorKernels,
}

/// Parameters that all operators have.
static KEYS_OF_ALL: [&Key; 1] = [&THETA];
/// What is said of all operators beside an answer.
pub const OUTPUT_OF_ALL: [(&str, &str); 1] =
    [("theta", "angles θ of twisted boundary conditions in x, y, z and t, in radians")];

/// The links over which an operator hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRecipe {
    /// The links of the configuration.
    Thin,
    /// Fat links, and long ones in SU(3) times a number.
    Improved,
    /// Fat links, and long ones in U(3) times a number.
    ImprovedInU3,
}

impl LinkRecipe {
    /// Whether there are fat and long links.
    pub const fn is_improved(self) -> bool {
        !matches!(self, LinkRecipe::Thin)
    }
}

/// The kernels of an operator.
pub(crate) struct OperatorKernels {
    /// Kernels of the interior. The last one determines in which formats of fields and links the operator exists.
    pub rows: &'static [&'static Table],
    /// The kernel of the exterior.
    pub exterior: &'static Table,
    /// Packs links.
    pub pack: &'static Table,
    /// Packs faces of fields.
    pub faces: &'static Table,
    /// Kernels that make the diagonal term.
    pub setup: &'static [&'static Table],
}

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
/// By their names.
impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Definition {
    /// How the other quark of a doublet is called, where it has an M of its own: see [`Term::partner`].
    pub fn partner(&self) -> Option<&'static str> {
        self.term.as_ref().and_then(|term| term.partner)
    }
    /// Whether fat and long links take the place of those of a configuration.
    pub fn is_improved(&self) -> bool {
        self.links.is_improved()
    }
    /// Whether long links are in U(3), and not in SU(3).
    pub fn is_in_u3(&self) -> bool {
        self.links == LinkRecipe::ImprovedInU3
    }
    /// Steps of its longest hop.
    pub fn steps(&self) -> usize {
        if self.is_improved() { 3 } else { 1 }
    }
    /// The kernel whose instances are the formats in which the operator exists.
    fn hops(&self) -> &'static Table {
        self.kernels.rows.last().expect("operators hop")
    }
    /// Whether there are kernels for a format of fields and links.
    pub fn exists(&self, precision: Precision, storage: LinkStorage) -> bool {
        self.hops().instance(Format::with_links(precision, storage)).is_some()
    }
    /// The formats of fields and links that it is compiled for.
    pub fn formats(&self) -> impl Iterator<Item = Format> + use<> {
        self.hops().instances().map(|instance| instance.format)
    }
    /// The cargo features of this crate without which there are no kernels for a format in this build: none where there are
    /// some, and where no build has any.
    pub fn missing_features(&self, precision: Precision, storage: LinkStorage) -> Vec<&'static str> {
        self.hops().missing_features(Format::with_links(precision, storage)).collect()
    }
    /// That there are no kernels for a format, which were wanted for links stored in some way.
    pub(crate) fn no_kernels(&self, precision: Precision, asked: LinkStorage, wanted: LinkStorage) -> DeviceError {
        DeviceError::NoKernels {
            operator: self.title,
            precision,
            reconstruction: asked,
            formats: self.formats().map(|format| format.to_string()).collect(),
            features: self.missing_features(precision, wanted),
        }
    }
    /// The kernels of a solve with it: in double and in the format of the iteration, and at faces where the lattice is `cut`.
    pub fn kernels(&self, sloppy: (Precision, LinkStorage), cut: bool) -> Vec<(&'static Table, Format)> {
        let (kind, precision, storage) = (self.kind, sloppy.0, sloppy.1);
        let of_fields = Format::fermions(kind, precision);
        let double = Format::fermions(kind, Precision::Double);
        let mut all = vec![
            (PACK_THIN_LINKS.0, Format::NONE),
            (PACK.0, double),
            (AXPBY.0, double),
            (AXPBY.0, of_fields),
            (CONVERT.0, Format { to: Some(precision), ..double }),
            (CONVERT.0, Format { to: Some(Precision::Double), ..of_fields }),
        ];
        let OperatorKernels { rows, exterior, pack, faces, setup } = &self.kernels;
        all.extend(setup.iter().map(|table| (*table, Format::NONE)));
        for (precision, storage) in [(Precision::Double, LinkStorage::FULL), (precision, storage)] {
            let format = Format::with_links(precision, if self.is_in_u3() { storage.with_phase() } else { storage });
            all.extend(rows.iter().map(|table| (*table, format)));
            all.push((*pack, format));
            if cut {
                all.extend([(*exterior, format), (*faces, of_fields)]);
            }
        }
        all
    }
    /// All its parameters.
    pub fn all_keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.keys.iter().copied().chain(KEYS_OF_ALL)
    }
    /// Whether a parameter is one of its.
    pub fn has_key(&self, key: &str) -> bool {
        self.all_keys().any(|own| own.name == key)
    }
    /// The operator with all parameters as typed, and what is said of them beside an answer; `None` where something is wrong or
    /// missing, which the keys then know.
    pub fn resolve_all(&self, keys: &mut dyn Keys) -> Option<Resolved> {
        let (resolved, theta) = ((self.resolve)(keys), BoundaryAngles::resolve(keys));
        let (operator, mut described) = resolved?;
        described.insert("theta".into(), theta.0.to_vec().into());
        Some((operator.with_theta(theta), described))
    }
}

/// The links of a configuration in every format, for operators.
pub trait OperatorLinks {
    /// The configuration's links, with the phases of twisted boundary conditions.
    ///
    /// # Errors
    /// Fat and long links only; failures of the device.
    fn thin(&self, theta: BoundaryAngles, precision: Precision, storage: LinkStorage) -> Result<Arc<DeviceGauge>>;
    /// Fat and long links, with the phases of twisted boundary conditions.
    ///
    /// # Errors
    /// Failures of the device.
    fn fat_and_long(
        &self,
        smearing: Smearing,
        theta: BoundaryAngles,
        precision: Precision,
        storage: LinkStorage,
    ) -> Result<Arc<StaggeredLinks>>;
    /// A Wilson-like operator's diagonal term in double precision.
    ///
    /// # Errors
    /// Failures of the device.
    fn diagonal(&self, operator: &Operator) -> Result<Diagonal>;
}

/// The parameters of operators of a family: all that is needed of them, whatever the family is.
pub trait OperatorParameters: Any + std::fmt::Debug + Send + Sync {
    /// The operator to which they belong.
    fn definition(&self) -> &'static Definition;
    /// The bare mass m.
    fn mass(&self) -> f64;
    /// The operator with another mass.
    fn with_mass(&self, mass: f64) -> Operator;
    /// Twisted boundary conditions.
    fn theta(&self) -> BoundaryAngles;
    /// The operator with twisted boundary conditions.
    fn with_theta(&self, theta: BoundaryAngles) -> Operator;
    /// The boundary condition in t.
    fn boundary(&self) -> TimeBoundary;
    /// Whether others are of the same family and have the same values.
    fn equals(&self, other: &dyn Any) -> bool;
    /// L_s, the extent of a fifth dimension.
    fn ls(&self) -> usize {
        1
    }
    /// The smearing that makes fat and long links.
    fn smearing(&self) -> Smearing {
        Smearing::None
    }
    /// JSON keys on the smearing of fat and long links, beside an answer; without a smearing if the links were `read` from files.
    fn describe_smearing(&self, _read: bool) -> Map<String, Value> {
        Map::new()
    }
    /// Whether an antiperiodic boundary condition is spread over all links in t.
    fn is_spread(&self) -> bool {
        false
    }
    /// The Schur complement on links in a format, for blocks of `nrhs` right-hand sides.
    ///
    /// # Errors
    /// Formats that the operator does not have, and failures of the device.
    fn even_odd(
        &self,
        links: &dyn OperatorLinks,
        format: (Precision, LinkStorage),
        nrhs: usize,
    ) -> Result<Rc<dyn EvenOdd>>;
    /// Whether the Schur complement is Hermitian and positive, so that it is solved by CG.
    fn is_positive(&self) -> bool;
    /// Fields on one parity that the Schur complement keeps.
    fn kept_fields(&self) -> usize;
    /// The part of a field that its hops send.
    fn halo_field(&self) -> HaloField;
    /// Bytes on a device of the links on `sites` sites of each parity.
    fn link_bytes(&self, precision: Precision, storage: LinkStorage, sites: usize) -> usize;
    /// Bytes on a device of the diagonal term and its inverse on `sites` sites of each parity.
    fn diagonal_bytes(&self, _: Precision, _sites: usize) -> usize {
        0
    }
}

/// An operator M: its definition and its parameters.
#[derive(Clone, Debug)]
pub struct Operator(Arc<dyn OperatorParameters>);

impl PartialEq for Operator {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl<P: OperatorParameters> From<P> for Operator {
    fn from(parameters: P) -> Self {
        Operator(Arc::new(parameters))
    }
}

impl From<&Operator> for Operator {
    fn from(operator: &Operator) -> Self {
        operator.clone()
    }
}

/// All that parameters give.
impl std::ops::Deref for Operator {
    type Target = dyn OperatorParameters;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Operator {
    /// Returns its parameters if they are those of a family.
    pub fn parameters<P: OperatorParameters>(&self) -> Option<&P> {
        (&*self.0 as &dyn Any).downcast_ref()
    }
    /// What lives on the sites.
    pub fn kind(&self) -> FermionKind {
        self.definition().kind
    }
    /// The shape of its fields.
    pub fn shape(&self, precision: Precision, nrhs: usize) -> FieldShape {
        FieldShape::new(self.kind(), precision, nrhs).with_ls(self.ls())
    }
    /// How its links are stored where a storage is asked for. Those in U(3) need the phase of their determinant beside 12 or 8 reals,
    /// or all reals where there are no kernels with it: links in SU(3) with phases of twisted boundary conditions, and long links of
    /// HISQ.
    pub fn storage(&self, asked: LinkStorage) -> LinkStorage {
        let phases = !self.theta().are_zero();
        match self.definition().links {
            LinkRecipe::Thin if phases => asked.with_all_reals(),
            LinkRecipe::ImprovedInU3 => asked.with_phase(),
            LinkRecipe::Improved if phases => asked.with_phase(),
            LinkRecipe::Thin | LinkRecipe::Improved => asked,
        }
    }
    /// The storage of its links: the requested one, or thin links with two rows where there are kernels for these only, not in this
    /// build alone.
    pub(crate) fn compiled_storage(&self, precision: Precision, asked: LinkStorage) -> LinkStorage {
        let (definition, storage) = (self.definition(), self.storage(asked));
        let possible = || !definition.missing_features(precision, storage).is_empty();
        let keeps = definition.term.is_none() || definition.exists(precision, storage) || possible();
        if keeps { storage } else { storage.with_two_rows() }
    }
    /// Refuses formats for which there are no kernels, if need be with two rows of each link.
    pub(crate) fn expect_kernels(&self, precision: Precision, asked: LinkStorage) -> Result {
        let (definition, storage) = (self.definition(), self.compiled_storage(precision, asked));
        match definition.exists(precision, storage) {
            true => Ok(()),
            false => Err(definition.no_kernels(precision, asked, storage)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::OPERATORS;
    use std::collections::{BTreeMap, BTreeSet};

    /// Parameters as pairs; what is wrong is a panic.
    struct Given(BTreeMap<&'static str, &'static str>);

    impl Keys for Given {
        fn is_given(&self, key: &str) -> bool {
            self.0.contains_key(key)
        }
        fn number(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<f64> {
            let number: f64 = self.0.get(key)?.parse().expect(expected);
            fits(number).then_some(number)
        }
        fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<usize> {
            let typed = self.0.get(key)?.trim_matches('"');
            Some(words.iter().position(|word| *word == typed).expect(typed))
        }
        fn parse(&mut self, key: &'static str, parse: &mut dyn FnMut(&str) -> std::result::Result<(), String>) {
            if let Some(typed) = self.0.get(key) {
                // Arrays are numbers with commas.
                parse(typed.trim_matches(['[', ']'])).expect("an example is right");
            }
        }
        fn is_on(&mut self, key: &'static str) -> bool {
            self.0.get(key) == Some(&"true")
        }
        fn refuse(&mut self, key: &str, why: &str) {
            panic!("{key}: {why}");
        }
        fn conflict(&mut self, key: &str, other: &str, why: &str) {
            panic!("{key}, {other}: {why}");
        }
        fn missing(&mut self, why: &str) {
            panic!("{why}");
        }
        fn spelled(&self, key: &str, value: &str) -> String {
            format!("{key} = {value}")
        }
    }

    /// Examples of all keys make an operator, whose description is that of the definition and of docs/output.md.
    #[test]
    fn definitions_are_complete() {
        let document = include_str!("../../../docs/output.md");
        let mut names = BTreeSet::new();
        for definition in OPERATORS {
            assert!(names.insert(definition.name), "{}", definition.name);
            // On an anisotropic lattice other coefficients of a clover term have to be given.
            let usual = |key: &&Key| key.instead_of.is_none() && !["xi", "nu"].contains(&key.name);
            let keys = definition.all_keys().filter(usual);
            let mut given = Given(keys.map(|key| (key.name, key.example)).collect());
            let (operator, mut described) = definition.resolve_all(&mut given).expect(definition.name);
            assert_eq!(operator.definition(), definition);
            described.extend(operator.describe_smearing(false));
            let of_operator: BTreeSet<&str> = described.keys().map(String::as_str).collect();
            let output = || definition.output.iter().chain(&OUTPUT_OF_ALL);
            assert_eq!(of_operator, output().map(|(key, _)| *key).collect(), "{}", definition.name);
            for (key, meaning) in output() {
                let row = format!("| `{key}` | {meaning} |");
                assert!(document.contains(&row), "docs/output.md has no row {row}");
            }
            assert_eq!((definition.sample)().definition(), definition);
            assert!(definition.exists(Precision::Double, LinkStorage::FULL));
        }
    }
}
