//! What OpenSSH is told, and what is made of its end. That it does so is seen with a real sshd, in `tests/real/ssh.rs`.

use super::*;
use crate::git::refs;
use std::path::PathBuf;

fn config(dir: &Path) -> RemoteConfig {
    let mut config = RemoteConfig::new("ssh://git@host.example.test:2222/acme/shop.git".parse().unwrap());
    config.ssh = Some(SshIdentity { key_file: dir.join("key"), known_hosts_file: dir.join("hosts") });
    config
}

fn ssh(url: &str, dir: &Path) -> Ssh {
    Ssh::new(url.parse().unwrap(), &config(dir)).unwrap()
}

fn arguments(ssh: &Ssh, version: Version) -> Vec<String> {
    let command = ssh.command(Service::UploadPack, version);
    command.as_std().get_args().map(|argument| argument.to_str().unwrap().to_owned()).collect()
}

#[test]
fn attack_18_what_the_program_is_told_is_ours_alone() {
    let ssh = ssh("ssh://host.example.test:2222/acme/shop.git", Path::new("/etc/tidegate/ssh"));
    insta::assert_snapshot!(arguments(&ssh, Version::V0).join("\n"));
    let command = ssh.command(Service::UploadPack, Version::V2);
    let names = command.as_std().get_envs().map(|(name, _)| name.to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(names, ["GIT_PROTOCOL", "PATH"], "of ours it has no environment");
    let told = arguments(&ssh, Version::V2);
    assert!(told.ends_with(&[
        "--".to_owned(),
        "host.example.test".to_owned(),
        "git-upload-pack '/acme/shop.git'".to_owned()
    ]));
}

#[test]
fn attack_18_a_path_that_would_be_read_as_something_else_is_refused() {
    for bad in ["/a\"b", "/a%h", "/${HOME}", "/a\\b", "/a\nb"] {
        let mut config = config(Path::new("/"));
        config.ssh = Some(SshIdentity { key_file: PathBuf::from("/key"), known_hosts_file: PathBuf::from(bad) });
        let error = Ssh::new("ssh://host/x".parse().unwrap(), &config).unwrap_err();
        assert!(matches!(&error, GitError::Config(why) if why.contains("a path for OpenSSH")), "{error}");
    }
    let error = Ssh::new("ssh://host/x".parse().unwrap(), &RemoteConfig::new("/x".parse().unwrap())).unwrap_err();
    assert!(error.to_string().contains("ssh://git@host/x needs a private key and a list of known hosts"), "{error}");
}

#[tokio::test]
async fn without_the_program_or_a_file_it_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let error = |program| {
        let ssh = Arc::new(Ssh { program, ..ssh("ssh://host/x", dir.path()) });
        ssh.connect(Service::UploadPack, Version::V0, ssh.budget(1)).err().unwrap().to_string()
    };
    assert!(error("ssh").contains("cannot open the private key "), "{}", error("ssh"));
    std::fs::write(dir.path().join("key"), "").unwrap();
    assert!(error("ssh").contains("cannot open the list of known hosts "), "{}", error("ssh"));
    std::fs::write(dir.path().join("hosts"), "").unwrap();
    let absent = error("ssh-that-nobody-has");
    assert!(absent.contains("ssh-that-nobody-has cannot be started") && absent.contains("openssh-client"), "{absent}");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a file that nobody can open as long as nobody writes to it")]
async fn a_file_on_a_volume_that_hangs_keeps_no_other_task_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    assert!(std::process::Command::new("mkfifo").arg(&key).status().unwrap().success());
    let ssh = Arc::new(ssh("ssh://host/x", dir.path()));
    let limits = config(dir.path()).limits;
    let looking = tokio::spawn(async move { refs::over_ssh(&ssh, &[], &limits).await });
    // It begins to open the file, and this thread, the only one for tasks, goes on; the file can be opened now.
    tokio::task::yield_now().await;
    let _writer = std::fs::OpenOptions::new().write(true).open(&key).unwrap();
    let error = looking.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("cannot open the list of known hosts "), "{error}");
}

#[test]
fn why_it_ended_is_sorted_by_its_code_and_its_words() {
    let ssh = ssh("ssh://host:2222/acme/shop.git", Path::new("/etc/ssh"));
    let sorted = [
        (Some(255), "ssh: connect to host host port 2222: Connection refused"),
        (Some(255), "ssh: Could not resolve hostname host: Name or service not known"),
        (Some(255), "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed."),
        (
            Some(255),
            "No ED25519 host key is known for host and you have requested strict checking.\nHost key verification failed.",
        ),
        (Some(255), "git@host: Permission denied (publickey)."),
        (Some(255), "Load key \"/etc/ssh/key\": error in libcrypto\r\ngit@host: Permission denied (publickey)."),
        (Some(255), "Connection to host closed by remote host."),
        (Some(255), "No user exists for uid 65532"),
        (Some(127), "sh: 1: git-upload-pack: not found"),
        (Some(128), "fatal: '/acme/shop.git' does not appear to be a git repository"),
        (Some(1), "ERROR: Repository not found."),
        (Some(1), "ERROR: The key you are authenticating with has been marked as read only."),
        (Some(1), "This account is currently not available."),
        (Some(128), "fatal: detected dubious ownership in repository at '/acme/shop.git'"),
        (None, ""),
    ];
    let told =
        sorted.map(|(code, remarks)| ssh.sort("git-upload-pack at ssh://git@host:2222/acme/shop.git", code, remarks));
    let kind = |error: &GitError| format!("{error:?}").split([' ', '(']).next().unwrap().to_owned();
    insta::assert_snapshot!(told.map(|error| format!("{}: {error}", kind(&error))).join("\n"));
}
