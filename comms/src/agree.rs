//! Collective agreement on success: all ranks continue, or all ranks get the same error.

use crate::communicator::{CommError, Communicator};
use std::fmt::{self, Display};

/// Reason for which [`agree`] returns an error.
#[derive(Debug)]
pub enum Disagreement {
    /// Some rank failed. This value is equal on all ranks.
    Failed {
        /// The lowest rank that failed.
        rank: usize,
        /// Number of ranks.
        size: usize,
        /// Error message of that rank.
        message: String,
    },
    /// Communication failed during the agreement itself. The other ranks do not get this error, so end the run with
    /// [`Communicator::abort`].
    Comm(CommError),
}

impl Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { size: 1, message, .. } => f.write_str(message),
            Self::Failed { rank, message, .. } => write!(f, "rank {rank}: {message}"),
            Self::Comm(error) => Display::fmt(error, f),
        }
    }
}

impl std::error::Error for Disagreement {}

impl From<CommError> for Disagreement {
    fn from(error: CommError) -> Self {
        Self::Comm(error)
    }
}

/// *Collective.* Compares the results of all ranks: if any rank has an error, all ranks get the message of the lowest
/// rank that failed, so that rank 0 can print it once and all can exit with the same code. Without an error, every rank
/// keeps its value. The cost is one [`max`](Communicator::max) of a single number.
///
/// ```
/// use comms::{Communicator, Disagreement, Threads, agree};
///
/// let results = Threads::run(3, |world| {
///     let read = if world.rank() == 0 { Ok(5) } else { Err("the file is too short") };
///     Ok::<_, std::convert::Infallible>(agree(&world, read).unwrap_err().to_string())
/// })?;
/// assert_eq!(results, ["rank 1: the file is too short"; 3]);
/// # Ok::<(), comms::RankFailure>(())
/// ```
pub fn agree<C: Communicator, T, E: Display>(comm: &C, result: Result<T, E>) -> Result<T, Disagreement> {
    let size = comm.size();
    // A rank that fails contributes size − rank, the others 0, so the maximum identifies the lowest rank that failed. A
    // double represents these integers exactly.
    let mut worst = [if result.is_err() { (size - comm.rank()) as f64 } else { 0.0 }];
    comm.max(&mut worst)?;
    if worst[0] == 0.0 {
        // A maximum of 0 means that `result` is `Ok` on all ranks, this one included.
        return result.map_err(|error| Disagreement::Failed { rank: comm.rank(), size, message: error.to_string() });
    }
    let rank = size - worst[0] as usize;
    let mut message = match &result {
        Err(error) if comm.rank() == rank => error.to_string().into_bytes(),
        _ => Vec::new(),
    };
    comm.broadcast_vec(rank, &mut message)?;
    Err(Disagreement::Failed { rank, size, message: String::from_utf8_lossy(&message).into_owned() })
}
