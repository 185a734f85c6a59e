//! What holds of every row, whatever it is about: nothing was written, nobody else was asked, no other file was opened, nothing else
//! was started, memory has its limit, no secret is told, and the process goes on.

use super::api::Objects;
use super::world::Story;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tokio::sync::OnceCell;

/// The most memory that the program may ask the machine for, stacks of its threads and all, in bytes: whoever lets it take more ends it,
/// and that is seen.
const MEMORY: u64 = 512 << 20;

/// What a Rust program, its C library and OpenSSH's client read of a machine; each is one, or what is below it.
const MACHINE: [&str; 9] = [
    "/dev/null",
    "/dev/tty",
    "/dev/urandom",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/ssl",
    "/proc/self",
    "/sys/fs/cgroup",
    "/usr/share/zoneinfo",
];

/// How things were before.
pub(super) struct Before {
    objects: Objects,
    writes: usize,
    memory: u64,
    told: usize,
}

/// What has come of a row.
pub(super) struct Cost {
    pub(super) dialled: BTreeSet<String>,
    pub(super) opened: usize,
    pub(super) grown: u64,
    pub(super) wrong: Vec<String>,
}

/// What tells of all that a program opens, connects to and starts.
pub(super) async fn library() -> &'static Path {
    static BUILT: OnceCell<PathBuf> = OnceCell::const_new();
    let build = async || {
        let (from, to) = (
            "tests/real/support/watched.c",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("watched-{}.so", std::process::id())),
        );
        let from = crate::tree::source_dir().join(from);
        let (from, out) = (from.display().to_string(), to.display().to_string());
        super::world::run("cc", &["-shared", "-fPIC", "-O1", "-o", &out, &from, "-ldl"]).await;
        to
    };
    BUILT.get_or_init(build).await
}

/// How much memory a process has now, and had at most, in bytes.
fn memory(pid: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    (line("VmRSS:"), line("VmHWM:"))
}

/// From now on the most memory that a process has had is what it has.
fn forget_peak(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").ok();
}

/// Lets a process have its limit of memory, and no more.
pub(super) async fn limit(pid: u32) {
    super::world::run("prlimit", &["--pid", &pid.to_string(), &format!("--data={MEMORY}")]).await;
}

impl Before {
    pub(super) fn new(story: &Story) -> Self {
        let pid = story.pid();
        if let Some(pid) = pid {
            forget_peak(pid);
        }
        let memory = pid.map_or(0, |pid| memory(pid).0);
        let (objects, writes) = (story.api.objects(), story.api.writes().len());
        Self { objects, writes, memory, told: story.seen().len() }
    }

    /// What has come of it by now.
    pub(super) async fn cost(&self, story: &mut Story) -> Cost {
        let mut wrong = story.ended();
        let writes = story.api.writes().split_off(self.writes);
        if !story.may_try && !writes.is_empty() {
            wrong.push(format!("asked to write: {writes:#?}"));
        }
        let objects = story.api.objects();
        let changed = objects.iter().filter(|(at, object)| self.objects.get(*at) != Some(object)).map(|(at, _)| at);
        let gone = self.objects.keys().filter(|at| !objects.contains_key(*at));
        let changed: Vec<&String> = changed.chain(gone).collect();
        if !changed.is_empty() {
            wrong.push(format!("changed: {changed:?}"));
        }
        let told = story.seen().split_off(self.told);
        let of = |what: &str| -> BTreeSet<String> {
            told.iter().filter_map(|line| line.strip_prefix(what)).map(str::to_owned).collect()
        };
        let (dialled, opened, started) = (of("connect "), of("open "), of("start "));
        let known = story.addresses();
        let mut odd: Vec<String> = dialled.iter().filter(|address| !known.contains(*address)).cloned().collect();
        odd.extend(of("resolve "));
        odd.extend(started.iter().filter(|program| **program != story.starts).cloned());
        odd.extend(opened.iter().filter(|path| !is_ours(path, story.dir())).cloned());
        if !odd.is_empty() {
            wrong.push(format!("dialled, looked up, started or opened: {odd:?}"));
        }
        let grown = story.pid().map_or(0, |pid| memory(pid).1).saturating_sub(self.memory);
        wrong.extend(told_secrets(story).await);
        Cost { dialled, opened: opened.len(), grown, wrong }
    }
}

/// Whether a file is one that the process has to read, or its own. A path that climbs is nobody's.
fn is_ours(path: &str, dir: &Path) -> bool {
    let path = Path::new(path);
    let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
    !climbs && (path.starts_with(dir) || MACHINE.iter().any(|known| path.starts_with(known)))
}

/// Where a secret stands that anybody can read.
async fn told_secrets(story: &Story) -> Vec<String> {
    let outputs = story.outputs().await;
    let mut wrong = Vec::new();
    for secret in story.secrets() {
        let logins = [secret.clone(), STANDARD.encode(&secret), STANDARD.encode(format!("x-access-token:{secret}"))];
        let found = outputs.iter().filter(|(_, text)| logins.iter().any(|login| text.contains(login)));
        wrong.extend(found.map(|(at, _)| format!("a secret stands in {at}")));
    }
    wrong
}

#[test]
fn the_rule_of_opened_files_bites() {
    let dir = Path::new("/tmp/a");
    let ours = |path: &str| is_ours(path, dir);
    assert!(ours("/tmp/a/one.cache/repository.git/HEAD") && ours("/proc/self/cgroup") && ours("/dev/null"));
    for path in ["/etc/passwd", "/tmp/ab", "/tmp/a/../b", "/dev/nullx", "/etc/ssl/../passwd", "/var/run/secrets/token"]
    {
        assert!(!ours(path), "{path}");
    }
}
