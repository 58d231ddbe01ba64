//! A folder of its own for what the program reads and writes, and the program.
use ferrite_cli::ferrite;
use std::ffi::OsString;
use std::path::PathBuf;

/// A folder that lasts as long as the process.
pub struct Room(PathBuf);

#[allow(dead_code, reason = "each target uses a part")]
impl Room {
    /// With a configuration of unit links on 4⁴ sites, `u.ildg`, and as the current folder, so that inputs may name what is
    /// in it.
    pub fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("ferrite-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder of temporary files can be written");
        std::env::set_current_dir(&folder).expect("a folder that was just made");
        let room = Room(folder);
        room.run("generate unit --lattice 4,4,4,4 -o u.ildg");
        assert!(room.0.join("u.ildg").is_file(), "the program makes a configuration");
        room
    }
    /// Writes a file, with the folder that it is in.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.0.join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("the folder of temporary files can be written");
        }
        std::fs::write(path, bytes).expect("the folder of temporary files can be written");
    }
    /// Removes a folder, if it is there.
    pub fn clear(&self, name: &str) {
        let _ = std::fs::remove_dir_all(self.0.join(name));
    }
    /// Does what the words of a command line say. How it ends does not matter, as long as it is no panic.
    pub fn run(&self, line: &str) {
        let flags = ["--backend", "cpu", "--threads", "1", "--quiet"];
        let words = std::iter::once("ferrite").chain(line.split(' ')).chain(flags);
        ferrite(words.map(OsString::from));
    }
}
