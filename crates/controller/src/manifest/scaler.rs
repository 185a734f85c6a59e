//! What gives a workload its number of pods by itself: the one place that knows where a scaler says what it scales, and
//! between which bounds.

use super::canonical::canonical;
use super::ids::ObjectName;
use super::object::{Kind, Object, section};
use serde_json::Value;

/// How a kind of scaler says what it wants.
struct Words {
    /// Where the fewest pods stand, as a JSON pointer.
    least: &'static str,
    /// What that is where it is absent.
    unsaid: i64,
    /// Where the most pods stand.
    most: &'static str,
    /// What that is where it is absent, if it may be.
    unbound: Option<i64>,
    /// The kind that is scaled where it is not said.
    kind: Option<&'static str>,
}

/// The kinds that scale.
pub const KINDS: [Kind; 2] = [Kind::HorizontalPodAutoscaler, Kind::ScaledObject];

/// By this annotation KEDA holds what it scales at a number of pods.
const PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

fn words(kind: Kind) -> Option<Words> {
    if kind == Kind::HorizontalPodAutoscaler {
        let (least, most) = ("/spec/minReplicas", "/spec/maxReplicas");
        return Some(Words { least, unsaid: 1, most, unbound: None, kind: None });
    }
    let (least, most) = ("/spec/minReplicaCount", "/spec/maxReplicaCount");
    let keda = Words { least, unsaid: 0, most, unbound: Some(100), kind: Some("Deployment") };
    (kind == Kind::ScaledObject).then_some(keda)
}

/// Where a kind of scaler has its bounds, least and most.
#[must_use]
pub fn bounds(kind: Kind) -> Option<[&'static str; 2]> {
    words(kind).map(|words| [words.least, words.most])
}

/// The most pods that a scaler allows.
#[must_use]
pub fn most(scaler: &Object) -> Option<i64> {
    let words = words(scaler.reference().kind)?;
    scaler.int(words.most).or(words.unbound)
}

/// Whether a scaler works as it did, and leaves as much room for pods or more: neither of its bounds has fallen, and nothing else of it but its
/// labels differs.
#[must_use]
pub fn is_roomier(old: &Object, new: &Object) -> bool {
    let bound = |object: &Object| most(object).unwrap_or(i64::MAX);
    (least(old), bound(old)) == (least(old).min(least(new)), bound(old).min(bound(new)))
        && unbounded(old) == unbounded(new)
}

/// A scaler without its bounds and labels.
fn unbounded(scaler: &Object) -> Value {
    let mut value = canonical(scaler);
    for pointer in bounds(scaler.reference().kind).into_iter().flatten().chain(["/metadata/labels"]) {
        let Some((place, field)) = pointer.rsplit_once('/') else { continue };
        if let Some(fields) = value.pointer_mut(place).and_then(Value::as_object_mut) {
            fields.shift_remove(field);
        }
    }
    value
}

/// The annotation that keeps a scaler from scaling, if it has one.
#[must_use]
pub fn paused(scaler: &Object) -> Option<&'static str> {
    let paused = [PAUSED, "autoscaling.keda.sh/paused"];
    paused.into_iter().find(|key| scaler.reference().kind == Kind::ScaledObject && scaler.annotation(key).is_some())
}

/// The same scaler where what it scales is to have no pods: an autoscaler does nothing then, KEDA would make some.
#[must_use]
pub fn at_zero(mut scaler: Object) -> Object {
    if scaler.reference().kind == Kind::ScaledObject {
        scaler.annotate(PAUSED, "0");
    }
    scaler
}

/// What an object scales, if it does and a rollout can be about that.
#[must_use]
pub fn scaled(object: &Object) -> Option<(Kind, ObjectName)> {
    let words = words(object.reference().kind)?;
    let named = object.text("/spec/scaleTargetRef/kind").or(words.kind)?;
    let kind = [Kind::Deployment, Kind::StatefulSet].into_iter().find(|kind| kind.as_str() == named)?;
    Some((kind, object.text("/spec/scaleTargetRef/name")?.parse().ok()?))
}

/// The one of these objects that scales the workload of that kind and name.
pub fn of<'a>(mut objects: impl Iterator<Item = &'a Object>, kind: Kind, name: &ObjectName) -> Option<&'a Object> {
    objects.find(|object| scaled(object).is_some_and(|(of, named)| (of, &named) == (kind, name)))
}

/// The fewest pods that a scaler leaves; none for what is no scaler.
#[must_use]
pub fn least(scaler: &Object) -> Option<u32> {
    let words = words(scaler.reference().kind)?;
    u32::try_from(scaler.int(words.least).unwrap_or(words.unsaid)).ok()
}

/// The same scaler, which leaves at least so many pods, as far as it allows as many. What it leaves is written down then: absent
/// and the default are one.
#[must_use]
pub fn with_least(mut scaler: Object, pods: u32) -> Object {
    let (Some(words), Some(least)) = (words(scaler.reference().kind), least(&scaler)) else { return scaler };
    let wanted = i64::from(least.max(pods));
    let wanted = wanted.min(most(&scaler).unwrap_or(wanted));
    let field = words.least.rsplit('/').next().unwrap_or_default();
    let spec = section(scaler.value_mut(), &["spec"]);
    spec.insert(field.to_owned(), wanted.into());
    if pods > 0 {
        // To fewer than the least KEDA goes where nothing happens.
        spec.shift_remove("idleReplicaCount");
    }
    scaler
}

/// The same scaler under another name, for another Deployment.
#[must_use]
pub fn moved(mut copy: Object, to: &ObjectName) -> Object {
    section(copy.value_mut(), &["spec", "scaleTargetRef"]).insert("name".to_owned(), to.as_str().into());
    // The autoscaler that KEDA makes is one for each.
    if let Some(name) = copy.value_mut().pointer_mut("/spec/advanced/horizontalPodAutoscalerConfig/name") {
        *name = to.as_str().into();
    }
    with_least(copy, 0)
}

/// Whether a field is how many pods there are, or are at least.
#[must_use]
pub fn is_size(pointer: &str) -> bool {
    pointer == "/spec/replicas" || KINDS.iter().filter_map(|kind| words(*kind)).any(|words| words.least == pointer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::ObjectRef;
    use serde_json::json;

    fn name(text: &str) -> ObjectName {
        text.parse().unwrap()
    }

    fn object(kind: Kind, text: &str, value: Value) -> Object {
        Object::new(ObjectRef { kind, namespace: "shop".parse().unwrap(), name: name(text) }, value)
    }

    fn scaler(least: Value) -> Object {
        let spec =
            json!({"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": least, "maxReplicas": 8});
        object(Kind::HorizontalPodAutoscaler, "web", json!({"spec": spec}))
    }

    #[test]
    fn c_17_no_minimum_and_a_minimum_of_one_are_one() {
        assert_eq!((least(&scaler(Value::Null)), least(&scaler(json!(3)))), (Some(1), Some(3)));
        assert_eq!(moved(scaler(Value::Null), &name("b")), moved(scaler(json!(1)), &name("b")));
        assert_eq!(scaled(&moved(scaler(json!(1)), &name("b"))), Some((Kind::Deployment, name("b"))));
    }

    #[test]
    fn a_minimum_is_raised_as_far_as_the_maximum() {
        for (pods, expected) in [(0, 3), (3, 3), (5, 5), (50, 8)] {
            assert_eq!(least(&with_least(scaler(json!(3)), pods)), Some(expected), "{pods}");
        }
    }

    #[test]
    fn keda_scales_a_deployment_by_words_of_its_own() {
        let keda = |more: Value| {
            let mut spec = json!({"scaleTargetRef": {"name": "web"}, "triggers": []});
            section(&mut spec, &[]).extend(more.as_object().cloned().unwrap());
            object(Kind::ScaledObject, "web", json!({"spec": spec}))
        };
        let plain = keda(json!({}));
        assert_eq!(
            (scaled(&plain), least(&plain), most(&plain)),
            (Some((Kind::Deployment, name("web"))), Some(0), Some(100))
        );
        assert_eq!(scaled(&keda(json!({"scaleTargetRef": {"name": "web", "kind": "CronJob"}}))), None);
        let idle = keda(json!({"minReplicaCount": 2, "idleReplicaCount": 0, "maxReplicaCount": 8}));
        let raised = with_least(idle.clone(), 5);
        assert_eq!((least(&raised), raised.at("/spec/idleReplicaCount")), (Some(5), None));
        assert_eq!(least(&with_least(idle.clone(), 50)), Some(8));
        let config = json!({"advanced": {"horizontalPodAutoscalerConfig": {"name": "mine"}}, "idleReplicaCount": 0});
        let copy = moved(keda(config), &name("b"));
        assert_eq!(copy.text("/spec/advanced/horizontalPodAutoscalerConfig/name"), Some("b"));
        assert_eq!((scaled(&copy), copy.int("/spec/idleReplicaCount")), (Some((Kind::Deployment, name("b"))), Some(0)));
        assert_eq!((paused(&idle), paused(&at_zero(idle))), (None, Some(PAUSED)));
        assert_eq!(at_zero(scaler(json!(3))), scaler(json!(3)));
    }

    #[test]
    fn who_scales_another_kind_or_nothing_scales_no_workload() {
        let mut other = scaler(json!(1));
        other.value_mut()["spec"]["scaleTargetRef"]["kind"] = "CronJob".into();
        assert_eq!(scaled(&other), None);
        let service =
            object(Kind::Service, "web", json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}}));
        assert_eq!((scaled(&service), least(&service)), (None, None));
        assert_eq!(with_least(service.clone(), 4), service);
    }
}
