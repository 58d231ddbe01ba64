//! Checks that every implementation of `Communicator` has to pass. Tests of `Solo` and `Threads` also include this file.

use comms::{Buffer, CommError, Communicator, Direction, Disagreement, ProcessGrid, Transfer, agree};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs all checks on all ranks. Panics if one fails.
pub fn all<C: Communicator>(comm: &C) {
    places(comm);
    sums(comm);
    maxima(comm);
    broadcasts(comm);
    gathers(comm);
    channels(comm);
    buffers(comm);
    order(comm);
    lengths(comm);
    given_up(comm);
    overlap(comm);
    halo(comm);
    agreement(comm);
    for seed in 0..20 {
        pattern(comm, &PatternMessage::random(seed, comm.size()), seed);
    }
    comm.barrier().unwrap();
}

/// Generator of random numbers (SplitMix64).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

fn places<C: Communicator>(comm: &C) {
    assert!(comm.rank() < comm.size());
    assert!(comm.node_rank() < comm.node_size() && comm.node_size() <= comm.size());
    let ranks = comm.all_gather(&(comm.rank() as u64).to_le_bytes()).unwrap();
    assert!(ranks.iter().enumerate().all(|(rank, bytes)| **bytes == (rank as u64).to_le_bytes()));
    for _ in 0..3 {
        comm.barrier().unwrap();
    }
}

/// Returns the contribution of rank `rank` to element `i`. The numbers differ widely in size and sign, so that a sum in
/// another order gives another result.
fn summand(rank: usize, i: usize) -> f64 {
    let mut random = SplitMix64((rank * 1_000_003 + i) as u64);
    let mantissa = random.next() as i64 as f64;
    mantissa * 2f64.powi(random.below(80) as i32 - 40)
}

fn sums<C: Communicator>(comm: &C) {
    // 20 000 doubles exceed the size up to which `Mpi` gathers all numbers of a sum on every rank, for any number of
    // ranks.
    for length in [0, 1, 2, 3, 17, 1000, 20_000] {
        let mine: Vec<f64> = (0..length).map(|i| summand(comm.rank(), i)).collect();
        // Every implementation must return this sum bit by bit: rank 0's number, plus rank 1's, plus …
        let expected: Vec<u64> = (0..length)
            .map(|i| (1..comm.size()).fold(summand(0, i), |sum, rank| sum + summand(rank, i)).to_bits())
            .collect();
        for _ in 0..3 {
            let mut values = mine.clone();
            comm.sum(&mut values).unwrap();
            assert!(values.iter().map(|v| v.to_bits()).eq(expected.iter().copied()), "sum of {length}");
        }
    }
    let mut zero = [-0.0];
    comm.sum(&mut zero).unwrap();
    assert_eq!(zero[0].to_bits(), (-0.0f64).to_bits());
}

fn maxima<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    for length in [1, 20_000] {
        let mut values: Vec<f64> = (0..length).map(|i| summand(rank, i)).collect();
        comm.max(&mut values).unwrap();
        let largest = |i| (0..size).map(|rank| summand(rank, i)).fold(f64::NEG_INFINITY, f64::max);
        assert!(values.iter().enumerate().all(|(i, v)| *v == largest(i)));
    }
    for bad in 0..size {
        let mut values = [if rank == bad { f64::NAN } else { 1.0 }, f64::NEG_INFINITY, -(rank as f64)];
        comm.max(&mut values).unwrap();
        assert!(values[0].is_nan());
        assert_eq!(values[1..], [f64::NEG_INFINITY, 0.0]);
    }
}

fn broadcasts<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    for root in 0..size {
        for length in [0, 1, 1000, 100_001] {
            let word: Vec<u8> = (0..length).map(|i| (i * 7 + root) as u8).collect();
            let mut bytes = if rank == root { word.clone() } else { vec![0xAA; length] };
            comm.broadcast(root, &mut bytes).unwrap();
            assert_eq!(bytes, word);
            let mut bytes = if rank == root { word.clone() } else { vec![1, 2, 3] };
            comm.broadcast_vec(root, &mut bytes).unwrap();
            assert_eq!(bytes, word);
        }
    }
    let bad = comm.broadcast(size, &mut [0]);
    assert!(matches!(bad, Err(CommError::NoSuchRank { rank, size: s }) if rank == size && s == size));
}

fn gathers<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    // `of` returns the bytes that a rank contributes: 70 000 for rank 2, and none for some ranks.
    let of = |rank: usize| vec![rank as u8; if rank == 2 { 70_000 } else { (rank * 5) % 13 }];
    let expected: Vec<Vec<u8>> = (0..size).map(of).collect();
    for root in 0..size {
        let gathered = comm.gather(root, &of(rank)).unwrap();
        assert_eq!(gathered, (rank == root).then(|| expected.clone()));
    }
    assert_eq!(comm.all_gather(&of(rank)).unwrap(), expected);
    assert_eq!(comm.all_gather(&[]).unwrap(), vec![Vec::<u8>::new(); size]);
    assert!(matches!(comm.gather(size, &[]), Err(CommError::NoSuchRank { .. })));
}

/// Sends short and long messages around a ring, repeatedly through the same channels.
fn channels<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    for length in [0, 1, 100, 300_000] {
        let mut send = comm.send_channel(next, 1, vec![0u8; length]).unwrap();
        let mut receive = comm.receive_channel(last, 1, vec![0u8; length]).unwrap();
        let address = receive.buffer().unwrap().as_ptr();
        assert!(send.test().unwrap() && receive.test().unwrap(), "idle");
        for round in 0..6u8 {
            send.buffer_mut().unwrap().fill(round ^ rank as u8);
            receive.start().unwrap();
            send.start().unwrap();
            assert!(matches!(send.buffer_mut(), Err(CommError::UnderWay { tag: 1 })));
            assert!(matches!(send.start(), Err(CommError::UnderWay { tag: 1 })));
            assert!(matches!(receive.buffer(), Err(CommError::UnderWay { tag: 1 })));
            assert!(matches!(receive.start(), Err(CommError::UnderWay { tag: 1 })));
            if round % 2 == 0 {
                while !(send.test().unwrap() & receive.test().unwrap()) {}
            }
            send.wait().unwrap();
            receive.wait().unwrap();
            receive.wait().unwrap();
            assert!(receive.buffer().unwrap().iter().all(|b| *b == round ^ last as u8));
        }
        let received = receive.into_buffer().unwrap();
        assert_eq!(received.as_ptr(), address);
        assert_eq!(send.into_buffer().unwrap().len(), length);
    }
    assert!(matches!(comm.send(size, 0, vec![0u8]), Err(CommError::NoSuchRank { .. })));
    assert!(matches!(comm.receive_channel(size + 3, 0, vec![0u8]), Err(CommError::NoSuchRank { .. })));
}

/// Buffer that holds its bytes inside the value itself, so that they move with it.
struct Inline([u8; 48], Arc<AtomicUsize>);

impl Buffer for Inline {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Drop for Inline {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

/// Checks that transfers may be moved while their messages are under way, and that every buffer is dropped once.
fn buffers<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    let drops = Arc::new(AtomicUsize::new(0));
    let mut transfers = Vec::new();
    for tag in 0..9 {
        // The vector reallocates as it grows, which moves transfers that are under way.
        let receive = comm.receive((rank + 1) % size, tag, Inline([0; 48], Arc::clone(&drops))).unwrap();
        let word = Inline([tag as u8 + 100; 48], Arc::clone(&drops));
        transfers.push((receive, comm.send((rank + size - 1) % size, tag, word).unwrap()));
    }
    for (tag, (receive, mut send)) in transfers.into_iter().enumerate() {
        assert_eq!(receive.into_buffer().unwrap().bytes(), [tag as u8 + 100; 48]);
        send.wait().unwrap();
    }
    assert_eq!(drops.load(Ordering::SeqCst), 18);
    drop(comm.receive_channel(rank, 0, Inline([0; 48], Arc::clone(&drops))).unwrap());
    drop(comm.receive(rank, 0, Inline([0; 48], Arc::clone(&drops))).unwrap());
    assert_eq!(drops.load(Ordering::SeqCst), 20);
}

/// Checks that messages with the same tag arrive in the order in which they were started, whatever the order in which a
/// rank waits for them.
fn order<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let receives: Vec<_> = (0..4).map(|_| comm.receive(last, 5, vec![0u8; 8]).unwrap()).collect();
    let sends: Vec<_> = (0..4u8).map(|i| comm.send(next, 5, vec![i; 8]).unwrap()).collect();
    for (i, receive) in receives.into_iter().enumerate().rev() {
        assert_eq!(receive.into_buffer().unwrap(), [i as u8; 8]);
    }
    for send in sends {
        send.into_buffer().unwrap();
    }
}

/// Checks that a message of the wrong length is an error of the receiver, and that other messages are not affected.
fn lengths<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    for (sent, expected) in [(17, 16), (16, 17), (0, 1), (1, 0), (300_000, 10), (300_001, 300_000), (10, 300_000)] {
        let mut receive = comm.receive(last, 6, vec![9u8; expected]).unwrap();
        let mut send = comm.send(next, 6, vec![1u8; sent]).unwrap();
        match receive.wait() {
            Err(CommError::Length { tag: 6, sent: s, expected: e }) if (s, e) == (sent, expected) => {}
            other => panic!("{sent} bytes into {expected}: {other:?}"),
        }
        send.wait().unwrap();
        // After the error the channel can be used again.
        receive.start().unwrap();
        let send = comm.send(next, 6, vec![2u8; expected]).unwrap();
        assert_eq!(receive.into_buffer().unwrap(), vec![2u8; expected]);
        send.into_buffer().unwrap();
    }
}

/// Checks that dropped receptions take no message and that dropped sends arrive.
fn given_up<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    for length in [3, 200_000] {
        drop(comm.receive(last, 7, vec![0u8; length]).unwrap());
        comm.barrier().unwrap();
        let receive = comm.receive(last, 7, vec![0u8; length]).unwrap();
        drop(comm.send(next, 7, vec![5u8; length]).unwrap());
        assert_eq!(receive.into_buffer().unwrap(), vec![5u8; length]);
        comm.barrier().unwrap();
    }
}

/// Checks that messages complete while their receivers are busy with collective calls or with other messages.
fn overlap<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    type Call<C> = fn(&C) -> Result<(), CommError>;
    let calls: [Call<C>; 6] = [
        |c| c.barrier(),
        |c| c.sum(&mut [1.0]),
        |c| c.sum(&mut [1.0; 20_000]),
        |c| c.broadcast(0, &mut [1; 1000]),
        |c| c.gather(0, &[1; 100]).map(drop),
        |c| c.all_gather(&[1; 100]).map(drop),
    ];
    for call in calls {
        let receives = [8, 9].map(|tag| comm.receive(last, tag, vec![0u8; 300_000]).unwrap());
        for (tag, byte) in [(9, 3u8), (8, 2)] {
            comm.send(next, tag, vec![byte; 300_000]).unwrap().into_buffer().unwrap();
        }
        // A rank that waits in this call must also receive messages, because their sender may wait for the end of its
        // sends before it makes the call.
        call(comm).unwrap();
        for (receive, byte) in receives.into_iter().zip([2, 3]) {
            assert_eq!(receive.into_buffer().unwrap(), vec![byte; 300_000]);
        }
    }
}

/// Exchanges messages as in a halo exchange, with both neighbours in all four directions. A neighbour can be this rank
/// itself.
fn halo<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    let grid = ProcessGrid::best(size, [16 * size; 4], 1).unwrap();
    let word = |rank: usize, mu: usize, way: usize| vec![(rank * 8 + mu * 2 + way) as u8; 500];
    let mut transfers = Vec::new();
    for mu in 0..4 {
        for (way, direction) in Direction::BOTH.into_iter().enumerate() {
            let tag = (mu * 2 + way) as u16;
            let source = grid.neighbour(rank, mu, direction.opposite());
            let receive = comm.receive(source, tag, vec![0u8; 500]).unwrap();
            let send = comm.send(grid.neighbour(rank, mu, direction), tag, word(rank, mu, way)).unwrap();
            transfers.push((send, receive, word(source, mu, way)));
        }
    }
    for (mut send, receive, expected) in transfers {
        send.wait().unwrap();
        assert_eq!(receive.into_buffer().unwrap(), expected);
    }
}

fn agreement<C: Communicator>(comm: &C) {
    let (rank, size) = (comm.rank(), comm.size());
    assert_eq!(agree(comm, Ok::<_, String>(rank)).unwrap(), rank);
    for bad in 0..size {
        // `bad` and all higher ranks fail. The expected message is that of `bad`, the lowest of them.
        let result = if rank >= bad { Err(format!("rank {rank} has no file")) } else { Ok(()) };
        let error = agree(comm, result).unwrap_err();
        let Disagreement::Failed { rank: named, message, .. } = &error else { panic!("{error}") };
        assert_eq!((*named, message.as_str()), (bad, format!("rank {bad} has no file").as_str()));
        assert_eq!(error.to_string().starts_with(&format!("rank {bad}: ")), size > 1);
    }
}

/// Message of a random pattern.
#[derive(Clone, Debug)]
pub struct PatternMessage {
    /// Rank of the sender.
    pub from: usize,
    /// Rank of the receiver.
    pub to: usize,
    /// Tag of the message; there are few values, so that many messages share one.
    pub tag: u16,
    /// Length of the message in bytes.
    pub length: usize,
}

impl PatternMessage {
    /// Returns the random pattern of messages among `size` ranks that `seed` determines. It is the same on all ranks.
    pub fn random(seed: u64, size: usize) -> Vec<PatternMessage> {
        let mut random = SplitMix64(seed);
        let count = random.below(40);
        let lengths = [0, 1, 64, 5000, 90_000];
        let mut message = |_| PatternMessage {
            from: random.below(size),
            to: random.below(size),
            tag: random.below(3) as u16,
            length: lengths[random.below(lengths.len())],
        };
        (0..count).map(&mut message).collect()
    }

    /// Returns the contents of this message, number `i` of the pattern, in round `round`.
    fn word(&self, i: usize, round: usize) -> Vec<u8> {
        (0..self.length).map(|k| (k * 31 + i * 7 + round * 3 + self.from) as u8).collect()
    }
}

/// Sends all messages of a pattern twice through the same channels, and waits for them in an order that differs between
/// ranks.
pub fn pattern<C: Communicator>(comm: &C, messages: &[PatternMessage], seed: u64) {
    let mut random = SplitMix64(seed ^ (comm.rank() as u64) << 32);
    let numbered = || messages.iter().enumerate();
    let to_me = numbered().filter(|(_, m)| m.to == comm.rank());
    let from_me = numbered().filter(|(_, m)| m.from == comm.rank());
    let mut receives: Vec<_> =
        to_me.map(|(i, m)| (i, m, comm.receive_channel(m.from, m.tag, vec![0u8; m.length]).unwrap())).collect();
    let mut sends: Vec<_> =
        from_me.map(|(i, m)| (i, m, comm.send_channel(m.to, m.tag, vec![0u8; m.length]).unwrap())).collect();
    for round in 0..2 {
        for (i, message, send) in &mut sends {
            send.buffer_mut().unwrap().copy_from_slice(&message.word(*i, round));
        }
        if random.below(2) == 0 {
            receives.iter_mut().for_each(|r| r.2.start().unwrap());
            sends.iter_mut().for_each(|s| s.2.start().unwrap());
        } else {
            sends.iter_mut().for_each(|s| s.2.start().unwrap());
            receives.iter_mut().for_each(|r| r.2.start().unwrap());
        }
        let mut rest: Vec<usize> = (0..receives.len()).collect();
        while !rest.is_empty() {
            let (_, _, receive) = &mut receives[rest.swap_remove(random.below(rest.len()))];
            if random.below(2) == 0 {
                receive.wait().unwrap();
            } else {
                while !receive.test().unwrap() {}
            }
        }
        sends.iter_mut().for_each(|s| s.2.wait().unwrap());
        for (i, message, receive) in &receives {
            assert_eq!(*receive.buffer().unwrap(), message.word(*i, round), "message {i}");
        }
    }
}
