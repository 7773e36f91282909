//! Texts in a worker. Must not know of images' pixels or prompts.

use super::WorkerClient;
use crate::{DualEncoder, ModelError, TextRows};
use focus_wire::Method;

impl DualEncoder for WorkerClient {
    fn encode_texts(&mut self, texts: &[String]) -> Result<TextRows, ModelError> {
        let plan = self.plans.images(&self.setup.plugin, &self.opened.model)?;
        let header = plan.text_header(&self.opened.model, texts)?;
        let timeout = self.setup.timeouts.batch;
        self.ask(Method::EncodeTexts, &header, timeout, |reply| {
            plan.texts(texts.len(), reply)
        })
    }
}
