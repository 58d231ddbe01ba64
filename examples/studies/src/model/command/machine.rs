//! Conversion of the library's measured times to the machine of the scaling model.
use crate::model::{
    AlgebraTimes, CutTimes, Decomposition, ExchangeTimes, FormatNames, IterationCounts, Machine, MeasuredPoint,
    MeasuredValue, OperationCutTimes, OperationTimes, TimeCurve, Wire, exchange_bytes,
};
use ferrite::bench::scaling::{ExchangeTime, OperationSeries, OperationTime, ReferenceTimes, ScalingTimes};
use ferrite::{LinkStorage, Precision};

fn names(precision: Precision, storage: Option<LinkStorage>) -> FormatNames {
    let reconstruct = storage.map_or("", LinkStorage::name).into();
    FormatNames { precision: precision.name().into(), reconstruct }
}

fn curve(points: &[(f64, f64)]) -> TimeCurve {
    TimeCurve::new(points.iter().copied()).expect("there is a time above 0 for each of several lattices")
}

/// Returns the machine from measured times, with the iterations of solvers if they were counted.
pub fn machine(times: &ScalingTimes, iterations: Option<IterationCounts>) -> Machine {
    let operation = |o: &OperationSeries| OperationTimes {
        name: o.name.clone(),
        format: names(o.precision, o.storage),
        reach: o.reach,
        hops: o.hops,
        sums: o.sums,
        zone_bytes: o.zone_bytes,
        flops: o.flops,
        alone: curve(&o.points),
        beside: Default::default(),
        exterior: Default::default(),
    };
    let algebra = times.algebra.iter().map(|a| AlgebraTimes {
        name: a.name.clone(),
        precision: a.precision.name().into(),
        alone: curve(&a.points),
    });
    let message = |e: &ExchangeTime| {
        let cut = Decomposition { lattice: e.lattice, grid: e.grid };
        (exchange_bytes(&cut, e.direction, e.reach, e.zone_bytes), e.seconds)
    };
    let exchanges = times.exchanges.iter().map(|series| {
        let points: Vec<_> = series.times.iter().map(message).collect();
        ExchangeTimes { transport: series.transport.name().into(), wire: Wire::of_measured(&points) }
    });
    let mut machine = Machine {
        device: times.device.clone(),
        processes: times.processes,
        operator: times.operator.into(),
        operations: times.operations.iter().map(operation).collect(),
        algebra: algebra.collect(),
        exchanges: exchanges.collect(),
        sum_step: times.sum_step,
        iterations,
    };
    machine.set_costs_of_cuts(&times.references.iter().map(cut_times).collect::<Vec<_>>());
    machine
}

fn cut_times(reference: &ReferenceTimes) -> CutTimes {
    let seconds = reference.operations.iter().map(|seconds| OperationCutTimes {
        alone: seconds.alone,
        overlapped: seconds.overlapped,
        in_turn: seconds.in_turn,
    });
    CutTimes {
        direction: reference.direction,
        cut: Decomposition { lattice: reference.lattice, grid: reference.grid },
        operations: seconds.collect(),
    }
}

/// Returns the measured time of an operation on a partitioned lattice, as a point to compare with predictions.
pub fn point(time: &OperationTime, cut: Decomposition, transport: &str, overlap: bool) -> MeasuredPoint {
    let FormatNames { precision, reconstruct } = names(time.precision, time.storage);
    MeasuredPoint {
        operator: time.name.clone(),
        precision,
        reconstruct,
        cut,
        transport: Some(transport.into()),
        overlap,
        measured: MeasuredValue::Seconds(time.seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comms::Threads;
    use ferrite::backend::Cpu;
    use ferrite::bench::scaling::{ScalingPlan, measure};
    use ferrite::domain::DeviceError;
    use ferrite::domain::Transport;
    use ferrite::lattice::Lattice;
    use ferrite::network::Network;
    use ferrite::operators::WILSON;
    use ferrite::workload::Options;
    use std::sync::Arc;

    /// A machine that was measured has all that predictions need.
    #[test]
    fn times_make_a_machine() {
        let lattice = Lattice::new([4; 4]).unwrap();
        let options = Options {
            lattice,
            precisions: vec![Precision::Single],
            reconstructions: vec![LinkStorage::of(12)],
            nrhs: 1,
        };
        let plan = ScalingPlan { definition: &WILSON, options, largest: lattice, transport: Transport::Host };
        let times = Threads::run(2, |threads| {
            let network: Arc<dyn Network> = Arc::new(threads);
            measure(&Cpu::new(Some(1)), &network, &plan).map_err(|error: DeviceError| error.to_string())
        });
        let machine = machine(&times.unwrap_or_else(|failure| panic!("{failure}"))[0], None);
        let dslash = &machine.operations[0];
        assert_eq!((dslash.name.as_str(), dslash.flops, dslash.zone_bytes), ("wilson_dslash", 660.0, 48));
        assert_eq!((dslash.format.precision.as_str(), dslash.format.reconstruct.as_str()), ("single", "12"));
        assert!(dslash.exterior.iter().all(|line| line.points().len() >= 2), "{:?}", dslash.exterior);
        assert_eq!((machine.exchanges.len(), machine.algebra.len()), (1, 6));
        assert!(machine.exchanges[0].wire.latency > 0.0 || machine.exchanges[0].wire.bandwidth > 0.0);
    }
}
