//! Where things live on this machine: the XDG folders and the plugin search path.

use etcetera::{BaseStrategy, base_strategy::Xdg};
use std::path::{Path, PathBuf};

/// Folder name of this program below the XDG folders.
const APP: &str = "focus-host";

/// The folders in use; made once from the environment, so that everything below takes them as plain values.
#[derive(Debug, Clone)]
pub struct Folders {
    /// Recomputable things: pixels, embeddings, compiled mappers, the synthetic dataset.
    pub cache: PathBuf,
    /// Folders searched for plugins, first hit wins.
    pub plugin_path: Vec<PathBuf>,
    /// The Hugging Face cache, where weights are looked for and fetched to.
    pub hub: PathBuf,
    /// Fetched weights, a folder for each model.
    pub weights: PathBuf,
}

impl Folders {
    /// From `FOCUS_CACHE`, `FOCUS_PLUGIN_PATH`, the XDG variables and the place of the executable.
    ///
    /// Without a home folder cache and weights fall back to folders below the system's temporary one.
    pub fn from_environment() -> Self {
        let xdg = Xdg::new().ok();
        let cache = std::env::var_os("FOCUS_CACHE")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
            .or_else(|| xdg.as_ref().map(|dirs| dirs.cache_dir().join(APP)))
            .unwrap_or_else(|| std::env::temp_dir().join(APP));
        let mut plugin_path: Vec<PathBuf> = std::env::var_os("FOCUS_PLUGIN_PATH")
            .map(|value| {
                std::env::split_paths(&value)
                    .filter(|path| !path.as_os_str().is_empty())
                    .collect()
            })
            .unwrap_or_default();
        if let Some(bin) = std::env::current_exe()
            .ok()
            .as_deref()
            .and_then(Path::parent)
        {
            // An unpacked release archive: `bin/focus-host` beside `lib/focus-host/plugins`.
            plugin_path.push(bin.join("../lib").join(APP).join("plugins"));
            // A build folder: plugins lie beside the executable.
            plugin_path.push(bin.to_path_buf());
        }
        if let Some(dirs) = &xdg {
            plugin_path.push(dirs.data_dir().join(APP).join("plugins"));
        }
        let data = xdg
            .as_ref()
            .map_or_else(std::env::temp_dir, BaseStrategy::data_dir);
        Self {
            cache,
            plugin_path,
            hub: hub(xdg.as_ref()),
            weights: data.join(APP).join("weights"),
        }
    }

    /// Answers of generative models by content key.
    pub fn generations(&self) -> PathBuf {
        self.cache.join("generations")
    }

    /// Embeddings by content key.
    pub fn embeddings(&self) -> PathBuf {
        self.cache.join("embeddings")
    }

    /// Compiled mapper components.
    pub fn mappers(&self) -> PathBuf {
        self.cache.join("mappers")
    }

    /// Drawn datasets.
    pub fn synthetic(&self) -> PathBuf {
        self.cache.join("synthetic")
    }
}

/// `HF_HUB_CACHE`, else `hub` below `HF_HOME`, else below `huggingface` in the user's cache folder: as `huggingface_hub` has it.
fn hub(xdg: Option<&Xdg>) -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = set("HF_HUB_CACHE") {
        return folder.into();
    }
    let home = set("HF_HOME").map(PathBuf::from);
    let home = home.or_else(|| xdg.map(|dirs| dirs.cache_dir().join("huggingface")));
    home.unwrap_or_else(|| std::env::temp_dir().join("huggingface"))
        .join("hub")
}
