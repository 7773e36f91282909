//! Asking a plugin what it offers, through a worker that lives only for that. Knows nothing of open models.

use crate::client::{Setup, StartError};
use crate::life::{Launcher, ProcessLauncher};
use crate::{ModelError, Plugin, WorkerOptions};
use focus_plugin_abi::v1::message::PluginDescriptor;

/// A plugin that has described itself.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribedPlugin {
    /// The descriptor.
    pub descriptor: PluginDescriptor,
    /// `sha256:hex` of the dylib, checked by the worker.
    pub digest: String,
    /// Contract version it speaks.
    pub contract: u32,
    /// What of the sandbox was in force, in words.
    pub sandbox: Vec<String>,
}

impl Plugin for DescribedPlugin {
    fn descriptor(&self) -> &PluginDescriptor {
        &self.descriptor
    }

    fn digest(&self) -> &str {
        &self.digest
    }
}

/// Load the plugin in a short-lived worker and ask it to describe itself.
pub fn describe(options: &WorkerOptions) -> Result<DescribedPlugin, ModelError> {
    describe_with(&mut ProcessLauncher::new(options, 1), options)
}

pub(crate) fn describe_with(
    launcher: &mut dyn Launcher,
    options: &WorkerOptions,
) -> Result<DescribedPlugin, ModelError> {
    let setup = Setup::new(options, 1, String::new());
    let ask = |launcher: &mut dyn Launcher| -> Result<_, StartError> {
        let (mut session, loaded) = setup.start(launcher)?;
        let descriptor = session.describe(setup.timeouts.describe)?;
        session.shut_down();
        Ok((descriptor, loaded))
    };
    let (descriptor, loaded) = ask(launcher).map_err(|error| setup.error(error))?;
    Ok(DescribedPlugin {
        descriptor,
        digest: options.digest.clone(),
        contract: loaded.contract,
        sandbox: loaded.sandbox,
    })
}
