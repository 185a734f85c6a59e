//! What webhooks answer.

use crate::fuzz::budget::{Fate, tried, within};
use crate::fuzz::change::Text;
use crate::fuzz::world::id;
use tidegate::analysis::call::{About, Call, CallKind, WebhookVerdict, answer};
use tidegate::analysis::reading::Reading;
use tidegate::manifest::desired::WebhookCall;
use tidegate::record::state::Time;
use tidegate::record::text::plain;

fn asked() -> Call {
    let at = Time::from_timestamp(1_000_000, 0).expect("a time");
    Call {
        webhook: WebhookCall { provider: "tester".parse().expect("a name"), metadata: [].into() },
        about: About {
            rollout: id(),
            run: "7-9ac41f02".parse().expect("a run"),
            step: "tenth".parse().expect("a step"),
            revision: format!("v1:sha256:{}", "07".repeat(32)).parse().expect("64 digits"),
        },
        asks: CallKind::Check("smoke".parse().expect("a name")),
        since: at,
        at,
    }
}

#[test]
fn an_answer_of_a_webhook_is_read_or_of_no_use() {
    let verdicts = ["good", "bad", "hold"];
    let seeds = verdicts.map(|verdict| {
        format!(r#"{{"run":"7-9ac41f02","step":"tenth","verdict":"{verdict}","reason":"3 of 9 fail","more":[1,{{}}]}}"#)
    });
    tried("answers", 2_000, move |text: &Text| {
        let bytes = text.bytes(&seeds);
        let (told, fate) = match within(bytes.len(), || answer(&asked(), &bytes)) {
            Reading::Said(WebhookVerdict::Good) => return Fate::Taken,
            Reading::Said(WebhookVerdict::Bad(why) | WebhookVerdict::Hold(why)) => (why, Fate::Taken),
            Reading::Unusable(why) | Reading::Away(why) => (why, Fate::Refused),
        };
        assert_eq!(plain(&told), told);
        fate
    });
}
