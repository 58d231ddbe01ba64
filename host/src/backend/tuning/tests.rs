//! The tuner with a device that is a function.
use super::tempdir::TestFolder;
use super::*;
use std::cell::RefCell;
use std::fs;

const SEARCH: Mode = Mode::Search { retune: false };
const RETUNE: Mode = Mode::Search { retune: true };
const BLOCKS: [u32; 4] = [32, 64, 128, 256];

/// Fastest at `best` threads; counts launches.
struct FakeDevice {
    best: u32,
    calls: RefCell<Vec<u32>>,
}

impl FakeDevice {
    fn new(best: u32) -> Self {
        FakeDevice { best, calls: RefCell::default() }
    }
    fn block(&self, tuner: &Tuner, launch: &LaunchKey) -> u32 {
        let measure = |shape: Shape| {
            self.calls.borrow_mut().push(shape.block());
            Ok::<f64, String>(if shape.block() == self.best { 1e-5 } else { 2e-5 })
        };
        tuner.shape(launch, 128.into(), &BLOCKS.map(Shape::from), measure).unwrap().block()
    }
    fn calls(&self) -> usize {
        self.calls.take().len()
    }
}

fn key() -> DeviceKey {
    DeviceKey { device: "GPU".into(), driver: "13.0".into(), kernels: "1234".into() }
}
fn launch(kernel: &str) -> LaunchKey {
    LaunchKey { kernel: kernel.into(), sites: 4096, nrhs: 1 }
}
fn open(mode: Mode, path: &Path) -> Tuner {
    Tuner::open(Tuning { mode, cache: Some(path.into()) }, key()).unwrap()
}

#[test]
fn a_search_is_remembered() {
    let folder = TestFolder::new();
    let path = folder.0.join("tune.json");
    let device = FakeDevice::new(64);
    let tuner = open(SEARCH, &path);
    assert_eq!(device.block(&tuner, &launch("a")), 64);
    assert_eq!(device.calls(), 6);
    // Known now, for this launch and no other.
    assert_eq!(device.block(&tuner, &launch("a")), 64);
    assert_eq!(device.calls(), 0);
    for other in [LaunchKey { sites: 2048, ..launch("a") }, LaunchKey { nrhs: 2, ..launch("a") }, launch("b")] {
        device.block(&tuner, &other);
        assert_eq!(device.calls(), 6);
    }
    assert!(!path.exists());
    assert_eq!((tuner.save().unwrap(), tuner.save().unwrap()), (4, 0));

    let later = open(Mode::Use, &path);
    assert_eq!(device.block(&later, &launch("a")), 64);
    assert_eq!(device.block(&later, &launch("c")), 128);
    assert_eq!(device.calls(), 0);
    let report = later.report();
    assert_eq!(report.len(), 1);
    assert!(!report[0].fresh && report[0].launch == launch("a"));
    assert_eq!(report[0].entry.microseconds[&256.into()], Some(20.0));
    assert_eq!((report[0].entry.gain(), report[0].entry.default), (Some(2.0), 128.into()));

    // Another search adds to the file.
    let again = open(SEARCH, &path);
    assert_eq!((device.block(&again, &launch("a")), device.block(&again, &launch("c"))), (64, 64));
    assert_eq!((device.calls(), again.save().unwrap()), (6, 1));
    assert_eq!(TuneCache::read(&path).unwrap().len(), 5);
}

#[test]
fn retuning_measures_known_launches_once_more() {
    let folder = TestFolder::new();
    let path = folder.0.join("tune.json");
    let tuner = open(SEARCH, &path);
    FakeDevice::new(64).block(&tuner, &launch("a"));
    FakeDevice::new(64).block(&tuner, &launch("b"));
    tuner.save().unwrap();
    let (tuner, device) = (open(RETUNE, &path), FakeDevice::new(256));
    assert_eq!((device.block(&tuner, &launch("a")), device.block(&tuner, &launch("a"))), (256, 256));
    assert_eq!(device.calls(), 6);
    assert_eq!(tuner.save().unwrap(), 1);
    let tuner = open(Mode::Use, &path);
    assert_eq!((device.block(&tuner, &launch("a")), device.block(&tuner, &launch("b"))), (256, 64));
}

#[test]
fn off_reads_and_writes_nothing() {
    let folder = TestFolder::new();
    let path = folder.0.join("tune.json");
    let device = FakeDevice::new(64);
    let search = open(SEARCH, &path);
    device.block(&search, &launch("a"));
    search.save().unwrap();
    let before = (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap());
    device.calls();
    for tuner in [open(Mode::Off, &path), Tuner::off()] {
        assert_eq!(device.block(&tuner, &launch("a")), 128);
        assert_eq!((device.calls(), tuner.save().unwrap(), tuner.report().len()), (0, 0, 0));
        assert!(tuner.path().is_none());
    }
    // `Mode::Use` writes nothing either.
    let using = open(Mode::Use, &path);
    device.block(&using, &launch("z"));
    assert_eq!(using.save().unwrap(), 0);
    assert_eq!(before, (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap()));
    // Not even a folder is created.
    let nowhere = folder.0.join("nowhere").join("tune.json");
    for mode in [Mode::Off, Mode::Use] {
        let tuner = open(mode, &nowhere);
        device.block(&tuner, &launch("a"));
        tuner.save().unwrap();
        assert!(tuner.problem().is_none() && !nowhere.parent().unwrap().exists());
    }
    assert_eq!(Tuning::new(Mode::Off).cache, None);
}

#[test]
fn other_devices_drivers_and_kernels_are_unknown() {
    let folder = TestFolder::new();
    let path = folder.0.join("tune.json");
    let (tuner, device) = (open(SEARCH, &path), FakeDevice::new(64));
    device.block(&tuner, &launch("a"));
    tuner.save().unwrap();
    device.calls();
    for other in [
        DeviceKey { device: "GPU 2".into(), ..key() },
        DeviceKey { driver: "13.1".into(), ..key() },
        DeviceKey { kernels: "1235".into(), ..key() },
    ] {
        let tuning = |mode| Tuning { mode, cache: Some(path.clone()) };
        let tuner = Tuner::open(tuning(Mode::Use), other.clone()).unwrap();
        assert_eq!(device.block(&tuner, &launch("a")), 128);
        // Its own entry goes beside the others.
        let (tuner, slow) = (Tuner::open(tuning(SEARCH), other).unwrap(), FakeDevice::new(32));
        assert_eq!(slow.block(&tuner, &launch("a")), 32);
        tuner.save().unwrap();
    }
    assert_eq!(device.block(&open(Mode::Use, &path), &launch("a")), 64);
    assert_eq!(device.calls(), 0);
    assert_eq!(TuneCache::read(&path).unwrap().len(), 4);
}

#[test]
fn files_that_cannot_be_used() {
    let folder = TestFolder::new();
    let path = folder.0.join("tune.json");
    let device = FakeDevice::new(64);
    for (text, part) in [
        ("{ \"format\": \"ferr", "line 1"),
        (r#"{"format": "ferrite tune cache", "version": 7, "devices": {}}"#, "version 7"),
    ] {
        fs::write(&path, text).unwrap();
        // Using: one sentence, and defaults.
        let tuner = open(Mode::Use, &path);
        let message = tuner.problem().unwrap().to_string();
        assert!(message.contains("tune.json") && message.contains(part) && message.contains("--retune"), "{message}");
        assert_eq!(device.block(&tuner, &launch("a")), 128);
        // Searching: refused, and the file is as it was.
        let tuning = Tuning { mode: SEARCH, cache: Some(path.clone()) };
        assert_eq!(Tuner::open(tuning, key()).err().unwrap().to_string(), message);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        // Unless it may be replaced.
        let tuner = open(RETUNE, &path);
        assert_eq!(device.block(&tuner, &launch("a")), 64);
        tuner.save().unwrap();
        assert_eq!(TuneCache::read(&path).unwrap().len(), 1);
    }
    let unplaced = Tuner::open(Tuning { mode: SEARCH, cache: None }, key());
    assert!(matches!(unplaced, Err(CacheError::NoPlace)));
    let unplaced = Tuner::open(Tuning { mode: Mode::Use, cache: None }, key()).unwrap();
    assert_eq!(device.block(&unplaced, &launch("a")), 128);
    let in_a_file = Tuning { mode: SEARCH, cache: Some(path.join("tune.json")) };
    assert!(matches!(Tuner::open(in_a_file, key()), Err(CacheError::Unwritable { .. })));
}

#[test]
fn two_searches_at_once_keep_both() {
    let folder = TestFolder::new();
    let path = folder.0.join("tune.json");
    let (one, other) = (open(SEARCH, &path), open(SEARCH, &path));
    FakeDevice::new(64).block(&one, &launch("a"));
    FakeDevice::new(256).block(&other, &launch("b"));
    one.save().unwrap();
    other.save().unwrap();
    let tuner = open(Mode::Use, &path);
    assert_eq!(
        (FakeDevice::new(32).block(&tuner, &launch("a")), FakeDevice::new(32).block(&tuner, &launch("b"))),
        (64, 256)
    );
}

#[test]
fn a_block_that_the_kernel_does_not_take_is_not_used() {
    let folder = TestFolder::new();
    let path = folder.0.join("tune.json");
    let tuner = open(SEARCH, &path);
    FakeDevice::new(256).block(&tuner, &launch("a"));
    tuner.save().unwrap();
    let never = |_| -> Result<f64, String> { panic!("measured") };
    let tuner = open(Mode::Use, &path);
    let shapes = [32, 64, 128].map(Shape::from);
    assert_eq!(tuner.shape(&launch("a"), shapes[2], &shapes, never).unwrap(), shapes[2]);
    assert_eq!(tuner.report().len(), 0);
}

#[test]
fn a_search_without_a_winner_leaves_nothing() {
    let folder = TestFolder::new();
    let tuner = open(SEARCH, &folder.0.join("tune.json"));
    let shapes = BLOCKS.map(Shape::from);
    let failed = tuner.shape(&launch("a"), shapes[2], &shapes, Err::<f64, Shape>);
    assert!(matches!(failed, Err(SearchError::Failed(shape)) if shape == shapes[0]));
    let no_time = tuner.shape(&launch("a"), shapes[2], &shapes, |_| Ok::<_, String>(f64::NAN));
    assert!(matches!(no_time, Err(SearchError::NoTime)));
    assert_eq!((tuner.report().len(), tuner.save().unwrap()), (0, 0));
}

#[test]
fn numbers_of_sites_nearby_take_what_was_measured() {
    let folder = TestFolder::new();
    let path = folder.0.join("tune.json");
    let tuner = open(SEARCH, &path);
    let at = |sites| LaunchKey { sites, ..launch("a") };
    FakeDevice::new(64).block(&tuner, &at(4096));
    FakeDevice::new(256).block(&tuner, &at(8192));
    tuner.save().unwrap();
    let (tuner, never) = (open(Mode::Use, &path), FakeDevice::new(32));
    // The interior of a part has fewer sites than the part.
    for (sites, block) in [(4096, 64), (3840, 64), (2731, 64), (2730, 128), (6000, 256), (5700, 64), (12289, 128)] {
        assert_eq!(never.block(&tuner, &at(sites)), block, "{sites} sites");
    }
    for other in [LaunchKey { nrhs: 2, ..at(4096) }, LaunchKey { sites: 4096, ..launch("b") }] {
        assert_eq!(never.block(&tuner, &other), 128);
    }
    // A search measures each number by itself.
    let device = FakeDevice::new(32);
    assert_eq!(device.block(&open(SEARCH, &path), &at(3840)), 32);
    assert_eq!((never.calls(), device.calls()), (0, 6));
}
