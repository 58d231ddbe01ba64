//! Checks a lattice that is cut over the processes of an MPI job against the whole one, every operator in every format,
//! with every way for faces to travel: `mpirun -n 2 halo_check`. Each process takes the GPU of its number on its machine,
//! which several share where there are fewer, or the CPU where there is none or `--cpu` is given. `--quick` leaves out more
//! than two right-hand sides, and what on CPUs is the same as going through the host. With `--in-turn` each format takes
//! one way on each grid, and another one on the next grid.
use comms::{Communicator, Mpi};
use ferrite::backend::{Backend, Cpu};
use ferrite::domain::Transport;
use ferrite::domain::{DeviceError, Domain};
use ferrite::lattice::Lattice;
use ferrite_tests::cut::{self, FormatShare, Images, LatticeInput};
use std::process::ExitCode;
use std::sync::Arc;

/// Flags of the command line.
#[derive(Clone, Copy)]
struct CheckFlags {
    on_cpu: bool,
    quick: bool,
    in_turn: bool,
}

fn main() -> ExitCode {
    let given = |flag: &str| std::env::args().any(|argument| argument == flag);
    let options = CheckFlags { on_cpu: given("--cpu"), quick: given("--quick"), in_turn: given("--in-turn") };
    let done = Mpi::run(|mpi| run(mpi, options));
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mpi: &Mpi, options: CheckFlags) -> Result<usize, DeviceError> {
    #[cfg(feature = "cuda")]
    if !options.on_cpu {
        let gpus = ferrite::backend::Cuda::devices()?.len().max(1);
        return check(mpi, options, &ferrite::backend::Cuda::new(mpi.node_rank() % gpus)?);
    }
    let _ = options.on_cpu;
    check(mpi, options, &Cpu::new(Some(1)))
}

type Compute = fn(&Domain, &LatticeInput, FormatShare) -> ferrite::domain::Result<Images>;

/// All grids of as many processes, with at most three of them where the lattice would get large.
fn grids(size: usize) -> Vec<[usize; 4]> {
    let divisors = |n: usize| (1..=n).filter(move |d| n.is_multiple_of(*d));
    let mut all = Vec::new();
    for x in divisors(size) {
        for y in divisors(size / x) {
            for z in divisors(size / x / y) {
                all.push([x, y, z, size / x / y / z]);
            }
        }
    }
    all
}

fn check(
    mpi: &Mpi,
    CheckFlags { quick, in_turn, .. }: CheckFlags,
    backend: &dyn Backend,
) -> Result<usize, DeviceError> {
    // Numbers that GPUs share in every way that there is: each for itself, two, three, four in a thread.
    let numbers: &[usize] = if quick { &[2] } else { &[2, 3, 4, 12] };
    let all = [Transport::Host, Transport::Mpi, Transport::Copy, Transport::Direct];
    let transports = if quick && backend.name() == "cpu" { &all[..2] } else { &all[..] };
    let ways: Vec<_> = transports.iter().flat_map(|transport| [(*transport, true), (*transport, false)]).collect();
    let one_of = if in_turn { ways.len() } else { 1 };
    let mut failures = 0;
    let shapes = [([4, 2, 6, 4], cut::one_hop as Compute, "one hop"), ([4, 6, 4, 8], cut::three_hops, "three hops")];
    for (turn, grid) in grids(mpi.size()).into_iter().enumerate() {
        for (local, compute, name) in shapes {
            let lattice = Lattice::new(std::array::from_fn(|mu| local[mu] * grid[mu]))?;
            let inputs: Vec<_> = numbers.iter().map(|nrhs| LatticeInput::new(lattice, 7, *nrhs)).collect();
            let alone = Domain::single(backend, lattice)?;
            let shares = (0..one_of).map(|which| FormatShare { one_of, which });
            let wholes =
                |share| inputs.iter().map(|input| compute(&alone, input, share)).collect::<Result<Vec<_>, _>>();
            let wholes = shares.map(|share| Ok((share, wholes(share)?))).collect::<Result<Vec<_>, DeviceError>>()?;
            for (way, &(transport, overlap)) in ways.iter().enumerate() {
                let grid = comms::ProcessGrid::new(grid)?;
                let network = Arc::new(mpi.clone());
                let domain = Domain::with_transport(backend, lattice, grid, network, transport, overlap)?;
                let mut found = Vec::new();
                let (share, wholes) = &wholes[(way + turn) % one_of];
                for (input, whole) in inputs.iter().zip(wholes) {
                    found.extend(cut::differences(whole, &compute(&domain, input, *share)?, &domain.section()));
                }
                let mut count = [found.len() as f64];
                mpi.sum(&mut count)?;
                if mpi.rank() == 0 {
                    let (device, transport) = (backend.device(), transport.name());
                    let outcome = if count[0] == 0.0 { "equal" } else { "DIFFERENT" };
                    println!("{name}, grid {grid}, {transport}, overlap {overlap}, {device}: {outcome}");
                }
                if let Some(first) = found.first() {
                    println!("rank {}: {} differences, the first {first}", mpi.rank(), found.len());
                }
                failures += count[0] as usize;
            }
        }
    }
    Ok(failures)
}
