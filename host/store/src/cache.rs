//! Embeddings by content, shared by all runs: `<model key>/<blake3 of the file>.parquet`, written once and never changed.
//! A cache: whatever is damaged is dropped with a warning and computed anew. It knows no run and no image.

use crate::{
    answer::embeddings,
    atomic::{AtomicFile, create_private_folder, sweep, write_atomic},
    error::{Result, StoreError},
    hash::ContentHash,
    key::ModelKey,
    limits::Limits,
    table::{
        self, Columns, Encoder, TableReader, TableSpec, embedding_group, embedding_type, optional,
        required, texts,
    },
};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, RecordBatch};
use arrow_schema::DataType;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

const NAME: &str = "embedding_cache";
/// Version of the cache's segments. Another version is no error: the segment is skipped.
const VERSION: u32 = 2;
/// Row groups in a segment: 128 MiB of embeddings, so that one bad block costs no more.
const GROUPS: usize = 8;

/// The embeddings of one model, by content hash of the image. Several processes may use one folder at the same time.
#[derive(Debug)]
pub struct EmbeddingCache {
    folder: PathBuf,
    limits: Limits,
    /// Width and hashes of each segment, in order of its rows; read once, since segments never change.
    index: Mutex<BTreeMap<String, Arc<Segment>>>,
}

#[derive(Debug)]
struct Segment {
    dim: usize,
    hashes: Vec<ContentHash>,
}

/// What a cache knows of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct CachedEmbedding {
    /// The embedding, finite.
    pub embedding: Vec<f32>,
    /// What was odd about the image's preparation; it goes into the answer, so that a run reads the same with and without a cache.
    pub note: Option<String>,
}

/// What a cache holds of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Number of segment files.
    pub segments: usize,
    /// Embeddings in them; one image may be counted more than once.
    pub embeddings: usize,
    /// Bytes on disk.
    pub bytes: u64,
}

fn spec(dim: usize) -> TableSpec {
    let fields = vec![
        required("content_hash", DataType::FixedSizeBinary(32)),
        required("embedding", embedding_type(dim)),
        optional("note", DataType::Utf8),
    ];
    TableSpec {
        name: NAME,
        version: VERSION,
        schema: table::schema(fields),
        rows_per_group: embedding_group(dim),
    }
}

impl EmbeddingCache {
    /// Open the cache of the model `key` below `dir`, making its folder (mode 0700). The key's parts, where known, are kept
    /// in `key.json` for people to read.
    pub fn open(dir: &Path, key: &ModelKey) -> Result<Self> {
        Self::open_with(dir, key, Limits::default())
    }

    /// The same with other caps on reading.
    pub fn open_with(dir: &Path, key: &ModelKey, limits: Limits) -> Result<Self> {
        let folder = dir.join(key.to_string());
        create_private_folder(dir)?;
        create_private_folder(&folder)?;
        // Others may be writing: only what has been left for a day is surely nobody's.
        sweep(&folder, Duration::from_hours(24));
        let note = folder.join("key.json");
        if let Some(json) = key.json().filter(|_| !note.exists()) {
            write_atomic(&note, json.as_bytes())?;
        }
        Ok(Self {
            folder,
            limits,
            index: Mutex::default(),
        })
    }

    /// The embeddings of `dim` values that are there, of the images asked for. Only hash columns are read, then the row
    /// groups that hold a hit; an image found in two segments comes from the first by name.
    pub fn get(
        &self,
        wanted: &[ContentHash],
        dim: usize,
    ) -> Result<HashMap<ContentHash, CachedEmbedding>> {
        let mut missing: HashSet<ContentHash> = wanted.iter().copied().collect();
        let mut hits = HashMap::new();
        for (name, segment) in self.segments()? {
            if missing.is_empty() {
                break;
            }
            let rows: Vec<usize> = (0..segment.hashes.len())
                .filter(|i| missing.contains(&segment.hashes[*i]))
                .collect();
            if rows.is_empty() || segment.dim != dim {
                continue;
            }
            match self.gather(&name, dim, &rows) {
                Ok(found) => {
                    for (hash, cached) in found {
                        missing.remove(&hash);
                        hits.insert(hash, cached);
                    }
                }
                Err(e) => self.drop_segment(&name, e)?,
            }
        }
        Ok(hits)
    }

    /// Add embeddings, all of the same width and finite, each with its note. Images that are there already are left out. Gives the number
    /// added; they are on disk, whole, when this returns.
    pub fn insert(&self, rows: &[(ContentHash, &[f32], Option<&str>)]) -> Result<usize> {
        let Some(dim) = rows.first().map(|(_, e, _)| e.len()) else {
            return Ok(0);
        };
        for (i, (_, embedding, _)) in rows.iter().enumerate() {
            let finite = embedding.iter().all(|v| v.is_finite());
            if embedding.is_empty() || embedding.len() != dim || dim > self.limits.dim || !finite {
                let found = if finite {
                    format!("{} values, not {dim}", embedding.len())
                } else {
                    "one that is not".into()
                };
                return Err(StoreError::rule(
                    &self.folder,
                    i,
                    "embeddings must have one width and finite values",
                    found,
                ));
            }
        }
        let known: HashSet<ContentHash> = self
            .segments()?
            .values()
            .filter(|s| s.dim == dim)
            .flat_map(|s| s.hashes.iter().copied())
            .collect();
        let fresh: BTreeMap<ContentHash, (&[f32], Option<&str>)> = rows
            .iter()
            .rev()
            .filter(|(hash, ..)| !known.contains(hash))
            .map(|(hash, e, note)| (*hash, (*e, *note)))
            .collect();
        let fresh: Vec<_> = fresh
            .into_iter()
            .map(|(hash, (e, note))| (hash, e, note))
            .collect();
        let spec = spec(dim);
        for segment in fresh.chunks(spec.rows_per_group * GROUPS) {
            self.write_segment(&spec, dim, segment)?;
        }
        Ok(fresh.len())
    }

    /// What is there.
    pub fn stats(&self) -> Result<CacheStats> {
        let mut stats = CacheStats::default();
        for (name, segment) in self.segments()? {
            stats.segments += 1;
            stats.embeddings += segment.hashes.len();
            stats.bytes += fs::metadata(self.path(&name)).map_or(0, |m| m.len());
        }
        Ok(stats)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.parquet"))
    }

    fn write_segment(
        &self,
        spec: &TableSpec,
        dim: usize,
        rows: &[(ContentHash, &[f32], Option<&str>)],
    ) -> Result<()> {
        let mut encoder = Encoder::new(&self.folder, spec, Vec::new())?;
        for group in rows.chunks(spec.rows_per_group) {
            let hashes = FixedSizeBinaryArray::try_from_iter(group.iter().map(|(hash, ..)| hash.0))
                .expect("all have 32 bytes");
            let columns: Vec<ArrayRef> = vec![
                Arc::new(hashes),
                embeddings(dim, group.iter().map(|(_, e, _)| Some(*e))),
                texts(group.iter().map(|(.., note)| *note)),
            ];
            encoder.write(
                &RecordBatch::try_new(Arc::clone(&spec.schema), columns)
                    .expect("columns follow the schema"),
            )?;
        }
        let bytes = encoder.finish()?;
        // Named by its bytes: two processes that add the same rows write the same file twice, not two files.
        let name = ContentHash::of(&bytes).to_string();
        let mut file = AtomicFile::create(&self.path(&name))?;
        file.write_all(&bytes)
            .map_err(StoreError::io("write", &self.folder))?;
        file.commit()?;
        let segment = Segment {
            dim,
            hashes: rows.iter().map(|(hash, ..)| *hash).collect(),
        };
        self.lock().insert(name, Arc::new(segment));
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Segment>>> {
        // The map is whole whenever the lock is free, even after a panic elsewhere.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // All segments on disk now, indexed.
    fn segments(&self) -> Result<BTreeMap<String, Arc<Segment>>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(StoreError::io("list", &self.folder))? {
            let entry = entry.map_err(StoreError::io("list", &self.folder))?;
            let name = entry.file_name();
            let stem = name.to_str().and_then(|n| n.strip_suffix(".parquet"));
            names.extend(
                stem.filter(|s| s.parse::<ContentHash>().is_ok())
                    .map(str::to_owned),
            );
        }
        let known = self.lock().clone();
        let mut segments = BTreeMap::new();
        for name in names {
            if let Some(segment) = known.get(&name) {
                segments.insert(name, Arc::clone(segment));
                continue;
            }
            match self.read_hashes(&name) {
                Ok(Some(segment)) => drop(segments.insert(name, Arc::new(segment))),
                Ok(None) => {}
                Err(e) => self.drop_segment(&name, e)?,
            }
        }
        self.lock().clone_from(&segments);
        Ok(segments)
    }

    fn reader(&self, name: &str) -> Result<TableReader> {
        let limits = Limits {
            file_bytes: self.limits.segment_bytes,
            ..self.limits
        };
        TableReader::open(&self.path(name), NAME, VERSION, &limits)
    }

    // `None` for a segment of another version, which is somebody else's and none of our business.
    fn read_hashes(&self, name: &str) -> Result<Option<Segment>> {
        let reader = match self.reader(name) {
            Err(StoreError::SchemaVersion { .. }) => return Ok(None),
            other => other?,
        };
        let dim = match reader
            .schema()
            .field_with_name("embedding")
            .map(arrow_schema::Field::data_type)
        {
            Ok(DataType::FixedSizeList(_, dim)) => usize::try_from(*dim).unwrap_or_default(),
            _ => 0,
        };
        if dim == 0 || dim > self.limits.dim {
            return Err(StoreError::damaged(
                self.path(name),
                format!("embeddings of {dim} values"),
            ));
        }
        reader.expect(&spec(dim).schema)?;
        let path = self.path(name);
        let mut hashes = Vec::with_capacity(reader.rows());
        for item in reader.batches(&["content_hash"], None)? {
            let (base, batch) = item?;
            let columns = Columns {
                file: &path,
                base,
                batch: &batch,
                string_bytes: 0,
            };
            hashes.extend(hashes_of(&columns)?);
        }
        Ok(Some(Segment { dim, hashes }))
    }

    fn gather(
        &self,
        name: &str,
        dim: usize,
        rows: &[usize],
    ) -> Result<Vec<(ContentHash, CachedEmbedding)>> {
        let reader = self.reader(name)?;
        let path = self.path(name);
        let size = reader.rows_per_group();
        let mut groups: Vec<usize> = rows.iter().map(|row| row / size).collect();
        groups.dedup();
        let mut found = Vec::with_capacity(rows.len());
        let mut rows = rows.iter().copied().peekable();
        for item in reader.batches(&["content_hash", "embedding", "note"], Some(groups))? {
            let (base, batch) = item?;
            let columns = Columns {
                file: &path,
                base,
                batch: &batch,
                string_bytes: self.limits.string_bytes,
            };
            let hashes = hashes_of(&columns)?;
            let notes = columns.texts("note")?;
            let (lists, values) = columns.embeddings("embedding")?;
            if lists.null_count() + values.null_count() > 0 {
                return Err(StoreError::damaged(&path, "an embedding is missing"));
            }
            while let Some(row) = rows.next_if(|row| *row < base + batch.num_rows()) {
                let start = lists.value_offset_at(row - base);
                let embedding = values.values()[start..start + dim].to_vec();
                if embedding.iter().any(|v| !v.is_finite()) {
                    return Err(StoreError::damaged(&path, "an embedding is not finite"));
                }
                let note = notes[row - base].map(str::to_owned);
                found.push((hashes[row - base], CachedEmbedding { embedding, note }));
            }
        }
        Ok(found)
    }

    // Forget a damaged segment; pass on what is the system's refusal, but for a file that another process removed.
    fn drop_segment(&self, name: &str, error: StoreError) -> Result<()> {
        self.lock().remove(name);
        match error {
            StoreError::Io { ref source, .. } if source.kind() == io::ErrorKind::NotFound => Ok(()),
            error if error.is_damage() => {
                tracing::warn!(%error, "dropping a damaged segment of the embedding cache; its embeddings are computed anew");
                let _ = fs::remove_file(self.path(name));
                Ok(())
            }
            error => Err(error),
        }
    }
}

fn hashes_of(columns: &Columns<'_>) -> Result<Vec<ContentHash>> {
    let column = columns.hashes("content_hash")?;
    let hashes = column
        .iter()
        .map(|h| {
            h.and_then(|h| <[u8; 32]>::try_from(h).ok())
                .map(ContentHash)
        })
        .collect::<Option<_>>();
    hashes.ok_or_else(|| StoreError::damaged(columns.file, "a content hash is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ModelKey {
        ModelKey::from_parts(&BTreeMap::from([("model", "m".to_owned())]))
    }

    fn hash(n: u32) -> ContentHash {
        ContentHash::of(&n.to_le_bytes())
    }

    fn embedding(n: u32) -> Vec<f32> {
        vec![n as f32, -0.0, f32::MIN_POSITIVE]
    }

    // Some images have one.
    fn note(hash: ContentHash) -> Option<&'static str> {
        hash.0[0]
            .is_multiple_of(3)
            .then_some("alpha composited on black")
    }

    fn fill(cache: &EmbeddingCache, range: std::ops::Range<u32>) -> usize {
        let rows: Vec<_> = range.map(|n| (hash(n), embedding(n))).collect();
        let rows: Vec<_> = rows
            .iter()
            .map(|(h, e)| (*h, e.as_slice(), note(*h)))
            .collect();
        cache.insert(&rows).expect("inserts")
    }

    fn segment_files(folder: &Path) -> Vec<PathBuf> {
        let model = folder.join(key().to_string());
        let mut files: Vec<_> = fs::read_dir(model)
            .expect("lists")
            .map(|e| e.expect("entry").path())
            .collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "parquet"));
        files.sort();
        files
    }

    #[test]
    fn what_goes_in_comes_out_bit_for_bit() {
        let folder = tempfile::tempdir().expect("folder");
        let cache = EmbeddingCache::open(folder.path(), &key()).expect("opens");
        assert_eq!(fill(&cache, 0..9000), 9000, "more than one row group");
        assert_eq!(fill(&cache, 8990..9010), 10, "only the new ones");
        let other = EmbeddingCache::open(folder.path(), &key()).expect("opens");
        for cache in [&cache, &other] {
            let wanted: Vec<_> = [0, 5, 8500, 9005, 77_777].into_iter().map(hash).collect();
            let hits = cache.get(&wanted, 3).expect("gets");
            assert_eq!(hits.len(), 4);
            for n in [0, 5, 8500, 9005] {
                let bits = |e: &[f32]| e.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&hits[&hash(n)].embedding), bits(&embedding(n)));
                assert_eq!(hits[&hash(n)].note.as_deref(), note(hash(n)));
            }
            assert!(
                cache.get(&wanted, 4).expect("gets").is_empty(),
                "another width is a miss"
            );
            let stats = cache.stats().expect("counts");
            assert_eq!((stats.segments, stats.embeddings), (2, 9010));
        }
        let note = fs::read_to_string(folder.path().join(key().to_string()).join("key.json"))
            .expect("there");
        assert_eq!(Some(note.as_str()), key().json());
    }

    #[test]
    fn the_same_rows_are_the_same_file() {
        let folders: [_; 2] = std::array::from_fn(|_| tempfile::tempdir().expect("folder"));
        let rows: Vec<_> = (0..50).map(|n| (hash(n), embedding(n))).collect();
        for (folder, turn) in folders.iter().zip([0, 17]) {
            let mut rows: Vec<_> = rows
                .iter()
                .map(|(h, e)| (*h, e.as_slice(), note(*h)))
                .collect();
            rows.rotate_left(turn);
            EmbeddingCache::open(folder.path(), &key())
                .expect("opens")
                .insert(&rows)
                .expect("inserts");
        }
        let [a, b] = folders.each_ref().map(|f| segment_files(f.path()));
        assert_eq!(a[0].file_name(), b[0].file_name());
        assert_eq!(
            fs::read(&a[0]).expect("reads"),
            fs::read(&b[0]).expect("reads")
        );
    }

    #[test]
    fn a_damaged_segment_is_dropped_and_never_believed() {
        let folder = tempfile::tempdir().expect("folder");
        let cache = EmbeddingCache::open(folder.path(), &key()).expect("opens");
        fill(&cache, 0..20);
        let file = segment_files(folder.path()).remove(0);
        let good = fs::read(&file).expect("reads");
        let wanted: Vec<_> = (0..20).map(hash).collect();
        let mut dropped = 0;
        for at in (0..good.len()).step_by(3) {
            let mut bad = good.clone();
            bad[at] ^= 0x20;
            fs::write(&file, &bad).expect("writes");
            let cache = EmbeddingCache::open(folder.path(), &key()).expect("opens");
            let hits = cache
                .get(&wanted, 3)
                .expect("a cache never fails on damage");
            for n in 0..20 {
                assert!(
                    hits.get(&hash(n)).is_none_or(
                        |e| e.embedding == embedding(n) && e.note.as_deref() == note(hash(n))
                    ),
                    "byte {at}"
                );
            }
            dropped += usize::from(!file.exists());
        }
        assert!(
            dropped * 6 > good.len() / 3,
            "most of the flips are noticed: {dropped}"
        );
        fs::write(&file, &good[..good.len() / 2]).expect("writes");
        let cache = EmbeddingCache::open(folder.path(), &key()).expect("opens");
        assert!(cache.get(&wanted, 3).expect("gets").is_empty() && !file.exists());
        assert_eq!(fill(&cache, 0..20), 20, "and it fills again");
    }

    #[test]
    fn nonsense_is_not_taken_in() {
        let folder = tempfile::tempdir().expect("folder");
        let cache = EmbeddingCache::open(folder.path(), &key()).expect("opens");
        assert!(cache.insert(&[(hash(1), &[f32::NAN], None)]).is_err());
        assert!(
            cache
                .insert(&[(hash(1), &[1.0], None), (hash(2), &[1.0, 2.0], None)])
                .is_err()
        );
        assert!(cache.insert(&[(hash(1), &[], None)]).is_err());
        assert_eq!(cache.insert(&[]).expect("nothing"), 0);
        assert!(segment_files(folder.path()).is_empty());
    }

    #[test]
    fn many_at_once_share_a_folder() {
        let folder = tempfile::tempdir().expect("folder");
        std::thread::scope(|scope| {
            for turn in 0..4u32 {
                let folder = folder.path();
                scope.spawn(move || {
                    let cache = EmbeddingCache::open(folder, &key()).expect("opens");
                    for part in 0..5 {
                        fill(&cache, part * 10..part * 10 + 15 + turn);
                        cache.get(&[hash(part)], 3).expect("gets");
                    }
                });
            }
        });
        let cache = EmbeddingCache::open(folder.path(), &key()).expect("opens");
        let wanted: Vec<_> = (0..55).map(hash).collect();
        assert_eq!(cache.get(&wanted, 3).expect("gets").len(), 55);
    }
}
