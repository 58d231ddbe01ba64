//! Output files: which paths are refused, where the data goes, and what signals leave behind.
use crate::program::*;
use crate::trajectories::GAUGE;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Everything from the end of a NERSC header on: the header contains the time.
fn nersc_data(file: &[u8]) -> Vec<u8> {
    let end = b"END_HEADER\n";
    let at = file.windows(end.len()).position(|bytes| bytes == end).expect("a NERSC file");
    file[at..].to_vec()
}

/// Runs of a shell command in which `ferrite` is the program.
fn shell(room: &Room, line: &str) -> Run {
    let line = line.replace("ferrite ", &format!("'{}' ", ferrite().display()));
    Command::new("sh").args(["-c", &line]).current_dir(room.0.path()).output().unwrap().into()
}

fn temporaries(room: &Room) -> Vec<String> {
    room.files().into_iter().filter(|name| name.ends_with(".part")).collect()
}

/// No command replaces one of its inputs, by whatever name or link the output leads there, or one output by another.
#[test]
fn inputs_are_not_overwritten() {
    let room = Room::with_weak_field();
    let path = |name: &str| room.path(name);
    room.json("convert weak.ildg a.npy");
    room.json("apply --gauge weak.ildg --mass 0.1 --source random:1 -o b.npy");
    for (file, hard, link) in [("a.npy", "a.hard.npy", "a.link.npy"), ("b.npy", "b.hard.npy", "b.link.npy")] {
        fs::hard_link(path(file), path(hard)).unwrap();
        symlink(file, path(link)).unwrap();
    }
    let before = ["a.npy", "b.npy"].map(|name| fs::read(path(name)).unwrap());
    let fields = "--gauge a.npy --mass 0.1 --source file:b.npy --backend cpu";
    let parts = |output: &str| [format!("{output} is an input of this command"), "name another output file".into()];
    let refused = |command: &str, output: &str| {
        let parts = parts(output);
        room.fails(2, command, &[&parts[0], &parts[1]]);
    };
    for output in ["a.npy", "./a.npy", "a.hard.npy", "a.link.npy"] {
        for command in [
            "convert a.npy OUT --precision single",
            "fix-gauge a.npy -o OUT",
            "smear a.npy -o OUT --rho 0.1",
            "links asqtad a.npy OUT long.npy --u0 1",
            "links asqtad a.npy fat.npy OUT --u0 1",
            &format!("solve {fields} -o OUT"),
            &format!("apply {fields} -o OUT"),
            "generate quenched --lattice 4,4,4,8 --beta 6 --seed 1 --sweeps 1 --start a.npy -o OUT",
            "measure a.npy --output OUT",
        ] {
            refused(&command.replace("OUT", output), output);
        }
    }
    for output in ["b.npy", "b.hard.npy", "b.link.npy"] {
        refused(&format!("solve {fields} -o x.npy --save-source {output}"), output);
        refused(&format!("solve --gauge weak.ildg --mass 0.1 --source random:1 --guess b.npy -o {output}"), output);
    }
    // Data may also be appended to an input.
    let run = shell(&room, "ferrite convert a.npy /dev/fd/3 --format npy --backend cpu --text 3>> a.npy");
    assert!(run.code == Some(2) && run.stderr.contains("is an input of this command, a.npy"), "{}", run.stderr);
    room.fails(2, "links asqtad weak.ildg fat.npy ./fat.npy --u0 1", &["fat.npy and ./fat.npy are the same file"]);
    symlink("fat.npy", path("new.npy")).unwrap();
    room.fails(2, "links asqtad weak.ildg fat.npy new.npy --u0 1", &["fat.npy and new.npy are the same file"]);
    room.fails(2, &format!("solve {fields} -o x.npy --save-source ./x.npy"), &["different files"]);
    assert!(before == ["a.npy", "b.npy"].map(|name| fs::read(path(name)).unwrap()));
    // Other existing files are overwritten.
    room.json("convert weak.ildg b.npy");
}

/// An output whose name follows from a folder or from a chain does not overwrite an input.
#[test]
fn inputs_in_folders_are_not_overwritten() {
    let room = Room::new();
    let path = |name: &str| room.path(name);
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o start.ildg");
    // Sweeps 1 to 4 of a chain: its start may be none of them.
    fs::hard_link(path("start.ildg"), path("q.000003.ildg")).unwrap();
    symlink("q.000003.ildg", path("start.link.ildg")).unwrap();
    for start in ["start.ildg", "q.000003.ildg", "start.link.ildg"] {
        let chain =
            format!("generate quenched --lattice 4,4,4,4 --beta 6 --seed 1 --start {start} -o q.ildg --backend cpu");
        let parts = ["sweep 3 of -o q.ildg would replace q.000003.ildg, the initial links", "--first-sweep"];
        room.fails(2, &format!("{chain} --sweeps 4 --every 1"), &parts);
        room.fails(2, &format!("{chain} --thermalise 2 --sweeps 2"), &parts);
    }
    let chain = "generate quenched --lattice 4,4,4,4 --beta 6 --seed 1 --start q.000003.ildg --first-sweep 3";
    room.json(&format!("{chain} --sweeps 1 --every 1 -o q.ildg"));
    // An ensemble that starts from a file of its folder.
    fs::write(path("run.toml"), GAUGE).unwrap();
    fs::create_dir(path("run")).unwrap();
    fs::rename(path("start.ildg"), path("run/cfg.000001.ildg")).unwrap();
    let run = "rhmc run.toml --out run --set start=run/cfg.000001.ildg --backend cpu";
    room.fails(2, run, &["run/cfg.000001.ildg is an input of this command"]);
    // A spectrum, one of whose files is a configuration.
    fs::write(path("pion.toml"), room.run("init spectrum").stdout).unwrap();
    fs::create_dir(path("spectrum")).unwrap();
    fs::hard_link(path("q.000004.ildg"), path("spectrum/correlators.npy")).unwrap();
    let run = "spectrum pion.toml --set solve.mass=0.2 --out spectrum --backend cpu q.000004.ildg";
    room.fails(2, run, &["spectrum/correlators.npy is an input of this command, q.000004.ildg"]);
    // A report on a run.
    room.json("rhmc run.toml --out ensemble --set trajectories=1");
    let lines = fs::read(path("ensemble/trajectories.jsonl")).unwrap();
    symlink("ensemble/trajectories.jsonl", path("page.html")).unwrap();
    let parts = ["page.html is an input of this command, ensemble/trajectories.jsonl"];
    room.fails(2, "report ensemble -o page.html", &parts);
    assert!(fs::read(path("ensemble/trajectories.jsonl")).unwrap() == lines);
}

/// Symbolic links are followed, also to files that do not exist yet; modes and owners of files are kept.
#[test]
fn links_are_followed_and_modes_kept() {
    let room = Room::with_weak_field();
    let path = |name: &str| room.path(name);
    let is_link = |name: &str| fs::symlink_metadata(path(name)).unwrap().is_symlink();
    fs::create_dir(path("disk")).unwrap();
    symlink("disk/new.nersc", path("link.nersc")).unwrap();
    symlink(path("link.nersc"), path("chain.nersc")).unwrap();
    room.json("convert weak.ildg chain.nersc");
    assert!(is_link("link.nersc") && is_link("chain.nersc") && path("disk/new.nersc").is_file());
    let is_root = fs::metadata(path("disk")).unwrap().uid() == 0;
    for mode in [0o640, 0o604, 0o444] {
        let file = path("disk/new.nersc");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        if is_root {
            std::os::unix::fs::chown(&file, Some(12345), Some(23456)).unwrap();
        }
        let inode = fs::metadata(&file).unwrap().ino();
        room.json("convert weak.ildg link.nersc --precision single");
        let new = fs::metadata(&file).unwrap();
        assert!(is_link("link.nersc") && new.ino() != inode);
        assert_eq!(new.mode() & 0o7777, mode);
        assert!(!is_root || (new.uid(), new.gid()) == (12345, 23456));
    }
    assert_eq!(room.json("verify disk/new.nersc")["precision"], "single");
    // So do fields that are written one after the other, and texts.
    for (name, line) in [
        ("x.npy", "solve --gauge weak.ildg --mass 0.1 --source random:1 --source random:2 -o x.npy"),
        ("x.svg", "solve --gauge weak.ildg --mass 0.1 --source random:1 -o x.npy --plot x.svg"),
    ] {
        fs::write(path(&format!("disk/{name}")), "old").unwrap();
        fs::set_permissions(path(&format!("disk/{name}")), fs::Permissions::from_mode(0o640)).unwrap();
        symlink(format!("disk/{name}"), path(name)).unwrap();
        room.json(line);
        let new = fs::metadata(path(&format!("disk/{name}"))).unwrap();
        assert!(is_link(name) && new.len() > 3 && new.mode() & 0o7777 == 0o640, "{name}");
    }
    symlink("nowhere/new.nersc", path("lost.nersc")).unwrap();
    let parts = ["lost.nersc cannot be written: the folder nowhere does not exist"];
    room.fails(2, "convert weak.ildg lost.nersc", &parts);
    symlink("loop.nersc", path("loop.nersc")).unwrap();
    room.fails(2, "convert weak.ildg loop.nersc", &["loop.nersc cannot be written: the symbolic links form a loop"]);
    assert_eq!(temporaries(&room), Vec::<String>::new());
}

/// Pipes, devices and open files are written directly; nothing else is printed there.
#[test]
fn pipes_and_devices_are_written_directly() {
    let room = Room::with_weak_field();
    let path = |name: &str| room.path(name);
    room.json("convert weak.ildg whole.nersc");
    let whole = nersc_data(&fs::read(path("whole.nersc")).unwrap());
    for (target, redirect) in [
        ("/dev/stdout", "| cat > piped"),
        ("/dev/stdout", "> piped"),
        ("/dev/fd/1", "| cat > piped"),
        ("/dev/fd/3", "3> piped"),
        ("/proc/self/fd/3", "3> piped"),
        ("/dev/stdout", "--json | cat > piped"),
    ] {
        let run = shell(&room, &format!("ferrite convert weak.ildg {target} --format nersc --backend cpu {redirect}"));
        assert_eq!(run.code, Some(0), "{target} {redirect}: {}", run.stderr);
        let piped = fs::read(path("piped")).unwrap();
        assert!(piped.starts_with(b"BEGIN_HEADER") && nersc_data(&piped) == whole, "{target} {redirect}");
        assert_eq!(redirect.contains("--json"), run.stderr.contains("ferrite.convert/1"), "{}", run.stderr);
        fs::remove_file(path("piped")).unwrap();
    }
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
    // Standard output keeps what was there before.
    let run = shell(&room, "(echo before; ferrite convert weak.ildg /dev/stdout --format nersc --backend cpu) > piped");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(fs::read(path("piped")).unwrap().starts_with(b"before\nBEGIN_HEADER"));
    // Named pipes: of links, of several right-hand sides, and of a picture.
    let reader = |name: &str| {
        let fifo = path(name);
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        std::thread::spawn(move || fs::read(fifo).unwrap())
    };
    let read = reader("links.nersc");
    room.json("convert weak.ildg links.nersc");
    assert!(nersc_data(&read.join().unwrap()) == whole);
    let both = "--gauge weak.ildg --mass 0.1 --source random:1 --source random:2";
    room.json(&format!("apply {both} -o image.npy"));
    let read = reader("x.npy");
    room.json(&format!("apply {both} -o x.npy"));
    assert!(read.join().unwrap() == fs::read(path("image.npy")).unwrap());
    let read = reader("plot.svg");
    room.json("solve --gauge weak.ildg --mass 0.1 --source random:1 --plot plot.svg");
    assert!(read.join().unwrap().starts_with(b"<svg"));
    for name in ["links.nersc", "x.npy", "plot.svg"] {
        assert!(!fs::symlink_metadata(path(name)).unwrap().is_file(), "{name}");
    }
    // Several numbered files and lines that are read again need a file.
    let chain = "generate quenched --lattice 4,4,4,4 --beta 6 --seed 1 --sweeps 2 --every 1 -o links.nersc";
    room.fails(2, chain, &["--every writes several files, but links.nersc is a pipe or a device"]);
    room.fails(2, "measure weak.ildg -o x.npy --backend cpu", &["x.npy is not a regular file"]);
    room.json("convert weak.ildg /dev/null --format npy");
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    if Path::new("/dev/full").exists() {
        room.fails(1, "convert weak.ildg /dev/full --format npy", &["/dev/full: cannot write: No space left"]);
    }
    assert_eq!(temporaries(&room), Vec::<String>::new());
}

/// A signal while a file is being written removes it.
#[test]
fn signals_leave_no_temporary_file() {
    let room = Room::new();
    room.json("generate unit --lattice 16,16,16,16 -o a.npy");
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut stopped = false;
        for _ in 0..20 {
            let mut child = room.command("convert a.npy b.npy --threads 1 --backend cpu");
            let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            while temporaries(&room).is_empty() && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            let kill = format!("kill -{signal} {}", child.id());
            let _ = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status().unwrap();
            let run: Run = child.wait_with_output().unwrap().into();
            assert_eq!(temporaries(&room), Vec::<String>::new(), "{signal}");
            // It may have been done before.
            if run.code != Some(0) {
                assert_eq!(run.code, Some(code), "{}", run.stderr);
                let message = format!("error: stopped by SIG{signal}; unfinished files were removed");
                assert!(run.stderr.contains(&message), "{}", run.stderr);
                stopped = true;
                break;
            }
        }
        assert!(stopped, "no command was stopped by {signal} while it wrote");
    }
}

/// The first signal stops a quenched chain after its sweep, and its configuration is kept; the second one ends it at once.
#[test]
fn signals_stop_a_quenched_chain() {
    let room = Room::new();
    let chain = "generate quenched --lattice 4,4,4,4 --beta 6 --seed 1 --backend cpu --threads 1 -v -o q.ildg";
    let spawn = |more: &str| {
        let mut command = room.command(&format!("{chain} {more}"));
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut child = spawn("--sweeps 100000");
        let said = until_signals_are_polled(&mut child);
        send(signal, child.id());
        assert_eq!(child.wait().unwrap().code(), Some(code));
        let said = said.join().unwrap();
        let sweep = said.split_once("error: interrupted after sweep ").and_then(|(_, rest)| rest.split(';').next());
        let file = format!("q.{:06}.ildg", sweep.and_then(|sweep| sweep.parse::<u32>().ok()).expect(&said));
        assert!(said.contains(&format!("resume with --start {file} --first-sweep ")), "{said}");
        assert_eq!(room.files(), [file.as_str()]);
        room.json(&format!("verify {file}"));
        fs::remove_file(room.path(&file)).unwrap();
    }
    // A sweep that takes minutes.
    let mut child = spawn("--sweeps 2 --overrelax 10000000");
    let said = until_signals_are_polled(&mut child);
    let begin = Instant::now();
    let ended = loop {
        send("TERM", child.id());
        std::thread::sleep(Duration::from_millis(50));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the second signal does not end the program");
    };
    assert_eq!(ended.code(), Some(143), "{}", said.join().unwrap());
    assert_eq!(room.files(), Vec::<String>::new());
}

/// Manual pages are written like all files: completely or not at all, and through links.
#[test]
fn manual_pages_are_written_like_other_files() {
    let room = Room::new();
    fs::create_dir(room.path("man1")).unwrap();
    let page: PathBuf = room.path("page");
    fs::write(&page, "old").unwrap();
    symlink(&page, room.path("man1/ferrite.1")).unwrap();
    // The disk is full: no file may be longer than 1 KiB.
    let run = shell(&room, "trap '' XFSZ; ulimit -f 2; ferrite man man1 --text");
    assert!(run.code == Some(1) && run.stderr.contains("cannot write"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(&page).unwrap(), "old");
    assert_eq!(fs::read_dir(room.path("man1")).unwrap().count(), 1);
    room.json("man man1");
    assert!(fs::read_to_string(page).unwrap().contains(".TH"));
    assert!(fs::symlink_metadata(room.path("man1/ferrite.1")).unwrap().is_symlink());
}
