//! The policy: tenants, windows, freezes and limits, validated. `gate::schedule` evaluates the schedules.

use super::cron::Cron;
use super::diagnostic::{Code, Diagnostic, Mark, quoted};
use super::duration::Span;
use super::files::RepoPath;
use super::ids::{ClusterName, Hostname, Namespace, ScheduleName, TenantName};
use super::installation::{Unmanaged, managed};
use super::layer::{self, NodeSelector};
use super::object::Kind;
use super::other::GroupKind;
use super::proof::{ApprovalRule, By};
use super::raw::{Floors, Permission, Trust};
use super::team::{Approver, Team, Teams};
use super::yaml::{self, Dialect, Node, Parsed};
use super::{raw, schema};
use std::collections::{BTreeMap, BTreeSet};

/// The file that holds the policy, at the root of the repository.
pub const FILE: &str = "tidegate.yaml";
/// How many teams a tenant may name: who is in each is asked of the Git host, about each person who decides, each time.
const MOST_TEAMS: usize = 5;

/// What operations allows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Who may roll out what, from which directory; the directories do not overlap.
    pub tenants: BTreeMap<TenantName, Tenant>,
    /// When steps may be entered, for those that ask for the window by name.
    pub windows: BTreeMap<ScheduleName, Schedule>,
    /// When no step may be entered.
    pub freezes: BTreeMap<ScheduleName, Freeze>,
    /// How much may happen at a time.
    pub limits: Limits,
}

/// One tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// The directory that its rollouts lie in.
    pub path: RepoPath,
    /// The namespaces that its rollouts may use.
    pub namespaces: BTreeSet<Namespace>,
    /// The clusters that its rollouts run on: one, or several of the fleet.
    pub clusters: BTreeSet<ClusterName>,
    /// The hosts that its rollouts may take for themselves; no other tenant has one of them.
    pub hosts: BTreeSet<Hostname>,
    /// The kinds that its sets may hold.
    pub kinds: BTreeSet<GroupKind>,
    /// The nodes that its rollouts may configure; none where it does not say.
    pub nodes: Option<NodeSelector>,
    /// Who may decide. Empty: whoever can merge on the Git host.
    pub approvers: BTreeSet<Approver>,
    /// How many of them have to approve.
    pub approvals: u32,
    /// What counts as an approval.
    pub trust: Trust,
    /// What no rollout of it goes below.
    pub floors: Floors,
    /// What its content may reach of what is refused otherwise; none where the policy does not say, and people are warned.
    pub allow: Option<BTreeSet<Permission>>,
}

impl Tenant {
    /// Whether its sets may hold objects of a kind, as far as it is the tenant's list that says so.
    #[must_use]
    pub fn allows_kind(&self, kind: Kind) -> bool {
        if let Kind::Other(other) = kind {
            return self.allows_other(&other.into());
        }
        let mut known = self.kinds.iter().filter_map(Kind::named).peekable();
        known.peek().is_none() || known.any(|one| one == kind)
    }

    /// The same of a kind that is known by its names alone.
    #[must_use]
    pub fn allows_other(&self, kind: &GroupKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(kind)
    }

    /// What proves a word, on a Git host with reviews as it is; none where whoever may write may decide.
    #[must_use]
    pub fn rule(&self) -> Option<ApprovalRule> {
        let approvers = self.approvers.iter().map(|name| name.to_string().to_ascii_lowercase()).collect();
        let asks = !self.approvers.is_empty() && self.trust != Trust::Writers;
        asks.then_some(ApprovalRule { approvers, approvals: self.approvals, trust: self.trust, by: By::Reviews })
    }
}

/// A recurring span of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// When it starts: five fields of POSIX cron that parse as a [`Cron`].
    pub cron: String,
    /// How long it lasts.
    pub duration: Span,
    /// The time zone that the cron expression is read in.
    pub zone: chrono_tz::Tz,
}

/// A recurring span of time in which no step is entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freeze {
    /// When.
    pub schedule: Schedule,
    /// The tenants that it holds for. Empty: all.
    pub tenants: BTreeSet<TenantName>,
}

/// How much may happen at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most objects that are deleted for one rollout without a pull request that lists them.
    pub max_deletions: u32,
    /// The most runs that are under way at a time, of all teams; one that waits for its first step is not.
    pub max_concurrent_runs: u32,
}

impl Default for Limits {
    fn default() -> Self {
        raw::Limits::default().into()
    }
}

impl From<raw::Limits> for Limits {
    fn from(raw::Limits { max_deletions, max_concurrent_runs }: raw::Limits) -> Self {
        Self { max_deletions, max_concurrent_runs }
    }
}

impl Policy {
    /// Whose namespaces are whose; of several tenants of one the first.
    #[must_use]
    pub fn teams(&self) -> BTreeMap<Namespace, TenantName> {
        let all = self.tenants.iter().rev();
        all.flat_map(|(name, tenant)| tenant.namespaces.iter().map(|own| (own.clone(), name.clone()))).collect()
    }

    /// The tenant whose directory holds that file.
    #[must_use]
    pub fn tenant_of(&self, path: &RepoPath) -> Option<(&TenantName, &Tenant)> {
        self.tenants.iter().find(|(_, tenant)| path.is_within(&tenant.path))
    }
}

/// Reads the policy of a repository of which it is not known where it lies.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(path: &RepoPath, bytes: &[u8]) -> Result<Policy, Vec<Diagnostic>> {
    parse_under(path, bytes, &Teams::Any)
}

/// Reads the policy, which may name these teams.
///
/// # Errors
/// All that is wrong with it.
pub fn parse_under(path: &RepoPath, bytes: &[u8], teams: &Teams) -> Result<Policy, Vec<Diagnostic>> {
    let parsed = yaml::parse(path, bytes, Dialect::Own);
    let raw: raw::Policy = schema::read(&parsed)?;
    let mut found = overlaps(&parsed, &raw.spec.tenants);
    found.extend(shared_hosts(&parsed, &raw.spec.tenants));
    found.extend(strangers(&parsed, &raw.spec));
    found.extend(unreachable(&parsed, &raw.spec.tenants));
    found.extend(unmanaged(&parsed, &raw.spec.tenants));
    found.extend(foreign(&parsed, &raw.spec.tenants, teams));
    found.extend(unsignable(&parsed, &raw.spec.tenants, teams));
    found.extend(unselective(&parsed, &raw.spec.tenants));
    found.extend(instants(&parsed, &raw.spec));
    if !found.is_empty() {
        return Err(found);
    }
    let raw::PolicySpec { tenants, windows, freezes, limits } = raw.spec;
    let tenant = |tenant: raw::Tenant| {
        let raw::Tenant { path, namespaces, clusters, hosts, kinds, nodes, approvers, approvals, trust, floors, allow } =
            tenant;
        Tenant {
            path,
            namespaces,
            clusters,
            hosts,
            kinds,
            nodes: nodes.as_ref().and_then(|nodes| NodeSelector::of(nodes).ok()),
            approvers,
            approvals,
            trust,
            floors,
            allow,
        }
    };
    let freeze = |raw::Freeze { cron, duration, zone, tenants }: raw::Freeze| {
        Some(Freeze { schedule: schedule(raw::Schedule { cron, duration, zone })?, tenants })
    };
    // The schema has checked that each schedule has its zone: nothing is left out here.
    Ok(Policy {
        tenants: tenants.into_iter().map(|(name, t)| (name, tenant(t))).collect(),
        windows: windows.into_iter().filter_map(|(name, s)| Some((name, schedule(s)?))).collect(),
        freezes: freezes.into_iter().filter_map(|(name, f)| Some((name, freeze(f)?))).collect(),
        limits: limits.into(),
    })
}

/// The directories that a policy gives to tenants, whatever else is wrong with it.
#[must_use]
pub fn directories(bytes: &[u8]) -> BTreeSet<RepoPath> {
    let path = FILE.parse().expect("the name of the policy's file is a path");
    let parsed = yaml::parse(&path, bytes, Dialect::Own);
    let tenants = parsed.documents.first().and_then(|root| root.at("/spec/tenants")).map(Node::entries);
    let named = |tenant: &Node| tenant.text_at("/path")?.parse().ok();
    tenants.unwrap_or_default().iter().filter_map(|(_, tenant)| named(tenant)).collect()
}

fn schedule(raw::Schedule { cron, duration, zone }: raw::Schedule) -> Option<Schedule> {
    Some(Schedule { cron, duration, zone: zone.parse().ok()? })
}

fn overlaps(parsed: &Parsed, tenants: &BTreeMap<TenantName, raw::Tenant>) -> Vec<Diagnostic> {
    let Some(root) = parsed.documents.first() else { return Vec::new() };
    let mut found = Vec::new();
    for (name, tenant) in tenants {
        // Of two with the same directory the second is told.
        let within = |t: &raw::Tenant| tenant.path.is_within(&t.path);
        let inner = tenants.iter().filter(|(other, t)| within(t) && (*other < name || tenant.path != t.path));
        for (other, _) in inner {
            let mark = root.locate(&format!("/spec/tenants/{name}/path"));
            let text = format!("the directory {} belongs to tenant {other} already", tenant.path);
            found.push(parsed.source.at(mark, Code::Conflict, text, "directories that do not overlap"));
        }
    }
    found
}

/// Expressions about labels of nodes whose values do not go with their operator.
fn unselective(parsed: &Parsed, tenants: &BTreeMap<TenantName, raw::Tenant>) -> Vec<Diagnostic> {
    let Some(root) = parsed.documents.first() else { return Vec::new() };
    let wrong = tenants.iter().filter_map(|(name, tenant)| {
        let i = NodeSelector::of(tenant.nodes.as_ref()?).err()?;
        let mark = root.locate(&format!("/spec/tenants/{name}/nodes/matchExpressions/{i}"));
        Some(parsed.source.at(mark, Code::Schema, layer::UNSELECTIVE.0, layer::UNSELECTIVE.1))
    });
    wrong.collect()
}

/// Hosts that two tenants have.
fn shared_hosts(parsed: &Parsed, tenants: &BTreeMap<TenantName, raw::Tenant>) -> Vec<Diagnostic> {
    let Some(root) = parsed.documents.first() else { return Vec::new() };
    let mut found = Vec::new();
    for (name, tenant) in tenants {
        let list = root.at(&format!("/spec/tenants/{name}/hosts")).map(Node::items).unwrap_or_default();
        for item in list {
            let is_own = |host: &&Hostname| Some(host.as_str()) == item.text();
            let Some(host) = tenant.hosts.iter().find(is_own) else { continue };
            // Of two with the same host the second is told.
            let within = |(other, held): &(&TenantName, &Hostname)| {
                held.covers(host.as_str()) && (*held != host || *other < name)
            };
            let others = tenants.iter().filter(|(other, _)| *other != name);
            let mut all = others.flat_map(|(other, tenant)| tenant.hosts.iter().map(move |held| (other, held)));
            if let Some((other, held)) = all.find(within) {
                let text = format!("the host {host} belongs to tenant {other} already, by {held}");
                found.push(parsed.source.at(item.mark, Code::Conflict, text, "each host with one tenant"));
            }
        }
    }
    found
}

/// Teams that it may not name, and more than are asked for.
fn foreign(parsed: &Parsed, tenants: &BTreeMap<TenantName, raw::Tenant>, teams: &Teams) -> Vec<Diagnostic> {
    let Some(root) = parsed.documents.first() else { return Vec::new() };
    let mut found = Vec::new();
    for name in tenants.keys() {
        let list = format!("/spec/tenants/{name}/approvers");
        let items = root.at(&list).map(Node::items).unwrap_or_default();
        let named = items.iter().filter_map(|item| Some((item.mark, item.text()?.parse().ok()?)));
        let named: Vec<(Mark, Team)> = named.collect();
        for (mark, team) in &named {
            let refused = teams.refuse(team);
            found.extend(refused.map(|(what, expected)| parsed.source.at(*mark, Code::NotPermitted, what, expected)));
        }
        if named.len() > MOST_TEAMS {
            let text = format!("{} teams are named", named.len());
            found.push(parsed.source.at(root.locate(&list), Code::Schema, text, format!("at most {MOST_TEAMS}")));
        }
    }
    found
}

/// Approvals that nobody could ever have. How many people are in a team is not known here.
fn unreachable(parsed: &Parsed, tenants: &BTreeMap<TenantName, raw::Tenant>) -> Vec<Diagnostic> {
    let Some(root) = parsed.documents.first() else { return Vec::new() };
    let by_name = |tenant: &raw::Tenant| tenant.approvers.iter().all(|one| matches!(one, Approver::Account(_)));
    // Names that differ in case alone are one person's, as on the hosts; with addresses too, where mail could tell them apart.
    let people = |tenant: &raw::Tenant| {
        tenant.approvers.iter().map(|one| one.to_string().to_ascii_lowercase()).collect::<BTreeSet<_>>().len()
    };
    let too_many = |tenant: &raw::Tenant| by_name(tenant) && tenant.approvals as usize > people(tenant).max(1);
    let told = |(name, tenant): (&TenantName, &raw::Tenant)| {
        let mark = root.locate(&format!("/spec/tenants/{name}/approvals"));
        let text = format!("{} approvals are asked for, of {} approvers", tenant.approvals, people(tenant));
        parsed.source.at(mark, Code::Schema, text, "at most as many approvals as there are approvers")
    };
    tenants.iter().filter(|(_, tenant)| too_many(tenant)).map(told).collect()
}

/// More approvals than a decision can have where no Git host counts reviews: it is one commit, and a commit has one signature.
fn unsignable(parsed: &Parsed, tenants: &BTreeMap<TenantName, raw::Tenant>, teams: &Teams) -> Vec<Diagnostic> {
    let Some(root) = parsed.documents.first().filter(|_| *teams == Teams::None) else { return Vec::new() };
    let several =
        |tenant: &raw::Tenant| tenant.approvals > 1 && !tenant.approvers.is_empty() && tenant.trust != Trust::Writers;
    let told = |(name, tenant): (&TenantName, &raw::Tenant)| {
        let mark = root.locate(&format!("/spec/tenants/{name}/approvals"));
        let text = format!("{} approvals are asked for, and this installation names no Git host", tenant.approvals);
        let expected = "approvals: 1, as a decision is one commit with one signature; or a Git host with reviews";
        parsed.source.at(mark, Code::NotPermitted, text, expected)
    };
    tenants.iter().filter(|(_, tenant)| several(tenant)).map(told).collect()
}

/// Kinds that no set has, or that are called otherwise.
fn unmanaged(parsed: &Parsed, tenants: &BTreeMap<TenantName, raw::Tenant>) -> Vec<Diagnostic> {
    let Some(root) = parsed.documents.first() else { return Vec::new() };
    let mut found = Vec::new();
    for name in tenants.keys() {
        let list = root.at(&format!("/spec/tenants/{name}/kinds")).map(Node::items).unwrap_or_default();
        for item in list {
            let Some(kind) = item.text().and_then(|text| text.parse::<GroupKind>().ok()) else { continue };
            if let Err(Unmanaged { found: what, expected }) = managed(&kind) {
                found.push(parsed.source.at(item.mark, Code::KindNotAllowed, what, expected));
            }
        }
    }
    found
}

fn instants(parsed: &Parsed, spec: &raw::PolicySpec) -> Vec<Diagnostic> {
    let Some(root) = parsed.documents.first() else { return Vec::new() };
    let windows = spec.windows.iter().map(|(name, window)| (format!("windows/{name}"), window.duration));
    let freezes = spec.freezes.iter().map(|(name, freeze)| (format!("freezes/{name}"), freeze.duration));
    windows
        .chain(freezes)
        .filter(|(_, duration)| *duration == Span::ZERO)
        .map(|(place, _)| {
            let mark = root.locate(&format!("/spec/{place}/duration"));
            parsed.source.at(mark, Code::Schedule, "it ends when it begins", "a duration of at least 1s")
        })
        .collect()
}

fn strangers(parsed: &Parsed, spec: &raw::PolicySpec) -> Vec<Diagnostic> {
    let Some(root) = parsed.documents.first() else { return Vec::new() };
    let known: Vec<&str> = spec.tenants.keys().map(super::ids::TenantName::as_str).collect();
    let mut found = Vec::new();
    for (name, freeze) in &spec.freezes {
        for tenant in freeze.tenants.iter().filter(|t| !spec.tenants.contains_key(*t)) {
            let list = format!("/spec/freezes/{name}/tenants");
            let at = root.at(&list).and_then(|node| node.items().iter().find(|n| n.text() == Some(tenant.as_str())));
            let mark = at.map_or_else(|| root.locate(&list), |node| node.mark);
            let text = format!("there is no tenant {}", quoted(tenant.as_str()));
            found.push(parsed.source.at(mark, Code::Schema, text, format!("one of {}", known.join(", "))));
        }
    }
    found
}

/// Whether the text is a POSIX cron expression of five fields that comes at all: see [`Cron`].
///
/// # Errors
/// What is wrong with it.
pub fn check_cron(text: &str) -> Result<(), String> {
    text.parse::<Cron>().map(|_| ()).map_err(|error| error.to_string())
}

/// Whether the text is an IANA time zone.
///
/// # Errors
/// What is wrong with it.
pub fn check_zone(text: &str) -> Result<(), String> {
    let rule = "the name of an IANA zone, such as Europe/Berlin or UTC";
    let known = text.parse::<chrono_tz::Tz>().map(|_| ());
    known.map_err(|_| format!("{} is not a time zone: {rule}", quoted(text)))
}

#[cfg(test)]
mod tests {
    use super::{Code, Teams, check_cron, check_zone, parse, parse_under};
    use crate::manifest::installation::HostKind;

    #[test]
    fn schedules_have_a_cron_expression_and_a_zone() {
        for good in ["0 9 * * 1-5", "*/15 0-6,22,23 1,15 * *", "5 4 * * 7", "0 0 29 2 *"] {
            assert_eq!(check_cron(good), Ok(()), "{good}");
        }
        for bad in ["", "0 9 * *", "0 0 9 * * 1-5", "60 * * * *", "5-1 * * * *", "@daily", "0 0 30 2 *"] {
            assert!(check_cron(bad).is_err(), "{bad}");
        }
        assert!(check_zone("Europe/Berlin").is_ok() && check_zone("UTC").is_ok());
        assert!(check_zone("Mars/Olympus").is_err() && check_zone("").is_err());
    }

    fn said(text: &str) -> String {
        let errors = parse(&"tidegate.yaml".parse().unwrap(), text.as_bytes()).unwrap_err();
        errors.iter().map(|d| format!("{}:{} {}; expected {}\n", d.line, d.column, d.found, d.expected)).collect()
    }

    #[test]
    fn what_is_wrong_with_a_schedule_is_found_and_what_is_right_is_expected() {
        let text = "\
apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants: {}
  windows:
    a: {cron: \"0 9 * *\", duration: 8h, zone: UTC}
    b: {cron: \"0 9 * * 9\", duration: 8h, zone: UTC}
    c: {cron: \"0 22-2 * * *\", duration: 8h, zone: UTC}
    d: {cron: \"0 0 31 4 *\", duration: 8h, zone: Mars/Olympus}
";
        insta::assert_snapshot!(said(text), @r#"
        6:15 "0 9 * *" is not five fields but 4; expected minute, hour, day of month, month and day of week
        7:15 "9" is not a valid day of week; expected a number from 0 to 7, or a name from sun to sat
        8:15 "22-2" is not a valid hour; expected a range that goes up, or two, as in 22-23,0-2
        9:15 "0 0 31 4 *" is not a day of any year; expected a day of the calendar
        9:49 "Mars/Olympus" is not a time zone; expected the name of an IANA zone, such as Europe/Berlin or UTC
        "#);
    }

    #[test]
    fn two_tenants_of_one_directory_are_one_conflict() {
        let text = "\
apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants:
    shop: {path: teams/shop, namespaces: [shop], clusters: [home]}
    Sub: {path: teams/shop, namespaces: [sub], clusters: [home]}
    sub: {path: teams/shop, namespaces: [sub], clusters: [home]}
";
        insta::assert_snapshot!(said(text), @r#"6:5 "Sub" is not a valid name in tenants; expected lower-case letters, digits and '-'"#);
        insta::assert_snapshot!(said(&text.replace("    Sub", "    # Sub")), @"7:17 the directory teams/shop belongs to tenant shop already; expected directories that do not overlap");
    }

    #[test]
    fn nobody_is_asked_for_more_approvals_than_there_are_approvers() {
        let text = "\
apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants:
    shop: {path: shop, namespaces: [shop], clusters: [home], approvers: [ana], approvals: 2}
    blog: {path: blog, namespaces: [blog], clusters: [home], approvers: [ana, ben], approvals: 2, trust: merges}
    wiki: {path: wiki, namespaces: [wiki], clusters: [home], approvals: 2}
    mail: {path: mail, namespaces: [mail], clusters: [home], approvers: [ana, Ana], approvals: 2}
";
        insta::assert_snapshot!(said(text), @r"
        8:96 2 approvals are asked for, of 1 approvers; expected at most as many approvals as there are approvers
        5:91 2 approvals are asked for, of 1 approvers; expected at most as many approvals as there are approvers
        7:73 2 approvals are asked for, of 0 approvers; expected at most as many approvals as there are approvers
        ");
    }

    #[test]
    fn one_signature_is_all_that_a_decision_has_where_no_host_counts_reviews() {
        let text = "\
apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants:
    shop: {path: shop, namespaces: [shop], clusters: [home], approvers: [ana@x.org, ben@x.org], approvals: 2}
    blog: {path: blog, namespaces: [blog], clusters: [home], approvers: [ana@x.org, ben@x.org]}
    wiki: {path: wiki, namespaces: [wiki], clusters: [home], approvers: [ana, ben], approvals: 2, trust: writers}
";
        let under = |teams: &Teams| parse_under(&"tidegate.yaml".parse().unwrap(), text.as_bytes(), teams);
        let [one] = &*under(&Teams::None).unwrap_err() else { panic!("one") };
        assert_eq!((one.line, one.code), (5, Code::NotPermitted));
        assert!(one.found.contains("2 approvals are asked for, and this installation names no Git host"), "{one}");
        assert!(under(&Teams::Of { kind: HostKind::Github, owner: "acme".to_owned() }).is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_team_is_shown_where_it_stands() {
        let text = "\
apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants:
    a: {path: a, namespaces: [a], clusters: [home], approvals: 3, approvers: [ana, \"@shop\", \"@/x\", \"@acme/a b\", -x]}
    b: {path: b, namespaces: [b], clusters: [home], approvals: 3, approvers: [ana, \"@evil/shop\", \"@Acme/a/b\", \"@acme/fine\"]}
    c: {path: c, namespaces: [c], clusters: [home], approvers: [\"@acme/1\", \"@acme/2\", \"@acme/3\", \"@acme/4\", \"@acme/5\", \"@acme/6\"]}
";
        insta::assert_snapshot!(said(text), @r#"
        5:84 "@shop" is not a team; expected @ORGANISATION/TEAM, as in CODEOWNERS, such as "@acme/shop"; on GitLab a group by its whole path; at most 255 letters, digits, '.', '_' and '-'
        5:93 "@/x" is not a team; expected @ORGANISATION/TEAM, as in CODEOWNERS, such as "@acme/shop"; on GitLab a group by its whole path; at most 255 letters, digits, '.', '_' and '-'
        5:100 "@acme/a b" is not a team; expected @ORGANISATION/TEAM, as in CODEOWNERS, such as "@acme/shop"; on GitLab a group by its whole path; at most 255 letters, digits, '.', '_' and '-'
        5:113 "-x" is not the name of an account; expected at most 100 letters, digits, '.', '_', '-', '+' and '@', the first one a letter or a digit; or its number as in id:7, as the host counts its users; or a team such as "@acme/shop"
        "#);
        let bare = "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    a: {path: a, namespaces: [a], clusters: [home], approvers: [@acme/shop]}\n";
        let [quote] = &*parse(&"tidegate.yaml".parse().unwrap(), bare.as_bytes()).unwrap_err() else { panic!("one") };
        assert_eq!((quote.line, quote.column), (5, 65), "{quote}");
        assert!(quote.to_string().contains("put what begins with @ into quotes"), "{quote}");
        let fine = text.replace("    a: {", "    # ");
        let under = |teams: &Teams| {
            let errors = parse_under(&"tidegate.yaml".parse().unwrap(), fine.as_bytes(), teams).unwrap_err();
            errors
                .iter()
                .map(|d| format!("{}:{} {}; expected {}\n", d.line, d.column, d.found, d.expected))
                .collect::<String>()
        };
        insta::assert_snapshot!(under(&Teams::Any), @"7:53 6 teams are named; expected at most 5");
        let on_github = Teams::Of { kind: HostKind::Github, owner: "acme".to_owned() };
        insta::assert_snapshot!(under(&on_github), @r#"
        6:84 @evil/shop is a team of evil, and the repository belongs to acme; expected a team of acme: "@acme/TEAM"
        6:98 @acme/a/b is a group in groups, which only GitLab has; expected a team of acme: "@acme/TEAM"
        7:53 6 teams are named; expected at most 5
        "#);
        let unhosted = under(&Teams::None);
        assert_eq!(
            unhosted.lines().filter(|line| line.contains("names no Git host that tells who is in @")).count(),
            9
        );
    }

    #[test]
    fn a_window_of_no_duration_never_opens() {
        let text = "\
apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants: {}
  windows:
    day: {cron: \"0 9 * * *\", duration: 0s, zone: UTC}
";
        let errors = parse(&"tidegate.yaml".parse().unwrap(), text.as_bytes()).unwrap_err();
        assert_eq!(errors.iter().map(|d| (d.line, d.column, d.code)).collect::<Vec<_>>(), [(6, 40, Code::Schedule)]);
    }

    #[test]
    fn all_mistakes_of_a_policy_are_shown_at_once() {
        let text = "\
apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants:
    shop: {path: teams/shop, namespaces: [Shop], clusters: [Home], aprovers: [ana]}
  windows:
    day: {cron: \"0 9 * *\", duration: 8 h, zone: Europe/Berln}
  limits: {maxDeletions: -1}
";
        let errors = parse(&"tidegate.yaml".parse().unwrap(), text.as_bytes()).unwrap_err();
        let found: Vec<_> = errors.iter().map(|d| (d.line, d.code)).collect();
        assert_eq!(found.iter().filter(|(line, _)| *line == 5).count(), 3, "{errors:#?}");
        assert_eq!(found.iter().filter(|(line, _)| *line == 7).count(), 3, "{errors:#?}");
        assert_eq!(found.iter().filter(|(line, _)| *line == 8).count(), 1, "{errors:#?}");
        assert!(found.contains(&(5, Code::UnknownField)));
    }

    #[test]
    fn directories_of_tenants_do_not_overlap() {
        let text = "\
apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants:
    shop: {path: teams/shop, namespaces: [shop], clusters: [home]}
    sub: {path: teams/shop/sub, namespaces: [sub], clusters: [home]}
    shopper: {path: teams/shopper, namespaces: [shopper], clusters: [home]}
  freezes:
    xmas: {cron: \"0 0 20 12 *\", duration: 336h, zone: UTC, tenants: [shop, nobody]}
";
        let errors = parse(&"tidegate.yaml".parse().unwrap(), text.as_bytes()).unwrap_err();
        assert_eq!(
            errors.iter().map(|d| (d.line, d.code)).collect::<Vec<_>>(),
            [(6, Code::Conflict), (9, Code::Schema)]
        );
    }
}
