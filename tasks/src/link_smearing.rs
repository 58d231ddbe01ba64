//! Stout, APE and HYP smearing of links as one type.
use crate::bounds::{at_most, number};
use crate::{Failure, Outcome, text};
use ferrite::Precision;
use ferrite::domain::{Part, Result};
use ferrite::field::GaugeField;
use ferrite::gauge::ape_hyp::{ProjectedSmearing, Projection, SumsOfStaples};
use ferrite::halo::Needs;
use ferrite::hmc::stout::{LARGEST_RHO, MOST_SMEARING_LEVELS, StoutSmearing};
use serde::Deserialize;
use std::ops::ControlFlow;

/// Smearing method of links, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkSmearing {
    /// Stout smearing.
    Stout(StoutSmearing),
    /// APE or HYP smearing: sums of links and staples are projected to SU(3).
    Projected(ProjectedSmearing),
}

/// Request for a smearing of links, by name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmearingRequest {
    /// Name of the smearing: `stout`, `ape` or `hyp`.
    pub kind: String,
    /// Weights of the staples: ρ for stout, α for APE, or α₁, α₂, α₃ for HYP smearing.
    pub weights: Vec<f64>,
    /// Number of smearing steps.
    #[serde(default = "one")]
    pub levels: usize,
    /// Whether only spatial links are smeared, by spatial staples.
    #[serde(default)]
    pub spatial: bool,
}

fn one() -> usize {
    1
}

impl SmearingRequest {
    /// Returns the smearing that the request names.
    ///
    /// # Errors
    /// An unknown name, another number of weights than the smearing has, weights out of range, and too many steps.
    pub fn smearing(&self) -> Outcome<LinkSmearing> {
        let SmearingRequest { levels, spatial, .. } = *self;
        at_most("levels", levels as u64, MOST_SMEARING_LEVELS.into())?;
        let most = if self.kind == "stout" { LARGEST_RHO } else { 1.0 };
        for weight in &self.weights {
            number("weights", *weight, &format!("a number from 0 to {most}"), |x| (0.0..=most).contains(&x))?;
        }
        let projected = |sums| {
            Ok(LinkSmearing::Projected(ProjectedSmearing { sums, levels, spatial, projection: Projection::default() }))
        };
        match (self.kind.as_str(), self.weights.as_slice()) {
            ("stout", &[rho]) => Ok(LinkSmearing::Stout(StoutSmearing { rho, levels, spatial })),
            ("ape", &[alpha]) => projected(SumsOfStaples::Ape(alpha)),
            ("hyp", &[first, second, third]) => projected(SumsOfStaples::Hyp([first, second, third])),
            (kind, weights) => Err(Failure::refused(format!(
                "'{kind}' with {} is not a smearing: stout and ape take one weight, hyp takes three",
                text::count(weights.len(), "weight")
            ))),
        }
    }
}

impl LinkSmearing {
    /// Returns the device memory that smearing needs on a part of the lattice, by name.
    pub fn needs(&self, part: Part) -> Needs {
        let fields = |count: usize| count * part.links_bytes(Precision::Double);
        match self {
            LinkSmearing::Stout(_) => vec![
                ("links and smeared links", fields(2)),
                ("staples", StoutSmearing::workspace_bytes(part, Precision::Double)),
            ],
            LinkSmearing::Projected(smearing) => vec![("links and smeared links", fields(smearing.fields()))],
        }
    }
    /// *Collective.* Returns the smeared links.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn smeared(&self, links: &GaugeField) -> Result<GaugeField> {
        match self {
            LinkSmearing::Stout(smearing) => smearing.smeared(links),
            LinkSmearing::Projected(smearing) => smearing.smeared(links),
        }
    }
    /// *Collective.* Returns the smeared links; `None` if `go_on` ended the work after a smearing step.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn smeared_while(
        &self,
        links: &GaugeField,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<GaugeField>> {
        match self {
            LinkSmearing::Stout(smearing) => smearing.smeared_while(links, go_on),
            LinkSmearing::Projected(smearing) => smearing.smeared_while(links, go_on),
        }
    }
    /// Describes the smearing for people: `stout links in space, rho = 0.1`.
    pub fn title(&self) -> String {
        let place = |spatial| if spatial { " in space" } else { "" };
        match self {
            LinkSmearing::Stout(StoutSmearing { rho, spatial, .. }) => {
                format!("stout links{}, rho = {}", place(*spatial), text::number(*rho))
            }
            LinkSmearing::Projected(ProjectedSmearing { sums, spatial, .. }) => {
                let (name, shares) = match sums {
                    SumsOfStaples::Ape(alpha) => ("APE", text::number(*alpha)),
                    SumsOfStaples::Hyp(alpha) => ("HYP", alpha.map(text::number).join(", ")),
                };
                format!("{name}-smeared links{}, alpha = {shares}", place(*spatial))
            }
        }
    }
    /// Returns the name of the smearing, ρ of stout smearing, and the weights α of APE or HYP smearing.
    pub fn parameters(&self) -> (&'static str, Option<f64>, Option<Vec<f64>>) {
        match self {
            LinkSmearing::Stout(StoutSmearing { rho, .. }) => ("stout", Some(*rho), None),
            LinkSmearing::Projected(ProjectedSmearing { sums: SumsOfStaples::Ape(alpha), .. }) => {
                ("ape", None, Some(vec![*alpha]))
            }
            LinkSmearing::Projected(ProjectedSmearing { sums: SumsOfStaples::Hyp(alpha), .. }) => {
                ("hyp", None, Some(alpha.to_vec()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_go_with_names() {
        let of = |kind: &str, weights: &[f64]| {
            let request = SmearingRequest { kind: kind.into(), weights: weights.into(), levels: 2, spatial: true };
            request.smearing().map(|smearing| smearing.title()).map_err(|why| why.message)
        };
        assert_eq!(of("stout", &[0.1]), Ok("stout links in space, rho = 0.1".into()));
        assert_eq!(of("hyp", &[0.75, 0.6, 0.3]), Ok("HYP-smeared links in space, alpha = 0.75, 0.6, 0.3".into()));
        assert_eq!(
            of("ape", &[0.5, 0.5]),
            Err("'ape' with 2 weights is not a smearing: stout and ape take one weight, hyp takes three".into())
        );
        assert_eq!(
            of("nhyp", &[0.5]),
            Err("'nhyp' with 1 weight is not a smearing: stout and ape take one weight, hyp takes three".into())
        );
    }
}
