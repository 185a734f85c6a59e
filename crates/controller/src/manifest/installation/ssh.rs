//! A repository behind SSH: what the installation has to say of it.

use super::Odd;
use crate::manifest::raw;
use crate::manifest::ssh_url::{InvalidSshUrl, SshUrl};
use std::path::PathBuf;
use url::Url;

/// Who we are behind SSH, and which hosts are believed: files that OpenSSH reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshFiles {
    /// The private key.
    pub key_file: PathBuf,
    /// The keys of hosts.
    pub known_hosts_file: PathBuf,
}

/// What a repository behind SSH needs, and no other may have.
pub(super) fn files(repository: &raw::Repository, url: &Url) -> Result<Option<SshFiles>, Odd> {
    let odd = |field, what: &str, expected| Err(Odd { field, what: what.to_owned(), expected });
    match &repository.ssh {
        None if url.scheme() != "ssh" => Ok(None),
        None => odd("", "a repository behind ssh:// needs a key", "ssh: {keyFile: /PATH, knownHostsFile: /PATH}"),
        Some(_) if url.scheme() != "ssh" => {
            odd("/ssh", "this repository is not behind ssh://", "url: ssh://git@HOST/PATH, or no ssh")
        }
        Some(_) if repository.credentials_file.is_some() => odd(
            "/credentialsFile",
            "behind ssh:// nothing but a key lets in",
            "no credentialsFile: ssh.keyFile is used",
        ),
        Some(raw::Ssh { key_file, known_hosts_file }) => {
            Ok(Some(SshFiles { key_file: key_file.into(), known_hosts_file: known_hosts_file.into() }))
        }
    }
}

/// The URL of a repository behind SSH.
pub(super) fn url(text: &str) -> Result<Url, String> {
    let url: SshUrl = text.parse().map_err(|why: InvalidSshUrl| why.to_string())?;
    Url::parse(&url.to_string()).map_err(|why| why.to_string())
}

/// Where a host's API is, if it is where the repository is: behind SSH there is none.
pub(super) fn host_of(repository: &Url) -> Url {
    let behind: Option<SshUrl> = repository.as_str().parse().ok();
    behind.map_or_else(|| repository.clone(), |url| url.over_https())
}

#[cfg(test)]
mod tests {
    use super::super::{Installation, check_http_url, check_url, parse};
    use super::*;
    use crate::manifest::diagnostic::Diagnostic;

    const URL: &str = "url: \"ssh://git@git.example.test:2222/acme/shop.git\"";
    const FILES: &str = "ssh: {keyFile: /k, knownHostsFile: /h}";

    fn with(repository: &str) -> Result<Installation, Vec<Diagnostic>> {
        let text = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: prod\n  repository: {{{repository}}}\n  \
             clusters: {{home: {{inCluster: {{}}}}}}\n"
        );
        parse(&"installation.yaml".parse().unwrap(), text.as_bytes())
    }

    #[test]
    fn it_needs_a_key_and_the_keys_of_the_host_and_nothing_else_may_have_them() {
        let found = with(&format!("{URL}, {FILES}")).unwrap().repository;
        assert_eq!(found.url.as_str(), "ssh://git@git.example.test:2222/acme/shop.git");
        assert_eq!(found.ssh, Some(SshFiles { key_file: "/k".into(), known_hosts_file: "/h".into() }));
        for (bad, hint) in [
            (URL.to_owned(), "expected ssh: {keyFile: /PATH, knownHostsFile: /PATH}"),
            (format!("{URL}, ssh: {{keyFile: /k}}"), "knownHostsFile"),
            (format!("{URL}, ssh: {{keyFile: k, knownHostsFile: /h}}"), "is not a path of a file"),
            (format!("{URL}, {FILES}, credentialsFile: /c"), "expected no credentialsFile"),
            (
                format!("url: \"https://git.example.test/shop.git\", {FILES}"),
                "expected url: ssh://git@HOST/PATH, or no ssh",
            ),
        ] {
            let error = with(&bad).unwrap_err()[0].to_string();
            assert!(error.contains(hint) && error.contains("installation.yaml:5:"), "{hint} in {error}");
        }
    }

    #[test]
    fn a_host_with_pull_requests_has_its_api_over_https() {
        let api = |kind: &str| {
            let forge = format!("forge: {{kind: {kind}, tokenFile: /t}}");
            let host = with(&format!("{URL}, {FILES}, {forge}")).unwrap().repository.forge.unwrap();
            (host.api, host.owner, host.name)
        };
        let shop = |api: &str| (api.to_owned(), "acme".to_owned(), "shop".to_owned());
        assert_eq!(api("gitea"), shop("https://git.example.test/api/v1"));
        assert_eq!(api("github"), shop("https://git.example.test/api/v3"));
        let hub = host_of(&url("ssh://git@github.com/acme/shop.git").unwrap());
        assert_eq!(hub.as_str(), "https://github.com/");
    }

    #[test]
    fn attack_18_19_nothing_else_begins_with_ssh() {
        for bad in ["ssh://-oProxyCommand=id/x", "ssh://git:secret@host/x", "git+ssh://host/x", "git@host:x", "ssh:x"] {
            let error = check_url(bad).unwrap_err();
            assert!(error.contains("cannot be used as a URL") && !error.contains("secret"), "{error}");
        }
        check_url("ssh://git@host/x").unwrap();
        check_http_url("ssh://git@host/x").unwrap_err();
    }
}
