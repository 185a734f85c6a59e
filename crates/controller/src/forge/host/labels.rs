//! The labels of our pull requests, by which people filter them. They are an ornament: nothing depends on them, nothing is ever read
//! from them, and what people take away stays away.

use super::{CallPurpose, Host, HostError, Method};
use crate::manifest::installation::HostKind;
use serde::Deserialize;
use serde_json::json;

/// How Gitea, which asks for a colour, shows a label that its repository lacked.
const COLOR: &str = "#0e7490";

#[derive(Deserialize)]
struct RawLabel {
    name: String,
}

impl Host {
    /// Labels a pull request that was just made. A label that the repository has is used as it is, another one is made.
    ///
    /// # Errors
    /// As [`HostError`] says. The pull request is as good without.
    pub async fn label(&mut self, number: u64, labels: &[&str]) -> Result<(), HostError> {
        match self.site.kind {
            HostKind::Gitea => self.label_on_gitea(number, labels).await,
            HostKind::Github => {
                let (path, body) = (self.in_repository(&format!("issues/{number}/labels")), json!({"labels": labels}));
                self.ask(CallPurpose::Label, Method::POST, &path, Some(&body), None).await.map(drop)
            }
            // Not when it is made: whatever were wrong with a label would then be wrong with the request.
            HostKind::Gitlab => {
                let path = self.in_repository(&format!("merge_requests/{number}"));
                let body = json!({"add_labels": labels.join(",")});
                self.ask(CallPurpose::Label, Method::PUT, &path, Some(&body), None).await.map(drop)
            }
        }
    }

    /// Gitea passes over what the repository and its organisation lack, and says which labels a pull request has then.
    async fn label_on_gitea(&mut self, number: u64, labels: &[&str]) -> Result<(), HostError> {
        let path = self.in_repository(&format!("issues/{number}/labels"));
        let body = json!({"labels": labels});
        let answer = self.ask(CallPurpose::Label, Method::POST, &path, Some(&body), None).await?;
        let there: Vec<RawLabel> = answer.read()?;
        let lacks = |name: &&str| there.iter().all(|label| !label.name.eq_ignore_ascii_case(name));
        let lacking: Vec<&str> = labels.iter().copied().filter(lacks).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let all = self.in_repository("labels");
        for name in &lacking {
            let new = json!({"name": name, "color": COLOR, "description": "Opened by tidegate"});
            self.ask(CallPurpose::Label, Method::POST, &all, Some(&new), None).await?;
        }
        self.ask(CallPurpose::Label, Method::POST, &path, Some(&json!({"labels": lacking})), None).await.map(drop)
    }
}
