//! Which files of a folder are a model's weights: those its card lists, whether a checkpoint lies in one file or in shards. Reads an
//! index's names, no tensors.

use std::collections::BTreeSet;
use std::path::Path;

/// Ends the name of the list of a checkpoint's shards.
const INDEX: &str = ".index.json";
/// Largest index that is read, bytes.
const MAX_INDEX: u64 = 64 << 20;

/// The files behind a card's list, sorted: a checkpoint that the list names whole may lie in shards beside its index, and the
/// reverse; where the index is alone, its shards are wanted too. `a|b` is satisfied by either.
///
/// # Errors
/// The names that are not there, in the list's words or the index's.
pub fn resolve(folder: &Path, listed: &[String]) -> Result<Vec<String>, Vec<String>> {
    let (mut found, mut missing) = (BTreeSet::new(), BTreeSet::new());
    let there = |name: &str| plain(name) && folder.join(name).is_file();
    for name in listed {
        // Plugins take the whole file where both are there; a stale index beside it is no fault.
        let here: Vec<String> = name
            .split('|')
            .flat_map(|name| {
                let whole = name.strip_suffix(INDEX).unwrap_or(name);
                [whole.to_owned(), format!("{whole}{INDEX}")]
            })
            .filter(|name| there(name))
            .collect();
        let whole = here.iter().any(|name| !name.ends_with(INDEX));
        if here.is_empty() {
            missing.insert(name.clone());
        }
        for name in here {
            if name.ends_with(INDEX) {
                for shard in shards(&folder.join(&name)).unwrap_or_default() {
                    if there(&shard) {
                        found.insert(shard);
                    } else if !whole {
                        missing.insert(shard);
                    }
                }
            }
            found.insert(name);
        }
    }
    if missing.is_empty() {
        Ok(found.into_iter().collect())
    } else {
        Err(missing.into_iter().collect())
    }
}

/// A file of the folder itself.
fn plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\']) && name != "." && name != ".."
}

/// Names in an index; `None` for what is none: the plugin says better what is wrong with it.
fn shards(index: &Path) -> Option<BTreeSet<String>> {
    if std::fs::metadata(index).ok()?.len() > MAX_INDEX {
        return None;
    }
    let text = std::fs::read(index).ok()?;
    let index: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let map = index.get("weight_map")?.as_object()?;
    map.values()
        .map(|shard| shard.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("writes");
        }
        folder
    }

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    const MAP: &str = r#"{"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-1.safetensors"}}"#;

    #[test]
    fn one_file_and_shards_stand_for_each_other() {
        let whole = folder(&[("m.safetensors", ""), ("config.json", "")]);
        for listed in [
            &["m.safetensors", "config.json"][..],
            &["m.safetensors.index.json", "config.json"],
            &["m.safetensors.index.json", "m.safetensors", "config.json"],
        ] {
            assert_eq!(
                resolve(whole.path(), &names(listed)),
                Ok(names(&["config.json", "m.safetensors"]))
            );
        }
        let sharded = folder(&[
            ("m.safetensors.index.json", MAP),
            ("m-1.safetensors", ""),
            ("m-2.safetensors", ""),
        ]);
        let all = names(&[
            "m-1.safetensors",
            "m-2.safetensors",
            "m.safetensors.index.json",
        ]);
        assert_eq!(resolve(sharded.path(), &names(&["m.safetensors"])), Ok(all));
    }

    #[test]
    fn a_whole_file_counts_beside_shards_and_either_of_two_will_do() {
        let both = folder(&[
            ("m.safetensors", ""),
            ("m.safetensors.index.json", MAP),
            ("m-1.safetensors", ""),
        ]);
        let all = names(&[
            "m-1.safetensors",
            "m.safetensors",
            "m.safetensors.index.json",
        ]);
        for listed in ["m.safetensors.index.json", "m.safetensors"] {
            assert_eq!(resolve(both.path(), &names(&[listed])), Ok(all.clone()));
        }
        let other = folder(&[("pytorch_model.bin", "")]);
        let either = names(&["model.safetensors|pytorch_model.bin"]);
        assert_eq!(
            resolve(other.path(), &either),
            Ok(names(&["pytorch_model.bin"]))
        );
        assert_eq!(resolve(folder(&[]).path(), &either), Err(either));
    }

    #[test]
    fn what_is_missing_is_named() {
        let lame = folder(&[("m.safetensors.index.json", MAP), ("m-1.safetensors", "")]);
        assert_eq!(
            resolve(lame.path(), &names(&["m.safetensors", "config.json"])),
            Err(names(&["config.json", "m-2.safetensors"]))
        );
        let hostile = folder(&[(
            "m.safetensors.index.json",
            r#"{"weight_map": {"a": "../../etc/passwd"}}"#,
        )]);
        assert_eq!(
            resolve(hostile.path(), &names(&["m.safetensors"])),
            Err(names(&["../../etc/passwd"]))
        );
    }
}
