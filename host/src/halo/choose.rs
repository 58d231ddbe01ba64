//! Choice of the fastest transport by measurement.
use super::{Hop, HopBoundary, hop};
use crate::domain::{Domain, Result, Transport};
use crate::field::{DeviceField, FieldShape};
use gpu_kernels::Precision;

/// Transports to compare. The other transports are used for processes that cannot access each other's device memory.
const CANDIDATES: [Transport; 2] = [Transport::Direct, Transport::Copy];
/// Number of exchanges before the measurement, and during it.
const EXCHANGES: [u32; 2] = [3, 20];

/// *Collective.* Measures exchanges of a spinor field, and returns the transport whose exchange takes the least time on the slowest
/// process. `domain` makes a domain with a given transport. If no process can access the device memory of a neighbour, there is no choice,
/// and the transport of the messages is returned: [`Transport::Mpi`] or [`Transport::Host`].
pub fn fastest(domain: impl Fn(Transport) -> Result<Domain>) -> Result<Transport> {
    let mut best = (f64::INFINITY, Transport::default());
    for transport in CANDIDATES {
        let domain = domain(transport)?;
        let seconds = seconds(&domain)?;
        let transports = transports(&domain)?;
        domain.release()?;
        if let Some(messages) = transports.last().filter(|_| !transports.contains(&transport)) {
            return Ok(*messages);
        }
        if seconds < best.0 {
            best = (seconds, transport);
        }
    }
    Ok(best.1)
}

/// *Collective.* Returns the transports that faces have used so far, which may differ from the requested one and between pairs of
/// processes. The list is empty if there were no exchanges.
///
/// # Errors
/// Fails if the communication fails.
pub fn transports(domain: &Domain) -> Result<Vec<Transport>> {
    let Some(halo) = domain.halo()? else { return Ok(Vec::new()) };
    let bit = |transport: Transport| 1 << transport as u8;
    let mine = halo.transports().into_iter().fold(0, |bits, transport| bits | bit(transport));
    let bits = domain.network().all_gather(&[mine])?.concat().into_iter().fold(0, |all, one| all | one);
    let all = [Transport::Direct, Transport::Copy, Transport::Mpi, Transport::Host];
    Ok(all.into_iter().filter(|transport| bits & bit(*transport) != 0).collect())
}

/// *Collective.* Returns the seconds of one exchange without other work, for the slowest process.
fn seconds(domain: &Domain) -> Result<f64> {
    let field = DeviceField::zero(domain, FieldShape::spinors(Precision::Half, 1))?;
    let backend = domain.backend();
    let trial = Hop { steps: 1, parity: 0, dagger: false, boundary: HopBoundary::Neighbours, blocks: 1 };
    let once = || hop(&field, trial, &mut |_, _| Ok(()), &mut |_| Ok(()));
    let [before, counted] = EXCHANGES;
    (0..before).try_for_each(|_| once())?;
    backend.synchronize()?;
    domain.network().barrier()?;
    let from = backend.record()?;
    (0..counted).try_for_each(|_| once())?;
    let to = backend.record()?;
    domain.largest(backend.seconds_between(&from, &to)? / f64::from(counted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::domain::DeviceError;
    use crate::lattice::Lattice;
    use comms::{ProcessGrid, Threads};
    use std::sync::Arc;

    #[test]
    fn all_choose_the_same() {
        let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
        let grid = ProcessGrid::new([1, 1, 2, 2]).unwrap();
        let chosen = Threads::run(4, |threads| {
            let (backend, network) = (Cpu::new(Some(1)), Arc::new(threads));
            fastest(|transport| {
                Domain::with_transport(backend.clone(), lattice, grid, network.clone(), transport, true)
            })
            .map_err(|error: DeviceError| error.to_string())
        });
        let chosen = chosen.unwrap_or_else(|failure| panic!("{failure}"));
        // CPUs do not reach each other's memory.
        assert_eq!(chosen, [Transport::Host; 4]);
    }
}
