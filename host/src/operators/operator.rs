//! Operators as users choose them: what each is called, which parameters it has, and the registry of all of them.
use super::angles::{BoundaryAngles, THETA};
use super::diagonal::{Diagonal, DiagonalKernels};
use super::staggered::{Smearing, StaggeredLinks, StaggeredOperator, StaggeredParams};
use super::wilson::{TimeBoundary, WilsonParams};
use super::wilson_like::Schur;
use crate::domain::{DeviceError, Result};
use crate::field::GaugeField;
use gpu_kernels::blas::{AXPBY, CONVERT};
use gpu_kernels::exterior::{IMPROVED_EXTERIOR, STAGGERED_EXTERIOR, WILSON_EXTERIOR};
use gpu_kernels::faces::{PACK_COLOURS, PACK_SPINORS};
use gpu_kernels::smeared::{PACK_LINKS, PACK_LONG};
use gpu_kernels::staggered::{IMPROVED_ROW, STAGGERED_ROW};
use gpu_kernels::transfer::{PACK, PACK_THIN_LINKS};
use gpu_kernels::wilson::WILSON_ROW;
use gpu_kernels::{FermionKind, Format, LinkStorage, Precision, Table};
use serde_json::{Map, Value};

/// What the value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Any text.
    Text,
    /// One or several texts.
    Texts,
    /// A real number.
    Number,
    /// A whole number.
    Count,
    /// One of some words, which may look like a number (`reconstruct = 12`).
    Word,
    /// True or false.
    Switch,
    /// Four numbers, as a text or an array.
    Extents,
    /// One or several sites, each as four numbers: an array of arrays or of texts.
    Sites,
    /// One or several numbers, as a text or an array.
    Numbers,
    /// The same, where numbers may also be fractions, which are texts.
    Fractions,
}

/// A parameter, of an operator or else of a solve: a flag of commands and a key of input files.
#[derive(Debug)]
pub struct Key {
    /// What it is called.
    pub name: &'static str,
    /// Placeholder of its value.
    pub value: &'static str,
    /// What it is.
    pub kind: KeyKind,
    /// A sentence or two.
    pub help: &'static str,
    /// A value, as an input file has it.
    pub example: &'static str,
    /// The value that counts where none is given, if that is always the same.
    pub default: Option<&'static str>,
    /// The key whose place it takes.
    pub instead_of: Option<&'static str>,
    /// Whether the solution does not depend on it, but for rounding.
    pub technical: bool,
}

impl Key {
    /// One without a default, on which solutions depend.
    pub const fn new(
        name: &'static str,
        value: &'static str,
        kind: KeyKind,
        help: &'static str,
        example: &'static str,
    ) -> Self {
        Key { name, value, kind, help, example, default: None, instead_of: None, technical: false }
    }
    /// With a default.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Key { default: Some(default), ..self }
    }
    /// One that takes the place of another key.
    #[must_use]
    pub const fn instead_of(self, other: &'static str) -> Self {
        Key { instead_of: Some(other), ..self }
    }
    /// One on which solutions do not depend.
    #[must_use]
    pub const fn technical(self) -> Self {
        Key { technical: true, ..self }
    }
}

/// Parameters as somebody typed them, under the names of [`Key`]s. What is wrong is collected there.
pub trait Keys {
    /// Whether there is a value.
    fn is_given(&self, key: &str) -> bool;
    /// A finite number for which `fits` holds, which `expected` describes.
    fn number(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<f64>;
    /// The place of a word in a list of the possible ones.
    fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<usize>;
    /// The value as typed, which `parse` understands, or says why not.
    fn parse(&mut self, key: &'static str, parse: &mut dyn FnMut(&str) -> std::result::Result<(), String>);
    /// Whether a switch is on.
    fn is_on(&mut self, key: &'static str) -> bool;
    /// Notes that a value is wrong.
    fn refuse(&mut self, key: &str, why: &str);
    /// Notes that a value does not go with that of another key.
    fn conflict(&mut self, key: &str, other: &str, why: &str);
    /// Notes that a value is missing.
    fn missing(&mut self, why: &str);
    /// Returns how users give a key a value, for advice: `mass = M` in an input file, `--mass M` as a flag.
    fn spelled(&self, key: &str, value: &str) -> String;
}

/// Largest size of a number that users give: nothing that is computed from numbers within it overflows, and none of the parameters of a
/// lattice comes near it.
pub const LARGEST: f64 = 1e9;
/// Smallest size of a number that others are divided by: one over [`LARGEST`].
pub const SMALLEST: f64 = 1e-9;
/// [`is_divisor`] in words.
pub const DIVISOR: &str = "a number above 0, of at least 1e-9";

/// Whether something can be divided by a number: it is at least [`SMALLEST`].
pub fn is_divisor(x: f64) -> bool {
    x >= SMALLEST
}

/// One of a few words, and what it stands for.
pub fn choose<T: Copy>(keys: &mut dyn Keys, key: &'static str, choices: &[(&'static str, T)]) -> Option<T> {
    let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
    keys.word(key, &words).map(|place| choices[place].1)
}

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
    /// What is said beside an answer, by [`resolve`](Self::resolve) and [`Operator::describe_smearing`]: keys of JSON with
    /// what they mean. [`OUTPUT_OF_ALL`] comes on top.
    pub output: &'static [(&'static str, &'static str)],
    /// The operator with parameters for a benchmark.
    pub sample: fn() -> Operator,
    /// Whether it has kernels that no operator before it in the registry has.
    pub has_own_kernels: bool,
    /// What there is besides for its kind.
    pub details: Details,
}

/// Parameters that all operators have.
static KEYS_OF_ALL: [&Key; 1] = [&THETA];
/// What is said of all operators beside an answer.
pub const OUTPUT_OF_ALL: [(&str, &str); 1] =
    [("theta", "angles θ of twisted boundary conditions in x, y, z and t, in radians")];

/// What is special to operators on fields of some kind.
pub enum Details {
    /// Wilson-like ones.
    WilsonLike(Term),
    /// Staggered ones.
    Staggered(LinksOfStaggered),
}

/// The diagonal term A of a Wilson-like operator.
pub struct Term {
    /// Makes it, in double precision.
    pub make: fn(&WilsonLike, &GaugeField) -> Result<Diagonal>,
    /// Bytes on a device of A and of A⁻¹ on both parities, in a precision and for so many sites of each.
    pub bytes: fn(Precision, usize) -> usize,
    /// Whether A is a number, so that it needs no kernel, no memory and no choice of a Schur complement.
    pub is_number: bool,
    /// How the other quark of a doublet is called where γ5 M γ5 is not M† but its M†, by what it has instead: its
    /// propagator is not that of this one, and γ5 S† γ5 is its antiquark's. `None` where γ5 M γ5 = M†.
    pub partner: Option<&'static str>,
    /// How it depends on the links.
    pub dependence: fn(&WilsonLike) -> LinkDependence,
    /// Kernels with it.
    pub(crate) rows: &'static DiagonalKernels,
    /// Kernels that make it.
    pub(crate) setup: &'static [&'static Table],
}

/// How a diagonal term depends on the links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkDependence {
    /// Not at all.
    None,
    /// By the field strength, with the coefficients of a clover term in the spatial and in the temporal planes.
    Linear([f64; 2]),
    /// As d exp(C/d), C being the field strength with these coefficients and d the number in its place where links are 1. The
    /// determinant is a constant.
    Exponential([f64; 2]),
}

/// The links of a staggered operator.
pub struct LinksOfStaggered {
    /// Whether there are fat and long links.
    pub improved: bool,
    /// Whether long links are in U(3), and not in SU(3).
    pub in_u3: bool,
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
    /// The diagonal term, of a Wilson-like operator.
    pub fn term(&self) -> Option<&Term> {
        match &self.details {
            Details::WilsonLike(term) => Some(term),
            Details::Staggered(_) => None,
        }
    }
    /// How the other quark of a doublet is called, where it has an M of its own: see [`Term::partner`].
    pub fn partner(&self) -> Option<&'static str> {
        self.term().and_then(|term| term.partner)
    }
    /// What its links are, of a staggered operator.
    pub fn staggered(&self) -> Option<&LinksOfStaggered> {
        match &self.details {
            Details::WilsonLike(_) => None,
            Details::Staggered(links) => Some(links),
        }
    }
    /// Whether fat and long links take the place of those of a configuration.
    pub fn is_improved(&self) -> bool {
        self.staggered().is_some_and(|links| links.improved)
    }
    /// Steps of its longest hop.
    pub fn steps(&self) -> usize {
        if self.is_improved() { 3 } else { 1 }
    }
    /// The kernel that tells in which formats of fields and links it is there.
    fn hops(&self) -> &'static Table {
        match &self.details {
            Details::WilsonLike(term) => term.rows.inverse.0,
            Details::Staggered(links) => StaggeredLinks::hops(links.improved),
        }
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
        let (rows, exterior, pack, faces): (&[&Table], _, _, _) = match &self.details {
            Details::WilsonLike(term) => {
                all.extend(term.setup.iter().map(|table| (*table, Format::NONE)));
                (&[WILSON_ROW.0, term.rows.inverse.0], WILSON_EXTERIOR.0, PACK_LINKS.0, PACK_SPINORS.0)
            }
            Details::Staggered(links) if links.improved => {
                (&[IMPROVED_ROW.0], IMPROVED_EXTERIOR.0, PACK_LONG.0, PACK_COLOURS.0)
            }
            Details::Staggered(_) => (&[STAGGERED_ROW.0], STAGGERED_EXTERIOR.0, PACK_LINKS.0, PACK_COLOURS.0),
        };
        let in_u3 = self.staggered().is_some_and(|links| links.in_u3);
        for (precision, storage) in [(Precision::Double, LinkStorage::FULL), (precision, storage)] {
            let format = Format::with_links(precision, if in_u3 { storage.with_phase() } else { storage });
            all.extend(rows.iter().map(|table| (*table, format)));
            all.push((pack, format));
            if cut {
                all.extend([(exterior, format), (faces, of_fields)]);
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

/// Coefficients of a Wilson-like operator's diagonal term, at most.
pub const COEFFICIENTS: usize = 3;

/// A Wilson-like operator: a definition with numbers for its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonLike {
    /// Which one it is.
    pub definition: &'static Definition,
    /// Mass, boundary condition and anisotropy.
    pub wilson: WilsonParams,
    /// Coefficients of the diagonal term, in an order that the definition knows.
    pub coefficients: [f64; COEFFICIENTS],
    /// The Schur complement to solve.
    pub schur: Schur,
    /// Twisted boundary conditions.
    pub theta: BoundaryAngles,
}

impl WilsonLike {
    /// Without phases at the ends of the lattice.
    pub fn new(
        definition: &'static Definition,
        wilson: WilsonParams,
        coefficients: [f64; COEFFICIENTS],
        schur: Schur,
    ) -> Self {
        WilsonLike { definition, wilson, coefficients, schur, theta: BoundaryAngles::default() }
    }
    /// A on links of a device, in double precision.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn diagonal(&self, thin: &GaugeField) -> Result<Diagonal> {
        match &self.definition.details {
            Details::WilsonLike(term) => (term.make)(self, thin),
            Details::Staggered(_) => Ok(Diagonal::number(self.wilson.diagonal())),
        }
    }
    /// How A depends on the links.
    pub fn dependence(&self) -> LinkDependence {
        self.definition.term().map_or(LinkDependence::None, |term| (term.dependence)(self))
    }
    /// Whether A is a number.
    pub fn has_number(&self) -> bool {
        self.definition.term().is_none_or(|term| term.is_number)
    }
    /// Whether another operator has the same hops and the same kind of diagonal term, so that what is nearly in the kernel of one
    /// is so for the other.
    pub(crate) fn differs_in_numbers(&self, other: &Self) -> bool {
        let hops = |operator: &Self| (operator.wilson.boundary, operator.wilson.anisotropy, operator.theta);
        std::ptr::eq(self.definition, other.definition) && hops(self) == hops(other)
    }
    /// Bytes on a device of A and A⁻¹ on both parities, for so many sites of each.
    pub fn diagonal_bytes(&self, precision: Precision, sites: usize) -> usize {
        self.definition.term().map_or(0, |term| (term.bytes)(precision, sites))
    }
}

/// Which operator M, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operator {
    /// M = A − h D on spinors, with a diagonal term A.
    WilsonLike(WilsonLike),
    /// M = m + ½ D on colour vectors.
    Staggered(StaggeredOperator),
}

impl Operator {
    /// Which one it is.
    pub fn definition(&self) -> &'static Definition {
        match self {
            Operator::WilsonLike(operator) => operator.definition,
            Operator::Staggered(operator) => operator.definition,
        }
    }
    /// What lives on the sites.
    pub fn kind(&self) -> FermionKind {
        self.definition().kind
    }
    /// The bare mass m.
    pub fn mass(&self) -> f64 {
        match self {
            Operator::WilsonLike(operator) => operator.wilson.mass,
            Operator::Staggered(operator) => operator.params.mass,
        }
    }
    /// The same with another mass.
    #[must_use]
    pub fn with_mass(self, mass: f64) -> Self {
        match self {
            Operator::WilsonLike(operator) => {
                Operator::WilsonLike(WilsonLike { wilson: WilsonParams { mass, ..operator.wilson }, ..operator })
            }
            Operator::Staggered(operator) => Operator::Staggered(StaggeredOperator {
                params: StaggeredParams { mass, ..operator.params },
                ..operator
            }),
        }
    }
    /// What is said beside an answer of how fat and long links are made, once that is known, if they were not `read` as they
    /// are.
    pub fn describe_smearing(&self, read: bool) -> Map<String, Value> {
        match self {
            Operator::WilsonLike(_) => Map::new(),
            Operator::Staggered(operator) => if read { Smearing::None } else { operator.smearing }.describe(),
        }
    }
    /// Twisted boundary conditions.
    pub fn theta(&self) -> BoundaryAngles {
        match self {
            Operator::WilsonLike(operator) => operator.theta,
            Operator::Staggered(operator) => operator.theta,
        }
    }
    /// The same with twisted boundary conditions.
    #[must_use]
    pub fn with_theta(self, theta: BoundaryAngles) -> Self {
        match self {
            Operator::WilsonLike(operator) => Operator::WilsonLike(WilsonLike { theta, ..operator }),
            Operator::Staggered(operator) => Operator::Staggered(StaggeredOperator { theta, ..operator }),
        }
    }
    /// How its links are stored where a storage is asked for. Those in U(3) need the phase of their determinant beside 12 or 8 reals,
    /// or all reals where there are no kernels with it: links in SU(3) with phases of twisted boundary conditions, and long links of
    /// HISQ.
    pub fn storage(&self, asked: LinkStorage) -> LinkStorage {
        match (self.definition().staggered(), self.theta().are_zero()) {
            (Some(links), without) if links.improved => {
                if links.in_u3 || !without {
                    asked.with_phase()
                } else {
                    asked
                }
            }
            (_, true) => asked,
            (_, false) => asked.with_all_reals(),
        }
    }
    /// The boundary condition in t.
    pub fn boundary(&self) -> TimeBoundary {
        match self {
            Operator::WilsonLike(operator) => operator.wilson.boundary,
            Operator::Staggered(operator) => operator.params.boundary,
        }
    }
}

impl From<WilsonLike> for Operator {
    fn from(operator: WilsonLike) -> Self {
        Operator::WilsonLike(operator)
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
