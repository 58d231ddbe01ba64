//! The other processes, as the rest of the crate needs them: a [`Communicator`] of any kind behind one type.
use comms::{CommError, Communicator, Tag, Transfer};

/// Host memory that messages are read from or written to.
pub struct HostBuffer(pub Box<dyn comms::Buffer + Send + Sync>);

impl comms::Buffer for HostBuffer {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

/// A message that is sent or received again and again: what [`Transfer`] is.
pub trait Message: Send {
    /// Starts it.
    fn start(&mut self) -> Result<(), CommError>;
    /// Whether it has come to its end.
    fn test(&mut self) -> Result<bool, CommError>;
    /// Waits for its end.
    fn wait(&mut self) -> Result<(), CommError>;
    /// Its memory, while it is not under way.
    fn bytes(&self) -> Result<&[u8], CommError>;
}

struct Of<T>(T);

impl<T: Transfer<HostBuffer> + Send> Message for Of<T> {
    fn start(&mut self) -> Result<(), CommError> {
        self.0.start()
    }
    fn test(&mut self) -> Result<bool, CommError> {
        self.0.test()
    }
    fn wait(&mut self) -> Result<(), CommError> {
        self.0.wait()
    }
    fn bytes(&self) -> Result<&[u8], CommError> {
        Ok(comms::Buffer::bytes(self.0.buffer()?))
    }
}

/// A [`Communicator`], as an object. Its calls are described there.
pub trait Network: Send + Sync {
    /// This process.
    fn rank(&self) -> usize;
    /// Number of processes.
    fn size(&self) -> usize;
    /// This process among those of its host.
    fn node_rank(&self) -> usize;
    /// *Collective.* Sums in a fixed order.
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError>;
    /// *Collective.* Everybody's bytes.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError>;
    /// *Collective.* Waits for all.
    fn barrier(&self) -> Result<(), CommError>;
    /// A message to another process.
    fn sender(&self, to: usize, tag: Tag, buffer: HostBuffer) -> Result<Box<dyn Message>, CommError>;
    /// A message from another process.
    fn receiver(&self, from: usize, tag: Tag, buffer: HostBuffer) -> Result<Box<dyn Message>, CommError>;
}

impl<C> Network for C
where
    C: Communicator + Send + Sync,
    C::Send<HostBuffer>: Send + 'static,
    C::Receive<HostBuffer>: Send + 'static,
{
    fn rank(&self) -> usize {
        Communicator::rank(self)
    }
    fn size(&self) -> usize {
        Communicator::size(self)
    }
    fn node_rank(&self) -> usize {
        Communicator::node_rank(self)
    }
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        Communicator::sum(self, values)
    }
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        Communicator::all_gather(self, bytes)
    }
    fn barrier(&self) -> Result<(), CommError> {
        Communicator::barrier(self)
    }
    fn sender(&self, to: usize, tag: Tag, buffer: HostBuffer) -> Result<Box<dyn Message>, CommError> {
        Ok(Box::new(Of(self.send_channel(to, tag, buffer)?)))
    }
    fn receiver(&self, from: usize, tag: Tag, buffer: HostBuffer) -> Result<Box<dyn Message>, CommError> {
        Ok(Box::new(Of(self.receive_channel(from, tag, buffer)?)))
    }
}
