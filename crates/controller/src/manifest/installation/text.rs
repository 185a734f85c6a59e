//! Addresses, branches and paths, as an installation and the command line name them.

use super::ssh;
use crate::manifest::diagnostic::quoted;
use url::Url;

/// A URL that libgit2 cannot take for anything else (CVE-2017-1000117 and its kin).
pub(super) fn git_url(text: &str) -> Result<Url, String> {
    if text.starts_with("ssh://") {
        return ssh::url(text).map_err(|why| refused(text, &why));
    }
    let url = http_url(text)?;
    if url.path().starts_with("/-") || url.path().len() < 2 {
        return Err(refused(text, "a path that starts with a letter or a digit"));
    }
    Ok(url)
}

/// Why a text is no URL for us. What stands before an '@' may be a secret, so such a text is not shown.
fn refused(text: &str, why: &str) -> String {
    let shown = if text.contains('@') { "this".to_owned() } else { quoted(text) };
    format!("{shown} cannot be used as a URL: {why}")
}

/// The address of a server, without anything secret or ambiguous in it.
pub(super) fn http_url(text: &str) -> Result<Url, String> {
    let refuse = |why: &str| refused(text, why);
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(refuse("no blanks, no control characters"));
    }
    let url = Url::parse(text).map_err(|_| refuse("https://HOST/PATH or http://HOST/PATH, not HOST:PATH"))?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(refuse(
            "https:// or http://, for a repository ssh://git@HOST/PATH too; no other transport is supported",
        ));
    }
    if url.host_str().is_none_or(|host| host.is_empty() || host.starts_with('-') || host.contains('%')) {
        return Err(refuse("a host name that starts with a letter or a digit"));
    }
    if url.password().is_some() || !url.username().is_empty() {
        return Err(
            "this is not a plain URL: no user and no password; name a file in credentialsFile instead".to_owned()
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("no '?' and no '#'"));
    }
    Ok(url)
}

/// Whether the text is the address of a server.
///
/// # Errors
/// What is wrong with it.
pub fn check_http_url(text: &str) -> Result<(), String> {
    http_url(text).map(|_| ())
}

/// Whether the text is the URL of a repository.
///
/// # Errors
/// What is wrong with it.
pub fn check_url(text: &str) -> Result<(), String> {
    git_url(text).map(|_| ())
}

/// Whether the text is the name of a branch (`git check-ref-format`, without its rarer characters).
///
/// # Errors
/// What is wrong with it.
pub fn check_branch(text: &str) -> Result<(), String> {
    let part = |p: &str| !p.is_empty() && !p.starts_with(['.', '-']) && !p.ends_with('.') && !p.ends_with(".lock");
    let chars = text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'/' | b'-' | b'_' | b'.' | b'+'));
    if text.starts_with("tidegate/") {
        Err(format!(
            "{} is not a branch of people: those below tidegate/ are for the record and for decisions",
            quoted(text)
        ))
    } else if text.starts_with("refs/") || text == "HEAD" {
        Err(format!("{} is not the name of a branch: expected such as main, without refs/heads/", quoted(text)))
    } else if text.len() <= 200 && chars && !text.contains("..") && text.split('/').all(part) {
        Ok(())
    } else {
        let rule = "letters, digits and / - _ . +, no part that starts with . or - or ends with .lock";
        Err(format!("{} is not a branch: {rule}", quoted(text)))
    }
}

/// Whether the text is an absolute path of the controller's file system.
///
/// # Errors
/// What is wrong with it.
pub fn check_path(text: &str) -> Result<(), String> {
    let fine = text.starts_with('/') && !text.split('/').any(|p| p == "..") && !text.chars().any(char::is_control);
    if fine { Ok(()) } else { Err(format!("{} is not a path of a file: absolute, without '..'", quoted(text))) }
}
