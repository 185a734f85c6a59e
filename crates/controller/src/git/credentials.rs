//! Who we are to the server: read from a file at each request, so that a rotated token works at once.

use super::GitError;
use super::remote::Login;
use std::path::Path;
use url::Url;

/// Reads the credentials for `url` from `file`.
///
/// Lines with `://` are git-credentials: the first with the URL's scheme, host, port and, if it has one, a prefix of its
/// path counts. Any other line is `USER:PASSWORD` or a bare token, and counts for every URL.
///
/// # Errors
/// `Config` when the file cannot be read or has nothing for this URL.
pub(super) async fn read(file: &Path, url: &Url) -> Result<Login, GitError> {
    // It may lie on a volume that hangs: nobody else waits for it.
    let text = tokio::fs::read_to_string(file)
        .await
        .map_err(|e| GitError::Config(format!("cannot read the credentials file {}: {e}", file.display())))?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.find_map(|line| parse(line, url)).ok_or_else(|| {
        GitError::Config(format!(
            "the credentials file {} has no line for {}; expected USER:PASSWORD, a token, or https://USER:PASSWORD@HOST",
            file.display(),
            url.host_str().unwrap_or_default()
        ))
    })
}

fn parse(line: &str, url: &Url) -> Option<Login> {
    if line.contains("://") {
        let found = Url::parse(line).ok()?;
        let path = found.path().trim_end_matches('/');
        let within = url.path().strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        return (found.origin() == url.origin() && within).then(|| Login {
            user: decode(found.username()),
            password: decode(found.password().unwrap_or_default()).into(),
        });
    }
    // The user that GitHub wants for the tokens of its apps; GitLab, Gitea and Forgejo take any.
    let (user, password) = line.split_once(':').unwrap_or(("x-access-token", line));
    Some(Login { user: user.to_owned(), password: password.into() })
}

/// Undoes percent-encoding; what is no valid escape stays.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let (value, len) = escaped.filter(|_| byte == b'%').map_or((byte, 1), |value| (value, 3));
        out.push(value);
        at += len;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    fn now(file: &Path, url: &str) -> Result<Login, GitError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(read(file, &url.parse().unwrap()))
    }

    fn found(text: &str, url: &str) -> Option<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("credentials");
        std::fs::write(&file, text).unwrap();
        let found = now(&file, url).ok()?;
        Some((found.user, found.password.expose_secret().to_owned()))
    }

    #[test]
    fn forms_of_a_credentials_file() {
        let pair = |u: &str, p: &str| Some((u.to_owned(), p.to_owned()));
        assert_eq!(found("ana:s3:cret\n", "https://h/x"), pair("ana", "s3:cret"));
        assert_eq!(found("\n# rotated weekly\ntoken\n", "https://h/x"), pair("x-access-token", "token"));
        let lines =
            "https://a:1@other/\nhttp://a:2@h/\nhttps://a:3@h:8443/\nhttps://a:4@h/team\nhttps://b%40c:5%2f@h\n";
        assert_eq!(found(lines, "https://h/team/x"), pair("a", "4"));
        assert_eq!(found(lines, "https://h/teams"), pair("b@c", "5/"));
        assert_eq!(found(lines, "https://h:8443/x"), pair("a", "3"));
        assert_eq!(found("https://a:1@other/\n", "https://h/x"), None);
        assert_eq!(found("", "https://h/x"), None);
    }

    #[test]
    fn an_unreadable_file_is_named() {
        let error = now(Path::new("/nowhere/credentials"), "https://h/x").err().unwrap();
        assert!(error.to_string().contains("/nowhere/credentials"), "{error}");
    }
}
