//! The address of a repository behind SSH: `ssh://[USER@]HOST[:PORT]/PATH`, and nothing that OpenSSH or the shell of the host
//! could take for anything else (CVE-2017-1000117, RUSTSEC-2024-0335).

use std::fmt;
use std::str::FromStr;
use url::{Host, Url};

/// An address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshUrl {
    user: String,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// With its first slash.
    path: String,
}

/// Why a text is no such address. The text itself is not repeated, as it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSshUrl(&'static str);

/// Whom Git hosts let in.
const USER: &str = "git";
/// Where sshd listens.
const PORT: u16 = 22;

impl SshUrl {
    /// Who we are there.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// A name or an address, an IPv6 address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path as Git asks for it: `~ana/x` is below a home, all else begins with a slash.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.strip_prefix('/').filter(|path| path.starts_with('~')).unwrap_or(&self.path)
    }

    /// How `known_hosts` names the host.
    #[must_use]
    pub fn known_as(&self) -> String {
        let Self { user: _, host, port, path: _ } = self;
        if *port == PORT { host.clone() } else { format!("[{host}]:{port}") }
    }

    /// The same host over https, where the APIs of Git hosts are.
    #[must_use]
    pub fn over_https(&self) -> Url {
        let text = format!("https://{}", bracketed(&self.host));
        Url::parse(&text).expect("a URL, because the host was parsed as one of https")
    }
}

impl FromStr for SshUrl {
    type Err = InvalidSshUrl;

    fn from_str(text: &str) -> Result<Self, InvalidSshUrl> {
        let refuse = |why| Err(InvalidSshUrl(why));
        let Some((authority, path)) = text.strip_prefix("ssh://").and_then(|rest| rest.split_once('/')) else {
            return refuse("a host with a path, as in ssh://git@HOST/PATH");
        };
        let (user, server) = authority.split_once('@').unwrap_or((USER, authority));
        if !is_word(user) {
            return refuse("a user of letters, digits and . _ -, without a password");
        }
        let (host, port) = match server.rsplit_once(':') {
            // The colons of an IPv6 address stand in brackets.
            Some((host, port)) if !port.ends_with(']') => {
                let digits = Some(port).filter(|port| port.bytes().all(|c| c.is_ascii_digit()));
                (host, digits.and_then(|digits| digits.parse().ok()).filter(|port| *port > 0))
            }
            Some(_) | None => (server, Some(PORT)),
        };
        let Some(port) = port else { return refuse("a port from 1 to 65535") };
        let host = match Host::parse(host) {
            Ok(Host::Ipv6(address)) => address.to_string(),
            Ok(Host::Domain(_) | Host::Ipv4(_)) if is_word(host) => host.to_owned(),
            Ok(_) | Err(_) => return refuse("a host: a name of letters, digits, '.' and '-', or an address"),
        };
        let plain = path.bytes().all(|c| c.is_ascii_alphanumeric() || b"/._~+@-".contains(&c));
        let part = |part: &str| !part.starts_with('-') && !matches!(part, "." | "..");
        if path.is_empty() || path.starts_with('/') || !plain || !path.split('/').all(part) {
            return refuse(
                "a path of letters, digits and / . _ ~ + @ -, no part of which begins with -, or is . or ..",
            );
        }
        Ok(Self { user: user.to_owned(), host, port, path: format!("/{path}") })
    }
}

/// Whether a text is letters, digits and `.`, `_`, `-`, and begins with a letter or a digit.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c))
}

/// A host as URLs have it.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

impl fmt::Display for SshUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, host, port, path } = self;
        write!(f, "ssh://{user}@{}", bracketed(host))?;
        if *port != PORT {
            write!(f, ":{port}")?;
        }
        f.write_str(path)
    }
}

#[cfg(test)]
mod tests {
    use super::SshUrl;

    fn url(text: &str) -> SshUrl {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn addresses_have_a_user_a_host_a_port_and_a_path() {
        for (text, shown, known) in [
            ("ssh://git@host/a/b.git", "ssh://git@host/a/b.git", "host"),
            ("ssh://host.example.test/~ana/b", "ssh://git@host.example.test/~ana/b", "host.example.test"),
            ("ssh://me@127.0.0.1:2222/srv/x.git", "ssh://me@127.0.0.1:2222/srv/x.git", "[127.0.0.1]:2222"),
            ("ssh://git@[::1]:22/x", "ssh://git@[::1]/x", "::1"),
            ("ssh://git@[::1]:23/x", "ssh://git@[::1]:23/x", "[::1]:23"),
        ] {
            assert_eq!((url(text).to_string().as_str(), url(text).known_as().as_str()), (shown, known));
            assert_eq!(url(shown), url(text));
        }
        assert_eq!((url("ssh://h/~ana/b").path(), url("ssh://h/a/b").path()), ("~ana/b", "/a/b"));
        assert_eq!(url("ssh://git@[::1]:23/x").over_https().as_str(), "https://[::1]/");
        assert_eq!(url("ssh://git@host:2222/a/b").over_https().as_str(), "https://host/");
    }

    #[test]
    fn attack_18_addresses_hold_nothing_that_starts_a_program() {
        for bad in [
            "ssh://-oProxyCommand=touch%20x/repo",
            "ssh://-oProxyCommand=x@host/repo",
            "ssh://-x@host/repo",
            "ssh://git@-oProxyCommand=x/repo",
            "ssh://git@[-oProxyCommand=x]/repo",
            "ssh://host/-x",
            "ssh://host/a/-x",
            "ssh://host/--upload-pack=x",
            "ssh://host//-x",
            "ssh://host/a/../b",
            "ssh://host/./b",
            "ssh://host",
            "ssh://host/",
            "ssh:///x",
            "ssh://git:canary@host/x",
            "ssh://git@canary@host/x",
            "ssh://host:0/x",
            "ssh://host:65536/x",
            "ssh://host:port/x",
            "ssh://host:-1/x",
            "ssh://host:+22/x",
            "ssh://host:/x",
            "ssh://ho st/x",
            "ssh://10.0.0.256/x",
            "ssh://host%0a/x",
            "ssh://host/a'b",
            "ssh://host/a;b",
            "ssh://host/$(id)",
            "ssh://host/`id`",
            "ssh://host/a%20b",
            "ssh://host/a\nb",
            "ssh://host/a\\b",
            "ssh://host/x?y",
            "ssh://host/x#y",
            "ssh://[::1/x",
            "ssh://[-x]/x",
            "SSH://host/x",
            "git@host:x",
        ] {
            let error = bad.parse::<SshUrl>().expect_err(bad).to_string();
            assert!(!error.contains("canary"), "{error}");
        }
    }
}
