//! The installation: where one controller finds its repository, its clusters and its secrets.
//!
//! It is a file beside the controller and never comes from the repository, so that repository content chooses values
//! and never endpoints or identities (design §8). Secrets stand in files that it names.

mod answering;
mod forge;
mod place;
mod ssh;
mod text;

use answering::answering;
use forge::forge;
pub use forge::{Access, App, HostKind, PullHost};
use place::Odd;
pub use ssh::SshFiles;
pub use text::{check_branch, check_http_url, check_path, check_url};
use text::{git_url, http_url};

use super::diagnostic::{Code, Diagnostic};
use super::files::RepoPath;
use super::ids::{ClusterName, InstanceName, Namespace, ProviderName};
use super::layer::{self, NodeSelector};
use super::object::Kind;
use super::other::{GroupKind, Other};
use super::policy::Tenant;
use super::set::refused::is_never;
use super::team::Teams;
use super::yaml::{self, Dialect};
use super::{raw, schema};
use crate::sign::PublicKey;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// One controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Its name: part of branch names, of the Lease and of the owner mark.
    pub instance: InstanceName,
    /// Where desired state and the record are.
    pub repository: Repository,
    /// What the record is signed with; none if it is not.
    pub signing: Option<Signing>,
    /// Its clusters.
    pub clusters: BTreeMap<ClusterName, ClusterConfig>,
    /// Who answers the questions of checks.
    pub providers: BTreeMap<ProviderName, Provider>,
    /// The most that any policy may allow.
    pub caps: Caps,
    /// Whether each rollout is shown as an object of Kubernetes.
    pub projection: raw::Projection,
    /// The address that hears webhooks, if there is a secret for them.
    pub webhook_address: String,
    /// The proxies that teams share.
    pub gateways: raw::Gateways,
}

/// Who answers the questions of checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// With measurements.
    Prometheus(Prometheus),
    /// By its own judgement.
    Webhook(Webhook),
}

/// A Prometheus, or what speaks its query API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prometheus {
    /// http or https, without a user or password; what `/api/v1` follows.
    pub url: Url,
    /// The file with the credentials.
    pub credentials_file: Option<PathBuf>,
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// http or https, without a user or password: what is asked.
    pub url: Url,
    /// The file with the credentials.
    pub credentials_file: Option<PathBuf>,
    /// The file with the key that questions are signed with.
    pub hmac_key_file: Option<PathBuf>,
}

/// Where desired state and the record are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// http or https, without a user or password, or ssh.
    pub url: Url,
    /// What OpenSSH needs; there if the URL is one of ssh, and only then.
    pub ssh: Option<SshFiles>,
    /// The branch that people write desired state to.
    pub branch: String,
    /// How often the repository is looked at; a file asks for a second at least.
    pub poll: Duration,
    /// The file with the credentials.
    pub credentials_file: Option<PathBuf>,
    /// The file with the secret of the Git host's webhooks; none if they are not heard.
    pub webhook_secret_file: Option<PathBuf>,
    /// The list of who may sign the tip of that branch; none if nobody has to.
    pub signers_file: Option<PathBuf>,
    /// The OpenPGP keys of who may, likewise.
    pub keyring_file: Option<PathBuf>,
    /// Where its host shows pull requests; none if it does not, or is not asked to.
    pub forge: Option<PullHost>,
    /// The number that this host gave it, which no other one gets; none if it may be any that lies at the URL.
    pub pinned: Option<u64>,
    /// Whether people are told there of their own pull requests.
    pub feedback: raw::Feedback,
}

/// What the record is signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    /// The file with the private key.
    pub key_file: PathBuf,
    /// Further keys whose commits are believed.
    pub trusted: Vec<PublicKey>,
}

/// How a cluster is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterConfig {
    /// The cluster that the controller runs in, with its service account.
    InCluster,
    /// A kubeconfig file, its current context.
    Kubeconfig(PathBuf),
}

/// The most that any policy may allow. The default allows all that tidegate can do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caps {
    namespaces: BTreeSet<Namespace>,
    kinds: BTreeSet<Kind>,
    others: BTreeSet<GroupKind>,
    teams: Teams,
    nodes: Option<NodeSelector>,
    cluster: Option<ClusterName>,
    unknown: bool,
}

impl Caps {
    /// Caps of an installation that is not at hand: what the policy names besides is taken for allowed, as the same people write both.
    #[must_use]
    pub fn unknown() -> Self {
        Self { unknown: true, ..Self::default() }
    }

    /// Whether a tenant's sets may hold a kind that is known by its names alone, as far as it is the installation that says so.
    #[must_use]
    pub fn allows_other_of(&self, kind: &GroupKind, tenant: Option<&Tenant>) -> bool {
        self.allows_other(kind) || self.unknown && tenant.is_some_and(|tenant| tenant.kinds.contains(kind))
    }

    /// Caps with these namespaces and kinds; none given allows all.
    #[must_use]
    pub fn new(namespaces: BTreeSet<Namespace>, kinds: BTreeSet<Kind>) -> Self {
        Self { namespaces, kinds, ..Self::default() }
    }

    /// The same where sets may hold these kinds, too, which are known by their names alone.
    #[must_use]
    pub fn beside(self, others: BTreeSet<GroupKind>) -> Self {
        Self { others, ..self }
    }

    /// The same where policies may name these teams.
    #[must_use]
    pub fn with(self, teams: Teams) -> Self {
        Self { teams, ..self }
    }

    /// The same where rollouts may configure these nodes.
    #[must_use]
    pub fn configuring(self, nodes: NodeSelector) -> Self {
        Self { nodes: Some(nodes), ..self }
    }

    /// The nodes that rollouts may configure; none unless operations says so.
    #[must_use]
    pub fn nodes(&self) -> Option<&NodeSelector> {
        self.nodes.as_ref()
    }

    /// The nodes that rollouts of a tenant may configure: those that both the installation and the policy let them have, and none where one of
    /// both says nothing. Of an installation that is not at hand the policy's.
    #[must_use]
    pub fn nodes_of(&self, tenant: Option<&Tenant>) -> Option<NodeSelector> {
        let own = tenant.and_then(|tenant| tenant.nodes.as_ref())?;
        if self.unknown { Some(own.clone()) } else { Some(self.nodes.as_ref()?.and(own)) }
    }

    /// The same of the instance that serves this cluster.
    #[must_use]
    pub fn serving(self, cluster: ClusterName) -> Self {
        Self { cluster: Some(cluster), ..self }
    }

    /// The cluster that is served, where that is known.
    #[must_use]
    pub fn cluster(&self) -> Option<&ClusterName> {
        self.cluster.as_ref()
    }

    /// The teams that policies may name.
    #[must_use]
    pub fn teams(&self) -> &Teams {
        &self.teams
    }

    /// Whether rollouts may use that namespace.
    #[must_use]
    pub fn allows_namespace(&self, namespace: &Namespace) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(namespace)
    }

    /// Whether sets, or what stands before steps, may be of that kind.
    #[must_use]
    pub fn allows_kind(&self, kind: Kind) -> bool {
        if let Kind::Other(other) = kind {
            return self.allows_other(&other.into());
        }
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Whether sets may be of a kind that is known by its names alone.
    #[must_use]
    pub fn allows_other(&self, kind: &GroupKind) -> bool {
        self.others().contains(kind)
    }

    /// The kinds that are known by their names alone, and may stand in sets: those that are named, and the usual ones unless the others are
    /// limited.
    #[must_use]
    pub fn others(&self) -> BTreeSet<GroupKind> {
        let usual = Other::usual().map(GroupKind::from).filter(|_| self.kinds.is_empty());
        self.others.iter().cloned().chain(usual).collect()
    }

    /// The kinds that are read in the namespaces: those that may be written, and what is read in any case.
    #[must_use]
    pub fn watched(&self) -> BTreeSet<Kind> {
        let reads = |kind: &Kind| Kind::READ.contains(kind) || self.allows_kind(*kind);
        Kind::ALL.iter().copied().filter(|kind| !Kind::OF_NODES.contains(kind)).filter(reads).collect()
    }

    /// The namespaces; empty for all.
    #[must_use]
    pub fn namespaces(&self) -> &BTreeSet<Namespace> {
        &self.namespaces
    }
}

/// Reads an installation. `name` stands for the file in diagnostics.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(name: &RepoPath, bytes: &[u8]) -> Result<Installation, Vec<Diagnostic>> {
    let parsed = yaml::parse(name, bytes, Dialect::Own);
    let raw: raw::Installation = schema::read(&parsed)?;
    let raw::InstallationSpec {
        instance,
        repository,
        signing,
        clusters,
        providers,
        caps,
        projection,
        report,
        gateways,
    } = raw.spec;
    let mut found = Vec::new();
    let mut at = |pointer: &str, code, what: &str, expected: &str| {
        let mark = parsed.documents.first().map(|root| root.locate(pointer)).unwrap_or_default();
        found.push(parsed.source.at(mark, code, what, expected));
    };
    let reached = reached(clusters, &mut at);
    let nodes = configurable(caps.nodes.as_ref(), &mut at);
    let (kinds, others) = told_apart(caps.kinds, &mut at);
    let url = match git_url(&repository.url) {
        Ok(url) => url,
        Err(why) => {
            at("/spec/repository/url", Code::Url, &why, "https://HOST/PATH or http://HOST/PATH");
            return Err(found);
        }
    };
    let ssh = ssh::files(&repository, &url).unwrap_or_else(|Odd { field, what, expected }| {
        at(&format!("/spec/repository{field}"), Code::Schema, &what, expected);
        None
    });
    let answering = answering(providers, &mut at);
    let forge = match forge(repository.forge.clone(), &url, repository.credentials_file.as_deref()) {
        Ok(forge) => forge,
        Err(Odd { field, what, expected }) => {
            at(&format!("/spec/repository/forge{field}"), Code::Schema, &what, expected);
            None
        }
    };
    if !found.is_empty() {
        return Err(found);
    }
    let signing = signing.map(|raw::Signing { key_file, trusted }| Signing { key_file: key_file.into(), trusted });
    let repository = followed(repository, url, ssh, forge);
    let caps = Caps::new(caps.namespaces, kinds).beside(others).with(Teams::on(repository.forge.as_ref()));
    let caps = Caps { nodes, cluster: reached.keys().next().cloned(), ..caps };
    Ok(Installation {
        instance,
        repository,
        signing,
        clusters: reached,
        providers: answering,
        caps,
        projection,
        webhook_address: report.webhook,
        gateways,
    })
}

fn followed(raw: raw::Repository, url: Url, ssh: Option<SshFiles>, forge: Option<PullHost>) -> Repository {
    Repository {
        url,
        ssh,
        branch: raw.branch,
        poll: Duration::from_secs(raw.poll.as_secs().max(1)),
        credentials_file: raw.credentials_file.map(PathBuf::from),
        webhook_secret_file: raw.webhook_secret_file.map(PathBuf::from),
        signers_file: raw.allowed_signers_file.map(PathBuf::from),
        keyring_file: raw.keyring_file.map(PathBuf::from),
        forge,
        pinned: raw.forge.repository_id,
        feedback: raw.forge.feedback,
    }
}

/// The nodes that rollouts may configure.
fn configurable(
    raw: Option<&raw::NodeSelector>,
    wrong: &mut impl FnMut(&str, Code, &str, &str),
) -> Option<NodeSelector> {
    let (found, expected) = layer::UNSELECTIVE;
    NodeSelector::of(raw?)
        .map_err(|i| wrong(&format!("/spec/caps/nodes/matchExpressions/{i}"), Code::Schema, found, expected))
        .ok()
}

/// Of kinds by their names those that tidegate knows, and the others.
fn told_apart(
    names: BTreeSet<GroupKind>,
    wrong: &mut impl FnMut(&str, Code, &str, &str),
) -> (BTreeSet<Kind>, BTreeSet<GroupKind>) {
    let (mut kinds, mut others) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        match managed(&name) {
            Ok(Some(known)) => drop(kinds.insert(known)),
            Ok(None) => drop(others.insert(name)),
            Err(Unmanaged { found, expected }) => wrong("/spec/caps/kinds", Code::KindNotAllowed, &found, &expected),
        }
    }
    (kinds, others)
}

/// Why a kind is in no set, whatever is allowed.
pub(super) struct Unmanaged {
    pub(super) found: String,
    pub(super) expected: String,
}

/// The kind that operations may name so: one that is known, or another one by its group.
///
/// # Errors
/// Nobody can name it.
pub(super) fn managed(name: &GroupKind) -> Result<Option<Kind>, Unmanaged> {
    const OF_THE_CORE: [&str; 3] = ["LimitRange", "PersistentVolumeClaim", "ResourceQuota"];
    let unmanaged =
        |expected: String| Err(Unmanaged { found: format!("objects of kind {name} are never managed"), expected });
    match Kind::named(name) {
        Some(known) if known.is_of_sets() || known == Kind::Job => Ok(Some(known)),
        None if is_never(name) => unmanaged("kinds whose objects have a namespace".to_owned()),
        None if !name.group().is_empty() || OF_THE_CORE.contains(&name.kind()) => Ok(None),
        Some(_) | None => {
            let meant = Other::usual().map(GroupKind::from).find(|usual| usual.kind() == name.kind());
            unmanaged(meant.map_or_else(
                || "kinds that may stand in a set, Job, or GROUP/KIND of any other".to_owned(),
                |meant| meant.to_string(),
            ))
        }
    }
}

/// The clusters that can be reached; `wrong` is told of the others.
fn reached(
    clusters: BTreeMap<ClusterName, raw::Cluster>,
    mut wrong: impl FnMut(&str, Code, &str, &str),
) -> BTreeMap<ClusterName, ClusterConfig> {
    let mut reached = BTreeMap::new();
    for (name, cluster) in clusters {
        match (cluster.in_cluster, cluster.kubeconfig_file) {
            (Some(raw::InCluster {}), None) => drop(reached.insert(name, ClusterConfig::InCluster)),
            (None, Some(file)) => drop(reached.insert(name, ClusterConfig::Kubeconfig(file.into()))),
            (Some(_), Some(_)) | (None, None) => {
                let pointer = format!("/spec/clusters/{name}");
                wrong(
                    &pointer,
                    Code::Schema,
                    "it is not clear how to reach this cluster",
                    "inCluster or kubeconfigFile",
                );
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::{ClusterConfig, Code, Kind, Provider, check_branch, check_url, parse};

    const GOOD: &str = "\
apiVersion: tidegate.io/v1alpha1
kind: Installation
spec:
  instance: prod
  repository: {url: \"https://git.example.test/shop.git\", poll: 10s, credentialsFile: /etc/tidegate/token}
  clusters: {home: {inCluster: {}}, other: {kubeconfigFile: /etc/tidegate/other}}
  caps: {namespaces: [shop], kinds: []}
";

    #[test]
    fn an_installation_has_defaults_and_only_names_its_secrets() {
        let installation = parse(&"installation.yaml".parse().unwrap(), GOOD.as_bytes()).unwrap();
        assert_eq!(installation.repository.branch, "main");
        assert_eq!(installation.repository.poll.as_secs(), 10);
        assert_eq!(installation.clusters.values().next(), Some(&ClusterConfig::InCluster));
        assert!(installation.caps.allows_namespace(&"shop".parse().unwrap()));
        assert!(!installation.caps.allows_namespace(&"blog".parse().unwrap()));
        assert_eq!(installation.webhook_address, "0.0.0.0:8081");
    }

    #[test]
    fn x_18_kinds_that_may_be_written_are_read_and_so_is_what_pods_depend_on() {
        let with = |kinds: &str| {
            let text = GOOD.replace("kinds: []", &format!("kinds: [{kinds}]"));
            parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).map(|found| found.caps.watched())
        };
        assert_eq!(with("").unwrap().len(), Kind::ALL.len() - Kind::OF_NODES.len());
        let few = [Kind::Deployment, Kind::Job].into_iter().chain(Kind::READ.iter().copied()).collect();
        assert_eq!(with("Deployment, Job").unwrap(), few);
        assert_eq!(with("Deployment, Pod").unwrap_err()[0].code, Code::KindNotAllowed);
    }

    #[test]
    fn webhooks_are_heard_at_an_address_and_a_port() {
        let with = |address: &str| {
            let text = format!("{GOOD}  report: {{webhook: \"{address}\"}}\n");
            parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).map(|found| found.webhook_address)
        };
        for good in ["127.0.0.1:0", "[::]:8081"] {
            assert_eq!(with(good).unwrap(), good);
        }
        for bad in ["", "8081", ":8081", "localhost:8081", "0.0.0.0:", "http://0.0.0.0:8081", "::8081"] {
            assert_eq!(with(bad).unwrap_err()[0].code, Code::Schema, "{bad}");
        }
    }

    #[test]
    fn attack_17_refs_that_are_none() {
        for bad in
            ["", "-option", "../../config", "a..b", "a b", "a/.b", "a.lock", "a\u{7f}", "refs/heads/../x", "a//b"]
        {
            assert!(check_branch(bad).is_err(), "{bad:?}");
        }
        assert!(check_branch("release/1.2").is_ok());
    }

    #[test]
    fn attack_18_19_urls_that_start_programs_or_carry_secrets() {
        for bad in [
            "ssh://-oProxyCommand=touch%20x/repo",
            "ssh://-x@host/repo",
            "ext::sh -c touch% x",
            "file:///etc",
            "fd::17/foo",
            "git://host/repo",
            "git@host:repo",
            "/srv/repo",
            "https://user:secret@host/repo",
            "https://token@host/repo",
            "https://host",
            "https://host/a b",
            "https://host/-x",
        ] {
            let error = check_url(bad).expect_err(bad);
            assert!(!error.contains("secret") && !error.contains("token@"), "{error}");
        }
        for good in ["https://host/a.git", "http://127.0.0.1:3000/a/b"] {
            assert!(check_url(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_host_with_pull_requests_is_found_by_the_repository() {
        let with = |url: &str, forge: &str| {
            let repository = format!("url: \"{url}\", forge: {{{forge}}},");
            let text = GOOD.replace("url: \"https://git.example.test/shop.git\",", &repository);
            parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).map(|found| found.repository.forge)
        };
        let api = |url: &str, forge: &str| {
            let host = with(url, &format!("{forge}, tokenFile: /etc/t")).unwrap().unwrap();
            format!("{} {} {}", host.api, host.owner, host.name)
        };
        assert_eq!(api("https://github.com/acme/shop", "kind: github"), "https://api.github.com acme shop");
        assert_eq!(api("https://ghe.test/acme/shop.git", "kind: github"), "https://ghe.test/api/v3 acme shop");
        assert_eq!(api("https://git.test/acme/shop.git", "kind: gitea"), "https://git.test/api/v1 acme shop");
        assert_eq!(api("http://git.test:3000/in/acme/a.b/", "kind: gitea"), "http://git.test:3000/in/api/v1 acme a.b");
        assert_eq!(api("https://git.test/acme/a/shop.git", "kind: gitlab"), "https://git.test/api/v4 acme/a shop");
        let own = "kind: gitea, url: \"https://api.test/x/\"";
        assert_eq!(api("https://git.test/acme/shop", own), "https://api.test/x acme shop");
        assert_eq!(with("https://git.test/shop", "kind: branch"), Ok(None));

        let wrong = |url: &str, forge: &str| with(url, forge).unwrap_err()[0].to_string();
        let url = "https://git.test/acme/shop";
        for (found, hint) in [
            (wrong(url, "kind: gitea"), "tokenFile"),
            (wrong(url, "tokenFile: /etc/t"), "kind: gitea, github or gitlab"),
            (wrong("https://git.test/shop", "kind: github, tokenFile: /etc/t"), "https://HOST/OWNER/NAME.git"),
            (wrong("https://git.test/a%20b/shop", "kind: github, tokenFile: /etc/t"), "https://HOST/OWNER/NAME.git"),
            (wrong(url, "kind: gitea, tokenFile: token"), "is not a path of a file"),
            (wrong(url, "kind: gitea, tokenFile: /etc/t, url: \"https://me:pa55@git.test\""), "credentialsFile"),
            (wrong("https://git.test/shop", "kind: gitlab, tokenFile: /etc/t"), "https://HOST/OWNER/NAME.git"),
            (wrong(url, "kind: bitbucket, tokenFile: /etc/t"), "gitlab"),
        ] {
            assert!(
                found.contains(hint) && found.contains("installation.yaml:5:") && !found.contains("pa55"),
                "{found}"
            );
        }
    }

    #[test]
    fn the_record_is_signed_with_a_key_of_a_file_and_further_ones_are_believed() {
        let with = |signing: &str| {
            let text = format!("{GOOD}  signing: {{{signing}}}\n");
            parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).map(|found| found.signing.unwrap())
        };
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO/FeP8ahR15xa9Li8YWZz8yncRxtHES/vwcm3uWWabY";
        let found = with(&format!("keyFile: /etc/key, trusted: [\"{key} before\"]")).unwrap();
        assert_eq!(found.key_file, std::path::Path::new("/etc/key"));
        assert_eq!(found.trusted.iter().map(ToString::to_string).collect::<Vec<_>>(), [key]);
        assert_eq!(with("keyFile: /etc/key").unwrap().trusted, []);
        for (bad, hint) in [
            ("", "keyFile"),
            ("keyFile: key", "is not a path of a file"),
            ("keyFile: /etc/key, trusted: [ssh-ed25519]", "expected a line as in a *.pub file"),
        ] {
            let error = with(bad).unwrap_err()[0].to_string();
            assert!(error.contains(hint) && error.contains("installation.yaml:8:"), "{error}");
        }
    }

    #[test]
    fn providers_have_plain_addresses_and_secrets_in_files() {
        let with = |provider: &str| {
            let text = format!("{GOOD}  providers: {{main: {{{provider}}}}}\n");
            let read = parse(&"installation.yaml".parse().unwrap(), text.as_bytes());
            read.map(|installation| installation.providers[&"main".parse().unwrap()].clone())
        };
        let main = with("prometheus: {url: \"http://prometheus.example.test:9090\", credentialsFile: /etc/p}");
        let Ok(Provider::Prometheus(main)) = main else { panic!("{main:?}") };
        assert_eq!(main.url.as_str(), "http://prometheus.example.test:9090/");
        assert_eq!(main.credentials_file.as_deref(), Some(std::path::Path::new("/etc/p")));
        let main = with("webhook: {url: \"https://tester.example.test/check\", hmacKeyFile: /etc/key}");
        let Ok(Provider::Webhook(main)) = main else { panic!("{main:?}") };
        assert_eq!((main.url.as_str(), main.credentials_file), ("https://tester.example.test/check", None));
        assert_eq!(main.hmac_key_file.as_deref(), Some(std::path::Path::new("/etc/key")));
        let mistakes = |provider: &str| {
            let errors = with(provider).unwrap_err();
            assert!(!format!("{errors:?}").contains("pa55@"), "{errors:?}");
            errors.iter().map(|d| (d.line, d.code)).collect::<Vec<_>>()
        };
        for kind in ["prometheus", "webhook"] {
            for bad in ["http://ana:pa55@p", "prometheus:9090", "https://p?a=pa55", "file:///etc", ""] {
                assert_eq!(mistakes(&format!("{kind}: {{url: \"{bad}\"}}")), [(8, Code::Url)], "{bad}");
            }
            let relative = format!("{kind}: {{url: \"http://p\", credentialsFile: relative}}");
            assert_eq!(mistakes(&relative), [(8, Code::Schema)]);
        }
        for unclear in ["", "prometheus: {url: \"http://p\"}, webhook: {url: \"http://p\"}"] {
            assert_eq!(mistakes(unclear), [(8, Code::Schema)], "{unclear}");
        }
    }

    #[test]
    fn attack_58_a_cluster_is_reached_in_one_way() {
        let text = GOOD
            .replace("{inCluster: {}}", "{}")
            .replace("kubeconfigFile: /etc", "inCluster: {}, kubeconfigFile: /etc");
        let errors = parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).unwrap_err();
        assert_eq!(errors.iter().map(|d| (d.line, d.code)).collect::<Vec<_>>(), [(6, Code::Schema); 2]);
    }
}
