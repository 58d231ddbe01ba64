//! The world of one process: everything works, and misuse is an error and no deadlock.

use crate::checks;
use comms::{CommError, Communicator, Solo, Transfer};

#[test]
fn all_checks() {
    checks::all(&Solo::new());
}

#[test]
fn collectives() {
    let world = Solo::new();
    assert_eq!((world.rank(), world.size(), world.node_rank(), world.node_size()), (0, 1, 0, 1));
    let mut values = [1.0, f64::NAN, -3.5];
    world.sum(&mut values).unwrap();
    world.max(&mut values).unwrap();
    assert!(values[0] == 1.0 && values[1].is_nan() && values[2] == -3.5);
    world.barrier().unwrap();
    let mut bytes = vec![1, 2, 3];
    world.broadcast(0, &mut bytes).unwrap();
    world.broadcast_vec(0, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3]);
    assert_eq!(world.gather(0, &bytes).unwrap(), Some(vec![vec![1, 2, 3]]));
    assert_eq!(world.all_gather(&[]).unwrap(), [Vec::<u8>::new()]);
    assert!(matches!(world.broadcast(1, &mut bytes), Err(CommError::NoSuchRank { rank: 1, size: 1 })));
}

#[test]
fn messages_keep_their_order_and_tags() {
    let world = Solo::new();
    // Received before it is sent, and two messages with the same tag.
    let mut late = world.receive(0, 2, vec![0u8; 1]).unwrap();
    assert!(!late.test().unwrap());
    let sends = [world.send(0, 1, vec![10u8]), world.send(0, 2, vec![20]), world.send(0, 1, vec![11])];
    assert_eq!(late.into_buffer().unwrap(), [20]);
    assert_eq!(world.receive(0, 1, vec![0u8]).unwrap().into_buffer().unwrap(), [10]);
    assert_eq!(world.receive(0, 1, vec![0u8]).unwrap().into_buffer().unwrap(), [11]);
    for send in sends {
        send.unwrap().wait().unwrap();
    }
}

#[test]
fn misuse_is_an_error() {
    let world = Solo::new();
    assert!(matches!(world.send(1, 0, vec![0u8]), Err(CommError::NoSuchRank { rank: 1, .. })));
    let mut receive = world.receive(0, 9, vec![0u8; 2]).unwrap();
    assert!(matches!(receive.wait(), Err(CommError::NeverSent { tag: 9, from: 0 })));
    world.send(0, 9, vec![0u8; 3]).unwrap();
    assert!(matches!(receive.wait(), Err(CommError::Length { tag: 9, sent: 3, expected: 2 })));
}
