//! Links that evolve, in molecular dynamics or along a flow, and what is made from them between two steps.
use super::fermions::QuarkSmearing;
use super::stout::{StoutLinks, StoutSmearing};
use crate::domain::Result;
use crate::field::{DeviceGauge, GaugeField, HermitianBlocks};
use crate::operators::fat_links::{FirstLevel, Improvement};
use crate::operators::{BoundaryAngles, COEFFICIENTS, Definition, Diagonal, StaggeredLinks, WilsonParams};
use gpu_kernels::momenta::{CONVERT_THIN, ConvertThin};
use gpu_kernels::{Format, LinkStorage, Precision};
use solvers::{Iteration, Observer, Step};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

impl GaugeField {
    /// The same links in another precision, double or single; the very same memory in their own.
    ///
    /// # Errors
    /// A precision of 16 bits, and failures of the device.
    pub fn converted(&self, precision: Precision) -> Result<GaugeField> {
        if precision == self.precision() {
            return Ok(self.share());
        }
        let out = GaugeField::empty(self.domain(), precision)?;
        let format = Format::between(self.precision(), precision);
        for parity in 0..2 {
            let kernel = ConvertThin { input: self.links(parity), out: out.links(parity) };
            self.domain().backend().launch(&CONVERT_THIN, format, &kernel, self.bordered_sites(), 4)?;
        }
        Ok(out)
    }
}

/// Whether somebody wants a trajectory to end: solvers ask after each iteration, and molecular dynamics before each move. On
/// several processes the answer has to be the same on all of them.
#[derive(Clone, Default)]
pub struct StopSignal(Option<Rc<dyn Fn() -> bool>>);

impl StopSignal {
    /// Asks `is_asked`.
    pub fn new(is_asked: impl Fn() -> bool + 'static) -> Self {
        StopSignal(Some(Rc::new(is_asked)))
    }
    /// Whether the trajectory is to end now.
    pub fn is_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|is_asked| is_asked())
    }
    /// Whether it may ever be.
    pub(super) fn may_come(&self) -> bool {
        self.0.is_some()
    }
}

impl Observer for StopSignal {
    fn iteration(&mut self, _: &Iteration<'_>) -> ControlFlow<()> {
        if self.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
    fn step(&mut self, _: &Step<'_>) -> ControlFlow<()> {
        if self.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Values of one type that are made from links, each with the key of what it was made for.
pub(crate) struct Slot<K, V>(RefCell<Vec<(K, Rc<V>)>>);

impl<K, V> Default for Slot<K, V> {
    fn default() -> Self {
        Slot(RefCell::default())
    }
}

impl<K: PartialEq, V> Slot<K, V> {
    /// Returns the value of a key, which `make` makes where there is none yet.
    ///
    /// # Errors
    /// Those of `make`; then the slot stays as it was.
    pub(crate) fn get<E>(
        &self,
        key: K,
        make: impl FnOnce() -> std::result::Result<V, E>,
    ) -> std::result::Result<Rc<V>, E> {
        // `make` may need other values of this slot: nothing is borrowed while it works.
        let known = self.0.borrow().iter().find(|(other, _)| *other == key).map(|(_, made)| Rc::clone(made));
        if let Some(made) = known {
            return Ok(made);
        }
        let made = Rc::new(make()?);
        self.0.borrow_mut().push((key, Rc::clone(&made)));
        Ok(made)
    }
}

/// Key of the links that staggered quarks hop over, as solvers have them.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct StaggeredFormat {
    pub smearing: QuarkSmearing,
    pub theta: BoundaryAngles,
    pub precision: Precision,
    pub storage: LinkStorage,
}

/// Key of the links that Wilson-like quarks hop over, as solvers have them.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct WilsonFormat {
    pub stout: Option<StoutSmearing>,
    pub theta: BoundaryAngles,
    pub precision: Precision,
    pub storage: LinkStorage,
}

/// Key of the diagonal term A of a Wilson-like operator.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct TermOf {
    pub definition: &'static Definition,
    pub wilson: WilsonParams,
    pub coefficients: [f64; COEFFICIENTS],
    pub stout: Option<StoutSmearing>,
}

/// Everything that is made from the links of one moment.
#[derive(Default)]
pub(crate) struct MadeOfLinks {
    /// Copies of the links.
    pub thin: Slot<Precision, GaugeField>,
    /// Stout links with all their levels.
    pub stout: Slot<(StoutSmearing, Precision), StoutLinks>,
    /// Packed links of staggered quarks.
    pub staggered: Slot<StaggeredFormat, Arc<StaggeredLinks>>,
    /// Fat and long links.
    pub improved: Slot<QuarkSmearing, Improvement>,
    /// The first level of HISQ, in double precision.
    pub first_level: Slot<(), FirstLevel>,
    /// Fat links of that level, before their projection to U(3).
    pub first_fat: Slot<Precision, GaugeField>,
    /// Links of that level in U(3).
    pub first_unitary: Slot<Precision, GaugeField>,
    /// Number of its links whose force is guarded.
    pub first_guarded: Slot<(), usize>,
    /// Packed links of Wilson-like quarks.
    pub wilson: Slot<WilsonFormat, Arc<DeviceGauge>>,
    /// Diagonal terms of Wilson-like operators, in double precision.
    pub terms: Slot<TermOf, Diagonal>,
    /// Exponents C of exponential clover terms, in double precision, by coefficients in space and time.
    pub exponents: Slot<([f64; 2], Option<StoutSmearing>), [HermitianBlocks; 2]>,
}

/// Links that evolve, in double or in single precision. What is made from them, copies in other formats and smeared links, is
/// kept until their next step.
pub struct EvolvingLinks {
    links: GaugeField,
    made: MadeOfLinks,
    stop: StopSignal,
    setup_stop: StopSignal,
}

impl EvolvingLinks {
    /// Copies of links, in a precision.
    pub fn new(links: &GaugeField, precision: Precision) -> Result<Self> {
        let links = links.converted(precision)?.copied()?;
        let [stop, setup_stop] = Default::default();
        Ok(EvolvingLinks { links, made: MadeOfLinks::default(), stop, setup_stop })
    }
    /// From now on work on them ends where `stop` asks for it.
    pub fn stop_when(&mut self, stop: StopSignal) {
        self.setup_stop = stop.clone();
        self.stop = stop;
    }
    /// Lets multigrid setups on these links end where `stop` asks for it, and with a setup the trajectory that needs it.
    pub fn stop_setups_when(&mut self, stop: StopSignal) {
        self.setup_stop = stop;
    }
    /// Whether multigrid setups on them are to end.
    pub fn setup_stop(&self) -> &StopSignal {
        &self.setup_stop
    }
    /// Whether work on them is to end.
    pub fn stop(&self) -> &StopSignal {
        &self.stop
    }
    /// Of the links as they evolve.
    pub fn precision(&self) -> Precision {
        self.links.precision()
    }
    /// As they are.
    pub fn own(&self) -> &GaugeField {
        &self.links
    }
    /// To change them: what was made from them is forgotten.
    pub fn own_mut(&mut self) -> &mut GaugeField {
        self.made = MadeOfLinks::default();
        &mut self.links
    }
    /// Returns the links in a precision.
    pub fn thin(&self, precision: Precision) -> Result<Rc<GaugeField>> {
        self.made.thin.get(precision, || self.links.converted(precision))
    }
    /// *Collective.* Stout links of them, level by level, in a precision; they are smeared in double precision.
    pub fn stout(&self, smearing: &StoutSmearing, precision: Precision) -> Result<Rc<StoutLinks>> {
        let double = || smearing.levels(&*self.thin(Precision::Double)?);
        let all = self.made.stout.get((*smearing, Precision::Double), double)?;
        if precision == Precision::Double {
            return Ok(all);
        }
        self.made.stout.get((*smearing, precision), || all.converted(precision))
    }
    /// Returns what has been made from the links since their last step.
    pub(crate) fn made(&self) -> &MadeOfLinks {
        &self.made
    }
}
