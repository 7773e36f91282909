//! Groups of pictures and prompts in a worker. Must not know of embeddings.

use super::{WorkerClient, stream};
use crate::bisect::{GroupCaller, settle_groups};
use crate::check::{LaidGroups, group_answers, not_attached};
use crate::{Ask, AskedGroup, Generator, GroupAnswer, ModelError, SinkError};
use focus_plugin_abi::v1::message::{AttachReply, AttachRequest, OpenedModel};
use focus_wire::{Area, FailureKind, Method, WireError};

/// What became of a call.
type Called = Result<Vec<GroupAnswer>, WireError>;

/// The stream of one ask.
struct Groups<'a>(&'a Ask);

impl stream::Kind for Groups<'_> {
    type Item = AskedGroup;
    type Row = GroupAnswer;
    type Answer = GroupAnswer;
    const METHOD: Method = Method::Generate;

    fn admit(&self, client: &WorkerClient, batch: &[AskedGroup]) -> Result<(), ModelError> {
        client.plans.groups.admit(&client.opened.model, batch)
    }

    fn bytes(&self, batch: &[AskedGroup]) -> u64 {
        LaidGroups::new(batch).bytes()
    }

    fn submit(
        &self,
        client: &mut WorkerClient,
        slot: u32,
        batch: &[AskedGroup],
    ) -> Result<u64, ModelError> {
        client.session()?;
        let call = client.number_call();
        let laid = LaidGroups::new(batch);
        let header = laid.header(&client.opened.model, self.0)?;
        laid.lay(client.slots.slot_mut(slot));
        let bytes = laid.bytes();
        let area = (bytes > 0).then_some(Area { slot, bytes });
        client.session()?.call(call, Method::Generate, header, area);
        Ok(call)
    }

    fn fetch(&self, client: &mut WorkerClient, call: u64, batch: &[AskedGroup]) -> Called {
        let timeout = client.setup.timeouts.batch;
        client
            .fetch(call, Method::Generate, timeout, |reply| {
                group_answers(self.0, batch, &reply)
            })
            .map_err(|failure| failure.error)
    }

    /// A group's own error is its answer.
    fn settled(_: &GroupAnswer) -> bool {
        true
    }

    fn settle(
        &self,
        client: &mut WorkerClient,
        batch: &[AskedGroup],
        outcome: Called,
    ) -> Result<Vec<GroupAnswer>, ModelError> {
        let mut calls = Calls {
            groups: self,
            client,
        };
        let outcome = calls.blame(outcome)?;
        settle_groups(&mut calls, batch, outcome)
    }
}

/// Calls one at a time, while none is open, so that the first slot is free.
struct Calls<'a> {
    groups: &'a Groups<'a>,
    client: &'a mut WorkerClient,
}

impl Calls<'_> {
    /// No group is to blame for what the model does not offer, or no longer does.
    fn blame(&self, outcome: Called) -> Result<Called, ModelError> {
        match outcome {
            Err(error) if error.kind == FailureKind::Unsupported => {
                Err(self.client.setup.plugin_error(error))
            }
            other => Ok(other),
        }
    }
}

impl GroupCaller for Calls<'_> {
    fn ask(&mut self, groups: &[AskedGroup]) -> Result<Called, ModelError> {
        use stream::Kind as _;
        let call = self.groups.submit(self.client, 0, groups)?;
        let outcome = self.groups.fetch(self.client, call, groups);
        self.blame(outcome)
    }
}

impl Generator for WorkerClient {
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
            && !self.adapters.iter().any(|(known, _)| known.name == *name)
        {
            return Err(self.setup.plugin_error(not_attached(name)));
        }
        stream::run(&Groups(ask), self, batches, sink)
    }

    fn attach(&mut self, request: &AttachRequest) -> Result<AttachReply, ModelError> {
        self.attach_adapter(request)
    }

    fn detach(&mut self, name: &str) -> Result<(), ModelError> {
        self.detach_adapter(name)
    }
}
