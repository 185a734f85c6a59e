//! Where a repository is on its Git host, and where that host has its API: both follow from the repository's URL.

use super::HostKind;
use super::ssh::host_of;
use url::Url;

/// What is wrong with a field.
pub(super) struct Odd {
    pub(super) field: &'static str,
    pub(super) what: String,
    pub(super) expected: &'static str,
}

/// Where a repository is.
pub(super) struct Place {
    /// On GitLab perhaps groups in groups: `acme/shops`.
    pub(super) owner: String,
    pub(super) name: String,
    /// The path that the host is served below.
    below: String,
}

impl Place {
    /// None if the URL does not end with an owner and a name. `api` is where the installation says that the API is.
    pub(super) fn of(kind: HostKind, url: &Url, api: Option<&Url>) -> Option<Self> {
        let path = url.path().trim_end_matches('/').trim_end_matches(".git");
        let (rest, name) = path.rsplit_once('/')?;
        let (below, owner) = match kind {
            HostKind::Gitea | HostKind::Github => rest.rsplit_once('/')?,
            // All before the name are groups, unless GitLab is served below a path, which the address of its API tells.
            HostKind::Gitlab => {
                let below = api.and_then(|api| api.path().trim_end_matches('/').strip_suffix("/api/v4"));
                let below = below.unwrap_or_default();
                match rest.strip_prefix(below).and_then(|groups| groups.strip_prefix('/')) {
                    Some(groups) => (below, groups),
                    None => ("", rest.trim_start_matches('/')),
                }
            }
        };
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let part = |part: &str| !part.is_empty() && part.chars().all(fine);
        let good = part(name) && owner.split('/').all(part);
        good.then(|| Self { owner: owner.to_owned(), name: name.to_owned(), below: below.to_owned() })
    }

    /// Where hosts have their APIs. A Gitea may be served below a path.
    pub(super) fn api(&self, kind: HostKind, repository: &Url) -> Url {
        let mut api = host_of(repository);
        match kind {
            HostKind::Github if repository.host_str() == Some("github.com") => {
                return Url::parse("https://api.github.com").expect("valid because it is a constant");
            }
            HostKind::Github => api.set_path("api/v3"),
            HostKind::Gitea => api.set_path(&format!("{}/api/v1", self.below)),
            HostKind::Gitlab => api.set_path("api/v4"),
        }
        api
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owner and the name on GitLab, where nothing or that is said of its API.
    fn on_gitlab(url: &str, api: Option<&str>) -> Option<String> {
        let (url, api) = (Url::parse(url).unwrap(), api.map(|api| Url::parse(api).unwrap()));
        Place::of(HostKind::Gitlab, &url, api.as_ref()).map(|place| format!("{} {}", place.owner, place.name))
    }

    #[test]
    fn on_gitlab_groups_stand_in_groups() {
        let place = |url: &str, api| on_gitlab(url, api).unwrap();
        assert_eq!(place("https://gitlab.com/acme/fleet.git", None), "acme fleet");
        assert_eq!(place("https://gitlab.com/acme/shops/eu/fleet", None), "acme/shops/eu fleet");
        let api = Some("https://git.test/gitlab/api/v4/");
        assert_eq!(place("https://git.test/gitlab/acme/shops/fleet", api), "acme/shops fleet");
        assert_eq!(place("https://git.test/gitlabs/fleet", api), "gitlabs fleet", "another path");
        assert_eq!(place("https://git.test/acme/fleet", Some("https://api.test/other")), "acme fleet");
        for none in ["https://git.test/fleet", "https://git.test/a%2Fb/fleet", "https://git.test/a//fleet"] {
            assert_eq!(on_gitlab(none, None), None, "{none}");
        }
    }
}
