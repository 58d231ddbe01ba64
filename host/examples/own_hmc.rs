//! A hybrid Monte Carlo loop of one's own for SU(3) gauge theory, made of the library's momenta, force, link update and
//! action, which stay on the device.
//!
//! `cargo run --release --example own_hmc`
use ferrite::Precision;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::gauge::generate;
use ferrite::gpu_kernels::random::Philox;
use ferrite::hmc::HmcError;
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::force::{Force, GaugeActionForce};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite::lattice::Lattice;
use ferrite::statistics::average;

const SEED: u64 = 7;
/// Length of a trajectory, and steps in it.
const LENGTH: f64 = 1.0;
const STEPS: usize = 20;

/// H = S(U) + ½ Σ |P|².
fn energy(action: &GaugeAction, links: &EvolvingLinks, momenta: &MomentumField) -> Result<f64, HmcError> {
    Ok(action.value(links.own())? + momenta.kinetic_energy()?)
}

/// Follows the equations of motion by leapfrog.
fn leapfrog(force: &impl Force, links: &mut EvolvingLinks, momenta: &mut MomentumField) -> Result<(), HmcError> {
    let step = LENGTH / STEPS as f64;
    force.kick(links, 0.5 * step, momenta)?;
    for n in 1..=STEPS {
        momenta.move_links(links.own_mut(), step, true)?;
        force.kick(links, if n < STEPS { step } else { 0.5 * step }, momenta)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lattice = Lattice::new([4, 4, 4, 4])?;
    let domain = Domain::single(Cpu::new(None), lattice)?;
    let gauge = GaugeField::upload(&domain, &generate::weak_field(lattice, SEED, 0.3))?;
    let mut links = EvolvingLinks::new(&gauge, Precision::Double)?;
    let mut momenta = MomentumField::zero(&domain, Precision::Double)?;
    let action = GaugeAction::wilson(5.6);
    let force = GaugeActionForce { action, single: false };

    let (mut weights, mut plaquettes, mut accepted) = (Vec::new(), Vec::new(), 0);
    let (thermalise, trajectories) = (30, 200);
    for number in 0..thermalise + trajectories {
        momenta.draw(SEED, number)?;
        let before = links.own().copied()?;
        let start = energy(&action, &links, &momenta)?;
        leapfrog(&force, &mut links, &mut momenta)?;
        let weight = (start - energy(&action, &links, &momenta)?).exp();
        // Metropolis. Far from equilibrium ΔH says nothing, so that the first trajectories are taken as they are.
        let accept = number < thermalise || Philox::new(SEED, u64::from(number), 0).uniform() < weight;
        if !accept {
            links.own_mut().copy_from(&before)?;
        }
        if number >= thermalise {
            weights.push(weight);
            plaquettes.push(links.own().plaquette()?.0.mean);
            accepted += u32::from(accept);
        }
    }

    let (weight, plaquette) = (average(&weights), average(&plaquettes));
    let acceptance = f64::from(accepted) / f64::from(trajectories);
    println!("plaquette     {:.4} ± {:.4}", plaquette.mean, plaquette.error);
    println!("acceptance    {acceptance:.3}");
    println!("<exp(-dH)>    {:.4} ± {:.4}", weight.mean, weight.error);
    // The volume of phase space is kept and the way can be gone backwards: then this is 1, whatever the step.
    if (weight.mean - 1.0).abs() > 4.0 * weight.error || acceptance < 0.5 {
        return Err("this is no hybrid Monte Carlo".into());
    }
    Ok(())
}
