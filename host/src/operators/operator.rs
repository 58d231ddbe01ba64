//! Operators as users choose them: their names, their parameters, and the construction of their even-odd systems.
use super::angles::{BoundaryAngles, THETA, TimeBoundary};
use super::diagonal::Diagonal;
use super::even_odd::EvenOdd;
use super::keys::{Key, Keys};
use super::smearing::Smearing;
use super::staggered_links::StaggeredLinks;
// The modules depend on each other: definitions contain the term of their family, and parameters of the family contain their definition.
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

/// Operator made from parameters as typed, with the JSON keys that describe the parameters in answers.
pub type Resolved = (Operator, Map<String, Value>);

/// Definition of an operator that users can choose.
pub struct Definition {
    /// Name of the operator in inputs and records.
    pub name: &'static str,
    /// Name of the operator in sentences.
    pub title: &'static str,
    /// Fermion type of the fields.
    pub kind: FermionKind,
    /// Formula of M in one line.
    pub formula: &'static str,
    /// Parameters of the operator, without those that [all operators have](Self::all_keys).
    pub keys: &'static [&'static Key],
    /// Makes the operator from parameters as typed, with the JSON keys that describe the parameters in answers. Returns `None` if a
    /// parameter is wrong or missing, after the keys have recorded the error.
    pub resolve: fn(&mut dyn Keys) -> Option<Resolved>,
    /// JSON keys that describe the operator in answers, with their meanings. They come from [`resolve`](Self::resolve) and
    /// [`OperatorParameters::describe_smearing`]; [`OUTPUT_OF_ALL`] is added to them.
    pub output: &'static [(&'static str, &'static str)],
    /// Makes the operator with sample parameters, for benchmarks.
    pub sample: fn() -> Operator,
    /// Whether the hops use kernels that no earlier operator of the registry [`OPERATORS`](super::OPERATORS) uses.
    pub has_own_kernels: bool,
    /// Links over which the operator hops: those of the configuration, or fat and long ones.
    pub links: LinkRecipe,
    /// Diagonal term A of a Wilson-like operator M = A − h D; `None` for staggered operators.
    pub term: Option<Term>,
    /// Kernels of the hops.
    pub(crate) kernels: OperatorKernels,
}

/// Parameters that all operators have.
static KEYS_OF_ALL: [&Key; 1] = [&THETA];
/// JSON keys that answers of all operators include, with their meanings.
pub const OUTPUT_OF_ALL: [(&str, &str); 1] =
    [("theta", "angles θ of twisted boundary conditions in x, y, z and t, in radians")];

/// Kind of links over which an operator hops.
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
    /// Whether the operator hops over fat and long links.
    pub const fn is_improved(self) -> bool {
        !matches!(self, LinkRecipe::Thin)
    }
}

/// Kernels of an operator.
pub(crate) struct OperatorKernels {
    /// Kernels of the interior. The last one exists in all formats of fields and links in which the operator exists, and in no others.
    pub interior: &'static [&'static Table],
    /// Kernel of the exterior.
    pub exterior: &'static Table,
    /// Kernels that pack links.
    pub pack: &'static Table,
    /// Kernels that pack faces of fields.
    pub faces: &'static Table,
    /// Kernels that make the diagonal term.
    pub setup: &'static [&'static Table],
}

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
/// Definitions are compared by their names.
impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Definition {
    /// Returns the name of the other quark of a doublet, if its operator M is a different one; see [`Term::partner`].
    pub fn partner(&self) -> Option<&'static str> {
        self.term.as_ref().and_then(|term| term.partner)
    }
    /// Whether the operator hops over fat and long links instead of the links of a configuration.
    pub fn is_improved(&self) -> bool {
        self.links.is_improved()
    }
    /// Whether the operator's long links are in U(3), and not in SU(3).
    pub fn is_in_u3(&self) -> bool {
        self.links == LinkRecipe::ImprovedInU3
    }
    /// Returns the number of sites that the longest hop spans.
    pub fn steps(&self) -> usize {
        if self.is_improved() { 3 } else { 1 }
    }
    /// Returns the kernel whose instances are the formats in which the operator exists.
    fn hops(&self) -> &'static Table {
        self.kernels.interior.last().expect("operators hop")
    }
    /// Whether this build has kernels of the operator for a format of fields and links.
    pub fn exists(&self, precision: Precision, storage: LinkStorage) -> bool {
        self.hops().instance(Format::with_links(precision, storage)).is_some()
    }
    /// Returns the formats of fields and links for which this build has kernels of the operator.
    pub fn formats(&self) -> impl Iterator<Item = Format> + use<> {
        self.hops().instances().map(|instance| instance.format)
    }
    /// Returns the cargo features of this crate that would add kernels for a format to this build. The list is empty if the build has these
    /// kernels, or if no build has them.
    pub fn missing_features(&self, precision: Precision, storage: LinkStorage) -> Vec<&'static str> {
        self.hops().missing_features(Format::with_links(precision, storage)).collect()
    }
    /// Returns the error that there are no kernels for a format with links stored as `wanted`, where `asked` was requested.
    pub(crate) fn no_kernels(&self, precision: Precision, asked: LinkStorage, wanted: LinkStorage) -> DeviceError {
        DeviceError::NoKernels {
            operator: self.title,
            precision,
            reconstruction: asked,
            formats: self.formats().map(|format| format.to_string()).collect(),
            features: self.missing_features(precision, wanted),
        }
    }
    /// Returns the kernels of a solve with this operator, in double precision and in the format `sloppy` of the iteration. If `cut` is set,
    /// for a partitioned lattice, includes the kernels that pack and use faces.
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
        let OperatorKernels { interior, exterior, pack, faces, setup } = &self.kernels;
        all.extend(setup.iter().map(|table| (*table, Format::NONE)));
        for (precision, storage) in [(Precision::Double, LinkStorage::FULL), (precision, storage)] {
            let format = Format::with_links(precision, if self.is_in_u3() { storage.with_phase() } else { storage });
            all.extend(interior.iter().map(|table| (*table, format)));
            all.push((*pack, format));
            if cut {
                all.extend([(*exterior, format), (*faces, of_fields)]);
            }
        }
        all
    }
    /// Returns all parameters of the operator.
    pub fn all_keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.keys.iter().copied().chain(KEYS_OF_ALL)
    }
    /// Whether the operator has a parameter of this name.
    pub fn has_key(&self, key: &str) -> bool {
        self.all_keys().any(|own| own.name == key)
    }
    /// Makes the operator from all parameters as typed, with the JSON keys that describe the parameters in answers. Returns `None` if a
    /// parameter is wrong or missing, after the keys have recorded the error.
    pub fn resolve_all(&self, keys: &mut dyn Keys) -> Option<Resolved> {
        let (resolved, theta) = ((self.resolve)(keys), BoundaryAngles::resolve(keys));
        let (operator, mut described) = resolved?;
        described.insert("theta".into(), theta.0.to_vec().into());
        Some((operator.with_theta(theta), described))
    }
}

/// Interface through which operators obtain the links of a configuration in any format.
pub trait OperatorLinks {
    /// Returns the configuration's links, with the phases of twisted boundary conditions.
    ///
    /// # Errors
    /// Fails if the configuration has only fat and long links, and on failures of the device.
    fn thin(&self, theta: BoundaryAngles, precision: Precision, storage: LinkStorage) -> Result<Arc<DeviceGauge>>;
    /// Returns fat and long links, with the phases of twisted boundary conditions.
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
    /// Returns a Wilson-like operator's diagonal term in double precision.
    ///
    /// # Errors
    /// Failures of the device.
    fn diagonal(&self, operator: &Operator) -> Result<Diagonal>;
}

/// Parameters of an operator. All families of operators are used through this interface.
pub trait OperatorParameters: Any + std::fmt::Debug + Send + Sync {
    /// Returns the operator to which the parameters belong.
    fn definition(&self) -> &'static Definition;
    /// Returns the bare mass m.
    fn mass(&self) -> f64;
    /// Returns the operator with another mass.
    fn with_mass(&self, mass: f64) -> Operator;
    /// Returns the angles of twisted boundary conditions.
    fn theta(&self) -> BoundaryAngles;
    /// Returns the operator with twisted boundary conditions.
    fn with_theta(&self, theta: BoundaryAngles) -> Operator;
    /// Returns the boundary condition in t.
    fn boundary(&self) -> TimeBoundary;
    /// Whether other parameters are of the same family and have the same values.
    fn equals(&self, other: &dyn Any) -> bool;
    /// Returns L_s, the extent of a fifth dimension.
    fn ls(&self) -> usize {
        1
    }
    /// Returns the smearing that makes fat and long links.
    fn smearing(&self) -> Smearing {
        Smearing::None
    }
    /// Returns the JSON keys that describe the smearing of fat and long links in answers. No smearing is described if the links were `read`
    /// from files.
    fn describe_smearing(&self, _read: bool) -> Map<String, Value> {
        Map::new()
    }
    /// Whether an antiperiodic boundary condition is spread over all links in t.
    fn is_spread(&self) -> bool {
        false
    }
    /// Makes the Schur complement on links in a format, for blocks of `nrhs` right-hand sides.
    ///
    /// # Errors
    /// Fails for formats that the operator does not have, and on failures of the device.
    fn even_odd(
        &self,
        links: &dyn OperatorLinks,
        format: (Precision, LinkStorage),
        nrhs: usize,
    ) -> Result<Rc<dyn EvenOdd>>;
    /// Whether the Schur complement is Hermitian and positive, so that it is solved by CG.
    fn is_positive(&self) -> bool;
    /// Returns the number of fields on one parity that the Schur complement keeps.
    fn kept_fields(&self) -> usize;
    /// Returns the kind of field whose faces the hops send.
    fn halo_field(&self) -> HaloField;
    /// Returns the bytes on a device of the links on `sites` sites of each parity.
    fn link_bytes(&self, precision: Precision, storage: LinkStorage, sites: usize) -> usize;
    /// Returns the bytes on a device of the diagonal term and its inverse on `sites` sites of each parity.
    fn diagonal_bytes(&self, _: Precision, _sites: usize) -> usize {
        0
    }
}

/// Operator M with its definition and its parameters.
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

/// Operators dereference to their parameters.
impl std::ops::Deref for Operator {
    type Target = dyn OperatorParameters;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Operator {
    /// Returns the parameters if they belong to the family `P`; `None` otherwise.
    pub fn parameters<P: OperatorParameters>(&self) -> Option<&P> {
        (&*self.0 as &dyn Any).downcast_ref()
    }
    /// Returns the fermion type of the fields.
    pub fn kind(&self) -> FermionKind {
        self.definition().kind
    }
    /// Returns the shape of the operator's fields.
    pub fn shape(&self, precision: Precision, nrhs: usize) -> FieldShape {
        FieldShape::new(self.kind(), precision, nrhs).with_ls(self.ls())
    }
    /// Returns the storage of the links if `asked` is requested. Links in U(3) need the phase of their determinant besides 12 or 8 reals,
    /// or all reals if no kernels use the phase. Links in U(3) are HISQ's long links, and links in SU(3) that are multiplied by the phases
    /// of twisted boundary conditions.
    pub fn storage(&self, asked: LinkStorage) -> LinkStorage {
        let phases = !self.theta().are_zero();
        match self.definition().links {
            LinkRecipe::Thin if phases => asked.with_all_reals(),
            LinkRecipe::ImprovedInU3 => asked.with_phase(),
            LinkRecipe::Improved if phases => asked.with_phase(),
            LinkRecipe::Thin | LinkRecipe::Improved => asked,
        }
    }
    /// Returns the storage of the links if `asked` is requested. If neither this build nor any other has kernels for that storage, thin
    /// links have two rows.
    pub(crate) fn compiled_storage(&self, precision: Precision, asked: LinkStorage) -> LinkStorage {
        let (definition, storage) = (self.definition(), self.storage(asked));
        let possible = || !definition.missing_features(precision, storage).is_empty();
        let keeps = definition.term.is_none() || definition.exists(precision, storage) || possible();
        if keeps { storage } else { storage.with_two_rows() }
    }
    /// Refuses formats without kernels, if two rows of each link do not help either.
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
