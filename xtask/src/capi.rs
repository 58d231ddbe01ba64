//! `cargo xtask capi`: makes the libraries for C, and runs their examples.
//!
//! The crate becomes a static library first. Its symbols include those of Rust and, with CUDA, 354 names of the driver;
//! both libraries that programs link show only the names of the interface.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::packages::Packages;
use crate::process::{self, PROFILE, cargo};
use crate::{build_ptx, setup};

/// Help text of the command.
pub const CAPI_HELP: &str = "\
Make the libraries for C in target/capi, with GPU kernels: include/ferrite.h, lib/libferrite.so, lib/libferrite.a, and files for
pkg-config and CMake; and in its folder quda, the headers and libraries that offer QUDA's interface. A GPU's driver is loaded when a GPU is requested, so that no CUDA toolkit is needed.

Usage: cargo xtask capi [--mpi] [--prefix DIR]

  --mpi         support several processes with this machine's MPI library; programs pass their communicator
  --prefix DIR  copy the libraries, the header and the files for pkg-config and CMake into DIR
";

/// Library that is made of a crate.
struct Library {
    /// Name of the static library that cargo makes.
    archive: &'static str,
    /// Name of the library, without its ending.
    name: &'static str,
    /// Folder of the headers in the repository, and the header files. The first ones have the functions.
    headers: (&'static str, &'static [&'static str]),
    /// Folder of the results, within that of all libraries.
    folder: &'static str,
}

/// The C interface.
const FERRITE: Library = Library {
    archive: "libferrite_capi.a",
    name: "libferrite",
    headers: ("capi/include", &["ferrite.h", "ferrite.hpp", "ferrite.f90"]),
    folder: ".",
};
/// QUDA's interface, in a folder of its own.
const QUDA: Library = Library {
    archive: "libferrite_quda.a",
    name: "libferrite_quda",
    headers: (
        "quda/include",
        &["quda.h", "quda_milc_interface.h", "enum_quda.h", "quda_constants.h", "quda_define.h", "malloc_quda.h"],
    ),
    folder: "quda",
};
/// Example in one of the languages.
struct Example {
    file: &'static str,
    compiler: &'static str,
    options: &'static [&'static str],
    /// Module of Fortran that is compiled with the example.
    module: Option<&'static str>,
}
const EXAMPLES: [Example; 3] = [
    Example { file: "solve.c", compiler: "cc", options: &["-std=c11", "-Wall", "-Wextra", "-Werror"], module: None },
    Example {
        file: "pion.cpp",
        compiler: "c++",
        options: &["-std=c++20", "-Wall", "-Wextra", "-Werror"],
        module: None,
    },
    Example {
        file: "eigenvalue.f90",
        compiler: "gfortran",
        options: &["-std=f2018", "-Wall", "-Wno-c-binding-type"],
        module: Some("ferrite.f90"),
    },
];
/// Project that finds the libraries with CMake.
const CMAKE_PROJECT: &str = "\
cmake_minimum_required(VERSION 3.16)
project(solve C)
find_package(Ferrite 0.1 REQUIRED CONFIG)
add_executable(with-shared solve.c)
target_link_libraries(with-shared Ferrite::ferrite m)
add_executable(with-static solve.c)
target_link_libraries(with-static Ferrite::static)
find_package(QUDA REQUIRED CONFIG)
add_executable(calls calls.c)
target_link_libraries(calls QUDA::quda)
";

/// Runs the command.
pub fn run(args: &[String]) -> Result<()> {
    let mut args = args.to_vec();
    let mpi = process::take_flag(&mut args, "--mpi");
    let prefix = process::take_option(&mut args, "--prefix")?;
    process::expect_no_more(&args)?;
    let root = process::root()?;
    setup::run(&[])?;
    build_ptx::run(&[])?;
    let features: &[&str] = if mpi { &["--features", "ferrite-capi/mpi,ferrite-quda/mpi"] } else { &[] };
    let folder = process::target(&root).join("capi");
    let mut build = cargo(&root);
    build.args(["build", "--package", "ferrite-capi", "--package", "ferrite-quda", "--lib", "--release"]);
    process::run(build.args(features))?;
    clear(&folder)?;
    [FERRITE, QUDA].iter().try_for_each(|library| library.make(&root, &folder, "release", mpi))?;
    if let Some(prefix) = prefix {
        copy(&folder, Path::new(&prefix))?;
        println!("copied to {prefix}");
    }
    Ok(())
}

/// Makes the libraries as for the tests, checks their symbols, and compiles and runs the examples. Returns the reason if that was left out
/// because a compiler is missing.
pub fn check(root: &Path, workspace: &[&str], features: &[String]) -> Result<Option<String>> {
    let missing = setup::missing_compilers();
    if !missing.is_empty() {
        let why = format!("{} cannot be found; run `cargo xtask setup`", missing.join(", "));
        return if process::in_ci() { Err(anyhow!(why)) } else { Ok(Some(why)) };
    }
    let (folder, mpi) = (process::target(root).join("capi-check"), !features.is_empty());
    process::run(cargo(root).args(["build", "--lib"]).args(workspace).args(features))?;
    clear(&folder)?;
    [FERRITE, QUDA].iter().try_for_each(|library| library.make(root, &folder, PROFILE, mpi))?;
    let (include, lib) = (folder.join("include"), folder.join("lib"));
    for Example { file, compiler, options, module } in EXAMPLES {
        for library in ["libferrite.so", "libferrite.a"] {
            println!("--- {file} with {library}");
            let program = folder.join(file.replace('.', "-"));
            let mut compile = Command::new(compiler);
            compile.args(options).arg("-I").arg(&include).args(module.map(|name| include.join(name)));
            compile.arg(root.join("capi/examples").join(file)).arg(lib.join(library)).arg("-o").arg(&program);
            compile.args(system_libraries(mpi)).arg(format!("-Wl,-rpath,{}", lib.display()));
            process::run(compile.current_dir(&folder))?;
            process::run(Command::new(&program).current_dir(&folder))?;
        }
    }
    if mpi {
        println!("--- parallel.c with two processes");
        let program = folder.join("parallel");
        let mut compile = Command::new("mpicc");
        compile.args(EXAMPLES[0].options).arg("-I").arg(&include).arg(root.join("capi/examples/parallel.c"));
        compile.arg(lib.join("libferrite.so")).arg(format!("-Wl,-rpath,{}", lib.display())).args(system_libraries(mpi));
        process::run(compile.arg("-o").arg(&program))?;
        process::run(&mut parallel(&Command::new(&program)))?;
    }
    quda(root, &folder.join(QUDA.folder), mpi)?;
    println!("--- solve.c with CMake");
    let project = folder.join("cmake");
    fs::create_dir_all(&project).with_context(|| format!("{} cannot be created", project.display()))?;
    fs::copy(root.join("capi/examples/solve.c"), project.join("solve.c")).context("the example cannot be copied")?;
    fs::copy(root.join("quda/tests/calls.c"), project.join("calls.c")).context("the calls cannot be copied")?;
    fs::write(project.join("CMakeLists.txt"), CMAKE_PROJECT).context("the project cannot be written")?;
    let build = project.join("build");
    let mut configure = Command::new("cmake");
    let quda = folder.join(QUDA.folder);
    let prefixes = format!("-DCMAKE_PREFIX_PATH={};{}", folder.display(), quda.display());
    configure.arg("-S").arg(&project).arg("-B").arg(&build).arg(prefixes);
    process::capture(&mut configure)?;
    process::capture(Command::new("cmake").arg("--build").arg(&build))?;
    for program in ["with-shared", "with-static"] {
        process::run(&mut Command::new(build.join(program)))?;
    }
    process::capture(Command::new(build.join("calls")).arg("start"))?;
    println!("--- solve.c with pkg-config");
    let mut ask = Command::new("pkg-config");
    ask.args(["--cflags", "--libs", "ferrite"]).env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
    let (found, _) = process::capture(&mut ask)?;
    let mut compile = Command::new("cc");
    compile.arg(root.join("capi/examples/solve.c")).args(found.split_whitespace());
    process::run(compile.arg("-lm").arg("-o").arg(folder.join("solve")))?;
    process::run(Command::new(folder.join("solve")).env("LD_LIBRARY_PATH", &lib))?;
    Ok(None)
}

/// Returns a command that starts a program in two processes.
fn parallel(program: &Command) -> Command {
    let mut start = Command::new("mpirun");
    start.args(["--oversubscribe", "--bind-to", "none", "-n", "2"]).arg(program.get_program()).args(program.get_args());
    start.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // As root and in a container, too.
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_mpi_yield_when_idle"] {
        start.env(name, "1");
    }
    start.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    start
}

/// Returns the libraries of the system that the libraries need.
fn system_libraries(mpi: bool) -> Vec<&'static str> {
    let system = ["-lm", "-lpthread", "-ldl"];
    system.into_iter().chain(mpi.then_some("-lmpi")).collect()
}

/// Compiles a program against the headers of QUDA's interface, and checks its traces, its refusals and its thread.
fn quda(root: &Path, folder: &Path, mpi: bool) -> Result<()> {
    println!("--- calls.c with QUDA's interface");
    let (program, trace) = (folder.join("calls"), folder.join("trace"));
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(folder.join("include"));
    compile.arg(root.join("quda/tests/calls.c")).arg("-L").arg(folder.join("lib")).arg("-lquda");
    compile.arg(format!("-Wl,-rpath,{}", folder.join("lib").display())).args(system_libraries(mpi));
    process::run(compile.arg("-o").arg(&program))?;
    let expected: [(&str, i32, &[&str]); 3] = [
        (
            "start",
            0,
            &["test: Ferrite 0", "test:     dslash_type = QUDA_CLOVER_WILSON_DSLASH", "test:     offset[1] = 0.5"],
        ),
        ("refuse", 1, &["test: ferrite: qudaAsqtadForce: Ferrite does not offer this function"]),
        ("thread", 1, &["newQudaGaugeParam: called from another thread"]),
    ];
    for (mode, code, words) in expected {
        let output = Command::new(&program).arg(mode).env("FERRITE_QUDA_TRACE", &trace).output();
        let output = output.with_context(|| format!("{} cannot be started", program.display()))?;
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        if output.status.code() != Some(code) || words.iter().any(|words| !said.contains(words)) {
            bail!("calls {mode} ended with {} and wrote:\n{said}", output.status);
        }
    }
    let traced = fs::read_to_string(&trace).context("the trace cannot be read")?;
    let words = [
        "2 initQuda(device = -1)",
        "4 printQudaInvertParam(param = pointer)",
        "    dslash_type = QUDA_CLOVER_WILSON_DSLASH",
    ];
    if let Some(missing) = words.iter().find(|words| !traced.contains(*words)) {
        bail!("the trace does not have '{missing}':\n{traced}");
    }
    Ok(())
}

/// Version of PyQUDA that is built against the headers of QUDA's interface.
const PYQUDA: &str = "pyquda==0.10.54";

/// Scripts that use PyQUDA.
const SCRIPTS: [&str; 2] = ["pyquda_pion.py", "pyquda_calls.py"];

/// Builds PyQUDA against QUDA's interface as [`check`] made it, and runs scripts with it, and MILC's calls without it. Returns the reason if this was left out because
/// packages could not be installed.
pub fn pyquda(root: &Path, mpi: bool) -> Result<Option<String>> {
    match built_pyquda(root) {
        Ok((packages, built)) => {
            let refdata = root.join("../shared/refdata");
            if !refdata.is_dir() {
                println!("there are no reference data: pions are not compared with those of Chroma and MILC");
            }
            let folder = process::target(root);
            for name in SCRIPTS {
                let mut script = packages.python(&[&built])?;
                script.arg(root.join("quda/tests").join(name)).current_dir(&folder);
                process::run(script.args(refdata.is_dir().then_some(&refdata)))?;
            }
            println!("--- milc_calls.py");
            let library = process::target(root).join("capi-check").join(QUDA.folder).join("lib/libquda.so");
            process::run(packages.python(&[])?.arg(root.join("quda/tests/milc_calls.py")).arg(library))?;
            if mpi {
                println!("--- pyquda_ranks.py with one process, and with two");
                let (ranks, results) = (root.join("quda/tests/pyquda_ranks.py"), folder.join("pyquda-ranks.npz"));
                let one = packages.python(&[&built])?;
                let two = parallel(&one);
                for mut script in [one, two] {
                    process::run(script.arg(&ranks).arg(&results).current_dir(&folder))?;
                }
            }
            Ok(None)
        }
        Err(error) if process::in_ci() => Err(error.context("PyQUDA could not be built")),
        Err(error) => Ok(Some(format!("PyQUDA could not be built: {error:#}"))),
    }
}

/// Installs the packages that PyQUDA needs, and builds PyQUDA if the headers or its version have changed.
fn built_pyquda(root: &Path) -> Result<(Packages, PathBuf)> {
    let packages = Packages::get(root, "pyquda", "quda/requirements.txt", "what builds PyQUDA")?;
    let quda = process::target(root).join("capi-check").join(QUDA.folder);
    let (built, mut wanted) = (process::target(root).join("tools/pyquda-built"), format!("{PYQUDA}\n"));
    for name in QUDA.headers.1 {
        let path = quda.join("include").join(name);
        wanted += &fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    }
    let state = built.join("headers.txt");
    if !fs::read_to_string(&state).is_ok_and(|text| text == wanted) {
        clear(&built)?;
        let mut pip = packages.python(&[])?;
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-build-isolation",
        ]);
        pip.args(["--no-cache-dir", "--no-binary", "pyquda", "--target"]).arg(&built).arg(PYQUDA);
        process::run(pip.env("QUDA_PATH", &quda).env("PIP_ROOT_USER_ACTION", "ignore"))?;
        fs::write(&state, wanted).context("the state of PyQUDA cannot be written")?;
    }
    Ok((packages, built))
}

/// Removes what an earlier call has made.
fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    Ok(())
}

impl Library {
    /// Makes the library in `folder` from what cargo has built.
    fn make(&self, root: &Path, folder: &Path, profile: &str, mpi: bool) -> Result<()> {
        let archive = process::target(root).join(profile).join(self.archive);
        let folder = folder.join(self.folder);
        let (include, lib) = (folder.join("include"), folder.join("lib"));
        for folder in [&include, &lib] {
            fs::create_dir_all(folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        }
        let (source, headers) = self.headers;
        let mut names = Vec::new();
        for name in headers {
            let header = fs::read_to_string(root.join(source).join(name));
            let header = header.with_context(|| format!("{name} cannot be read"))?;
            fs::write(include.join(name), &header).with_context(|| format!("{name} cannot be written"))?;
            // malloc_quda.h has no functions of the library.
            if name.ends_with(".h") && !name.starts_with("malloc") {
                names.extend(functions(&header));
            }
        }
        self.shared(&archive, &lib, &names, mpi)?;
        self.stationary(&archive, &lib, &names)?;
        if self.folder == "." {
            descriptions(&lib, mpi)?;
        } else {
            // Applications look for QUDA under its name.
            for end in ["so", "a"] {
                let name = format!("libquda.{end}");
                symlink(format!("{}.{end}", self.name), lib.join(&name))
                    .with_context(|| format!("{name} cannot be linked"))?;
            }
            quda_for_cmake(&lib)?;
        }
        for (end, option) in [("so", "-D"), ("a", "-g")] {
            expect_names(&lib.join(format!("{}.{end}", self.name)), option, &names)?;
        }
        println!("{}: {} functions", folder.display(), names.len());
        Ok(())
    }

    /// Makes the shared library.
    fn shared(&self, archive: &Path, lib: &Path, names: &[String], mpi: bool) -> Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let major = version.split('.').next().unwrap_or(version);
        let script = lib.join("exports");
        let global = names.join("; ");
        fs::write(&script, format!("{{ global: {global}; local: *; }};\n")).context("the script cannot be written")?;
        let full = format!("{}.so.{version}", self.name);
        let short = format!("{}.so.{major}", self.name);
        let mut link = Command::new("cc");
        link.args(["-shared", "-Wl,--gc-sections", "-Wl,--strip-debug"]).args(undefined(names));
        link.arg(format!("-Wl,-soname,{short}")).arg(format!("-Wl,--version-script={}", script.display()));
        link.arg("-o").arg(lib.join(&full)).arg(archive).args(system_libraries(mpi));
        process::run(&mut link)?;
        fs::remove_file(&script).context("the script cannot be removed")?;
        for name in [short, format!("{}.so", self.name)] {
            symlink(&full, lib.join(&name)).with_context(|| format!("{name} cannot be linked"))?;
        }
        Ok(())
    }
    /// Makes the static library, of a single object whose other symbols are local.
    fn stationary(&self, archive: &Path, lib: &Path, names: &[String]) -> Result<()> {
        let (object, list) = (lib.join("joined.o"), lib.join("names"));
        let mut join = Command::new("cc");
        join.args(["-r", "-nostdlib", "-Wl,--strip-debug"]).args(undefined(names));
        process::run(join.arg("-o").arg(&object).arg(archive))?;
        fs::write(&list, names.join("\n")).context("the list of names cannot be written")?;
        // Rust's standard library brings its bitcode along, which only a linker of LLVM could use.
        let drop = ["--remove-section=.llvmbc", "--remove-section=.llvmcmd"];
        let keep = format!("--keep-global-symbols={}", list.display());
        process::run(Command::new("objcopy").args(drop).arg(keep).arg(&object))?;
        process::run(Command::new("ar").arg("rcs").arg(lib.join(format!("{}.a", self.name))).arg(&object))?;
        fs::remove_file(&list).context("the list of names cannot be removed")?;
        fs::remove_file(&object).context("the object cannot be removed")
    }
}

/// Returns the names of the functions in a header.
fn functions(header: &str) -> Vec<String> {
    let words = header.lines().filter(|line| !line.trim_start().starts_with("//")).filter_map(|line| {
        let before = line.split_once('(')?.0;
        let name = before.rsplit([' ', '*']).next()?;
        let is_declared = line.starts_with(|letter: char| letter.is_ascii_alphabetic()) && !line.starts_with("typedef");
        (is_declared && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')).then(|| name.to_string())
    });
    words.collect()
}

/// Returns the options by which a linker takes what the functions need from an archive.
fn undefined(names: &[String]) -> impl Iterator<Item = String> {
    names.iter().map(|name| format!("-Wl,-u,{name}"))
}

/// Writes the files for pkg-config and CMake, which find the libraries wherever the folder is.
fn descriptions(lib: &Path, mpi: bool) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let system = system_libraries(mpi).join(" ");
    let write = |folder: &str, name: &str, text: &str| {
        let folder = lib.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        fs::write(folder.join(name), text).with_context(|| format!("{name} cannot be written"))
    };
    let pkg_config = format!(
        "prefix=${{pcfiledir}}/../..\n\nName: Ferrite\nDescription: Lattice QCD on GPUs\nVersion: {version}\n\
         Cflags: -I${{prefix}}/include\nLibs: -L${{prefix}}/lib -lferrite\nLibs.private: {system}\n"
    );
    write("pkgconfig", "ferrite.pc", &pkg_config)?;
    let cmake = format!(
        "get_filename_component(FERRITE_PREFIX \"${{CMAKE_CURRENT_LIST_DIR}}/../../..\" ABSOLUTE)\n\
         if(NOT TARGET Ferrite::ferrite)\n  add_library(Ferrite::ferrite SHARED IMPORTED)\n  \
         set_target_properties(Ferrite::ferrite PROPERTIES\n    \
         IMPORTED_LOCATION \"${{FERRITE_PREFIX}}/lib/libferrite.so\"\n    \
         INTERFACE_INCLUDE_DIRECTORIES \"${{FERRITE_PREFIX}}/include\")\n  \
         add_library(Ferrite::static STATIC IMPORTED)\n  \
         set_target_properties(Ferrite::static PROPERTIES\n    \
         IMPORTED_LOCATION \"${{FERRITE_PREFIX}}/lib/libferrite.a\"\n    \
         INTERFACE_INCLUDE_DIRECTORIES \"${{FERRITE_PREFIX}}/include\"\n    \
         INTERFACE_LINK_LIBRARIES \"{}\")\nendif()\n",
        system.replace(' ', ";")
    );
    write("cmake/Ferrite", "FerriteConfig.cmake", &cmake)?;
    let checked = format!(
        "set(PACKAGE_VERSION {version})\nif(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n  \
         set(PACKAGE_VERSION_EXACT TRUE)\nendif()\nif(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n  \
         set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n"
    );
    write("cmake/Ferrite", "FerriteConfigVersion.cmake", &checked)
}

/// Writes the file with which `find_package(QUDA CONFIG)` of applications finds the library, as the target `QUDA::quda`.
fn quda_for_cmake(lib: &Path) -> Result<()> {
    let folder = lib.join("cmake/QUDA");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
    let text = "get_filename_component(QUDA_PREFIX \"${CMAKE_CURRENT_LIST_DIR}/../../..\" ABSOLUTE)\n\
                if(NOT TARGET QUDA::quda)\n  add_library(QUDA::quda SHARED IMPORTED)\n  \
                set_target_properties(QUDA::quda PROPERTIES\n    \
                IMPORTED_LOCATION \"${QUDA_PREFIX}/lib/libquda.so\"\n    \
                INTERFACE_INCLUDE_DIRECTORIES \"${QUDA_PREFIX}/include\")\nendif()\n";
    fs::write(folder.join("QUDAConfig.cmake"), text).context("QUDAConfig.cmake cannot be written")
}

/// Fails unless a library defines the functions and no other global symbol.
fn expect_names(library: &Path, option: &str, names: &[String]) -> Result<()> {
    let (found, _) = process::capture(Command::new("nm").args([option, "--defined-only"]).arg(library))?;
    let symbol = |line: &str| Some(line.split_whitespace().nth(2)?.to_string());
    let mut found: Vec<String> = found.lines().filter_map(symbol).collect();
    let mut names = names.to_vec();
    found.sort();
    names.sort();
    if found != names {
        let other = found.iter().filter(|name| !names.contains(name)).take(5).collect::<Vec<_>>();
        let missing = names.iter().filter(|name| !found.contains(name)).take(5).collect::<Vec<_>>();
        bail!("{}: symbols besides those of the header: {other:?}; missing: {missing:?}", library.display());
    }
    Ok(())
}

/// Copies a folder into another one, with its links.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("{} cannot be created", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("{} cannot be read", from.display()))? {
        let entry = entry?;
        let (source, target): (PathBuf, PathBuf) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&source, &target)?;
            continue;
        }
        if target.symlink_metadata().is_ok() {
            fs::remove_file(&target).with_context(|| format!("{} cannot be replaced", target.display()))?;
        }
        let failed = || format!("{} cannot be written", target.display());
        match kind.is_symlink() {
            true => symlink(fs::read_link(&source)?, &target).with_context(failed)?,
            false => fs::copy(&source, &target).map(drop).with_context(failed)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::functions;

    #[test]
    fn names_are_those_of_functions() {
        let header = "// fe_comment(x)\nuint32_t fe_abi(void);\nconst char *fe_message(void);\nint32_t fe_solve(const fe_operator *op,\n                 int x);\ntypedef struct fe_gauge fe_gauge;\n";
        assert_eq!(functions(header), ["fe_abi", "fe_message", "fe_solve"]);
    }
}
