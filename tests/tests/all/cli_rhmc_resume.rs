//! `ferrite rhmc --resume`: what it resumes from, to the bit, and what it refuses.
use crate::program::*;
use crate::trajectories::{all_lines, lines};
use ferrite::field::host::HostGauge;
use ferrite::files::{ReadOptions, read_gauge};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

const GAUGE: &str = r#"
lattice = [4, 4, 4, 4]
trajectories = 3
seed = 12
thermalise = 3
[gauge]
action = "wilson"
beta = 5.6
[trajectory]
length = 0.5
steps = 4
"#;

const QUARKS: &str = r#"
lattice = [2, 2, 4, 4]
trajectories = 3
seed = 11
start = "hot"
[gauge]
action = "wilson"
beta = 5.5
[trajectory]
length = 0.2
steps = 2
[[fermion]]
operator = "naive"
mass = [0.4]
flavours = [2]
[precision]
dynamics = "double"
"#;

/// Two flavours split by a mass, on stout links, and one by a rational function.
const WILSON: &str = r#"
lattice = [2, 2, 4, 4]
trajectories = 3
seed = 11
start = "hot"
[gauge]
action = "iwasaki"
beta = 2.2
[trajectory]
length = 0.2
steps = [2, 1]
[[fermion]]
operator = "clover"
kappa = 0.12
csw = 1.2
flavours = 2
hasenbusch-kappa = [0.11]
level = [0, 1]
stout-rho = 0.1
guesses = 3
[[fermion]]
operator = "clover"
kappa = 0.115
csw = 1.2
flavours = 1
action-error = 1e-10
"#;

/// Quarks whose links are projected to U(3).
const HISQ: &str = r#"
lattice = [2, 2, 4, 4]
trajectories = 3
seed = 11
[gauge]
action = "luscher-weisz"
beta = 7.0
u0 = 0.89
flavours = 2
[trajectory]
length = 0.2
steps = 2
[[fermion]]
operator = "hisq"
mass = [0.4]
flavours = [2]
[measure]
condensate = 0
"#;

fn room(input: &str) -> Room {
    let room = Room::new();
    fs::write(room.path("run.toml"), input).unwrap();
    room
}
fn copy(room: &Room, from: &str, to: &str) {
    fs::create_dir(room.path(to)).unwrap();
    for entry in fs::read_dir(room.path(from)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), room.path(to).join(entry.file_name())).unwrap();
    }
}
/// Takes lines with these keys out of a state.
fn without(room: &Room, folder: &str, keys: &[&str]) {
    let path = room.path(folder).join("state.toml");
    let text = fs::read_to_string(&path).unwrap();
    let kept: Vec<&str> =
        text.lines().filter(|line| !keys.iter().any(|key| line.starts_with(&format!("{key} = ")))).collect();
    fs::write(path, kept.join("\n") + "\n").unwrap();
}
/// Returns the standard error of a run that succeeds.
fn reported(room: &Room, arguments: &str) -> String {
    let run = room.run(&format!("{arguments} --backend cpu"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.stderr
}

/// A folder that is copied while the run goes on may have links of another trajectory than its state.
#[test]
fn links_of_another_trajectory_are_refused() {
    let room = room(GAUGE);
    room.json("rhmc run.toml --out run");
    room.json("rhmc run.toml --out whole --set trajectories=4");
    copy(&room, "run", "mixed");
    fs::copy(room.path("run/state.000002.ildg"), room.path("mixed/state.000003.ildg")).unwrap();
    let before = fs::read(room.path("mixed/trajectories.jsonl")).unwrap();
    let on = "--resume --set trajectories=4";
    // With the state before it nothing is lost but time.
    copy(&room, "mixed", "mended");
    let said = reported(&room, &format!("rhmc run.toml --out mended {on}"));
    for part in [
        "mended/state.000003.ildg does not contain the links of trajectory 3",
        "its checksum is",
        "resuming from the previous state, state.previous.toml, after trajectory 2",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(lines(&room, "mended"), lines(&room, "whole"));
    fs::remove_file(room.path("mixed/state.000002.ildg")).unwrap();
    room.fails(
        2,
        &format!("rhmc run.toml --out mixed {on} --backend cpu"),
        &[
            "mixed/state.000003.ildg does not contain the links of trajectory 3",
            "copy it again",
            "the run cannot resume from the previous state, state.previous.toml, either",
        ],
    );
    assert_eq!(fs::read(room.path("mixed/trajectories.jsonl")).unwrap(), before);
}

/// Makes of a folder what an older version would have left.
fn make_older(room: &Room, folder: &str, keys: &[&str]) {
    without(room, folder, keys);
    let at = |name: &str| room.path(folder).join(name);
    let text = fs::read_to_string(at("state.toml")).unwrap().replace("rhmc-state/2", "rhmc-state/1");
    fs::write(at("state.toml"), text).unwrap();
    fs::remove_file(at("state.previous.toml")).unwrap();
    for entry in fs::read_dir(at("")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().contains("cfg.") && path.extension().is_some_and(|end| end == "toml") {
            fs::remove_file(path).unwrap();
        }
    }
    let text = fs::read_to_string(at("trajectories.jsonl")).unwrap();
    let unsealed = |line: &str| format!("{}}}\n", line.split_once(",\"crc32\":").unwrap().0);
    let text: String = text.lines().map(unsealed).collect();
    let bytes = text.len();
    fs::write(at("trajectories.jsonl"), text).unwrap();
    set(room, folder, "bytes", &bytes.to_string());
}

/// Folders of versions that kept fewer checksums go on, with a note; their numbers are compared all the same.
#[test]
fn folders_of_older_versions_go_on() {
    let room = room(GAUGE);
    room.json("rhmc run.toml --out run");
    room.json("rhmc run.toml --out whole --set trajectories=4");
    // The oldest knew none of these.
    for (folder, keys) in
        [("old", &["crc32", "lines"][..]), ("oldest", &["crc32", "lines", "checksum", "start", "poles", "batches"])]
    {
        copy(&room, "run", folder);
        make_older(&room, folder, keys);
        copy(&room, folder, "edited");
        for (key, value, parts) in [
            ("trajectory", "2", ["edited/state.toml: trajectory = 2", "contain 3 lines, up to trajectory 3"]),
            ("accepted", "2", ["edited/state.toml: accepted = 2", "contain 3 accepted trajectories"]),
            ("bytes", "100", ["edited/state.toml: bytes = 100", "end in the middle of a line"]),
            ("seed", "\"13\"", ["edited/state.toml: seed = 13", "record the seed 12"]),
        ] {
            let kept = fs::read_to_string(room.path("edited/state.toml")).unwrap();
            set(&room, "edited", key, value);
            room.fails(2, "rhmc run.toml --out edited --resume --backend cpu --set trajectories=4", &parts);
            fs::write(room.path("edited/state.toml"), kept).unwrap();
        }
        fs::remove_dir_all(room.path("edited")).unwrap();
        let from = format!("rhmc run.toml --out {folder} --resume-from 2 --backend cpu");
        room.fails(2, &from, &["wrote cfg.000002.ildg without cfg.000002.toml", "another folder with start = "]);
        // Lines that another version wrote: the run reports that version.
        let path = room.path(folder).join("trajectories.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(concat!("\"version\":\"", env!("CARGO_PKG_VERSION")), "\"version\":\"0.0.7"))
            .unwrap();
        let said = reported(&room, &format!("rhmc run.toml --out {folder} --resume --set trajectories=4"));
        assert!(said.contains("state.toml was written by a version of Ferrite without checksums of states"), "{said}");
        assert!(said.contains("instead of 0.0.7: the random numbers are the same"), "{said}");
        assert_eq!(lines(&room, folder), lines(&room, "whole"));
        assert_eq!(all_lines(&room, folder)[3]["run"]["start"], json!("cold"));
        // From now on it is a folder as others.
        fs::write(room.path(folder).join("state.toml"), "").unwrap();
        let said = reported(&room, &format!("rhmc run.toml --out {folder} --resume --set trajectories=4"));
        assert!(said.contains("resuming from the previous state"), "{said}");
        assert_eq!(lines(&room, folder), lines(&room, "whole"));
    }
}

/// Changes the value of a key in a state.
fn set(room: &Room, folder: &str, key: &str, value: &str) {
    edit(&room.path(folder).join("state.toml"), |text| {
        let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
        text.replace(line, &format!("{key} = {value}"))
    });
}
fn edit(path: &std::path::Path, change: impl FnOnce(&str) -> String) {
    let text = fs::read_to_string(path).unwrap();
    let other = change(&text);
    assert_ne!(text, other);
    fs::write(path, other).unwrap();
}

/// The end of the last line, which some editors take off, is all that may be missing; it comes back.
#[test]
fn a_last_line_without_its_end_is_whole() {
    let room = room(GAUGE);
    room.json("rhmc run.toml --out run");
    let whole = fs::read(room.path("run/trajectories.jsonl")).unwrap();
    room.json("rhmc run.toml --out whole --set trajectories=4");
    for (folder, more) in [("again", "3"), ("on", "4")] {
        copy(&room, "run", folder);
        let path = room.path(folder).join("trajectories.jsonl");
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let said = reported(&room, &format!("rhmc run.toml --out {folder} --resume --set trajectories={more}"));
        assert!(!said.contains("warning: "), "{said}");
        assert!(fs::read(&path).unwrap().starts_with(&whole), "{folder}");
    }
    assert_eq!(lines(&room, "on"), lines(&room, "whole"));
}

/// Whatever is changed by hand in states and lines, the run says so, and resumes from the state before or not at all; never
/// with other numbers than those that it would have made.
#[test]
fn edits_by_hand_are_reported() {
    let room = room(GAUGE);
    room.json("rhmc run.toml --out run");
    room.json("rhmc run.toml --out whole --set trajectories=4");
    let line = |number: usize, from: &'static str, to: &'static str| {
        move |text: &str| -> String {
            let change =
                |(k, line): (usize, &str)| if k + 1 == number { line.replacen(from, to, 1) } else { line.into() };
            text.lines().enumerate().map(change).map(|line| line + "\n").collect()
        }
    };
    let key = |key: &'static str, value: &'static str| {
        move |text: &str| -> String {
            let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
            text.replace(line, &format!("{key} = {value}"))
        }
    };
    let without = |key: &'static str| {
        move |text: &str| -> String {
            text.lines()
                .filter(|line| !line.starts_with(&format!("{key} = ")))
                .map(|line| format!("{line}\n"))
                .collect()
        }
    };
    type Change<'a> = Box<dyn Fn(&str) -> String + 'a>;
    let state = "state.toml";
    let trajectories = "trajectories.jsonl";
    // What is changed, what is said of it, and whether the state before it helps.
    let table: Vec<(&str, Change, &[&str], bool)> = vec![
        (state, Box::new(key("trajectory", "2")), &["state.toml:11: crc32 is", "restore the file"], true),
        (state, Box::new(key("trajectory", "4")), &["state.toml:11: crc32 is"], true),
        (state, Box::new(key("trajectory", "-1")), &["state.toml:3:14: trajectory"], true),
        (state, Box::new(key("accepted", "1")), &["state.toml:11: crc32 is"], true),
        (state, Box::new(key("seed", "\"13\"")), &["state.toml:11: crc32 is"], true),
        (state, Box::new(key("start", "\"hot\"")), &["state.toml:11: crc32 is"], true),
        (state, Box::new(key("checksum", "\"0 0\"")), &["state.toml:11: crc32 is"], true),
        (state, Box::new(key("links", "\"cfg.000001.ildg\"")), &["state.toml:11: crc32 is"], true),
        (
            state,
            Box::new(key("links", "\"../run.toml\"")),
            &["state.toml", "links: '../run.toml' is not the name"],
            true,
        ),
        (state, Box::new(key("bytes", "100")), &["state.toml:11: crc32 is"], true),
        (state, Box::new(key("lines", "\"0123abcd\"")), &["state.toml:11: crc32 is"], true),
        (state, Box::new(key("lines", "\"?\"")), &["state.toml:10:9: lines: '?' is not a checksum"], true),
        (state, Box::new(key("crc32", "\"0123abcd\"")), &["state.toml:11: crc32 is 0123abcd"], true),
        (state, Box::new(key("format", "\"ferrite.rhmc-state/1\"")), &["state.toml:11: crc32 is"], true),
        (state, Box::new(key("format", "\"ferrite.rhmc-state/3\"")), &["state.toml:2:10: format: 'ferrite"], true),
        (state, Box::new(without("crc32")), &["state.toml is incomplete: crc32 is missing"], true),
        (state, Box::new(without("bytes")), &["state.toml:10: crc32 is"], true),
        (state, Box::new(|text| format!("{text}accepted = 4\n")), &["state.toml", "accepted"], true),
        (state, Box::new(|text| text.replace('=', ":")), &["state.toml"], true),
        (state, Box::new(|_| String::new()), &["state.toml is incomplete: format is missing"], true),
        (
            trajectories,
            Box::new(line(3, "\"accepted\":true", "\"accepted\":false")),
            &["jsonl, line 3: crc32 is"],
            true,
        ),
        (trajectories, Box::new(line(3, "\"trajectory\":3", "\"trajectory\":5")), &["jsonl, line 3: crc32 is"], true),
        (trajectories, Box::new(line(3, "}", "")), &["trajectories.jsonl has", "bytes, but state.toml states"], true),
        (
            trajectories,
            Box::new(line(3, "{\"", "{{\"")),
            &["does not contain the lines that state.toml refers to"],
            true,
        ),
        (trajectories, Box::new(line(3, ":true", ":tru!")), &["jsonl, line 3: this is not JSON at column"], true),
        (trajectories, Box::new(line(3, "\"delta_h\":", "\"delta_h\":1")), &["jsonl, line 3: crc32 is"], true),
        (
            trajectories,
            Box::new(line(3, ",\"crc32\"", ",\"crc23\"")),
            &["does not contain the lines that state.toml refers to"],
            true,
        ),
        (
            trajectories,
            Box::new(line(2, "\"accepted\":true", "\"accepted\":false")),
            &["jsonl, line 2: crc32 is"],
            false,
        ),
        (trajectories, Box::new(line(1, "\"beta\":5.6", "\"beta\":5.7")), &["jsonl, line 1: crc32 is"], false),
        (trajectories, Box::new(|text| text[1..].into()), &["trajectories.jsonl has"], false),
        (trajectories, Box::new(|_| String::new()), &["trajectories.jsonl has 0 bytes"], false),
    ];
    for (k, (file, change, parts, mended)) in table.iter().enumerate() {
        let folder = format!("edited{k}");
        copy(&room, "run", &folder);
        edit(&room.path(&folder).join(file), change);
        let on = room.run(&format!("rhmc run.toml --out {folder} --resume --set trajectories=4 --backend cpu"));
        parts.iter().for_each(|part| assert!(on.stderr.contains(part), "{k}, {file}: no '{part}' in {}", on.stderr));
        assert!(on.stderr.contains(&format!("{folder}/{file}")), "{k}: {}", on.stderr);
        if *mended {
            assert_eq!(on.code, Some(0), "{k}: {}", on.stderr);
            assert!(on.stderr.contains("resuming from the previous state, state.previous.toml, after trajectory 2"));
            assert_eq!(lines(&room, &folder), lines(&room, "whole"), "{k}");
            assert!(links(&room, &folder, 4) == links(&room, "whole", 4), "{k}");
        } else {
            assert_eq!(on.code, Some(2), "{k}: {}", on.stderr);
            assert_eq!(on.stderr.matches("error").count(), 1, "{}", on.stderr);
        }
        fs::remove_dir_all(room.path(&folder)).unwrap();
    }
    // A report says so, too.
    edit(&room.path("run/trajectories.jsonl"), line(2, "\"accepted\":true", "\"accepted\":false"));
    room.fails(2, "report run", &["run/trajectories.jsonl, line 2: crc32 is", "the line was changed"]);
}

/// A run goes back to an older configuration, and makes to the bit what it made before; what came later is set aside.
#[test]
fn a_run_starts_again_at_an_older_configuration() {
    let room = room(&QUARKS.replace("trajectories = 3", "trajectories = 5\nsave-every = 2"));
    room.json("rhmc run.toml --out run");
    copy(&room, "run", "kept");
    let from = |number: u32| format!("rhmc run.toml --out run --resume-from {number} --backend cpu");
    room.fails(
        2,
        &from(3),
        &["--resume-from 3: the run has no configuration of trajectory 3", "trajectories 2 and 4 were saved"],
    );
    room.fails(2, &from(7), &["--resume-from 7: the run has no"]);
    assert_eq!(all_lines(&room, "run").len(), 5);
    let said = reported(&room, &from(2).replace(" --backend cpu", ""));
    assert!(said.contains("files of trajectories after 2 were moved to run/before.1"), "{said}");
    assert_eq!(lines(&room, "run"), lines(&room, "kept"));
    assert_eq!(lines(&room, "run/before.1"), lines(&room, "kept"));
    assert!(
        links(&room, "run", 4) == links(&room, "kept", 4) && links(&room, "run/before.1", 4) == links(&room, "kept", 4)
    );
    // Other steps from there on; a configuration of the chain before is not one of this chain.
    let said = reported(
        &room,
        &format!("{} --set trajectory.steps=3 --set trajectories=3", from(2).replace(" --backend cpu", "")),
    );
    assert!(
        said.contains("run/before.2")
            && said.contains("settings differ from before: trajectory.steps = 3 instead of 2\n"),
        "{said}"
    );
    assert_eq!(all_lines(&room, "run").len(), 3);
    assert!(!room.path("run/cfg.000004.ildg").exists() && room.path("run/before.2/cfg.000004.toml").exists());
    // Its damaged configuration is refused, and nothing is set aside.
    edit_bytes(&room.path("run/cfg.000002.ildg"));
    room.fails(2, &from(2), &["run/cfg.000002.ildg", "hecksum"]);
    assert!(!room.path("run/before.3").exists());
    assert_eq!(all_lines(&room, "run").len(), 3);
    // The last two states are there without configurations; the way on needs none.
    room.json(&from(3).replace(" --backend cpu", " --set trajectories=4"));
    assert_eq!(all_lines(&room, "run").len(), 4);
}
/// Another bit in the middle of a file.
fn edit_bytes(path: &std::path::Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// The start of a run is that of its first links, whatever an input says later.
#[test]
fn a_start_stays_what_it_was() {
    let room = room(GAUGE);
    room.json("generate unit --lattice 4,4,4,4 -o first.npy");
    let run = "rhmc run.toml --out run";
    room.json(&format!("{run} --set start=first.npy --set trajectories=0"));
    for other in ["hot", "cold"] {
        room.fails(
            2,
            &format!("{run} --resume --backend cpu --set start={other}"),
            &["began with start = \"first.npy\"", &format!("the input has start = \"{other}\""), "another folder"],
        );
    }
    // The same file by another name.
    let absolute = room.path("first.npy").display().to_string();
    let said = reported(&room, &format!("{run} --resume --set trajectories=1 --set start={absolute}"));
    assert!(!said.contains("warning"), "{said}");
    let said = reported(&room, &format!("{run} --resume --set trajectories=2 --set start=hot"));
    assert!(
        said.contains("start = \"hot\" has no effect") && said.contains("began with start = \"first.npy\""),
        "{said}"
    );
    let starts: Vec<Value> = all_lines(&room, "run").iter().map(|line| line["run"]["start"].clone()).collect();
    assert_eq!(starts, [json!("first.npy"), json!("first.npy")]);
}

/// Residuals one for each pole are as many as there are poles, also when a run resumes.
#[test]
fn residuals_of_poles_are_counted_when_a_run_goes_on() {
    let room = room(QUARKS);
    let run = "rhmc run.toml --out run --set trajectories";
    room.json(&format!("{run}=1"));
    let list = "--set precision.dynamics-tol=1e-7,1e-8 --resume --backend cpu";
    room.fails(
        2,
        &format!("{run}=2 {list}"),
        &["precision.dynamics-tol has 2 numbers", "poles: give one number, or one per pole"],
    );
    assert_eq!(lines(&room, "run").len(), 1);
    // Of a version that did not count them, a run resumes, and says what it does.
    make_older(&room, "run", &["poles", "crc32", "lines"]);
    let said = reported(&room, &format!("{run}=2 {list}").replace(" --backend cpu", ""));
    assert!(said.contains("2 numbers") && said.contains("the last number is used for all other poles"), "{said}");
}

/// A run that took its numbers from files does not take others without a word.
#[test]
fn the_end_of_a_replay_is_reported() {
    let room = room(GAUGE);
    fs::create_dir(room.path("given")).unwrap();
    for number in 1..=2 {
        room.json(&format!("generate random --lattice 4,4,4,4 --seed {number} -o given/momenta.{number}.npy"));
    }
    let run = "rhmc run.toml --out run --set trajectories";
    room.json(&format!("{run}=1 --replay given"));
    assert_eq!(all_lines(&room, "run")[0]["run"]["replay"], json!("given"));
    let said = reported(&room, &format!("{run}=2 --resume --replay given"));
    assert!(!said.contains("warning"), "{said}");
    let said = reported(&room, &format!("{run}=3 --resume"));
    assert!(said.contains("from trajectory 3 on, settings differ from before: replay"), "{said}");
    assert!(all_lines(&room, "run")[2]["run"].get("replay").is_none());
}

/// Sums over noise vectors are rounded otherwise in other batches: these stay as they were.
#[test]
fn batches_of_noise_vectors_stay_as_they_were() {
    let room = room(&format!("{QUARKS}[measure]\ncondensate = 5\n"));
    room.json("rhmc run.toml --out whole --set trajectories=2 --set measure.batch=2");
    room.json("rhmc run.toml --out parts --set trajectories=1 --set measure.batch=2");
    room.json("rhmc run.toml --out parts --set trajectories=2 --resume");
    let all = all_lines(&room, "parts");
    assert_eq!(all[1]["run"]["measure"]["batches"], json!([2, 2, 1]));
    assert_eq!(lines(&room, "parts"), lines(&room, "whole"));
    // What is asked for is done.
    room.json("rhmc run.toml --out parts --resume --set measure.batch=5");
    assert_eq!(all_lines(&room, "parts")[2]["run"]["measure"]["batches"], json!([5]));
    // Another number of vectors is split anew.
    room.json("rhmc run.toml --out parts --resume --set trajectories=4 --set measure.condensate=3");
    assert_eq!(all_lines(&room, "parts")[3]["run"]["measure"]["batches"], json!([3]));
}

/// Quarks of one mass in one group are the same quarks, however they are counted.
#[test]
fn equal_masses_are_one_mass() {
    let room = room(QUARKS);
    room.json("rhmc run.toml --out one --set trajectories=1 --set fermion.0.flavours=4");
    room.json("rhmc run.toml --out two --set trajectories=1 --set fermion.0.mass=0.4,0.4 --set fermion.0.flavours=2,2");
    let [one, two] = ["one", "two"].map(|folder| lines(&room, folder).swap_remove(0));
    assert_eq!(
        (&one["delta_h"], &one["start"], &one["plaquette"]),
        (&two["delta_h"], &two["start"], &two["plaquette"])
    );
}

/// Configurations and states are files of their own, and none of them depends on the other.
#[test]
fn a_run_needs_none_of_its_configurations() {
    let room = room(GAUGE);
    let report = room.json("rhmc run.toml --out run");
    assert!(report["summary"]["seconds_of_files_per_trajectory"].as_f64().unwrap() > 0.0, "{report}");
    assert!(all_lines(&room, "run").iter().all(|line| line["seconds_of_files"].as_f64().unwrap() > 0.0));
    (1..=3).for_each(|number| drop(room.json(&format!("verify run/cfg.{number:06}.ildg"))));
    let states = || {
        let names =
            fs::read_dir(room.path("run")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("state.")).collect();
        names.sort();
        names
    };
    let expected = |last: u32| {
        let links = [last - 1, last].map(|number| format!("state.{number:06}.ildg"));
        [&links[..], &["state.previous.toml".into(), "state.toml".into()]].concat()
    };
    assert_eq!(states(), expected(3));
    #[cfg(unix)]
    for number in [2, 3] {
        use std::os::unix::fs::MetadataExt;
        for kind in ["cfg", "state"] {
            assert_eq!(fs::metadata(room.path(&format!("run/{kind}.{number:06}.ildg"))).unwrap().nlink(), 1);
        }
    }
    fs::create_dir(room.path("archive")).unwrap();
    for number in 1..=3 {
        let name = format!("cfg.{number:06}.ildg");
        fs::rename(room.path("run").join(&name), room.path("archive").join(&name)).unwrap();
    }
    let archived = || (1..=3).map(|k| fs::read(room.path(&format!("archive/cfg.{k:06}.ildg"))).unwrap());
    let before: Vec<_> = archived().collect();
    room.json("rhmc run.toml --out run --resume --set trajectories=5 --set save-every=4");
    assert!(archived().eq(before));
    room.json("rhmc run.toml --out whole --set trajectories=5");
    assert_eq!(lines(&room, "run"), lines(&room, "whole"));
    let links = |name: &str| read_gauge(&room.path(name), &ReadOptions::default()).unwrap().gauge;
    assert!(links("run/cfg.000004.ildg") == links("whole/cfg.000004.ildg"));
    assert_eq!(states(), expected(5));
    assert!(links("run/state.000005.ildg") == links("whole/cfg.000005.ildg"));
}

/// The share of the time outside kernels is measured after each start of a run, unless `measure.kernels` is 0.
#[test]
fn time_outside_kernels_is_measured() {
    let room = room(GAUGE);
    let run = "rhmc run.toml --out run";
    let report = room.json(&format!("{run} --set trajectories=3"));
    let share = |value: &Value| value.as_f64().filter(|share| (0.0..1.0).contains(share));
    let outside = share(&report["summary"]["outside_kernels"]).unwrap();
    let timed = |lines: &[Value]| lines.iter().map(|line| line.get("kernels").is_some()).collect::<Vec<_>>();
    let all = all_lines(&room, "run");
    assert_eq!(timed(&all), [false, true, false]);
    assert!((1.0 - share(&all[1]["kernels"]["share"]).unwrap() - outside).abs() < 1e-12);
    // Without a second one the first is taken; as asked for, or never.
    room.json(&format!("{run} --resume --set trajectories=4"));
    room.json(&format!("{run} --resume --set trajectories=6 --set measure.kernels=0"));
    let text = room.run(&format!("{run} --resume --set trajectories=8 --set measure.kernels=4 --backend cpu")).stdout;
    assert!(text.contains("outside kernels      ") && text.contains("% of the time of one trajectory"), "{text}");
    assert_eq!(timed(&all_lines(&room, "run")[3..]), [true, false, false, false, true]);
    let page = room.json("report run");
    let row = page["observables"].as_array().unwrap().iter().find(|row| row["name"] == "kernels.share").unwrap();
    // None of the first trajectories is left out.
    assert_eq!(row["measurements"], json!(3));
    let html = fs::read_to_string(room.path("run/report.html")).unwrap();
    assert!(html.contains("Outside kernels: ") && html.contains("of the time of 3 trajectories"), "no share");
    assert!(room.run("report run").stdout.contains("Outside kernels: "));
}

/// Groups with other numbers of poles have residuals of their own.
#[test]
fn residuals_of_groups() {
    let second = "[[fermion]]\noperator = \"naive\"\nmass = [1.5]\nflavours = [1]\n";
    let room = room(&QUARKS.replace("[precision]", &format!("{second}[precision]")));
    let run = |folder: &str, sets: &str| format!("rhmc run.toml --out {folder} --set trajectories=1 {sets}");
    let key = "--set fermion.1.dynamics-tol";
    let refused = room.fails(
        2,
        &run("no", &format!("{key}=1e-7,1e-7 --backend cpu")),
        &["fermion.1.dynamics-tol has 2 numbers", "poles: give one number, or one per pole"],
    );
    let (_, rest) = refused.stderr.split_once(" have ").unwrap();
    let poles: usize = rest.split_once(" poles").unwrap().0.parse().unwrap();
    assert!(poles > 2);
    room.json(&run("one", &format!("{key}=1e-7")));
    room.json(&run("list", &format!("{key}={}", vec!["1e-7"; poles].join(","))));
    room.json(&run("default", ""));
    let [one, list, default] = ["one", "list", "default"].map(|folder| lines(&room, folder).swap_remove(0));
    assert_eq!(one, list);
    assert_ne!(one["delta_h"], default["delta_h"]);
    assert_eq!(one["quarks"][0]["iterations"]["action"], default["quarks"][0]["iterations"]["action"]);
    let reported = |folder: &str| all_lines(&room, folder)[0]["run"]["quarks"].clone();
    assert_eq!((&reported("one")[1]["dynamics_tol"], reported("one")[0].get("dynamics_tol")), (&json!([1e-7]), None));
    // As for all groups, a solver in single precision has its limit.
    let single = run("no", &format!("{key}=1e-9 --set precision.dynamics=single --backend cpu"));
    room.fails(2, &single, &["fermion.1.dynamics-tol is 1e-9", "5e-8 or more"]);
}

/// Links that a run has kept after this trajectory.
fn links(room: &Room, folder: &str, number: u32) -> HostGauge {
    let path = room.path(folder).join(format!("cfg.{number:06}.ildg"));
    read_gauge(&path, &ReadOptions::default()).unwrap().gauge
}

/// Killed at any moment, a run with quarks loses the trajectory at hand at most, and no bit of what follows.
#[test]
fn a_killed_run_with_quarks_goes_on() {
    kill(QUARKS, 12, 16);
}
#[test]
fn a_killed_run_with_wilson_quarks_goes_on() {
    kill(WILSON, 6, 8);
}
/// Momenta that are kept from one trajectory to the next, some of them turned round by a rejection.
#[test]
fn a_killed_run_with_friction_goes_on() {
    let input = GAUGE.replace("steps = 4", "steps = 2\nfriction = 0.3").replace("thermalise = 3", "thermalise = 1");
    kill(&input, 8, 12);
    let room = room(&input);
    room.json("rhmc run.toml --out run --set trajectories=8 --set save-every=2");
    let all = lines(&room, "run");
    assert!(all.iter().any(|line| line["accepted"] == json!(false)), "some are rejected");
    let momenta = |number: u32| fs::read(room.path(&format!("run/momenta.{number:06}.ildg")));
    assert!(momenta(4).is_ok() && momenta(3).is_err());
    room.json("rhmc run.toml --out run --set trajectories=8 --set save-every=2 --resume-from 4");
    assert_eq!(lines(&room, "run"), all);
    assert!(room.path("run/before.1/momenta.000006.ildg").exists());
    // Momenta of another trajectory are none of this one.
    room.json("rhmc run.toml --out other --set trajectories=2 --set save-every=2");
    fs::copy(room.path("run/momenta.000004.ildg"), room.path("other/state.000002.momenta.ildg")).unwrap();
    fs::remove_file(room.path("other/state.000001.momenta.ildg")).unwrap();
    let why = ["other/state.000002.momenta.ildg does not contain the momenta of trajectory 2"];
    room.fails(2, "rhmc run.toml --out other --resume --set trajectories=4 --backend cpu", &why);
    for friction in ["0", "-1", "nan"] {
        let run = format!("rhmc run.toml --out none --backend cpu --set trajectory.friction={friction}");
        room.fails(2, &run, &["trajectory.friction", "is not a number of at least 1e-9"]);
    }
}
/// Momenta are kept in double precision, whatever that of the links: their matrices are sums of the numbers that are stored.
#[test]
fn runs_with_friction_go_on_in_every_precision() {
    let presets = ["A", "B", "C", "D", "E", "F", "G"].map(|name| format!("preset = \"{name}\""));
    for precision in presets.into_iter().chain(["links = \"single\"".into()]) {
        let input =
            QUARKS.replace("dynamics = \"double\"", &precision).replace("steps = 2", "steps = 2\nfriction = 0.4");
        assert!(input.contains(&precision) && input.contains("friction"));
        kill(&input, 2, 3);
    }
}
#[test]
fn a_killed_run_with_hisq_goes_on() {
    kill(HISQ, 6, 8);
}

/// Kills a run so many times, resumes it each time, and compares what comes out with what comes without.
fn kill(input: &str, kills: u32, trajectories: u32) {
    let room = room(input);
    room.json(&format!("rhmc run.toml --out whole --set trajectories={trajectories}"));
    let state = room.path("killed/state.toml");
    let last = || {
        let text = fs::read_to_string(&state).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("trajectory = "))?;
        Some(line.parse::<u32>().unwrap())
    };
    let (mut sure, mut halfway) = (0, 0);
    for kill in 0..kills {
        let resume = if state.exists() { " --resume" } else { "" };
        let run = format!("rhmc run.toml --out killed --set trajectories={trajectories} --backend cpu{resume}");
        let mut child = room.command(&run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Some time after it has come one or two trajectories further, however fast the machine is.
        let (begin, aim) = (Instant::now(), (sure + 1 + kill % 2).min(trajectories));
        while last().is_none_or(|now| now < aim) && begin.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(7 * u64::from(kill)));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = last().unwrap();
        assert!(now >= sure, "{now} after {sure}");
        halfway += u32::from((1..trajectories).contains(&now) && now > sure);
        sure = now;
    }
    assert!(halfway >= kills / 4, "{halfway} kills met a run on its way");
    let resume = if state.exists() { " --resume" } else { "" };
    room.json(&format!("rhmc run.toml --out killed --set trajectories={trajectories}{resume}"));
    assert_eq!(lines(&room, "killed"), lines(&room, "whole"));
    for number in 1..=trajectories {
        assert!(links(&room, "killed", number) == links(&room, "whole", number), "links after trajectory {number}");
    }
}

/// Files of links in single precision hold all of their bits.
#[test]
fn single_links_go_on_to_the_bit() {
    let room = room(QUARKS);
    let run = "rhmc run.toml --set precision.preset=F --out";
    room.json(&format!("{run} whole --set trajectories=4"));
    room.json(&format!("{run} parts --set trajectories=1"));
    room.json(&format!("{run} parts --set trajectories=2 --resume"));
    room.json(&format!("{run} parts --set trajectories=4 --resume"));
    assert_eq!(all_lines(&room, "whole")[0]["run"]["links"], json!("single"));
    assert_eq!(lines(&room, "parts"), lines(&room, "whole"));
    for number in 1..=4 {
        assert!(links(&room, "parts", number) == links(&room, "whole", number), "links after trajectory {number}");
    }
}

/// Naive quarks, and others that are smeared, with a tadpole factor in the gauge action.
const SMEARED: &str = r#"
lattice = [2, 2, 4, 4]
trajectories = 1
seed = 11
[gauge]
action = "symanzik-tree"
beta = 5.0
u0 = 0.9
[trajectory]
length = 0.2
steps = 2
[[fermion]]
operator = "naive"
mass = [0.4]
flavours = [2]
[[fermion]]
operator = "hisq"
naik-epsilon = -0.1
mass = [0.5]
flavours = [1]
[measure]
condensate = 1
"#;

/// Outcome of another value of a key.
enum Told {
    /// Refused, with these words about the keys.
    Refused(&'static str),
    /// Noted with exactly these words.
    Noted(&'static str),
    /// Accepted without a message.
    Nothing,
}

/// `--resume` names the keys that were changed, each with both values, and no others.
#[test]
fn changed_keys_are_named_when_a_run_goes_on() {
    use Told::{Noted, Nothing, Refused};
    // What is replaced, its first occurrence alone, and by what.
    let smeared = [
        ("beta = 5.0", "beta = 5.1", Refused("gauge.beta = 5.0, but the input has 5.1")),
        ("beta = 5.0", "beta = 5.00", Nothing),
        ("u0 = 0.9\n", "u0 = 0.8\n", Refused("gauge.u0 = 0.9, but the input has 0.8")),
        ("u0 = 0.9\n", "", Refused("gauge.u0 = 0.9, which the input does not give")),
        ("u0 = 0.9\n", "u0 = 0.9\nrectangle = -0.05\n", Refused("no gauge.rectangle, but the input has -0.05")),
        ("u0 = 0.9\n", "u0 = 0.9\nxi = 2.0\n", Refused("no gauge.xi, but the input has 2.0")),
        ("u0 = 0.9\n", "u0 = 0.9\nplaquette = 1.0\n", Nothing),
        (
            "\"symanzik-tree\"\nbeta = 5.0\nu0 = 0.9",
            "\"dbw2\"\nbeta = 5.0",
            Refused(
                "gauge.action = \"symanzik-tree\", but the input has \"dbw2\"; gauge.u0 = 0.9, which the input does not give",
            ),
        ),
        ("mass = [0.4]", "mass = [0.3]", Refused("fermion.0.mass = 0.4, but the input has 0.3")),
        ("flavours = [1]", "flavours = [\"1/2\"]", Refused("fermion.1.flavours = 1, but the input has \"1/2\"")),
        ("naik-epsilon = -0.1\n", "", Refused("fermion.1.naik-epsilon = -0.1, which the input does not give")),
        ("\"naive\"\n", "\"naive\"\nstout-rho = 0.1\n", Refused("no fermion.0.stout-rho, but the input has 0.1")),
        (
            "\"naive\"\n",
            "\"naive\"\ntheta = [0.5, 0, 0, 0]\n",
            Refused("no fermion.0.theta, but the input has [0.5,0,0,0]"),
        ),
        (
            "\"naive\"\n",
            "\"naive\"\nbc-time = \"periodic\"\n",
            Refused("no fermion.0.bc-time, but the input has \"periodic\""),
        ),
        ("\"naive\"\n", "\"naive\"\nbc-time = \"antiperiodic\"\n", Nothing),
        ("\"naive\"\n", "\"staggered\"\n", Nothing),
        (
            "\"naive\"\n",
            "\"naive\"\nphases = \"lexicographic\"\n",
            Noted("fermion.0.phases = \"lexicographic\", previously not given"),
        ),
        ("\"naive\"\n", "\"naive\"\npseudofermions = 2\n", Noted("fermion.0.pseudofermions = 2, previously not given")),
        (
            "\"naive\"\n",
            "\"naive\"\ndynamics-error = 1e-6\n",
            Noted("fermion.0.dynamics-error = 1e-6, previously not given"),
        ),
        (
            "\"naive\"\n",
            "\"naive\"\ndynamics-tol = 1e-7\n",
            Noted("fermion.0.dynamics-tol = 1e-7, previously not given"),
        ),
        ("steps = 2\n", "steps = 3\n", Noted("trajectory.steps = 3 instead of 2")),
        ("steps = 2\n", "steps = 2\ngauge-steps = 2\n", Noted("trajectory.gauge-steps = 2, previously not given")),
        ("steps = 2\n", "steps = 2\nfriction = 0.3\n", Noted("trajectory.friction = 0.3, previously not given")),
        ("steps = 2\n", "steps = 2\nintegrator = \"omelyan\"\n", Nothing),
        (
            "steps = 2\n",
            "steps = 2\nunitarise = \"never\"\n",
            Noted("trajectory.unitarise = \"never\", previously not given"),
        ),
        ("length = 0.2\n", "", Noted("trajectory.length, previously 0.2, not given")),
        (
            "[measure]",
            "[precision]\ndynamics = \"double\"\n[measure]",
            Noted("precision.dynamics = \"double\", previously not given"),
        ),
        (
            "[measure]",
            "[precision]\npreset = \"A\"\n[measure]",
            Noted("precision.preset = \"A\", previously not given"),
        ),
        (
            "[measure]",
            "[precision]\naction-tol = 1e-11\n[measure]",
            Noted("precision.action-tol = 1e-11, previously not given"),
        ),
        ("seed = 11\n", "seed = 11\nthermalise = 1\n", Noted("thermalise = 1, previously not given")),
        ("seed = 11\n", "seed = 0xb\nsave-every = 3\nthreads = 1\ntuning = \"off\"\n", Nothing),
        (
            "condensate = 1\n",
            "condensate = 2\nevery = 5\nkernels = 0\nreversibility = 3\ncondensate-tol = 1e-7\n",
            Nothing,
        ),
    ];
    let last = "[[fermion]]\noperator = \"hisq\"\nnaik-epsilon = -0.1\nmass = [0.5]\nflavours = [1]\n";
    let without = [(last, "", Refused("[[fermion]] = 2 tables, but the input has 1 table"))];
    let wilson = [
        ("kappa = 0.12\n", "kappa = 0.121\n", Refused("fermion.0.kappa = 0.12, but the input has 0.121")),
        ("csw = 1.2\n", "csw = 1.3\n", Refused("fermion.0.csw = 1.2, but the input has 1.3")),
        ("csw = 1.2\n", "csw = 1.2\nu0 = 0.9\n", Refused("no fermion.0.u0, but the input has 0.9")),
        ("csw = 1.2\n", "csw = 1.2\nu0 = 1.0\n", Nothing),
        ("stout-rho = 0.1\n", "", Refused("fermion.0.stout-rho = 0.1, which the input does not give")),
        (
            "stout-rho = 0.1\n",
            "stout-rho = 0.1\nstout-levels = 2\n",
            Refused("no fermion.0.stout-levels, but the input has 2"),
        ),
        (
            "guesses = 3\n",
            "guesses = 3\nschur = \"asymmetric\"\n",
            Noted("fermion.0.schur = \"asymmetric\", previously not given"),
        ),
        ("guesses = 3\n", "", Noted("fermion.0.guesses, previously 3, not given")),
        (
            "guesses = 3\n",
            "guesses = 3\nmethod = \"bicgstab\"\n",
            Noted("fermion.0.method = \"bicgstab\", previously not given"),
        ),
        (
            "hasenbusch-kappa = [0.11]\n",
            "hasenbusch-mu = [0.3]\n",
            Noted(
                "fermion.0.hasenbusch-kappa, previously 0.11, not given; fermion.0.hasenbusch-mu = 0.3, previously not given",
            ),
        ),
        ("level = [0, 1]", "level = [0, 0]", Noted("fermion.0.level = [0,0] instead of [0,1]")),
        ("action-error = 1e-10", "action-error = 1e-11", Noted("fermion.1.action-error = 1e-11 instead of 1e-10")),
    ];
    let wilson_input = WILSON.replace("trajectories = 3", "trajectories = 1");
    for (input, table) in [(SMEARED, &smeared[..]), (SMEARED, &without), (&wilson_input, &wilson)] {
        let room = room(input);
        room.json("rhmc run.toml --out run");
        let before = fs::read(room.path("run/trajectories.jsonl")).unwrap();
        for (from, to, reported) in table {
            let edited = input.replacen(from, to, 1);
            assert_ne!(edited, input, "{from}");
            fs::write(room.path("edited.toml"), &edited).unwrap();
            let run = room.run("rhmc edited.toml --out run --resume --backend cpu");
            let (code, words) = match reported {
                Refused(words) => (2, format!("this run was made with {words}: restore the values of the run")),
                Noted(words) => (0, format!("from trajectory 2 on, settings differ from before: {words}\n")),
                Nothing => (0, String::new()),
            };
            assert!(run.stderr.contains(&words), "{to}: no '{words}' in {}", run.stderr);
            assert_eq!(run.code, Some(code), "{to}: {}", run.stderr);
            if matches!(reported, Nothing) {
                assert!(!run.stderr.contains("differ") && !run.stderr.contains("warning"), "{to}: {}", run.stderr);
            }
            assert_eq!(fs::read(room.path("run/trajectories.jsonl")).unwrap(), before, "{to}");
        }
    }
}
