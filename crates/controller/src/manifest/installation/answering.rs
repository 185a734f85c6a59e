//! Who answers the questions of checks, as the installation names them.

use super::{Code, Prometheus, Provider, ProviderName, Webhook, http_url, raw};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Why a provider cannot be used.
enum Unclear {
    Kind,
    Url { of: &'static str, why: String },
}

/// The providers that can be used; `wrong` is told of the others.
pub(super) fn answering(
    providers: BTreeMap<ProviderName, raw::Provider>,
    mut wrong: impl FnMut(&str, Code, &str, &str),
) -> BTreeMap<ProviderName, Provider> {
    let mut answering = BTreeMap::new();
    for (name, asked) in providers {
        let pointer = format!("/spec/providers/{name}");
        match provider(asked) {
            Ok(provider) => drop(answering.insert(name, provider)),
            Err(Unclear::Kind) => {
                let what = "it is not clear what this provider is";
                wrong(&pointer, Code::Schema, what, "exactly one of prometheus and webhook");
            }
            Err(Unclear::Url { of, why }) => {
                wrong(&format!("{pointer}/{of}/url"), Code::Url, &why, "https://HOST or http://HOST");
            }
        }
    }
    answering
}

fn provider(raw::Provider { prometheus, webhook }: raw::Provider) -> Result<Provider, Unclear> {
    let address = |of, url: &str| http_url(url).map_err(|why| Unclear::Url { of, why });
    match (prometheus, webhook) {
        (Some(raw::Prometheus { url, credentials_file }), None) => Ok(Provider::Prometheus(Prometheus {
            url: address("prometheus", &url)?,
            credentials_file: credentials_file.map(PathBuf::from),
        })),
        (None, Some(raw::Webhook { url, credentials_file, hmac_key_file })) => Ok(Provider::Webhook(Webhook {
            url: address("webhook", &url)?,
            credentials_file: credentials_file.map(PathBuf::from),
            hmac_key_file: hmac_key_file.map(PathBuf::from),
        })),
        (Some(_), Some(_)) | (None, None) => Err(Unclear::Kind),
    }
}
