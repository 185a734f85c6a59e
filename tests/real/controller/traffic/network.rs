//! A network namespace in which the addresses of pods are local, so that requests to fake pods are answered.

use std::process::{Command, Stdio};

/// Set in the process that is inside.
const INSIDE: &str = "TIDEGATE_TEST_NETWORK";

/// Whether this process is inside.
pub(super) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs that test of this program again, inside. What needs the registries is built before: nothing outside can be reached from
/// there.
///
/// # Panics
/// When it fails there, or when the machine lets nobody make a namespace.
pub(super) async fn enter(test: &str) {
    let test = test.to_owned();
    tokio::task::spawn_blocking(move || {
        for (script, group) in [("build", &["gateway"][..]), ("build", &[]), ("prometheus", &[])] {
            let script = crate::support::root::root().join("tests/testbed").join(script);
            let status = Command::new(&script).args(group).stdout(Stdio::null()).status().unwrap();
            assert!(status.success(), "{}: {status}; what it needs is said above", script.display());
        }
        // What the kernel gives away for outgoing connections below 32768 is left to the beds.
        let commands = "ip link set lo up && ip route add local 10.0.0.0/16 dev lo && exec \"$0\" \"$@\"";
        let mut inside = Command::new("unshare");
        inside.args(["--map-root-user", "--net", "sh", "-c", commands]).arg(std::env::current_exe().unwrap());
        inside.args(["--exact", test.as_str(), "--nocapture"]).env(INSIDE, "1");
        let status = inside.status().unwrap_or_else(|why| panic!("unshare (Debian package util-linux): {why}"));
        assert!(
            status.success(),
            "{test}: {status}; the reason is said above. It needs `unshare --net` (as root, or with user namespaces) and \
             `ip` (Debian package iproute2)"
        );
    })
    .await
    .unwrap();
}
