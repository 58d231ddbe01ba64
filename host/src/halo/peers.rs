//! Device memory that processes of one machine share with each other.
use super::zones::ORDERED;
use crate::backend::{Backend, DeviceBuffer, Peer};
use crate::domain::{Result, Transport};
use crate::network::Network;
use comms::CommError;
use std::collections::HashMap;

/// Access to the ghost zones of other processes of this machine. It exists only for pairs of processes that can access each other's memory.
pub(super) struct Peers {
    /// Open memory of each rank; `None` for a rank without access.
    opened: Vec<Option<Peer>>,
}

impl Peers {
    /// *Collective.* Shares `zones` with other processes, and opens theirs. The first `room` bytes of `zones` are used for a test. No
    /// memory is opened between machines, with the transports `Host` and `Mpi`, or if the driver refuses. If sharing fails, a message about
    /// the failure is also returned, the same on all processes.
    pub fn new(
        backend: &dyn Backend,
        network: &dyn Network,
        transport: Transport,
        zones: &DeviceBuffer,
        room: usize,
    ) -> Result<(Self, Option<String>)> {
        let (rank, size) = (network.rank(), network.size());
        // A process cannot open its own memory. Processes of the crate `comms` can be threads of one process of the operating system.
        let place = format!("{}/{}", host_name(), std::process::id());
        // Pending work on the zones, such as clearing them, must end before other processes write to them.
        backend.synchronize()?;
        let by_messages = matches!(transport, Transport::Host | Transport::Mpi);
        let shared = if by_messages { Err(None) } else { backend.share(zones).map_err(Some) };
        let offer = shared.as_ref().map_or_else(|_| Vec::new(), |handle| [place.as_bytes(), b"\0", handle].concat());
        let mut opened: Vec<Option<Peer>> = Vec::with_capacity(size);
        let mut problem = shared.err().flatten().map(|error| error.to_string());
        let offers = network.all_gather(&offer)?;
        let parts = offers.iter().map(|offer| offer.split_at(offer.iter().position(|byte| *byte == 0).unwrap_or(0)));
        let (places, handles): (Vec<&[u8]>, Vec<&[u8]>) = parts.unzip();
        for (other, handle) in handles.into_iter().enumerate() {
            let near = other != rank && !places[other].is_empty() && on_same_machine(places[other], place.as_bytes());
            opened.push(match near.then(|| backend.open_peer(&handle[1..])) {
                Some(Ok(peer)) => Some(peer),
                Some(Err(error)) => {
                    problem = Some(error.to_string());
                    None
                }
                None => None,
            });
        }
        // Access must be mutual: if only one process of a pair can access the other, both use messages.
        let reach_us = everybodys(network, &opened)?;
        let both_reach = opened.into_iter().zip(reach_us).map(|(peer, reaches_us)| peer.filter(|_| reaches_us));
        let mut peers = Peers { opened: both_reach.collect() };
        let works = peers.works(backend, network, zones, room, &numbers_on_machines(&places))?;
        // After a single failure no process uses shared memory, because the machine's other connections cannot be trusted either.
        let mut failed = [f64::from(u8::from(!works))];
        network.sum(&mut failed)?;
        if failed[0] > 0.0 {
            problem = Some("data written by one GPU did not arrive at another".into());
            peers.opened.iter_mut().for_each(|peer| *peer = None);
        }
        let problem = problem.filter(|_| !by_messages && backend.name() != "cpu").unwrap_or_default();
        Ok((peers, first_problem(&network.all_gather(problem.as_bytes())?)))
    }
    /// Returns the address of the zones of process `rank`; `None` if this process cannot access them.
    pub fn zones_of(&self, backend: &dyn Backend, rank: usize) -> Option<*mut u8> {
        self.opened[rank].as_ref().map(|peer| backend.peer_address(peer))
    }
    /// *Collective.* Tests shared memory. Each process writes a number into the memory of all processes that it can access, and checks the
    /// numbers that they have written here. `numbers[rank]` is the number of a rank on its machine.
    fn works(
        &self,
        backend: &dyn Backend,
        network: &dyn Network,
        zones: &DeviceBuffer,
        room: usize,
        numbers: &[usize],
    ) -> Result<bool> {
        const FIELD: usize = 16;
        // The test uses the beginning of the zones. It must not change the words after the zones, which processes read while they wait.
        let fits = |rank: usize| (numbers[rank] + 1) * FIELD <= room;
        let number = |rank: usize| 0x5EED_0000 + rank as u32;
        for peer in self.opened.iter().flatten().filter(|_| fits(network.rank())) {
            let place = backend.peer_address(peer).wrapping_add(FIELD * numbers[network.rank()]);
            backend.signal(&[place], number(network.rank()), None, ORDERED)?;
        }
        backend.synchronize()?;
        network.barrier()?;
        let mut works = true;
        for rank in (0..network.size()).filter(|rank| self.opened[*rank].is_some() && fits(*rank)) {
            let mut word = [0; 4];
            backend.download(zones, FIELD * numbers[rank], &mut word)?;
            works &= u32::from_le_bytes(word) == number(rank);
        }
        network.barrier()?;
        Ok(works)
    }
}

/// *Collective.* Returns, for each rank, whether that process has opened the memory of this one.
fn everybodys<P>(network: &dyn Network, opened: &[Option<P>]) -> std::result::Result<Vec<bool>, CommError> {
    let mine: Vec<u8> = opened.iter().map(|peer| u8::from(peer.is_some())).collect();
    let all = network.all_gather(&mine)?;
    Ok(all.into_iter().map(|theirs| theirs.get(network.rank()) == Some(&1)).collect())
}

/// Returns the first problem, with its rank and the number of other processes that have a problem; `None` without problems.
fn first_problem(all: &[Vec<u8>]) -> Option<String> {
    let (rank, first) = all.iter().enumerate().find(|(_, problem)| !problem.is_empty())?;
    let first = String::from_utf8_lossy(first);
    Some(match all.iter().filter(|problem| !problem.is_empty()).count() {
        1 => format!("rank {rank}: {first}"),
        2 => format!("rank {rank} and one other rank: {first}"),
        several => format!("rank {rank} and {} other ranks: {first}", several - 1),
    })
}

/// Whether two places of the form `machine/process` are different processes of one machine.
fn on_same_machine(a: &[u8], b: &[u8]) -> bool {
    a != b && machine(a) == machine(b)
}

fn machine(place: &[u8]) -> Option<&[u8]> {
    place.rsplitn(2, |c| *c == b'/').nth(1)
}

/// Returns, for each rank, how many ranks before it are on the same machine.
fn numbers_on_machines(places: &[&[u8]]) -> Vec<usize> {
    let (mut counts, mut numbers) = (HashMap::new(), Vec::with_capacity(places.len()));
    for place in places {
        let count = counts.entry(machine(place)).or_insert(0);
        numbers.push(*count);
        *count += 1;
    }
    numbers
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "unknown".into(), |name| name.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_problem_is_reported_for_all() {
        let all = |problems: [&str; 3]| first_problem(&problems.map(|problem| problem.as_bytes().to_vec()));
        assert_eq!(all(["", "", ""]), None);
        assert_eq!(all(["", "no access", ""]).unwrap(), "rank 1: no access");
        assert_eq!(all(["", "no access", "none"]).unwrap(), "rank 1 and one other rank: no access");
    }

    #[test]
    fn ranks_are_numbered_on_each_machine() {
        let places: [&[u8]; 6] = [b"a/1", b"b/2", b"a/3", b"", b"b/b/4", b"a/1"];
        assert_eq!(numbers_on_machines(&places), [0, 0, 1, 0, 0, 2]);
        assert!(on_same_machine(places[0], places[2]) && !on_same_machine(places[0], places[5]));
        assert!(!on_same_machine(places[0], places[1]) && !on_same_machine(places[1], places[4]));
    }
}
