//! A resource that may not be installed.

use nodewise_projection::RolloutPolicy;

use super::*;

const DISCOVERY: &str = "/apis/nodewise.dev/v1alpha1";
const GROUP: &str = "/apis/nodewise.dev";

/// The resources of the group.
fn group(names: &[&str]) -> Response {
    let resources: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
    answer(
        200,
        json!({"kind": "APIResourceList", "resources": resources}).to_string(),
    )
}

fn installed() -> Response {
    group(&["rolloutpolicies", "rolloutpolicies/status"])
}

/// The versions of the group.
fn versions(names: &[&str]) -> Response {
    let versions: Vec<_> = names
        .iter()
        .map(|name| json!({"groupVersion": format!("nodewise.dev/{name}"), "version": name}))
        .collect();
    answer(
        200,
        json!({"kind": "APIGroup", "name": "nodewise.dev", "versions": versions}).to_string(),
    )
}

fn missing() -> Response {
    answer(
        404,
        json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "not there"}).to_string(),
    )
}

fn object(name: &str, version: &str) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version}})
}

fn policies(names: &[&str], version: &str) -> Response {
    let items: Vec<_> = names.iter().map(|name| object(name, "1")).collect();
    answer(
        200,
        json!({"metadata": {"resourceVersion": version}, "items": items}).to_string(),
    )
}

/// A reflector of policies that runs until it is dropped.
struct Reflected {
    events: mpsc::Receiver<ClusterEvent>,
    restores: watch::Sender<u64>,
    has_listed: watch::Receiver<bool>,
    checks: Checks,
    _task: JoinSet<()>,
}

fn reflect(client: &Client) -> Reflected {
    let (checks, restores) = (Checks::new(), watch::Sender::new(0));
    let (sender, events) = mpsc::channel(16);
    let reflector = Reflector::<RolloutPolicy>::new(
        client,
        None,
        &[DAEMON_SETS],
        &sender,
        &restores,
        &checks,
        &Metrics::new("nodewise-executor"),
    );
    let has_listed = reflector.has_listed.subscribe();
    let mut task = JoinSet::new();
    task.spawn(reflector.run());
    Reflected {
        events,
        restores,
        has_listed,
        checks,
        _task: task,
    }
}

impl Reflected {
    async fn next(&mut self) -> String {
        match self.events.recv().await.expect("the reflector runs") {
            ClusterEvent::Policies(Delta::Listed {
                objects,
                resource_version,
            }) => {
                let names: Vec<_> = objects.iter().map(|policy| policy.name.as_str()).collect();
                format!("listed {} at {resource_version}", names.join(" "))
            }
            ClusterEvent::Policies(Delta::Applied(policy)) => {
                format!("applied {}@{}", policy.name, policy.resource_version)
            }
            ClusterEvent::Lost(resource) => format!("lost {resource}"),
            other => panic!("unexpected {other:?}"),
        }
    }
}

const ABSENT: &str = "listed  at ";

// Without the resource there are no policies, and nothing waits for them. It is looked for every ten seconds.
#[tokio::test(start_paused = true)]
async fn a_resource_that_is_not_installed_is_looked_for() {
    let (client, requests) = apiserver(vec![
        missing(),
        missing(),
        group(&["others"]),
        versions(&["v1alpha1"]),
        installed(),
        policies(&["a"], "7"),
        events(&[("ADDED", object("b", "8"))]),
    ]);
    let started = Instant::now();
    let mut reflected = reflect(&client);
    assert_eq!(reflected.next().await, ABSENT);
    assert!(*reflected.has_listed.borrow());
    assert_eq!(
        reflected.next().await,
        "listed a at 7",
        "it is said once that there is none"
    );
    assert_eq!(started.elapsed().as_secs(), 20);
    assert_eq!(reflected.next().await, "applied b@8");
    assert_eq!(reflected.checks.failing(), []);
    let requests = requests.lock().expect("no panic").clone();
    assert_eq!(requests[..5], [DISCOVERY, GROUP, DISCOVERY, GROUP, DISCOVERY]);
    assert!(
        requests[5].starts_with("/apis/nodewise.dev/v1alpha1/rolloutpolicies?"),
        "{requests:?}"
    );
}

// L-2: nothing may be rolled out without knowing the policies. The check names the right that is missing.
#[tokio::test(start_paused = true)]
async fn a_resource_that_cannot_be_listed_is_not_absent() {
    let message = "User \"x\" cannot list resource \"rolloutpolicies\" in API group \"nodewise.dev\" at the cluster scope";
    let forbidden = json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": message});
    let (client, _) = apiserver(vec![
        installed(),
        answer(403, forbidden.to_string()),
        policies(&["a"], "7"),
    ]);
    let mut reflected = reflect(&client);
    let early = timeout(Duration::from_millis(100), reflected.events.recv()).await;
    assert!(early.is_err() && !*reflected.has_listed.borrow(), "{early:?}");
    let failing = reflected.checks.failing();
    assert!(
        failing.len() == 1 && failing[0].1.contains(message),
        "{failing:?}"
    );
    assert_eq!(reflected.next().await, "listed a at 7");
}

#[tokio::test(start_paused = true)]
async fn a_discovery_that_fails_says_nothing() {
    let (client, _) = apiserver(vec![
        answer(503, status(503).to_string()),
        answer(403, status(403).to_string()),
        installed(),
        policies(&[], "7"),
    ]);
    assert_eq!(reflect(&client).next().await, "listed  at 7");
}

// L-3: a resource that is removed has no objects. A list that is not found for another reason is no removal.
#[tokio::test(start_paused = true)]
async fn the_objects_of_a_removed_resource_are_gone() {
    let (client, requests) = apiserver(vec![
        installed(),
        policies(&["a"], "7"),
        missing(),
        installed(),
        policies(&["a"], "8"),
        missing(),
        missing(),
        missing(),
        installed(),
        policies(&["c"], "9"),
    ]);
    let mut reflected = reflect(&client);
    for expected in ["listed a at 7", "listed a at 8", ABSENT, "listed c at 9"] {
        assert_eq!(reflected.next().await, expected);
    }
    let requests = requests.lock().expect("no panic").clone();
    assert!(
        requests[2].contains("watch=true") && requests[3] == DISCOVERY,
        "{requests:?}"
    );
}

// D-112: after a restore of etcd every resource is listed again, also one that was not installed.
#[tokio::test(start_paused = true)]
async fn a_restore_is_answered_without_the_resource() {
    let (client, _) = apiserver(vec![missing(), missing(), missing(), missing()]);
    let mut reflected = reflect(&client);
    assert_eq!(reflected.next().await, ABSENT);
    let before = Instant::now();
    reflected.restores.send_replace(1);
    assert_eq!(reflected.next().await, ABSENT);
    assert!(before.elapsed() < DISCOVERY_INTERVAL);
}

// L-2: policies that this program cannot read are policies, whether it has read any before or not.
#[tokio::test(start_paused = true)]
async fn a_resource_of_another_version_only_is_not_absent() {
    let (client, requests) = apiserver(vec![
        // Neither this version of the group nor another has the resource.
        missing(),
        versions(&["v1beta1", "v1"]),
        group(&["others"]),
        missing(),
        // It comes in another version, beside others of this version.
        group(&["others"]),
        versions(&["v1alpha1", "v1beta1", "v1"]),
        group(&["others"]),
        installed(),
        // It stays there.
        missing(),
        versions(&["v1"]),
        installed(),
        // It is served in the known version.
        installed(),
        policies(&["a"], "7"),
        // The watch finds nothing: the known version is gone again.
        missing(),
        missing(),
        versions(&["v1"]),
        installed(),
        // The resource is removed.
        missing(),
        missing(),
    ]);
    let mut reflected = reflect(&client);
    assert_eq!(reflected.next().await, ABSENT);
    assert_eq!(reflected.next().await, "lost rolloutpolicies");
    let failing = reflected.checks.failing()[0].1.clone();
    assert!(
        failing.contains("serves rolloutpolicies of nodewise.dev in version v1 and not in v1alpha1"),
        "{failing}"
    );
    assert_eq!(reflected.next().await, "listed a at 7", "it is said once");
    assert_eq!(reflected.next().await, "lost rolloutpolicies");
    assert_eq!(reflected.next().await, ABSENT);
    assert_eq!(reflected.checks.failing(), []);
    let requests = requests.lock().expect("no panic").clone();
    let other = "/apis/nodewise.dev/v1beta1";
    assert_eq!(requests[..3], [DISCOVERY, GROUP, other]);
}
