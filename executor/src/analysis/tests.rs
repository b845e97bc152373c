//! Measurements against real servers on this machine.

mod calls;
mod limits;
mod servers;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use nodewise_projection::{Key, RolloutPolicy};
use nodewise_proto::workload::DAEMON_SET;
use serde_json::json;

use super::*;

/// No test waits longer.
const DEADLINE: Duration = Duration::from_secs(20);

/// An analyzer that may call these hosts, and its metrics.
fn analyzer(hosts: &[String], change: impl FnOnce(&mut Settings)) -> (Analyzer, Metrics) {
    let mut settings = Settings {
        hosts: hosts.iter().map(|host| host.parse().expect("a host")).collect(),
        ..Settings::default()
    };
    change(&mut settings);
    let metrics = Metrics::new();
    let analyzer = Analyzer::new(settings, metrics.clone()).expect("settings");
    (analyzer, metrics)
}

/// An analyzer that may call this server.
fn of(address: SocketAddr) -> Analyzer {
    analyzer(&[address.to_string()], |_| {}).0
}

/// The check `c` of this interval, which soaks.
fn subject(interval: &str) -> Subject {
    let object = json!({
        "metadata": {"namespace": "ns", "name": "p", "uid": "uid-p", "resourceVersion": "10"},
        "spec": {"targets": {"names": ["agent"]}, "stages": [
            {"name": "s", "analysis": [{"name": "c", "interval": interval}]},
        ]},
        "status": {"targets": [{"name": "agent", "uid": "u1", "state": "Soaking"}]},
    });
    Subject {
        policy: Some(Arc::new(RolloutPolicy::from_json(&object).expect("a policy"))),
        ..Subject::new(Key::new(DAEMON_SET, "ns", "agent"), "u1")
    }
}

fn request(provider: Provider) -> v1::Measure {
    v1::Measure {
        id: Some(v1::MeasurementId {
            policy_uid: "uid-p".into(),
            revision_hash: "h".into(),
            stage: "s".into(),
            check: "c".into(),
            number: 0,
        }),
        policy_name: "p".into(),
        provider: Some(provider),
        ..v1::Measure::default()
    }
}

fn query(address: &str) -> v1::Measure {
    request(Provider::Prometheus(v1::PrometheusQuery {
        address: address.to_owned(),
        query: "sum(rate(errors[5m]))".to_owned(),
    }))
}

fn webhook(url: &str) -> v1::Measure {
    request(Provider::Webhook(v1::WebhookCall { url: url.to_owned() }))
}

fn verdict(address: &str, tls: bool) -> v1::Measure {
    let address = address.to_owned();
    request(Provider::VerdictService(v1::VerdictCall { address, tls }))
}

async fn measure(analyzer: &Analyzer, request: &v1::Measure) -> measurement::Result {
    let measuring = analyzer.measure(&subject("1m"), request);
    tokio::time::timeout(DEADLINE, measuring)
        .await
        .expect("it ends by itself")
}

/// The error of a measurement that cannot be made.
async fn error(analyzer: &Analyzer, request: &v1::Measure) -> String {
    match measure(analyzer, request).await {
        measurement::Result::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

fn value(text: &str) -> measurement::Result {
    measurement::Result::Value(text.to_owned())
}

fn token(folder: &Path, name: &str) {
    std::fs::write(folder.join(name), format!("token-of-{name}\n")).expect("a file");
}
