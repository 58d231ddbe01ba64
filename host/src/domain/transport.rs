//! Transports of faces between processes.

/// Requested transport of faces between processes. `Direct` and `Copy` need processes that can access each other's device memory. Between
/// other processes, faces are sent as messages: from device memory if the MPI library supports it, otherwise through host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// The kernel that packs faces writes directly into the neighbour's memory.
    #[default]
    Direct,
    /// Faces are packed first, and then copied to the neighbour's memory, each end on its own stream.
    Copy,
    /// MPI messages from and to the memory of the devices. The MPI library must support this.
    Mpi,
    /// Messages through host memory.
    Host,
}

impl Transport {
    /// Returns the name of the transport: `direct`, `copy`, `mpi` or `host`.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Direct => "direct",
            Transport::Copy => "copy",
            Transport::Mpi => "mpi",
            Transport::Host => "host",
        }
    }
}
