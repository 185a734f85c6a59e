//! The phases of a rollout: whom each lets in, and what stands before it.

use crate::convergence::dice::Dice;

#[derive(Debug, Clone)]
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    pub(crate) expose: Expose,
    pub(crate) soak: u64,
    pub(crate) approval: bool,
    pub(crate) window: bool,
    /// Whether a webhook has a say.
    pub(crate) webhook: bool,
    /// Whether a Job tries out the candidate first.
    pub(crate) job: bool,
}

/// Whom a phase lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expose {
    /// So many of a hundred requests.
    Weight(u64),
    /// Nobody: the candidate is there at full size.
    Preview,
    /// Testers with a header.
    Header,
    /// Testers with a cookie.
    Cookie,
    /// Testers with either.
    Either,
    /// Nobody, but some requests are copied.
    Copies,
}

impl Expose {
    /// In percent.
    pub(crate) fn weight(self) -> u64 {
        match self {
            Self::Weight(weight) => weight,
            Self::Preview | Self::Header | Self::Cookie | Self::Either | Self::Copies => 0,
        }
    }

    /// Whether somebody is let in who is told by a request.
    pub(crate) fn has_testers(self) -> bool {
        matches!(self, Self::Header | Self::Cookie | Self::Either)
    }

    /// What a phase is called that lets in nobody by weight.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Weight(_) => "first",
            Self::Preview => "preview",
            Self::Header | Self::Cookie | Self::Either => "testers",
            Self::Copies => "copies",
        }
    }

    fn text(self) -> String {
        let (header, cookie) = ("headers: [{x-canary: always}]", "cookies: [{canary: always}]");
        match self {
            Self::Weight(weight) => format!("weight: {weight}"),
            Self::Preview => "preview: fullSize".to_owned(),
            Self::Header => header.to_owned(),
            Self::Cookie => cookie.to_owned(),
            Self::Either => format!("{header}, {cookie}"),
            Self::Copies => "mirror: 20".to_owned(),
        }
    }
}

impl Phase {
    pub(crate) fn new(name: &'static str, expose: Expose, dice: &mut Dice) -> Self {
        let (approval, window, webhook) = (dice.chance(20), dice.chance(15), dice.chance(15));
        Self { name, expose, soak: dice.pick(&[22, 30, 45]), approval, window, webhook, job: false }
    }

    pub(crate) fn text(&self, rollout: &str) -> String {
        let Self { name, expose, soak, approval, window, webhook, job } = self;
        let mut before = Vec::new();
        before.extend(approval.then(|| "approval: pullRequest".to_owned()));
        before.extend(window.then(|| "window: half".to_owned()));
        before.extend(webhook.then(|| "webhook: {provider: tester}".to_owned()));
        before.extend(job.then(|| format!("job: {rollout}-job.yaml")));
        let (before, expose) = (before.join(", "), expose.text());
        format!("  - {{name: {name}, before: {{{before}}}, expose: {{{expose}}}, soak: {soak}s, checks: [errors]}}\n")
    }
}
