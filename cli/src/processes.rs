//! Start of the program with all its processes.
use super::communicator::RunCommunicator;
#[cfg(feature = "mpi")]
use super::interrupt;
use super::{Code, Outcome, terminal};
use std::process::ExitCode;

/// Runs the program with all its processes. If `body` returns a failure, this process alone has failed, and the other processes are ended.
pub fn run(body: impl FnOnce(RunCommunicator) -> Outcome<ExitCode>) -> ExitCode {
    match comms::launch() {
        Some(launch) if launch.size != Some(1) => many(launch, body),
        _ => alone(body),
    }
}

fn alone(body: impl FnOnce(RunCommunicator) -> Outcome<ExitCode>) -> ExitCode {
    body(RunCommunicator::of(comms::Solo::new())).unwrap_or_else(|failure| {
        terminal::say(&format!("error: {}\n", failure.message));
        failure.code.into()
    })
}

#[cfg(feature = "mpi")]
fn many(_: comms::Launch, body: impl FnOnce(RunCommunicator) -> Outcome<ExitCode>) -> ExitCode {
    let run = comms::Mpi::run(|mpi| {
        let comm = RunCommunicator::of(mpi.clone());
        interrupt::is_one_of_several(comm.speaks());
        body(comm).map_err(|failure| terminal::printable(&failure.message).into_owned())
    });
    run.unwrap_or_else(|error| {
        terminal::say(&format!("error: {error}\n"));
        Code::Refused.into()
    })
}

#[cfg(not(feature = "mpi"))]
fn many(launch: comms::Launch, _: impl FnOnce(RunCommunicator) -> Outcome<ExitCode>) -> ExitCode {
    terminal::say(&format!(
        "error: this program was started in parallel ({} is set), but was built without MPI: build it with --features \
         mpi, or start it without mpirun and srun\n",
        launch.variable
    ));
    Code::Refused.into()
}
