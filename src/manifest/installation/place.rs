//! Where a repository is on its Git host, and where that host has its API: both follow from the repository's URL.

use super::HostKind;
use url::Url;

/// Where a repository is.
pub(super) struct Place {
    pub(super) owner: String,
    pub(super) name: String,
    /// The path that the host is served below.
    below: String,
}

impl Place {
    /// None if the URL does not end with an owner and a name.
    pub(super) fn of(url: &Url) -> Option<Self> {
        let path = url.path().trim_end_matches('/').trim_end_matches(".git");
        let mut parts = path.trim_start_matches('/').rsplitn(3, '/');
        let part = |part: Option<&str>| {
            let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            part.filter(|part| !part.is_empty() && part.chars().all(fine)).map(str::to_owned)
        };
        let (name, owner) = (part(parts.next())?, part(parts.next())?);
        Some(Self { owner, name, below: parts.next().unwrap_or_default().to_owned() })
    }

    /// Where hosts have their APIs. A Gitea may be served below a path.
    pub(super) fn api(&self, kind: HostKind, repository: &Url) -> Url {
        let mut api = repository.clone();
        match kind {
            HostKind::Github if repository.host_str() == Some("github.com") => {
                return Url::parse("https://api.github.com").expect("valid because it is a constant");
            }
            HostKind::Github => api.set_path("api/v3"),
            HostKind::Gitea => api.set_path(&format!("{}/api/v1", self.below)),
        }
        api
    }
}
