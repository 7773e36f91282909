//! Groups of pictures and prompts in the own process. Must not know of embeddings.

use super::InProcessEncoder;
use crate::bisect::{GroupCaller, settle_groups};
use crate::check::{
    LaidGroups, attach_header, attached, detach_header, group_answers, not_attached, taken,
};
use crate::{Ask, AskedGroup, Generator, GroupAnswer, ModelError, SinkError};
use focus_plugin_abi::v1::message::{AttachReply, AttachRequest, OpenedModel};
use focus_wire::{FailureKind, Method, WireError};

/// Calls under one ask.
struct Calls<'a> {
    model: &'a mut InProcessEncoder,
    ask: &'a Ask,
}

impl GroupCaller for Calls<'_> {
    fn ask(
        &mut self,
        groups: &[AskedGroup],
    ) -> Result<Result<Vec<GroupAnswer>, WireError>, ModelError> {
        self.model.revive()?;
        let laid = LaidGroups::new(groups);
        let header = laid.header(&self.model.opened.model, self.ask)?;
        let mut pixels = vec![0; laid.bytes() as usize];
        laid.lay(&mut pixels);
        let outcome = self
            .model
            .call(Method::Generate, header, pixels)
            .and_then(|reply| group_answers(self.ask, groups, &reply));
        match outcome {
            // No group is to blame for what the model does not offer, or no longer does.
            Err(error) if error.kind == FailureKind::Unsupported => Err(self.model.error(error)),
            other => Ok(other),
        }
    }
}

impl Generator for InProcessEncoder {
    fn opened(&self) -> &OpenedModel {
        &self.opened
    }

    fn generate_all(
        &mut self,
        ask: &Ask,
        batches: &mut dyn Iterator<Item = Vec<AskedGroup>>,
        sink: &mut dyn FnMut(Vec<GroupAnswer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        if let Some(name) = &ask.adapter
            && !self.has_adapter(name)
        {
            return Err(self.error(not_attached(name)));
        }
        let mut calls = Calls { model: self, ask };
        for batch in batches {
            let model = &calls.model;
            model.plans.groups.admit(&model.opened.model, &batch)?;
            let answers = if batch.is_empty() {
                Vec::new()
            } else {
                let outcome = calls.ask(&batch)?;
                settle_groups(&mut calls, &batch, outcome)?
            };
            sink(answers).map_err(ModelError::Sink)?;
        }
        Ok(())
    }

    fn attach(&mut self, request: &AttachRequest) -> Result<AttachReply, ModelError> {
        if self.has_adapter(&request.name) {
            return Err(self.error(taken(&request.name)));
        }
        self.revive()?;
        let header = attach_header(request);
        let reply = self
            .call(Method::AttachAdapter, header, Vec::new())
            .and_then(|reply| attached(request, &reply))
            .map_err(|error| self.error(error))?;
        self.adapters.push((request.clone(), reply.clone()));
        Ok(reply)
    }

    fn detach(&mut self, name: &str) -> Result<(), ModelError> {
        self.revive()?;
        self.call(Method::DetachAdapter, detach_header(name), Vec::new())
            .map_err(|error| self.error(error))?;
        self.adapters.retain(|(request, _)| request.name != name);
        Ok(())
    }
}

impl InProcessEncoder {
    fn has_adapter(&self, name: &str) -> bool {
        self.adapters
            .iter()
            .any(|(request, _)| request.name == name)
    }
}
