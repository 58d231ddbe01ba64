//! All ranks go on, or none does.

use crate::communicator::{CommError, Communicator};
use std::fmt::{self, Display};

/// Why [`agree`] sends all ranks home.
#[derive(Debug)]
pub enum Disagreement {
    /// Some rank failed. Equal on all ranks.
    Failed {
        /// The lowest rank that failed.
        rank: usize,
        /// Number of ranks.
        size: usize,
        /// What that rank said.
        message: String,
    },
    /// The ranks could not even tell each other. Not known to the other ranks: the way out is
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

/// *Collective.* Holds the results of all ranks against each other: with an error on any rank, all ranks get the
/// sentence of the lowest one that failed, so that rank 0 can print it once and all leave with the same code. Without
/// one, every rank keeps its value; that costs one [`max`](Communicator::max) of a single number.
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
    // The lowest failing rank gives the largest number; nobody gives 0 in vain. Ranks are exact in a double.
    let mut worst = [if result.is_err() { (size - comm.rank()) as f64 } else { 0.0 }];
    comm.max(&mut worst)?;
    if worst[0] == 0.0 {
        // An error here would have made the maximum positive.
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
