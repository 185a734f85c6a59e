//! The layout `versioned`: what it does not go together with. Whether a version fits beside the promoted one shows only when
//! both are known.

use super::Case;
use crate::manifest::desired::{Layout, TargetKind};
use crate::manifest::diagnostic::{Code, Diagnostic};

pub(super) fn check(case: &Case<'_>) -> Option<Diagnostic> {
    if !is_versioned(case) {
        return None;
    }
    let limit = |what: &str, expected: &str| {
        let found = case.error("/spec/target/layout", Code::LayoutLimit, what, expected);
        Some(found.help("with the layout versioned a route leads to two Services, each with its own version's name"))
    };
    if case.spec.target.kind != TargetKind::Deployment {
        return limit("the layout versioned is there for the target Deployment alone", "layout: inPlace");
    }
    let by_gateway = case.spec.traffic.as_ref().is_some_and(|traffic| traffic.gateway_api.is_some());
    if by_gateway {
        return None;
    }
    limit(
        "the layout versioned is there for the router gatewayAPI alone",
        "traffic: {gatewayAPI: …}, or layout: inPlace",
    )
}

/// Whether each version's objects have names of their own.
pub(super) fn is_versioned(case: &Case<'_>) -> bool {
    case.spec.target.layout == Layout::Versioned
}
