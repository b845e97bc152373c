use nodewise_fake_apiserver::{RecordedRequest, Requests, apiserver, failure};
use nodewise_projection::OwnershipSelector;
use nodewise_runtime::lead::Timing;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinHandle,
};

use super::*;
use crate::config::Election;

/// A cluster with one node and one DaemonSet without pods. Watches never end.
fn answer(asked: &RecordedRequest) -> Option<(u16, Value)> {
    let (method, target) = asked.line.split_once(' ').unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let items = match path.rsplit('/').next() {
        Some("daemonsets") => json!([{
            "metadata": {"name": "agent", "namespace": "demo", "uid": "uid-agent", "resourceVersion": "3"},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {"metadata": {}}},
        }]),
        Some("nodes") => json!([{"metadata": {"name": "node-0", "uid": "uid-node", "resourceVersion": "2"}}]),
        Some("leases") => return Some((201, asked.json())),
        Some("nodewise-executor") if method == "GET" => return Some(failure(404, "NotFound", &[])),
        Some("nodewise-executor") => return Some((200, asked.json())),
        _ => json!([]),
    };
    (!query.contains("watch=true"))
        .then(|| (200, json!({"metadata": {"resourceVersion": "5"}, "items": items})))
}

struct Running {
    address: std::net::SocketAddr,
    requests: Requests,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
    _silent: TcpSocket,
}

/// Starts an executor whose service address has no listener.
async fn start(mode: Mode, elect: bool) -> Running {
    // The port stays bound, so that no other test listens on it.
    let silent = TcpSocket::new_v4().expect("a socket");
    silent
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a free port");
    let server = format!("http://{}", silent.local_addr().expect("an address"));
    let config = Config {
        servers: vec![server.parse().expect("a target")],
        tls: None,
        plaintext: false,
        apiserver: None,
        controllers: vec![ControllerConfig {
            controller: Controller::DaemonSet,
            mode,
            workers: 2,
        }],
        election: elect.then(|| Election {
            namespace: "kube-system".to_owned(),
            identity: "host_1".to_owned(),
            timing: Timing::default(),
        }),
        namespace: None,
        selection: OwnershipSelector::default(),
        concurrent_writes: 4,
        calls_per_second: None,
        creates_per_second: None,
        options: nodewise_proto::v1::PlanOptions::default(),
        buckets: 4,
        plan_timeout: Duration::from_secs(5),
        hedge_after: None,
        api_timeout: Duration::from_secs(5),
        traced_calls: 32,
        trace_annotations: false,
        drain_timeout: Duration::from_secs(20),
        analysis: crate::analysis::Settings::default(),
    };
    let (client, requests) = apiserver(answer);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(run(config, client, listener, shutdown.clone()));
    Running {
        address,
        requests,
        shutdown,
        task,
        _silent: silent,
    }
}

impl Running {
    async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    /// Polls until the response fits.
    async fn until(&self, path: &str, fits: impl Fn(&str) -> bool) {
        let waited = tokio::time::timeout(Duration::from_secs(30), async {
            while !fits(&self.get(path).await) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        assert!(
            waited.await.is_ok(),
            "{path} still says: {}",
            self.get(path).await
        );
    }

    /// Method and path of each request that would change the cluster.
    fn writes(&self) -> Vec<String> {
        let requests = self.requests.lock().expect("lock");
        let lines = requests.iter().map(|asked| asked.line.clone());
        lines
            .filter(|line| !line.starts_with("GET"))
            .map(|line| line.split('?').next().unwrap_or("").to_owned())
            .collect()
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("no panic").expect("a clean end");
    }
}

// While the service is unreachable, nothing is written, readiness gives the reason, and liveness stays good.
#[tokio::test]
async fn without_the_service_nothing_is_written() {
    for mode in [Mode::Own, Mode::Observe] {
        let running = start(mode, false).await;
        let ready_but_for_the_service = |answer: &str| {
            answer.contains("[-]plan-service failed: no replica") && answer.matches("[+]watch-").count() == 5
        };
        running.until("/readyz", ready_but_for_the_service).await;
        // The DaemonSet was taken from the queue, and the plan request got no answer.
        running
            .until("/metrics", |text| {
                text.contains("nodewise_plan_errors_total{kind=\"DaemonSet\",code=\"UNAVAILABLE\"}")
            })
            .await;
        assert!(running.get("/healthz").await.ends_with("ok"));
        assert_eq!(running.writes(), Vec::<String>::new());
        running.stop().await;
    }
}

// The settings that are served are those that the process was started with.
#[tokio::test]
async fn configz_has_the_settings() {
    let running = start(Mode::Observe, false).await;
    let answer = running.get("/configz").await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let settings: Value = serde_json::from_str(body).expect("JSON");
    let settings = &settings["nodewise-executor"];
    assert_eq!(
        settings["controllers"],
        json!([{"name": "daemonset-controller", "mode": "observe", "concurrentSyncs": 2}])
    );
    assert_eq!(settings["leaderElection"], Value::Null);
    assert_eq!(settings["drainTimeoutSeconds"], 20.0);
    assert_eq!(settings["buckets"], 4);
    assert_eq!(settings["tls"], false);
    running.stop().await;
}

// Of the controllers only the one with the long reconcile fails its check.
#[tokio::test(start_paused = true)]
async fn a_reconcile_that_does_not_end_fails_the_check_of_its_controller() {
    let (metrics, checks) = (Metrics::new(), Checks::new());
    let [stuck, idle] = [Controller::Deployment, Controller::ReplicaSet];
    for controller in [stuck, idle] {
        add_check(&checks, &metrics, controller);
    }
    let queue = metrics.runtime().queue(stuck.alias());
    let _working = queue.work_started(Duration::ZERO);
    tokio::time::advance(MAX_RECONCILE / 2).await;
    assert_eq!(checks.failing(), []);
    tokio::time::advance(MAX_RECONCILE / 2 + Duration::from_mins(1)).await;
    assert_eq!(
        checks.failing(),
        [(
            "deployment-controller".to_owned(),
            "a reconcile has been running for 31m".to_owned()
        )]
    );
}

// Health is served next to the election, which is a liveness check. The Lease is acquired first and released last.
#[tokio::test]
async fn leads_and_hands_over() {
    let running = start(Mode::Own, true).await;
    running
        .until("/metrics", |text| {
            text.contains("leader_election_master_status{name=\"nodewise-executor\"} 1")
        })
        .await;
    running
        .until("/healthz?verbose", |text| text.contains("[+]leaderElection ok"))
        .await;
    running
        .until("/healthz/daemonset-controller", |text| text.ends_with("ok"))
        .await;
    assert!(
        running
            .get("/healthz/deployment-controller")
            .await
            .contains("there is no check")
    );
    running
        .until("/readyz", |text| text.contains("[+]watch-pods ok"))
        .await;
    let requests = Arc::clone(&running.requests);
    running.stop().await;
    let requests = requests.lock().expect("lock");
    let holders: Vec<_> = requests
        .iter()
        .filter(|asked| asked.line.contains("/leases") && !asked.line.starts_with("GET"))
        .map(|asked| {
            asked.json()["spec"]["holderIdentity"]
                .as_str()
                .unwrap_or("none")
                .to_owned()
        })
        .collect();
    assert_eq!(
        (
            holders.first().map(String::as_str),
            holders.last().map(String::as_str)
        ),
        (Some("host_1"), Some(""))
    );
    let first_list = requests
        .iter()
        .position(|asked| asked.line.contains("/pods"))
        .expect("a list");
    let first_lease = requests
        .iter()
        .position(|asked| asked.line.starts_with("POST"))
        .expect("a lease");
    assert!(first_lease < first_list, "nobody watches before leading");
}
