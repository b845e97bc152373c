//! Reads the facts from a cluster. It never writes; reviews of access are creates that store nothing.

use std::{collections::BTreeMap, fmt::Debug};

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment},
    authorization::v1::{
        ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
        SubjectAccessReviewSpec,
    },
    coordination::v1::Lease,
    core::v1::{Pod, Secret},
    discovery::v1::EndpointSlice,
    scheduling::v1::PriorityClass,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
    client::Body,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
};
use nodewise_api::RolloutPolicy;
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    args::CheckArgs,
    certificates,
    facts::{Access, Clock, Facts, Seen, Subject, Unread},
    install::{EXECUTOR, NAME_LABEL, Plan, SERVER},
    needs::{Right, needed},
    quotas,
    rights::{escalation, to_install},
    webhooks,
};
use crate::input::one_line;

const DEFAULT_NAMESPACE: &str = "nodewise-system";
const CONTROL_PLANE: &str = "kube-system";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";
/// The labels of kube-controller-manager's pods, in kubeadm's and in other distributions' clusters.
const CONTROLLER_MANAGER_LABELS: [&str; 3] = ["component", "k8s-app", "app"];
/// How many reviews are asked for at a time.
const CONCURRENT_REVIEWS: usize = 8;

/// Reads everything. Fails only if the apiserver does not answer at all, or does not accept the caller.
pub(crate) async fn gather(client: &Client, args: &CheckArgs) -> Result<Facts, kube::Error> {
    let (apiserver, clock) = version(client).await?;
    let executors = deployments(client, EXECUTOR, args.namespace.as_deref()).await;
    let namespace = args.namespace.clone().unwrap_or_else(|| {
        let first = executors.iter().flatten().next();
        let found = first.and_then(|deployment| deployment.metadata.namespace.clone());
        found.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())
    });
    let servers = list(
        &Api::namespaced(client.clone(), &namespace),
        &format!("{NAME_LABEL}={SERVER}"),
    )
    .await;
    // The installation includes the kind.
    let has_policies = args.pre || has_policies(client).await;
    let plans: Vec<Plan> = if args.pre {
        vec![Plan::planned(&namespace, &args.mode, &args.controllers)]
    } else {
        executors.iter().flatten().map(Plan::of).collect()
    };
    let deployments: Vec<&Deployment> = (servers.iter().chain(&executors).flatten())
        .filter(|deployment| deployment.metadata.namespace.as_ref() == Some(&namespace))
        .collect();
    let secrets = secrets(client, &namespace, &deployments).await;
    let priority_classes = priority_classes(client, args.pre, &deployments).await;
    let validating = list(&Api::all(client.clone()), "").await;
    let mutating = list(&Api::all(client.clone()), "").await;
    let endpoints = endpoints(client, &validating, &mutating).await;
    let policies = policies(client, has_policies && !args.pre).await;
    let daemon_sets = daemon_sets(client, &policies).await;
    let in_namespace = Api::namespaced(client.clone(), &namespace);
    let control_plane: Api<Lease> = Api::namespaced(client.clone(), CONTROL_PLANE);
    Ok(Facts {
        pre: args.pre,
        clock,
        apiserver,
        controller_managers: controller_managers(client).await,
        controller_manager_lease: get(&control_plane, CONTROLLER_MANAGER).await,
        access: access(client, args.pre, has_policies, &plans).await,
        secrets,
        leases: leases(client, args.pre, &plans).await,
        namespace_object: get(&Api::all(client.clone()), &namespace).await,
        quotas: list(&in_namespace, "").await,
        policies,
        daemon_sets,
        validating,
        mutating,
        endpoints,
        priority_classes,
        executors,
        servers,
        plans,
        namespace,
    })
}

/// The apiserver's version, and the time there.
async fn version(client: &Client) -> Result<(String, Clock), kube::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        git_version: String,
    }
    let request = || {
        http::Request::get("/version")
            .body(Body::empty())
            .map_err(kube::Error::HttpError)
    };
    let before = Timestamp::now();
    let response = client.send(request()?).await?;
    let after = Timestamp::now();
    let date = response
        .headers()
        .get(http::header::DATE)
        .and_then(|date| date.to_str().ok());
    let apiserver = date
        .and_then(|date| jiff::fmt::rfc2822::parse(date).ok())
        .map(|time| time.timestamp());
    // The same request again, with the client's errors.
    let version: Version = client.request(request()?.map(|_| Vec::new())).await?;
    let clock = Clock {
        before,
        after,
        apiserver,
    };
    Ok((version.git_version, clock))
}

/// The Deployments of a component in all namespaces, or in those that the caller may list.
async fn deployments(client: &Client, name: &str, namespace: Option<&str>) -> Seen<Vec<Deployment>> {
    let labels = format!("{NAME_LABEL}={name}");
    match list(&Api::all(client.clone()), &labels).await {
        Err(Unread::Forbidden(_)) => {
            let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
            list(&Api::namespaced(client.clone(), namespace), &labels).await
        }
        seen => seen,
    }
}

async fn controller_managers(client: &Client) -> Seen<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), CONTROL_PLANE);
    for label in CONTROLLER_MANAGER_LABELS {
        let found = list(&pods, &format!("{label}={CONTROLLER_MANAGER}")).await?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

async fn secrets(
    client: &Client,
    namespace: &str,
    deployments: &[&Deployment],
) -> BTreeMap<String, Seen<Option<Secret>>> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut secrets = BTreeMap::new();
    for name in deployments
        .iter()
        .filter_map(|deployment| certificates::secret(deployment))
    {
        if !secrets.contains_key(name) {
            secrets.insert(name.to_owned(), get(&api, name).await);
        }
    }
    secrets
}

async fn priority_classes(
    client: &Client,
    pre: bool,
    deployments: &[&Deployment],
) -> BTreeMap<String, Seen<bool>> {
    let api: Api<PriorityClass> = Api::all(client.clone());
    let used = deployments
        .iter()
        .filter_map(|deployment| quotas::class(deployment));
    let planned = pre.then_some(quotas::DEFAULT_CLASS);
    let mut classes = BTreeMap::new();
    for name in used.chain(planned) {
        if !classes.contains_key(name) {
            let exists = get(&api, name).await.map(|class| class.is_some());
            classes.insert(name.to_owned(), exists);
        }
    }
    classes
}

/// The Leases of executors that are installed.
async fn leases(client: &Client, pre: bool, plans: &[Plan]) -> BTreeMap<String, Seen<Option<Lease>>> {
    let mut leases = BTreeMap::new();
    let namespaces = plans.iter().filter_map(|plan| plan.lease_namespace.as_deref());
    for namespace in namespaces.filter(|_| !pre) {
        let api = Api::namespaced(client.clone(), namespace);
        leases.insert(namespace.to_owned(), get(&api, EXECUTOR).await);
    }
    leases
}

/// The endpoints of the Services of webhooks that matter.
async fn endpoints(
    client: &Client,
    validating: &Seen<Vec<k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration>>,
    mutating: &Seen<Vec<k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration>>,
) -> BTreeMap<(String, String), Seen<Vec<EndpointSlice>>> {
    let mut all = webhooks::of_validating(validating.as_deref().unwrap_or_default());
    all.extend(webhooks::of_mutating(mutating.as_deref().unwrap_or_default()));
    let mut endpoints = BTreeMap::new();
    for (namespace, name) in all
        .iter()
        .filter(|one| one.matters())
        .filter_map(webhooks::Webhook::service)
    {
        let api = Api::namespaced(client.clone(), &namespace);
        let slices = list(&api, &format!("kubernetes.io/service-name={name}")).await;
        endpoints.insert((namespace, name), slices);
    }
    endpoints
}

async fn access(client: &Client, pre: bool, has_policies: bool, plans: &[Plan]) -> Vec<Access> {
    let mut questions = Vec::new();
    for plan in plans {
        let subject = if pre {
            Subject::Giver
        } else {
            Subject::Executor(format!("{}/{}", plan.namespace, plan.service_account))
        };
        questions.extend(
            needed(plan, has_policies)
                .into_iter()
                .map(|right| (subject.clone(), right)),
        );
        if pre {
            questions.extend(
                to_install(&plan.namespace)
                    .into_iter()
                    .map(|right| (Subject::Installer, right)),
            );
            questions.push((Subject::Escalation, escalation()));
        }
    }
    let answers = stream::iter(questions).map(async |(subject, right)| {
        let is_allowed = review(client, &subject, &right).await;
        Access {
            subject,
            right,
            is_allowed,
        }
    });
    answers.buffered(CONCURRENT_REVIEWS).collect().await
}

/// Whether the cluster has the kind RolloutPolicy: every user may ask that. If it cannot be told, the rights are asked about.
async fn has_policies(client: &Client) -> bool {
    let policies = ApiResource::erase::<RolloutPolicy>(&());
    let path = format!("/apis/{}", policies.api_version);
    let Ok(request) = http::Request::get(path).body(Vec::new()) else {
        return true;
    };
    match client.request::<APIResourceList>(request).await {
        Ok(served) => served.resources.iter().any(|one| one.name == policies.plural),
        Err(kube::Error::Api(status)) => status.code != 404,
        Err(_) => true,
    }
}

async fn policies(client: &Client, has_policies: bool) -> Seen<Vec<DynamicObject>> {
    if !has_policies {
        return Ok(Vec::new());
    }
    let resource = ApiResource::erase::<RolloutPolicy>(&());
    list(&Api::all_with(client.clone(), &resource), "").await
}

/// The DaemonSets, if there are policies that may target them.
async fn daemon_sets(
    client: &Client,
    policies: &Seen<Vec<DynamicObject>>,
) -> Seen<Vec<PartialObjectMeta<DaemonSet>>> {
    if policies.iter().flatten().next().is_none() {
        return Ok(Vec::new());
    }
    let api: Api<DaemonSet> = Api::all(client.clone());
    let listed = api.list_metadata(&ListParams::default()).await;
    listed.map(|list| list.items).map_err(|error| unread(&error))
}

async fn review(client: &Client, subject: &Subject, right: &Right) -> Seen<bool> {
    let attributes = attributes(right);
    let Subject::Executor(account) = subject else {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = create(client, &review).await?;
        return Ok(answer.status.is_some_and(|status| status.allowed));
    };
    let (namespace, name) = account.split_once('/').unwrap_or_default();
    let groups = [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated".to_owned(),
    ];
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            user: Some(format!("system:serviceaccount:{namespace}:{name}")),
            groups: Some(groups.to_vec()),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = create(client, &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

fn attributes(right: &Right) -> ResourceAttributes {
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (right.resource.as_str(), None),
    };
    ResourceAttributes {
        group: Some(right.group.clone()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(right.verb.clone()),
        name: right.name.clone(),
        namespace: right.namespace.clone(),
        ..ResourceAttributes::default()
    }
}

async fn create<K>(client: &Client, review: &K) -> Seen<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + serde::Serialize,
{
    let api: Api<K> = Api::all(client.clone());
    api.create(&PostParams::default(), review)
        .await
        .map_err(|error| unread(&error))
}

async fn list<K: Clone + Debug + DeserializeOwned>(api: &Api<K>, labels: &str) -> Seen<Vec<K>> {
    let listed = api.list(&ListParams::default().labels(labels)).await;
    listed.map(|list| list.items).map_err(|error| unread(&error))
}

async fn get<K: Clone + Debug + DeserializeOwned>(api: &Api<K>, name: &str) -> Seen<Option<K>> {
    api.get_opt(name).await.map_err(|error| unread(&error))
}

fn unread(error: &kube::Error) -> Unread {
    let said = one_line(error);
    match error {
        kube::Error::Api(status) if status.is_forbidden() => Unread::Forbidden(said),
        _ => Unread::Failed(said),
    }
}
