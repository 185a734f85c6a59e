//! Spans of time in which something was not observed: they count for nothing, neither for soak nor for deadlines.

use crate::manifest::ids::Namespace;
use crate::manifest::object::Kind;
use crate::record::state::Time;
use crate::rules::{Rule, holds};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// How many are kept on the Lease; the oldest go first.
pub const KEPT: usize = 32;
/// In so many namespaces a kind is not unread by what one team does.
const MANY: usize = KEPT / 2 + 1;

/// A span of time in which something was not observed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unobserved {
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// What could not be read; none if nobody looked at anything.
    pub of: Option<UnobservedScope>,
}

/// A namespace, or one kind of it or of all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnobservedScope {
    /// Which namespace; none for all of them, of one kind.
    pub namespace: Option<Namespace>,
    /// Which kind; none for all of them.
    pub kind: Option<Kind>,
}

/// `2026-03-01T12:00:00Z/2026-03-01T12:01:00Z`, and `@shop` or `@shop/Ingress` if it is about one namespace, or about one kind
/// there; `@*/Ingress` if it is about one kind everywhere.
impl fmt::Display for Unobserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FORMAT: &str = "%Y-%m-%dT%H:%M:%SZ";
        write!(f, "{}/{}", self.from.format(FORMAT), self.to.format(FORMAT))?;
        let Some(UnobservedScope { namespace, kind }) = &self.of else { return Ok(()) };
        write!(f, "@{}", namespace.as_ref().map_or("*", Namespace::as_str))?;
        kind.map_or(Ok(()), |kind| write!(f, "/{}", kind.text()))
    }
}

/// A text that is no gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected <time>/<time>, <time>/<time>@<namespace>, <time>/<time>@<namespace>/<kind> or <time>/<time>@*/<kind>"
)]
pub struct InvalidUnobserved;

impl FromStr for Unobserved {
    type Err = InvalidUnobserved;

    fn from_str(text: &str) -> Result<Self, InvalidUnobserved> {
        let (span, of) = match text.split_once('@') {
            Some((span, scope)) => (span, UnobservedScope::parse(scope).ok_or(InvalidUnobserved)?),
            None => (text, None),
        };
        let (from, to) = span.split_once('/').ok_or(InvalidUnobserved)?;
        let time = |text: &str| text.parse::<Time>().map_err(|_| InvalidUnobserved);
        let gap = Self { from: time(from)?, to: time(to)?, of };
        if gap.from < gap.to { Ok(gap) } else { Err(InvalidUnobserved) }
    }
}

impl UnobservedScope {
    /// `Some(None)` if it is about everything.
    fn parse(text: &str) -> Option<Option<Self>> {
        let (namespace, kind) = text.split_once('/').map_or((text, None), |(namespace, kind)| (namespace, Some(kind)));
        // A kind that a later version knows counts as all of them.
        let kind = kind.and_then(|kind| kind.parse().ok());
        if namespace == "*" {
            return Some(kind.is_some().then_some(Self { namespace: None, kind }));
        }
        Some(Some(Self { namespace: Some(namespace.parse().ok()?), kind }))
    }
}

/// Reads a list of gaps; what is none is left out.
#[must_use]
pub fn parse(text: &str) -> Vec<Unobserved> {
    text.split(' ').filter_map(|gap| gap.parse().ok()).collect()
}

/// The text of a list, as far as [`kept`].
#[must_use]
pub fn print(gaps: &[Unobserved]) -> String {
    kept(gaps.to_vec()).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// At most [`KEPT`] of them. Where there are more, those of a kind that overlap in more than half as many namespaces, as where the right to read it is
/// missing, count for all who need it; those of several whole namespaces that overlap, as where the API server was away, for everybody; then those
/// of kinds for their namespaces; then all of the namespace that has most are one; then all are everybody's, and the newest stay: time
/// that was observed may count as if it was not, for whom that is about, but as little as can be the other way round.
#[must_use]
pub fn kept(gaps: Vec<Unobserved>) -> Vec<Unobserved> {
    let widened = |gap: Unobserved| {
        // One of a kind everywhere stays what it is.
        let of =
            gap.of.map(|scope| UnobservedScope { kind: scope.kind.filter(|_| scope.namespace.is_none()), ..scope });
        Unobserved { of, ..gap }
    };
    let mut gaps = merged(gaps);
    if gaps.len() > KEPT {
        gaps = spread(gaps);
    }
    if gaps.len() > KEPT {
        gaps = merged(gaps.into_iter().map(widened).collect());
    }
    while gaps.len() > KEPT
        && let Some(most) = most(&gaps)
    {
        let (its, others): (Vec<_>, Vec<_>) = gaps.into_iter().partition(|gap| gap.of.as_ref() == Some(&most));
        let whole = its.into_iter().reduce(|all, gap| Unobserved { to: all.to.max(gap.to), ..all });
        gaps = merged(others.into_iter().chain(whole).collect());
    }
    if gaps.len() > KEPT {
        gaps = merged(gaps.into_iter().map(|gap| Unobserved { of: None, ..gap }).collect());
    }
    let old = gaps.len().saturating_sub(KEPT);
    gaps.drain(..old);
    gaps
}

/// Those of one kind in many namespaces at once are one of that kind in all of them; those of several whole namespaces are one about
/// everything. What overlaps with them alone in time stays as it is: nobody makes others wait by what is closed to themselves.
fn spread(gaps: Vec<Unobserved>) -> Vec<Unobserved> {
    let (mut out, mut by_kind) = (Vec::new(), BTreeMap::<Option<Kind>, Vec<Vec<Unobserved>>>::new());
    for gap in gaps {
        let Some(kind) = gap.of.as_ref().filter(|scope| scope.namespace.is_some()).map(|scope| scope.kind) else {
            out.push(gap);
            continue;
        };
        let at_once = by_kind.entry(kind).or_default();
        match at_once.last_mut().filter(|last| last.iter().any(|known| gap.from <= known.to)) {
            Some(last) => last.push(gap),
            None => at_once.push(vec![gap]),
        }
    }
    for (kind, at_once) in by_kind {
        let least = if kind.is_some() { MANY } else { 2 };
        for some in at_once {
            let namespaces: BTreeSet<_> = some.iter().filter_map(|gap| gap.of.as_ref()?.namespace.as_ref()).collect();
            if namespaces.len() < least {
                out.extend(some);
                continue;
            }
            let of = kind.map(|kind| UnobservedScope { namespace: None, kind: Some(kind) });
            let whole = some.into_iter().reduce(|all, gap| Unobserved { to: all.to.max(gap.to), ..all });
            out.extend(whole.map(|whole| Unobserved { of, ..whole }));
        }
    }
    merged(out)
}

/// What most of them are about, if that is more than one.
fn most(gaps: &[Unobserved]) -> Option<UnobservedScope> {
    let count = |scope: &UnobservedScope| gaps.iter().filter(|gap| gap.of.as_ref() == Some(scope)).count();
    let scopes = gaps.iter().filter_map(|gap| gap.of.as_ref());
    scopes.map(|scope| (count(scope), scope)).max().filter(|(count, _)| *count > 1).map(|(_, scope)| scope.clone())
}

/// The same, as far as they are over: a clock that ran ahead has left others, which would count until the calendar has passed them.
#[must_use]
pub fn cut(gaps: Vec<Unobserved>, now: Time) -> Vec<Unobserved> {
    if !holds(Rule::SetBack) {
        return gaps;
    }
    let cut = gaps.into_iter().map(|gap| Unobserved { to: gap.to.min(now), ..gap });
    cut.filter(|gap| gap.from < gap.to).collect()
}

/// Joins what overlaps; oldest first.
#[must_use]
pub fn merged(mut gaps: Vec<Unobserved>) -> Vec<Unobserved> {
    gaps.sort();
    let mut out: Vec<Unobserved> = Vec::with_capacity(gaps.len());
    for gap in gaps {
        match out.iter_mut().find(|known| known.of == gap.of && gap.from <= known.to) {
            Some(known) => known.to = known.to.max(gap.to),
            None => out.push(gap),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_read_as_they_print_and_nonsense_is_left_out() {
        let text = "2026-03-01T12:00:00Z/2026-03-01T12:01:00Z 2026-03-01T13:00:00Z/2026-03-01T13:00:09Z@shop \
                    2026-03-01T13:00:00Z/2026-03-01T13:00:09Z@shop/Ingress";
        assert_eq!(print(&parse(text)), text);
        assert_eq!(parse("x 2026-03-01T12:00:00Z/2026-03-01T11:00:00Z 2026-03-01T12:00:00Z @a /"), []);
        let everywhere = "2026-03-01T13:00:00Z/2026-03-01T13:00:09Z@*/Ingress";
        assert_eq!(print(&parse(everywhere)), everywhere);
        let later = parse("2026-03-01T13:00:00Z/2026-03-01T13:00:09Z@*/Later");
        assert_eq!(print(&later), "2026-03-01T13:00:00Z/2026-03-01T13:00:09Z");
        let later = parse("2026-03-01T13:00:00Z/2026-03-01T13:00:09Z@shop/Later");
        assert_eq!(print(&later), "2026-03-01T13:00:00Z/2026-03-01T13:00:09Z@shop");
    }

    #[test]
    fn where_there_are_too_many_more_counts_as_unobserved_and_nothing_less() {
        let spans = |from: i64, of: &str| format!("2026-03-01T12:{from:02}:00Z/2026-03-01T12:{from:02}:30Z{of}");
        let outage = spans(0, "");
        let kinds = (1..=40).map(|minute| spans(minute, if minute % 2 == 0 { "@shop/Pod" } else { "@shop/Job" }));
        let all = parse(&[outage.clone()].into_iter().chain(kinds).collect::<Vec<_>>().join(" "));
        // Whose gaps are many has one long one, and nobody else has it.
        let hull = "2026-03-01T12:01:00Z/2026-03-01T12:40:30Z@shop";
        let other = spans(50, "@blog/Pod");
        let more: Vec<Unobserved> = all.iter().cloned().chain(parse(&other)).collect();
        assert_eq!(print(&more), [&outage, hull, "2026-03-01T12:50:00Z/2026-03-01T12:50:30Z@blog"].join(" "));
        // An API server that was away was so for all, however many namespaces there are.
        let away = |from: i64| (0..40).map(move |n| spans(from, &format!("@team-{n}"))).collect::<Vec<_>>().join(" ");
        assert_eq!(print(&parse(&[away(3), away(50)].join(" "))), [spans(3, ""), spans(50, "")].join(" "));
        let apart = (0..40).map(|n| spans(n, &format!("@team-{n}"))).collect::<Vec<_>>().join(" ");
        assert_eq!(kept(parse(&apart)).len(), KEPT, "the newest, for everybody");
        let everybody = (0..40).map(|minute| spans(minute, "")).collect::<Vec<_>>().join(" ");
        assert_eq!(kept(parse(&everybody)).len(), KEPT, "the newest, where nothing else helps");
        let one = |minute: i64, kind: Kind| {
            let gap = parse(&spans(minute, "@shop/Pod"))[0].clone();
            Unobserved { of: gap.of.map(|scope| UnobservedScope { kind: Some(kind), ..scope }), ..gap }
        };
        let many: Vec<Unobserved> = Kind::ALL.iter().flat_map(|&kind| [one(5, kind), one(9, kind)]).collect();
        let many = kept(many.into_iter().chain(parse(&outage)).collect());
        assert_eq!(print(&many), [outage, spans(5, "@shop"), spans(9, "@shop")].join(" "));
        // What is closed to two namespaces of a team stays theirs, however often it is.
        let both = (0..40).flat_map(|n| [spans(n, "@team-a/Pod"), spans(n, "@team-b/Pod")]);
        let both = kept(parse(&both.collect::<Vec<_>>().join(" ")));
        let of = both.iter().map(|gap| gap.to_string().split_once('@').map(|(_, of)| of.to_owned()));
        assert_eq!(of.collect::<Vec<_>>(), [Some("team-a".to_owned()), Some("team-b".to_owned())]);
    }

    #[test]
    fn what_overlaps_is_joined_for_each_namespace_and_kind() {
        let gaps = parse(
            "2026-03-01T12:00:30Z/2026-03-01T12:02:00Z 2026-03-01T12:00:00Z/2026-03-01T12:01:00Z \
             2026-03-01T12:00:40Z/2026-03-01T12:03:00Z@shop 2026-03-01T12:00:41Z/2026-03-01T12:02:00Z@shop/Pod",
        );
        let joined = "2026-03-01T12:00:00Z/2026-03-01T12:02:00Z 2026-03-01T12:00:40Z/2026-03-01T12:03:00Z@shop \
                      2026-03-01T12:00:41Z/2026-03-01T12:02:00Z@shop/Pod";
        assert_eq!(print(&merged(gaps)), joined);
    }
}
