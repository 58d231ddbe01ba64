//! The processes of this run: one, or those that `mpirun` or `srun` started. The first process prints and writes for all.
//!
//! A command first does what needs no other process, such as reading its flags, and then lets all processes
//! [agree](RunCommunicator::agree). From then on, all processes do the same. An error is either shared by all ([`Failure::shared`]), and
//! all exit, or it belongs to one process, which ends the others.
use super::{Code, Failure, Outcome};
use crate::failure::FailureKind;
use ferrite::network::Network;
use std::sync::Arc;

/// Communicator of the processes of this run, which exchange messages and sums.
#[derive(Clone)]
pub struct RunCommunicator {
    network: Arc<dyn Network>,
}

impl RunCommunicator {
    /// Creates the communicator of the processes of a network.
    pub fn of(network: impl Network + 'static) -> Self {
        RunCommunicator { network: Arc::new(network) }
    }
    /// Returns the rank of this process, from 0.
    pub fn rank(&self) -> usize {
        self.network.rank()
    }
    /// Returns the number of processes.
    pub fn size(&self) -> usize {
        self.network.size()
    }
    /// Returns whether this process writes files and prints results; true only on rank 0.
    pub fn speaks(&self) -> bool {
        self.rank() == 0
    }
    /// Returns the network for messages and sums.
    pub fn network(&self) -> Arc<dyn Network> {
        Arc::clone(&self.network)
    }
    /// *Collective.* Returns `result` if all processes succeeded. Otherwise all processes return the failure of the lowest rank that
    /// failed.
    pub fn agree<T>(&self, result: Outcome<T>) -> Outcome<T> {
        if self.size() == 1 {
            return result.map_err(Failure::shared);
        }
        let mine = match &result {
            Ok(_) => Vec::new(),
            Err(failure) => [&[failure.code.number(), failure.kind.number()], failure.message.as_bytes()].concat(),
        };
        let all = self.network.all_gather(&mine).map_err(Failure::failed)?;
        let Some(rank) = all.iter().position(|said| !said.is_empty()) else { return result };
        let ([code, kind], message) = ([all[rank][0], all[rank][1]], String::from_utf8_lossy(&all[rank][2..]));
        let message = if rank == 0 { message.into_owned() } else { format!("rank {rank}: {message}") };
        Err(Failure::new(Code::from_number(code), message).of_kind(FailureKind::from_number(kind)).shared())
    }
    /// *Collective.* Does work on the first process only, such as writing a plot, and returns its outcome on all.
    pub fn once(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        self.agree(if self.speaks() { work() } else { Ok(()) })
    }
    /// *Collective.* Sums each of `values` over all processes in a fixed order.
    pub fn sum(&self, values: &mut [f64]) -> Outcome {
        self.network.sum(values).map_err(Failure::failed)
    }
    /// *Collective.* Returns the largest `value` of all processes.
    pub fn largest(&self, value: f64) -> Outcome<f64> {
        Ok(self.numbers(value)?.into_iter().fold(value, f64::max))
    }
    /// *Collective.* Returns the `value` of each process, in the order of ranks.
    pub fn numbers(&self, value: f64) -> Outcome<Vec<f64>> {
        let all = self.network.all_gather(&value.to_le_bytes()).map_err(Failure::failed)?;
        Ok(all.iter().filter_map(|bytes| bytes.as_slice().try_into().ok().map(f64::from_le_bytes)).collect())
    }
    /// *Collective.* Returns the text `mine` of each process, in the order of ranks.
    pub fn texts(&self, mine: &str) -> Outcome<Vec<String>> {
        self.network.texts(mine).map_err(Failure::failed)
    }
    /// *Collective.* Returns the names of the hosts of all processes.
    pub fn hosts(&self) -> Outcome<Vec<String>> {
        Ok(self.network.places().map_err(Failure::failed)?.into_iter().map(|place| place.host).collect())
    }
    /// *Collective.* Returns the number of processes that share the cores of this process; 1 if it is bound to cores of its own.
    pub fn sharers(&self) -> Outcome<usize> {
        self.network.sharers().map_err(Failure::failed)
    }
    /// *Collective.* Returns the number of processes on the host of this process that pass the same text `mine`, such as the name of a
    /// device. This process is included.
    pub fn alike(&self, mine: &str) -> Outcome<usize> {
        self.network.alike(mine).map_err(Failure::failed)
    }
    /// Fails if a command that runs as one process was started with several. `command` names program and command, such as `ferrite check`.
    pub fn only_one(&self, command: &str) -> Outcome {
        match self.size() {
            1 => Ok(()),
            n => {
                Err(Failure::refused(format!("{command} runs as one process, not {n}: start it without mpirun"))
                    .shared())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comms::Threads;

    /// What every process gets.
    fn each(size: usize, work: impl Fn(&RunCommunicator) -> String + Sync) -> Vec<String> {
        let run = Threads::run(size, |threads| Ok::<_, String>(work(&RunCommunicator::of(threads))));
        run.unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[test]
    fn the_first_failure_is_everybodys() {
        let said = each(3, |comm| {
            let mine = if comm.rank() > 0 { Err(Failure::refused("no")) } else { Ok(()) };
            let failure = comm.agree(mine).expect_err("two have failed");
            format!("{} {} {:?} {}", failure.message, failure.code.number(), failure.kind, failure.is_shared())
        });
        assert_eq!(said, ["rank 1: no 2 Input true"; 3]);
        let said = each(2, |comm| comm.agree(Ok(comm.rank())).map_or("failed".into(), |rank| rank.to_string()));
        assert_eq!(said, ["0", "1"]);
    }

    #[test]
    fn the_first_process_works_for_all() {
        let said = each(2, |comm| {
            let done = comm.once(|| Err(Failure::failed(format!("rank {} worked", comm.rank()))));
            done.expect_err("it failed").message
        });
        assert_eq!(said, ["rank 0 worked"; 2]);
    }

    #[test]
    fn processes_of_a_host_share_its_cores() {
        let said = each(3, |comm| comm.sharers().map_or("failed".into(), |n| n.to_string()));
        assert_eq!(said, ["3"; 3]);
    }

    #[test]
    fn processes_of_a_host_share_devices() {
        let said = each(3, |comm| {
            let device = ["gpu 0", "gpu 1", "gpu 0"][comm.rank()];
            comm.alike(device).map_or("failed".into(), |n| n.to_string())
        });
        assert_eq!(said, ["2", "1", "2"]);
    }

    #[test]
    fn the_largest_of_all() {
        let said = each(3, |comm| comm.largest(comm.rank() as f64 - 5.0).map_or("failed".into(), |x| x.to_string()));
        assert_eq!(said, ["-3"; 3]);
    }
}
