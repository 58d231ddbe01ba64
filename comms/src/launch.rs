//! Detection of whether this process is one of several that were started together.

/// Program, such as `mpirun`, that started the processes of this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Environment variable that identifies the starter.
    pub variable: &'static str,
    /// Number of processes, if the starter publishes it.
    pub size: Option<usize>,
}

/// Environment variable that identifies each starter, and the variable that contains its number of processes. The first
/// match is used, because `mpirun` may itself use Slurm, whose number then counts hosts. A starter without a second
/// variable takes the number from Slurm.
const STARTERS: [(&str, Option<&str>); 6] = [
    // Open MPI's mpirun.
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    // MVAPICH's starters.
    ("MV2_COMM_WORLD_RANK", Some("MV2_COMM_WORLD_SIZE")),
    // Hydra (MPICH, Intel MPI), Slurm with `--mpi=pmi2`, Flux and Cray set these variables.
    ("PMI_RANK", Some("PMI_SIZE")),
    // Hydra sets this variable with any protocol that it uses for the processes.
    ("MPI_LOCALRANKID", None),
    // Starters that use PMIx set this variable: `prterun`, Slurm with `--mpi=pmix` and Cray PALS.
    ("PMIX_RANK", None),
    ("PALS_RANKID", None),
];

/// Returns the starter that launched this process together with others, as the environment shows it, or `None` if the
/// process was started on its own.
///
/// Slurm needs care: in a batch script, and in a shell on an allocation, `SLURM_NTASKS` and `SLURM_PROCID` are set
/// although the program was not started in parallel. Only `srun` sets `SLURM_STEP_NUM_TASKS`, and only a value above
/// one is taken as a sign: an interactive shell is a step of one task. A step of one task that uses PMI is found by the
/// variables of PMI.
pub fn launch() -> Option<Launch> {
    detect(|name| std::env::var(name).ok())
}

/// Returns whether [`launch`] finds a starter. Call this function before MPI is initialised, because a library that
/// starts a job of one process may set the environment variables of a starter itself. A program that was started on its
/// own does not need the library.
pub fn launched_by_mpi() -> bool {
    launch().is_some()
}

fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<Launch> {
    let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
    let tasks = number("SLURM_STEP_NUM_TASKS").filter(|tasks| *tasks > 1 && number("SLURM_PROCID").is_some());
    for (sign, size) in STARTERS {
        if number(sign).is_some() {
            return Some(Launch { variable: sign, size: size.map_or(tasks, number) });
        }
    }
    tasks.map(|_| Launch { variable: "SLURM_STEP_NUM_TASKS", size: tasks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Option<(&'static str, Option<usize>)> {
        let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string());
        detect(get).map(|launch| (launch.variable, launch.size))
    }

    #[test]
    fn a_process_of_its_own() {
        assert_eq!(with(&[]), None);
        // A batch script or a shell on an allocation of 8 tasks.
        assert_eq!(with(&[("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None);
        // An interactive shell under srun.
        let shell = [("SLURM_NTASKS", "8"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")];
        assert_eq!(with(&shell), None);
        // Empty or odd values.
        assert_eq!(with(&[("PMI_RANK", ""), ("OMPI_COMM_WORLD_RANK", "none")]), None);
        // Sizes alone are not a sign: scripts set them.
        assert_eq!(with(&[("PMI_SIZE", "4"), ("OMPI_COMM_WORLD_SIZE", "4")]), None);
    }

    #[test]
    fn starters_are_known() {
        let mpirun = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "1")];
        assert_eq!(with(&mpirun), Some(("OMPI_COMM_WORLD_RANK", Some(4))));
        // On a Slurm allocation mpirun starts one daemon per host with srun.
        let slurm = [&mpirun[..], &[("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_PROCID", "0")]].concat();
        assert_eq!(with(&slurm), Some(("OMPI_COMM_WORLD_RANK", Some(4))));
        assert_eq!(with(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]), Some(("PMI_RANK", Some(2))));
        let hydra = [("MPI_LOCALRANKID", "0"), ("MPI_LOCALNRANKS", "2"), ("PMI_RANK", "2"), ("PMI_SIZE", "4")];
        assert_eq!(with(&hydra), Some(("PMI_RANK", Some(4))));
        assert_eq!(with(&[("PMIX_RANK", "0")]), Some(("PMIX_RANK", None)));
        // srun without PMI: the processes are not connected, which the start of MPI then detects.
        let srun = [("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "3"), ("SLURM_NTASKS", "8")];
        assert_eq!(with(&srun), Some(("SLURM_STEP_NUM_TASKS", Some(8))));
        let pmix = [&srun[..], &[("PMIX_RANK", "3")]].concat();
        assert_eq!(with(&pmix), Some(("PMIX_RANK", Some(8))));
        // prterun in an interactive shell under srun.
        let shell = [("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")];
        assert_eq!(with(&shell), Some(("PMIX_RANK", None)));
    }
}
