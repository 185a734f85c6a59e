//! Prism, which knows what GitHub has published of its API: as a proxy it lets everything through, and says what of it is not as
//! described; as a mock it answers with GitHub's own examples.

use super::cluster::{build, eventually, home, script};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// A running one; it ends with this value, and with this process.
pub(crate) struct Prism {
    /// Where it listens.
    pub(crate) url: String,
    log: PathBuf,
    /// It ends when its standard input does.
    _running: Child,
}

impl Prism {
    /// Between a client and a stand-in. Its log is kept in that folder.
    pub(crate) async fn before(upstream: &str, folder: &Path) -> Self {
        Self::start(&["proxy", "parts.json", upstream], folder).await
    }

    /// Answers as one of the descriptions says that `tests/testbed/contract/cut.mjs` makes.
    pub(crate) async fn mock(description: &str, folder: &Path) -> Self {
        Self::start(&["mock", description], folder).await
    }

    async fn start(how: &[&str], folder: &Path) -> Self {
        build("contract").await;
        let log = folder.join(format!("prism-{}-{}.log", how[0], how[1]));
        let written = std::fs::File::create(&log).unwrap();
        let complaints = written.try_clone().unwrap();
        let mut prism = script("prism", folder);
        prism.args(how).stdin(Stdio::piped()).stdout(written).stderr(complaints);
        let running = prism.spawn().unwrap();
        let url = eventually(&format!("a Prism that listens, see {}", log.display()), async || {
            let said = std::fs::read_to_string(&log).unwrap();
            let (_, url) = said.split_once("Prism is listening on ")?;
            url.contains('\n').then(|| url.lines().next().unwrap().to_owned())
        })
        .await;
        Self { url, log, _running: running }
    }

    /// What was not as described, each with what was asked then, or a little later.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let (log, mut asked, mut all) = (std::fs::read_to_string(&self.log).unwrap(), "", Vec::new());
        for line in log.lines() {
            if line.contains("Request received") {
                asked = line;
            }
            if line.contains('✖') {
                all.push(format!("{asked}\n    {line}"));
            }
        }
        all
    }
}

/// What GitHub describes, cut to what is used.
pub(crate) struct Description(Value);

impl Description {
    /// That of the test bed.
    pub(crate) async fn read() -> Self {
        build("contract").await;
        Self(serde_json::from_str(&std::fs::read_to_string(described("examples.json")).unwrap()).unwrap())
    }

    /// All that it describes.
    pub(crate) fn operations(&self) -> BTreeSet<String> {
        let paths = self.0["paths"].as_object().unwrap();
        let all = paths.iter().flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
        });
        all.collect()
    }

    /// Which of them a request is. Prism does not mind a query that is not described: it is refused here.
    pub(crate) fn operation(&self, method: &str, path: &str, query: Option<&str>) -> String {
        let paths = self.0["paths"].as_object().unwrap();
        let parts: Vec<&str> = path.split('/').collect();
        let fits = |template: &str| {
            let wanted: Vec<&str> = template.split('/').collect();
            let same = |(wanted, part): (&&str, &&str)| wanted.starts_with('{') || wanted == part;
            wanted.len() == parts.len() && wanted.iter().zip(&parts).all(same)
        };
        let variables = |template: &&String| template.matches('{').count();
        let found = paths.keys().filter(|template| fits(template)).min_by_key(variables);
        let template = found.unwrap_or_else(|| panic!("{method} {path} is not described"));
        let described = &paths[template][method.to_lowercase()];
        assert!(described.is_object(), "{method} {path} is not described");
        let resolved = |one: &Value| match one["$ref"].as_str() {
            Some(reference) => self.0.pointer(&reference[1..]).unwrap().clone(),
            None => one.clone(),
        };
        let all: Vec<Value> = described["parameters"].as_array().into_iter().flatten().map(resolved).collect();
        let query: BTreeMap<String, String> =
            url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect();
        for name in query.keys() {
            let known = all.iter().any(|one| one["in"] == "query" && one["name"] == **name);
            assert!(known, "{method} {path} knows no {name} in its query");
        }
        format!("{method} {template}")
    }
}

/// A file that `tests/testbed/contract/cut.mjs` makes.
pub(crate) fn described(file: &str) -> PathBuf {
    home().join("contract").join(file)
}
