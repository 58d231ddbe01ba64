//! Links that move, and what is made from them while they stand still.
use crate::domain::Result;
use crate::field::ThinGauge;
use gpu_kernels::momenta::ConvertThin;
use gpu_kernels::storage::Element;
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

impl<T: Element> ThinGauge<T> {
    /// The same links in another precision; the very same memory in their own.
    fn converted<F: Element>(&self) -> Result<ThinGauge<F>> {
        let own: Box<dyn Any> = Box::new(self.share());
        if let Ok(same) = own.downcast::<ThinGauge<F>>() {
            return Ok(*same);
        }
        let out = ThinGauge::<F>::empty(self.domain())?;
        for parity in 0..2 {
            let kernel = ConvertThin { input: self.links(parity), out: out.links(parity) };
            self.domain().backend().launch(&kernel, self.bordered_sites(), 4)?;
        }
        Ok(out)
    }
}

/// Links in precision `T` that move. What is made from them, copies in other formats and smeared links, is kept until they
/// move on.
pub struct MovingLinks<T> {
    links: ThinGauge<T>,
    made: RefCell<Vec<(String, Rc<dyn Any>)>>,
}

impl<T: Element> MovingLinks<T> {
    /// From links in double.
    pub fn new(links: &ThinGauge) -> Result<Self> {
        let links = links.converted::<T>()?.copied()?;
        Ok(MovingLinks { links, made: RefCell::default() })
    }
    /// As they are.
    pub fn own(&self) -> &ThinGauge<T> {
        &self.links
    }
    /// To change them: what was made from them is forgotten.
    pub fn own_mut(&mut self) -> &mut ThinGauge<T> {
        self.made.take();
        &mut self.links
    }
    /// In precision `F`.
    pub fn thin<F: Element>(&self) -> Result<Rc<ThinGauge<F>>> {
        self.made_of(format!("thin links in {}", F::NAME), || self.links.converted())
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
