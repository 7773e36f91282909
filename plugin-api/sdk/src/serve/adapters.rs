//! `lora_adaptable.attach` and `.detach`. Must not know of prompts.

use super::{say, take};
use crate::{AttachRequest, DetachRequest, Error, Host, LoraAdaptable};
use focus_plugin_abi::v1::Message;
use std::collections::BTreeMap;

pub(super) fn attach(
    model: &mut dyn LoraAdaptable,
    message: Message,
    host: &Host,
) -> Result<Message, Error> {
    let (request, []): (AttachRequest, _) = take("attach", message)?;
    let reply = model.attach(&request, host)?;
    if reply.name != request.name {
        return Err(Error::internal(format!(
            "Model attached another adapter: expected `{}`, found `{}`",
            request.name, reply.name
        )));
    }
    let mut numbers = reply.scales.iter().chain([&reply.probe_change]);
    if let Some(found) = numbers.find(|value| !value.is_finite()) {
        return Err(Error::internal(format!(
            "Model attached `{}` with a scale or change that is not finite: {found}",
            reply.name
        )));
    }
    say(&reply)
}

pub(super) fn detach(
    model: &mut dyn LoraAdaptable,
    message: Message,
    host: &Host,
) -> Result<Message, Error> {
    let (request, []): (DetachRequest, _) = take("detach", message)?;
    model.detach(&request.name, host)?;
    say(&BTreeMap::<String, String>::new())
}
