//! Real processes: `mpirun` starts the program `mpi_check`, and the tests look at how the job ends.

use std::io::Write;

/// Says why nothing was tested, past the test harness, which shows the output of failed tests only.
fn skip(reason: &str) {
    let line = format!("\nskipped: MPI was not tested: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).ok();
}

#[cfg(not(feature = "mpi"))]
#[test]
fn left_out() {
    skip("the crate is built without its feature `mpi`");
}

#[cfg(feature = "mpi")]
mod jobs {
    use super::skip;
    use std::collections::HashMap;
    use std::io::Read;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{self, Receiver};
    use std::sync::{Mutex, PoisonError};
    use std::thread;
    use std::time::{Duration, Instant};

    /// Longest time until nothing is left of a job that fails.
    const SECONDS: Duration = Duration::from_secs(10);
    /// Longest time of a job that succeeds, on two cores that also do other work.
    const PATIENCE: Duration = Duration::from_secs(240);

    /// Lock that lets one job run at a time: ranks of several jobs would compete for the cores.
    static TURN: Mutex<()> = Mutex::new(());

    /// A job that runs.
    struct Job {
        mpirun: Child,
        /// Output of the job, as it arrives.
        output: Receiver<String>,
        started: Instant,
    }

    /// End of a job.
    #[derive(Debug)]
    struct End {
        /// Exit code of `mpirun`; none if a signal ended it.
        code: Option<i32>,
        output: String,
        took: Duration,
    }

    /// Returns the starter of Open MPI or MPICH. Prints a note if there is none.
    fn mpirun() -> Option<Command> {
        let version = Command::new("mpirun").arg("--version").output();
        let Ok(version) = version else {
            skip("mpirun is not on PATH");
            return None;
        };
        let version = String::from_utf8_lossy(&version.stdout);
        let mut command = Command::new("mpirun");
        if version.contains("Open MPI") {
            command.args(["--oversubscribe", "--bind-to", "none"]);
        } else if !version.contains("HYDRA") {
            skip("mpirun is neither Open MPI's nor MPICH's");
            return None;
        }
        // Containers run as root, have no network worth the name, and forbid copies between processes. Ranks that wait
        // leave the core to others.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_pml", "ob1").env("OMPI_MCA_btl", "self,vader");
        command.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none").env("OMPI_MCA_mpi_yield_when_idle", "1");
        command.env("RUST_BACKTRACE", "0").env("OMPI_MCA_orte_tmpdir_base", folder());
        Some(command)
    }

    /// A folder for what Open MPI keeps while a job runs. In the one that all jobs of a user have otherwise, one that ends
    /// removes what another begins with.
    fn folder() -> PathBuf {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("job-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).expect("a folder for a job");
        folder
    }

    /// Reads a stream as it comes.
    fn listen(mut stream: impl Read + Send + 'static, to: mpsc::Sender<String>) {
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = stream.read(&mut bytes) {
                to.send(String::from_utf8_lossy(&bytes[..n]).into_owned()).ok();
            }
        });
    }

    /// Starts `mpi_check` on `ranks` ranks.
    fn start(mut mpirun: Command, ranks: usize, subject: &str) -> Job {
        mpirun.args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_mpi_check"), subject]);
        mpirun.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut mpirun = mpirun.spawn().expect("mpirun starts");
        let (sender, output) = mpsc::channel();
        listen(mpirun.stdout.take().expect("a pipe"), sender.clone());
        listen(mpirun.stderr.take().expect("a pipe"), sender);
        Job { mpirun, output, started: Instant::now() }
    }

    fn signal(name: &str, process: u32) {
        // Every shell has `kill`; not every machine has a program of this name.
        let status = Command::new("sh").args(["-c", &format!("kill {name} {process}")]).status();
        assert!(status.expect("a shell starts").success(), "process {process} cannot be sent {name}");
    }

    impl Job {
        /// Waits for the end, and no longer than `limit`.
        fn end(mut self, limit: Duration) -> End {
            let from = Instant::now();
            let status = loop {
                if let Some(status) = self.mpirun.try_wait().expect("mpirun's end") {
                    break status;
                }
                if from.elapsed() > limit {
                    // mpirun ends its ranks when it is asked to end.
                    signal("-TERM", self.mpirun.id());
                    self.mpirun.wait().expect("mpirun's end");
                    let output: String = self.output.iter().collect();
                    panic!("the job did not end within {limit:?}; it wrote:\n{output}");
                }
                thread::sleep(Duration::from_millis(20));
            };
            End { code: status.code(), output: self.output.iter().collect(), took: self.started.elapsed() }
        }
    }

    /// Runs `mpi_check` to its end, if it can.
    fn run(ranks: usize, subject: &str, limit: Duration) -> Option<End> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Some(start(mpirun()?, ranks, subject).end(limit))
    }

    /// Counts the occurrences of a text in the output.
    fn count(end: &End, text: &str) -> usize {
        end.output.matches(text).count()
    }

    #[test]
    fn all_checks_pass() {
        for ranks in [1, 2, 4, 8] {
            let Some(end) = run(ranks, "checks", PATIENCE) else { return };
            assert_eq!(end.code, Some(0), "{ranks} ranks: {}", end.output);
            assert_eq!(count(&end, &format!("checks passed; ranks: {ranks},")), 1, "{}", end.output);
        }
    }

    /// All checks also pass with messages copied straight from the sender's memory, if this machine allows it.
    #[test]
    fn all_checks_pass_with_single_copies() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut mpirun) = mpirun() else { return };
        mpirun.env("OMPI_MCA_btl_vader_single_copy_mechanism", "cma");
        let end = start(mpirun, 4, "checks").end(PATIENCE);
        if count(&end, "Read -1") > 0 {
            return skip("this machine forbids copies between processes");
        }
        assert_eq!(end.code, Some(0), "{}", end.output);
    }

    /// Runs `mpi_check` by itself.
    fn alone(environment: &[(&str, &str)]) -> Option<End> {
        let mpirun = mpirun()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_mpi_check"));
        command.envs(mpirun.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let started = Instant::now();
        let output = command.envs(environment.iter().copied()).stdin(Stdio::null()).output().expect("mpi_check starts");
        let text = [output.stdout, output.stderr].concat();
        let output_text = String::from_utf8_lossy(&text).into_owned();
        Some(End { code: output.status.code(), output: output_text, took: started.elapsed() })
    }

    #[test]
    fn a_process_of_its_own_is_a_job_of_one() {
        let Some(end) = alone(&[]) else { return };
        assert_eq!(end.code, Some(0), "{}", end.output);
        assert_eq!(count(&end, "mpirun did not start this program"), 1, "{}", end.output);
        assert_eq!(count(&end, "checks passed; ranks: 1,"), 1, "{}", end.output);
    }

    /// Another MPI's mpirun, say: without this sentence every process would do all the work.
    #[test]
    fn processes_that_do_not_find_each_other_say_so() {
        let slurm = [("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "3")];
        for (variable, environment) in
            [("PMI_RANK", [("PMI_RANK", "1"), ("PMI_SIZE", "4")]), ("SLURM_STEP_NUM_TASKS", slurm)]
        {
            let Some(end) = alone(&environment) else { return };
            assert_eq!(end.code, Some(1), "{}", end.output);
            let sentence = "but each process finds only itself; start the processes with the";
            let sentence = format!("4 processes were started (according to {variable}), {sentence}");
            assert_eq!(count(&end, &sentence), 1, "{}", end.output);
        }
    }

    /// Jobs that fail, with one sentence and a code, in seconds.
    fn fails(ranks: usize, subject: &str, sentence: &str, code: i32) {
        let Some(end) = run(ranks, subject, SECONDS) else { return };
        assert_eq!(end.code, Some(code), "{subject} on {ranks} ranks: {}", end.output);
        assert_eq!(count(&end, sentence), 1, "{subject} on {ranks} ranks: {}", end.output);
    }

    #[test]
    fn one_rank_aborts() {
        for ranks in [1, 2, 4] {
            fails(ranks, "abort", &format!("rank {}: the disk is full", ranks - 1), 3);
        }
    }

    #[test]
    fn of_many_that_abort_one_speaks() {
        for ranks in [2, 4, 8] {
            fails(ranks, "abort-all", "the power is out", 4);
        }
    }

    #[test]
    fn errors_and_panics_end_the_job() {
        for ranks in [1, 3] {
            let last = ranks - 1;
            let error = format!("rank {last}: a kernel failed: the GPU has fallen off the bus");
            fails(ranks, "error", &error, 1);
            fails(ranks, "panic", &format!("rank {last}: panicked: index out of bounds"), 101);
        }
        fails(2, "thread", "rank 1: aborted from another thread", 6);
    }

    #[test]
    fn a_message_of_the_wrong_length_is_the_receivers_error() {
        let sentence = "a message with tag 12 has 5000 bytes, but the receiver expects 4000";
        for ranks in [1, 2, 4] {
            fails(ranks, "lengths", &format!("rank {}: {sentence}", ranks - 1), 1);
        }
    }

    #[test]
    fn a_message_that_nobody_receives_ends_the_job() {
        let Some(end) = run(2, "lost-send", SECONDS) else { return };
        assert_eq!(end.code, Some(1), "{}", end.output);
        let sentence = "rank 0: MPI cannot be finalised: waiting for rank 1 to receive a message with tag 9";
        assert_eq!(count(&end, sentence), 1, "{}", end.output);
    }

    #[test]
    fn a_rank_that_ends_early_waits_for_its_receivers() {
        for ranks in [1, 3] {
            let Some(end) = run(ranks, "late-receiver", PATIENCE) else { return };
            assert_eq!(end.code, Some(0), "{}", end.output);
            assert_eq!(count(&end, "arrived late"), 1, "{}", end.output);
        }
    }

    /// All ranks leave together, so that nobody is aborted.
    #[test]
    fn bad_input_is_one_sentence_on_rank_0() {
        for ranks in [1, 2, 4] {
            fails(ranks, "grid", &format!("has {} processes, but the run has {ranks}", 2 * ranks), 2);
            fails(ranks, "one-disagrees", "no such file", 2);
        }
        let Some(end) = run(3, "one-disagrees", SECONDS) else { return };
        assert_eq!(count(&end, "rank 2: no such file"), 1, "{}", end.output);
        assert_eq!(count(&end, "MPI_ABORT"), 0, "{}", end.output);
    }

    /// Whether a process still runs: not if it is gone, nor if only its parent has not asked for it yet.
    fn lives(process: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
        !matches!(state, None | Some('Z' | 'X'))
    }

    #[test]
    fn a_killed_rank_ends_the_job() {
        for ranks in [2, 4] {
            let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(mpirun) = mpirun() else { return };
            let mut job = start(mpirun, ranks, "hang");
            let (mut text, mut processes) = (String::new(), HashMap::new());
            while processes.len() < ranks {
                let left = PATIENCE.saturating_sub(job.started.elapsed());
                text += &job.output.recv_timeout(left).expect("the ranks report their process numbers");
                // Whole lines only: the next may have come in part.
                let reported = text.split_inclusive('\n').filter_map(|line| {
                    let line = line.strip_suffix('\n')?.strip_prefix("rank ")?;
                    let (rank, process) = line.split_once(" is process ")?;
                    Some((rank.parse().ok()?, process.parse().ok()?))
                });
                processes = reported.collect::<HashMap<usize, u32>>();
            }
            // Into their waits.
            thread::sleep(Duration::from_millis(500));
            assert!(job.mpirun.try_wait().expect("mpirun's state").is_none(), "ended early: {text}");
            assert!(processes.values().all(|p| lives(*p)));
            let killed = Instant::now();
            signal("-KILL", processes[&(ranks - 1)]);
            let end = job.end(SECONDS);
            assert_ne!(end.code, Some(0), "{}", end.output);
            while processes.values().any(|p| lives(*p)) {
                assert!(killed.elapsed() < SECONDS, "ranks outlive the job");
                thread::sleep(Duration::from_millis(20));
            }
            println!("{ranks} ranks ended {:.1} s after one was killed", killed.elapsed().as_secs_f64());
        }
    }

    /// Free memory in bytes, if the system reports it.
    fn free_memory() -> Option<u64> {
        let text = std::fs::read_to_string(Path::new("/proc/meminfo")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    }

    #[test]
    fn a_message_may_be_longer_than_a_c_int_counts() {
        // Two buffers of 2 GiB, and pages for what is on its way.
        if free_memory().is_some_and(|bytes| bytes < 7 << 30) {
            return skip("a message of 2 GiB needs 7 GiB of free memory");
        }
        let Some(end) = run(2, "large", PATIENCE) else { return };
        assert_eq!(end.code, Some(0), "{}", end.output);
        assert_eq!(count(&end, "2147487747 bytes arrived"), 1, "{}", end.output);
        println!("2 GiB took {:.1} s", end.took.as_secs_f64());
    }
}
