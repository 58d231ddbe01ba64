//! Stout links of operators: the keys `stout-rho`, `stout-levels` and `stout-spatial`.
use super::communicator::RunCommunicator;
use super::device::Device;
use super::layout::Layout;
use super::{Outcome, interrupt, text};
use crate::config::Settings;
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::gauge::measure::Plaquettes;
use ferrite::halo::{Exchanges, Needs};
use ferrite::hmc::stout::{LARGEST_RHO, MOST_LEVELS, StoutSmearing};
use ferrite_records::operator::Stout;

/// ρ as typed.
pub fn rho(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(x) if (0.0..=LARGEST_RHO).contains(&x) => Ok(x),
        _ => Err(format!("'{typed}' is not a number from 0 to {LARGEST_RHO}")),
    }
}

/// How the links of an operator are smeared, if they are, by keys behind a `prefix`. What is wrong is noted.
pub fn of_operator(settings: &mut Settings, prefix: &str) -> Option<StoutSmearing> {
    let [of_rho, of_levels, of_spatial] =
        ["stout-rho", "stout-levels", "stout-spatial"].map(|key| format!("{prefix}{key}"));
    let rho = settings.parsed(&of_rho, rho);
    let levels = settings.count(&of_levels, 1..=MOST_LEVELS.into());
    let spatial = settings.is_on(&of_spatial);
    if !settings.was_given(&of_rho) {
        for key in [of_levels, of_spatial] {
            if let Some(setting) = settings.get(&key) {
                settings.wrong(&setting, "belongs to stout links: give stout-rho, the weight of a staple, too");
            }
        }
    }
    Some(StoutSmearing { rho: rho?, levels: levels.unwrap_or(1), spatial })
}

/// Returns the record of stout smearing.
pub fn record(StoutSmearing { rho, levels, spatial }: StoutSmearing) -> Stout {
    Stout { rho, levels, spatial }
}

/// `2 levels of stout links in space, rho = 0.1`
pub fn sentence(smearing: StoutSmearing) -> String {
    let StoutSmearing { rho, levels, spatial } = smearing;
    let place = if spatial { " in space" } else { "" };
    format!("{} of stout links{place}, rho = {}", text::count(levels, "level"), text::number(rho))
}

/// What making smeared links takes on a device, with names.
fn needs(part: Part, sites: usize) -> Needs {
    let mut needs = vec![
        ("links", part.links_bytes(Precision::Double)),
        ("staples", StoutSmearing::workspace_bytes(part, Precision::Double)),
        ("their way to the host", 576 * sites),
    ];
    needs.extend(Exchanges::of(part).border(Precision::Double).needs());
    needs
}

/// The memory of a command whose operator has smeared links: these are made before anything else is there.
pub fn with_smearing(smearing: Option<StoutSmearing>, part: Part, sites: usize, others: Needs) -> Needs {
    let sum = |needs: &Needs| needs.iter().map(|(_, bytes)| bytes).sum::<usize>();
    let more = smearing.map_or(0, |_| sum(&needs(part, sites)).saturating_sub(sum(&others)));
    let more = (more > 0).then_some(("more for making stout links", more));
    others.into_iter().chain(more).collect()
}

/// *Collective.* Smears links in host memory on the device; the plaquettes afterwards. A signal ends it after a level.
pub fn smear(
    smearing: StoutSmearing,
    gauge: &mut HostGauge,
    device: &Device,
    layout: &Layout,
    comm: &RunCommunicator,
) -> Outcome<Plaquettes> {
    let domain = layout.domain(device.backend())?;
    let mut links = GaugeField::upload(&domain, gauge)?;
    if !smearing.smear_while(&mut links, &mut || interrupt::flow(comm))? {
        return Err(interrupt::during("smearing of links"));
    }
    *gauge = links.download()?;
    let (plaquettes, _) = links.plaquette()?;
    domain.release()?;
    Ok(plaquettes)
}
