//! A drawn dataset on disk, a configuration for it, and a generator that remembers what it was asked.

use crate::config::{EvalConfig, Folders, PromptingConfig, SplitChoice, WorkerConfig};
use crate::eval::EvalError;
use crate::eval::dataset::Dataset;
use crate::eval::dataset::tests::drawn;
use crate::eval::model::Chosen;
use crate::eval::prompting::{Job, METHOD, evaluate};
use crate::eval::run::RunOutcome;
use crate::progress::Silent;
use focus_models::fake::FakeGenerator;
use focus_models::{Ask, AskedGroup, Generator, GroupAnswer, ModelError, SinkError};
use focus_plugin_abi::v1::message::{AttachReply, AttachRequest, OpenedModel};
use focus_store::{Record, Records};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempDir;

/// A dataset, caches and run folders.
pub(super) struct Place {
    dir: TempDir,
    dataset: Dataset,
    cache: PathBuf,
    /// Digest of the plugin that it pretends to run.
    pub(super) plugin_digest: String,
}

impl Place {
    /// `n` photographs, of which the first is for training; every second one has the condition.
    pub(super) fn new(n: usize) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let tasks = ["binary_dr", "glaucoma"];
        let mut records = Records {
            tasks: tasks
                .iter()
                .map(|t| (*t).to_owned())
                .collect::<BTreeSet<_>>(),
            rows: Vec::new(),
        };
        let mut files = Vec::new();
        for sample in 0..n {
            let path = format!("photo-{sample}.ppm");
            let mut bytes = b"P6 2 2 255\n".to_vec();
            bytes.extend((0..12).map(|at| (sample * 17 + at * 29) as u8));
            std::fs::write(dir.path().join(&path), bytes).expect("writes");
            files.push(dir.path().join(&path));
            let labels: BTreeMap<String, bool> = tasks
                .iter()
                .map(|task| ((*task).to_owned(), sample % 2 == 0))
                .collect();
            records.rows.push(Record {
                dataset: "drawn".into(),
                id: format!("patient-{sample}"),
                path: Some(path),
                split: Some(if sample == 0 { "train" } else { "test" }.into()),
                labels: labels.clone(),
                published_labels: labels,
                ..Record::default()
            });
        }
        Self {
            cache: dir.path().join("cache"),
            dataset: drawn(records, files),
            dir,
            plugin_digest: "sha256:fake".into(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Labels go round by so many places.
    pub(super) fn permute_labels(&mut self, turn: usize) {
        let rows = &mut self.dataset.records.rows;
        let mut labels: Vec<_> = rows
            .iter()
            .map(|r| (r.labels.clone(), r.published_labels.clone()))
            .collect();
        labels.rotate_left(turn);
        if turn == 3 {
            for (own, published) in &mut labels {
                for label in own.values_mut().chain(published.values_mut()) {
                    *label = !*label;
                }
            }
        }
        for (row, (own, published)) in rows.iter_mut().zip(labels) {
            row.labels = own;
            row.published_labels = published;
        }
    }

    /// Cut a photograph short.
    pub(super) fn break_photograph(&mut self, sample: usize) {
        std::fs::write(&self.dataset.files[sample], b"P6 2 2 255\nxy").expect("writes");
    }

    /// Labels for one more task.
    pub(super) fn add_task(&mut self, task: &str) {
        self.dataset.tasks.push(task.into());
        self.dataset.records.tasks.insert(task.into());
        for row in &mut self.dataset.records.rows {
            row.labels.insert(task.into(), true);
            row.published_labels.insert(task.into(), true);
        }
    }

    /// The cache of another place.
    pub(super) fn share_cache(&mut self, other: &Self) {
        self.cache.clone_from(&other.cache);
    }

    /// An adapter's folder.
    pub(super) fn adapter(&self, name: &str, tensors: &[u8]) -> PathBuf {
        let folder = self.path(name);
        std::fs::create_dir_all(&folder).expect("makes");
        std::fs::write(folder.join("adapter_config.json"), "{}").expect("writes");
        std::fs::write(folder.join("adapter_model.safetensors"), tensors).expect("writes");
        folder
    }

    /// All of the dataset's tasks, with the cache of this place.
    pub(super) fn config(&self) -> EvalConfig {
        EvalConfig {
            plugin: "libfake.so".into(),
            model: None,
            settings: BTreeMap::new(),
            weights: None,
            dataset: "drawn".into(),
            data: None,
            dataset_options: Vec::new(),
            tasks: Vec::new(),
            methods: Vec::new(),
            split: SplitChoice::Source,
            limit: 0,
            out: Some(self.path("run")),
            device: "cpu".into(),
            dtype: None,
            batch_size: None,
            error_budget: 0.5,
            prompting: PromptingConfig {
                folder: None,
                max_new_tokens: 128,
                early_stop: true,
            },
            adapters: Vec::new(),
            worker: WorkerConfig {
                in_process: false,
                sandbox: true,
                allow_network: Vec::new(),
                allow_upload: Vec::new(),
                load_timeout: Duration::from_secs(1),
                open_timeout: Duration::from_secs(1),
                batch_timeout: Duration::from_secs(1),
                memory: 1 << 30,
                max_restarts: 0,
                threads: 1,
            },
            cache: true,
            pixel_cache: 1 << 20,
            field: focus_images::FieldSteps::NONE,
            decode: focus_images::Decode::Exact,
            folders: Folders {
                cache: self.cache.clone(),
                plugin_path: Vec::new(),
                hub: self.path("hub"),
                weights: self.path("weights"),
            },
        }
    }

    /// A run of it.
    pub(super) fn run(
        &self,
        config: &EvalConfig,
        generator: &Recorder,
    ) -> Result<Vec<RunOutcome>, EvalError> {
        let chosen = Chosen::pretended(&self.plugin_digest);
        let tasks = if config.tasks.is_empty() {
            self.dataset.tasks.clone()
        } else {
            config.tasks.clone()
        };
        let job = Job {
            config,
            chosen: &chosen,
            dataset: &self.dataset,
            tasks: &tasks,
            methods: &[&METHOD],
            progress: &Silent,
        };
        evaluate(&job, &mut || {
            generator.spoken.0.borrow_mut().opened += 1;
            Ok(Box::new(generator.clone()) as Box<dyn Generator>)
        })
    }
}

#[derive(Default)]
struct Heard {
    asks: Vec<Ask>,
    groups: Vec<AskedGroup>,
    opened: usize,
    unchanging: bool,
}

/// What a generator was asked.
#[derive(Clone, Default)]
pub(super) struct Spoken(Rc<RefCell<Heard>>);

impl Spoken {
    /// Adapters change nothing.
    pub(super) fn unchanging() -> Self {
        let spoken = Self::default();
        spoken.0.borrow_mut().unchanging = true;
        spoken
    }

    pub(super) fn over(&self, inner: FakeGenerator) -> Recorder {
        Recorder {
            inner,
            spoken: self.clone(),
        }
    }

    pub(super) fn groups(&self) -> Vec<AskedGroup> {
        self.0.borrow().groups.clone()
    }

    pub(super) fn asks(&self) -> Vec<Ask> {
        self.0.borrow().asks.clone()
    }

    pub(super) fn opened(&self) -> usize {
        self.0.borrow().opened
    }
}

/// A fake that is listened to.
#[derive(Clone)]
pub(super) struct Recorder {
    inner: FakeGenerator,
    spoken: Spoken,
}

impl Generator for Recorder {
    fn opened(&self) -> &OpenedModel {
        self.inner.opened()
    }

    fn generate_all(
        &mut self,
        ask: &Ask,
        batches: &mut dyn Iterator<Item = Vec<AskedGroup>>,
        sink: &mut dyn FnMut(Vec<GroupAnswer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        let spoken = self.spoken.clone();
        spoken.0.borrow_mut().asks.push(ask.clone());
        let mut heard =
            batches.inspect(|batch| spoken.0.borrow_mut().groups.extend(batch.iter().cloned()));
        self.inner.generate_all(ask, &mut heard, sink)
    }

    fn attach(&mut self, request: &AttachRequest) -> Result<AttachReply, ModelError> {
        let mut reply = self.inner.attach(request)?;
        if self.spoken.0.borrow().unchanging {
            reply.probe_change = 0.0;
        }
        Ok(reply)
    }

    fn detach(&mut self, name: &str) -> Result<(), ModelError> {
        self.inner.detach(name)
    }
}

/// Every file of a run folder but the lock, with its bytes, sorted by name.
pub(super) fn contents(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![run.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "lock") {
                let name = path.strip_prefix(run).expect("below the run");
                files.push((
                    name.display().to_string(),
                    std::fs::read(&path).expect("reads"),
                ));
            }
        }
    }
    files.sort();
    files
}
