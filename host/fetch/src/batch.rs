//! Many files: in parallel, few per host, each on its own. One failure loses no other file.

use crate::{
    Context, address,
    error::{FetchError, Result, quoted},
    file::fetch_file,
    folder::{Folder, PART, check_name},
    job::{FileJob, Outcome},
    progress::Event,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Condvar, Mutex},
};

/// Refusals from a host that has not given one file, after which it is not asked again: no lock-out of an account for 16,000 wrong passwords.
const REFUSALS: u32 = 3;

/// How one file ended.
#[derive(Debug)]
pub struct FileReport {
    /// Name below the target folder.
    pub name: String,
    /// In place, or why not.
    pub result: Result<Outcome>,
}

/// How a batch ended: one report per job, in their order.
#[derive(Debug)]
pub struct Summary {
    /// The reports.
    pub files: Vec<FileReport>,
}

impl Summary {
    /// Whether every file is in place.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|f| f.result.is_ok())
    }

    /// Files that were fetched now.
    pub fn fetched(&self) -> usize {
        self.count(|o| o.attempts > 0)
    }

    /// Files that were there already.
    pub fn present(&self) -> usize {
        self.count(|o| o.attempts == 0)
    }

    /// Files that are not in place, with the reason.
    pub fn failed(&self) -> impl Iterator<Item = (&str, &FetchError)> {
        self.files
            .iter()
            .filter_map(|f| Some((f.name.as_str(), f.result.as_ref().err()?)))
    }

    /// Bytes that came over the network for the files now in place.
    pub fn received(&self) -> u64 {
        let outcomes = self.files.iter().filter_map(|f| f.result.as_ref().ok());
        outcomes.map(|o| o.received).sum()
    }

    fn count(&self, test: impl Fn(&Outcome) -> bool) -> usize {
        let outcomes = self.files.iter().filter_map(|f| f.result.as_ref().ok());
        outcomes.filter(|o| test(o)).count()
    }
}

/// Fetch files into the folder. `Err` only if nothing was begun: bad or colliding names, or less space than the list needs.
pub fn fetch_all(context: &Context<'_>, folder: &Folder, jobs: &[FileJob]) -> Result<Summary> {
    check_names(jobs.iter().map(|j| j.name.as_str()))?;
    check_space(context, folder, jobs)?;
    let sizes: Option<Vec<u64>> = jobs.iter().map(|j| j.size).collect();
    context.progress.event(&Event::Planned {
        files: jobs.len(),
        bytes: sizes.map(|s| s.iter().sum()),
    });
    let limits = context.client.limits();
    let queue = Queue::new(jobs, limits.parallel_per_host.max(1));
    let mut results: Vec<Option<Result<Outcome>>> = jobs.iter().map(|_| None).collect();
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..limits.parallel.clamp(1, jobs.len().max(1)))
            .map(|_| scope.spawn(|| work(context, folder, jobs, &queue)))
            .collect();
        workers
            .into_iter()
            .flat_map(|w| match w.join() {
                Ok(list) => list,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect::<Vec<_>>()
    });
    for (index, result) in done {
        results[index] = Some(result);
    }
    let files = jobs
        .iter()
        .zip(results)
        .map(|(job, result)| FileReport {
            name: job.name.clone(),
            result: result.expect("the queue gives out every job once"),
        })
        .collect();
    Ok(Summary { files })
}

fn work(
    context: &Context<'_>,
    folder: &Folder,
    jobs: &[FileJob],
    queue: &Queue,
) -> Vec<(usize, Result<Outcome>)> {
    let mut done = Vec::new();
    while let Some((index, refused)) = queue.take() {
        let job = &jobs[index];
        // Given back even if the transfer panics, or the other workers would wait for ever.
        let mut slot = Slot {
            queue,
            host: host(job),
            result: None,
        };
        let unasked = match refused {
            _ if context.cancel.is_cancelled() => Some(FetchError::Cancelled),
            Some(status) => Some(FetchError::Refused {
                address: address::shown(&job.url),
                status,
                with_login: job.login.is_some(),
                advice: job.advice.clone(),
            }),
            None => None,
        };
        let result = if let Some(error) = unasked {
            context.progress.event(&Event::Failed {
                name: &job.name,
                error: &error,
            });
            Err(error)
        } else {
            fetch_file(context, folder, job)
        };
        slot.result = Some(match &result {
            // A file that was there says nothing about the host.
            Ok(outcome) if outcome.attempts > 0 => Answered::Given,
            Err(FetchError::Refused { status, .. }) => Answered::Refused(*status),
            _ => Answered::Other,
        });
        drop(slot);
        done.push((index, result));
    }
    done
}

fn host(job: &FileJob) -> &str {
    job.url.host_str().unwrap_or_default()
}

/// Safe names, none twice, and none that is a folder of another.
pub(crate) fn check_names<'a>(list: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
    let mut names = BTreeSet::new();
    for name in list.clone() {
        check_name(name)?;
        if !names.insert(name) {
            return Err(FetchError::NameTwice { name: quoted(name) });
        }
    }
    for name in list {
        let mut folders = name.match_indices('/').map(|(i, _)| &name[..i]);
        if let Some(name) = folders.find(|f| names.contains(f)) {
            return Err(FetchError::NameTwice { name: quoted(name) });
        }
    }
    Ok(())
}

fn check_space(context: &Context<'_>, folder: &Folder, jobs: &[FileJob]) -> Result<()> {
    let mut left: u64 = 0;
    for job in jobs {
        let Some(size) = job.size else { continue };
        // What stands in the way is that file's own failure, later.
        let Ok((parent, name)) = folder.parent(&job.name) else {
            continue;
        };
        let length = |name: &str| Some(parent.read(name).ok()??.metadata().ok()?.len());
        if length(name).is_none() {
            let have = length(&format!("{name}{PART}")).unwrap_or(0);
            left = left.saturating_add(size.saturating_sub(have));
        }
    }
    let needed = left.saturating_add(context.client.limits().reserve_bytes);
    let free = context
        .machine
        .free_bytes(folder.fd())
        .map_err(FetchError::io("measure the free space of", folder.path()))?;
    if left > 0 && free < needed {
        return Err(FetchError::NoSpace {
            path: folder.path().into(),
            needed,
            free,
        });
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Answered {
    Given,
    Refused(u16),
    Other,
}

struct Slot<'a> {
    queue: &'a Queue,
    host: &'a str,
    result: Option<Answered>,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.queue
            .give_back(self.host, self.result.unwrap_or(Answered::Other));
    }
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<usize>,
    running: usize,
    given: bool,
    refusals: u32,
    status: u16,
}

/// Jobs by host; few of a host at once.
struct Queue {
    lanes: Mutex<BTreeMap<String, Lane>>,
    freed: Condvar,
    per_host: usize,
}

impl Queue {
    fn new(jobs: &[FileJob], per_host: usize) -> Self {
        let mut lanes: BTreeMap<String, Lane> = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate() {
            lanes
                .entry(host(job).into())
                .or_default()
                .waiting
                .push_back(index);
        }
        Self {
            lanes: Mutex::new(lanes),
            freed: Condvar::new(),
            per_host,
        }
    }

    /// The next job, and the status with which its host refuses everything, if it does. `None`: no job is left.
    fn take(&self) -> Option<(usize, Option<u16>)> {
        let mut lanes = self.lanes.lock().expect("no thread panics with the queue");
        loop {
            if lanes.values().all(|l| l.waiting.is_empty()) {
                return None;
            }
            let free = lanes
                .values_mut()
                .filter(|l| !l.waiting.is_empty() && l.running < self.per_host)
                .min_by_key(|l| l.running);
            if let Some(lane) = free {
                lane.running += 1;
                let index = lane.waiting.pop_front().expect("filtered");
                let refused = !lane.given && lane.refusals >= REFUSALS;
                return Some((index, refused.then_some(lane.status)));
            }
            lanes = self
                .freed
                .wait(lanes)
                .expect("no thread panics with the queue");
        }
    }

    fn give_back(&self, host: &str, answered: Answered) {
        let mut lanes = self.lanes.lock().expect("no thread panics with the queue");
        let lane = lanes.get_mut(host).expect("taken from there");
        lane.running -= 1;
        match answered {
            Answered::Given => lane.given = true,
            Answered::Refused(status) => {
                lane.refusals += 1;
                lane.status = status;
            }
            Answered::Other => {}
        }
        drop(lanes);
        self.freed.notify_all();
    }
}
