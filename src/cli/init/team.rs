//! `tidegate init --team NAME`: the folder of a team that shares a proxy with others, and what operations add for it.

use super::HostKind;
use super::policy_of;
use crate::cli::ui::Ink;
use crate::manifest::ids::TenantName;
use crate::manifest::policy;
use clap::ValueEnum;
use std::fmt::Write;
use std::path::Path;
use tidegate_import::{Imported, Made};

/// What leads requests to the team's Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Router {
    /// A RouteTable below operations' VirtualService of Gloo
    Gloo,
    /// An HTTPProxy that operations' root of Contour includes
    Contour,
    /// An HTTPRoute at operations' Gateway
    #[value(name = "gatewayAPI")]
    GatewayApi,
}

/// A team as the command line names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Team<'a> {
    pub(super) name: &'a TenantName,
    /// Who owns its folder on the Git host, such as `@acme/echo`.
    pub(super) owner: &'a str,
    pub(super) router: Router,
}

/// Whom a CODEOWNERS file of each host takes.
pub(super) fn owner(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('@').unwrap_or_default();
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let fits = !name.is_empty() && name.split('/').all(is_part);
    fits.then(|| text.to_owned()).ok_or_else(|| "expected @NAME, or @ORGANISATION/TEAM".to_owned())
}

impl Team<'_> {
    /// The files of its folder, with the policy where `dir` has none yet.
    pub(super) fn files(&self, dir: Option<&Path>) -> Vec<Made> {
        let there = |name: &str| dir.is_some_and(|dir| dir.join(name).symlink_metadata().is_ok());
        let mut files = Vec::new();
        if !there(policy::FILE) {
            files.push(policy_of(&self.tenant()));
        }
        let own = |file: &str, text: String| Made { path: format!("teams/{0}/{0}/{file}", self.name), text };
        files.push(own("rollout.yaml", self.rollout()));
        files.push(own("manifests.yaml", self.manifests()));
        files
    }

    fn tenant(&self) -> String {
        format!("{0}: {{path: teams/{0}, namespaces: [{0}], clusters: [home], allow: []}}\n", self.name)
    }

    fn rollout(&self) -> String {
        let (name, by) = (
            self.name,
            match self.router {
                Router::Gloo => "gloo: {routeTable",
                Router::Contour => "contour: {httpProxy",
                Router::GatewayApi => "gatewayAPI: {httpRoute",
            },
        );
        format!(
            "# Who sends the header meets the new version once somebody approves; then a half of all requests, then all.
apiVersion: tidegate.io/v1alpha1
kind: Rollout
metadata: {{name: {name}, namespace: {name}}}
spec:
  manifests: [manifests.yaml]
  target: {{kind: Deployment, name: {name}}}
  traffic:
    {by}: {name}, service: {name}}}
  phases:
    - name: testers
      before: {{approval: pullRequest}}
      expose: {{headers: [{{stage: canary}}]}}
      soak: 10m
    - name: ramp
      expose: {{weights: [50, 100]}}
      soak: 10m
"
        )
    }

    /// What leads requests to its Service.
    fn route(&self) -> String {
        let name = self.name;
        match self.router {
            Router::Gloo => format!(
                "apiVersion: gateway.solo.io/v1
kind: RouteTable
metadata:
  name: {name}
  labels: {{apiGroup: example}}
spec:
  routes:
    - matchers: [{{prefix: /{name}}}]
      options: {{prefixRewrite: /}}
      routeAction: {{single: {{kube: {{ref: {{name: {name}, namespace: {name}}}, port: 80}}}}}}
"
            ),
            Router::Contour => format!(
                "apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {{name: {name}}}
spec:
  routes:
    - pathRewritePolicy: {{replacePrefix: [{{replacement: /}}]}}
      services: [{{name: {name}, port: 80}}]
"
            ),
            Router::GatewayApi => format!(
                "apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}}}
spec:
  parentRefs: [{{name: public, namespace: gateway}}]
  hostnames: [app.example.test]
  rules:
    - matches: [{{path: {{type: PathPrefix, value: /{name}}}}}]
      backendRefs: [{{name: {name}, port: 80}}]
"
            ),
        }
    }

    fn manifests(&self) -> String {
        let (name, route) = (self.name, self.route());
        format!(
            "apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
        - name: {name}
          image: example.test/{name}:1  # yours
          ports: [{{name: http, containerPort: 8080}}]
          readinessProbe: {{httpGet: {{path: /, port: http}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec:
  selector: {{app: {name}}}
  ports: [{{port: 80, targetPort: http}}]
---
{route}"
        )
    }

    /// What operations add: the tenant where there is a policy, who owns the folder, the parent, and the chart's values.
    pub(super) fn next(&self, dir: Option<&Path>, host: HostKind, ink: Ink) -> String {
        let mut text = String::new();
        if dir.is_some_and(|dir| dir.join(policy::FILE).symlink_metadata().is_ok()) {
            let _ =
                write!(text, "\n{} is there already. Below spec.tenants it needs:\n  {}", policy::FILE, self.tenant());
        }
        let _ = writeln!(
            text,
            "\n{}",
            ink.bold("A line of the file CODEOWNERS, so that the team alone approves changes of its folder:")
        );
        let (name, owner) = (self.name, self.owner);
        // Gitea reads regular expressions, the others what `.gitignore` has.
        let (plain, regular) = (format!("/teams/{name}/ {owner}"), format!("teams/{name}/.* {owner}"));
        let _ = match host {
            HostKind::Gitea => writeln!(text, "  {regular}"),
            HostKind::Github | HostKind::Gitlab => writeln!(text, "  {plain}"),
            HostKind::Any => writeln!(text, "  {plain}    # GitHub, GitLab\n  {regular}    # Gitea"),
        };
        let _ = writeln!(
            text,
            "\n{}",
            ink.bold("What operations have in the gateway's namespace; tidegate never writes it:")
        );
        for line in self.parent().lines() {
            let _ = writeln!(text, "  {line}");
        }
        let _ = writeln!(text, "\n{}", ink.bold("Values of the chart, beside those of other teams:"));
        let gateways = match self.router {
            Router::Gloo => "\n  gateways: {gloo: {namespace: gloo-system}}",
            Router::Contour => "\n  gateways: {contour: {namespace: projectcontour}}",
            Router::GatewayApi => "",
        };
        let _ = writeln!(text, "  namespaces: [{name}]{gateways}");
        text
    }

    fn parent(&self) -> String {
        let name = self.name;
        match self.router {
            Router::Gloo => "# A route of the VirtualService that has the host: once, for all teams
- matchers: [{prefix: /}]
  delegateAction: {selector: {namespaces: ['*'], labels: {apiGroup: example}}}
"
            .to_owned(),
            Router::Contour => format!(
                "# Below spec.includes of the HTTPProxy that has the host\n\
                 - {{name: {name}, namespace: {name}, conditions: [{{prefix: /{name}}}]}}\n"
            ),
            Router::GatewayApi => format!(
                "# The listener of the Gateway lets the namespace in: a label of yours
allowedRoutes: {{namespaces: {{from: Selector, selector: {{matchExpressions: [
  {{key: kubernetes.io/metadata.name, operator: In, values: [{name}]}}]}}}}}}
"
            ),
        }
    }
}

/// The same as what is imported of nothing.
pub(super) fn imported(files: Vec<Made>) -> Imported {
    Imported {
        files,
        expected: Vec::new(),
        refused: Vec::new(),
        providers: std::collections::BTreeMap::new(),
        fields: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::validate;

    const ALL: [Router; 3] = [Router::Gloo, Router::Contour, Router::GatewayApi];

    #[test]
    fn what_is_made_for_a_team_is_valid_without_a_warning() {
        let name = "echo".parse().unwrap();
        for router in ALL {
            let dir = tempfile::tempdir().unwrap();
            let team = Team { name: &name, owner: "@acme/echo", router };
            for made in team.files(Some(dir.path())) {
                let path = dir.path().join(&made.path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, made.text).unwrap();
            }
            let report = validate::validate(dir.path(), validate::Output::Text, validate::Colour::Never);
            assert!(report.code == 0 && !report.text.contains("warning"), "{router:?}: {}", report.text);
            // A second team finds the policy there.
            let files = team.files(Some(dir.path()));
            assert!(files.iter().all(|made| made.path != policy::FILE), "{router:?}");
            assert!(team.next(Some(dir.path()), HostKind::Any, Ink::Plain).contains("Below spec.tenants it needs"));
        }
    }

    #[test]
    fn each_host_reads_who_owns_the_folder_in_its_own_way() {
        let name = "echo".parse().unwrap();
        let next = |router, host| Team { name: &name, owner: "@acme/echo", router }.next(None, host, Ink::Plain);
        assert!(next(Router::Gloo, HostKind::Gitea).contains("\n  teams/echo/.* @acme/echo\n"));
        assert!(next(Router::Gloo, HostKind::Github).contains("\n  /teams/echo/ @acme/echo\n"));
        insta::assert_snapshot!(ALL.map(|router| next(router, HostKind::Any)).concat());
    }

    #[test]
    fn an_owner_is_a_name_of_the_host() {
        assert!(owner("@acme/echo").is_ok() && owner("@ana").is_ok());
        for wrong in ["acme", "@", "@acme/", "@acme echo", "@acme/echo\n* @eve"] {
            assert!(owner(wrong).is_err(), "{wrong:?}");
        }
    }
}
