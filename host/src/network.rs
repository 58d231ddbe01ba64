//! Communication with other processes: any [`Communicator`] behind the trait [`Network`].
#![allow(unsafe_code)]

use comms::{CommError, Communicator, Tag, Transfer};

/// Buffer in host memory from which a message is sent, or into which it is received.
pub struct HostBuffer(pub Box<dyn comms::Buffer + Send + Sync>);

impl comms::Buffer for HostBuffer {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

/// Message that can be sent or received repeatedly: a [`Transfer`] as an object.
pub trait Message: Send {
    /// Starts sending or receiving the message.
    fn start(&mut self) -> Result<(), CommError>;
    /// Whether the message has ended.
    fn test(&mut self) -> Result<bool, CommError>;
    /// Waits for the end of the message.
    fn wait(&mut self) -> Result<(), CommError>;
    /// Returns the memory of the message, which must not be under way; empty if the message does not own its memory.
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

/// Message at an address; it does not own the memory.
#[cfg(feature = "mpi")]
struct Straight(comms::MpiDeviceTransfer);

#[cfg(feature = "mpi")]
impl Message for Straight {
    fn start(&mut self) -> Result<(), CommError> {
        comms::DeviceTransfer::start(&mut self.0)
    }
    fn test(&mut self) -> Result<bool, CommError> {
        comms::DeviceTransfer::test(&mut self.0)
    }
    fn wait(&mut self) -> Result<(), CommError> {
        comms::DeviceTransfer::wait(&mut self.0)
    }
    fn bytes(&self) -> Result<&[u8], CommError> {
        Ok(&[])
    }
}

/// Memory that messages can be sent from and received into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Buffers that belong to a message.
    Buffers,
    /// Any memory of the host.
    Host,
    /// Memory of the host and of CUDA devices.
    Devices,
}

/// Object-safe form of [`Communicator`], which documents the calls.
pub trait Network: Send + Sync {
    /// Returns the rank of this process.
    fn rank(&self) -> usize;
    /// Returns the number of processes.
    fn size(&self) -> usize;
    /// Returns the rank of this process among the processes of its host.
    fn node_rank(&self) -> usize;
    /// *Collective.* Sums each value over all processes, in a fixed order.
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError>;
    /// *Collective.* Returns the bytes of all processes in the order of their ranks.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError>;
    /// *Collective.* Waits for all processes.
    fn barrier(&self) -> Result<(), CommError>;
    /// Makes a message to process `to`.
    fn sender(&self, to: usize, tag: Tag, buffer: HostBuffer) -> Result<Box<dyn Message>, CommError>;
    /// Makes a message from process `from`.
    fn receiver(&self, from: usize, tag: Tag, buffer: HostBuffer) -> Result<Box<dyn Message>, CommError>;
    /// Returns the kind of memory that [`sender_at`](Self::sender_at) and [`receiver_at`](Self::receiver_at) accept.
    fn reach(&self) -> Reach {
        Reach::Buffers
    }
    /// Makes a message to process `to`, from memory within [`reach`](Self::reach).
    ///
    /// # Safety
    /// The memory exists, and is not written to, from each start of the message to its end. A message that is dropped under way ends only
    /// with the run.
    unsafe fn sender_at(
        &self,
        _to: usize,
        _tag: Tag,
        _address: *mut u8,
        _length: usize,
    ) -> Result<Box<dyn Message>, CommError> {
        Err(out_of_reach())
    }
    /// Makes a message from process `from`, into memory within [`reach`](Self::reach).
    ///
    /// # Safety
    /// The memory exists, and is not read or written by anything else, from each start of the message to its end, or until it is dropped.
    unsafe fn receiver_at(
        &self,
        _from: usize,
        _tag: Tag,
        _address: *mut u8,
        _length: usize,
    ) -> Result<Box<dyn Message>, CommError> {
        Err(out_of_reach())
    }
}

fn out_of_reach() -> CommError {
    let message = "the communicator sends messages from buffers only".into();
    CommError::Transport { operation: "a message at an address", message }
}

/// Host and cores of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the host.
    pub host: String,
    /// List of the cores on which the process may run, in the notation of Linux, such as `0-7,16`.
    pub cores: String,
}

/// Separator of host and cores in the text that processes exchange.
const SEPARATOR: char = '\n';

impl dyn Network + '_ {
    /// *Collective.* Returns the texts of all processes in the order of their ranks.
    ///
    /// # Errors
    /// Fails if the communication fails, as all collective calls.
    pub fn texts(&self, mine: &str) -> Result<Vec<String>, CommError> {
        let all = self.all_gather(mine.as_bytes())?;
        Ok(all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect())
    }
    /// *Collective.* Returns the host and the cores of all processes in the order of their ranks.
    pub fn places(&self) -> Result<Vec<Place>, CommError> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
        let texts = self.texts(&format!("{}{SEPARATOR}{}", host.trim(), cores.trim()))?;
        let place = |text: String| {
            let (host, cores) = text.split_once(SEPARATOR).unwrap_or((&text, ""));
            Place { host: host.into(), cores: cores.into() }
        };
        Ok(texts.into_iter().map(place).collect())
    }
    /// *Collective.* Returns the number of processes, including this one, that have the same host and the same list of cores as this one.
    /// It is 1 if each process is bound to its own cores.
    pub fn sharers(&self) -> Result<usize, CommError> {
        let places = self.places()?;
        let here = &places[self.rank()];
        Ok(places.iter().filter(|place| *place == here).count())
    }
    /// *Collective.* Returns the number of processes on this host, including this one, that pass the same text, for example the name of
    /// their device.
    pub fn alike(&self, mine: &str) -> Result<usize, CommError> {
        let (places, said) = (self.places()?, self.texts(mine)?);
        let here = &places[self.rank()].host;
        Ok(places.iter().zip(&said).filter(|(place, its)| &place.host == here && its.as_str() == mine).count())
    }
}

macro_rules! network {
    ($communicator:ty $(, $straight:item)*) => {
        impl Network for $communicator {
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
            $($straight)*
        }
    };
}

network!(comms::Solo);
network!(comms::Threads);
#[cfg(feature = "mpi")]
network!(
    comms::Mpi,
    fn reach(&self) -> Reach {
        if comms::DeviceChannels::reaches_devices(self) { Reach::Devices } else { Reach::Host }
    },
    unsafe fn sender_at(
        &self,
        to: usize,
        tag: Tag,
        address: *mut u8,
        length: usize,
    ) -> Result<Box<dyn Message>, CommError> {
        // SAFETY: the caller's promise.
        let transfer = unsafe { comms::DeviceChannels::send_from(self, to, tag, address as u64, length)? };
        Ok(Box::new(Straight(transfer)))
    },
    unsafe fn receiver_at(
        &self,
        from: usize,
        tag: Tag,
        address: *mut u8,
        length: usize,
    ) -> Result<Box<dyn Message>, CommError> {
        // SAFETY: the caller's promise.
        let transfer = unsafe { comms::DeviceChannels::receive_at(self, from, tag, address as u64, length)? };
        Ok(Box::new(Straight(transfer)))
    }
);
