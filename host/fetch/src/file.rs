//! One file: what is there already, attempts, verification, its name.

use crate::{
    Context, address,
    checksum::Hasher,
    error::{FetchError, Result},
    folder::Folder,
    http::{Answer, Ask, failure},
    job::{FileJob, Outcome, Proof},
    part::{Part, Validator},
    progress::Event,
    retry::{Step, persist},
};
use std::{
    fs::File,
    io::{self, Read as _},
    time::Duration,
};

/// Bytes between two looks at the free space.
const SPACE_EVERY: u64 = 16 << 20;

/// Fetch one file into the folder. Nothing appears under its name unless whole and verified; a verified file that is there already is left alone.
pub fn fetch_file(context: &Context<'_>, folder: &Folder, job: &FileJob) -> Result<Outcome> {
    let result = (|| {
        job.check()?;
        let (parent, name) = folder.parent(&job.name)?;
        if let Some(file) = parent.read(name)? {
            return present(context, &parent, name, file, job);
        }
        let part = Part::open(&parent, name, job, context.cancel)?;
        Transfer {
            context,
            folder: &parent,
            name,
            job,
            part,
            received: 0,
            mixed: true,
            distrusted: false,
        }
        .run()
    })();
    let name = &job.name;
    match &result {
        Ok(outcome) => context.progress.event(&Event::Finished { name, outcome }),
        Err(error) => context.progress.event(&Event::Failed { name, error }),
    }
    result
}

/// A file of that name is there: is it the one?
fn present(
    context: &Context<'_>,
    folder: &Folder,
    name: &str,
    mut file: File,
    job: &FileJob,
) -> Result<Outcome> {
    let failed = || FetchError::io("read", folder.at(name));
    let bytes = file.metadata().map_err(failed())?.len();
    let differs = |expected, found| FetchError::ExistingDiffers {
        path: folder.at(name),
        expected,
        found,
    };
    if let Some(size) = job.size.filter(|s| *s != bytes) {
        return Err(differs(format!("{size} bytes"), format!("{bytes} bytes")));
    }
    if !job.checksums.is_empty() {
        let mut hasher = Hasher::new(&job.checksums);
        let mut buffer = vec![0; 1 << 18];
        loop {
            context.cancel.check()?;
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => hasher.update(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failed()(e)),
            }
        }
        if let Some((wanted, found)) = hasher.mismatch(&job.checksums) {
            return Err(differs(
                wanted.to_string(),
                format!("{}:{found}", wanted.algorithm()),
            ));
        }
    }
    Ok(Outcome {
        bytes,
        received: 0,
        attempts: 0,
        proof: match proof(job) {
            Proof::Transfer => Proof::None,
            known => known,
        },
    })
}

fn proof(job: &FileJob) -> Proof {
    if !job.checksums.is_empty() {
        Proof::Checksum
    } else if job.size.is_some() {
        Proof::Size
    } else {
        Proof::Transfer
    }
}

struct Transfer<'a> {
    context: &'a Context<'a>,
    folder: &'a Folder,
    name: &'a str,
    job: &'a FileJob,
    part: Part<'a>,
    received: u64,
    /// Whether the bytes come from more than one answer.
    mixed: bool,
    /// Whether a mixture has once failed its checksum.
    distrusted: bool,
}

impl Transfer<'_> {
    fn run(mut self) -> Result<Outcome> {
        let host = self.job.url.host_str().unwrap_or_default().to_owned();
        let (context, name) = (self.context, self.job.name.clone());
        let ((), attempts) = persist(context, &name, &host, || {
            let before = self.received;
            let result = self.attempt();
            (result, self.received > before)
        })?;
        let outcome = Outcome {
            bytes: self.part.len(),
            received: self.received,
            attempts,
            proof: proof(self.job),
        };
        self.part.finish()?;
        Ok(outcome)
    }

    fn restart(&mut self, reason: &str) -> Result<Step<()>> {
        let discarded = self.part.restart()?;
        self.mixed = false;
        tracing::debug!(name = self.job.name, discarded, reason, "starting again");
        self.context.progress.event(&Event::Restarted {
            name: &self.job.name,
            discarded,
            reason,
        });
        Ok(Step::Again)
    }

    fn attempt(&mut self) -> Result<Step<()>> {
        let have = self.part.len();
        if let Some(total) = self.part.total().or(self.job.size) {
            if have > total {
                return self.restart("more bytes than the file has");
            }
            if have == total && have > 0 {
                return self.verify();
            }
        }
        let range = (have > 0).then(|| {
            let validator = self.part.validator().map(|v| v.text().to_owned());
            (format!("bytes={have}-"), validator)
        });
        let answer = self.context.client.ask(
            self.context.machine,
            &Ask {
                url: &self.job.url,
                login: self.job.login.as_ref(),
                range,
                advice: self.job.advice.as_deref(),
            },
        )?;
        let total = match answer.status {
            416 => return self.beyond(&answer),
            206 => {
                let Some((start, total)) = range_of(&answer) else {
                    return Err(protocol(
                        &answer,
                        "a part without a readable `Content-Range`",
                    ));
                };
                if start != have {
                    return self.restart("the server sent another part than asked for");
                }
                let total = total.or(answer.length.map(|n| have + n));
                if self.part.total().is_some() && total != self.part.total() {
                    return self.restart("the file's size changed at the source");
                }
                if is_another(self.part.validator(), Validator::of(&answer).as_ref()) {
                    return self.restart("the file changed at the source");
                }
                self.mixed = true;
                total
            }
            _ => {
                if have > 0 {
                    // The answer is the whole file: it can be used as it is.
                    self.restart("the file changed at the source, or the server knows no ranges")?;
                }
                self.mixed = false;
                answer.length
            }
        };
        self.admit(&answer, total)?;
        // What the note says holds for the rest of the same file only.
        let noted = (answer.status == 206).then(|| self.part.validator().cloned());
        let validator = Validator::of(&answer).or(noted.flatten());
        self.part.begin(validator, total)?;
        self.context.progress.event(&Event::Started {
            name: &self.job.name,
            have: self.part.len(),
            total: total.or(self.job.size),
        });
        let address = address::shown(&answer.url);
        self.receive(answer, total.or(self.job.size))?;
        if let Some(expected) = total.or(self.job.size)
            && self.part.len() < expected
        {
            return Err(FetchError::BrokeOff {
                address,
                received: self.part.len(),
                expected: Some(expected),
            });
        }
        self.verify()
    }

    /// Whether the body may come at all: size, limits, space.
    fn admit(&self, answer: &Answer, total: Option<u64>) -> Result<()> {
        if let (Some(expected), Some(found)) = (self.job.size, total)
            && expected != found
        {
            return Err(self.size_differs(expected, found));
        }
        let limit = self.context.client.limits().file_bytes;
        if let Some(found) = total.filter(|t| *t > limit) {
            return Err(self.too_large(limit, found));
        }
        let chunked = answer.headers.contains_key("transfer-encoding");
        if total.is_none() && proof(self.job) == Proof::Transfer && !chunked {
            return Err(protocol(
                answer,
                "neither length nor checksum, so its end is unknown",
            ));
        }
        let left = total
            .or(self.job.size)
            .map_or(0, |t| t.saturating_sub(self.part.len()));
        self.space(left)
    }

    fn space(&self, left: u64) -> Result<()> {
        let free = self
            .context
            .machine
            .free_bytes(self.folder.fd())
            .map_err(FetchError::io(
                "measure the free space of",
                self.folder.path(),
            ))?;
        let needed = left.saturating_add(self.context.client.limits().reserve_bytes);
        if free < needed {
            return Err(FetchError::NoSpace {
                path: self.folder.at(self.name),
                needed,
                free,
            });
        }
        Ok(())
    }

    fn receive(&mut self, answer: Answer, total: Option<u64>) -> Result<()> {
        let limits = self.context.client.limits();
        let (url, mut body) = (answer.url, answer.body);
        let mut buffer = vec![0; 1 << 16];
        let mut since_space = 0;
        let mut window = (self.context.machine.uptime(), 0_u64);
        loop {
            self.context.cancel.check()?;
            let n = match body.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    return Err(match failure(&url, &e.into()) {
                        // Cut off within the framing or the line: the same to the user, and it may pass.
                        FetchError::Connection { address, .. }
                        | FetchError::Protocol { address, .. } => FetchError::BrokeOff {
                            address,
                            received: self.part.len(),
                            expected: total,
                        },
                        other => other,
                    });
                }
            };
            let after = self.part.len() + n as u64;
            if let Some(expected) = total.filter(|t| after > *t) {
                self.part.restart()?;
                return Err(self.size_differs(expected, after));
            }
            if after > limits.file_bytes {
                self.part.restart()?;
                return Err(self.too_large(limits.file_bytes, after));
            }
            self.part.append(&buffer[..n]).map_err(|e| {
                if matches!(
                    e.kind(),
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
                ) {
                    FetchError::NoSpace {
                        path: self.folder.at(self.name),
                        needed: n as u64,
                        free: 0,
                    }
                } else {
                    FetchError::io("write", self.folder.at(self.name))(e)
                }
            })?;
            self.received += n as u64;
            self.context.progress.event(&Event::Received {
                name: &self.job.name,
                bytes: n as u64,
            });
            since_space += n as u64;
            if since_space >= SPACE_EVERY {
                since_space = 0;
                self.space(0)?;
            }
            window.1 += n as u64;
            let elapsed = self.context.machine.uptime().saturating_sub(window.0);
            if elapsed >= limits.slow_window {
                if is_slow(window.1, elapsed, limits.slow_bytes) {
                    return Err(FetchError::Slow {
                        address: address::shown(&url),
                        what: format!("{} bytes in {} s", window.1, elapsed.as_secs()),
                    });
                }
                window = (self.context.machine.uptime(), 0);
            }
        }
    }

    /// 416: the file ends where the part does, or it became shorter.
    fn beyond(&mut self, answer: &Answer) -> Result<Step<()>> {
        let size = answer
            .header("content-range")
            .and_then(|t| t.strip_prefix("bytes */"))
            .and_then(|t| t.trim().parse::<u64>().ok());
        let same = !is_another(self.part.validator(), Validator::of(answer).as_ref());
        if size == Some(self.part.len()) && same {
            return self.verify();
        }
        self.restart("the file is shorter at the source")
    }

    fn verify(&mut self) -> Result<Step<()>> {
        if let Some(expected) = self.job.size.filter(|s| *s != self.part.len()) {
            let error = self.size_differs(expected, self.part.len());
            self.part.restart()?;
            return Err(error);
        }
        let Some(error) = self.part.mismatch() else {
            return Ok(Step::Done(()));
        };
        if self.mixed && !self.distrusted {
            self.distrusted = true;
            return self.restart("the parts do not fit together");
        }
        // Nothing of it is worth keeping.
        self.part.restart()?;
        Err(error)
    }

    fn size_differs(&self, expected: u64, found: u64) -> FetchError {
        FetchError::SizeDiffers {
            name: self.job.name.clone(),
            expected,
            found,
        }
    }

    fn too_large(&self, limit: u64, found: u64) -> FetchError {
        FetchError::TooLarge {
            address: address::shown(&self.job.url),
            what: "bytes of a file",
            limit,
            found,
        }
    }
}

fn protocol(answer: &Answer, what: &str) -> FetchError {
    FetchError::Protocol {
        address: address::shown(&answer.url),
        what: what.into(),
    }
}

/// Both known, and different. A server may leave its validator out of a 206 or 416.
fn is_another(noted: Option<&Validator>, now: Option<&Validator>) -> bool {
    matches!((noted, now), (Some(a), Some(b)) if a != b)
}

/// `bytes START-END/TOTAL`, where the total may be `*`.
fn range_of(answer: &Answer) -> Option<(u64, Option<u64>)> {
    parse_range(answer.header("content-range")?)
}

fn parse_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.trim().split_once('-')?;
    let (start, end) = (start.parse::<u64>().ok()?, end.parse::<u64>().ok()?);
    let total = match total.trim() {
        "*" => None,
        number => Some(number.parse::<u64>().ok()?),
    };
    // A part that stops short of the end is fine: the next request continues there.
    (start <= end && total.is_none_or(|t| end < t)).then_some((start, total))
}

fn is_slow(bytes: u64, elapsed: Duration, least: u64) -> bool {
    (bytes as f64) < least as f64 * elapsed.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        assert_eq!(parse_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(parse_range("bytes 5-9/*"), Some((5, None)));
        for bad in [
            "",
            "bytes */10",
            "bytes 9-5/10",
            "bytes 5-10/10",
            "items 0-1/2",
            "bytes -1-2/3",
        ] {
            assert_eq!(parse_range(bad), None, "{bad}");
        }
    }
}
