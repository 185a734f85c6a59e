//! What comes of the answers that a Prometheus, or something else at its address, may give.

use super::PrometheusClient;
use crate::analysis::judge::Range;
use crate::analysis::provider::Measures;
use crate::analysis::reading::{Reading, Samples};
use crate::analysis::testing::Server;
use crate::manifest::duration::Span;
use crate::record::state::Time;
use axum::body::Body;
use chrono::TimeDelta;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;

impl Server {
    async fn read(&self, path: &str, credentials_file: Option<PathBuf>) -> Reading<Samples> {
        PrometheusClient::new(&self.url(path), credentials_file).unwrap().read(&range()).await
    }
}

fn at(seconds: i64) -> Time {
    Time::from_timestamp(1_000_000 + seconds, 0).unwrap() + TimeDelta::microseconds(1_500)
}

fn range() -> Range {
    let (provider, query) = ("main".parse().unwrap(), "sum(rate(errors[1m])) > 0".to_owned());
    Range { provider, query, from: at(60), until: at(180), interval: Span::from_secs(60) }
}

fn matrix(result: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{result}]}}}}"#)
}

fn samples(values: &[(i64, f64)]) -> Reading<Samples> {
    Reading::Said(values.iter().map(|(seconds, value)| (at(*seconds), *value)).collect())
}

#[tokio::test]
async fn a_range_is_asked_and_its_samples_are_at_the_moments_asked_for() {
    // The server knows milliseconds alone.
    let body = matrix(r#"{"metric":{},"values":[[1000060.001,"0.5"],[1000120.001,"+Inf"],[1000180.002,"1e-3"]]}"#);
    let server = Server::saying(200, &[], body).await;
    assert_eq!(server.read("/prom/", None).await, samples(&[(60, 0.5), (120, f64::INFINITY), (180, 0.001)]));
    let asked = server.asked().unwrap();
    let wanted = "query=sum%28rate%28errors%5B1m%5D%29%29+%3E+0&start=1970-01-12T13%3A47%3A40.001500000Z\
                  &end=1970-01-12T13%3A49%3A40.001500000Z&step=60";
    assert_eq!((&*asked.uri, asked.header("authorization")), ("/prom/api/v1/query_range", ""));
    assert_eq!(asked.body, wanted);
}

#[tokio::test]
async fn what_is_no_number_is_told_apart_from_no_sample() {
    let nan = Server::saying(200, &[], matrix(r#"{"metric":{},"values":[[1000060.001,"NaN"]]}"#)).await;
    let Reading::Said(found) = nan.read("", None).await else { panic!("samples") };
    assert!(found[&at(60)].is_nan());
    let none = Server::saying(200, &[], matrix("")).await;
    assert_eq!(none.read("", None).await, samples(&[]));
}

#[tokio::test]
async fn c_34_a_hint_about_the_query_keeps_no_value_back() {
    let hint = r#"},"warnings":["PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: \"requests\" (1:6)"]}"#;
    let body = matrix(r#"{"metric":{},"values":[[1000060.001,"0.5"]]}"#);
    let server = Server::saying(200, &[], body.replace("}}", hint)).await;
    assert_eq!(server.read("", None).await, samples(&[(60, 0.5)]));
}

#[tokio::test]
async fn an_answer_of_no_use_says_what_to_do() {
    let two = r#"{"metric":{},"values":[]},{"metric":{},"values":[]}"#;
    let bad = r#"{"status":"error","errorType":"bad_data","error":"1:4: parse error:\nunexpected \"}\""}"#;
    let large = "x".repeat(super::ANSWER + 1);
    for (status, body, wanted) in [
        (200, matrix(two), "the query yields 2 series: aggregate them into one, as by sum(…)"),
        (200, matrix(r#"{"metric":{},"values":[[1,"many"]]}"#), "many is no number"),
        (
            200,
            matrix("").replace("}}", r#"},"warnings":["PromQL info: a hint","a store is away"]}"#),
            "the answer has a warning: a store is away",
        ),
        (
            200,
            matrix(r#"{"metric":{},"histograms":[[1,{}]]}"#),
            "the query yields histograms: a number is wanted, as of histogram_quantile(…)",
        ),
        (400, bad.to_owned(), "the query is refused: 1:4: parse error: unexpected \"}\""),
        (422, bad.to_owned(), "the query is refused: 1:4: parse error: unexpected \"}\""),
        (200, large, "the answer is larger than 1 MiB: aggregate the query into one series, as by sum(…)"),
    ] {
        let server = Server::saying(status, &[], body).await;
        assert_eq!(server.read("", None).await, Reading::Unusable(wanted.to_owned()));
    }
}

/// Requirements C-34 and X-13: whoever does not answer says nothing about the version.
#[tokio::test]
async fn c_34_whatever_else_is_there_is_away() {
    let error = r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#;
    for (status, headers, body, wanted) in [
        (200, &[][..], "<html>log in</html>", "what answers is no Prometheus: that is not its JSON"),
        (
            302,
            &[("location", "https://login.example.test/?back=1")][..],
            "",
            "a redirect to https://login.example.test/, which",
        ),
        (401, &[][..], "", "HTTP 401 Unauthorized; no credentials file is set"),
        (403, &[][..], error, "HTTP 403 Forbidden; no credentials file is set"),
        (404, &[][..], "404 page not found", "HTTP 404 Not Found"),
        (429, &[][..], "", "HTTP 429 Too Many Requests"),
        (503, &[][..], error, "HTTP 503 Service Unavailable: query timed out"),
        (502, &[][..], "bad gateway", "HTTP 502 Bad Gateway"),
    ] {
        let server = Server::saying(status, headers, body).await;
        let Reading::Away(why) = server.read("", None).await else { panic!("{status}") };
        assert!(why.starts_with(wanted), "{why}");
    }
    let Reading::Away(why) = Server::nobody().await.read("", None).await else { panic!("nobody listens") };
    assert!(why.contains("refused"), "{why}");
}

#[tokio::test]
async fn attack_62_a_redirect_is_followed_nowhere() {
    let inside = Server::saying(200, &[], matrix("")).await;
    for status in [301, 302, 303, 307, 308] {
        let lure = Server::saying(status, &[("location", inside.url("/latest/meta-data").as_str())], "").await;
        let Reading::Away(why) = lure.read("", None).await else { panic!("{status}") };
        assert!(why.contains("which is not followed"), "{why}");
    }
    assert!(inside.asked().is_none());
}

#[tokio::test]
async fn attack_65_an_answer_without_end_is_cut_off() {
    let (listener, sent) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::new(AtomicUsize::new(0)));
    let (address, counted) = (listener.local_addr().unwrap(), Arc::clone(&sent));
    let app = axum::Router::new().fallback(move || async move {
        let chunk = move |()| {
            counted.fetch_add(4096, Ordering::Relaxed);
            std::future::ready(Some((Ok::<_, Infallible>(vec![b' '; 4096]), ())))
        };
        Body::from_stream(futures::stream::unfold((), chunk))
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let endless = PrometheusClient::new(&format!("http://{address}").parse().unwrap(), None).unwrap();
    assert_eq!(endless.read(&range()).await, Reading::Unusable(super::TOO_LONG.to_owned()));
    // What the sockets hold comes on top.
    assert!(sent.load(Ordering::Relaxed) < 32 * super::ANSWER, "{}", sent.load(Ordering::Relaxed));
}

#[tokio::test]
async fn credentials_are_read_at_each_question_and_never_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    let server = Server::saying(401, &[], "").await;
    for (text, wanted) in [("hush-1\n", "Bearer hush-1"), ("ana:hush-2", "Basic YW5hOmh1c2gtMg==")] {
        std::fs::write(&file, text).unwrap();
        let Reading::Away(why) = server.read("", Some(file.clone())).await else { panic!("401") };
        assert_eq!(server.asked().unwrap().header("authorization"), wanted);
        assert_eq!(why, format!("HTTP 401 Unauthorized; check the credentials in {}", file.display()));
    }
    for (text, wanted) in [("", "it is empty"), ("hush\nhush", "it has more than one line")] {
        std::fs::write(&file, text).unwrap();
        let Reading::Away(why) = server.read("", Some(file.clone())).await else { panic!("{text}") };
        assert!(why.ends_with(wanted) && !why.contains("hush"), "{why}");
    }
    let Reading::Away(why) = server.read("", Some(dir.path().join("gone"))).await else { panic!("gone") };
    assert!(why.contains("gone: No such file"), "{why}");
    assert!(server.asked().is_none(), "who cannot log in does not ask");
}
