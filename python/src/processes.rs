//! Processes that partition the lattices of a device: those of an mpi4py communicator.
#![cfg_attr(feature = "mpi", allow(unsafe_code))]
use ferrite_tasks::communicator::RunCommunicator;
use ferrite_tasks::{Failure, Outcome};

/// Connection of a device's thread to the MPI processes.
#[derive(Default)]
pub struct Joined {
    #[cfg(feature = "mpi")]
    job: Option<ferrite::comms::Mpi>,
}

impl Joined {
    /// *Collective.* Connects the current thread to the processes of the MPI communicator at the address `address`.
    #[cfg(feature = "mpi")]
    pub fn to(address: usize) -> Outcome<(Self, RunCommunicator)> {
        // SAFETY: Python gives the address that mpi4py has for a communicator, and waits. That nothing else calls MPI while a device
        // works, where it was initialised with less than MPI_THREAD_MULTIPLE, is what the package's documentation asks for; mpi4py
        // initialises it so. `leave` comes before mpi4py's end.
        let job = unsafe {
            let address = std::ptr::with_exposed_provenance(address);
            ferrite::comms::Mpi::join(ferrite::comms::ForeignCommunicator::at(address))
        };
        let job = job.map_err(|why| Failure::failed(format!("the communicator cannot be joined: {why}")))?;
        let comm = RunCommunicator::of(job.clone());
        Ok((Joined { job: Some(job) }, comm))
    }
    /// Fails, because this build does not include MPI.
    #[cfg(not(feature = "mpi"))]
    pub fn to(_: usize) -> Outcome<(Self, RunCommunicator)> {
        Err(Failure::refused(
            "this build does not include MPI: build a wheel with `cargo xtask wheel --mpi` on a machine with the MPI \
             library, and install it",
        ))
    }
    /// Ends the connection to MPI: from now on this process sends nothing to others.
    pub fn leave(&mut self) {
        #[cfg(feature = "mpi")]
        if let Some(job) = self.job.take() {
            job.leave();
        }
    }
}
