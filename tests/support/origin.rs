//! A bare repository made with plain `git`: fixed people and dates, nothing read from the machine's configuration.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;

/// Appends `<unix time with nanoseconds> <old> <new> <ref>` for each ref that moved, at the moment it was committed.
const STAMP: &str = r#"#!/bin/sh
[ "$1" = committed ] || exit 0
now=$(date +%s.%N)
while read -r old new ref; do echo "$now $old $new $ref" >> stamps; done
"#;

/// Where `git` is. With the name alone, and a `PATH` of its own, the standard library forks: that copies the page tables of this large
/// process, which took as much time as all else that tests do.
static GIT: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join("git"));
    places.find(|place| place.is_file()).expect("git is on the PATH: install the package git")
});

/// A bare repository.
pub(crate) struct Origin {
    path: PathBuf,
}

/// One move of a ref, as the server's hook saw it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stamp {
    /// Unix time in seconds.
    pub(crate) at: f64,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) name: String,
}

impl Origin {
    /// Makes an empty repository that takes pushes over HTTP and stamps each of them.
    pub(crate) fn init(path: &Path) -> Self {
        let origin = Self::at(path);
        std::fs::create_dir_all(path).expect("the test's directory can be written");
        origin.git(&["init", "--quiet", "--bare", "--initial-branch=main", "--template=", "."]);
        origin.git(&["config", "http.receivepack", "true"]);
        origin.git(&["config", "receive.autogc", "false"]);
        origin.stamped()
    }

    /// From now on its pushes are stamped.
    pub(crate) fn stamped(self) -> Self {
        self.hook("reference-transaction", Some(STAMP));
        self
    }

    /// A bare repository that is there already.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `git` in the repository; its output without the newline at the end.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.git_with(arguments, b"")).expect("git prints UTF-8").trim_end().to_owned()
    }

    /// Runs `git` with this input; its raw output.
    pub(crate) fn git_with(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut command = std::process::Command::new(GIT.as_path());
        command.current_dir(&self.path).args(arguments).env_clear().envs(hermetic());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("git is there");
        child.stdin.take().expect("stdin is piped").write_all(input).expect("git reads its input");
        let output = child.wait_with_output().expect("git was started");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Commits files to a branch (`None` removes one; made if it is absent); the new tip.
    pub(crate) fn commit(&self, branch: &str, files: &[(&str, Option<&[u8]>)], subject: &str) -> String {
        self.commit_as("Ana <ana@example.com>", branch, files, subject)
    }

    /// A file that a user of a host writes.
    pub(crate) fn push_as(&self, user: &str, branch: &str, path: &str, text: &str) -> String {
        let person = format!("{user} <{user}@example.test>");
        self.commit_as(&person, branch, &[(path, Some(text.as_bytes()))], "more")
    }

    /// The same by anybody.
    pub(crate) fn commit_as(
        &self,
        person: &str,
        branch: &str,
        files: &[(&str, Option<&[u8]>)],
        subject: &str,
    ) -> String {
        let parent = self.tip(branch);
        // A minute apart, so that the order by time is the order of commits.
        let count = parent.as_ref().map_or(0, |tip| self.git(&["rev-list", "--count", tip]).parse().unwrap_or(0));
        let at = 1_767_225_600 + 60 * count;
        let mut stream = format!("commit refs/heads/{branch}\ncommitter {person} {at} +0000\n").into_bytes();
        let data = |stream: &mut Vec<u8>, bytes: &[u8]| {
            stream.extend_from_slice(format!("data {}\n", bytes.len()).as_bytes());
            stream.extend_from_slice(bytes);
            stream.push(b'\n');
        };
        data(&mut stream, subject.as_bytes());
        if parent.is_some() {
            stream.extend_from_slice(format!("from refs/heads/{branch}^0\n").as_bytes());
        }
        for (path, content) in files {
            match content {
                Some(content) => {
                    stream.extend_from_slice(format!("M 100644 inline {path}\n").as_bytes());
                    data(&mut stream, content);
                }
                None => stream.extend_from_slice(format!("D {path}\n").as_bytes()),
            }
        }
        self.git_with(&["fast-import", "--quiet"], &stream);
        self.tip(branch).expect("fast-import made the branch")
    }

    /// Merges a branch into another as a person would: made if it is not there, moved on if that is enough, else with a
    /// merge commit, which panics on a conflict. The new tip.
    pub(crate) fn merge(&self, branch: &str, into: &str) -> String {
        let head = self.tip(branch).expect("the branch to merge is there");
        let name = format!("refs/heads/{into}");
        let merged = match self.tip(into) {
            None => head,
            Some(tip) if self.git(&["rev-list", "--count", &format!("{head}..{tip}")]) == "0" => head,
            Some(tip) => {
                let tree = self.git(&["merge-tree", "--write-tree", "--allow-unrelated-histories", &tip, &head]);
                self.git(&["commit-tree", "-m", &format!("merge {branch}"), "-p", &tip, "-p", &head, &tree])
            }
        };
        self.git(&["update-ref", &name, &merged]);
        merged
    }

    /// Merges a commit into a branch as a host does for one of its users: now, and always with a merge commit. The new tip.
    pub(crate) fn merge_as(&self, user: &str, head: &str, into: &str) -> String {
        let tip = self.tip(into).expect("the branch to merge into is there");
        let tree = self.git(&["merge-tree", "--write-tree", &tip, head]);
        let at = chrono::Utc::now().timestamp();
        let stream = format!(
            "commit refs/heads/{into}\ncommitter {user} <{user}@example.test> {at} +0000\ndata 5\nmerge\n\
             from refs/heads/{into}^0\nmerge {head}\nM 040000 {tree} \"\"\n"
        );
        self.git_with(&["fast-import", "--quiet"], stream.as_bytes());
        self.tip(into).expect("fast-import made the merge")
    }

    /// Takes the last commit off a branch.
    pub(crate) fn undo(&self, branch: &str) {
        let name = format!("refs/heads/{branch}");
        self.git(&["update-ref", &name, &format!("{name}^")]);
    }

    /// Stores an object as it is, well-formed or not; its id.
    pub(crate) fn object(&self, kind: &str, bytes: &[u8]) -> String {
        let id = self.git_with(&["hash-object", "-t", kind, "-w", "--stdin", "--literally"], bytes);
        String::from_utf8(id).expect("an id is ASCII").trim_end().to_owned()
    }

    /// Stores a tree of these entries (mode, name, object) in this order, well-formed or not.
    pub(crate) fn tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend_from_slice(mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            let digits = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).expect("an id is hexadecimal");
            bytes.extend((0..40).step_by(2).map(digits));
        }
        self.object("tree", &bytes)
    }

    /// Points a branch to a new commit of this tree, whatever it was before; the commit.
    pub(crate) fn commit_tree(&self, branch: &str, tree: &str) -> String {
        let person = "Ana <ana@example.com> 1767225600 +0000";
        let text = format!("tree {tree}\nauthor {person}\ncommitter {person}\n\ncommit\n");
        let commit = self.object("commit", text.as_bytes());
        self.git(&["update-ref", &format!("refs/heads/{branch}"), &commit]);
        commit
    }

    /// The tip of a branch.
    pub(crate) fn tip(&self, branch: &str) -> Option<String> {
        Some(self.open().refname_to_id(&format!("refs/heads/{branch}")).ok()?.to_string())
    }

    /// A file of a commit, if it has it. Tests that wait ask again and again: no program is started for that.
    pub(crate) fn file(&self, commit: &str, path: &str) -> Option<Vec<u8>> {
        let repository = self.open();
        let object = repository.revparse_single(&format!("{commit}:{path}")).ok()?;
        Some(object.as_blob()?.content().to_vec())
    }

    /// The commits of a branch that came after that one, oldest first.
    pub(crate) fn since(&self, branch: &str, start: &str) -> Vec<String> {
        let repository = self.open();
        let mut walk = repository.revwalk().expect("commits can be walked");
        if walk.push_ref(&format!("refs/heads/{branch}")).is_err() {
            return Vec::new();
        }
        walk.hide(start.parse().expect("an id")).expect("it is there");
        walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::REVERSE).expect("commits have an order");
        walk.map(|id| id.expect("the commit is there").to_string()).collect()
    }

    /// The first of the branches that match a pattern, by name; `*` stands for any part of it.
    pub(crate) fn first(&self, pattern: &str) -> Option<String> {
        let repository = self.open();
        let found = repository.references_glob(&format!("refs/heads/{pattern}")).ok()?;
        let names = found.filter_map(|found| Some(found.ok()?.shorthand().ok()?.to_owned()));
        names.min()
    }

    fn open(&self) -> git2::Repository {
        git2::Repository::open_bare(&self.path).expect("the repository is there")
    }

    /// All files of a commit or branch, by path.
    pub(crate) fn files(&self, revision: &str) -> BTreeMap<String, Vec<u8>> {
        let names = self.git(&["ls-tree", "-r", "--name-only", "--full-tree", revision]);
        let show = |name: &str| self.git_with(&["cat-file", "blob", &format!("{revision}:{name}")], b"");
        names.lines().map(|name| (name.to_owned(), show(name))).collect()
    }

    /// Installs a hook, or removes it.
    pub(crate) fn hook(&self, name: &str, script: Option<&str>) {
        let file = self.path.join("hooks").join(name);
        std::fs::create_dir_all(self.path.join("hooks")).expect("the repository can be written");
        match script {
            Some(script) => {
                std::fs::write(&file, script).expect("the repository can be written");
                std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("the hook is ours");
            }
            None => std::fs::remove_file(&file).expect("the hook was installed before"),
        }
    }

    /// Every move of every ref so far, in order.
    pub(crate) fn stamps(&self) -> Vec<Stamp> {
        let text = std::fs::read_to_string(self.path.join("stamps")).unwrap_or_default();
        let stamp = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let at = words.next()?.parse().ok()?;
            Some(Stamp { at, old: words.next()?, new: words.next()?, name: words.next()? })
        };
        text.lines().map(|line| stamp(line).unwrap_or_else(|| panic!("a stamp: {line:?}"))).collect()
    }

    /// A fast-import stream of `count` commits to `branch`, each changing one file.
    pub(crate) fn grow(&self, branch: &str, count: usize) -> String {
        let mut stream = String::new();
        for n in 0..count {
            let at = 1_767_000_000 + n;
            let text = format!("v: {n}\n");
            let from = if n == 0 && self.tip(branch).is_some() {
                format!("from refs/heads/{branch}^0\n")
            } else {
                String::new()
            };
            writeln!(
                stream,
                "commit refs/heads/{branch}\ncommitter Ana <ana@example.com> {at} +0000\ndata 1\nc\n{from}M 100644 inline grown.yaml\ndata {}\n{text}",
                text.len()
            )
            .expect("a String takes all");
        }
        self.git_with(&["fast-import", "--quiet"], stream.as_bytes());
        self.tip(branch).expect("fast-import made the branch")
    }
}

/// The environment of every git that tests run.
fn hermetic() -> Vec<(&'static str, &'static str)> {
    let path = option_env!("PATH").unwrap_or("/usr/local/bin:/usr/bin:/bin");
    vec![
        ("PATH", path),
        ("HOME", "/nonexistent"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        // The test's directories may be owned by somebody else.
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
        ("TZ", "UTC"),
        ("LC_ALL", "C"),
        ("GIT_AUTHOR_NAME", "Ana"),
        ("GIT_AUTHOR_EMAIL", "ana@example.com"),
        ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
        ("GIT_COMMITTER_NAME", "Ana"),
        ("GIT_COMMITTER_EMAIL", "ana@example.com"),
        ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
    ]
}
