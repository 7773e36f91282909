//! Building and running the executable, small datasets, and reading run folders. Holds no test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The project's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the project")
        .to_path_buf()
}

/// The built executable and plugins, each plugin sealed.
pub(crate) struct Built {
    /// `focus-host`.
    pub(crate) host: PathBuf,
    /// `libhandcrafted.so`.
    pub(crate) handcrafted: PathBuf,
    /// `libhostile.so`.
    pub(crate) hostile: PathBuf,
    /// `libvit.so`.
    pub(crate) vit: PathBuf,
    /// `libclip.so`.
    pub(crate) clip: PathBuf,
    /// `libmedgemma.so`.
    pub(crate) medgemma: PathBuf,
    /// `libqwen3_vl.so`.
    pub(crate) qwen3_vl: PathBuf,
    /// `libllava_next.so`.
    pub(crate) llava_next: PathBuf,
    _plugins: TempDir,
}

/// Built once for all tests, with the profile the tests run in. `cargo test` builds no sibling cdylibs and no executables.
pub(crate) fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root()).args([
            "build",
            "--locked",
            "-p",
            "focus-host",
            "-p",
            "handcrafted",
            "-p",
            "hostile",
            "-p",
            "vit",
            "-p",
            "clip",
            "-p",
            "medgemma",
            "-p",
            "qwen3-vl",
            "-p",
            "llava-next",
        ]);
        let folder = profile_folder();
        if folder.ends_with("release") {
            command.arg("--release");
        }
        let out = command.output().expect("cargo runs");
        assert!(
            out.status.success(),
            "cargo build failed:\n{}",
            String::from_utf8_lossy(&out.stderr)
        );
        // Sealed copies in a folder of their own, so that a rebuild meanwhile does not break a seal.
        let plugins = tempfile::tempdir().expect("a folder");
        let copy = |name: &str| {
            let to = plugins.path().join(name);
            std::fs::copy(folder.join(name), &to).expect("the plugin was built");
            to
        };
        let built = Built {
            host: folder.join("focus-host"),
            handcrafted: copy("libhandcrafted.so"),
            hostile: copy("libhostile.so"),
            vit: copy("libvit.so"),
            clip: copy("libclip.so"),
            medgemma: copy("libmedgemma.so"),
            qwen3_vl: copy("libqwen3_vl.so"),
            llava_next: copy("libllava_next.so"),
            _plugins: plugins,
        };
        for plugin in [
            &built.handcrafted,
            &built.hostile,
            &built.vit,
            &built.clip,
            &built.medgemma,
            &built.qwen3_vl,
            &built.llava_next,
        ] {
            let out = Command::new(&built.host)
                .args(["plugin", "seal"])
                .arg(plugin)
                .output()
                .expect("runs");
            assert!(
                out.status.success(),
                "{}",
                String::from_utf8_lossy(&out.stderr)
            );
        }
        built
    })
}

/// `target/debug` or `target/release`, wherever the target folder is.
fn profile_folder() -> PathBuf {
    let exe = std::env::current_exe().expect("a test has a path");
    exe.parent()
        .and_then(Path::parent)
        .expect("target/<profile>/deps/<test>")
        .to_path_buf()
}

/// A place to run in: caches and run folders of its own.
pub(crate) struct Place {
    /// The folder.
    pub(crate) dir: TempDir,
}

impl Place {
    /// A fresh one.
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a folder"),
        }
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The executable with this place's cache, in this place, with an environment that leaks nothing of the machine.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&built().host);
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("FOCUS_CACHE", self.path("cache"))
            .env("XDG_DATA_HOME", self.path("data"))
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS")
            .env_remove("FOCUS_PLUGIN_PATH")
            .env_remove("FOCUS_LOG");
        command
    }

    /// Run it to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("focus-host runs")
    }

    /// Run it; it must succeed. Gives stdout.
    pub(crate) fn good(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert!(
            out.status.success(),
            "{args:?} ended with {:?}\nstdout: {}\nstderr: {}",
            out.status,
            text(&out.stdout),
            text(&out.stderr)
        );
        text(&out.stdout)
    }

    /// A small synthetic dataset in it.
    pub(crate) fn dataset(&self, patients: u32, size: u32) -> PathBuf {
        let dir = self.path(&format!("synthetic-{patients}-{size}"));
        let config = focus_synth::Config {
            patients,
            size,
            ..focus_synth::Config::default()
        };
        focus_synth::write_dataset(&dir, &config)
            .expect("drawn")
            .dir
    }
}

/// Bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A path as an argument.
pub(crate) fn arg(path: &Path) -> &str {
    path.to_str().expect("test paths are UTF-8")
}

/// Every file of a run folder but the lock, with its bytes, sorted by name.
pub(crate) fn contents(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![run.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "lock") {
                let name = path
                    .strip_prefix(run)
                    .expect("below the run")
                    .display()
                    .to_string();
                files.push((name, std::fs::read(&path).expect("reads")));
            }
        }
    }
    files.sort();
    files
}

/// The stored report.
pub(crate) fn report(run: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(run.join("report.json")).expect("there is a report"))
        .expect("JSON")
}

/// A metric of the report, from the first cell of that task and method, corrected track.
pub(crate) fn metric(report: &serde_json::Value, task: &str, method: &str, metric: &str) -> f64 {
    let cells = report["cells"].as_array().expect("cells");
    let cell = cells
        .iter()
        .find(|c| c["cell"]["task"] == task && c["cell"]["method"] == method)
        .unwrap_or_else(|| panic!("no cell {task} / {method}"));
    let metrics = cell["tracks"][0]["metrics"].as_array().expect("metrics");
    metrics
        .iter()
        .find(|m| m["id"] == metric)
        .and_then(|m| m["value"].as_f64())
        .expect("a value")
}

/// The arguments of `eval` for a plugin on a drawn dataset, and more.
pub(crate) fn eval_on<'a>(plugin: &'a Path, data: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![
        "eval",
        "--plugin",
        arg(plugin),
        "--dataset",
        "synthetic",
        "--data",
        arg(data),
    ];
    args.extend(more);
    args
}
