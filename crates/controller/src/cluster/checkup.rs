//! What `doctor` asks of an API server. Nothing is written: a review of rights is a question.

use super::client::Cluster;
use super::failure::Failure;
use super::request;
use super::rights::Right;
use crate::manifest::ids::Namespace;
use crate::manifest::object::Kind;
use crate::record::state::Time;
use http::header::DATE;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Where rights are asked about.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

/// Who an API server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its version, as it says it.
    pub version: String,
    /// Who we are to it, where it says so.
    pub user: Option<String>,
    /// What its clock said.
    pub clock: Option<Time>,
}

impl Cluster {
    /// Who the API server is.
    ///
    /// # Errors
    /// What kept it from saying so.
    pub async fn server(&self) -> Result<Server, String> {
        let (headers, found) = self.answer(request::get("/version", &[])).await.map_err(said)?;
        let clock = headers.get(DATE).and_then(|date| Time::from_rfc2822(date.to_str().ok()?));
        let version = found["gitVersion"].as_str().unwrap_or("of an unknown version").to_owned();
        let question = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let whoami =
            self.call(request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &[], &question)).await;
        // Servers before 1.28 do not know the question.
        let user =
            whoami.ok().and_then(|answer| Some(answer.pointer("/status/userInfo/username")?.as_str()?.to_owned()));
        Ok(Server { version, user, clock })
    }

    /// Those of these rights that we do not have. The rules of each namespace are asked for once; what they do not list is asked
    /// for by itself, since not every API server can list all.
    ///
    /// # Errors
    /// What kept the API server from saying so.
    pub async fn lacks(&self, rights: Vec<Right>) -> Result<Vec<Right>, String> {
        let mut rules: BTreeMap<Namespace, Vec<Value>> = BTreeMap::new();
        let mut missing = Vec::new();
        for right in rights {
            // A namespace has the rules of the whole cluster, too.
            let place = right.namespace.clone().unwrap_or_else(|| self.home().clone());
            if !rules.contains_key(&place) {
                let listed = self.rules(&place).await.map_err(said)?;
                rules.insert(place.clone(), listed);
            }
            if rules.get(&place).is_some_and(|rules| right.is_granted(rules)) {
                continue;
            }
            let asked =
                self.call(request::post(&format!("{REVIEWS}/selfsubjectaccessreviews"), &[], &right.question()));
            let answer = asked.await.map_err(said)?;
            if answer.pointer("/status/allowed") != Some(&Value::Bool(true)) {
                missing.push(right);
            }
        }
        Ok(missing)
    }

    async fn rules(&self, namespace: &Namespace) -> Result<Vec<Value>, Failure> {
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace},
        });
        let answer = self.call(request::post(&format!("{REVIEWS}/selfsubjectrulesreviews"), &[], &question)).await?;
        Ok(answer.pointer("/status/resourceRules").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    /// Those of these kinds that the cluster does not serve.
    ///
    /// # Errors
    /// What kept the API server from saying so.
    pub async fn does_not_serve(&self, kinds: &BTreeSet<Kind>) -> Result<BTreeSet<Kind>, String> {
        let mut missing = BTreeSet::new();
        for kind in kinds {
            let version = kind.api_version();
            let served = match self.call(request::get(&request::version(version), &[])).await {
                Ok(list) => {
                    list["resources"].as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == kind.as_str()))
                }
                Err(failure) if failure.code() == Some(404) => false,
                Err(failure) => return Err(said(failure)),
            };
            if !served {
                missing.insert(*kind);
            }
        }
        Ok(missing)
    }
}

fn said(failure: Failure) -> String {
    failure.to_string()
}
