//! `ferrite rhmc`: settings, mistakes, and examples of inputs.
use crate::program::*;
use crate::trajectories::*;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

#[test]
fn settings_of_precision() {
    let room = Room::new();
    let study = "studies rhmc --paper 003 --out study --lattice 2,2,2,4 --large 4,4,2,2 --mass 0.2 --thermalise 2 --steps 4,4 \
                 --gauge-steps 2 --reversibility 1";
    let report = room.json(&format!("{study} --trajectories 2"));
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["setting"].as_str().unwrap()).collect();
    let presets = ["A", "B", "C", "D", "E", "F", "G"];
    assert_eq!((&names[..7], &names[8..15]), (&presets[..], &presets[..]));
    let links = |row: &Value| number(&row["irreversibility"]["links"]["mean"]);
    for row in rows {
        assert_eq!(row["trajectories"], json!(2));
        // Omelyan's scheme moves twice in each step, on both levels.
        let steps = number(&row["steps"]) * number(&row["gauge_steps"]);
        assert_eq!(number(&row["gauge_updates"]), 4.0 * steps, "{row}");
        let double = row["setting"] == "F, links in double";
        assert!(links(row) < if double { 3e-8 } else { 1e-5 } && links(row) > 0.0, "{row}");
        assert!(number(&row["condensate"]["mean"]) > 0.0 && number(&row["delta_h"]["mean"]).abs() < 20.0, "{row}");
    }
    // All begin with the same links and random numbers, so that the tightest settings agree.
    let plaquettes: Vec<f64> = rows.iter().map(|row| number(&row["plaquette"]["mean"])).collect();
    assert!((plaquettes[0] - plaquettes[1]).abs() < 1e-4, "{plaquettes:?}");
    for figure in 4..=9 {
        let svg = fs::read_to_string(room.path(&format!("study/figure-{figure}.svg"))).unwrap();
        assert!(svg.contains("<svg") && svg.contains("m = 0.2"), "{figure}");
    }
    // It goes on, and not as another one.
    let before = fs::read_to_string(room.path("study/2x2x2x4/A/trajectories.jsonl")).unwrap();
    let report = room.json(&format!("{study} --trajectories 3"));
    assert_eq!(report["rows"][3]["trajectories"], json!(3));
    let after = fs::read_to_string(room.path("study/2x2x2x4/A/trajectories.jsonl")).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len());
    let other = format!("{study} --seed 2 --backend cpu");
    room.fails(2, &other, &["study contains a study with other settings", "name another folder"]);
    room.fails(2, "studies rhmc --paper 003 --out new --steps 4 --backend cpu", &["--steps", "2 numbers"]);
    room.fails(2, "studies rhmc --paper 003 --out new --gauge-steps 1 --backend cpu", &["at least 2"]);
    room.fails(2, "studies rhmc --paper 003 --out new --mass 0 --backend cpu", &["mass"]);
    assert!(!room.path("new").exists());
}

#[test]
fn mistakes_are_reported_at_once() {
    let room = Room::new();
    let wrong = r#"
latice = [4, 4, 4, 4]
trajectories = -1
[gauge]
action = "wilson"
beta = "five"
u0 = 0.9
[[fermion]]
operator = "naive"
mass = [0.1, 0.2]
flavours = [2]
[trajectory]
integrator = "omelian"
[precision]
links = "single"
gauge-force = "double"
"#;
    fs::write(room.path("run.toml"), wrong).unwrap();
    room.fails(
        2,
        "rhmc run.toml --out run",
        &[
            "run.toml:2:1: unknown key 'latice'; did you mean 'lattice'?",
            "run.toml:3:16: trajectories",
            "run.toml:6:8: gauge.beta: expected a number",
            "gauge.u0: only \"symanzik-tree\" and \"luscher-weisz\" have a tadpole factor",
            "fermion.0.flavours: 1 number for 2 masses",
            "trajectory.integrator: 'omelian' is none of",
            "did you mean 'omelyan'?",
            "trajectory.steps is missing",
            "seed is missing",
            "precision.gauge-force: conflicts with",
        ],
    );
    assert!(!room.path("run").exists());
    // `check` finds the same.
    room.fails(2, "check run.toml", &["unknown key 'latice'", "did you mean 'omelyan'?", "seed is missing"]);
    // A table where there is a list of tables is one of them, if there is only one; and keys have their numbers.
    let one_group = "[fermion]\nflavours = [2]\n";
    fs::write(room.path("one.toml"), one_group).unwrap();
    room.fails(2, "check one.toml", &["fermion.0.mass is missing", "fermion.0.operator is missing"]);
    room.fails(2, "check run.toml --set fermion.mas=1", &["did you mean 'fermion.0.mass'?"]);
    // Any of these keys determines the command that an input is for.
    for key in ["trajectories = 3", "trajectory.steps = 3", "fermion = []", "gauge.beta = 5.0"] {
        fs::write(room.path("short.toml"), key).unwrap();
        room.fails(2, "check short.toml", &["seed is missing", "gauge.action is missing"]);
    }
    fs::write(room.path("run.toml"), QUARKS).unwrap();
    let checked = room.json("check run.toml --set trajectories=9");
    assert_eq!((&checked["kind"], &checked["trajectories"], &checked["ok"]), (&json!("rhmc"), &json!(9), &json!(true)));
    assert_eq!(checked["quarks"].as_array().unwrap().len(), 2);
    assert!(number(&checked["memory"]["needed_bytes"]) > 1e5);
    room.fails(2, "check run.toml --backend cpu --set lattice=128,128,128,128", &["the run on 128×128×128×128"]);
    for (keys, why) in [
        ("gauge.action=iwasaky", "did you mean 'iwasaki'?"),
        (
            "gauge.action=dbw2 --set gauge.xi=2",
            "gauge.xi: only \"wilson\" and \"symanzik-tree\" can be anisotropic: remove gauge.xi",
        ),
        ("gauge.action=luscher-weisz", "gauge.u0 is missing"),
        ("gauge.u0-time=0.9", "gauge.u0-time: only \"symanzik-tree\" with gauge.xi"),
        ("gauge.xi=2 --set gauge.parallelogram=0.1", "gauge.parallelogram: anisotropic actions have no parallelograms"),
        ("gauge.xi=0", "--set gauge.xi: '0' is not a number of at least 1e-9"),
        ("gauge.flavours=3", "gauge.flavours: only \"luscher-weisz\" has coefficients that depend on quarks"),
        ("fermion.0.naik-epsilon=0.1", "fermion.0.naik-epsilon: only HISQ has a correction of the Naik term"),
        ("fermion.0.operator=hisq --set fermion.0.u0=1", "only asqtad quarks have a tadpole factor"),
        ("fermion.0.flavours=0", "a mass with 0 flavours has no effect: remove the mass and the 0"),
        ("fermion.0.stout-levels=2", "applies to stout links: also give stout-rho, the weight of a staple"),
        ("fermion.0.stout-rho=0.3", "is not a number from 0 to 0.25"),
        ("fermion.1.stout-rho=0.1", "fermion.1.stout-rho: stout links apply to naive and Wilson-like quarks only"),
        ("fermion.1.operator=hisq --set fermion.1.stout-rho=0.1", "HISQ quarks have their own smeared links"),
        ("trajectory.integrator=3g1f", "3g1f neither has nor can be an inner level"),
    ] {
        room.fails(2, &format!("check run.toml --set {keys}"), &[why]);
    }
    for keys in ["action=iwasaki", "action=symanzik-tree --set gauge.xi=3 --set gauge.u0-time=0.98", "plaquette=2"] {
        room.json(&format!("check run.toml --set gauge.{keys}"));
    }
    let times = &room.json("check run.toml --time")["time"];
    assert_eq!(times["timed_on"], json!([4, 4, 4, 4]));
    assert_eq!(number(&times["seconds"]), 4.0 * number(&times["seconds_per_trajectory"]));
    assert!(number(&times["seconds"]) > 0.0);
    // What cannot be timed, here since links move too far in a step, is predicted without a time.
    let far = room.run("check run.toml --time --backend cpu --json --set trajectory.length=1e8");
    assert_eq!((far.code, object(&far)["time"].clone()), (Some(0), Value::Null), "{}", far.stderr);
    assert!(object(&far)["ok"] == true && far.stderr.contains("the run time cannot be predicted"), "{}", far.stderr);
    // Each process of four has a quarter of it with a border, and asqtad's links have to fit in there.
    let cut = room.json("check run.toml --set lattice=4,4,8,8 --set grid=1,1,2,2");
    assert_eq!(cut["layout"], json!({ "processes": 4, "grid": [1, 1, 2, 2] }));
    assert!(number(&cut["memory"]["needed_bytes"]) > number(&checked["memory"]["needed_bytes"]));
    room.fails(2, "check run.toml --processes 4", &["cannot be divided among 4 processes"]);
    room.fails(2, "rhmc run.toml --out run --set fermion.7.mas=1", &["unknown key 'fermion.7.mas'"]);
    for number in ["9999999999", "18446744073709551615", "+1", "01"] {
        let far = format!("rhmc run.toml --out run --set fermion.{number}.mass=1");
        room.fails(2, &far, &[&format!("unknown key 'fermion.{number}.mass'")]);
    }
    // Two pseudofermions take eight flavours as they are, and no more.
    room.fails(
        2,
        "rhmc run.toml --out run --set fermion.0.flavours=16",
        &["naive", "try a larger number of pseudofermions"],
    );
    for command in ["rhmc run.toml --out run --set start", "check run.toml --set start"] {
        room.fails(2, &format!("{command}=none.ildg --backend cpu"), &["none.ildg: cannot open"]);
    }
    // There are no flags for files here: a copy can be made.
    room.json("generate unit --lattice 4,4,4,4 -o start.npy");
    let mut start = fs::read(room.path("start.npy")).unwrap();
    start.extend([0; 64]);
    fs::write(room.path("start.npy"), start).unwrap();
    let why = [
        "start.npy: 64 bytes follow",
        "(`ferrite convert --no-verify start.npy copy.npy` makes a copy that can be read)",
    ];
    // `check` opens them as `rhmc` does.
    for command in ["rhmc run.toml --out run --set start", "check run.toml --set start", "forces run.toml --set start"]
    {
        room.fails(2, &format!("{command}=start.npy --backend cpu"), &why);
    }
    room.json("generate unit --lattice 4,4,4,8 -o long.npy");
    room.json("generate unit --lattice 4,4,4,4 -o cold.npy");
    room.json("apply --gauge cold.npy --mass 0.1 --source random:1 -o spinor.npy");
    fs::write(room.path("text"), "no links").unwrap();
    for (file, why) in [
        ("long.npy", "long.npy has links on 4×4×4×8, but the input has 4×4×4×4"),
        ("spinor.npy", "spinor.npy holds 12 complex numbers per site, but a gauge field has 36"),
        ("text", "text: "),
    ] {
        for command in ["rhmc run.toml --out run", "check run.toml", "forces run.toml"] {
            room.fails(2, &format!("{command} --set start={file} --backend cpu"), &[why]);
        }
    }
    room.json("check run.toml --set start=cold.npy");
    let quenched = "generate quenched --lattice 4,4,4,4 --beta 6 --sweeps 1 --seed 1 -o q.npy --backend cpu";
    room.fails(2, &format!("{quenched} --start start.npy"), &why);
    room.fails(2, "plaquette start.npy", &["64 bytes follow", "(--no-verify)"]);
    room.json("convert --no-verify start.npy mended.npy");
    room.json(&format!("{quenched} --start mended.npy").replace(" --backend cpu", ""));
    room.fails(2, "rhmc none.toml --out run", &["none.toml: cannot be read"]);
    room.fails(2, "rhmc run.toml --out run --max-hours 0", &["max-hours"]);
    room.fails(2, "rhmc run.toml --out run --replay none --backend cpu", &["none is not a folder"]);
    room.fails(2, "rhmc run.toml --out run.toml/x --backend cpu", &["run.toml/x cannot be created"]);
    fs::create_dir(room.path("empty")).unwrap();
    room.fails(
        2,
        "rhmc run.toml --out run2 --replay empty --backend cpu",
        &["momenta.1.npy, which --replay needs, is missing"],
    );
    assert!(!room.path("run2").exists());
    // Keys without effect.
    let refused = |set: &str, why: &str| room.fails(2, &format!("check run.toml --set {set}"), &[why]);
    refused("gauge.chair=0.1", "write gauge.parallelogram");
    refused(
        "trajectory.integrator=leapfrog --set trajectory.lambda=0.2",
        "only the Omelyan integrators and 3g1f use trajectory.lambda",
    );
    fs::write(room.path("gauge.toml"), GAUGE).unwrap();
    let check = "check gauge.toml --set trajectory.gauge";
    room.fails(
        2,
        &format!("{check}-steps=3"),
        &["trajectory.gauge-steps", "the only level is that of trajectory.steps"],
    );
    fs::write(room.path("flat.toml"), QUARKS.replace("gauge-steps = 2", "gauge-integrator = \"leapfrog\"")).unwrap();
    room.fails(2, "check flat.toml", &["trajectory.gauge-integrator", "also give trajectory.gauge-steps"]);
    for (set, why) in [
        ("precision.dynamics=double", "no solver is used"),
        ("precision.dynamics-tol=1e-7", "no solver is used"),
        ("precision.action=double", "no solver is used"),
        ("precision.action-tol=1e-9", "no solver is used"),
        ("measure.condensate=2", "there are no condensates"),
        ("measure.condensate-tol=1e-9", "there are no condensates"),
        ("measure.batch=2", "there are no condensates"),
    ] {
        let key = set.split('=').next().unwrap();
        room.fails(2, &format!("check gauge.toml --set {set}"), &[key, "without quarks", why]);
    }
    for text in [format!("{GAUGE}[[fermion]]\n"), QUARKS.replace("[measure]", "[[fermion]]\n[measure]")] {
        fs::write(room.path("empty.toml"), &text).unwrap();
        let number = text.matches("[[fermion]]").count() - 1;
        let parts = ["operator", "mass", "flavours"].map(|key| format!("fermion.{number}.{key} is missing"));
        room.fails(2, "check empty.toml", &parts.each_ref().map(String::as_str));
    }
    // Fractions are strings, alone or among numbers.
    for (typed, reported) in [("\"1/2\"", "1/2"), ("[\"1/2\"]", "1/2"), ("[1]", "1"), ("3", "3")] {
        fs::write(room.path("half.toml"), QUARKS.replace("flavours = [2]", &format!("flavours = {typed}"))).unwrap();
        assert_eq!(room.json("check half.toml")["quarks"][0], json!(format!("naive flavours {reported} at m = 0.3")));
    }
    fs::write(room.path("half.toml"), QUARKS.replace("flavours = [1, 1]", "flavours = [2, \"1/2\"]")).unwrap();
    let names = room.json("check half.toml")["quarks"].clone();
    assert_eq!(names[1], json!("asqtad flavours 2 at m = 0.2 and 1/2 at m = 0.5"));
    for (typed, why) in [("[2, \"one\"]", "its parts must be integers"), ("[2, true]", "a fraction such as \"1/2\"")] {
        fs::write(room.path("half.toml"), QUARKS.replace("flavours = [1, 1]", &format!("flavours = {typed}"))).unwrap();
        room.fails(2, "check half.toml", &["half.toml:24:12: fermion.1.flavours", why]);
    }
    // Charm has an ε of its own, and so a table of its own.
    let charm = |epsilon: &str| {
        let group = format!("operator = \"hisq\"\nnaik-epsilon = {epsilon}\nmass = [0.2, 0.5]");
        let asqtad = "operator = \"asqtad\"\nu0 = 0.9\nmass = [0.2, 0.5]";
        fs::write(room.path("hisq.toml"), QUARKS.replace(asqtad, &group)).unwrap();
    };
    charm("[0.0, -0.358]");
    let why = ["fermion.1.naik-epsilon", "masses of a table share pseudofermions", "a separate table [[fermion]]"];
    room.fails(2, "check hisq.toml", &why);
    charm("[0.0, 0.0, 0.0]");
    room.fails(2, "check hisq.toml", &["3 numbers for 2 masses: give one number for all masses"]);
    for epsilon in ["-0.358", "[-0.358, -0.358]"] {
        charm(epsilon);
        // Determinants may be divided by others.
        let checked = room.json("check hisq.toml --set fermion.1.flavours=1,-1");
        assert_eq!(checked["quarks"][1], json!("hisq flavours 1 at m = 0.2 and -1 at m = 0.5 with epsilon = -0.358"));
    }
    // Quarks of one name are distinguished by a number.
    let group = "[[fermion]]\noperator = \"naive\"\nmass = [0.3]\nflavours = [2]\n";
    fs::write(
        room.path("four.toml"),
        format!("{}{group}{group}", QUARKS.replace("[measure]", &format!("{group}[measure]"))),
    )
    .unwrap();
    let names = room.json("check four.toml")["quarks"].clone();
    let names: Vec<&str> = names.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let naive: Vec<&str> = names.into_iter().filter(|name| name.starts_with("naive")).collect();
    let expected = ["", " (2)", " (3)", " (4)"].map(|number| format!("naive flavours 2 at m = 0.3{number}"));
    assert_eq!(naive, expected);
    let single = "rhmc run.toml --out run2 --backend cpu --set precision.action=single";
    room.fails(2, single, &["precision.action-tol is 1e-12", "5e-8 or more, or precision.action = \"double\""]);
    // The examples are inputs.
    let hisq = room.run("init rhmc --quarks hisq");
    fs::write(room.path("hisq.toml"), hisq.stdout).unwrap();
    assert_eq!(room.json("check hisq.toml")["quarks"].as_array().unwrap().len(), 3);
    let levels = "check hisq.toml --set trajectory.steps=6,2";
    room.fails(2, levels, &["trajectory.steps", "3g1f has only one level: give one number"]);
    let example = room.run("init rhmc");
    fs::write(room.path("example.toml"), example.stdout).unwrap();
    room.json("rhmc example.toml --out example --set lattice=4,4,4,4 --set trajectories=1 --set trajectory.steps=2");
}

/// Inputs of measurements are inputs, with the changes that their comments name.
#[test]
fn examples_are_inputs() {
    let room = Room::new();
    for name in ["rhmc-32x4", "rhmc-32x64"] {
        let input = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/{name}.toml"));
        fs::copy(input, room.path("run.toml")).unwrap();
        // On the lattice of the file there has to be memory for it; the small one is free everywhere.
        let small = "check run.toml --set lattice=8,8,8,4";
        let checked = room.json(small);
        assert_eq!((&checked["kind"], &checked["ok"]), (&json!("rhmc"), &json!(true)), "{name}");
        // All --set of the comments, as they are typed in a shell.
        let text = fs::read_to_string(room.path("run.toml")).unwrap().replace("\\\n#", "");
        let commands = text.lines().filter(|line| line.starts_with("#   ") && line.contains(" --set "));
        let mut tried = 0;
        for command in commands {
            let words: Vec<&str> = command.split('#').nth(1).unwrap().split_whitespace().collect();
            let sets = words.windows(2).filter(|pair| pair[0] == "--set").map(|pair| pair.join(" "));
            let sets = sets.map(|set| if set.contains("start=") { "--set start=hot".into() } else { set });
            room.json(&format!("{small} {}", sets.collect::<Vec<_>>().join(" ")));
            tried += 1;
        }
        assert_eq!(tried, 1, "{name}");
    }
}

/// Whole numbers may have any base that TOML knows, in files and beside them.
#[test]
fn whole_numbers_have_any_base() {
    let room = Room::new();
    let input = QUARKS
        .replace("seed = 11", "seed = 0xff_ff")
        .replace("lattice = [4, 4, 4, 4]", "lattice = [4, 0x4, 0o4, 0b100]");
    assert!(input.contains("0xff_ff") && input.contains("0b100"));
    fs::write(room.path("run.toml"), input).unwrap();
    let short = "--set trajectories=0x1 --set trajectory.steps=0b10 --set measure.condensate=0";
    room.json(&format!("rhmc run.toml --out run {short} --set gauge.beta=0x6"));
    let run = &all_lines(&room, "run")[0]["run"];
    assert_eq!((&run["seed"], &run["lattice"], &run["trajectories"]), (&json!(65535), &json!([4, 4, 4, 4]), &json!(1)));
    assert_eq!((&run["gauge"]["beta"], &run["levels"][0]["steps"]), (&json!(6.0), &json!(2)));
    for (set, why) in [
        ("seed=0x1_0000_0000_0000_0000", "'18446744073709551616' is not a whole number"),
        ("seed=0x", "is not a whole number"),
        ("trajectories=0xfffffffff", "is too large: give a whole number from 0 to"),
    ] {
        room.fails(2, &format!("check run.toml --set {set}"), &[why]);
    }
    fs::write(room.path("odd.toml"), "gauge = \"a\"\nmax-iterations = 0x1F\ntol = 0x1\nreconstruct = 0xc\n").unwrap();
    let said = room.run("check odd.toml").stderr;
    assert!(
        said.contains("tol: '1' is not a number of at least 1e-16 and below 1") && !said.contains("expected"),
        "{said}"
    );
}

/// Advice on an input names its keys, and no flags.
#[test]
fn advice_on_an_input_names_keys() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o weak.npy");
    let mut long = fs::read(room.path("weak.npy")).unwrap();
    long.extend([0; 64]);
    fs::write(room.path("long.npy"), long).unwrap();
    let solve = |keys: &str| format!("gauge = \"weak.npy\"\nsource = \"random:1\"\n{keys}\n");
    let rhmc = |table: &str| {
        format!(
            "lattice = [4, 4, 4, 4]\ntrajectories = 1\nseed = 1\n[gauge]\naction = \"wilson\"\nbeta = 5.5\n[trajectory]\nsteps = 2\n\
             [[fermion]]\nflavours = 2\n{table}\n"
        )
    };
    let spectrum = |keys: &str| format!("configurations = [\"weak.npy\"]\n[solve]\n{keys}\n");
    let other_gauge = |name: &str| solve("mass = 0.1").replace("weak", name);
    for (input, advice) in [
        (solve(""), "no mass: give mass = M or kappa = K"),
        (solve("mass = 0.1\noperator = \"clover\""), "give csw = C, or clover-r = CR with clover-t = CT"),
        (solve("mass = 0.1\noperator = \"twisted\""), "no twisted mass: give mu = MU"),
        (
            solve("operator = \"hisq\""),
            "give mass = M, masses = [M1, M2, ...], or mass = M with shifts = [S1, S2, ...]",
        ),
        (solve("operator = \"hisq\"\nshifts = 0.1"), "also give mass = M with shifts"),
        (solve("operator = \"hisq\"\nmass = 0.1\nshift-solver = \"sequential\""), "applies only to masses and shifts"),
        (solve("operator = \"hisq\"\nmasses = [0.1, 0.2]\nsolver = \"block-cg\""), "shift-solver = sequential"),
        (solve("mass = 0.1\nphases = \"milc\""), "applies only to operator = staggered, asqtad or hisq"),
        (solve("mass = 0.1\nsolver = \"cg\"\nmg-vectors = 8"), "applies only to solver = multigrid and auto"),
        (solve("mass = 0.1\nmr-steps = 3"), "applies only to solver = gcr-dd"),
        (solve("mass = 0.1\ninner-tol = 0.1"), "applies only to correction = defect"),
        (solve("mass = 0.1\nouter = \"single\"\nprecision = \"double\""), "give precision = single or half"),
        (solve("mass = 0.1\nbackend = \"cpu\"\ndevice = 0"), "device selects a GPU"),
        (
            solve("operator = \"asqtad\"\nmass = 0.1\nprecision = \"double\"\nreconstruct = \"18h\""),
            "links of 16 or 21 bits need precision = single",
        ),
        (solve("mass = 0.1").replace("random:1", "point:0,0,0,0"), "for all 12 components, give point:x,y,z,t"),
        ("mass = 0.1\n".into(), "no gauge field: give gauge = \"FILE\""),
        ("mass = 0.1\n".into(), "no source: give source = \"point:x,y,z,t,spin,colour\""),
        ("operator = \"hisq\"\nmass = 0.1\n".into(), "no links: give gauge = \"FILE\", or fat = \"FILE\" and"),
        ("operator = \"hisq\"\nmass = 0.1\nfat = \"f\"\n".into(), "also needs long = \"FILE\""),
        (other_gauge("long"), "(no-verify = true)"),
        (rhmc("operator = \"clover\"\ncsw = 1"), "fermion.0: no mass: give mass = M or kappa = K"),
        (rhmc("operator = \"clover\"\nmass = 0.1"), "fermion.0: no clover coefficient: give csw = C, or clover-r = CR"),
        (rhmc("operator = \"wilson\"\nmass = 0.1").replace("flavours = 2\n", ""), "give it, for example flavours = 2"),
        (rhmc("operator = \"twisted\"\nmass = 0.1"), "fermion.0: no twisted mass: give mu = MU"),
        (spectrum(""), "no mass: give solve.mass = M or solve.kappa = K"),
        (spectrum("mass = 0.1\ncsw = 1.0"), "applies only to solve.operator = clover"),
        (spectrum("mass = 0.1").replace("weak", "long"), "(solve.no-verify = true)"),
    ] {
        fs::write(room.path("run.toml"), &input).unwrap();
        let run = room.run("check run.toml");
        assert_eq!(run.code, Some(2), "{input}: {}", run.stderr);
        assert!(run.stderr.contains(advice), "{input}: no '{advice}' in {}", run.stderr);
        let errors = run.stderr.lines().filter(|line| !line.starts_with("note"));
        errors.for_each(|line| assert!(!line.contains(" --"), "{input}: {line}"));
    }
}
