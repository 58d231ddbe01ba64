//! The program as users call it, for the tests that run it.
use num_complex::Complex64;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::OnceLock;
use std::thread::JoinHandle;

/// The program, built from this workspace with the profile of this test, or the one that FERRITE_BIN names.
pub fn ferrite() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM
        .get_or_init(|| std::env::var_os("FERRITE_BIN").map_or_else(|| built("ferrite-cli", "ferrite"), PathBuf::from))
}

/// The program of the studies: in the folder of the program that FERRITE_BIN names, or built from this workspace.
pub fn studies() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let name = "ferrite-studies";
    PROGRAM.get_or_init(|| {
        let beside = std::env::var_os("FERRITE_BIN").map(|program| Path::new(&program).with_file_name(name));
        beside.unwrap_or_else(|| built(name, name))
    })
}

/// Builds a program with the profile and the features of this test.
fn built(package: &str, program: &str) -> PathBuf {
    // …/target/quick/deps/all-<hash>
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    build.args(["build", "--quiet", "--package", package, "--bin", program, "--target-dir"]);
    build.arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
    match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => {}
        Some(name) => drop(build.args(["--profile", name])),
    }
    for (name, there) in [("mpi", cfg!(feature = "mpi")), ("hdf5", cfg!(feature = "hdf5"))] {
        if there {
            build.args(["--features", name]);
        }
    }
    assert!(build.status().unwrap().success(), "the program {program} does not build");
    profile.join(format!("{program}{}", std::env::consts::EXE_SUFFIX))
}

/// The program of a command line, and its arguments: `ferrite-studies` if the line begins with `studies`, otherwise `ferrite`.
pub fn program_of(line: &str) -> (&'static Path, &str) {
    line.strip_prefix("studies ").map_or_else(|| (ferrite(), line), |arguments| (studies(), arguments))
}

/// A folder for one test, and runs of the program in it.
pub struct Room(pub tempfile::TempDir);

/// Exit code and output of a run.
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Room {
    pub fn new() -> Self {
        Room(tempfile::tempdir().unwrap())
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    /// A run of `ferrite`, or of `ferrite-studies` if the arguments begin with `studies`.
    pub fn command(&self, arguments: &str) -> Command {
        let (program, arguments) = program_of(arguments);
        let mut command = Command::new(program);
        command.args(arguments.split_whitespace()).current_dir(self.0.path()).env("RAYON_NUM_THREADS", "2");
        command.env("FERRITE_TUNE_CACHE", self.path("tune.json"));
        command
    }
    /// A run that prints its result as text, or with `--json`.
    pub fn run(&self, arguments: &str) -> Run {
        let mut command = self.command(arguments);
        if !arguments.starts_with("help") && !arguments.split_whitespace().any(|word| word == "--json") {
            command.arg("--text");
        }
        command.output().unwrap().into()
    }
    /// A run on the CPU that succeeds; its JSON object.
    pub fn json(&self, arguments: &str) -> Value {
        let run = self.run(&format!("{arguments} --backend cpu --json"));
        assert_eq!(run.code, Some(0), "{arguments}: {}", run.stderr);
        object(&run)
    }
    /// A run that is refused (2) or fails (1), with a sentence that has all these parts.
    pub fn fails(&self, code: i32, arguments: &str, parts: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(code), "{arguments}: {}{}", run.stdout, run.stderr);
        assert!(!run.stderr.contains("bug") && !run.stderr.contains("panicked"), "{}", run.stderr);
        assert!(run.stderr.contains("error: "), "{arguments}: {}", run.stderr);
        // With -v the head of a log repeats the command.
        let head = |line: &&str| !line.starts_with("info: command: ") && !line.starts_with("info: input: ");
        let reported = run.stderr.lines().filter(head).collect::<Vec<_>>().join("\n");
        for part in parts {
            assert!(reported.contains(part), "{arguments}: '{part}' is not in: {}", run.stderr);
        }
        run
    }
    /// Names of all files.
    pub fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
    /// The JSON object of a file.
    pub fn parsed(&self, name: &str) -> Value {
        parsed(&self.path(name))
    }
    /// The JSON objects of a file, one in each line.
    pub fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
    /// Makes a room with a weak field on 4·4·4·8 in `weak.ildg`.
    pub fn with_weak_field() -> Self {
        let room = Self::new();
        room.json("generate weak-field --lattice 4,4,4,8 --seed 7 -o weak.ildg");
        room
    }
}

/// Whether there is a Python with NumPy; without it a test says so and passes.
pub fn has_numpy() -> bool {
    let numpy = Command::new("python3").args(["-c", "import numpy"]).output();
    let found = numpy.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: there is no python3 with NumPy");
    }
    found
}

/// Waits until a run with `-v`, whose standard error is a pipe, stops at a signal after its current step. Returns what it prints.
pub fn until_signals_are_polled(child: &mut Child) -> JoinHandle<String> {
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains("from now on, a signal stops the work") {
        let read = stderr.read_line(&mut said).unwrap();
        assert!(read > 0, "the program ended: {said}");
    }
    std::thread::spawn(move || {
        stderr.read_to_string(&mut said).unwrap();
        said
    })
}

/// Sends a signal to a process.
pub fn send(signal: &str, process: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status().unwrap();
    assert!(sent.success());
}

/// Standard output as exactly one JSON object with schema and version.
pub fn object(run: &Run) -> Value {
    let value: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {:?}", run.stdout));
    assert!(value["schema"].as_str().is_some_and(|s| s.starts_with("ferrite.")), "{value}");
    assert!(value["version"].is_string() && value.get("commit").is_some());
    value
}

/// The JSON value of a file.
pub fn parsed(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
/// Answers of another code in the folder of reference data.
pub fn answers(folder: &Path, name: &str) -> Value {
    parsed(&folder.join("answers").join(name))
}

/// A number of a JSON value.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}
/// The complex number [re, im].
pub fn complex(value: &Value) -> Complex64 {
    Complex64::new(number(&value[0]), number(&value[1]))
}
/// The elements of a list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is not a list"))
}
/// The numbers of a list.
pub fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(number).collect()
}

/// The complex numbers of an npy file in `<c16`, as reals.
pub fn npy(path: &Path) -> Vec<f64> {
    let bytes = fs::read(path).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert!(String::from_utf8_lossy(&bytes[..start]).contains("'<c16'"));
    bytes[start..].as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
}

/// Shape of an npy file.
pub fn shape(path: &Path) -> Vec<usize> {
    let bytes = fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&bytes[10..128]).into_owned();
    let inside = text.split_once('(').unwrap().1.split_once(')').unwrap().0.to_string();
    inside.split(',').filter_map(|n| n.trim().parse().ok()).collect()
}

/// ‖a − b‖ / ‖b‖
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |x: f64| x * x;
    let off: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
    (off / b.iter().copied().map(square).sum::<f64>()).sqrt()
}
