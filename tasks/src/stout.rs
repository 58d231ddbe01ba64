//! Stout links of operators: the keys `stout-rho`, `stout-levels` and `stout-spatial`.
use super::device::Device;
use super::layout::Layout;
use super::session::Session;
use super::{Outcome, text};
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::gauge::measure::Plaquettes;
use ferrite::halo::{Exchanges, Needs};
use ferrite::hmc::stout::{LARGEST_RHO, MOST_SMEARING_LEVELS, StoutSmearing};
use ferrite_inputs::values::Kind;
use ferrite_inputs::values::{Count, Meaning, Parsed, Switch};
use ferrite_inputs::{Given, Input};
use ferrite_records::operator::Stout;
use serde::Deserialize;

/// Parses the weight ρ of stout smearing.
pub fn rho(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(x) if (0.0..=LARGEST_RHO).contains(&x) => Ok(x),
        _ => Err(format!("'{typed}' is not a number from 0 to {LARGEST_RHO}")),
    }
}

/// Weight ρ of stout smearing, as typed.
#[derive(Debug)]
struct Rho;
impl Parsed for Rho {
    type Out = f64;
    const KIND: Kind = Kind::Number;
    fn parse(text: &str) -> Result<f64, String> {
        rho(text)
    }
}

/// Keys of stout smearing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct StoutKeys {
    stout_rho: Given<Meaning<Rho>>,
    stout_levels: Given<Count<1, { MOST_SMEARING_LEVELS as usize }>>,
    stout_spatial: Given<Switch>,
}

/// Returns the stout smearing of an operator's links from the keys of a table; `None` without smearing. Mistakes are added to the input.
pub fn of_operator(input: &mut Input, table: &str) -> Option<StoutSmearing> {
    let StoutKeys { stout_rho, stout_levels, stout_spatial } = input.read(table);
    let rho = if table.is_empty() { "stout-rho".into() } else { format!("{table}.stout-rho") };
    if !input.was_given(&rho) {
        let weight = input.spelled("stout-rho", "");
        let why = format!("applies to stout links: also give {weight}, the weight of a staple");
        input.wrong(&stout_levels, &why);
        input.wrong(&stout_spatial, &why);
    }
    let levels = stout_levels.or(1);
    Some(StoutSmearing { rho: stout_rho.value()?, levels, spatial: stout_spatial.is_on() })
}

/// Returns the record of stout smearing.
pub fn record(StoutSmearing { rho, levels, spatial }: StoutSmearing) -> Stout {
    Stout { rho, levels, spatial }
}

/// Describes stout smearing for people, for example `2 levels of stout links in space, rho = 0.1`.
pub fn sentence(smearing: StoutSmearing) -> String {
    let StoutSmearing { rho, levels, spatial } = smearing;
    let place = if spatial { " in space" } else { "" };
    format!("{} of stout links{place}, rho = {}", text::count(levels, "level"), text::number(rho))
}

/// Returns the device memory that stout smearing needs, by name.
fn needs(part: Part, sites: usize) -> Needs {
    let mut needs = vec![
        ("links", part.links_bytes(Precision::Double)),
        ("staples", StoutSmearing::workspace_bytes(part, Precision::Double)),
        ("transfer of links to the host", 576 * sites),
    ];
    needs.extend(Exchanges::of(part).border(Precision::Double).needs());
    needs
}

/// Returns the peak memory of a command whose operator may have stout links. The links are smeared before the memory `others` is allocated,
/// so only the excess of smearing over `others` is added.
pub fn with_smearing(smearing: Option<StoutSmearing>, part: Part, sites: usize, others: Needs) -> Needs {
    let sum = |needs: &Needs| needs.iter().map(|(_, bytes)| bytes).sum::<usize>();
    let more = smearing.map_or(0, |_| sum(&needs(part, sites)).saturating_sub(sum(&others)));
    let more = (more > 0).then_some(("additional memory for stout links", more));
    others.into_iter().chain(more).collect()
}

/// *Collective.* Smears links in host memory with the help of the device. Returns the plaquettes of the smeared links. A requested stop
/// takes effect after a smearing step.
pub fn smear(
    smearing: StoutSmearing,
    gauge: &mut HostGauge,
    device: &Device,
    layout: &Layout,
    session: &Session,
) -> Outcome<Plaquettes> {
    let domain = layout.domain(device.backend())?;
    let mut links = GaugeField::upload(&domain, gauge)?;
    if !smearing.smear_while(&mut links, &mut || session.flow())? {
        return Err(session.stopped_during("smearing of links"));
    }
    *gauge = links.download()?;
    let (plaquettes, _) = links.plaquette()?;
    domain.release()?;
    Ok(plaquettes)
}
