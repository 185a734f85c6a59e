//! What has to work on a node before and after a change: interfaces, addresses, the API server.
//!
//! They are configuration of operations, a file, and never come with the content that they judge.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_controller::manifest::duration::Span;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// How long one try of a probe may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long is waited between two tries.
const PAUSE: Duration = Duration::from_millis(500);
/// Where the kernel shows interfaces.
const INTERFACES: &str = "/sys/class/net";

/// The probes of a node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Probes {
    /// Interfaces by their names, `*` for any part of one: each that is there and up before a change has to be so after it.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// `HOST:PORT` that have to be reached. Who refuses the connection is reached, too.
    #[serde(default)]
    pub tcp: Vec<Address>,
    /// Whether the API server has to be reached.
    #[serde(default)]
    pub api_server: bool,
    /// How long a node may take until what worked before a change works again.
    #[serde(default = "within")]
    pub within: Span,
    #[serde(skip, default = "interfaces")]
    kernel: PathBuf,
}

fn within() -> Span {
    Span::from_secs(30)
}

fn interfaces() -> PathBuf {
    INTERFACES.into()
}

impl Default for Probes {
    fn default() -> Self {
        Self { interfaces: Vec::new(), tcp: Vec::new(), api_server: false, within: within(), kernel: interfaces() }
    }
}

/// `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Address(String);

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        let port = parts.and_then(|(_, port)| port.parse::<u16>().ok()).filter(|port| *port != 0);
        match port {
            Some(_) => Ok(Self(text)),
            None => Err(format!("{text:?} is no address: expected HOST:PORT, such as 10.0.0.1:179 or [fd00::1]:179")),
        }
    }
}

/// The probes of a file.
///
/// # Errors
/// When they cannot be read: file, line, column, and what was expected.
pub fn read(path: &Path) -> Result<Probes, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if text.lines().all(|line| line.trim_start().starts_with('#') || line.trim().is_empty()) {
        return Ok(Probes::default());
    }
    serde_saphyr::from_str(&text).map_err(|error| {
        let at = error.location().map(|at| format!("{}:{}: ", at.line(), at.column())).unwrap_or_default();
        // What else it shows is for terminals.
        let text = error.without_snippet().to_string();
        let line = text.lines().next().unwrap_or_default();
        let why = line.split(" at line ").next().unwrap_or(line);
        format!("{}:{at}{why} (docs/nodes.md has the fields of a probes file)", path.display())
    })
}

/// Whether a name matches a pattern, in which `*` stands for any part of it.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name
            .strip_prefix(head)
            .is_some_and(|rest| (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(tail, &rest[at..]))),
    }
}

/// What of the API server a probe asks: any answer will do.
pub trait Reached {
    /// Asks it for something small.
    fn reached(&self) -> impl Future<Output = Result<(), String>>;
}

impl Probes {
    /// Probes once: each probe, with why it failed if it did.
    pub async fn once(&self, api: &impl Reached) -> BTreeMap<String, Option<String>> {
        let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
        for pattern in &self.interfaces {
            let names: Vec<String> =
                self.interfaces_named().into_iter().filter(|name| matches(pattern, name)).collect();
            if names.is_empty() {
                found.insert(format!("interface {pattern}"), Some("there is none".to_owned()));
            }
            found.extend(names.into_iter().map(|name| (format!("interface {name}"), self.down(&name))));
        }
        let dialled = self.tcp.iter().map(|address| async { (format!("tcp {}", address.0), dial(&address.0).await) });
        found.extend(futures::future::join_all(dialled).await);
        if self.api_server {
            let asked = timeout(PATIENCE, api.reached()).await.unwrap_or_else(|_| Err("no answer".to_owned()));
            found.insert("API server".to_owned(), asked.err());
        }
        found
    }

    /// Probes until these pass, or until their time is over: each of them, with why it failed the last time if it did.
    pub async fn until(&self, wanted: &BTreeSet<String>, api: &impl Reached) -> BTreeMap<String, Option<String>> {
        let end = Instant::now() + Duration::from_secs(self.within.as_secs());
        loop {
            let mut found = self.once(api).await;
            let of = |name: &String| (name.clone(), found.remove(name).unwrap_or(Some("it is gone".to_owned())));
            let found: BTreeMap<_, _> = wanted.iter().map(of).collect();
            if found.values().all(Option::is_none) || Instant::now() >= end {
                return found;
            }
            sleep(PAUSE).await;
        }
    }

    fn interfaces_named(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.kernel).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Why an interface is not up, if it is not. Some, such as `lo`, do not say; these have a carrier.
    fn down(&self, name: &str) -> Option<String> {
        let said = |what: &str| fs::read_to_string(self.kernel.join(name).join(what)).unwrap_or_default();
        match said("operstate").trim() {
            "up" => None,
            "unknown" if said("carrier").trim() == "1" => None,
            state => Some(format!("it is {}", if state.is_empty() { "gone" } else { state })),
        }
    }
}

/// Why nobody answers there, if so.
async fn dial(address: &str) -> Option<String> {
    match timeout(PATIENCE, TcpStream::connect(address)).await {
        Err(_) => Some("no answer".to_owned()),
        Ok(Err(error)) if error.kind() != ErrorKind::ConnectionRefused => Some(error.to_string()),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Answer(Result<(), String>);

    impl Reached for Answer {
        async fn reached(&self) -> Result<(), String> {
            self.0.clone()
        }
    }

    fn kernel(interfaces: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, state, carrier) in interfaces {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("operstate"), format!("{state}\n")).unwrap();
            fs::write(dir.path().join(name).join("carrier"), format!("{carrier}\n")).unwrap();
        }
        dir
    }

    #[tokio::test]
    async fn n_19_probes_tell_what_works() {
        let dir = kernel(&[("bond0", "up", "1"), ("bond1", "down", "0"), ("lo", "unknown", "1"), ("eth0", "up", "1")]);
        // A port that was just free refuses.
        let refusing = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
        let listening = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let reached = listening.local_addr().unwrap().to_string();
        let probes = Probes {
            interfaces: vec!["bond*".into(), "lo".into(), "vlan*".into()],
            tcp: [&refusing, &reached].into_iter().map(|text| text.clone().try_into().unwrap()).collect(),
            api_server: true,
            within: Span::ZERO,
            kernel: dir.path().to_owned(),
        };
        let found = probes.once(&Answer(Err("connection reset".into()))).await;
        let failing: Vec<String> =
            found.iter().filter_map(|(n, why)| Some(format!("{n}: {}", why.as_ref()?))).collect();
        assert_eq!(
            failing,
            ["API server: connection reset", "interface bond1: it is down", "interface vlan*: there is none"]
        );
        assert_eq!(found.len(), 7);
        // What is wanted and is not there any more fails, and what was not wanted is not looked at.
        fs::remove_dir_all(dir.path().join("bond0")).unwrap();
        let wanted = BTreeSet::from(["interface bond0".to_owned(), "interface lo".to_owned()]);
        let found = probes.until(&wanted, &Answer(Ok(()))).await;
        assert_eq!(found["interface bond0"].as_deref(), Some("it is gone"));
        assert_eq!(found["interface lo"], None);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, fits) in [
            ("eth*", "eth0", true),
            ("eth*", "veth0", false),
            ("*", "x", true),
            ("a*c*e", "abcde", true),
            ("a*c", "ab", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_file_of_probes_is_told_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("probes.yaml");
        let found = |text: &str| {
            fs::write(&path, text).unwrap();
            read(&path).map_err(|why| why.replace(&dir.path().display().to_string(), "DIR"))
        };
        let fine =
            found("interfaces: [bond*]\ntcp:\n- 10.0.0.1:179\n- \"[fd00::1]:179\"\napiServer: true\nwithin: 1m\n")
                .unwrap();
        assert_eq!((fine.tcp.len(), fine.within.as_secs()), (2, 60));
        assert_eq!(found("# none\n").unwrap(), Probes::default());
        let told = [
            found("tcp:\n- 10.0.0.1\n").unwrap_err(),
            found("interface: [x]\n").unwrap_err(),
            found("tcp: [a:1]\nwithin: soon\n").unwrap_err(),
            read(Path::new("/nowhere/probes.yaml")).unwrap_err(),
        ];
        for (text, parts) in told.iter().zip([
            [
                "DIR/probes.yaml:2:",
                "\"10.0.0.1\" is no address: expected HOST:PORT, such as 10.0.0.1:179 or [fd00::1]:179",
            ],
            ["DIR/probes.yaml:1:", "unknown field `interface`, expected one of interfaces, tcp, apiServer, within"],
            ["DIR/probes.yaml:2:", "\"soon\" is not a duration"],
            ["cannot read /nowhere/probes.yaml: ", "No such file"],
        ]) {
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }
}
