//! Hybrid Monte Carlo, one trajectory at a time.
use crate::device::{DeviceHandle, PyDevice};
use crate::failure::Returned;
use crate::links::PyLinks;
use crate::typed::Typed;
use ferrite::hmc::links::StopSignal;
use ferrite_records::object;
use ferrite_tasks::ensemble::chain::{ChainRequest, RunningChain};
use pyo3::prelude::*;
use serde_json::{Map, Value};

/// Markov chain on a device.
#[pyclass(frozen, module = "ferrite_lqcd._native", name = "Chain")]
pub struct PyChain {
    kept: DeviceHandle,
    device: Py<PyDevice>,
}

#[pymethods]
impl PyChain {
    /// Returns a chain that starts from these links.
    #[staticmethod]
    fn of(py: Python<'_>, device: Py<PyDevice>, links: &PyLinks, request: Typed<ChainRequest>) -> Returned<Self> {
        let (plan, own) = (request.0.plan()?, links.own.clone());
        let begin = move |thread: &mut crate::device::DeviceThread, _: &_| {
            RunningChain::new(&thread.device.domain(&own.part)?, &own.gauge, plan)
        };
        Ok(PyChain { kept: device.get().keep(py, begin)?, device })
    }
    /// Generates the trajectory `number`, unless it is the last one that was generated, and returns its outcome. A trajectory that is
    /// stopped leaves the chain unchanged.
    fn trajectory(&self, py: Python<'_>, number: u32, reverse: bool) -> Returned<Typed<Map<String, Value>>> {
        let kept = self.kept.number();
        self.device.get().run(py, move |thread, stop| {
            let asked = stop.clone();
            let signal = StopSignal::new(move || asked.is_asked());
            Ok(Typed(object(thread.kept::<RunningChain>(kept)?.trajectory(number, reverse, signal)?)))
        })
    }
    /// Returns the current links of the chain.
    fn links(&self, py: Python<'_>) -> Returned<PyLinks> {
        let kept = self.kept.number();
        let gauge = self.device.get().run(py, move |thread, _| thread.kept::<RunningChain>(kept)?.links())?;
        Ok(PyLinks::new(Some(self.device.bind(py)), gauge)?)
    }
}
