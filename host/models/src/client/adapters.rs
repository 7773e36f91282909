//! Adapters on the model in a worker: attached once, and again after each restart. Must not know of prompts.

use super::{StartError, WorkerClient};
use crate::ModelError;
use crate::check::{attach_header, attached, detach_header, taken};
use crate::session::{Failure, Session};
use focus_plugin_abi::v1::message::{AttachReply, AttachRequest};
use focus_wire::Method;

impl WorkerClient {
    pub(super) fn attach_adapter(
        &mut self,
        request: &AttachRequest,
    ) -> Result<AttachReply, ModelError> {
        if self
            .adapters
            .iter()
            .any(|(known, _)| known.name == request.name)
        {
            return Err(self.setup.plugin_error(taken(&request.name)));
        }
        let header = attach_header(request);
        let timeout = self.setup.timeouts.open;
        let reply = self.ask(Method::AttachAdapter, &header, timeout, |reply| {
            attached(request, &reply)
        })?;
        self.adapters.push((request.clone(), reply.clone()));
        Ok(reply)
    }

    pub(super) fn detach_adapter(&mut self, name: &str) -> Result<(), ModelError> {
        let header = detach_header(name);
        let timeout = self.setup.timeouts.open;
        self.ask(Method::DetachAdapter, &header, timeout, |_| Ok(()))?;
        self.adapters.retain(|(request, _)| request.name != name);
        Ok(())
    }

    /// In a fresh life: each must come out as it was.
    pub(super) fn attach_again(&mut self, session: &mut Session) -> Result<(), StartError> {
        let timeout = self.setup.timeouts.open;
        for (number, (request, expected)) in self.adapters.iter().enumerate() {
            let header = attach_header(request);
            let call = self.next_call + number as u64;
            session.call(call, Method::AttachAdapter, header, None);
            let reply = session.answered(call, Method::AttachAdapter, timeout)?;
            let found = attached(request, &reply).map_err(|error| Failure { error, over: true })?;
            ModelError::same_adapter(&self.setup.plugin, expected, &found)?;
        }
        self.next_call += self.adapters.len() as u64;
        Ok(())
    }
}
