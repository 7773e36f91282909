//! `focus-host synth`: photographs and predictions that a program drew.

use super::CommandResult;
use super::args::{SynthArgs, SynthCommand, SynthImagesArgs};
use super::failure::{Code, Failure};
use super::output::Output;
use focus_synth::Config;
use std::path::Path;

pub(crate) fn run(args: &SynthArgs, out: &Output) -> CommandResult {
    match &args.command {
        Some(SynthCommand::Predictions(args)) => super::predictions::run(args, out),
        None => images(&args.images, out),
    }
}

fn images(args: &SynthImagesArgs, out: &Output) -> CommandResult {
    let config = config(args)?;
    config
        .check()
        .map_err(|error| Failure::from_error(Code::Usage, &error, None))?;
    if args.show_config {
        let text = toml::to_string_pretty(&config).map_err(|e| Failure::internal(e.to_string()))?;
        return out.either(&config, || text);
    }
    let folder = args
        .out
        .as_deref()
        .ok_or_else(|| Failure::new(Code::Usage, "`--out DIR` is missing"))?;
    let summary = focus_synth::write_dataset(folder, &config)
        .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
    out.either(&summary, || {
        format!(
            "{} photographs of {} patients in `{}`\n",
            summary.images,
            config.patients,
            summary.dir.display()
        )
    })
}

/// The default, then the file, then single values.
fn config(args: &SynthImagesArgs) -> Result<Config, Failure> {
    let mut table = match &args.config {
        Some(file) => read(file)?,
        None => toml::Table::new(),
    };
    for (key, text) in &args.settings {
        set(&mut table, key, text)?;
    }
    toml::Value::Table(table)
        .try_into()
        .map_err(|error: toml::de::Error| {
            Failure::new(
                Code::Usage,
                format!("The configuration cannot be read: {}", error.message()),
            )
            .with_hint(Some(
                "`focus-host synth --show-config` prints every field with its value".into(),
            ))
        })
}

fn read(file: &Path) -> Result<toml::Table, Failure> {
    let fault = |reason: String| {
        Failure::new(
            Code::Input,
            format!("`{}` cannot be read: {reason}", file.display()),
        )
    };
    let text = std::fs::read_to_string(file).map_err(|error| fault(error.to_string()))?;
    if file.extension().is_some_and(|e| e == "json") {
        serde_json::from_str(&text).map_err(|error| fault(error.to_string()))
    } else {
        toml::from_str(&text).map_err(|error| fault(error.to_string()))
    }
}

/// `a.b=1` into the table. The value is TOML where it can be read as such, else a text.
fn set(table: &mut toml::Table, key: &str, text: &str) -> Result<(), Failure> {
    let value = toml::from_str::<toml::Table>(&format!("v = {text}"))
        .ok()
        .and_then(|mut parsed| parsed.remove("v"))
        .unwrap_or_else(|| toml::Value::String(text.into()));
    let (parents, last) = key.rsplit_once('.').unwrap_or(("", key));
    let mut at = table;
    for part in parents.split('.').filter(|part| !part.is_empty()) {
        at = at
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()))
            .as_table_mut()
            .ok_or_else(|| {
                Failure::new(
                    Code::Usage,
                    format!("`{key}` is no field: `{part}` holds no fields"),
                )
            })?;
    }
    at.insert(last.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(settings: &[(&str, &str)]) -> SynthImagesArgs {
        SynthImagesArgs {
            out: None,
            config: None,
            settings: settings
                .iter()
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect(),
            show_config: false,
        }
    }

    #[test]
    fn single_values_go_over_the_default() {
        let made =
            config(&args(&[("patients", "7"), ("label_noise.rate", "0.25")])).expect("reads");
        assert_eq!((made.patients, made.label_noise.rate), (7, 0.25));
        assert_eq!(made.size, Config::default().size);
    }

    #[test]
    fn the_printed_configuration_reads_back() {
        let text = toml::to_string_pretty(&Config::default()).expect("prints");
        let table: toml::Table = toml::from_str(&text).expect("reads");
        let back: Config = toml::Value::Table(table).try_into().expect("is one");
        assert_eq!(back, Config::default());
    }

    #[test]
    fn unknown_fields_and_wrong_kinds_are_refused() {
        for (key, value) in [("patient", "7"), ("patients", "many"), ("seed.low", "1")] {
            let error = config(&args(&[(key, value)]));
            assert!(error.is_err(), "{key}={value}");
        }
    }
}
