//! Pipelining: batches go out before the answers to those before them are in.
//!
//! Answers leave in order. While the worker computes one batch the next already lies in another slot. A batch that fails is settled by
//! `bisect` before anything later is looked at; batches behind it are answered first if the process lives, or sent again after it
//! was restarted.
//!
//! Must not know what batches hold.

use super::WorkerClient;
use crate::{ModelError, SinkError};
use focus_wire::{Method, WireError};
use std::collections::VecDeque;

/// A kind of call, and how its batches become answers.
pub(super) trait Kind {
    /// What a batch holds.
    type Item;
    /// A row of a reply.
    type Row;
    /// What becomes of an item.
    type Answer;
    /// The method called.
    const METHOD: Method;

    /// The caller's batch must fit the model.
    fn admit(&self, client: &WorkerClient, batch: &[Self::Item]) -> Result<(), ModelError>;

    /// Bytes that a batch takes in a slot.
    fn bytes(&self, batch: &[Self::Item]) -> u64;

    /// Lay the batch into the slot, which is large enough, and submit; returns the call's number.
    fn submit(
        &self,
        client: &mut WorkerClient,
        slot: u32,
        batch: &[Self::Item],
    ) -> Result<u64, ModelError>;

    /// Fetch the reply to the oldest call open.
    fn fetch(
        &self,
        client: &mut WorkerClient,
        call: u64,
        batch: &[Self::Item],
    ) -> Result<Vec<Self::Row>, WireError>;

    /// Whether a row of a reply needs no other call.
    fn settled(row: &Self::Row) -> bool;

    /// One answer for each item. Makes further calls only if the outcome failed or a row is not settled; no other call is open then.
    fn settle(
        &self,
        client: &mut WorkerClient,
        batch: &[Self::Item],
        outcome: Result<Vec<Self::Row>, WireError>,
    ) -> Result<Vec<Self::Answer>, ModelError>;
}

/// A batch between `batches` and `sink`.
struct Flight<K: Kind> {
    batch: Vec<K::Item>,
    slot: u32,
    state: State<K>,
}

enum State<K: Kind> {
    Unsent,
    Sent(u64),
    Answered(Result<Vec<K::Row>, WireError>),
}

/// A stream of calls over one client.
struct Stream<'a, K: Kind> {
    kind: &'a K,
    client: &'a mut WorkerClient,
    batches: &'a mut dyn Iterator<Item = Vec<K::Item>>,
    /// A batch that waits for larger slots, admitted.
    waiting: Option<Vec<K::Item>>,
    flying: VecDeque<Flight<K>>,
}

/// Pull batches, push the answers of each in order.
pub(super) fn run<K: Kind>(
    kind: &K,
    client: &mut WorkerClient,
    batches: &mut dyn Iterator<Item = Vec<K::Item>>,
    sink: &mut dyn FnMut(Vec<K::Answer>) -> Result<(), SinkError>,
) -> Result<(), ModelError> {
    let mut stream = Stream {
        kind,
        client,
        batches,
        waiting: None,
        flying: VecDeque::new(),
    };
    let result = stream.run(sink);
    if result.is_err() {
        let sent = |flight: &&Flight<K>| matches!(flight.state, State::Sent(_));
        let open = stream.flying.iter().filter(sent).count();
        stream.client.give_up(K::METHOD, open);
    }
    result
}

impl<K: Kind> Stream<'_, K> {
    fn run(
        &mut self,
        sink: &mut dyn FnMut(Vec<K::Answer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        self.fill()?;
        while let Some(front) = self.flying.pop_front() {
            let answers = self.land(front)?;
            // The worker gets its next batch before the caller gets to work on this one's answers.
            // Answers in hand are kept even where it cannot be given one.
            let filled = self.fill();
            sink(answers).map_err(ModelError::Sink)?;
            filled?;
        }
        Ok(())
    }

    /// Keep every slot busy.
    fn fill(&mut self) -> Result<(), ModelError> {
        // First what a death threw back, in order; then new batches.
        for flight in &mut self.flying {
            if matches!(flight.state, State::Unsent) {
                let call = self.kind.submit(self.client, flight.slot, &flight.batch)?;
                flight.state = State::Sent(call);
            }
        }
        let slots = self.client.slots.slots();
        while self.flying.len() < slots as usize {
            let batch = match self.waiting.take() {
                Some(batch) => batch,
                None => match self.batches.next() {
                    Some(batch) => {
                        self.kind.admit(self.client, &batch)?;
                        batch
                    }
                    None => break,
                },
            };
            let bytes = self.kind.bytes(&batch);
            if bytes > self.client.slots.slot_bytes() {
                if !self.flying.is_empty() {
                    self.waiting = Some(batch);
                    break;
                }
                self.client.grow_slots(bytes)?;
            }
            let slot =
                (0..slots).find(|slot| self.flying.iter().all(|flight| flight.slot != *slot));
            let slot = slot.expect("fewer batches fly than there are slots");
            let state = if batch.is_empty() {
                State::Answered(Ok(Vec::new()))
            } else {
                State::Sent(self.kind.submit(self.client, slot, &batch)?)
            };
            self.flying.push_back(Flight { batch, slot, state });
        }
        Ok(())
    }

    /// Results of the oldest batch. Leaves no call of a later one open if anything failed.
    fn land(&mut self, flight: Flight<K>) -> Result<Vec<K::Answer>, ModelError> {
        let outcome = match flight.state {
            State::Sent(call) => self.kind.fetch(self.client, call, &flight.batch),
            State::Answered(outcome) => outcome,
            State::Unsent => Err(self.client.last_words()),
        };
        let clean = matches!(&outcome, Ok(rows) if rows.iter().all(K::settled));
        if !clean {
            for flight in &mut self.flying {
                if let State::Sent(call) = flight.state {
                    // Without a session the call died with the process, unanswered and unblamed.
                    flight.state = if self.client.session.is_some() {
                        State::Answered(self.kind.fetch(self.client, call, &flight.batch))
                    } else {
                        State::Unsent
                    };
                }
            }
        }
        self.kind.settle(self.client, &flight.batch, outcome)
    }
}
