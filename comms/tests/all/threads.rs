//! Ranks as threads: the checks of every communicator, random patterns of messages, and how a run ends when a rank fails.

use crate::checks::{self, PatternMessage};
use comms::{Cause, CommError, Communicator, RankFailure, Solo, Threads, Transfer};
use proptest::prelude::*;
use std::convert::Infallible;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const SIZES: [usize; 5] = [1, 2, 3, 4, 8];

/// Runs `body` on `size` ranks and fails after two minutes: a test that hangs does not report why.
fn run<T, E>(size: usize, body: impl Fn(Threads) -> Result<T, E> + Send + Sync + 'static) -> Result<Vec<T>, RankFailure>
where
    T: Send + 'static,
    E: std::fmt::Display,
{
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(Threads::run(size, body)));
    receiver.recv_timeout(Duration::from_secs(120)).expect("the run hangs")
}

/// A program keeps its communicator in objects that its threads share.
const fn is_shared<T: Clone + Send + Sync + 'static>() {}
const _: () = is_shared::<Solo>();
const _: () = is_shared::<Threads>();
#[cfg(feature = "mpi")]
const _: () = is_shared::<comms::Mpi>();

#[test]
fn all_checks() {
    for size in SIZES {
        let end = run(size, |world| {
            checks::all(&world);
            Ok::<_, Infallible>(())
        });
        end.unwrap();
    }
}

#[test]
fn results_come_in_order_of_rank() {
    for size in SIZES {
        let ranks = run(size, |world| {
            // Later ranks end first.
            thread::sleep(Duration::from_millis(5 * (world.size() - world.rank()) as u64));
            Ok::<_, Infallible>((world.rank(), world.node_rank(), world.node_size()))
        });
        assert_eq!(ranks.unwrap(), (0..size).map(|r| (r, r, size)).collect::<Vec<_>>());
    }
    assert_eq!(Threads::run(0, |_| Ok::<_, Infallible>(())), Ok(Vec::new()));
}

#[test]
fn sums_are_those_of_one_process_and_repeat() {
    let numbers: Vec<f64> = (0..8).map(|i| 0.1 * f64::powi(-7.3, i)).collect();
    let alone = |of: &[f64]| of.iter().skip(1).fold(of[0], |sum, x| sum + x).to_bits();
    for size in SIZES {
        let mine = numbers.clone();
        let sums = run(size, move |world| {
            (0..50)
                .map(|_| {
                    let mut value = [mine[world.rank()]];
                    world.sum(&mut value).map(|()| value[0].to_bits())
                })
                .collect::<Result<Vec<u64>, _>>()
        });
        assert!(sums.unwrap().into_iter().flatten().all(|bits| bits == alone(&numbers[..size])));
    }
}

/// Sizes with a pattern of messages for them.
fn patterns() -> impl Strategy<Value = (usize, Vec<PatternMessage>)> {
    prop::sample::select(&SIZES[..]).prop_flat_map(|size| {
        let message = (0..size, 0..size, 0..3u16, prop::sample::select(vec![0usize, 1, 7, 100, 4097]));
        let message = message.prop_map(|(from, to, tag, length)| PatternMessage { from, to, tag, length });
        (Just(size), prop::collection::vec(message, 0..60))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn any_pattern_of_messages_arrives((size, messages) in patterns(), seed in any::<u64>()) {
        let end = run(size, move |world| {
            checks::pattern(&world, &messages, seed);
            Ok::<_, Infallible>(())
        });
        prop_assert!(end.is_ok(), "{:?}", end);
    }

    #[test]
    fn any_pattern_arrives_in_one_process(messages in prop::collection::vec(0..3u16, 0..30), seed in any::<u64>()) {
        let own = |(i, tag)| PatternMessage { from: 0, to: 0, tag, length: i };
        let messages: Vec<PatternMessage> = messages.into_iter().enumerate().map(own).collect();
        checks::pattern(&Solo::new(), &messages, seed);
    }
}

/// A rank that fails by an error, a panic or an abort wakes all others, whatever they wait for. Each of them gets its number and the cause.
#[test]
fn a_failing_rank_wakes_all_others() {
    type Does = fn(&Threads) -> Result<(), CommError>;
    let waits: [(&str, Does); 7] = [
        ("barrier", |w| w.barrier()),
        ("sum", |w| w.sum(&mut [1.0])),
        ("gather", |w| w.gather(0, &[1]).map(drop)),
        ("broadcast", |w| w.broadcast(1, &mut [0])),
        ("receive", |w| w.receive(1, 0, vec![0u8; 4])?.wait()),
        ("send", |w| w.send(1, 0, vec![0u8; 4])?.wait()),
        ("test", |w| {
            let mut receive = w.receive(1, 0, vec![0u8; 4])?;
            while !receive.test()? {}
            Ok(())
        }),
    ];
    let fails: [(Does, Cause); 3] = [
        (
            |_| Err(CommError::UnderWay { tag: 77 }),
            Cause::Error("the message with tag 77 is not complete: wait for it first".to_string()),
        ),
        (|_| panic!("index {} out of bounds", 5), Cause::Panic("index 5 out of bounds".to_string())),
        (|w| w.abort(3, "the disk is full"), Cause::Abort { code: 3, message: "the disk is full".to_string() }),
    ];
    for (name, wait) in waits {
        for (fail, cause) in fails.clone() {
            for size in [2, 4] {
                let (reported, heard) = mpsc::channel();
                let expected = cause.to_string();
                let end = run(size, move |world| {
                    if world.rank() == 1 {
                        // The others are waiting by now, or will.
                        thread::sleep(Duration::from_millis(3));
                        fail(&world)?;
                    }
                    let result = wait(&world);
                    reported
                        .send(match &result {
                            Err(CommError::RankFailed { rank: 1, message }) => *message == expected,
                            _ => false,
                        })
                        .unwrap();
                    result
                });
                assert_eq!(end, Err(RankFailure { rank: 1, cause: cause.clone() }), "{name}");
                assert_eq!(heard.into_iter().collect::<Vec<_>>(), vec![true; size - 1], "{name}");
            }
        }
    }
}

#[test]
fn calls_after_a_failure_fail_too() {
    let end = run(3, |world| {
        if world.rank() == 2 {
            world.abort(0, "early");
        }
        while world.barrier().is_ok() {}
        assert!(matches!(world.sum(&mut [0.0]), Err(CommError::RankFailed { rank: 2, .. })));
        assert!(matches!(world.receive(2, 0, vec![0u8])?.wait(), Err(CommError::RankFailed { rank: 2, .. })));
        // Later failures do not hide the first one.
        Err::<(), _>(CommError::UnderWay { tag: 1 })
    });
    // A code of 0 would say that all is well.
    let cause = Cause::Abort { code: 1, message: "early".to_string() };
    assert_eq!(end, Err(RankFailure { rank: 2, cause }));
    assert_eq!(end.unwrap_err().to_string(), "rank 2 aborted with code 1: early");
}

#[test]
fn an_error_leaves_through_messages_under_way() {
    let end = run(2, |world| {
        let other = 1 - world.rank();
        let _receive = world.receive(other, 1, vec![0u8; 100])?;
        let _send = world.send(other, 2, vec![0u8; 100])?;
        if world.rank() == 0 {
            return Err(CommError::UnderWay { tag: 5 });
        }
        world.barrier()
    });
    assert_eq!(end.unwrap_err().rank, 0);
}

/// The sentence that ended a run.
fn sentence(end: Result<Vec<()>, RankFailure>) -> String {
    end.unwrap_err().to_string()
}

#[test]
fn waiting_for_what_cannot_come_is_an_error() {
    let reported = sentence(run(2, |world| world.receive(1 - world.rank(), 4, vec![0u8])?.wait()));
    assert!(
        reported.contains("no rank can continue: rank 0 waits for a message with tag 4 from rank 1; rank 1"),
        "{reported}"
    );

    let reported = sentence(run(3, |world| match world.rank() {
        0 => world.barrier(),
        1 => world.sum(&mut []),
        _ => Ok(()),
    }));
    // The error names the call that comes second.
    let orders = ["rank 1 calls sum with length 0, but rank 0 calls", "rank 0 calls barrier, but rank 1 calls sum"];
    assert!(orders.iter().any(|order| reported.contains(order)), "{reported}");

    let reported = sentence(run(3, |world| if world.rank() == 2 { Ok(()) } else { world.barrier() }));
    assert!(reported.contains("rank 1 waits for the other ranks in barrier; rank 2 has ended"), "{reported}");

    let reported =
        sentence(run(2, |world| if world.rank() == 0 { Ok(()) } else { world.receive(0, 1, vec![0u8])?.wait() }));
    assert_eq!(reported, "rank 1 failed: waiting for a message with tag 1 from rank 0, which never sent it");

    let reported =
        sentence(run(2, |world| if world.rank() == 0 { Ok(()) } else { world.send(0, 1, vec![0u8])?.wait() }));
    assert_eq!(reported, "rank 1 failed: waiting for rank 0 to receive a message with tag 1, which it never does");

    // To oneself, while another rank works.
    let reported = sentence(run(2, |world| {
        if world.rank() == 0 {
            let mut pending = world.receive(1, 0, vec![0u8])?;
            while !pending.test()? {}
        }
        world.receive(world.rank(), 2, vec![0u8])?.wait()
    }));
    assert_eq!(reported, "rank 1 failed: waiting for a message with tag 2 from rank 1, which never sent it");
}

#[test]
fn sends_end_when_their_receivers_start() {
    let end = run(2, |world| {
        if world.rank() == 0 {
            let mut send = world.send(1, 0, vec![1u8, 2])?;
            for _ in 0..100 {
                assert!(!send.test()?);
            }
            world.barrier()?;
            send.wait()
        } else {
            world.barrier()?;
            assert_eq!(world.receive(0, 0, vec![0u8; 2])?.into_buffer()?, [1, 2]);
            Ok(())
        }
    });
    end.unwrap();
    // All send before they receive: a deadlock with MPI and long messages.
    let reported = sentence(run(2, |world| {
        let other = 1 - world.rank();
        world.send(other, 0, vec![0u8])?.wait()?;
        world.receive(other, 0, vec![0u8])?.wait()
    }));
    assert!(reported.contains("waits for rank 1 to receive its message with tag 0"), "{reported}");
}

#[test]
fn collective_calls_have_to_match() {
    type Calls = [fn(&Threads) -> Result<(), CommError>; 2];
    let pairs: [Calls; 4] = [
        [|w| w.sum(&mut [1.0]), |w| w.sum(&mut [1.0, 2.0])],
        [|w| w.sum(&mut [1.0]), |w| w.max(&mut [1.0])],
        [|w| w.broadcast(0, &mut [1]), |w| w.broadcast(1, &mut [1])],
        [|w| w.broadcast(0, &mut [1]), |w| w.broadcast(0, &mut [1, 2])],
    ];
    for calls in pairs {
        let reported = sentence(run(2, move |world| calls[world.rank()](&world)));
        assert!(reported.contains(" calls ") && reported.contains(", but rank "), "{reported}");
    }
}

#[test]
fn a_rank_belongs_to_its_thread() {
    let handles = run(2, |world| {
        let other = thread::scope(|scope| scope.spawn(|| world.sum(&mut [1.0])).join().expect("the other thread"));
        assert!(matches!(other, Err(CommError::WrongThread { .. })), "{other:?}");
        let receive = world.receive(0, 0, vec![0u8])?;
        Ok::<_, CommError>((world, receive))
    });
    // And to its run.
    for (world, mut receive) in handles.unwrap() {
        assert!(matches!(world.barrier(), Err(CommError::WrongThread { .. })));
        assert!(matches!(receive.test(), Err(CommError::WrongThread { .. })));
    }
}
