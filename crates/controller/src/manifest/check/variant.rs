//! What tells the variant of the target's pods has to be among its manifests (requirement V-2).

use super::Case;
use crate::manifest::desired::TargetKind;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::set::Item;
use crate::manifest::variant::Told;

pub(super) fn check(case: &Case<'_>, target: &Item) -> Option<Diagnostic> {
    let variant = case.spec.target.variant.as_ref()?;
    let kind = case.spec.target.kind;
    if kind == TargetKind::Service {
        let what = "a Service has no pods of its own";
        return Some(case.error("/spec/target/variant", Code::Conflict, what, "no variant with the target Service"));
    }
    let at = "/spec/template/spec/containers";
    match variant.of(&target.object) {
        Told::Is(_) => None,
        Told::NoContainer => {
            let what = format!("the target has no container {}", variant.container);
            Some(case.error(
                "/spec/target/variant/container",
                Code::TargetMissing,
                what,
                "the name of one of its containers",
            ))
        }
        Told::FromElsewhere => {
            let what =
                format!("the value of {} comes from elsewhere, so that nobody can tell the variant", variant.env);
            Some(target.error(at, Code::Conflict, what, format!("a value of {} in the container", variant.env)))
        }
        Told::Unset => {
            let what = format!("{} is not set, and nothing says which variant that is", variant.env);
            let found =
                target.error(at, Code::Schema, what, format!("a value of {}, or target.variant.default", variant.env));
            Some(found.help("what the image takes where it is not set may change with its version"))
        }
    }
}
