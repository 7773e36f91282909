//! Images and texts in the own process. Must not know of prompts.

use super::InProcessEncoder;
use crate::bisect::{Called, Caller, settle};
use crate::check::Plan;
use crate::{
    Answer, DualEncoder, ImageEncoder, ModelError, PixelBatch, PreparedImage, SinkError, TextRows,
};
use focus_plugin_abi::v1::message::OpenedModel;
use focus_wire::Method;

/// Calls under one plan.
struct Calls<'a> {
    model: &'a mut InProcessEncoder,
    plan: Plan,
}

impl Calls<'_> {
    fn encode(&mut self, rows: &[(usize, &PreparedImage)]) -> Called {
        let mut pixels = vec![0; self.plan.batch_bytes() as usize];
        let laid: Vec<(usize, &[u8])> = rows
            .iter()
            .map(|(row, image)| (*row, &*image.pixels))
            .collect();
        self.plan.lay(&mut pixels, &laid);
        let header = self.plan.header(rows.last().map_or(0, |(row, _)| row + 1));
        let reply = self.model.call(Method::Encode, header, pixels)?;
        let values = self.plan.check(reply)?;
        self.model.proven = true;
        Ok(self.plan.rows(&values, rows.iter().map(|(row, _)| *row)))
    }
}

impl Caller for Calls<'_> {
    fn call(&mut self, rows: &[(usize, &PreparedImage)]) -> Result<Called, ModelError> {
        self.model.revive()?;
        Ok(self.encode(rows))
    }

    fn proven(&self) -> bool {
        self.model.proven
    }

    fn plugin(&self) -> &str {
        &self.model.plugin
    }
}

impl ImageEncoder for InProcessEncoder {
    fn opened(&self) -> &OpenedModel {
        &self.opened
    }

    fn encode_all(
        &mut self,
        batches: &mut dyn Iterator<Item = PixelBatch>,
        sink: &mut dyn FnMut(Vec<Answer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        let plan = self.plans.images(&self.plugin, &self.opened.model)?;
        let mut calls = Calls { model: self, plan };
        for batch in batches {
            let images = &batch.images;
            plan.admit(&calls.model.opened.model, images)?;
            let results = if images.is_empty() {
                Vec::new()
            } else {
                let rows: Vec<_> = images.iter().enumerate().collect();
                let outcome = calls.call(&rows)?;
                settle(&mut calls, images, outcome)?
            };
            let answers = images
                .iter()
                .zip(results)
                .map(|(image, result)| Answer {
                    sample: image.sample,
                    result,
                })
                .collect();
            sink(answers).map_err(ModelError::Sink)?;
        }
        Ok(())
    }
}

impl DualEncoder for InProcessEncoder {
    fn encode_texts(&mut self, texts: &[String]) -> Result<TextRows, ModelError> {
        let plan = self.plans.images(&self.plugin, &self.opened.model)?;
        let header = plan.text_header(&self.opened.model, texts)?;
        self.revive()?;
        self.call(Method::EncodeTexts, header, Vec::new())
            .and_then(|reply| plan.texts(texts.len(), reply))
            .map_err(|error| self.error(error))
    }
}
