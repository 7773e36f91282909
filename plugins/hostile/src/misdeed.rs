//! The misdeeds. Must not know the model.

use focus_plugin_sdk::{Error, ErrorKind, GeneratedAnswer, Host, Level};
use std::time::{Duration, Instant};

/// What to do wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misdeed {
    /// Nothing.
    None,
    /// `panic`: an ordinary one.
    Panic,
    /// `panic_in_open`: while opening.
    PanicInOpen,
    /// `panic_in_drop`: while being closed.
    PanicInDrop,
    /// `double_panic`: a second one while the first unwinds; no barrier can catch that.
    DoublePanic,
    /// `segfault`: write to an address that is not there.
    Segfault,
    /// `stack_overflow`: recurse until the stack ends.
    StackOverflow,
    /// `abort`.
    Abort,
    /// `exit`: leave with status 0, as if all were well.
    Exit,
    /// `hang`: forever, deaf to cancellation.
    Hang,
    /// `hang_in_open`: the same, while opening.
    HangInOpen,
    /// `slow`: `amount` seconds (default 30), but stops when cancelled, with progress.
    Slow(u64),
    /// `short_rows`: one row too few.
    ShortRows,
    /// `extra_rows`: a hundred rows too many.
    ExtraRows,
    /// `wrong_dim`: one value a row too few.
    WrongDim,
    /// `nan`: in the offending row.
    Nan,
    /// `infinity`: in the offending row.
    Infinity,
    /// `leak`: take and touch memory until killed, or up to `amount` MiB (default all).
    Leak(u64),
    /// `stdout_spam`: `amount` MiB (default 16) to standard output.
    StdoutSpam(u64),
    /// `stderr_spam`: the same to standard error, without line ends.
    StderrSpam(u64),
    /// `log_spam`: `amount` lines (default 20,000) of 10 kB through the host's log.
    LogSpam(u64),
    /// `write_file`: to `path`; the log says how it went.
    WriteFile(String),
    /// `open_socket`: connect to `address`; the log says how it went.
    OpenSocket(String),
    /// `fork`: leave a child that holds every descriptor for `amount` seconds (default 60).
    Fork(u64),
    /// `positive`: the log probability 0.5 (generator).
    Positive,
    /// `huge_text`: a text of `amount` MiB (default 2) in the offending group (generator).
    HugeText(u64),
    /// `lying_rows`: a text too many in the token list (texts).
    LyingRows,
    /// `fickle_adapter`: another digest in each process (adapters).
    FickleAdapter,
    /// `read_variable`: whether the environment has the variable `path`; the log says so.
    ReadVariable(String),
    /// `error`: report an error of kind `image`, as a good plugin would.
    Error,
    /// `unknown_error`: report an error of a kind that nobody knows.
    UnknownError,
}

/// Moments other than a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Open,
    Drop,
}

impl Misdeed {
    pub(crate) fn from_settings<'a>(
        name: &str,
        setting: &dyn Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, Error> {
        let amount = |default: u64| match setting("amount") {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| {
                Error::invalid_request(format!(
                    "Setting `amount` must be a whole number, found `{text}`"
                ))
            }),
        };
        let target = |key: &str| {
            setting(key).map(str::to_owned).ok_or_else(|| {
                Error::invalid_request(format!("Misdeed `{name}` wants the setting `{key}`"))
            })
        };
        Ok(match name {
            "none" => Self::None,
            "panic" => Self::Panic,
            "panic_in_open" => Self::PanicInOpen,
            "panic_in_drop" => Self::PanicInDrop,
            "double_panic" => Self::DoublePanic,
            "segfault" => Self::Segfault,
            "stack_overflow" => Self::StackOverflow,
            "abort" => Self::Abort,
            "exit" => Self::Exit,
            "hang" => Self::Hang,
            "hang_in_open" => Self::HangInOpen,
            "slow" => Self::Slow(amount(30)?),
            "short_rows" => Self::ShortRows,
            "extra_rows" => Self::ExtraRows,
            "wrong_dim" => Self::WrongDim,
            "nan" => Self::Nan,
            "infinity" => Self::Infinity,
            "leak" => Self::Leak(amount(u64::MAX)?),
            "stdout_spam" => Self::StdoutSpam(amount(16)?),
            "stderr_spam" => Self::StderrSpam(amount(16)?),
            "log_spam" => Self::LogSpam(amount(20_000)?),
            "write_file" => Self::WriteFile(target("path")?),
            "open_socket" => Self::OpenSocket(target("address")?),
            "fork" => Self::Fork(amount(60)?),
            "positive" => Self::Positive,
            "huge_text" => Self::HugeText(amount(2)?),
            "lying_rows" => Self::LyingRows,
            "fickle_adapter" => Self::FickleAdapter,
            "read_variable" => Self::ReadVariable(target("path")?),
            "error" => Self::Error,
            "unknown_error" => Self::UnknownError,
            other => return Err(Error::invalid_request(format!("Unknown misdeed `{other}`"))),
        })
    }

    /// What happens outside a call.
    pub(crate) fn at(&self, when: When) {
        match (self, when) {
            (Self::PanicInOpen, When::Open) => panic!("asked to panic while opening"),
            (Self::PanicInDrop, When::Drop) => panic!("asked to panic while being closed"),
            (Self::HangInOpen, When::Open) => hang(),
            _ => {}
        }
    }

    /// What happens in an encode call: `row` is the image that set it off, `values` the true embeddings, `used` rows of them.
    /// Returns the row length to claim.
    pub(crate) fn during_encode(
        &self,
        host: &Host,
        row: usize,
        used: usize,
        values: &mut Vec<f32>,
    ) -> Result<usize, Error> {
        let dim = crate::DIM;
        self.act(host, row)?;
        match self {
            Self::ShortRows => values.truncate((used - 1) * dim),
            Self::ExtraRows => values.resize((used + 100) * dim, 0.5),
            Self::WrongDim => {
                values.truncate(used * (dim - 1));
                return Ok(dim - 1);
            }
            Self::Nan => values[row * dim + 2] = f32::NAN,
            Self::Infinity => values[row * dim + 5] = f32::NEG_INFINITY,
            _ => {}
        }
        Ok(dim)
    }

    /// What happens to the true answers of the group that set it off.
    pub(crate) fn during_generate(&self, answers: &mut Vec<GeneratedAnswer>) {
        let score = |answers: &mut Vec<GeneratedAnswer>, found: f64| {
            if let Some(score) = answers.last_mut().and_then(|last| last.scores.first_mut()) {
                score.logprob = Some(found);
            }
        };
        match self {
            Self::ShortRows => drop(answers.pop()),
            Self::ExtraRows => answers.extend(answers.last().cloned()),
            Self::Nan => score(answers, f64::NAN),
            Self::Infinity => score(answers, f64::NEG_INFINITY),
            Self::Positive => score(answers, 0.5),
            Self::HugeText(mib) => {
                if let Some(last) = answers.last_mut() {
                    last.text = "x".repeat(*mib as usize * (1 << 20));
                }
            }
            _ => {}
        }
    }

    /// Misdeeds that need no result to spoil; `which`: the number of the image, text or group that set them off.
    pub(crate) fn act(&self, host: &Host, which: usize) -> Result<(), Error> {
        match self {
            Self::Panic => panic!("asked to panic by image {which}"),
            Self::DoublePanic => double_panic(),
            Self::Segfault => segfault(),
            Self::StackOverflow => host.log(Level::Trace, overflow(1)),
            Self::Abort => std::process::abort(),
            Self::Exit => std::process::exit(0),
            Self::Hang => hang(),
            Self::Slow(seconds) => slow(host, *seconds)?,
            Self::Leak(mib) => leak(*mib),
            Self::StdoutSpam(mib) => spam(&mut std::io::stdout().lock(), *mib, b'\n'),
            Self::StderrSpam(mib) => spam(&mut std::io::stderr().lock(), *mib, b' '),
            Self::LogSpam(lines) => {
                (0..*lines).for_each(|n| host.info(format!("{n} {}", "spam ".repeat(2000))));
            }
            Self::WriteFile(path) => report(
                host,
                "write_file",
                std::fs::write(path, b"hostile was here"),
            ),
            Self::OpenSocket(address) => report(
                host,
                "open_socket",
                std::net::TcpStream::connect(address).map(drop),
            ),
            Self::ReadVariable(name) => {
                // Never the value: it may be a secret.
                let found = std::env::var_os(name).map_or("absent", |_| "there");
                host.warn(format!("read_variable: {name} {found}"));
            }
            Self::Fork(seconds) => fork(host, *seconds),
            Self::Error => {
                return Err(Error::image(format!("Asked to refuse image {which}"))
                    .with_hint("Ask for another misdeed"));
            }
            Self::UnknownError => {
                return Err(Error::new(ErrorKind(4711), "An error of a kind to come"));
            }
            _ => {}
        }
        Ok(())
    }
}

fn report(host: &Host, deed: &str, outcome: std::io::Result<()>) {
    match outcome {
        Ok(()) => host.warn(format!("{deed}: done")),
        Err(error) => host.warn(format!("{deed}: denied: {error}")),
    }
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_hours(1));
    }
}

fn slow(host: &Host, seconds: u64) -> Result<(), Error> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        host.check_cancelled()?;
        host.progress("slow", start.elapsed().as_secs(), seconds);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn double_panic() {
    struct Again;
    impl Drop for Again {
        fn drop(&mut self) {
            panic!("asked to panic while panicking");
        }
    }
    let _again = Again;
    panic!("asked to panic twice");
}

fn segfault() {
    // Not null: a debug build's own check would turn that into a panic.
    let nowhere = std::hint::black_box(64_usize) as *mut u8;
    // SAFETY: there is none. The fault is the point: page 0 is never mapped.
    unsafe { nowhere.write_volatile(1) };
}

#[expect(unconditional_recursion, reason = "the stack overflow is the point")]
fn overflow(depth: u64) -> u64 {
    let page = std::hint::black_box([depth; 512]);
    overflow(depth + 1) + page[0]
}

/// In steps small enough for a watchdog to see it coming.
fn leak(mib: u64) {
    for _ in 0..mib {
        let block = vec![1_u8; 1 << 20];
        std::mem::forget(std::hint::black_box(block));
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn spam(to: &mut dyn std::io::Write, mib: u64, end: u8) {
    let mut line = vec![b'x'; 1024];
    line[1023] = end;
    for _ in 0..mib * 1024 {
        // A reader that is gone ends the spam.
        if to.write_all(&line).is_err() {
            return;
        }
    }
}

fn fork(host: &Host, seconds: u64) {
    // SAFETY: the child only sleeps and leaves, both async-signal-safe.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            libc::sleep(u32::try_from(seconds).unwrap_or(u32::MAX));
            libc::_exit(0);
        }
    }
    host.warn(format!("fork: child {child}"));
}
