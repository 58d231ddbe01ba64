//! Transports of faces to other processes.

/// Transport between processes whose GPUs reach each other's memory; between others, messages always go through the host's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// The kernel that packs faces writes them into the neighbour's memory.
    #[default]
    Direct,
    /// Faces are packed first, then copied to the neighbour's memory, each end on a stream of its own.
    Copy,
    /// Messages from and to the memory of the devices, which the MPI library has to support. Processes whose GPUs do not reach each other
    /// use them anyway where the library can.
    Mpi,
    /// Messages between processes through the memory of the host.
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
