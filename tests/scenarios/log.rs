//! What the controller says while it works, in the world's time: the classes of its writes, what its plans wait on.

use crate::support::listen::listen;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tidegate::reconcile::clock::Clock;
use tidegate::record::state::Time;
use tokio::sync::watch;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

/// Something that the controller said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// When, in the world's time.
    pub(crate) at: Time,
    /// What.
    pub(crate) what: What,
}

/// What the controller can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// It wrote to the cluster.
    Wrote { class: String, why: String },
    /// A write was not taken.
    NotTaken { object: String, why: String },
    /// Git has a record of that number; none if it is removed.
    Recorded { rollout: String, seq: Option<u64>, why: String },
    /// It put a branch before people, or took it back.
    Branch { doing: &'static str, branch: String },
    /// Something that people should look at.
    Warned(String),
    /// A process leads.
    Leads,
    /// The Git host has something new to show.
    Host { word: &'static str, what: String },
}

/// What a rollout waits on: the reason, what it means here, until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) until: Option<Time>,
}

/// All that was said in this thread while it lives.
pub(crate) struct Log {
    shared: Arc<Mutex<Shared>>,
    heard: watch::Receiver<()>,
    secrets: Arc<Mutex<Secrets>>,
    _guard: DefaultGuard,
}

#[derive(Default)]
struct Shared {
    said: Vec<Said>,
    waits: BTreeMap<String, Vec<Waits>>,
}

impl Log {
    /// Listens from now on.
    pub(crate) fn listen(clock: Clock) -> Self {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (tell, heard) = watch::channel(());
        let ear = Ear { shared: Arc::clone(&shared), tell, clock };
        let ear = ear.with_filter(filter_fn(|of| of.target().starts_with("tidegate_controller::reconcile")));
        let secrets = Arc::new(Mutex::new(Secrets::default()));
        let watch = Watch(Arc::clone(&secrets)).with_filter(filter_fn(|of| of.target().starts_with("tidegate")));
        let guard = listen(Registry::default().with(ear).with(watch));
        Self { shared, heard, secrets, _guard: guard }
    }

    /// From now on nothing may have one of these in it, in whatever detail it is said.
    pub(crate) fn hide(&self, secrets: Vec<String>) {
        self.secrets.lock().unwrap().hidden = secrets;
    }

    /// What has one of them in it.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.secrets.lock().unwrap().shown.clone()
    }

    /// What was said since it was asked last.
    pub(crate) fn news(&self) -> Vec<Said> {
        std::mem::take(&mut self.shared.lock().unwrap().said)
    }

    /// What each rollout waited on when it was planned last.
    pub(crate) fn waits(&self) -> BTreeMap<String, Vec<Waits>> {
        self.shared.lock().unwrap().waits.clone()
    }

    /// Nobody plans any more.
    pub(crate) fn forget_waits(&self) {
        self.shared.lock().unwrap().waits.clear();
    }

    /// Returns when a plan was made or something was recorded.
    pub(crate) async fn heard(&mut self) {
        self.heard.changed().await.expect("heard from as long as the log lives");
    }
}

/// What nobody may say, and what had it in it all the same.
#[derive(Default)]
struct Secrets {
    hidden: Vec<String>,
    shown: Vec<String>,
}

/// Who looks for that.
struct Watch(Arc<Mutex<Secrets>>);

impl<S: Subscriber> Layer<S> for Watch {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut secrets = self.0.lock().unwrap();
        if secrets.hidden.is_empty() {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let has = |text: &&String| secrets.hidden.iter().any(|secret| text.contains(secret));
        let shown: Vec<String> = fields.0.values().filter(has).cloned().collect();
        secrets.shown.extend(shown);
    }
}

struct Ear {
    shared: Arc<Mutex<Shared>>,
    tell: watch::Sender<()>,
    clock: Clock,
}

/// The fields of an event, as text.
#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Fields {
    fn take(&mut self, name: &str) -> String {
        self.0.remove(name).unwrap_or_default()
    }
}

/// In which span some things are said: whatever else is logged there says so whose it is, too.
const SPANS: [(&str, &str); 8] = [
    ("recorded", "tick"),
    ("asks people", "tick"),
    ("done", "action"),
    ("not done", "action"),
    ("dry run", "rollout"),
    ("looked up", "rollout"),
    ("asked who approved", "rollout"),
    ("measured", "question"),
];

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Ear {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut shared = self.shared.lock().unwrap();
        let (message, rollout) = (fields.take("message"), fields.take("rollout"));
        let mut spans = context.event_scope(event).into_iter().flatten();
        let wanted = SPANS.iter().find(|(said, _)| *said == message).map(|(_, span)| *span);
        if wanted.is_some_and(|wanted| !spans.any(|span| span.name() == wanted)) {
            let what = What::Warned(format!("{message}: said outside of its span"));
            shared.said.push(Said { at: self.clock.now(), what });
        }
        match message.as_str() {
            "planned" => drop(shared.waits.insert(rollout, Vec::new())),
            "waits" => {
                let until = fields.0.remove("until").map(|at| at.parse().expect("printed by the controller"));
                let waits = Waits { reason: fields.take("reason"), message: fields.take("wait.message"), until };
                shared.waits.entry(rollout).or_default().push(waits);
            }
            _ => {
                let Some(what) = what(&message, rollout, *event.metadata().level(), fields) else { return };
                shared.said.push(Said { at: self.clock.now(), what });
            }
        }
        drop(shared);
        self.tell.send_replace(());
    }
}

/// What an event says; none if nobody has to know.
fn what(message: &str, rollout: String, level: Level, mut fields: Fields) -> Option<What> {
    Some(match message {
        "leads" => What::Leads,
        "done" => What::Wrote { class: fields.take("class").to_lowercase(), why: fields.take("why") },
        "not done" => What::NotTaken { object: fields.take("object"), why: fields.take("why") },
        "asks people" => What::Branch { doing: "asks", branch: fields.take("branch") },
        "withdraws its request: nothing is asked by it any more" => {
            What::Branch { doing: "withdraws", branch: fields.take("branch") }
        }
        "the record ended" => What::Recorded { rollout, seq: None, why: fields.take("what") },
        _ => match (fields.0.remove("seq"), level) {
            (Some(seq), _) => {
                let why = [fields.take("what"), fields.take("reason")].concat();
                What::Recorded { rollout, seq: seq.parse().ok(), why }
            }
            (None, Level::WARN | Level::ERROR) => {
                let of = |name: &str| fields.0.get(name).map(|text| format!(": {text}")).unwrap_or_default();
                What::Warned(format!("{message}{}{}", of("why"), of("warning")))
            }
            (None, _) => return None,
        },
    })
}
