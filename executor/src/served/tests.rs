//! The watches, with a scripted apiserver.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use nodewise_fake_apiserver::{apiserver, failure};
use nodewise_telemetry::http::Checks;
use serde_json::{Value, json};
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::controller;
use crate::daemon_set::{DAEMON_SETS, DaemonSets};
use crate::manager::{self, Manager};
use crate::metrics::Metrics;
use crate::testing::{ScriptedActuator, ScriptedService};

fn read(json: &str) -> Workload {
    Served::<DaemonSets>::read(json).expect("a DaemonSet").workload
}

// D-59: a DaemonSet is sent unchanged. The items of a list get the kind and version that the list leaves out.
#[test]
fn objects_are_kept_whole() {
    let item =
        json!({"metadata": {"name": "foo", "namespace": "ns", "uid": "u1"}, "spec": {"newerThanUs": [1]}});
    let kept = read(&item.to_string());
    let mut expected = item;
    expected["apiVersion"] = json!("apps/v1");
    expected["kind"] = json!("DaemonSet");
    let kept: Value = serde_json::from_slice(&kept.object).expect("JSON");
    assert_eq!(kept, expected);
}

// If such a DaemonSet were skipped it would look deleted, and with an old cached state plans would be wrong. So it is
// sent as it is, and the service refuses it with a reason.
#[test]
fn a_daemon_set_with_an_unreadable_spec_is_kept() {
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    for spec in [
        r#"{"minReadySeconds":"soon"}"#,
        &format!(r#"{{"selector":{deep}}}"#),
        r#"{"selector":{"matchLabels":{"a":"\ud800"}}}"#,
    ] {
        let text = format!(r#"{{"metadata":{{"name":"foo","namespace":"ns","uid":"u1"}},"spec":{spec}}}"#);
        let kept = read(&text);
        assert_eq!(
            kept.key,
            nodewise_projection::Key::new(DAEMON_SETS.kind, "ns", "foo")
        );
        let object = std::str::from_utf8(&kept.object).expect("UTF-8");
        assert!(object.ends_with(&format!(r#""spec":{spec}}}"#)), "{object}");
        let labels = [nodewise_proto::v1::Label {
            key: "a".into(),
            value: "b".into(),
        }];
        assert!(!kept.selector.matches(&labels));
    }
}

// Whether the data of a revision is cached depends on the DaemonSets, so these are listed first.
#[tokio::test(start_paused = true)]
async fn revisions_are_listed_after_the_daemon_sets() {
    let are_served = watch::Sender::new(false);
    let served = are_served.subscribe();
    let (client, requests) = apiserver(move |asked| {
        let is_list = !asked.line.contains("watch=");
        let is_there = *served.borrow() || !asked.line.contains("daemonsets");
        let list = || json!({"metadata": {"resourceVersion": "7"}, "items": []});
        match (is_list, is_there) {
            (true, true) => Some((200, list())),
            (true, false) => Some((500, failure(500, "InternalError", &[]).1)),
            (false, _) => None,
        }
    });
    let lists = || {
        let requests = requests.lock().expect("lock");
        let of = |plural: &str| {
            requests
                .iter()
                .filter(|asked| asked.line.contains(plural) && !asked.line.contains("watch="))
                .count()
        };
        (of("/daemonsets"), of("/controllerrevisions"))
    };
    let manager = Manager::new(
        manager::Config::default(),
        Metrics::new(),
        CancellationToken::new(),
    )
    .with::<DaemonSets>(
        controller::Config::default(),
        Arc::new(ScriptedActuator::default()),
        Arc::new(ScriptedService::default()),
    );
    let mut watches = manager.watch(&client, None, &Checks::default());
    for _ in 0..3 {
        assert!(
            watches.next().await.is_some(),
            "pods, nodes, and that there are no policies"
        );
    }
    timeout(Duration::from_hours(1), async {
        while lists().0 < 3 {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    })
    .await
    .expect("it is tried again");
    assert_eq!(lists().1, 0);
    are_served.send_replace(true);
    let mut came = Vec::new();
    while came.len() < 2 {
        let event = watches.next().await.expect("an event");
        came.push(event.resource());
    }
    assert_eq!(came, [DAEMON_SETS, Resource::REVISIONS]);
}
