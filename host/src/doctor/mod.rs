//! What this machine offers: checked by doing, not by asking. Prints nothing.

use crate::config::Folders;
use crate::plugins;
use focus_datasets::{Limits, MapperSource, registry};
use focus_worker::Sidecar;
use serde::Serialize;
use std::path::Path;

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// How it stands.
    pub verdict: Verdict,
    /// In words.
    pub detail: String,
}

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As wanted.
    Good,
    /// Works, with something to know.
    Note,
    /// focus-host will not work as it should.
    Bad,
}

/// Everything.
pub fn examine(folders: &Folders) -> Vec<Finding> {
    vec![
        processor(),
        memory(),
        pixel_memory(),
        cache(&folders.cache),
        mappers(folders),
        found_plugins(folders),
        accelerator(),
    ]
}

/// Resident memory a worker may take by default: 80 % of what is available now.
pub fn worker_memory() -> u64 {
    available_memory().map_or(u64::MAX, |bytes| bytes / 5 * 4)
}

fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

fn finding(what: &'static str, verdict: Verdict, detail: impl Into<String>) -> Finding {
    Finding {
        what,
        verdict,
        detail: detail.into(),
    }
}

fn processor() -> Finding {
    let threads = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let mut kinds = Vec::new();
    #[cfg(target_arch = "x86_64")]
    for (name, there) in [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
    ] {
        if there {
            kinds.push(name);
        }
    }
    let verdict = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        Verdict::Good
    } else {
        Verdict::Note
    };
    let kinds = if kinds.is_empty() {
        "no vector extensions in use".into()
    } else {
        kinds.join(", ")
    };
    finding(
        "processor",
        verdict,
        format!("{threads} threads, {}, {kinds}", std::env::consts::ARCH),
    )
}

fn memory() -> Finding {
    match available_memory() {
        Some(bytes) if bytes >= 2 << 30 => finding(
            "memory",
            Verdict::Good,
            format!("{} MiB available", bytes >> 20),
        ),
        Some(bytes) => finding(
            "memory",
            Verdict::Note,
            format!("only {} MiB available", bytes >> 20),
        ),
        None => finding(
            "memory",
            Verdict::Note,
            "cannot be told: workers have no memory limit by default",
        ),
    }
}

fn pixel_memory() -> Finding {
    match focus_os::WritableSlots::create(1, 4096) {
        Ok(_) => finding("pixel memory", Verdict::Good, "sealed shared memory works"),
        Err(error) => finding("pixel memory", Verdict::Bad, error.to_string()),
    }
}

fn cache(folder: &Path) -> Finding {
    let probe = folder.join(format!(".doctor-{}", std::process::id()));
    let tried = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&probe, b"x"));
    let _ = std::fs::remove_file(&probe);
    match tried {
        Ok(()) => finding("cache", Verdict::Good, folder.display().to_string()),
        Err(error) => finding(
            "cache",
            Verdict::Bad,
            format!(
                "cannot write to {}: {error}; set FOCUS_CACHE",
                folder.display()
            ),
        ),
    }
}

fn mappers(folders: &Folders) -> Finding {
    let mut ids = Vec::new();
    for mapper in registry() {
        let source = MapperSource::Embedded(mapper.id.to_owned());
        if let Err(error) =
            focus_datasets::describe(&source, &Limits::default(), Some(&folders.mappers()))
        {
            return finding("mappers", Verdict::Bad, format!("`{}`: {error}", mapper.id));
        }
        ids.push(mapper.id);
    }
    finding("mappers", Verdict::Good, ids.join(", "))
}

fn found_plugins(folders: &Folders) -> Finding {
    let found = plugins::installed(folders);
    if found.is_empty() {
        return finding(
            "plugins",
            Verdict::Note,
            "none in the search path; `--plugin` takes a path",
        );
    }
    for file in &found {
        if let Err(error) = Sidecar::read_for(file).and_then(|sidecar| sidecar.verify(file)) {
            return finding("plugins", Verdict::Bad, error.to_string());
        }
    }
    let names: Vec<_> = found.iter().map(|file| plugins::name_of(file)).collect();
    finding("plugins", Verdict::Good, names.join(", "))
}

fn accelerator() -> Finding {
    let cards = (0..16)
        .filter(|n| Path::new(&format!("/dev/nvidia{n}")).exists())
        .count();
    match cards {
        0 => finding(
            "accelerator",
            Verdict::Note,
            "none found; models and probes run on the processor",
        ),
        n => finding(
            "accelerator",
            Verdict::Good,
            format!("{n} NVIDIA devices; plugins need CUDA builds to use them"),
        ),
    }
}
