//! Links that evolve, in molecular dynamics or along a flow, and what is made from them between two steps.
use super::stout::{StoutLinks, StoutSmearing};
use crate::domain::Result;
use crate::field::GaugeField;
use gpu_kernels::momenta::{CONVERT_THIN, ConvertThin};
use gpu_kernels::{Format, Precision};
use solvers::{Iteration, Observer};
use std::any::Any;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

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
}

/// Links that evolve, in double or in single precision. What is made from them, copies in other formats and smeared links, is
/// kept until their next step.
pub struct EvolvingLinks {
    links: GaugeField,
    made: RefCell<Vec<(String, Rc<dyn Any>)>>,
    stop: StopSignal,
}

impl EvolvingLinks {
    /// Copies of links, in a precision.
    pub fn new(links: &GaugeField, precision: Precision) -> Result<Self> {
        let links = links.converted(precision)?.copied()?;
        Ok(EvolvingLinks { links, made: RefCell::default(), stop: StopSignal::default() })
    }
    /// From now on work on them ends where `stop` asks for it.
    pub fn stop_when(&mut self, stop: StopSignal) {
        self.stop = stop;
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
        self.made.take();
        &mut self.links
    }
    /// In a precision.
    pub fn thin(&self, precision: Precision) -> Result<Rc<GaugeField>> {
        self.made_of(format!("thin links in {precision}"), || self.links.converted(precision))
    }
    /// *Collective.* Stout links of them, level by level, in a precision; they are smeared in double precision.
    pub fn stout(&self, smearing: &StoutSmearing, precision: Precision) -> Result<Rc<StoutLinks>> {
        let name = |precision: Precision| format!("{smearing:?} in {precision}");
        let double = || smearing.levels(&*self.thin(Precision::Double)?);
        let all = self.made_of(name(Precision::Double), double)?;
        if precision == Precision::Double {
            return Ok(all);
        }
        self.made_of(name(precision), || all.converted(precision))
    }
    /// What `make` makes of the links; it does so only once for each `name`, which says what and of which type that is.
    pub(crate) fn made_of<M: 'static, E>(
        &self,
        name: String,
        make: impl FnOnce() -> std::result::Result<M, E>,
    ) -> std::result::Result<Rc<M>, E> {
        let known = self.made.borrow().iter().find(|(other, _)| *other == name).map(|(_, made)| made.clone());
        if let Some(made) = known.and_then(|made| made.downcast().ok()) {
            return Ok(made);
        }
        let made = Rc::new(make()?);
        self.made.borrow_mut().push((name, made.clone()));
        Ok(made)
    }
}
