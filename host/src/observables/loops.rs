//! Loops that are measured on every configuration: plaquettes, rectangles and Polyakov loops.
use super::polyakov::polyakov_loop;
use super::quantity::{PLAQUETTE, PLAQUETTE_SPATIAL, PLAQUETTE_TEMPORAL};
use crate::domain::Result;
use crate::field::GaugeField;
use crate::gauge::loops::{LoopKind, LoopPath, closed_loops, mean_traces};
use crate::gauge::measure::Plaquettes;
use num_complex::Complex64;

/// Means of loops over the lattice; each mean is 1 on unit links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopMeans {
    /// Means of Re tr / 3 over all plaquettes, over the spatial plaquettes and over the temporal plaquettes.
    pub plaquette: Plaquettes,
    /// Mean of Re tr / 3 over all rectangles of two links by one.
    pub rectangle: f64,
    /// Mean of tr / 3 of the product of all links along t.
    pub polyakov: Complex64,
}

impl LoopMeans {
    /// *Collective.* Measures the loops; `links` must be in double precision.
    ///
    /// # Errors
    /// The errors of [`mean_traces`].
    pub fn of(links: &GaugeField) -> Result<Self> {
        let (plaquette, _) = links.plaquette()?;
        let rectangles: Vec<LoopPath> =
            closed_loops().into_iter().filter(|path| path.kind == LoopKind::Rectangle).collect();
        let traces = mean_traces(links, &rectangles)?;
        let rectangle = traces.iter().sum::<f64>() / (3 * traces.len()) as f64;
        Ok(LoopMeans { plaquette, rectangle, polyakov: polyakov_loop(links)? })
    }
    /// Whether all means are finite numbers.
    pub fn is_finite(&self) -> bool {
        let Plaquettes { mean, spatial, temporal } = self.plaquette;
        [mean, spatial, temporal, self.rectangle].iter().all(|x| x.is_finite()) && self.polyakov.is_finite()
    }
}

/// Returns three lines of text: the mean plaquette over all planes, over the spatial planes and over the planes with t.
pub fn plaquette_text(plaquette: &Plaquettes) -> String {
    let Plaquettes { mean, spatial, temporal } = *plaquette;
    PLAQUETTE.line_of(mean) + &PLAQUETTE_SPATIAL.line_of(spatial) + &PLAQUETTE_TEMPORAL.line_of(temporal)
}
