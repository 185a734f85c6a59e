//! Who asks the Git host that the installation names, if it names one.

use super::clock::Clock;
use super::controller::RunError;
use super::evidence::{ReviewFetcher, SignatureVerifier};
use super::feedback;
use super::pull_requests::{PullRequests, Setting};
use super::shell::Shell;
use super::source::{Branches, Pin, Source};
use crate::analysis::http::NoClient;
use crate::forge::host::{Host, HttpTransport, Pass, network};
use crate::gate::guard::Guard;
use crate::git::{RefName, Store};
use crate::manifest::installation::Installation;
use crate::manifest::proof::By;
use crate::manifest::raw::Feedback;
use crate::report::metrics::Metrics;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How the Git host is reached that the installation names, and what lets in there.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) installation: &'a Installation,
    pub(super) pass: Option<&'a Pass>,
    /// The network if none.
    pub(super) transport: Option<&'a HttpTransport>,
    pub(super) store: &'a Store,
}

/// What is known of the decisions branch before anybody asked.
pub(super) fn guard(installation: &Installation) -> Guard {
    if installation.repository.forge.is_some() { Guard::Unknown } else { Guard::Unasked }
}

/// What can prove approvals: the Git host's reviews, else signatures of those on the list.
pub(super) fn by(installation: &Installation) -> By {
    match (&installation.repository.forge, &installation.repository.signers_file) {
        (Some(_), _) => By::Reviews,
        (None, Some(_)) => By::Signatures,
        (None, None) => By::Nothing,
    }
}

/// Who tells which decisions are signed, where no host tells who approved.
pub(super) fn signature_verifier(way: Way<'_>, branches: &Branches) -> Option<SignatureVerifier> {
    let signed = by(way.installation) == By::Signatures;
    signed.then(|| SignatureVerifier { store: way.store.clone(), main: branches.main.clone() })
}

/// The Git host that the installation names, anew for each who asks it.
fn maker(way: &Way<'_>, clock: &Clock, metrics: &Metrics) -> Result<Option<impl Fn() -> Host + use<>>, RunError> {
    let Some((host, pass)) = way.installation.repository.forge.clone().zip(way.pass.cloned()) else { return Ok(None) };
    let (metrics, clock) = (metrics.clone(), clock.clone());
    let transport = match way.transport {
        Some(transport) => transport.clone(),
        None => network().map_err(NoClient::from)?,
    };
    Ok(Some(move || {
        let (metrics, clock) = (metrics.clone(), clock.clone());
        let count = Box::new(move |errand, fate| metrics.asked_host(errand, fate));
        let now = Box::new(move || clock.now());
        Host::over(transport.clone(), host.clone(), pass.clone(), count, now)
    }))
}

/// The same, for one.
fn host(way: &Way<'_>, clock: &Clock, metrics: &Metrics) -> Result<Option<Host>, RunError> {
    Ok(maker(way, clock, metrics)?.map(|make| make()))
}

/// Git, which has to be the repository that the installation names, if it names one by its number.
pub(super) fn source(way: Way<'_>, branches: Branches, shell: &Shell) -> Result<Source, RunError> {
    let host = host(&way, &shell.clock, &shell.metrics)?;
    let pin = host.zip(way.installation.repository.pinned);
    // Without this answer nothing is written, so no part of what the host allows is left to others.
    let pin = pin.map(|(host, number)| Pin::new(number, host.leaving(0)));
    let (caps, metrics) = (way.installation.caps.clone(), shell.metrics.clone());
    Ok(Source::new(way.store.clone(), branches, caps, metrics, shell.clock.clone()).pinned(pin))
}

/// Who tells how decisions came to their branch, if the installation names a host for it.
pub(super) fn review_fetcher(
    way: Way<'_>,
    branches: &Branches,
    clock: &Clock,
    metrics: &Metrics,
) -> Result<Option<ReviewFetcher>, RunError> {
    let make = maker(&way, clock, metrics)?;
    Ok(make.map(|make| ReviewFetcher::new(make, way.store.clone(), branches.clone())))
}

/// Begins to show our requests as pull requests, if the installation names a host for them.
pub(super) fn pull_requests(
    way: Way<'_>,
    shell: &Shell,
    told: &watch::Sender<()>,
    kept: &CancellationToken,
    guard: watch::Sender<Guard>,
    keeping: &mut JoinSet<()>,
) -> Result<Option<PullRequests>, RunError> {
    let Some(host) = host(&way, &shell.clock, &shell.metrics)? else { return Ok(None) };
    let setting = Setting {
        host,
        store: way.store.clone(),
        lead: shell.lead.clone(),
        instance: shell.instance.clone(),
        main: shell.main.clone(),
        clock: shell.clock.clone(),
        poll: way.installation.repository.poll,
        feedback: feedback(&way, shell)?,
        inbox: shell.evidence.inbox(),
        guard,
        told: told.clone(),
        woken: Arc::clone(&shell.woken),
    };
    let (pull_requests, work) = PullRequests::open(setting, kept.clone());
    keeping.spawn(work);
    Ok(Some(pull_requests))
}

/// What tells people of their own pull requests, if the installation wants that.
fn feedback(way: &Way<'_>, shell: &Shell) -> Result<Option<feedback::Setting>, RunError> {
    let Way { installation, pass: _, transport: _, store } = *way;
    let (Some(kind), Feedback::On) = (shell.host, installation.repository.feedback) else { return Ok(None) };
    let main = RefName::branch(&shell.main)?;
    let host = host(way, &shell.clock, &shell.metrics)?;
    Ok(host.map(|host| feedback::Setting::new(host, kind, installation, main, store, &shell.lead, &shell.clock)))
}
