//! Processes that reach each other's device memory.
use super::zones::ORDERED;
use crate::backend::{Backend, DeviceBuffer, Peer};
use crate::domain::{Result, Transport};
use crate::network::Network;
use comms::CommError;
use std::collections::HashMap;

/// The ghost zones of the other processes of this machine, where each process of a pair reaches the other's.
pub(super) struct Peers {
    /// Open memory by rank.
    opened: Vec<Option<Peer>>,
}

impl Peers {
    /// *Collective.* Shares `zones`, of which the first `room` bytes may hold anything, and opens those of the others. None are opened
    /// between machines, if the driver refuses, or with a host-only transport. Also returns what failed, the same on all processes.
    pub fn new(
        backend: &dyn Backend,
        network: &dyn Network,
        transport: Transport,
        zones: &DeviceBuffer,
        room: usize,
    ) -> Result<(Self, Option<String>)> {
        let (rank, size) = (network.rank(), network.size());
        // A process cannot open its own memory; processes that are threads share a machine and a process.
        let place = format!("{}/{}", host_name(), std::process::id());
        // Pending work on this memory, which clears it or belongs to an earlier owner, must not come after what others write.
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
        // A process that does not reach ours gets messages and sends them: both ends of a connection are alike.
        let reach_us = everybodys(network, &opened)?;
        let both_reach = opened.into_iter().zip(reach_us).map(|(peer, reaches_us)| peer.filter(|_| reaches_us));
        let mut peers = Peers { opened: both_reach.collect() };
        let works = peers.works(backend, network, zones, room, &numbers_on_machines(&places))?;
        // One failure makes all fall back: a machine that fails once is not to be trusted with the others.
        let mut failed = [f64::from(u8::from(!works))];
        network.sum(&mut failed)?;
        if failed[0] > 0.0 {
            problem = Some("data written by one GPU did not arrive at another".into());
            peers.opened.iter_mut().for_each(|peer| *peer = None);
        }
        let problem = problem.filter(|_| !by_messages && backend.name() != "cpu").unwrap_or_default();
        Ok((peers, first_problem(&network.all_gather(problem.as_bytes())?)))
    }
    /// Returns the address of another process's zones, if they can be reached.
    pub fn zones_of(&self, backend: &dyn Backend, rank: usize) -> Option<*mut u8> {
        self.opened[rank].as_ref().map(|peer| backend.peer_address(peer))
    }
    /// *Collective.* Checks that memory is shared: each process writes a number into the memory of all that it reaches, and checks those
    /// that the others have written. `numbers` are the numbers of the ranks on their machines.
    fn works(
        &self,
        backend: &dyn Backend,
        network: &dyn Network,
        zones: &DeviceBuffer,
        room: usize,
        numbers: &[usize],
    ) -> Result<bool> {
        const FIELD: usize = 16;
        // Not after the zones: processes that wait for zones read the words there.
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

/// *Collective.* Returns, by rank, whether that process has opened this process's memory.
fn everybodys<P>(network: &dyn Network, opened: &[Option<P>]) -> std::result::Result<Vec<bool>, CommError> {
    let mine: Vec<u8> = opened.iter().map(|peer| u8::from(peer.is_some())).collect();
    let all = network.all_gather(&mine)?;
    Ok(all.into_iter().map(|theirs| theirs.get(network.rank()) == Some(&1)).collect())
}

/// Returns the first process's problem with its rank, and how many other processes had one, so that a single process can report it.
fn first_problem(all: &[Vec<u8>]) -> Option<String> {
    let (rank, first) = all.iter().enumerate().find(|(_, problem)| !problem.is_empty())?;
    let first = String::from_utf8_lossy(first);
    Some(match all.iter().filter(|problem| !problem.is_empty()).count() {
        1 => format!("rank {rank}: {first}"),
        2 => format!("rank {rank} and another: {first}"),
        several => format!("rank {rank} and {} others: {first}", several - 1),
    })
}

/// Whether two places, `machine/process`, are different processes of one machine.
fn on_same_machine(a: &[u8], b: &[u8]) -> bool {
    a != b && machine(a) == machine(b)
}

fn machine(place: &[u8]) -> Option<&[u8]> {
    place.rsplitn(2, |c| *c == b'/').nth(1)
}

/// Returns, by rank, how many ranks before it are on the same machine.
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
        assert_eq!(all(["", "no access", "none"]).unwrap(), "rank 1 and another: no access");
    }

    #[test]
    fn ranks_are_numbered_on_each_machine() {
        let places: [&[u8]; 6] = [b"a/1", b"b/2", b"a/3", b"", b"b/b/4", b"a/1"];
        assert_eq!(numbers_on_machines(&places), [0, 0, 1, 0, 0, 2]);
        assert!(on_same_machine(places[0], places[2]) && !on_same_machine(places[0], places[5]));
        assert!(!on_same_machine(places[0], places[1]) && !on_same_machine(places[1], places[4]));
    }
}
