//! What a Git host says of itself: the rules of branches, what our account may do, who is told of pushes. Asked by our own
//! account, to which a host may hide some of it.

use super::{CallPurpose, Host, HostError, Method, gitlab};
use crate::forge::settings::escaped;
use crate::manifest::installation::HostKind;
use crate::people::branch::Rules;
use crate::record::state::Time;
use crate::record::text::plain;
use http::header::ETAG;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What our account may do in the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct Permissions {
    /// Change its settings.
    #[serde(default)]
    pub admin: bool,
    /// Push to it.
    #[serde(default)]
    pub push: bool,
}

/// A webhook of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostWebhook {
    /// Where it leads.
    pub url: String,
    /// Whether it tells of pushes.
    pub pushes: bool,
    /// Whether it tells of what happens to pull requests.
    pub pulls: bool,
    /// What came of the last delivery, where the host says so: a status, and words.
    pub last: Option<(Option<u16>, String)>,
}

#[derive(Deserialize)]
struct RawBranch {
    protected: bool,
    // Gitea alone.
    effective_branch_protection_name: Option<String>,
    required_approvals: Option<u32>,
    user_can_push: Option<bool>,
    user_can_merge: Option<bool>,
}

/// A rule of GitHub's rulesets that holds for a branch.
#[derive(Deserialize)]
struct RawRule {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    parameters: Value,
}

/// GitHub's classic rule of a branch.
#[derive(Deserialize)]
struct RawProtection {
    required_pull_request_reviews: Option<RawReviews>,
    restrictions: Option<RawRestrictions>,
}

#[derive(Deserialize)]
struct RawReviews {
    #[serde(default)]
    required_approving_review_count: u32,
}

#[derive(Deserialize)]
struct RawRestrictions {
    users: Vec<RawLogin>,
    #[serde(default)]
    apps: Vec<RawSlug>,
}

/// An App, whose user is called like it.
#[derive(Deserialize)]
struct RawSlug {
    slug: String,
}

#[derive(Deserialize)]
struct RawLogin {
    login: String,
}

#[derive(Deserialize)]
struct RawRepository {
    permissions: Option<Permissions>,
}

#[derive(Deserialize)]
struct RawHook {
    active: bool,
    events: Vec<String>,
    config: RawConfig,
    last_response: Option<RawResponse>,
}

#[derive(Deserialize)]
struct RawConfig {
    #[serde(default)]
    url: String,
}

#[derive(Deserialize)]
struct RawResponse {
    code: Option<u16>,
    status: Option<String>,
    message: Option<String>,
}

impl Host {
    /// Our own name there.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn login(&mut self) -> Result<String, HostError> {
        Ok(self.me().await?.login)
    }

    /// The rules of a branch, as far as our account is told; none if there is no such branch.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn rules(&mut self, branch: &str) -> Result<Option<Rules>, HostError> {
        let login = self.login().await?;
        let kind = self.site.kind;
        let path = match kind {
            HostKind::Gitlab => return self.kept(branch).await,
            // Slashes are part of its path.
            HostKind::Gitea => branch.split('/').map(escaped).collect::<Vec<_>>().join("/"),
            HostKind::Github => escaped(branch),
        };
        let found: RawBranch = match self.again(format!("branches/{path}")).await {
            Err(HostError::Refused { status: 404, .. }) => return Ok(None),
            found => found?,
        };
        if !found.protected || kind == HostKind::Gitea {
            return Ok(Some(Rules {
                protected: found.protected,
                name: found.effective_branch_protection_name.filter(|name| !name.is_empty()),
                may_push: found.user_can_push,
                may_merge: found.user_can_merge,
                approvals: found.required_approvals,
                ..Rules::default()
            }));
        }
        let listed: Vec<RawRule> = self.again(format!("rules/branches/{path}?{}", kind.page(1))).await?;
        if let Some(rules) = of_rulesets(&listed) {
            return Ok(Some(rules));
        }
        match self.again::<RawProtection>(format!("branches/{path}/protection")).await {
            Ok(classic) => Ok(Some(of_classic(&classic, &login))),
            // Who may not administer the repository is not told of a classic rule. What is told counts: rules that ask for nothing
            // close a branch to nobody, whether administrators are told of another one or not.
            Err(HostError::Refused { .. }) => {
                let approvals = (!listed.is_empty()).then_some(0);
                Ok(Some(Rules { protected: true, approvals, hidden: listed.is_empty(), ..Rules::default() }))
            }
            Err(error) => Err(error),
        }
    }

    /// What our account may do; none if the host does not say.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn permissions(&mut self) -> Result<Option<Permissions>, HostError> {
        let (errand, path) = (CallPurpose::Protection, self.in_repository(""));
        Ok(match self.site.kind {
            HostKind::Gitea | HostKind::Github => self.get::<RawRepository>(errand, path).await?.permissions,
            HostKind::Gitlab => self.get::<gitlab::RawProject>(errand, path).await?.permissions(),
        })
    }

    /// The repository's webhooks that are not switched off: of the first page, which has more than anybody has.
    ///
    /// # Errors
    /// As [`HostError`] says; `Refused` also where our account may not know.
    pub async fn hooks(&mut self) -> Result<Vec<HostWebhook>, HostError> {
        let path = self.in_repository(&format!("hooks?{}", self.site.kind.page(1)));
        Ok(match self.site.kind {
            HostKind::Gitea | HostKind::Github => {
                let found: Vec<RawHook> = self.get(CallPurpose::Protection, path).await?;
                found.into_iter().filter(|hook| hook.active).map(RawHook::read).collect()
            }
            HostKind::Gitlab => {
                let found: Vec<gitlab::RawHook> = self.get(CallPurpose::Protection, path).await?;
                found.into_iter().filter_map(gitlab::RawHook::read).collect()
            }
        })
    }

    /// What the host's clock said with its last answer.
    #[must_use]
    pub fn clock(&self) -> Option<Time> {
        self.date
    }

    /// Reads what was perhaps read before: what has not changed costs nothing where the host has ETags.
    pub(super) async fn again<T: DeserializeOwned>(&mut self, path: String) -> Result<T, HostError> {
        let path = self.in_repository(&path);
        let etag = self.known.get(&path).map(|(etag, _)| etag.clone());
        let mut answer = self.ask(CallPurpose::Protection, Method::GET, &path, None, etag).await?;
        if answer.status == 304 {
            let known = self.known.get(&path).map(|(_, body)| body.clone());
            answer.body = known.ok_or_else(|| answer.unusable("not modified, though nothing is known of it"))?;
        } else if let Some(etag) = answer.headers.get(ETAG).and_then(|etag| etag.to_str().ok()) {
            self.known.insert(path, (etag.to_owned(), answer.body.clone()));
        }
        answer.read()
    }
}

/// What rulesets say of who may write; none if they say nothing of it.
fn of_rulesets(listed: &[RawRule]) -> Option<Rules> {
    let asked = |rule: &RawRule| rule.parameters["required_approving_review_count"].as_u64().unwrap_or(0);
    let reviews = listed.iter().filter(|rule| rule.kind == "pull_request").map(asked).max();
    if let Some(count) = reviews {
        let approvals = Some(u32::try_from(count).unwrap_or(u32::MAX));
        return Some(Rules { protected: true, may_push: Some(false), approvals, ..Rules::default() });
    }
    // Only those write whom the ruleset leaves out; it does not say who they are.
    listed.iter().any(|rule| rule.kind == "update").then(|| Rules { protected: true, ..Rules::default() })
}

fn of_classic(RawProtection { required_pull_request_reviews, restrictions }: &RawProtection, login: &str) -> Rules {
    let app = login.strip_suffix("[bot]");
    let named = restrictions.as_ref().map(|only| {
        only.users.iter().any(|user| user.login.eq_ignore_ascii_case(login))
            || only.apps.iter().any(|RawSlug { slug }| Some(slug.as_str()) == app)
    });
    let reviewed = required_pull_request_reviews.is_some();
    Rules {
        protected: true,
        name: None,
        may_push: Some(!reviewed && named.unwrap_or(true)),
        may_merge: named,
        approvals: Some(required_pull_request_reviews.as_ref().map_or(0, |r| r.required_approving_review_count)),
        ..Rules::default()
    }
}

impl RawHook {
    fn read(self) -> HostWebhook {
        let last = self
            .last_response
            .map(|RawResponse { code, status, message }| (code, plain(&message.or(status).unwrap_or_default())));
        let tells = |of: &str| self.events.iter().any(|event| event == of || event == "*");
        HostWebhook { url: plain(&self.config.url), pushes: tells("push"), pulls: tells("pull_request"), last }
    }
}
