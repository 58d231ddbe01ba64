//! `mpirun -n N mpi_check [checks]` checks whether MPI works on a machine, through the crate `comms`. The other
//! subjects are for tests of how a job ends; `latency` prints times.

mod checks;

use comms::{
    Buffer, CommError, Communicator, DeviceChannels, DeviceTransfer, Mpi, ProcessGrid, Transfer, agree, launched_by_mpi,
};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Name on the command line and function of a check.
type NamedCheck = (&'static str, fn(&Mpi) -> CheckOutcome);

const CHECKS: [NamedCheck; 14] = [
    ("checks", check),
    ("abort", abort),
    ("abort-all", abort_all),
    ("error", error),
    ("panic", panic),
    ("lost-send", lost_send),
    ("late-receiver", late_receiver),
    ("hang", hang),
    ("lengths", lengths),
    ("grid", grid),
    ("one-disagrees", one_disagrees),
    ("thread", thread),
    ("large", large),
    ("latency", latency),
];

type CheckOutcome = Result<ExitCode, CommError>;

fn main() -> ExitCode {
    let subject = std::env::args().nth(1).unwrap_or_else(|| "checks".to_string());
    let Some((_, run)) = CHECKS.iter().find(|(name, _)| *name == subject) else {
        let names: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
        eprintln!("unknown subject '{subject}': choose one of {}", names.join(", "));
        return ExitCode::from(2);
    };
    if !launched_by_mpi() {
        println!("mpirun did not start this program: the checks run in one process");
    }
    match Mpi::run(run) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the last rank, which differs from rank 0 if there are at least two ranks.
fn last(mpi: &Mpi) -> usize {
    mpi.size() - 1
}

fn check(mpi: &Mpi) -> CheckOutcome {
    checks::all(mpi);
    // Repeats the checks with every message above 100 bytes sent as one item of a derived datatype.
    checks::all(&mpi.with_largest_count(100));
    buffer_that_moves(mpi);
    foreign_memory(mpi);
    unequal_lengths(mpi);
    mpi.barrier()?;
    if mpi.rank() == 0 {
        let (level, cuda) = (mpi.thread_level(), mpi.is_cuda_aware());
        println!("checks passed; ranks: {}, {}, {level}, CUDA-aware: {cuda}", mpi.size(), Mpi::library_version());
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that a start fails if the buffer has changed its address or length since the channel was made.
fn buffer_that_moves(mpi: &Mpi) {
    struct Moving(Vec<u8>);
    impl Buffer for Moving {
        fn bytes(&self) -> &[u8] {
            &self.0
        }
        fn bytes_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }
    let mut receive = mpi.receive_channel(mpi.rank(), 0, Moving(vec![0; 8])).unwrap();
    receive.buffer_mut().unwrap().0 = vec![0; 100_000];
    let refused = receive.start();
    assert!(matches!(refused, Err(CommError::Transport { operation: "MPI_Start", .. })), "{refused:?}");
    receive.buffer_mut().unwrap().0 = Vec::new();
    assert!(receive.start().is_err());
    receive.wait().unwrap();
}

/// Checks unequal lengths: a broadcast fails only on the rank whose length differs, and a long sum fails on all ranks.
fn unequal_lengths(mpi: &Mpi) {
    let other = mpi.rank() == last(mpi) && mpi.size() > 1;
    for (sent, expected) in [(3, 4), (1000, 2000), (100_000, 10), (10, 100_000)] {
        let mut bytes = vec![mpi.rank() as u8; if other { expected } else { sent }];
        match mpi.broadcast(0, &mut bytes) {
            Ok(()) => assert!(!other && bytes == vec![0; sent]),
            Err(CommError::Transport { operation: "broadcast", .. }) => assert!(other),
            Err(error) => panic!("{error}"),
        }
    }
    let long = 50_000 + usize::from(other);
    assert_eq!(mpi.sum(&mut vec![1.0; long]).is_err(), mpi.size() > 1);
}

/// Checks channels on raw addresses in host memory, which every MPI library can access.
#[allow(unsafe_code)]
fn foreign_memory(mpi: &Mpi) {
    let (rank, size) = (mpi.rank(), mpi.size());
    let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
    let (mut from, mut to) = (vec![0u8; 1000], vec![0u8; 1000]);
    let address = |memory: &mut Vec<u8>| memory.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: both vectors outlive the channels, and no other code accesses them between start and wait.
    let (mut send, mut receive) = unsafe {
        (
            mpi.send_from(next, 3, address(&mut from), 1000).unwrap(),
            mpi.receive_at(before, 3, address(&mut to), 1000).unwrap(),
        )
    };
    for round in 0..3u8 {
        from.fill(round + rank as u8);
        receive.start().unwrap();
        send.start().unwrap();
        while !receive.test().unwrap() {}
        send.wait().unwrap();
        assert!(to.iter().all(|b| *b == round + before as u8));
    }
    drop((send, receive));
    drop((from, to));
}

/// Aborts on the last rank while the others wait for a message or in a barrier.
fn abort(mpi: &Mpi) -> CheckOutcome {
    let here = last(mpi);
    mpi.barrier()?;
    if mpi.rank() == here {
        mpi.abort(3, "the disk is full");
    }
    let mut receive = mpi.receive(here, 0, vec![0u8; 8])?;
    if mpi.rank() == 0 {
        receive.wait()?
    } else {
        mpi.barrier()?
    }
    Ok(ExitCode::SUCCESS)
}

fn abort_all(mpi: &Mpi) -> CheckOutcome {
    mpi.barrier()?;
    mpi.abort(4, "the power is out")
}

/// Returns an error on the last rank while messages are under way.
fn error(mpi: &Mpi) -> CheckOutcome {
    let (here, other) = (last(mpi), 0);
    let _receive = mpi.receive(if mpi.rank() == here { other } else { here }, 1, vec![0u8; 1 << 20])?;
    let _send = mpi.send(if mpi.rank() == here { other } else { here }, 2, vec![0u8; 1 << 20])?;
    if mpi.rank() == here {
        let message = "the GPU has fallen off the bus".to_string();
        return Err(CommError::Transport { operation: "a kernel", message });
    }
    mpi.barrier()?;
    Ok(ExitCode::SUCCESS)
}

fn panic(mpi: &Mpi) -> CheckOutcome {
    let _receive = mpi.receive(0, 1, vec![0u8; 8])?;
    assert!(mpi.rank() != last(mpi), "index out of bounds");
    mpi.barrier()?;
    Ok(ExitCode::SUCCESS)
}

/// Sends a message that no rank receives. The message is long, so that it cannot complete without a receiver.
fn lost_send(mpi: &Mpi) -> CheckOutcome {
    let to = if mpi.rank() == last(mpi) { 0 } else { last(mpi) };
    if mpi.rank() == 0 {
        drop(mpi.send(to, 9, vec![0u8; 8 << 20])?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that a rank may end while its message to a rank that still works is under way.
fn late_receiver(mpi: &Mpi) -> CheckOutcome {
    if mpi.rank() == 0 {
        drop(mpi.send(last(mpi), 9, vec![7u8; 8 << 20])?);
    }
    if mpi.rank() == last(mpi) {
        // The sleep is longer than the 2 s for which the end of a run waits for messages after all ranks have arrived
        // there.
        std::thread::sleep(Duration::from_secs(4));
        let bytes = mpi.receive(0, 9, vec![0u8; 8 << 20])?.into_buffer()?;
        assert!(bytes.iter().all(|b| *b == 7));
        println!("arrived late");
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints process IDs and waits until the test kills the last rank.
fn hang(mpi: &Mpi) -> CheckOutcome {
    // The line is written in one call. `mpirun` forwards each piece that it reads, so a line that was written in
    // several calls could be mixed with lines of other processes.
    let line = format!("rank {} is process {}\n", mpi.rank(), std::process::id());
    let mut out = std::io::stdout();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("standard output");
    if mpi.rank() == last(mpi) {
        std::thread::sleep(Duration::from_secs(60));
    } else if mpi.rank() == 0 {
        mpi.receive(last(mpi), 0, vec![0u8; 8])?.wait()?;
    } else {
        mpi.barrier()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends a message that is longer than its reception: the receiving rank gets an error and returns it.
fn lengths(mpi: &Mpi) -> CheckOutcome {
    let here = last(mpi);
    let _send = (mpi.rank() == 0).then(|| mpi.send(here, 12, vec![1u8; 5000])).transpose()?;
    if mpi.rank() == here {
        mpi.receive(0, 12, vec![0u8; 4000])?.wait()?;
    }
    mpi.barrier()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the exit code on which all ranks agree; rank 0 prints the error.
fn leave<E: std::fmt::Display>(mpi: &Mpi, result: Result<(), E>) -> CheckOutcome {
    Ok(match agree(mpi, result) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if mpi.rank() == 0 {
                eprintln!("{error}");
            }
            ExitCode::from(2)
        }
    })
}

/// Checks a process grid that fits neither the number of processes nor the lattice.
fn grid(mpi: &Mpi) -> CheckOutcome {
    let checked = ProcessGrid::new([1, 1, 1, 2 * mpi.size()])
        .and_then(|grid| grid.check_for(mpi.size(), [8, 8, 8, 6], 1).map(drop));
    leave(mpi, checked)
}

fn one_disagrees(mpi: &Mpi) -> CheckOutcome {
    leave(mpi, if mpi.rank() == last(mpi) { Err("no such file") } else { Ok(()) })
}

/// Checks that another thread gets errors, may drop transfers, and can abort the job.
fn thread(mpi: &Mpi) -> CheckOutcome {
    let receive = mpi.receive(mpi.rank(), 0, vec![0u8; 8])?;
    let mpi = mpi.clone();
    let other = std::thread::spawn(move || {
        assert!(matches!(mpi.sum(&mut [1.0, 2.0]), Err(CommError::WrongThread { .. })));
        assert!(matches!(mpi.barrier(), Err(CommError::WrongThread { .. })));
        assert!(matches!(mpi.send(0, 0, vec![0u8; 8]), Err(CommError::WrongThread { .. })));
        let mut receive = receive;
        assert!(matches!(receive.test(), Err(CommError::WrongThread { .. })));
        drop(receive);
        if mpi.rank() == last(&mpi) {
            mpi.abort(6, "aborted from another thread");
        }
    });
    other.join().expect("the other thread");
    std::thread::sleep(Duration::from_secs(60));
    Ok(ExitCode::SUCCESS)
}

/// Sends a message with more bytes than C's `int` can count.
fn large(mpi: &Mpi) -> CheckOutcome {
    const LENGTH: usize = (1 << 31) + 4099;
    if mpi.size() == 1 {
        println!("`large` needs at least two ranks: run mpirun -n 2 mpi_check large");
        return Ok(ExitCode::FAILURE);
    }
    if mpi.rank() == 0 {
        let mut bytes = vec![1u8; LENGTH];
        for i in [0, (1 << 30) - 1, 1 << 30, i32::MAX as usize, 1 << 31, LENGTH - 1] {
            bytes[i] = (i % 251) as u8 + 2;
        }
        mpi.send(last(mpi), 0, bytes)?.into_buffer()?;
    } else if mpi.rank() == last(mpi) {
        let bytes = mpi.receive(0, 0, vec![0u8; LENGTH])?.into_buffer()?;
        for i in [0, (1 << 30) - 1, 1 << 30, i32::MAX as usize, 1 << 31, LENGTH - 1] {
            assert_eq!(bytes[i], (i % 251) as u8 + 2, "byte {i}");
        }
        // All bytes except the six marked ones are 1.
        let marked: usize = bytes.iter().filter(|b| **b != 1).count();
        assert_eq!(marked, 6);
        println!("{LENGTH} bytes arrived");
    }
    mpi.barrier()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints times of operations that are frequent in solvers.
fn latency(mpi: &Mpi) -> CheckOutcome {
    const ROUNDS: u32 = 2000;
    let time = |what: &str, work: &mut dyn FnMut() -> Result<(), CommError>| {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            mpi.barrier()?;
            let start = Instant::now();
            for _ in 0..ROUNDS {
                work()?;
            }
            best = best.min(start.elapsed().as_secs_f64() / f64::from(ROUNDS));
        }
        let mut slowest = [best];
        mpi.max(&mut slowest)?;
        if mpi.rank() == 0 {
            println!("{what:<40} {:9.2} µs", slowest[0] * 1e6);
        }
        Ok::<(), CommError>(())
    };
    if mpi.rank() == 0 {
        println!("ranks: {}, {}", mpi.size(), Mpi::library_version());
        println!("time of one call on the slowest rank, best of 5 averages over {ROUNDS} calls:");
    }
    for count in [1, 3, 16, 256] {
        let mut values = vec![1e-300; count];
        time(&format!("sum of vectors of length {count}"), &mut || mpi.sum(&mut values))?;
    }
    time("barrier", &mut || mpi.barrier())?;
    let (rank, size) = (mpi.rank(), mpi.size());
    for length in [8, 1024, 4096, 16384, 65536, 1 << 20] {
        let mut send = mpi.send_channel((rank + 1) % size, 0, vec![0u8; length])?;
        let mut receive = mpi.receive_channel((rank + size - 1) % size, 0, vec![0u8; length])?;
        time(&format!("{length} bytes to the next rank"), &mut || {
            receive.start()?;
            send.start()?;
            receive.wait()?;
            send.wait()
        })?;
    }
    let mut pending = mpi.receive(rank, 1, vec![0u8; 8])?;
    time("test whether a message has arrived", &mut || pending.test().map(drop))?;
    Ok(ExitCode::SUCCESS)
}
