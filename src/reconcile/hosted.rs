//! Who asks the Git host that the installation names, if it names one.

use super::clock::Clock;
use super::controller::RunError;
use super::desk::{Desk, Setting};
use super::evidence::Witness;
use super::feedback;
use super::shell::Shell;
use super::source::{Branches, Pin, Source};
use crate::analysis::http::NoClient;
use crate::forge::host::Host;
use crate::gate::guard::Guard;
use crate::git::{RefName, Store};
use crate::manifest::installation::Installation;
use crate::manifest::raw::Feedback;
use crate::report::metrics::Metrics;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What is known of the decisions branch before anybody asked.
pub(super) fn guard(installation: &Installation) -> Guard {
    if installation.repository.forge.is_some() { Guard::Unknown } else { Guard::Unasked }
}

/// The Git host that the installation names, for one who asks it.
fn host(installation: &Installation, clock: &Clock, metrics: &Metrics) -> Result<Option<Host>, RunError> {
    let Some(host) = &installation.repository.forge else { return Ok(None) };
    let (metrics, clock) = (metrics.clone(), clock.clone());
    let count = Box::new(move |errand, fate| metrics.asked_host(errand, fate));
    Ok(Some(Host::new(host.clone(), count, Box::new(move || clock.now())).map_err(NoClient::from)?))
}

/// Git, which has to be the repository that the installation names, if it names one by its number.
pub(super) fn source(
    installation: &Installation,
    store: Store,
    branches: Branches,
    shell: &Shell,
) -> Result<Source, RunError> {
    let host = host(installation, &shell.clock, &shell.metrics)?;
    let pin = host.zip(installation.repository.pinned).map(|(host, number)| Pin::new(number, host));
    let (caps, metrics) = (installation.caps.clone(), shell.metrics.clone());
    Ok(Source::new(store, branches, caps, metrics, shell.clock.clone()).pinned(pin))
}

/// Who tells how decisions came to their branch, if the installation names a host for it.
pub(super) fn witness(
    installation: &Installation,
    branches: &Branches,
    store: &Store,
    clock: &Clock,
    metrics: &Metrics,
) -> Result<Option<Witness>, RunError> {
    let host = host(installation, clock, metrics)?;
    Ok(host.map(|host| Witness { host: host.into(), store: store.clone(), main: branches.main.clone() }))
}

/// Begins to show our requests as pull requests, if the installation names a host for them.
pub(super) fn desk(
    installation: &Installation,
    shell: &Shell,
    store: &Store,
    kept: &CancellationToken,
    guard: watch::Sender<Guard>,
    keeping: &mut JoinSet<()>,
) -> Result<Option<Desk>, RunError> {
    let Some(host) = host(installation, &shell.clock, &shell.metrics)? else { return Ok(None) };
    let setting = Setting {
        host,
        store: store.clone(),
        lead: shell.lead.clone(),
        instance: shell.instance.clone(),
        main: shell.main.clone(),
        poll: installation.repository.poll,
        feedback: feedback(installation, shell, store)?,
        guard,
        woken: Arc::clone(&shell.woken),
    };
    let (desk, work) = Desk::open(setting, kept.clone());
    keeping.spawn(work);
    Ok(Some(desk))
}

/// What tells people of their own pull requests, if the installation wants that.
fn feedback(installation: &Installation, shell: &Shell, store: &Store) -> Result<Option<feedback::Setting>, RunError> {
    let (Some(kind), Feedback::On) = (shell.host, installation.repository.feedback) else { return Ok(None) };
    let main = RefName::branch(&shell.main)?;
    let host = host(installation, &shell.clock, &shell.metrics)?;
    Ok(host.map(|host| feedback::Setting::new(host, kind, installation, main, store, &shell.lead, &shell.clock)))
}
