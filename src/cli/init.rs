//! `tidegate init FILE…`: the first files of a repository, from an application's manifests or from what is live of it, and what to
//! set on the Git host.

mod team;

use super::Exit;
use super::failure::Failure;
use super::import;
use super::screen::Screen;
use super::ui::Ink;
use crate::forge::branch::propose_prefix;
use crate::forge::settings::{ProtectedBranch, Settings};
use crate::manifest::ids::{InstanceName, Namespace, TenantName};
use crate::manifest::installation;
use crate::manifest::policy;
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use tidegate_import::{Made, Tool};

/// Write the first files of a repository
#[derive(Debug, Clone, Args)]
#[command(
    long_about = "Writes the first files of a repository: the policy, and a rollout for each Deployment among the files, with its Service, \
                  and with its HTTPRoute, GRPCRoute, VirtualService or Ingress of nginx if there is one. What was read from a cluster loses \
                  what the API server filled in.\n\n\
                  Prints the files; with --write writes them. Then says what to set on the Git host, so that nobody can push what only others \
                  may decide. Nothing in a cluster or on a host is read or changed.",
    after_help = "Examples:
  tidegate init podinfo.yaml --write .
  kubectl get deployment,service,httproute -n shop -o yaml | tidegate init - --write .
  tidegate init podinfo.yaml --host gitea         # the settings as commands
  tidegate init --team echo --owner @acme/echo --router contour --write .
"
)]
pub struct InitArgs {
    /// The files; - is standard input
    #[arg(required_unless_present = "team", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Writes the folder of a team that shares a proxy with others, with an application of its name, and says what operations add (docs/teams.md)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["files", "namespace"], requires = "owner")]
    team: Option<TenantName>,
    /// Who owns the team's folder on the Git host
    #[arg(long, value_name = "@NAME", requires = "team", value_parser = team::owner)]
    owner: Option<String>,
    /// What leads requests to the team's application
    #[arg(long, value_name = "ROUTER", requires = "team", default_value = "gatewayAPI")]
    router: team::Router,
    /// Writes the files below this directory; none that is there is overwritten
    #[arg(short, long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// The namespace of objects that name none
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: Namespace,
    /// What this tidegate will be called: it is part of its branches' names
    #[arg(long, value_name = "NAME", default_value = "prod", env = "TIDEGATE_INSTANCE")]
    instance: InstanceName,
    /// The branch that people write what they want to
    #[arg(long, value_name = "NAME", default_value = "main", value_parser = branch)]
    branch: String,
    /// The account that the controller will have on the Git host
    #[arg(long, value_name = "NAME", default_value = "tidegate-bot")]
    account: String,
    /// Says the settings as that host has them
    #[arg(long, value_name = "HOST", default_value = "any")]
    host: HostKind,
}

/// Whose settings are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HostKind {
    /// In words
    Any,
    /// Gitea or Forgejo, as commands
    Gitea,
    /// GitHub, as commands
    Github,
    /// GitLab, as commands
    Gitlab,
}

/// Reads, and prints or writes.
pub(super) fn command(args: &InitArgs, screen: &Screen) -> Result<Exit, Failure> {
    if let Some((name, owner)) = args.team.as_ref().zip(args.owner.as_ref()) {
        let (team, dir) = (team::Team { name, owner, router: args.router }, args.write.as_deref());
        let next = team.next(dir, args.host, screen.ink);
        return import::deliver(&team::imported(team.files(dir)), dir, &next, screen);
    }
    let Some(mut imported) = import::read(Tool::Bare, &args.files, args.namespace.as_str(), None, screen)? else {
        return Ok(Exit::Findings);
    };
    let there = args.write.as_ref().is_some_and(|dir| dir.join(policy::FILE).symlink_metadata().is_ok());
    let tenants = tenants(&imported.files);
    let mut next = import::differences(&imported, screen.ink);
    if there {
        let lines: String = tenants.lines().map(|line| format!("  {line}\n")).collect();
        let _ = write!(next, "\n{} is there already. Below spec.tenants it needs:\n{lines}", policy::FILE);
    } else {
        imported.files.insert(0, policy_of(&tenants));
    }
    next.push_str(ALLOWED);
    let settings = Settings { instance: &args.instance, main: &args.branch, account: &args.account, id: None };
    next.push_str(&match args.host {
        HostKind::Any => in_words(&settings, screen.ink),
        HostKind::Gitea => as_commands(&settings, installation::HostKind::Gitea, screen.ink),
        HostKind::Github => as_commands(&settings, installation::HostKind::Github, screen.ink),
        HostKind::Gitlab => as_commands(&settings, installation::HostKind::Gitlab, screen.ink),
    });
    next.push_str(&for_the_controller(&args.branch));
    import::deliver(&imported, args.write.as_deref(), &next, screen)
}

fn branch(text: &str) -> Result<String, String> {
    installation::check_branch(text).map(|()| text.to_owned())
}

/// What the controller has to be told of a branch, if it looks at another one by itself.
fn for_the_controller(branch: &str) -> String {
    if branch == "main" {
        return String::new();
    }
    format!("\nThe controller looks at that branch if its Installation says so: repository.branch: {branch}\n")
}

const ALLOWED: &str =
    "\nWhat the files reach beyond that is refused; tidegate validate names it, and what to add to allow.\n";

/// A tenant for each namespace: the first part of the files' paths.
fn tenants(files: &[Made]) -> String {
    let namespaces: BTreeSet<&str> = files.iter().filter_map(|made| made.path.split('/').next()).collect();
    let one = |name: &str| format!("{name}: {{path: {name}, namespaces: [{name}], clusters: [home], allow: []}}\n");
    namespaces.into_iter().map(one).collect()
}

fn policy_of(tenants: &str) -> Made {
    let tenants: String = tenants.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "# Who may roll out what: docs/files.md. Operations own this file.\n\
         apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n{tenants}"
    );
    Made { path: policy::FILE.to_owned(), text }
}

/// The settings of a host's branches.
fn in_words(settings: &Settings<'_>, ink: Ink) -> String {
    let mut text = format!("\n{}\n", ink.bold("To be set on the Git host, before the controller starts:"));
    for branch in ProtectedBranch::ALL {
        let _ = writeln!(text, "  {}\n    {}", settings.name(branch), settings.words(branch));
    }
    let (propose, account) = (propose_prefix(settings.instance), settings.account);
    let _ = writeln!(
        text,
        "  {propose}**\n    {account} pushes, moves and deletes there, alone where a rule of the host can say so; a rule that keeps branches from being deleted is none for these"
    );
    text
}

/// The same as calls of a host's API. On Gitea and GitLab a branch need not be there yet.
fn as_commands(settings: &Settings<'_>, kind: installation::HostKind, ink: Ink) -> String {
    let title =
        ink.bold("To be set on the Git host, before the controller starts, with a token of who owns the repository:");
    let api = match kind {
        installation::HostKind::Gitea => "https://HOST/api/v1/repos/OWNER/NAME",
        installation::HostKind::Github => "https://api.github.com/repos/OWNER/NAME",
        installation::HostKind::Gitlab => "https://gitlab.com/api/v4/projects/GROUP%2FNAME",
    };
    let mut text = format!("\n{title}\n  api={api}\n");
    if kind == installation::HostKind::Github {
        let known = match settings.account.strip_suffix("[bot]") {
            Some(app) => format!("apps/{app}"),
            None => format!("users/{}", settings.account),
        };
        let _ = writeln!(text, "  ID=NUMBER  # \"id\" in https://api.github.com/{known}");
    }
    for branch in ProtectedBranch::ALL {
        let _ = writeln!(text, "  {}", settings.command(kind, "$api", branch, None));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_set_on_the_host() {
        let instance = "prod".parse().unwrap();
        let settings = Settings { instance: &instance, main: "main", account: "tidegate-bot", id: None };
        use installation::HostKind::{Gitea, Github, Gitlab};
        let commands = [Gitea, Github, Gitlab].map(|kind| as_commands(&settings, kind, Ink::Plain)).concat();
        insta::assert_snapshot!(format!("{}{commands}", in_words(&settings, Ink::Plain)));
        let app = as_commands(&Settings { account: "tidegate[bot]", ..settings }, Github, Ink::Plain);
        assert!(app.contains("in https://api.github.com/apps/tidegate\n"), "{app}");
        let trunk = in_words(&Settings { main: "trunk", ..settings }, Ink::Plain);
        assert!(trunk.contains("\n  trunk\n    changes by pull request"), "{trunk}");
    }

    #[test]
    fn the_policy_that_it_prints_allows_nothing_beyond_the_namespaces() {
        let made = |path: &str| Made { path: path.to_owned(), text: String::new() };
        let policy = policy_of(&tenants(&[made("shop/web/rollout.yaml"), made("blog/site/rollout.yaml")]));
        let policy = policy::parse(&policy::FILE.parse().unwrap(), policy.text.as_bytes()).unwrap();
        assert_eq!(policy.tenants.len(), 2);
        assert!(policy.tenants.values().all(|tenant| tenant.allow.as_ref().is_some_and(BTreeSet::is_empty)));
    }

    #[test]
    fn the_branch_of_people_is_no_branch_of_ours() {
        assert_eq!(branch("release/1.2").as_deref(), Ok("release/1.2"));
        assert!(branch("tidegate/prod/state").unwrap_err().contains("is not a branch of people"));
        assert!(branch("--force").is_err());
        assert_eq!(for_the_controller("main"), "");
        assert!(for_the_controller("release/1.2").contains("repository.branch: release/1.2\n"));
    }
}
