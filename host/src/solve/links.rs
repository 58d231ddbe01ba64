//! Links in the formats of operators, and terms made from them. They are computed when first needed, and kept as long as the links do not
//! change.
use crate::domain::Result;
use crate::field::{DeviceGauge, HermitianBlocks};
use crate::operators::fat_links::{Improvement, LinkGroup};
use crate::operators::{BoundaryAngles, COEFFICIENTS, Definition, Diagonal, StaggeredLinks, WilsonLike, WilsonParams};
use gpu_kernels::{LinkStorage, Precision};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Values of one type that are made from links, each stored under a key.
pub(crate) struct Slot<K, V>(RefCell<Vec<(K, V)>>);

impl<K, V> Default for Slot<K, V> {
    fn default() -> Self {
        Slot(RefCell::default())
    }
}

impl<K: PartialEq, V: Clone> Slot<K, V> {
    /// Returns the value that is stored under `key`. If there is none, stores and returns the result of `make`.
    ///
    /// # Errors
    /// Errors of `make`, which leave the slot unchanged.
    pub fn get<E>(&self, key: K, make: impl FnOnce() -> std::result::Result<V, E>) -> std::result::Result<V, E> {
        // `make` may use other values of this slot, so the slot is not borrowed while `make` runs.
        if let Some(made) = self.find(&key) {
            return Ok(made);
        }
        let made = make()?;
        self.0.borrow_mut().push((key, made.clone()));
        Ok(made)
    }
    /// Returns the value under `key` like [`get`](Self::get), but first drops the values of all other keys. This is for large values, which
    /// should not exist twice.
    ///
    /// # Errors
    /// Errors of `make`, after which the slot is empty.
    pub fn only<E>(&self, key: K, make: impl FnOnce() -> std::result::Result<V, E>) -> std::result::Result<V, E> {
        self.retain(|other| *other == key);
        self.get(key, make)
    }
    /// Drops the values of all keys for which `is_kept` is false.
    pub fn retain(&self, is_kept: impl Fn(&K) -> bool) {
        self.0.borrow_mut().retain(|(key, _)| is_kept(key));
    }
    fn find(&self, key: &K) -> Option<V> {
        self.0.borrow().iter().find(|(other, _)| other == key).map(|(_, made)| made.clone())
    }
}

/// Format of packed links, as a key.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct LinkFormatKey {
    pub theta: BoundaryAngles,
    pub precision: Precision,
    pub storage: LinkStorage,
}

/// Parameters of the diagonal term A of a Wilson-like operator, as a key. A does not depend on the complement. Nor does A depend on twisted
/// boundary conditions, because plaquettes have no phases.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct TermOf {
    definition: &'static Definition,
    wilson: WilsonParams,
    coefficients: [f64; COEFFICIENTS],
}

impl From<WilsonLike> for TermOf {
    fn from(WilsonLike { definition, wilson, coefficients, .. }: WilsonLike) -> Self {
        TermOf { definition, wilson, coefficients }
    }
}

/// Copies of links, and terms made from them, for solves and for molecular dynamics.
#[derive(Default)]
pub(crate) struct LinkCache {
    /// Links packed for kernels, by format and boundary angles.
    pub packed: Slot<LinkFormatKey, Arc<DeviceGauge>>,
    /// Diagonal terms of Wilson-like operators, in double precision.
    pub terms: Slot<TermOf, Diagonal>,
    /// Exponents C of exponential clover terms, in double precision, by the coefficients of the spatial and temporal planes.
    pub exponents: Slot<[f64; 2], Rc<[HermitianBlocks; 2]>>,
}

/// Fat and long links in double precision, and their copies in other formats.
pub(crate) struct ImprovedLinks {
    pub links: Improvement,
    packed: Slot<LinkFormatKey, Arc<StaggeredLinks>>,
    singular: OnceCell<bool>,
}

impl ImprovedLinks {
    pub fn new(links: Improvement) -> Rc<Self> {
        Rc::new(ImprovedLinks { links, packed: Slot::default(), singular: OnceCell::new() })
    }
    /// Returns fat and long links packed in a format.
    pub fn packed(&self, format: LinkFormatKey) -> Result<Arc<StaggeredLinks>> {
        let LinkFormatKey { theta, precision, storage } = format;
        let phases = theta.of_hops(self.links.fat.domain().global());
        self.packed.get(format, || Ok(Arc::new(self.links.pack_with(phases, precision, storage)?)))
    }
    /// Drops the packed copies whose boundary angles are not `theta`.
    pub fn keep_only(&self, theta: BoundaryAngles) {
        self.packed.retain(|format| format.theta == theta);
    }
    /// Whether some long links cannot be represented by 8 or 9 reals.
    fn are_singular(&self) -> Result<bool> {
        if let Some(known) = self.singular.get() {
            return Ok(*known);
        }
        let found = self.links.singular_long_links()? > 0;
        Ok(*self.singular.get_or_init(|| found))
    }
    /// Returns the storage in which long links can be kept if `asked` is requested. Links that are not in SU(3) also need the phase of
    /// their determinant.
    pub fn possible(&self, theta: BoundaryAngles, asked: LinkStorage) -> Result<LinkStorage> {
        let fitting = match self.links.long_group {
            LinkGroup::Su3 if theta.are_zero() => asked,
            LinkGroup::Su3 => asked.with_phase(),
            LinkGroup::U3 => asked.with_phase(),
            LinkGroup::Neither => LinkStorage { fine: false, ..asked.with_all_reals() },
        };
        Ok(if fitting.has_singular_links() && self.are_singular()? { fitting.with_two_rows() } else { fitting })
    }
}
