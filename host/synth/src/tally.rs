//! The digest by which a written folder is known again. Knows nothing of what the files hold.

use rayon::prelude::*;
use std::fs;
use std::io;
use std::path::Path;

/// A digest of a set of files in any order: hashes of name and content, added lane by lane. It finds damage; it is no
/// defence against somebody who makes files to fit.
#[derive(Default)]
pub struct Tally {
    files: u64,
    lanes: [u64; 4],
}

impl Tally {
    /// Counts one file.
    pub fn add(&mut self, name: &str, content: blake3::Hash) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(content.as_bytes());
        let hash = hasher.finalize();
        for (lane, part) in self.lanes.iter_mut().zip(hash.as_bytes().chunks_exact(8)) {
            let part = part.try_into().expect("chunks of 8 bytes");
            *lane = lane.wrapping_add(u64::from_le_bytes(part));
        }
        self.files += 1;
    }

    /// Counts the files of another tally.
    pub fn join(&mut self, other: &Self) {
        for (lane, part) in self.lanes.iter_mut().zip(other.lanes) {
            *lane = lane.wrapping_add(part);
        }
        self.files += other.files;
    }

    /// `blake3:` and hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.files.to_le_bytes());
        for lane in self.lanes {
            hasher.update(&lane.to_le_bytes());
        }
        format!("blake3:{}", hasher.finalize().to_hex())
    }
}

/// The digest of a dataset's folder, `synthetic.json` aside. `None` where anything cannot be read: why does not matter,
/// since the folder is then written anew.
pub fn digest_on_disk(dir: &Path) -> Option<String> {
    let mut names: Vec<String> = ["labels.csv", "truth.jsonl", "README.md"]
        .map(str::to_owned)
        .to_vec();
    let mut folders = vec!["images".to_owned()];
    if dir.join("masks").exists() {
        for folder in fs::read_dir(dir.join("masks")).ok()? {
            folders.push(format!(
                "masks/{}",
                folder.ok()?.file_name().to_string_lossy()
            ));
        }
    }
    for folder in folders {
        for entry in fs::read_dir(dir.join(&folder)).ok()? {
            names.push(format!(
                "{folder}/{}",
                entry.ok()?.file_name().to_string_lossy()
            ));
        }
    }
    let tally = names
        .into_par_iter()
        .map(|name| {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(fs::File::open(dir.join(&name))?)?;
            let mut tally = Tally::default();
            tally.add(&name, hasher.finalize());
            Ok(tally)
        })
        .try_reduce(Tally::default, |mut all, one| {
            all.join(&one);
            Ok::<_, io::Error>(all)
        });
    tally.ok().map(|tally| tally.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_grouping_do_not_matter_but_names_and_contents_do() {
        let files = [("a", "1"), ("b", "2"), ("c", "1")];
        let of = |files: &[(&str, &str)]| {
            let mut tally = Tally::default();
            for (name, content) in files {
                tally.add(name, blake3::hash(content.as_bytes()));
            }
            tally
        };
        let whole = of(&files).digest();
        assert_eq!(of(&[files[2], files[0], files[1]]).digest(), whole);
        let mut parts = of(&files[..1]);
        parts.join(&of(&files[1..]));
        assert_eq!(parts.digest(), whole);
        for other in [
            &[("a", "1"), ("b", "2")][..],
            &[("a", "2"), ("b", "1"), ("c", "1")],
            &[("a", "1"), ("b", "2"), ("d", "1")],
            &[("a", "1"), ("b", "2"), ("c", "1"), ("c", "1")],
        ] {
            assert_ne!(of(other).digest(), whole);
        }
    }
}
