//! Batches of images in a worker. Must not know of texts or prompts.

use super::{WorkerClient, stream};
use crate::bisect::{Called, Caller, RowResult, settle};
use crate::check::Plan;
use crate::{Answer, ImageEncoder, ModelError, PixelBatch, PreparedImage, SinkError};
use focus_plugin_abi::v1::message::OpenedModel;
use focus_wire::{Area, Method, WireError};

/// The stream of one plan.
struct Images(Plan);

impl Images {
    /// Put images at their rows of `slot` and submit; returns the call's number.
    fn submit_rows(
        &self,
        client: &mut WorkerClient,
        slot: u32,
        rows: &[(usize, &PreparedImage)],
    ) -> Result<u64, ModelError> {
        client.session()?;
        let call = client.number_call();
        let laid: Vec<(usize, &[u8])> = rows
            .iter()
            .map(|(row, image)| (*row, &*image.pixels))
            .collect();
        self.0.lay(client.slots.slot_mut(slot), &laid);
        let header = self.0.header(rows.last().map_or(0, |(row, _)| row + 1));
        let bytes = self.0.batch_bytes();
        let area = Area { slot, bytes };
        client
            .session()?
            .call(call, Method::Encode, header, Some(area));
        Ok(call)
    }

    /// Fetch the answer to `call`, whose images lie at `rows`.
    fn fetch_rows(
        &self,
        client: &mut WorkerClient,
        call: u64,
        rows: impl Iterator<Item = usize>,
    ) -> Called {
        let timeout = client.setup.timeouts.batch;
        let check = |reply| self.0.check(reply);
        match client.fetch(call, Method::Encode, timeout, check) {
            Ok(values) => {
                client.proven = true;
                Ok(self.0.rows(&values, rows))
            }
            Err(failure) => Err(failure.error),
        }
    }
}

impl stream::Kind for Images {
    type Item = PreparedImage;
    type Row = RowResult;
    type Answer = Answer;
    const METHOD: Method = Method::Encode;

    fn admit(&self, client: &WorkerClient, batch: &[PreparedImage]) -> Result<(), ModelError> {
        self.0.admit(&client.opened.model, batch)
    }

    fn bytes(&self, _: &WorkerClient, _: &[PreparedImage]) -> u64 {
        self.0.batch_bytes()
    }

    fn submit(
        &self,
        client: &mut WorkerClient,
        slot: u32,
        batch: &[PreparedImage],
    ) -> Result<u64, ModelError> {
        let rows: Vec<_> = batch.iter().enumerate().collect();
        self.submit_rows(client, slot, &rows)
    }

    fn fetch(&self, client: &mut WorkerClient, call: u64, batch: &[PreparedImage]) -> Called {
        self.fetch_rows(client, call, 0..batch.len())
    }

    fn settled(row: &RowResult) -> bool {
        row.is_ok()
    }

    fn settle(
        &self,
        client: &mut WorkerClient,
        batch: &[PreparedImage],
        outcome: Result<Vec<RowResult>, WireError>,
    ) -> Result<Vec<Answer>, ModelError> {
        let mut calls = Calls {
            images: self,
            client,
        };
        let results = settle(&mut calls, batch, outcome)?;
        Ok(batch
            .iter()
            .zip(results)
            .map(|(image, result)| Answer {
                sample: image.sample,
                result,
            })
            .collect())
    }
}

/// Calls one at a time, while none is open, so that the first slot is free.
struct Calls<'a> {
    images: &'a Images,
    client: &'a mut WorkerClient,
}

impl Caller for Calls<'_> {
    fn call(&mut self, rows: &[(usize, &PreparedImage)]) -> Result<Called, ModelError> {
        let call = self.images.submit_rows(self.client, 0, rows)?;
        let rows = rows.iter().map(|(row, _)| *row);
        Ok(self.images.fetch_rows(self.client, call, rows))
    }

    fn proven(&self) -> bool {
        self.client.proven
    }

    fn plugin(&self) -> &str {
        &self.client.setup.plugin
    }
}

impl ImageEncoder for WorkerClient {
    fn opened(&self) -> &OpenedModel {
        &self.opened
    }

    fn encode_all(
        &mut self,
        batches: &mut dyn Iterator<Item = PixelBatch>,
        sink: &mut dyn FnMut(Vec<Answer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        let plan = self.plans.images(&self.setup.plugin, &self.opened.model)?;
        let mut batches = batches.map(|batch| batch.images);
        stream::run(&Images(plan), self, &mut batches, sink)
    }
}
