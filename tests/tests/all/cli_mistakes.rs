//! Natural mistakes in command lines and inputs, and the messages that report them, as snapshots in the folder `snapshots` beside this
//! file, to be read from top to bottom. After an intended change, `INSTA_UPDATE=always` in the environment of this test writes them anew.
use crate::program::*;
use std::fmt::Write;
use std::fs;

/// A configuration, and files that are none.
fn room() -> Room {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 7 -o q.ildg");
    fs::write(room.path("odd.npy"), unit_links("(5, 4, 4, 4, 4, 3, 3)", 4 * 4 * 4 * 5)).unwrap();
    fs::create_dir(room.path("folder")).unwrap();
    for number in [2, 10, 1] {
        fs::copy(room.path("q.ildg"), room.path(&format!("cfg{number}.ildg"))).unwrap();
    }
    for (name, text) in [
        ("empty.ildg", &b""[..]),
        ("notes.txt", b"These are notes.\n"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("chroma.xml", b"<?xml version=\"1.0\"?>\n<chroma><Param><nrow>4 4 4 8</nrow></Param></chroma>\n"),
        ("milc.in", b"prompt 0\nnx 4\nny 4\nnz 4\nnt 8\niseed 4563421\n"),
        ("params.json", b"{ \"mass\": 0.1 }\n"),
        ("solve.toml", b"gauge = \"q.ildg\"\nmass = 0.1\nsource = \"random:1\"\n"),
        ("run.toml", ENSEMBLE.as_bytes()),
        ("pion.toml", SPECTRUM.as_bytes()),
    ] {
        fs::write(room.path(name), text).unwrap();
    }
    room
}

/// An `.npy` file of links that are all 1, on so many sites.
fn unit_links(shape: &str, sites: usize) -> Vec<u8> {
    let text = format!("{{'descr': '<c16', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = [b"\x93NUMPY\x01\x00".as_slice(), &118u16.to_le_bytes(), text.as_bytes()].concat();
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    // Rows of a link, each of three complex numbers.
    let link = (0..18).map(|k| if k % 8 == 0 { 1.0f64 } else { 0.0 });
    bytes.extend((0..4 * sites).flat_map(|_| link.clone()).flat_map(f64::to_le_bytes));
    bytes
}

const ENSEMBLE: &str = "\
lattice = [4, 4, 4, 8]
trajectories = 2
seed = 1
[gauge]
action = \"wilson\"
beta = 5.6
[[fermion]]
operator = \"naive\"
mass = [0.1]
flavours = [2]
[trajectory]
steps = 5
";

const SPECTRUM: &str = "\
configurations = [\"q.ildg\"]
[solve]
operator = \"clover\"
csw = 1.0
mass = 0.1
";

/// Code and words of a run, without the line that a log begins with; of one that is done the beginning of its result.
fn reported(run: &Run, reported: &mut String) {
    assert!(matches!(run.code, Some(0..=2)), "{:?}: {}", run.code, run.stderr);
    for internal in ["panicked", "RUST_BACKTRACE", "this is a bug", "unwrap", "Some(", "None", "Err("] {
        assert!(!run.stderr.contains(internal), "{}", run.stderr);
    }
    let _ = writeln!(reported, "exit code {}", run.code.unwrap());
    let kept = |line: &&str| !line.starts_with("note: ferrite ") && !line.starts_with("For more information");
    let mut lines: Vec<&str> = run.stderr.lines().filter(kept).map(str::trim_end).collect();
    if run.code == Some(0) {
        // Documents go to standard output as they are, results as JSON and as text.
        lines.extend(run.stdout.lines().filter(|line| !line.starts_with('{')));
        lines.truncate(1);
    }
    lines.dedup();
    let _ = writeln!(reported, "{}\n", lines.join("\n").trim_end());
}

/// Compares what commands get with the snapshot of this name.
fn compare(name: &str, said: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, said));
}

/// Commands, one after the other.
fn commands(name: &str, commands: &[&str]) {
    let (room, mut said) = (room(), String::new());
    for command in commands {
        let _ = writeln!(said, "$ ferrite {command}");
        reported(&room.command(command).output().unwrap().into(), &mut said);
    }
    compare(name, &said);
}

/// Inputs to `ferrite check`, one after the other; those that begin with `+` follow the lines of `base`.
fn inputs(name: &str, base: &str, inputs: &[&str]) {
    let (room, mut said) = (room(), String::new());
    for input in inputs {
        let input = match input.strip_prefix('+') {
            Some(more) => format!("{base}{more}\n"),
            None => (*input).to_string(),
        };
        fs::write(room.path("in.toml"), &input).unwrap();
        for line in input.lines() {
            let _ = writeln!(said, "| {}", line.trim_start_matches('\u{feff}'));
        }
        reported(&room.command("check in.toml --backend cpu").output().unwrap().into(), &mut said);
    }
    compare(name, &said);
}

#[test]
fn commands_as_people_type_them() {
    commands(
        "commands",
        &[
            "sovle q.ildg --mass 0.1",
            "invert q.ildg --mass 0.1",
            "flow q.ildg",
            "gradient-flow q.ildg 2",
            "propagator q.ildg",
            "mesons q.ildg",
            "eigs q.ildg",
            "run solve.toml",
            "solve.toml",
            "run.toml",
            "q.ildg",
            "--input solve.toml",
            "--help solve --quiet",
            "help sovle",
            "-n 4 solve solve.toml",
            "solve solve.toml -n 4",
            "solve solve.toml --np=4",
            "solve --input solve.toml",
            "solve q.ildg --maxiter 100",
            "solve q.ildg --clover_csw 1.0",
            "solve q.ildg --nsteps 3",
            "plaquette --gauge q.ildg",
            "verify --file q.ildg",
            "measure q.ildg --tau 2",
            "rhmc run.toml",
            "rhmc run.toml run",
            "rhmc run.toml q.ildg --out run",
            "rhmc run.toml --out run --beta 5.7",
            "rhmc run.toml --out run --ntraj 10",
            "rhmc --config run.toml --out run",
            "spectrum pion.toml --out s --quark_mass 0.05",
            "spectrum q.ildg pion.toml --out s",
            "init",
            "init clover",
            "init solve --quarks hisq",
            "completions",
            "info --device gpu0",
            "info --device cuda:0",
            "info --backend gpu",
            "info --backend hip",
            "info --threads all",
            "info --threads -1",
            "info --memory 20GB",
            "info --grid 1x1x1x2",
            "info --quiet -v",
            "info -version",
            "info -json",
        ],
    );
}

#[test]
fn flags_as_people_type_them() {
    commands(
        "flags",
        &[
            "generate unit --lattice 4x4x4x8 -o u.ildg",
            "generate unit --lattice 4 4 4 8 -o u.ildg",
            "generate unit --lattice [4,4,4,8] -o u.ildg",
            "generate unit --lattice 4^3x8 -o u.ildg",
            "generate unit --lattice 8 -o u.ildg",
            "generate unit --lattice 4.0,4,4,8 -o u.ildg",
            "generate unit --lattice 4,4,4,8 -o u.dat",
            "generate unit --lattice 4,4,4,8",
            "generate weak --lattice 4,4,4,8 --seed 1 -o u.ildg",
            "generate quenched --lattice 4,4,4,8 --sweeps 10 --seed 1 -o u.ildg",
            "generate quenched --lattice 4,4,4,8 --beta 6,0 --sweeps 10 --seed 1 -o u.ildg",
            "solve",
            "solve q.ildg",
            "solve q.ildg --mass",
            "solve q.ildg --mass 0,1 --source random:1",
            "solve q.ildg --mass light --source random:1",
            "solve q.ildg --mass 100MeV --source random:1",
            "solve q.ildg --kappa -0.12 --source random:1",
            "solve q.ildg --kappa 0.12 --mass 0.1 --source random:1",
            "solve q.ildg --gauge q.ildg --mass 0.1 --source random:1",
            "solve q.ildg cfg1.ildg --mass 0.1 --source random:1",
            "solve q.ildg --mass 0.1 --source wall",
            "solve q.ildg --mass 0.1 --source point",
            "solve q.ildg --mass 0.1 --source 0,0,0,0",
            "solve q.ildg --mass 0.1 --source point:0,0,0,0",
            "solve q.ildg --mass 0.1 --source point:0,0,0,8,0,0",
            "solve q.ildg --mass 0.1 --source b.npy",
            "solve q.ildg --mass 0.1 --source random:1 --operator dwf",
            "solve q.ildg --mass 0.1 --source random:1 --operator overlap",
            "solve q.ildg --mass 0.1 --source random:1 --operator Clover",
            "solve q.ildg --mass 0.1 --source random:1 --operator clover",
            "solve q.ildg --mass 0.1 --source random:1 --operator twisted_mass",
            "solve q.ildg --mass 0.1 --source random:1 --solver gmres",
            "solve q.ildg --mass 0.1 --source random:1 --solver mg --mg-vectors 20",
            "solve q.ildg --mass 0.1 --source random:1 --solver BiCGStab",
            "solve q.ildg --mass 0.1 --source random:1 --precision float",
            "solve q.ildg --mass 0.1 --source random:1 --precision mixed",
            "solve q.ildg --mass 0.1 --source random:1 --precision quad",
            "solve q.ildg --mass 0.1 --source random:1 --bc-time anti-periodic",
            "solve q.ildg --mass 0.1 --source random:1 --tol 1e-10%",
            "solve q.ildg --mass 0.1 --source random:1 --tol 10",
            "solve q.ildg --mass 0.1 --source random:1 -o",
            "solve q.ildg --mass 0.1 --source random:1 -o x.txt",
            "solve q.ildg --mass 0.1 --source random:1 -o nowhere/x.npy",
            "solve q.ildg --mass 0.1 --source random:1 -o q.ildg",
            "solve solve.toml --set mass",
            "solve solve.toml --set mass 0.2",
            "solve solve.toml --set maxiter=10",
            "apply solve.toml -o x.npy",
            "apply q.ildg --mass 0.1 --source random:1",
            "measure q.ildg --flow",
            "measure q.ildg --flow -1",
            "measure q.ildg --flow-step 0.01",
            "smear q.ildg s.ildg",
            "smear q.ildg -o s.ildg --kind stoud",
            "convert q.ildg q.dat",
            "convert q.ildg",
            "bench dslash --operator dwf",
            "bench dslash --precision float",
        ],
    );
}

#[test]
fn files_as_people_name_them() {
    commands(
        "files",
        &[
            "check q.ildg",
            "check folder",
            "check absent.toml",
            "check notes.txt",
            "check picture.png",
            "check chroma.xml",
            "check milc.in",
            "check params.json",
            "solve absent.ildg --mass 0.1 --source random:1",
            "solve absent.toml",
            "solve folder --mass 0.1 --source random:1",
            "solve odd.npy --mass 0.1 --source random:1",
            "solve run.toml",
            "solve pion.toml",
            "rhmc q.ildg --out r",
            "rhmc solve.toml --out r",
            "spectrum solve.toml --out s",
            "forces pion.toml q.ildg",
            "verify solve.toml",
            "verify folder",
            "verify absent.ildg",
            "verify empty.ildg",
            "verify notes.txt",
            "verify picture.png",
            "plaquette solve.toml",
            "plaquette cfg*.ildg",
            "plaquette absent*.ildg",
            "measure conf*.ildg",
            "measure nowhere/cfg*.ildg",
            "spectrum pion.toml conf*.ildg --out s",
            "spectrum pion.toml folder --out s",
            "spectrum pion.toml absent.ildg --out s",
            "trace absent.ildg --mass 0.1 --noise 1",
            "fit absent",
            "fit q.ildg",
            "report absent",
            "report solve.toml",
        ],
    );
}

#[test]
fn inputs_of_solves() {
    inputs(
        "inputs_of_solves",
        "gauge = \"q.ildg\"\nmass = 0.1\nsource = \"random:1\"\n",
        &[
            "",
            "gauge = q.ildg\nmass = 0.1\nsource = \"random:1\"\n",
            "gauge = \"q.ildg\nmass = 0.1\nsource = \"random:1\"\n",
            "gauge = “q.ildg”\nmass = 0.1\nsource = \"random:1\"\n",
            "gauge: \"q.ildg\"\nmass: 0.1\nsource: \"random:1\"\n",
            "gauge = \"q.ildg\", mass = 0.1\nsource = \"random:1\"\n",
            "gauge = \"q.ildg\"\nmass = \"0.1\"\nsource = \"random:1\"\n",
            "gauge = \"q.ildg\"\nmass = .1\nsource = \"random:1\"\n",
            "gauge = \"q.ildg\"\nmass = 0,1\nsource = \"random:1\"\n",
            "gauge = \"q.ildg\"\nmass = [0.1]\nsource = \"random:1\"\n",
            "gauge = \"q.ildg\"\nmass = 0.1 0.2\nsource = \"random:1\"\n",
            "gauge = \"q.ildg\"\nkappa = 0.12\nmass = 0.1\nsource = \"random:1\"\n",
            "gauge = \"q.ildg\"\nquark_mass = 0.1\nsrc = \"random:1\"\n",
            "gauge = \"q.ildg\"\nmass = 0.1\nsource = random:1\n",
            "gauge = \"q.ildg\"\nmass = 0.1\nsource = 1\n",
            "gauge = \"q.ildg\"\nmass = 0.1\nsource = [\"random:1\" \"random:2\"]\n",
            "gauge = \"q.ildg\"\nmass = 0.1\nsource = [\"random:1\", \"random:2\",]\n",
            "gauge = \"cfg*.ildg\"\nmass = 0.1\nsource = \"random:1\"\n",
            "\u{feff}gauge = \"q.ildg\"\r\n\tmass = 0.1\r\nsource = \"random:1\"\r\n",
            "+mass = 0.2",
            "+sources = 12.5",
            "+sources = \"12\"",
            "+max-iterations = 1e4",
            "+max_iterations = 100",
            "+lattice = 4,4,4,8",
            "+lattice = \"4x4x4x8\"",
            "+lattice = [4, 4, 8]",
            "+keep-unconverged = yes",
            "+keep-unconverged = \"yes\"",
            "+keep-unconverged = True",
            "+keep-unconverged = 1",
            "+tol = 1e-10 // small",
            "+tol =",
            "+tol",
            "+inv_type = \"bicgstab\"",
            "+RsdCG = 1e-8\nMaxCG = 1000",
            "+reliable_delta = 0.1",
            "+cuda_prec_sloppy = \"half\"",
            "+clover_coeff = 0.12\noperator = \"clover\"",
            "+t_boundary = \"AntiPeriodic\"",
            "+bc-time = \"AntiPeriodic\"",
            "+bc-time = \"open\"",
            "+mg = true",
            "+Ls = 16\noperator = \"mobius\"",
            "+operator = \"domain-wall\"",
            "+tadpole = 0.86",
            "+verbosity = 2",
            "+colour = \"red\"",
            "+[solver]\nname = \"cg\"",
            "+[gauge_field]\npath = \"q.ildg\"",
            "+[[operator]]\nname = \"clover\"",
        ],
    );
}

#[test]
fn inputs_of_ensembles() {
    let with = |from: &str, to: &str| ENSEMBLE.replace(from, to);
    let all = [
        with("[[fermion]]", "[[fermions]]"),
        with("[gauge]", "[[gauge]]"),
        with("seed = 1", "seed = 1\nmass = 0.2"),
        with("seed = 1", "[seed]\nvalue = 1"),
        with("seed = 1", "seed = 1\ncolour = \"red\""),
        with("steps = 5", "steps = 5\ncolour = \"red\""),
        with("flavours = [2]", "Nf = 2"),
        with("flavours = [2]", "n_dyn_flavs = 2"),
        with("mass = [0.1]", "mass_l = 0.1"),
        with("\"naive\"", "\"staggered\""),
        with("\"naive\"", "\"overlap\""),
        with("\"naive\"", "\"asqtad\""),
        with("action = \"wilson\"", "action = \"symanzik\""),
        with("action = \"wilson\"", "action = \"tlsym\""),
        with("action = \"wilson\"", "action = \"iwasaky\""),
        with("action = \"wilson\"", "action = \"iwasaki\"\nc1 = -0.331"),
        with("beta = 5.6", "beta = \"5.6\""),
        with("beta = 5.6", "beta = 5,6"),
        with("beta = 5.6", "beta = 5.6\nu0 = 0.86"),
        with("[trajectory]\n", "[integrator]\n"),
        with("steps = 5", "nsteps = 5\ntrajlen = 1.0"),
        with("steps = 5", "dt = 0.1"),
        with("steps = 5", "steps = 5\nintegrator = \"omf4\""),
        with("steps = 5", "steps = 5\nintegrator = \"OMF2\""),
        with("steps = 5", "steps = 0"),
        with("steps = 5", ""),
        with("trajectories = 2\n", "") + "trajectories = 2\n",
        with("[gauge]\n", ""),
        with("lattice = [4, 4, 4, 8]", "nx = 4\nny = 4\nnz = 4\nnt = 8"),
        with("lattice = [4, 4, 4, 8]", "lattice = [4, 4, 4, 7]"),
        with("seed = 1", "iseed = 1"),
        with("seed = 1", "seed = -1"),
        with("[trajectory]", "[multigrid]\nn_vec = 24\n[trajectory]"),
        with("operator = \"naive\"", "operator = \"clover\"\nclover_csw = 1.0"),
        with("operator = \"naive\"", "operator = \"clover\"\ncsw = 1.0\nkappa = -0.12"),
    ];
    inputs("inputs_of_ensembles", "", &all.each_ref().map(String::as_str));
}

#[test]
fn inputs_of_spectra() {
    let with = |from: &str, to: &str| SPECTRUM.replace(from, to);
    let all = [
        with("\"q.ildg\"", "\"cfg*.ildg\""),
        with("\"q.ildg\"", "\"conf*.ildg\", \"q.ildg\""),
        with("\"q.ildg\"", "\"folder\""),
        with("configurations = [\"q.ildg\"]", "configurations = \"q.ildg\""),
        with("configurations = [\"q.ildg\"]", "configs = [\"q.ildg\"]"),
        with("configurations = [\"q.ildg\"]\n", ""),
        with("configurations = [\"q.ildg\"]\n", "") + "configurations = [\"q.ildg\"]\n",
        with("[solve]", "[solver]"),
        with("[solve]", "source = \"smeared\"\n[solve]"),
        with("[solve]", "source = \"gaussian\"\n[smearing]\nwidth = 2.0\nsteps = 12\n[solve]"),
        with("[solve]", "source = \"random\"\n[solve]"),
        with("[solve]", "origin = \"0 0 0 0\"\n[solve]"),
        with("[solve]", "origin = [0, 0, 0]\n[solve]"),
        with("[solve]", "momenta = [0, 1]\n[solve]"),
        with("[solve]", "nucleon = \"no\"\n[solve]"),
        with("mass = 0.1", "quark_mass = 0.1"),
        with("mass = 0.1", "mass = 0.1\nsource = \"point\""),
        with("mass = 0.1", "mass = 0.1\nsolver = \"gcr\""),
        with("mass = 0.1", "[[quarks]]\nname = \"light\"\nmass = 0.1"),
        with("mass = 0.1", "[[quark]]\nname = \"u/d\"\nmass = 0.1"),
    ];
    inputs("inputs_of_spectra", "", &all.each_ref().map(String::as_str));
}
