//! The program's commands for files: what they write, refuse and leave as it was.

use crate::program::*;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_same_seed_gives_the_same_file() {
    let room = Room::new();
    for (name, threads) in [("a.npy", 1), ("b.npy", 2)] {
        room.json(&format!("generate random --lattice 4,4,4,8 --seed 3 --threads {threads} -o {name}"));
    }
    assert_eq!(fs::read(room.path("a.npy")).unwrap(), fs::read(room.path("b.npy")).unwrap());
    room.json("generate random --lattice 4,4,4,8 --seed 4 -o c.npy");
    assert_ne!(fs::read(room.path("a.npy")).unwrap(), fs::read(room.path("c.npy")).unwrap());
}

#[test]
fn plaquettes() {
    let room = Room::with_weak_field();
    let weak = room.json("plaquette weak.ildg");
    assert_eq!(weak["schema"], "ferrite.plaquette/1");
    let mean = weak["plaquette"]["mean"].as_f64().unwrap();
    let parts = weak["plaquette"]["spatial"].as_f64().unwrap() + weak["plaquette"]["temporal"].as_f64().unwrap();
    assert!((0.85..0.95).contains(&mean) && (mean - parts / 2.0).abs() < 1e-14, "{weak}");
    assert!(weak["unitarity_violation"].as_f64().unwrap() < 1e-13);
    // The host's own sum, when the file was verified, agrees with the device's.
    let verified = room.json("verify weak.ildg");
    assert!((verified["plaquette"]["mean"].as_f64().unwrap() - mean).abs() < 1e-13);
    assert_eq!(verified["checksum"]["status"], "verified");
    assert_eq!(verified["ok"], true);

    room.json("generate unit --lattice 2,4,6,8 -o unit.nersc");
    let unit = room.json("plaquette unit.nersc");
    assert_eq!((unit["plaquette"]["mean"].as_f64(), unit["link_trace"].as_f64()), (Some(1.0), Some(1.0)));
    assert!(room.run("plaquette unit.nersc --backend cpu").stdout.contains("2×4×6×8"));
}

#[test]
fn conversions_keep_the_links() {
    let room = Room::with_weak_field();
    let mean = |file: &str| room.json(&format!("plaquette {file}"))["plaquette"]["mean"].as_f64().unwrap();
    let original = mean("weak.ildg");
    for format in ["nersc", "nersc3x3", "scidac", "milc", "openqcd", "npy", "ildg"] {
        let report = room.json(&format!("convert weak.ildg copy.{format}"));
        assert_eq!(report["format"], format);
        // MILC stores single precision only, and the program chooses that.
        let tolerance = if format == "milc" { 1e-6 } else { 1e-13 };
        assert!((mean(&format!("copy.{format}")) - original).abs() < tolerance, "{format}");
        if format == "openqcd" {
            let parts = ["openQCD's files hold double precision"];
            room.fails(2, "convert copy.openqcd single.openqcd --precision single", &parts);
            continue;
        }
        room.json(&format!("convert copy.{format} single.dat --format {format} --precision single"));
        assert!((mean("single.dat") - original).abs() < 1e-6, "{format} in single precision");
    }
    room.json("convert copy.npy back.ildg");
    room.json("convert back.ildg back.npy");
    assert_eq!(fs::read(room.path("copy.npy")).unwrap(), fs::read(room.path("back.npy")).unwrap());
    // Spinors.
    room.json("solve --gauge weak.ildg --mass 0.1 --source point:0,0,0,0,0,0 -o x.lime");
    room.json("convert x.lime x.npy");
    room.json("convert x.npy y.scidac");
    assert_eq!(room.json("verify y.scidac")["field"], "spinor");
    room.fails(2, "convert x.lime x.nersc", &["x.nersc", ".npy or .lime"]);
    // What a format cannot hold is refused before the work: these sweeps would take days.
    let parts = ["--precision double: MILC files hold single precision"];
    room.fails(2, "convert weak.ildg double.milc --precision double", &parts);
    let sweeps = "--lattice 8,8,8,8 --beta 6 --seed 1 --sweeps 10000000";
    room.fails(2, &format!("generate quenched {sweeps} --precision double -o double.milc"), &parts);
    room.fails(2, "convert x.lime x.dat --format nersc", &["x.lime holds a spinor field"]);
}

#[test]
fn files_that_are_not_right() {
    let room = Room::with_weak_field();
    let write = |name: &str, bytes: &[u8]| fs::write(room.path(name), bytes).unwrap();
    for format in ["ildg", "nersc", "milc", "npy"] {
        room.json(&format!("convert weak.ildg good.{format}"));
        let good = fs::read(room.path(&format!("good.{format}"))).unwrap();
        write("bad", &good[..good.len() - 1000]);
        room.fails(2, "plaquette bad", &["bad: ", "cut short"]);
        room.fails(1, "verify bad", &["bad: ", "cut short"]);
        write("bad", &good[..7]);
        room.fails(2, "plaquette bad", &["bad: "]);
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 0x10;
        write("bad", &bad);
        room.fails(2, "plaquette bad", &["bad: ", "corrupt"]);
        room.fails(2, "solve --gauge bad --mass 0 --source random:1", &["bad: ", "corrupt"]);
        let report = object(&room.fails(1, "verify bad --json", &["bad: "]));
        assert_eq!((&report["schema"], &report["ok"]), (&"ferrite.verify/1".into(), &Value::Bool(false)));
        bad = good.clone();
        bad[0] ^= 0xff;
        write("bad", &bad);
        room.fails(2, "plaquette bad", &["bad: starts with the bytes"]);
        bad = good.clone();
        bad.extend([0; 64]);
        write("bad", &bad);
        if format != "ildg" {
            room.fails(2, "plaquette bad", &["bad: ", "64 bytes follow"]);
        }
    }
    write("bad", b"");
    room.fails(2, "plaquette bad", &["bad: "]);
    room.fails(2, "plaquette absent", &["absent: cannot open"]);
    room.fails(2, "verify absent", &["absent: cannot open"]);
    room.fails(2, "plaquette .", &[".: "]);
    room.fails(2, "plaquette weak.ildg --lattice 8,8,8,8", &["[8, 8, 8, 8]", "[4, 4, 4, 8]"]);
    // Numbers that are none, and links that are not unitary, in a file without checksum.
    let good = fs::read(room.path("good.npy")).unwrap();
    let big_endian = String::from_utf8_lossy(&good[..80]).contains(">c16");
    let bytes = |x: f64| if big_endian { x.to_be_bytes() } else { x.to_le_bytes() };
    for (x, part) in [(f64::NAN, "not finite"), (f64::INFINITY, "not finite"), (1e300, "SU(3)"), (1.5, "SU(3)")] {
        let mut bad = good.clone();
        let at = bad.len() - 16;
        bad[at..at + 8].copy_from_slice(&bytes(x));
        write("bad.npy", &bad);
        room.fails(2, "plaquette bad.npy", &["bad.npy: link U_t at site (x, y, z, t) = [3, 3, 3, 7]", part]);
    }
    // No projection knows what a link of zeros was.
    let mut bad = good.clone();
    let at = bad.len() - 144;
    bad[at..].fill(0);
    write("zero.npy", &bad);
    room.json("plaquette zero.npy --allow-non-unitary");
    let parts = ["zero.npy: link U_t at site (x, y, z, t) = [3, 3, 3, 7] cannot be projected to SU(3)"];
    room.fails(2, "plaquette zero.npy --allow-non-unitary --reunitarise", &parts);
    // Slightly off: recon 12 asked for is refused, by default 18 is chosen, and --reunitarise mends.
    let mut bad = good.clone();
    let at = bad.len() - 16;
    let old = if big_endian {
        f64::from_be_bytes(bad[at..at + 8].try_into().unwrap())
    } else {
        f64::from_le_bytes(bad[at..at + 8].try_into().unwrap())
    };
    bad[at..at + 8].copy_from_slice(&bytes(old + 1e-7));
    write("off.npy", &bad);
    let solve = "solve --gauge off.npy --mass 0.1 --source random:1 --precision double --backend cpu";
    room.fails(2, &format!("{solve} --reconstruct 12"), &["off.npy", "deviate from SU(3)", "--reconstruct 18"]);
    assert_eq!(room.json(&solve.replace(" --backend cpu", ""))["reconstruct"], "18");
    assert_eq!(room.json("solve --gauge off.npy --mass 0.1 --source random:1 --reunitarise")["reconstruct"], "12");
    // Spinor files.
    room.json("solve --gauge weak.ildg --mass 0.1 --source random:1 --source random:2 --save-source b.npy");
    let block = fs::read(room.path("b.npy")).unwrap();
    write("cut.npy", &block[..block.len() - 8]);
    room.fails(2, "solve --gauge weak.ildg --mass 0.1 --source file:cut.npy", &["cut.npy", "cut short"]);
    room.json("generate unit --lattice 4,4,4,4 -o unit.ildg");
    room.fails(2, "solve --gauge unit.ildg --mass 0.1 --source file:b.npy", &["b.npy", "4×4×4×8", "4×4×4×4"]);
}

#[test]
fn reference_files_are_refused_with_a_reason() {
    let Some(folder) = ferrite_tests::refdata::folder() else { return };
    let file = folder.join("configs/lat.sample.5p7");
    let room = Room::new();
    room.fails(2, &format!("plaquette {}", file.display()), &["lat.sample.5p7: ", "checksum", "--no-verify"]);
    room.fails(1, &format!("verify {}", file.display()), &["checksum"]);
    let plaquette = room.json(&format!("plaquette {}", folder.join("configs/lat.sample.l4444").display()));
    assert!(plaquette["plaquette"]["mean"].as_f64().unwrap() > 0.0);
}

#[test]
fn nothing_is_half_written() {
    let room = Room::with_weak_field();
    let device = Path::new("/dev/full");
    if device.exists() {
        room.fails(2, "generate unit --lattice 4,4,4,4 -o /dev/full --json", &["/dev/full"]);
        assert!(!device.is_file(), "the device is still one");
        let full = fs::OpenOptions::new().write(true).open(device).unwrap();
        let run: Run = room.command("plaquette weak.ildg --backend cpu").stdout(full).output().unwrap().into();
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(run.stderr.contains("standard output"));
    }
    // A full disk: files of this process may have 64 KiB at most.
    #[cfg(unix)]
    for line in [
        "generate unit --lattice 8,8,8,8 -o weak.ildg",
        "convert weak.ildg big.npy",
        "solve --gauge weak.ildg --mass 0.1 --source random:1 -o x.npy --backend cpu",
        "solve --gauge weak.ildg --mass 0.1 --source random:1 --save-source x.lime --backend cpu",
        "apply --gauge weak.ildg --mass 0.1 --source random:1 --source random:2 -o x.npy --backend cpu",
    ] {
        let before = fs::read(room.path("weak.ildg")).unwrap();
        let script = format!("trap '' XFSZ; ulimit -f 64; exec {} {line}", ferrite().display());
        let run: Run = Command::new("sh").args(["-c", &script]).current_dir(room.0.path()).output().unwrap().into();
        assert_eq!(run.code, Some(1), "{line}: {}", run.stderr);
        let reported = ["cannot write", "cannot make room"].iter().any(|what| run.stderr.contains(what));
        assert!(reported, "{line}: {}", run.stderr);
        assert_eq!(room.files(), ["weak.ildg"], "{line}");
        assert!(fs::read(room.path("weak.ildg")).unwrap() == before, "{line}");
    }
    // A folder that cannot be written; root may write everywhere.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let folder = room.path("closed");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
        if fs::write(folder.join("probe"), "").is_err() {
            room.fails(2, "convert weak.ildg closed/a.npy", &["closed/a.npy cannot be written"]);
        } else {
            eprintln!("skipped: this user may write everywhere");
        }
    }
    room.fails(2, "convert weak.ildg weak.ildg/a.npy", &["weak.ildg/a.npy"]);
}

/// Lines of configurations that are done stay, the last one too where it lacks nothing but its end, as after an editor; a part of a
/// line does not.
#[test]
fn whole_last_lines_are_kept() {
    let room = Room::with_weak_field();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 8 -o other.ildg");
    for command in ["measure", "trace --mass 0.5 --noise 1"] {
        let run = |files: &str| {
            let words: Vec<_> = command.splitn(2, ' ').collect();
            let run = room.run(&format!("{} {files} {} -o lines.jsonl --backend cpu", words[0], words[1..].concat()));
            assert_eq!(run.code, Some(0), "{command}: {}", run.stderr);
            run.stderr
        };
        let path = room.path("lines.jsonl");
        run("weak.ildg");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let said = run("weak.ildg");
        assert!(said.contains("weak.ildg: already done") && said.contains("the last line had no newline"), "{said}");
        assert!(fs::read(&path).unwrap() == whole, "{command}");
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        run("weak.ildg other.ildg");
        let both = fs::read(&path).unwrap();
        assert!(both.starts_with(&whole) && both.iter().filter(|byte| **byte == b'\n').count() == 2, "{command}");
        fs::write(&path, &both[..both.len() - 2]).unwrap();
        let said = run("weak.ildg");
        assert!(said.contains("warning: lines.jsonl: an incomplete last line was removed"), "{said}");
        assert!(fs::read(&path).unwrap() == whole, "{command}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn quenched_chains_go_on_where_they_stopped() {
    let room = Room::new();
    let chain = "generate quenched --lattice 4,4,4,4 --beta 5.9 --overrelax 2 --seed 3";
    let whole = room.json(&format!("{chain} --thermalise 2 --sweeps 6 --every 3 -o q.ildg"));
    assert_eq!(whole["files"], serde_json::json!(["q.000005.ildg", "q.000008.ildg"]));
    assert_eq!(whole["quenched"]["last_sweep"], 8);
    assert!(whole["plaquette"]["error"].as_f64().is_some_and(|error| error > 0.0), "{whole}");
    // The last sweep is kept, whatever the steps are.
    for (sweeps, every, files) in [(3, 2, vec!["e.000002.ildg", "e.000003.ildg"]), (1, 9, vec!["e.000001.ildg"])] {
        let made = room.json(&format!("{chain} --sweeps {sweeps} --every {every} -o e.ildg"));
        assert_eq!(made["files"], serde_json::json!(files));
        assert!(files.iter().all(|file| room.path(file).is_file()));
    }
    let rest = room.json(&format!("{chain} --start q.000005.ildg --first-sweep 5 --sweeps 3 -o r.ildg"));
    assert_eq!(rest["plaquette"]["mean"], whole["plaquette"]["mean"]);
    // Files of ILDG know when they were written.
    let [rest, whole_again] = ["r", "q.000008"].map(|name| {
        room.json(&format!("convert {name}.ildg {name}.npy"));
        fs::read(room.path(&format!("{name}.npy"))).unwrap()
    });
    assert!(rest == whole_again);
    let other = room.json(&format!("{chain} --start q.000005.ildg --sweeps 3 -o s.ildg"));
    assert_ne!(other["plaquette"]["mean"], whole["plaquette"]["mean"]);
    assert!(room.json("plaquette r.ildg")["unitarity_violation"].as_f64().unwrap() < 1e-14);
    room.fails(2, "generate unit --lattice 4,4,4,4 --beta 6 -o u.ildg", &["--beta", "quenched"]);
    room.fails(2, "generate quenched --lattice 4,4,4,4 --seed 1 -o u.ildg", &["--beta", "--sweeps"]);
    room.fails(2, &format!("{chain} --sweeps 2 --every 0 -o u.ildg"), &["--every"]);
    room.fails(2, "generate quenched --lattice 4,4,4,4 --seed 1 --sweeps 2 --beta -1 -o u.ildg", &["--beta"]);
    room.fails(2, &format!("{chain} --sweeps 2 --start hot --first-sweep 3 -o u.ildg"), &["--first-sweep"]);
    room.fails(2, &format!("{chain} --sweeps 2 --start nothere.ildg -o u.ildg"), &["nothere.ildg"]);
    room.json("generate unit --lattice 2,2,2,2 -o small.ildg");
    room.fails(2, &format!("{chain} --sweeps 2 --start small.ildg -o u.ildg"), &["2×2×2×2", "4×4×4×4"]);
}

/// Differences from the header that are accepted are reported as differences.
#[test]
fn verify_says_what_differs() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o good.nersc");
    let good = fs::read(room.path("good.nersc")).unwrap();
    let (header, data) = good.split_at(good.windows(11).position(|w| w == b"END_HEADER\n").unwrap());
    let text = String::from_utf8(header.into()).unwrap();
    let with = |key: &str, value: &str| {
        let lines = text.lines().map(|line| match line.split_once(" = ") {
            Some((its, _)) if its == key => format!("{key} = {value}\n"),
            _ => format!("{line}\n"),
        });
        fs::write(room.path("bad.nersc"), [lines.collect::<String>().as_bytes(), data].concat()).unwrap();
    };
    let good = room.json("verify good.nersc");
    assert_eq!((&good["differs"], &good["notes"]), (&serde_json::json!([]), &serde_json::json!([])));
    for (key, value, name, line) in [
        ("PLAQUETTE", "0.25", "plaquette", "differs from 0.25 in the header; accepted"),
        ("LINK_TRACE", "0.25", "link trace", "differs from 0.25 in the header; accepted"),
        ("CHECKSUM", "1234abcd", "checksum", "NERSC checksum does not match (accepted)"),
    ] {
        with(key, value);
        room.fails(1, "verify bad.nersc", &["bad.nersc: ", "--no-verify"]);
        assert_eq!(room.json("verify bad.nersc --no-verify")["differs"], serde_json::json!([name]));
        let said = room.run("verify bad.nersc --no-verify").stdout;
        assert!(said.contains(line) && !said.contains("in order"), "{said}");
        // Commands that read the file report it, too.
        let noted = room.run("plaquette bad.nersc --no-verify").stderr;
        assert!(noted.contains("note: bad.nersc: the "), "{noted}");
    }
    with("PLAQUETTE", "unknown");
    room.fails(2, "plaquette bad.nersc", &["PLAQUETTE is \"unknown\", expected a number", "(--no-verify)"]);
    let said = room.run("verify bad.nersc --no-verify").stdout;
    assert!(said.contains("PLAQUETTE is \"unknown\", expected a number; the value is ignored"), "{said}");
    // One of several fields.
    room.json("convert good.nersc one.lime");
    let one = fs::read(room.path("one.lime")).unwrap();
    fs::write(room.path("two.lime"), [&one[..], &one].concat()).unwrap();
    let said = room.run("verify two.lime --record 1").stdout;
    assert!(said.contains("fields               2, numbered 0 to 1; field 1 was read"), "{said}");
    let noted = room.run("plaquette two.lime").stderr;
    assert!(noted.contains("two.lime: the file holds 2 fields; the first one is read"), "{noted}");
}

/// Copies have the metadata of the original, and the command lists what it could not copy.
#[test]
fn conversions_copy_metadata() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o a.nersc");
    let text = fs::read(room.path("a.nersc")).unwrap();
    let at = text.windows(11).position(|w| w == b"ENSEMBLE_ID").unwrap();
    let line = text[at..].iter().position(|&b| b == b'\n').unwrap();
    fs::write(room.path("b.nersc"), [&text[..at], b"ENSEMBLE_ID = b600", &text[at + line..]].concat()).unwrap();
    for (from, to) in [("b.nersc", "c.ildg"), ("c.ildg", "d.nersc3x3"), ("d.nersc3x3", "e.lime")] {
        let report = room.json(&format!("convert {from} {to}"));
        assert_eq!(report["left_out"], serde_json::json!([]), "{to}");
        let copy = String::from_utf8_lossy(&fs::read(room.path(to)).unwrap()).into_owned();
        assert!(copy.contains("ENSEMBLE_ID = b600"), "{to}");
        assert!(copy.contains(", from b.nersc") && copy.contains(&format!(", from {from}")), "{to}");
    }
    let run = room.run("convert e.lime f.npy");
    assert!(run.stderr.contains("e.lime: some metadata were not copied to f.npy (NumPy): "), "{}", run.stderr);
    assert!(run.stderr.contains("ENSEMBLE_ID"), "{}", run.stderr);
    // A wrong plaquette is not copied, so that the copy verifies.
    let mut record = vec![0; 144 + 16];
    record[..6].copy_from_slice(&[0x45, 0x67, 0x89, 0xab, 0, 1]);
    (record[6], record[15]) = (0xc0, 16);
    record[16..24].copy_from_slice(b"xlf-info");
    record[144..].copy_from_slice(b"plaquette = 0.5\n");
    fs::write(room.path("off.lime"), [fs::read(room.path("e.lime")).unwrap(), record].concat()).unwrap();
    room.fails(1, "verify off.lime", &["plaquette of the links is", "the header has 0.5"]);
    let report = room.json("convert off.lime mended.lime --no-verify");
    assert_eq!(
        report["left_out"],
        serde_json::json!(["the plaquette in xlf-info, because the plaquette of the copy differs"])
    );
    room.json("verify mended.lime");
}
