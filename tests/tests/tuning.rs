//! `ferrite tune` must see every kernel that solves launch, whatever operators and solvers become.
use ferrite::backend::{Backend, Cpu, Memory, Result};
use ferrite::bench::Options;
use ferrite::dirac::{CloverParams, Schur, StaggeredParams, TimeBoundary, WilsonParams};
use ferrite::domain::Domain;
use ferrite::fat_links::{Improvement, PathCoefficients};
use ferrite::field::ThinGauge;
use ferrite::generate;
use ferrite::lattice::Lattice;
use ferrite::solve::{
    Correction, IterationPrecision, Method, Operator, Reconstruction, Request, ShiftStrategy, Solves,
    StaggeredConfiguration, solve_wilson,
};
use ferrite::tune::{LaunchKey, Operations, launch_all};
use gpu_kernels::{Kernel, Reduction};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// A CPU that notes what is launched.
#[derive(Clone)]
struct Spy {
    cpu: Cpu,
    launched: Arc<Mutex<BTreeSet<LaunchKey>>>,
}

impl Spy {
    fn new() -> Self {
        Spy { cpu: Cpu::new(Some(2)), launched: Arc::default() }
    }
    /// Launches of kernels that are tuned: hot ones.
    fn hot(&self) -> BTreeSet<LaunchKey> {
        let hot = |key: &LaunchKey| gpu_kernels::instances().any(|i| i.name == key.kernel && i.hot);
        self.launched.lock().unwrap().iter().filter(|key| hot(key)).cloned().collect()
    }
}

impl Backend for Spy {
    type Buffer = <Cpu as Backend>::Buffer;
    type Event = <Cpu as Backend>::Event;
    type Stream = <Cpu as Backend>::Stream;
    type Pinned = <Cpu as Backend>::Pinned;
    type Peer = <Cpu as Backend>::Peer;

    fn solves() -> &'static Solves<Self> {
        static SOLVES: Solves<Spy> = Solves::new();
        &SOLVES
    }
    fn name(&self) -> &'static str {
        self.cpu.name()
    }
    fn device(&self) -> String {
        self.cpu.device()
    }
    fn is(&self, other: &Self) -> bool {
        self.cpu.is(&other.cpu)
    }
    fn memory(&self) -> Result<Memory> {
        self.cpu.memory()
    }
    fn allocate(&self, bytes: usize, what: &str) -> Result<Self::Buffer> {
        self.cpu.allocate(bytes, what)
    }
    fn upload(&self, data: &[u8], to: &mut Self::Buffer, offset: usize) -> Result {
        self.cpu.upload(data, to, offset)
    }
    fn download(&self, from: &Self::Buffer, offset: usize, data: &mut [u8]) -> Result {
        self.cpu.download(from, offset, data)
    }
    fn copy(&self, from: &Self::Buffer, to: &mut Self::Buffer, bytes: usize) -> Result {
        self.cpu.copy(from, to, bytes)
    }
    fn clear(&self, buffer: &mut Self::Buffer) -> Result {
        self.cpu.clear(buffer)
    }
    fn launch_on<K: Kernel>(&self, stream: Option<&()>, kernel: &K, n: u32, nrhs: u32) -> Result {
        self.launched.lock().unwrap().insert(LaunchKey { kernel: K::NAME.join("_"), sites: n, nrhs });
        self.cpu.launch_on(stream, kernel, n, nrhs)
    }
    fn reduce_on<K: Reduction>(&self, s: Option<&()>, kernel: &K, n: u32, nrhs: u32, slot: usize) -> Result {
        self.cpu.reduce_on(s, kernel, n, nrhs, slot)
    }
    fn reduce_into_on<K: Reduction>(
        &self,
        stream: Option<&()>,
        kernel: &K,
        n: u32,
        nrhs: u32,
        to: (&Self::Buffer, usize),
    ) -> Result {
        self.cpu.reduce_into_on(stream, kernel, n, nrhs, to)
    }
    fn sums(&self, out: &mut [f64]) -> Result {
        self.cpu.sums(out)
    }
    fn stream(&self) -> Result<Self::Stream> {
        self.cpu.stream()
    }
    fn pinned(&self, bytes: usize, what: &str) -> Result<Self::Pinned> {
        self.cpu.pinned(bytes, what)
    }
    fn fetch(&self, from: &Self::Buffer, offset: usize, to: &Self::Pinned, stream: &Self::Stream) -> Result {
        self.cpu.fetch(from, offset, to, stream)
    }
    fn put(&self, from: &Self::Pinned, to: &Self::Buffer, offset: usize, stream: &Self::Stream) -> Result {
        self.cpu.put(from, to, offset, stream)
    }
    fn share(&self, buffer: &Self::Buffer) -> Result<Vec<u8>> {
        self.cpu.share(buffer)
    }
    fn open_peer(&self, handle: &[u8]) -> Result<Self::Peer> {
        self.cpu.open_peer(handle)
    }
    fn peer_address(&self, peer: &Self::Peer) -> *mut u8 {
        self.cpu.peer_address(peer)
    }
    fn copy_to_peer(
        &self,
        from: &Self::Buffer,
        offset: usize,
        to: *mut u8,
        bytes: usize,
        stream: &Self::Stream,
    ) -> Result {
        self.cpu.copy_to_peer(from, offset, to, bytes, stream)
    }
    fn signal(&self, words: &[*mut u8], value: u32, stream: Option<&Self::Stream>) -> Result {
        self.cpu.signal(words, value, stream)
    }
    fn await_signal(&self, words: &[*mut u8], value: u32, stream: Option<&()>) -> Result {
        self.cpu.await_signal(words, value, stream)
    }
    fn event(&self, timing: bool) -> Result<Self::Event> {
        self.cpu.event(timing)
    }
    fn mark(&self, event: &Self::Event, stream: Option<&Self::Stream>) -> Result {
        self.cpu.mark(event, stream)
    }
    fn follow(&self, event: &Self::Event, stream: Option<&Self::Stream>) -> Result {
        self.cpu.follow(event, stream)
    }
    fn reached(&self, event: &Self::Event) -> Result<bool> {
        self.cpu.reached(event)
    }
    fn record(&self) -> Result<Self::Event> {
        self.cpu.record()
    }
    fn seconds_between(&self, from: &Self::Event, to: &Self::Event) -> Result<f64> {
        self.cpu.seconds_between(from, to)
    }
    fn synchronize(&self) -> Result {
        self.cpu.synchronize()
    }
}

#[test]
fn tuning_sees_all_kernels_of_solves() {
    let lattice = Lattice::new([4, 4, 4, 4]).unwrap();
    let precisions = [IterationPrecision::Double, IterationPrecision::Single, IterationPrecision::Half];
    // One reconstruction stands for all; the check of a solve takes all 18 reals.
    let options = Options {
        lattice,
        precisions: precisions.to_vec(),
        reconstructions: vec![Reconstruction::Eighteen, Reconstruction::Twelve],
        nrhs: 2,
    };
    // An operator's own group and linear algebra are enough.
    let tuned = |group: Operations| {
        let spy = Spy::new();
        // Right-hand sides that are finished leave the batch.
        for (operations, nrhs) in [group, Operations::LinearAlgebra].into_iter().flat_map(|o| [(o, 2), (o, 1)]) {
            launch_all(&spy, operations, &Options { nrhs, ..options.clone() }).unwrap();
        }
        spy.hot()
    };
    let (with_wilson, with_clover) = (tuned(Operations::Wilson), tuned(Operations::Clover));

    let gauge = generate::weak_field(lattice, 1, 0.1);
    let sources = [generate::random_source(lattice, 2), generate::random_source(lattice, 3)];
    let wilson = WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic);
    let clover = CloverParams::isotropic(wilson, 1.0, 1.0);
    let operators = [
        (Operator::Wilson(wilson), &with_wilson),
        (Operator::Clover(clover, Schur::Symmetric), &with_clover),
        (Operator::Clover(clover, Schur::Asymmetric), &with_clover),
    ];
    let reliable = Correction::Reliable { delta: None };
    let methods = [
        (Method::Bicgstab, reliable, IterationPrecision::Double),
        (Method::Bicgstab, Correction::Defect { inner_tol: 0.1 }, IterationPrecision::Single),
        (Method::Cg, reliable, IterationPrecision::Single),
        (Method::BlockCg, reliable, IterationPrecision::Single),
        (Method::Cgne, Correction::Defect { inner_tol: 0.1 }, IterationPrecision::Double),
    ];
    for (operator, tuned) in operators {
        for (method, correction, outer) in methods {
            for precision in precisions {
                // Not below that of the iteration.
                let outer = if precision == IterationPrecision::Double { precision } else { outer };
                let request = Request {
                    method,
                    correction,
                    outer,
                    precision,
                    reconstruction: Reconstruction::Twelve,
                    tol: 1e-5,
                    ..Request::new(operator)
                };
                let spy = Spy::new();
                let domain = Domain::single(spy.clone(), lattice).unwrap();
                solve_wilson(&domain, &gauge, &sources, &request, &mut ()).unwrap();
                assert!(spy.hot().len() > 5);
                let missed: Vec<_> = spy.hot().difference(tuned).cloned().collect();
                assert!(missed.is_empty(), "{operator:?}, {method:?}, {precision:?}: {missed:?}");
            }
        }
    }
}

#[test]
fn tuning_sees_all_kernels_of_staggered_solves() {
    use IterationPrecision::{Double, Half, Single};
    let lattice = Lattice::new([4, 4, 4, 4]).unwrap();
    let options = Options {
        lattice,
        precisions: vec![Double, Single, Half],
        reconstructions: vec![
            Reconstruction::Eighteen,
            Reconstruction::Twelve,
            Reconstruction::TwelveShort,
            Reconstruction::Nine,
            Reconstruction::NineShort,
        ],
        nrhs: 2,
    };
    let tuned = |group: Operations| {
        let spy = Spy::new();
        for (operations, nrhs) in [group, Operations::ColourAlgebra].into_iter().flat_map(|o| [(o, 2), (o, 1)]) {
            launch_all(&spy, operations, &Options { nrhs, ..options.clone() }).unwrap();
        }
        spy.hot()
    };
    let (with_naive, with_improved) = (tuned(Operations::Staggered), tuned(Operations::Improved));
    let gauge = generate::weak_field(lattice, 1, 0.1);
    let sources = [generate::random_source(lattice, 2), generate::random_source(lattice, 3)];
    // Of HISQ's formats 9 stands for both, as 12 does of the others'.
    let twelve = (Reconstruction::Twelve, Reconstruction::TwelveShort);
    let nine = (Reconstruction::Nine, Reconstruction::NineShort);
    for (improved, tuned, (full, short)) in
        [(false, &with_naive, twelve), (true, &with_improved, twelve), (true, &with_improved, nine)]
    {
        for (outer, precision, reconstruction) in
            [(Double, Double, full), (Double, Single, full), (Single, Single, short), (Double, Half, full)]
        {
            for correction in [Correction::Reliable { delta: None }, Correction::Defect { inner_tol: 0.1 }] {
                let spy = Spy::new();
                let domain = Domain::single(spy.clone(), lattice).unwrap();
                let configuration = if improved {
                    let thin = ThinGauge::upload(&domain, &gauge).unwrap();
                    let links = Improvement::from_paths(&thin, &PathCoefficients::asqtad(0.9)).unwrap();
                    StaggeredConfiguration::improved(links)
                } else {
                    StaggeredConfiguration::naive(&domain, &gauge)
                };
                let params = StaggeredParams::new(0.3, TimeBoundary::Antiperiodic);
                let tol = if outer == Single { 1e-4 } else { 1e-8 };
                let request =
                    Request { outer, precision, reconstruction, correction, tol, ..Request::staggered(params) };
                for method in [Method::Cg, Method::BlockCg] {
                    configuration.solve(&sources, None, &Request { method, ..request }, &mut ()).unwrap();
                }
                let shifts = [0.0, 0.1, 0.2, 0.5, 1.0];
                let strategy = ShiftStrategy::MultiShift;
                let (_, report) = configuration.solve_shifts(&sources, &shifts, strategy, &request, &mut ()).unwrap();
                assert!(report.converged && spy.hot().len() > 5);
                let missed: Vec<_> = spy.hot().difference(tuned).cloned().collect();
                assert!(missed.is_empty(), "{improved}, {precision:?}, {reconstruction:?}, {correction:?}: {missed:?}");
            }
        }
    }
}
