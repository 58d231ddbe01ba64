//! Links that evolve, in molecular dynamics or along a flow, and the fields that are made from them between two steps.
use super::hops::QuarkSmearing;
use super::stout::{StoutLinks, StoutSmearing};
use crate::domain::{DeviceError, Result};
use crate::field::{DeviceGauge, GaugeField};
use crate::operators::fat_links::FirstLevel;
use crate::solve::{ImprovedLinks, LinkCache, LinkFormatKey, Slot};
use gpu_kernels::momenta::{CONVERT_THIN, ConvertThin};
use gpu_kernels::{Format, Precision};
use solvers::{Iteration, Observer, Step};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

impl GaugeField {
    /// Returns the links in double or single precision. If they already have this precision, the result shares their memory.
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

/// Signal to end a trajectory. Solvers query it after each iteration, and molecular dynamics before each move. All processes must give the
/// same signal.
#[derive(Clone, Default)]
pub struct StopSignal(Option<Rc<dyn Fn() -> bool>>);

impl StopSignal {
    /// Makes a signal from `is_asked`, which returns whether to stop.
    pub fn new(is_asked: impl Fn() -> bool + 'static) -> Self {
        StopSignal(Some(Rc::new(is_asked)))
    }
    /// Whether the trajectory must end now.
    pub fn is_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|is_asked| is_asked())
    }
    /// Whether the signal may ever be given.
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

/// Fields made from the links between two steps, except those that [`LinkCache`] holds for the links and for stout links.
#[derive(Default)]
pub(crate) struct MadeOfLinks {
    /// Copies of the links by precision.
    thin: Slot<Precision, Rc<GaugeField>>,
    /// Stout links with all their levels.
    stout: Slot<(StoutSmearing, Precision), Rc<StoutLinks>>,
    /// Packed links and diagonal terms, of the links or of stout links.
    caches: Slot<Option<StoutSmearing>, Rc<LinkCache>>,
    /// Fat and long links of each smearing.
    pub improved: Slot<QuarkSmearing, Rc<ImprovedLinks>>,
    /// First level of HISQ, in double precision.
    first_level: Slot<(), Rc<FirstLevel>>,
    /// Fat links of HISQ's first level before their projection to U(3), by precision.
    pub first_fat: Slot<Precision, Rc<GaugeField>>,
    /// Links of HISQ's first level after their projection to U(3), by precision.
    pub first_unitary: Slot<Precision, Rc<GaugeField>>,
    /// Number of links of HISQ's first level whose force is guarded.
    pub first_guarded: Slot<(), usize>,
}

/// Links that evolve, in double or single precision. Copies in other formats and smeared links are kept until the links change.
pub struct EvolvingLinks {
    links: GaugeField,
    made: MadeOfLinks,
    stop: StopSignal,
    setup_stop: StopSignal,
}

impl EvolvingLinks {
    /// Creates evolving links as a copy of `links` in `precision`, double or single.
    pub fn new(links: &GaugeField, precision: Precision) -> Result<Self> {
        let links = links.converted(precision)?.copied()?;
        let [stop, setup_stop] = Default::default();
        Ok(EvolvingLinks { links, made: MadeOfLinks::default(), stop, setup_stop })
    }
    /// Sets the signal that ends later work on the links, multigrid setups included.
    pub fn stop_when(&mut self, stop: StopSignal) {
        self.setup_stop = stop.clone();
        self.stop = stop;
    }
    /// Sets the signal that ends multigrid setups on these links and the trajectories that need the setups.
    pub fn stop_setups_when(&mut self, stop: StopSignal) {
        self.setup_stop = stop;
    }
    /// Returns the signal that ends multigrid setups on the links.
    pub fn setup_stop(&self) -> &StopSignal {
        &self.setup_stop
    }
    /// Returns the signal that ends work on the links.
    pub fn stop(&self) -> &StopSignal {
        &self.stop
    }
    /// Returns the precision in which the links evolve.
    pub fn precision(&self) -> Precision {
        self.links.precision()
    }
    /// Returns the links in the precision in which they evolve.
    pub fn own(&self) -> &GaugeField {
        &self.links
    }
    /// Returns the links for modification, and drops all fields that were made from them.
    pub fn own_mut(&mut self) -> &mut GaugeField {
        self.made = MadeOfLinks::default();
        &mut self.links
    }
    /// Returns the links, without smearing, in `precision`.
    pub fn thin(&self, precision: Precision) -> Result<Rc<GaugeField>> {
        self.made.thin.get(precision, || Ok(Rc::new(self.links.converted(precision)?)))
    }
    /// *Collective.* Returns the stout links of all levels, converted to `precision`; the smearing itself is computed in double precision.
    pub fn stout(&self, smearing: &StoutSmearing, precision: Precision) -> Result<Rc<StoutLinks>> {
        let double = || Ok::<_, DeviceError>(Rc::new(smearing.levels(&*self.thin(Precision::Double)?)?));
        let all = self.made.stout.get((*smearing, Precision::Double), double)?;
        if precision == Precision::Double {
            return Ok(all);
        }
        self.made.stout.get((*smearing, precision), || Ok(Rc::new(all.converted(precision)?)))
    }
    /// *Collective.* Returns the links, or stout links of them, in a precision.
    pub(crate) fn smeared(&self, stout: Option<StoutSmearing>, precision: Precision) -> Result<Rc<GaugeField>> {
        match stout {
            None => self.thin(precision),
            Some(smearing) => Ok(Rc::new(self.stout(&smearing, precision)?.smeared().share())),
        }
    }
    /// Returns the cache of packed links and diagonal terms for solves, with the links or with stout links.
    pub(crate) fn cache(&self, stout: Option<StoutSmearing>) -> Rc<LinkCache> {
        match self.made.caches.get(stout, || Ok::<_, Infallible>(Rc::default())) {
            Ok(cache) => cache,
            Err(never) => match never {},
        }
    }
    /// *Collective.* Returns the links, or stout links of them, packed in a format, with the phases of twisted boundary conditions.
    pub(crate) fn packed(&self, stout: Option<StoutSmearing>, format: LinkFormatKey) -> Result<Arc<DeviceGauge>> {
        let LinkFormatKey { theta, precision, storage } = format;
        self.cache(stout).packed.get(format, || {
            let phases = theta.of_hops(self.links.domain().global());
            Ok(Arc::new(self.smeared(stout, Precision::Double)?.pack_with(phases, precision, storage)?))
        })
    }
    /// *Collective.* Returns the first level of HISQ, which quarks with different ε share.
    pub(crate) fn first_level(&self) -> Result<Rc<FirstLevel>> {
        self.made.first_level.get((), || Ok(Rc::new(FirstLevel::of(&*self.thin(Precision::Double)?)?)))
    }
    /// Returns the fields that were made from the links since their last change.
    pub(crate) fn made(&self) -> &MadeOfLinks {
        &self.made
    }
}
