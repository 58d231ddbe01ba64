//! Command `ferrite info`.
use super::{Context, Outcome, count, provenance};
use ferrite::backend::tuning::cache::TuneCache;
use ferrite::backend::tuning::{Mode, Tuning};
use ferrite::backend::{Architecture, CodeForm, Cpu, KernelImage, foreign_kernels, kernel_images};
use ferrite_records::program::{DriverRecord, GpuRecord, InfoRecord, KernelModule, TuningFile};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Prints the devices, drivers, kernels and versions that the program can use. Works without a GPU driver.
pub fn run(context: &Context) -> Outcome {
    let choice = context.device_choice()?;
    let threads = choice.start_threads(&context.comm)?;
    if context.comm.size() > 1 {
        // Opening the devices also reports if a GPU is not used, or if processes have few cores.
        choice.open_silently(&context.comm)?;
    }
    let cpu = Cpu::new(threads);
    let kernels = kernel_images();
    let (tuning, cache, tuning_text) = tuning(choice.tuning);
    let (driver, devices, gpu_text) = gpus(&cache);
    let (features, target) = (provenance::features(), provenance::target());
    let record = InfoRecord {
        features: features.iter().map(ToString::to_string).collect(),
        target: target.clone(),
        processes: context.comm.size(),
        threads: cpu.threads(),
        instructions: cpu.instructions().into(),
        kernels: kernels.iter().map(kernel).collect(),
        driver,
        devices,
        tuning,
    };
    context.output.record(&record, || {
        let mut text = String::new();
        let features = if features.is_empty() { "none".into() } else { features.join(", ") };
        let _ = writeln!(text, "{}, built for {target}, features: {features}", provenance::program());
        let _ = writeln!(text, "CPU: {}, {}", count(cpu.threads(), "thread"), cpu.instructions());
        text += &gpu_text;
        if kernels.is_empty() {
            let _ = match foreign_kernels() {
                Some(folder) => {
                    writeln!(
                        text,
                        "GPU kernels: none; the kernels in {} belong to another version: build them again with `cargo \
                         xtask build-ptx`",
                        folder.display()
                    )
                }
                None => writeln!(text, "GPU kernels: none; build them with `cargo xtask build-ptx`"),
            };
        } else {
            let names: Vec<_> = kernels.iter().map(|k| k.module.as_str()).collect();
            let _ = writeln!(text, "GPU kernels: {}", names.join(", "));
            let (cubins, ptx) = (architectures(&kernels, CodeForm::Cubin), architectures(&kernels, CodeForm::Ptx));
            let _ = writeln!(text, "compiled for: {}", compiled_for(&cubins, &ptx));
        }
        text + &tuning_text
    })
}

fn kernel(image: &KernelImage) -> KernelModule {
    let bytes = |form| {
        let sizes: Vec<usize> = image.codes.iter().filter(|code| code.form == form).map(|code| code.size()).collect();
        (!sizes.is_empty()).then(|| sizes.iter().sum::<usize>())
    };
    let one = std::slice::from_ref(image);
    KernelModule {
        module: image.module.clone(),
        cubin_bytes: bytes(CodeForm::Cubin),
        ptx_bytes: bytes(CodeForm::Ptx),
        cubins: architectures(one, CodeForm::Cubin),
        ptx: architectures(one, CodeForm::Ptx),
    }
}

/// Returns the architectures for which modules have code of a form, oldest first.
fn architectures(images: &[KernelImage], form: CodeForm) -> Vec<String> {
    let codes = images.iter().flat_map(|image| &image.codes).filter(|code| code.form == form);
    let architectures: BTreeSet<Architecture> = codes.map(|code| code.architecture).collect();
    architectures.iter().map(Architecture::to_string).collect()
}

/// Returns the architectures with machine code and with PTX as text for people.
fn compiled_for(cubins: &[String], ptx: &[String]) -> String {
    let part = |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{} ({what})", names.join(", ")));
    let parts: Vec<String> = [part("machine code", cubins), part("PTX", ptx)].into_iter().flatten().collect();
    parts.join("; ")
}

/// Returns the record of the tune cache's file, the cache, and a text about both.
fn tuning(mode: Mode) -> (TuningFile, TuneCache, String) {
    let Tuning { cache: path, .. } = Tuning::new(mode);
    let Some(path) = path else {
        let unset = "no file, because none of FERRITE_TUNE_CACHE, XDG_CACHE_HOME and HOME is set";
        let why = if mode == Mode::Off { "off" } else { unset };
        let none = TuningFile { cache: None, launches: None, error: None };
        return (none, TuneCache::default(), format!("tuning: {why}\n"));
    };
    let file = |launches, error| TuningFile { cache: Some(path.clone()), launches, error };
    match TuneCache::read(&path) {
        Ok(cache) => {
            let n = cache.len();
            let text = format!("tuning: {}, {}\n", path.display(), count(n, "block size"));
            (file(Some(n), None), cache, text)
        }
        Err(error) => (file(None, Some(error.to_string())), TuneCache::default(), format!("tuning: {error}\n")),
    }
}

/// Returns the records of the driver and of the devices, and a text about both.
#[cfg(feature = "cuda")]
fn gpus(cache: &TuneCache) -> (DriverRecord, Vec<GpuRecord>, String) {
    use super::text::bytes;
    use ferrite::backend::Cuda;
    match (Cuda::driver_version(), Cuda::devices()) {
        (Ok((major, minor)), Ok(devices)) => {
            let version = format!("{major}.{minor}");
            let mut text = format!("driver for CUDA {version}\n");
            let mut list = Vec::new();
            for device in devices {
                let (major, minor) = device.capability;
                let memory = bytes(device.memory);
                let tuned = Cuda::tune_key(&device).map_or(0, |key| cache.of(&key).count());
                let sizes = count(tuned, "tuned block size");
                let oldest = Architecture::oldest();
                let is_old = device.capability < oldest.capability();
                let old = if is_old { format!(" (too old, {oldest} is needed)") } else { String::new() };
                let (ordinal, name) = (device.ordinal, &device.name);
                let _ = writeln!(text, "GPU {ordinal}: {name}, {memory}, sm_{major}{minor}{old}, {sizes}");
                list.push(GpuRecord {
                    device: device.ordinal,
                    name: device.name.clone(),
                    memory_bytes: device.memory,
                    capability: format!("{major}.{minor}"),
                    tuned_launches: tuned,
                });
            }
            if list.is_empty() {
                text += "no GPU\n";
            }
            (DriverRecord { cuda: Some(version), error: None }, list, text)
        }
        (Err(error), _) | (_, Err(error)) => {
            let driver = DriverRecord { cuda: None, error: Some(error.to_string()) };
            (driver, Vec::new(), format!("GPU: {error}\n"))
        }
    }
}

#[cfg(not(feature = "cuda"))]
fn gpus(_: &TuneCache) -> (DriverRecord, Vec<GpuRecord>, String) {
    let error = "this program was built without CUDA";
    let driver = DriverRecord { cuda: None, error: Some(error.into()) };
    (driver, Vec::new(), format!("GPU: {error}\n"))
}
