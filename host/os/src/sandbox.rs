//! What a worker gives up before it loads a plugin. Irreversible for the process. Knows nothing of plugins.
//!
//! Call [`apply`] in `main`, before any other thread exists: seccomp reaches threads that already run, Landlock does not
//! (threads started later inherit both). What is already open (socket, pipes, pixel memory) keeps working.
//!
//! In force where the kernel can:
//! * `no_new_privs`.
//! * seccomp: sockets of any family but Unix fail with EACCES unless network is granted. Calls that reach into other processes
//!   or go around the filter (ptrace, process_vm_*, pidfd_getfd, io_uring, bpf, kernel modules) fail with EPERM, and so, without
//!   `write`, do changes of mode, owner and extended attributes, which Landlock does not cover.
//! * Landlock: no writing, creating, renaming, removing, except to the devices a model needs (`/dev/null`, `/dev/nvidia*`); no
//!   signals and no abstract Unix sockets to processes outside. Reading stays free: a plugin may read what its user may read.
//!
//! It keeps an honest plugin honest and a careless one harmless; it is no jail for an attacker with kernel exploits.

use crate::OsError;
use landlock::{
    ABI, AccessFs, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is granted; the default grants nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxSpec {
    /// Sockets of every family. Which hosts are reached is not enforced by the kernel.
    pub network: bool,
    /// Writing to the file system.
    pub write: bool,
}

/// Lock down the process; returns, one line each, what is in force (and what this kernel could not do).
pub fn apply(spec: &SandboxSpec) -> Result<Vec<String>, OsError> {
    let mut in_force = Vec::new();
    rustix::thread::set_no_new_privs(true).map_err(OsError::system("giving up new privileges"))?;
    in_force.push("no new privileges".to_owned());
    // Landlock first: its own system calls must not meet the filter.
    in_force.push(restrict_files(*spec)?);
    install(filter(&reaching_out(spec.write), libc::EPERM)?)?;
    in_force
        .push("seccomp: no tracing of other processes, io_uring, bpf or kernel modules".to_owned());
    if spec.network {
        in_force.push("network: granted (hosts are not enforced by the kernel)".to_owned());
    } else {
        install(filter(&sockets()?, libc::EACCES)?)?;
        in_force.push("network: none (seccomp refuses every socket family but Unix)".to_owned());
    }
    Ok(in_force)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// On x86-64 the kernel may also take x32 call numbers, which name the same calls and pass the filter's architecture check.
const X32: i64 = 0x4000_0000;

fn sockets() -> Result<Rules, OsError> {
    let mut rules = Rules::new();
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        let not_unix = SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            libc::AF_UNIX as u64,
        )
        .map_err(seccomp)?;
        rules.insert(
            call,
            vec![SeccompRule::new(vec![not_unix]).map_err(seccomp)?],
        );
        if cfg!(target_arch = "x86_64") {
            rules.insert(X32 + call, Vec::new());
        }
    }
    Ok(rules)
}

fn reaching_out(write: bool) -> Rules {
    let mut calls = vec![
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_bpf,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_kexec_load,
    ];
    if !write {
        calls.extend([
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            // fchmodat2, which this libc has no name for everywhere.
            452,
            libc::SYS_fchown,
            libc::SYS_fchownat,
            libc::SYS_setxattr,
            libc::SYS_lsetxattr,
            libc::SYS_fsetxattr,
            libc::SYS_removexattr,
            libc::SYS_lremovexattr,
            libc::SYS_fremovexattr,
        ]);
        #[cfg(target_arch = "x86_64")]
        calls.extend([libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown]);
    }
    let mut rules: Rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    if cfg!(target_arch = "x86_64") {
        // The x32 numbers of ptrace and process_vm_* are their own; the others only have the bit set.
        for call in [
            521,
            539,
            540,
            libc::SYS_io_uring_setup,
            libc::SYS_bpf,
            libc::SYS_pidfd_getfd,
        ] {
            rules.insert(X32 + call, Vec::new());
        }
    }
    rules
}

fn filter(rules: &Rules, errno: i32) -> Result<BpfProgram, OsError> {
    let arch = std::env::consts::ARCH.try_into().map_err(seccomp)?;
    SeccompFilter::new(
        rules.clone(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        arch,
    )
    .and_then(BpfProgram::try_from)
    .map_err(seccomp)
}

fn install(program: BpfProgram) -> Result<(), OsError> {
    seccompiler::apply_filter_all_threads(&program).map_err(seccomp)
}

fn seccomp(error: impl std::fmt::Display) -> OsError {
    OsError::Sandbox {
        part: "seccomp",
        reason: error.to_string(),
    }
}

fn landlock(error: impl std::fmt::Display) -> OsError {
    OsError::Sandbox {
        part: "landlock",
        reason: error.to_string(),
    }
}

/// Devices that stay writable: the null device and NVIDIA's nodes, where there are any.
fn writable_devices() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/dev/null"), PathBuf::from("/dev/zero")];
    for folder in ["/dev", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels"] {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        found.extend(
            entries
                .flatten()
                .filter(|entry| {
                    entry.file_name().to_string_lossy().starts_with("nvidia")
                        && !entry.path().is_dir()
                })
                .map(|entry| entry.path()),
        );
    }
    found.extend(
        ["/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels"]
            .map(PathBuf::from)
            .into_iter()
            .filter(|path| path.is_dir()),
    );
    found.retain(|path| path.exists());
    found
}

fn restrict_files(spec: SandboxSpec) -> Result<String, OsError> {
    // Best effort is the crate's default: rights that an older kernel does not know are left out.
    let mut ruleset = Ruleset::default().scope(Scope::Signal).map_err(landlock)?;
    let mut handled: BitFlags<AccessFs> = BitFlags::EMPTY;
    if !spec.write {
        handled |= AccessFs::from_write(ABI::V5);
    }
    if !spec.network {
        ruleset = ruleset.scope(Scope::AbstractUnixSocket).map_err(landlock)?;
        handled |= AccessFs::ResolveUnix;
    }
    if !handled.is_empty() {
        ruleset = ruleset.handle_access(handled).map_err(landlock)?;
    }
    let mut ruleset = ruleset.create().map_err(landlock)?;
    if !spec.write {
        let file = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        for path in writable_devices() {
            let fd = PathFd::new(&path).map_err(landlock)?;
            ruleset = ruleset
                .add_rule(PathBeneath::new(fd, file))
                .map_err(landlock)?;
        }
    }
    let status = ruleset.restrict_self().map_err(landlock)?;
    let version = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => {
            format!("version {}", effective_abi as i32)
        }
        LandlockStatus::NotEnabled => "not enabled in this kernel".to_owned(),
        LandlockStatus::NotImplemented => "not built into this kernel".to_owned(),
    };
    Ok(match (status.ruleset, spec.write) {
        (RulesetStatus::NotEnforced, _) => format!("files: writable (Landlock is {version})"),
        (_, true) => format!(
            "files: writable as granted; Landlock {version} bars signals to other processes"
        ),
        (RulesetStatus::FullyEnforced, false) => format!("files: read-only (Landlock {version})"),
        (RulesetStatus::PartiallyEnforced, false) => {
            format!("files: read-only as far as Landlock {version} can")
        }
    })
}

#[cfg(test)]
mod tests {
    //! The sandbox cannot be taken off again, so each check runs in a child: this test binary, told by a variable what to try.

    use super::*;
    use std::process::Command;

    const TRY: &str = "FOCUS_OS_SANDBOX_TRY";

    /// Run `deed` in a child under `spec`; its stdout.
    fn child(deed: &str, spec: &str, folder: &std::path::Path) -> String {
        let out = Command::new(std::env::current_exe().expect("test binary"))
            .args([
                "--exact",
                "sandbox::tests::in_the_child",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(TRY, format!("{deed}:{spec}"))
            .env("FOCUS_OS_FOLDER", folder)
            .output()
            .expect("child runs");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        text.lines()
            .find_map(|line| line.split_once("RESULT ").map(|(_, rest)| rest.to_owned()))
            .unwrap_or_else(|| {
                panic!(
                    "child said nothing: {text} {}",
                    String::from_utf8_lossy(&out.stderr)
                );
            })
    }

    fn errno(result: std::io::Result<()>) -> String {
        match result {
            Ok(()) => "ok".into(),
            Err(error) => format!("errno {}", error.raw_os_error().unwrap_or(-1)),
        }
    }

    fn raw(value: i64) -> std::io::Result<()> {
        if value < 0 {
            Err(std::io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    #[test]
    #[expect(
        clippy::print_stdout,
        reason = "the child answers its parent on stdout"
    )]
    fn in_the_child() {
        let Ok(task) = std::env::var(TRY) else { return };
        let (deed, spec) = task.split_once(':').expect("deed:spec");
        let folder = PathBuf::from(std::env::var("FOCUS_OS_FOLDER").expect("folder"));
        let spec = SandboxSpec {
            network: spec.contains('n'),
            write: spec.contains('w'),
        };
        let words = apply(&spec).expect("applies");
        let result = match deed {
            "words" => words.join("; "),
            "inet" => errno(std::net::UdpSocket::bind("127.0.0.1:0").map(drop)),
            "inet_thread" => errno(
                std::thread::spawn(|| std::net::UdpSocket::bind("127.0.0.1:0").map(drop))
                    .join()
                    .expect("joins"),
            ),
            "unix" => errno(std::os::unix::net::UnixStream::pair().map(drop)),
            "write" => errno(std::fs::write(folder.join("new"), b"x")),
            "append" => errno(
                std::fs::OpenOptions::new()
                    .append(true)
                    .open(folder.join("old"))
                    .map(drop),
            ),
            "remove" => errno(std::fs::remove_file(folder.join("old"))),
            "chmod" => {
                use std::os::unix::fs::PermissionsExt;
                errno(std::fs::set_permissions(
                    folder.join("old"),
                    std::fs::Permissions::from_mode(0o777),
                ))
            }
            "read" => errno(std::fs::read(folder.join("old")).map(drop)),
            "null" => errno(std::fs::write("/dev/null", b"x")),
            // SAFETY: plain system calls with no memory involved.
            "ptrace" => errno(raw(unsafe {
                libc::ptrace(libc::PTRACE_ATTACH, libc::getppid(), 0, 0)
            })),
            // SAFETY: as above.
            "signal" => errno(raw(i64::from(unsafe { libc::kill(libc::getppid(), 0) }))),
            // SAFETY: a null parameter block is refused by the kernel at worst.
            "io_uring" => errno(raw(unsafe {
                libc::syscall(libc::SYS_io_uring_setup, 1, std::ptr::null::<u8>())
            })),
            other => panic!("unknown deed {other}"),
        };
        println!("\nRESULT {result}");
    }

    fn landlock_here(folder: &std::path::Path) -> bool {
        child("words", "", folder).contains("read-only")
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("old"), b"old").expect("writes");
        folder
    }

    #[test]
    fn network_is_refused_unless_granted_in_every_thread() {
        let folder = folder();
        let refused = format!("errno {}", libc::EACCES);
        assert_eq!(child("inet", "", folder.path()), refused);
        assert_eq!(child("inet_thread", "", folder.path()), refused);
        assert_eq!(child("inet", "n", folder.path()), "ok");
        assert_eq!(child("unix", "", folder.path()), "ok");
    }

    #[test]
    fn files_can_be_read_but_not_changed() {
        let folder = folder();
        assert_eq!(child("read", "", folder.path()), "ok");
        assert_eq!(child("null", "", folder.path()), "ok");
        assert_eq!(
            child("chmod", "", folder.path()),
            format!("errno {}", libc::EPERM)
        );
        assert_eq!(child("write", "w", folder.path()), "ok");
        std::fs::remove_file(folder.path().join("new")).expect("was written");
        if !landlock_here(folder.path()) {
            return;
        }
        for deed in ["write", "append", "remove"] {
            assert_eq!(
                child(deed, "", folder.path()),
                format!("errno {}", libc::EACCES),
                "{deed}"
            );
        }
        assert!(folder.path().join("old").exists() && !folder.path().join("new").exists());
    }

    #[test]
    fn other_processes_are_out_of_reach() {
        let folder = folder();
        let refused = format!("errno {}", libc::EPERM);
        assert_eq!(child("ptrace", "nw", folder.path()), refused);
        assert_eq!(child("io_uring", "nw", folder.path()), refused);
    }

    #[test]
    fn the_words_name_every_part() {
        let folder = folder();
        let words = child("words", "", folder.path());
        for part in ["no new privileges", "files:", "seccomp", "network: none"] {
            assert!(words.contains(part), "{part} in {words}");
        }
        assert!(child("words", "n", folder.path()).contains("network: granted"));
    }
}
