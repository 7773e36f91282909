//! What makes a run this run and no other. No clock time, path or host name: two people who ask for the same run get the
//! same manifest. It reads and writes no file.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The identity of a run: whatever could change one stored answer or prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunManifest {
    /// Version of the program.
    pub tool_version: String,
    /// The models, in the order of the run.
    pub models: Vec<ModelIdentity>,
    /// The datasets, in the order of the run.
    pub datasets: Vec<DatasetIdentity>,
    /// Task ids.
    pub tasks: Vec<String>,
    /// Method ids.
    pub methods: Vec<String>,
    /// Kind of device the model ran on (`cpu`, `cuda`): kinds differ in the last bits.
    pub device_kind: String,
    /// Seeds by purpose.
    pub seeds: BTreeMap<String, u64>,
    /// Permissions granted, sorted (`network:api.example.org`, `upload:brset`).
    pub permissions: Vec<String>,
    /// Some of the images were drawn, not photographed. Every report says so.
    pub synthetic: bool,
    /// Other settings that change results, by name.
    #[serde(default)]
    pub options: BTreeMap<String, Value>,
}

/// A model as it was opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelIdentity {
    /// Model id (`google/vit-large-patch16-224`).
    pub id: String,
    /// The plugin that holds it; none for imported predictions.
    pub plugin: Option<PluginIdentity>,
    /// What the plugin answered when the model was opened, verbatim.
    pub opened: Value,
    /// Key of the pixels it was given: resampler, size, colour, cache version.
    pub preprocessing_key: String,
}

/// A plugin file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginIdentity {
    /// Name in its sidecar.
    pub name: String,
    /// Version in its sidecar.
    pub version: String,
    /// `blake3:<hex>` or `sha256:<hex>` of the library file.
    pub digest: String,
}

/// A dataset as it was mapped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetIdentity {
    /// Dataset id (`idrid`).
    pub id: String,
    /// Digest of the mapper component; none for imported predictions.
    pub mapper_digest: Option<String>,
    /// Digest of each label table, by the mapper's name for it.
    pub tables: BTreeMap<String, String>,
}

/// A field in which two manifests differ: where, in the first, in the second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub field: String,
    pub expected: String,
    pub found: String,
}

impl RunManifest {
    // serde_json sorts keys; people read the fields in the order above.
    fn fields(&self) -> [(&'static str, Value); 10] {
        let value = |v: Result<Value, serde_json::Error>| v.expect("a manifest is JSON");
        [
            (
                "tool_version",
                value(serde_json::to_value(&self.tool_version)),
            ),
            ("models", value(serde_json::to_value(&self.models))),
            ("datasets", value(serde_json::to_value(&self.datasets))),
            ("tasks", value(serde_json::to_value(&self.tasks))),
            ("methods", value(serde_json::to_value(&self.methods))),
            (
                "device_kind",
                value(serde_json::to_value(&self.device_kind)),
            ),
            ("seeds", value(serde_json::to_value(&self.seeds))),
            (
                "permissions",
                value(serde_json::to_value(&self.permissions)),
            ),
            ("synthetic", value(serde_json::to_value(self.synthetic))),
            ("options", value(serde_json::to_value(&self.options))),
        ]
    }

    /// The first field in which `other` differs from this one.
    pub(crate) fn first_difference(&self, other: &Self) -> Option<Difference> {
        let pairs = self.fields().into_iter().zip(other.fields());
        pairs.into_iter().find_map(|((name, ours), (_, theirs))| {
            differ(name.to_owned(), Some(&ours), Some(&theirs))
        })
    }
}

fn differ(field: String, ours: Option<&Value>, theirs: Option<&Value>) -> Option<Difference> {
    if ours == theirs {
        return None;
    }
    match (ours, theirs) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names
                .into_iter()
                .find_map(|name| differ(format!("{field}.{name}"), a.get(name), b.get(name)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => (0..a.len().max(b.len()))
            .find_map(|i| differ(format!("{field}[{i}]"), a.get(i), b.get(i))),
        _ => {
            let show = |v: Option<&Value>| {
                v.map_or("nothing".to_owned(), |v| {
                    crate::error::shorten(&v.to_string(), 120)
                })
            };
            Some(Difference {
                field,
                expected: show(ours),
                found: show(theirs),
            })
        }
    }
}

#[cfg(test)]
pub(crate) fn sample() -> RunManifest {
    RunManifest {
        tool_version: "0.1.0".into(),
        models: vec![ModelIdentity {
            id: "handcrafted/zones".into(),
            plugin: Some(PluginIdentity {
                name: "handcrafted".into(),
                version: "0.1.0".into(),
                digest: "blake3:00".into(),
            }),
            opened: serde_json::json!({"dim": 4, "dtype": "f32"}),
            preprocessing_key: "bilinear-224".into(),
        }],
        datasets: vec![DatasetIdentity {
            id: "synthetic".into(),
            mapper_digest: Some("blake3:11".into()),
            tables: BTreeMap::from([("labels".into(), "blake3:22".into())]),
        }],
        tasks: vec!["binary_dr".into()],
        methods: vec!["linear_probing".into()],
        device_kind: "cpu".into(),
        seeds: BTreeMap::from([("bootstrap".into(), 13)]),
        permissions: vec![],
        synthetic: true,
        options: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_serialised_field_is_compared() {
        let Value::Object(all) = serde_json::to_value(sample()).expect("JSON") else {
            panic!("an object")
        };
        let mut compared: Vec<_> = sample()
            .fields()
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        compared.sort();
        assert_eq!(compared, all.keys().cloned().collect::<Vec<_>>());
    }

    #[test]
    fn the_first_difference_names_its_place() {
        let held = sample();
        assert_eq!(held.first_difference(&held.clone()), None);
        let mut asked = sample();
        asked.models[0].plugin.as_mut().expect("plugin").digest = "blake3:ff".into();
        asked.synthetic = false;
        let found = held.first_difference(&asked).expect("differs");
        assert_eq!(found.field, "models[0].plugin.digest");
        assert_eq!(
            (found.expected.as_str(), found.found.as_str()),
            ("\"blake3:00\"", "\"blake3:ff\"")
        );

        let mut asked = sample();
        asked.tasks.push("glaucoma".into());
        let found = held.first_difference(&asked).expect("differs");
        assert_eq!(
            (found.field.as_str(), found.expected.as_str()),
            ("tasks[1]", "nothing")
        );

        let mut asked = sample();
        asked.options.insert("c".into(), 0.5.into());
        assert_eq!(
            held.first_difference(&asked).expect("differs").field,
            "options.c"
        );
    }
}
