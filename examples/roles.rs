//! Prints the roles and bindings that a controller needs, for `kubectl apply`: see `docs/operations.md`.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use clap::Parser;
use serde_json::json;
use tidegate::cluster::rbac;
use tidegate::manifest::ids::{InstanceName, Namespace};

#[derive(Parser)]
struct Options {
    /// The instance, as the Installation names it.
    #[arg(long)]
    instance: InstanceName,
    /// The controller's own namespace: of its service account `tidegate`, its Lease and the brake.
    #[arg(long)]
    home: Namespace,
    /// A namespace that rollouts live in; may stand several times.
    #[arg(long, required = true)]
    namespace: Vec<Namespace>,
}

fn main() {
    let Options { instance, home, namespace } = Options::parse();
    let subject = json!({"kind": "ServiceAccount", "name": "tidegate", "namespace": home});
    print!("{}", rbac::manifests(&instance, &home, &namespace, &subject));
}
