//! Starting and ending a worker process. Knows nothing of what is said on its socket.
//!
//! The child gets: one end of a Unix stream socket, its descriptor number as the **last argument, `--socket-fd N` as two
//! arguments**; stdin from `/dev/null`; stdout and stderr as pipes; an environment of what is listed in [`WorkerCommand`] and
//! nothing else; a session and process group of its own; no core dumps; no other descriptor of the host. It is killed by the kernel
//! when the host ends, and sees EOF on the socket too.
//!
//! The parent-death signal is tied to the *thread* that forked, not to the process: a worker forked by a short-lived thread would
//! die with that thread. So all forks happen on one thread that lives as long as the host.

use crate::OsError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process_group, pidfd_open};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The argument before the descriptor's number.
pub const SOCKET_ARGUMENT: &str = "--socket-fd";

/// Variables of the host that a worker gets too: they choose devices and carry no secrets.
const PASSED: &[&str] = &[
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
];

/// How to start a worker.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// The program; `/proc/self/exe` by default, which survives the file being replaced.
    pub program: PathBuf,
    /// Its arguments, before `--socket-fd N`.
    pub args: Vec<OsString>,
    /// CPU threads that OpenMP and rayon inside the worker may start.
    pub threads: u32,
    /// `LD_LIBRARY_PATH`, exactly what the plugin's sidecar lists.
    pub library_paths: Vec<PathBuf>,
    /// Further variables.
    pub env: Vec<(String, OsString)>,
    /// Names of further variables of the host that it gets, with the values they have when it starts; those that are not set are
    /// left out. By name, so that a secret lies in no structure that could be printed.
    pub pass: Vec<String>,
}

impl Default for WorkerCommand {
    fn default() -> Self {
        Self {
            program: "/proc/self/exe".into(),
            args: vec!["worker".into()],
            threads: 1,
            library_paths: Vec::new(),
            env: Vec::new(),
            pass: Vec::new(),
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It called `exit` with this status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exited(status) => write!(f, "exited with status {status}"),
            Self::Killed(signal) => match signal_name(signal) {
                Some(name) => write!(f, "killed by {name}"),
                None => write!(f, "killed by signal {signal}"),
            },
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGHUP => "SIGHUP",
        libc::SIGILL => "SIGILL",
        libc::SIGINT => "SIGINT",
        libc::SIGKILL => "SIGKILL",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGSYS => "SIGSYS",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGXCPU => "SIGXCPU",
        _ => return None,
    })
}

/// A running worker. Dropping it kills its whole process group and reaps it.
#[derive(Debug)]
pub struct WorkerProcess {
    handle: Arc<ProcessHandle>,
    socket: UnixStream,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl WorkerCommand {
    /// Start it.
    pub fn start(&self) -> Result<WorkerProcess, OsError> {
        let (host_end, worker_end) =
            UnixStream::pair().map_err(OsError::system("creating the worker's socket"))?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .arg(SOCKET_ARGUMENT)
            .arg(worker_end.as_raw_fd().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env_clear()
            .env("LANG", "C.UTF-8")
            .env("OMP_NUM_THREADS", self.threads.to_string())
            .env("RAYON_NUM_THREADS", self.threads.to_string());
        let pass = self.pass.iter().map(String::as_str);
        for name in PASSED.iter().copied().chain(pass) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if !self.library_paths.is_empty() {
            let joined = std::env::join_paths(&self.library_paths)
                .map_err(|error| self.failed(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
            command.env("LD_LIBRARY_PATH", joined);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let socket = worker_end.as_raw_fd();
        let host = rustix::process::getpid();
        // SAFETY: `prepare` makes raw system calls only, which are async-signal-safe, and neither allocates nor locks. The
        // descriptor is open: `worker_end` lives until the fork is over.
        unsafe { command.pre_exec(move || prepare(socket, host)) };
        let mut child = spawn_on_lasting_thread(command).map_err(|error| self.failed(error))?;
        drop(worker_end);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let pid = Pid::from_child(&child);
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                // No handle, no supervision: do not leave it running. Errors: it may be dead already.
                drop((child.kill(), child.wait()));
                return Err(OsError::System {
                    doing: "opening a handle on the worker",
                    source: error.into(),
                });
            }
        };
        // When the machine runs out of memory, the worker goes before the host. Best effort.
        drop(std::fs::write(format!("/proc/{pid}/oom_score_adj"), "800"));
        let handle = Arc::new(ProcessHandle {
            pid,
            pidfd,
            state: Mutex::new(State::Running(child)),
        });
        Ok(WorkerProcess {
            handle,
            socket: host_end,
            stdout,
            stderr,
        })
    }

    fn failed(&self, source: io::Error) -> OsError {
        OsError::Start {
            program: self.program.display().to_string(),
            source,
        }
    }
}

impl WorkerProcess {
    /// Process id, also of its group.
    pub fn id(&self) -> u32 {
        self.handle.pid.as_raw_pid() as u32
    }

    /// The host's end of the socket.
    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Its stdout; `None` the second time.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Its stderr; `None` the second time.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// What another thread needs to watch or kill it.
    pub fn handle(&self) -> Arc<ProcessHandle> {
        Arc::clone(&self.handle)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.handle.kill_group();
        // A process stuck inside a driver cannot be waited for without end; it is left to init then.
        self.handle.wait(Duration::from_secs(2));
    }
}

#[derive(Debug)]
enum State {
    Running(Child),
    Ended(ProcessEnd),
}

/// A process that can be waited for and killed from any thread. Safe against reused process ids: nothing is signalled once the
/// process has been reaped.
#[derive(Debug)]
pub struct ProcessHandle {
    pid: Pid,
    pidfd: OwnedFd,
    state: Mutex<State>,
}

impl ProcessHandle {
    /// Process id.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_pid() as u32
    }

    /// Readable once the process has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// SIGKILL to its whole process group; nothing if it has been reaped.
    pub fn kill_group(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Running(_)) {
            // Unreaped, so the id is still ours. An error only means that it is dead already.
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Wait for the end, at most `timeout`; `None`: still running.
    pub fn wait(&self, timeout: Duration) -> Option<ProcessEnd> {
        if !wait_readable(self.pidfd.as_fd(), timeout) {
            return None;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Ended(end) => Some(*end),
            State::Running(child) => {
                // The leader is a zombie, so its group id is still taken: end what it may have left behind, then reap.
                let _ = kill_process_group(self.pid, Signal::KILL);
                let status = child.wait().ok()?;
                let end = status.signal().map_or_else(
                    || ProcessEnd::Exited(status.code().unwrap_or(-1)),
                    ProcessEnd::Killed,
                );
                *state = State::Ended(end);
                Some(end)
            }
        }
    }
}

/// Wait until `fd` is readable (or hung up); false: the time ran out.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout: Duration) -> bool {
    let until = Instant::now() + timeout;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(
            &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
            Some(&left),
        ) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(ready) => return ready > 0,
            Err(_) => return false,
        }
    }
}

/// In the child between fork and exec: raw system calls only.
fn prepare(socket: RawFd, host: Pid) -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The host may have died before the signal was armed; then nobody would end this process.
    if rustix::process::getppid() != Some(host) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    rustix::process::setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?;
    // Libraries in the host may have opened descriptors without close-on-exec. Marking instead of closing leaves the pipe alone
    // through which the standard library reports a failed exec.
    // SAFETY: no memory is involved; marking descriptors of this child affects nobody else.
    let marked = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if marked != 0 {
        // Kernels before 5.11.
        for fd in 3..4096 {
            // SAFETY: as above; an unused number is an error that is ignored.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    // SAFETY: the descriptor is open in this child; only its flag changes.
    if unsafe { libc::fcntl(socket, libc::F_SETFD, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

type Job = (Command, Sender<io::Result<Child>>);

fn spawn_on_lasting_thread(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, inbox) = channel::<Job>();
        std::thread::Builder::new()
            .name("focus-spawner".into())
            .spawn(move || {
                // The sender is a static, so this loop ends with the process.
                for (mut command, answer) in inbox {
                    // The asker waits for the answer; if it is gone, the child is dropped and found dead at EOF.
                    drop(answer.send(command.spawn()));
                }
            })
            .expect("the first thread of a process can be started");
        Mutex::new(jobs)
    });
    let (answer, result) = channel();
    let gone = || io::Error::other("the spawning thread is gone");
    spawner
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send((command, answer))
        .map_err(|_| gone())?;
    result.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// bash, since dash takes no descriptor above 9 in a redirection.
    fn shell(script: &str) -> WorkerCommand {
        WorkerCommand {
            program: "/bin/bash".into(),
            args: vec!["-c".into(), script.into(), "sh".into()],
            ..WorkerCommand::default()
        }
    }

    fn stdout_of(command: &WorkerCommand) -> String {
        let mut process = command.start().expect("starts");
        let mut text = String::new();
        process
            .take_stdout()
            .expect("first time")
            .read_to_string(&mut text)
            .expect("reads");
        text
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn the_socket_is_inherited_under_the_number_told() {
        let mut process =
            shell("test \"$1\" = --socket-fd && eval \"read line <&$2; echo got \\$line >&$2\"")
                .start()
                .expect("starts");
        process
            .socket()
            .try_clone()
            .expect("dup")
            .write_all(b"hello\n")
            .expect("writes");
        let mut text = String::new();
        process
            .socket()
            .try_clone()
            .expect("dup")
            .read_to_string(&mut text)
            .expect("reads");
        assert_eq!(text, "got hello\n");
        assert_eq!(process.handle().wait(LONG), Some(ProcessEnd::Exited(0)));
        assert!(process.take_stderr().is_some() && process.take_stderr().is_none());
    }

    #[test]
    fn the_environment_is_what_is_listed() {
        let command = WorkerCommand {
            program: "/usr/bin/env".into(),
            args: vec!["--".into(), "sh".into(), "-c".into(), "env".into()],
            threads: 3,
            library_paths: vec!["/opt/a".into(), "/opt/b".into()],
            env: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("EXTRA".into(), "1".into()),
            ],
            // Set by cargo for every test.
            pass: vec!["CARGO_PKG_NAME".into(), "FOCUS_NOT_SET_ANYWHERE".into()],
        };
        let text = stdout_of(&command);
        let mut names: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, _)| name)
            .collect();
        // Set by the shell itself, or passed on where the test's own environment has them.
        names.retain(|name| {
            !["PWD", "SHLVL", "_", "OLDPWD"].contains(name) && !PASSED.contains(name)
        });
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "CARGO_PKG_NAME",
                "EXTRA",
                "LANG",
                "LD_LIBRARY_PATH",
                "OMP_NUM_THREADS",
                "PATH",
                "RAYON_NUM_THREADS"
            ]
        );
        assert!(
            text.contains("LD_LIBRARY_PATH=/opt/a:/opt/b") && text.contains("OMP_NUM_THREADS=3")
        );
    }

    #[test]
    fn no_other_descriptor_is_inherited_and_no_core_is_dumped() {
        let file = tempfile::tempfile().expect("file");
        // As a careless C library would leave it.
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).expect("clears the flag");
        // `exec`, no pipeline: a shell holds pipes of its own while it sets one up.
        let target =
            std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("open");
        let text = stdout_of(&shell("ulimit -c; exec ls -l /proc/self/fd"));
        assert_eq!(text.lines().next(), Some("0"), "core limit: {text}");
        // By target, since `ls` opens the folder under the lowest free number.
        assert!(!text.contains(target.to_str().expect("UTF-8")), "{text}");
        let links = text.lines().filter(|line| line.contains(" -> ")).count();
        assert_eq!(
            links, 5,
            "stdin, stdout, stderr, the socket, the folder: {text}"
        );
    }

    #[test]
    fn ends_are_told_in_words() {
        let end = |script: &str| {
            shell(script)
                .start()
                .expect("starts")
                .handle()
                .wait(LONG)
                .expect("ends")
        };
        assert_eq!(end("exit 7").to_string(), "exited with status 7");
        assert_eq!(end("kill -SEGV $$").to_string(), "killed by SIGSEGV");
        assert_eq!(end("kill -50 $$").to_string(), "killed by signal 50");
    }

    #[test]
    fn killing_takes_the_whole_group_along() {
        let mut process = shell("sleep 100 & echo $!; wait").start().expect("starts");
        let mut out = process.take_stdout().expect("first time");
        let mut text = [0; 32];
        let got = out.read(&mut text).expect("reads");
        let grandchild: i32 = std::str::from_utf8(&text[..got])
            .expect("text")
            .trim()
            .parse()
            .expect("pid");
        assert_eq!(process.handle().wait(Duration::from_millis(30)), None);
        drop(process);
        // The grandchild held the pipe: EOF means that it is dying. The kernel closes files before it lets go of the process.
        let mut rest = Vec::new();
        out.read_to_end(&mut rest).expect("reads to the end");
        let path = format!("/proc/{grandchild}/stat");
        let gone = || std::fs::read_to_string(&path).map_or(true, |stat| stat.contains(") Z "));
        let until = Instant::now() + LONG;
        while !gone() {
            assert!(Instant::now() < until, "alive");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_worker_outlives_the_thread_that_asked_for_it() {
        let process = std::thread::spawn(|| shell("sleep 100").start().expect("starts"))
            .join()
            .expect("joins");
        assert_eq!(process.handle().wait(Duration::from_millis(200)), None);
        process.handle().kill_group();
        assert_eq!(
            process.handle().wait(LONG),
            Some(ProcessEnd::Killed(libc::SIGKILL))
        );
        process.handle().kill_group();
    }

    #[test]
    fn a_missing_program_is_named() {
        let command = WorkerCommand {
            program: "/nowhere/focus".into(),
            ..WorkerCommand::default()
        };
        let error = command.start().expect_err("does not exist");
        assert!(
            error
                .to_string()
                .contains("Cannot start worker `/nowhere/focus`"),
            "{error}"
        );
        assert!(error.hint().is_some());
    }

    /// Not a test of its own: the host that dies in the next one.
    #[test]
    #[expect(
        clippy::print_stdout,
        reason = "the host that dies answers the test on stdout"
    )]
    fn host_that_dies() {
        if std::env::var_os("FOCUS_OS_DYING_HOST").is_none() {
            return;
        }
        // From a thread that is gone by then: the signal must come from the host's end, not from the thread's.
        let process = std::thread::spawn(|| shell("exec sleep 100").start().expect("starts"))
            .join()
            .expect("joins");
        // `sleep` reads no socket, so only the kernel's signal can end it.
        println!("\nCHILD {}", process.id());
        std::thread::sleep(Duration::from_secs(100));
    }

    #[test]
    fn a_killed_host_takes_a_deaf_worker_along() {
        use std::io::BufRead;
        let mut host = Command::new(std::env::current_exe().expect("test binary"))
            .args(["--exact", "spawn::tests::host_that_dies", "--nocapture"])
            .env("FOCUS_OS_DYING_HOST", "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let out = io::BufReader::new(host.stdout.take().expect("piped"));
        let mut lines = out.lines().map_while(Result::ok);
        let child: u32 = lines
            .find_map(|line| line.strip_prefix("CHILD ")?.parse().ok())
            .expect("the child's id");
        let gone = || {
            std::fs::read_to_string(format!("/proc/{child}/stat"))
                .map_or(true, |stat| stat.contains(") Z "))
        };
        std::thread::sleep(Duration::from_millis(100));
        assert!(!gone(), "dead before its host");
        host.kill().expect("kills");
        host.wait().expect("reaps");
        let until = Instant::now() + LONG;
        while !gone() {
            assert!(Instant::now() < until, "still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
