//! The JSON of nodes, DaemonSets and ReplicaSets as an apiserver serves it, and parts of the JSON of pods.

use serde_json::{Value, json};

/// The creation time of all objects.
pub(super) const CREATED: &str = "2025-11-03T09:14:27Z";
/// The namespace of the DaemonSets and their pods.
pub(super) const NAMESPACE: &str = "monitoring";
/// The uid of a ReplicaSet.
pub(super) const REPLICA_SET_UID: &str = "5d8c7f9b-5d2e-4c0f-9b1a-7f3c2a9e6d10";
const INSTANCE_TYPES: [&str; 3] = ["m6i.xlarge", "m6i.2xlarge", "c6i.4xlarge"];
const ZONES: [&str; 3] = ["eu-central-1a", "eu-central-1b", "eu-central-1c"];

/// A condition of a pod.
pub(super) fn condition(kind: &str, status: &str, since: &str) -> Value {
    json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since})
}

/// Five characters as in the suffix of a generated name.
pub(super) fn suffix(number: usize) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    // Coprime to 27^5, so that smaller numbers have different suffixes.
    let mut left = (number + 1) * 7_368_787;
    let letters = std::iter::repeat_with(|| {
        let letter = char::from(LETTERS[left % LETTERS.len()]);
        left /= LETTERS.len();
        letter
    });
    letters.take(5).collect()
}

/// The name of a node, as in a cloud.
pub(super) fn node_name(index: usize) -> String {
    format!(
        "ip-10-{}-{}-{}.eu-central-1.compute.internal",
        index >> 16,
        (index >> 8) & 255,
        index & 255
    )
}

/// A node with labels as in a cloud.
pub(super) fn node(index: usize) -> Value {
    let name = node_name(index);
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": format!("kubelet says {reason}"),
            "lastHeartbeatTime": "2025-12-31T23:58:41Z", "lastTransitionTime": CREATED,
        })
    };
    let resources = json!({
        "cpu": "4", "ephemeral-storage": "83873772Ki", "hugepages-2Mi": "0", "memory": "16073656Ki", "pods": "58",
    });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": format!("{index:08x}-0a5b-4d7e-b3c2-1f6e8d9c4a70"),
            "resourceVersion": "1003",
            "creationTimestamp": CREATED,
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "300",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/instance-type": INSTANCE_TYPES[index % 3],
                "beta.kubernetes.io/os": "linux",
                "eks.amazonaws.com/capacityType": "ON_DEMAND",
                "eks.amazonaws.com/nodegroup": format!("workers-{}", index % 8),
                "failure-domain.beta.kubernetes.io/region": "eu-central-1",
                "failure-domain.beta.kubernetes.io/zone": ZONES[index % 3],
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": INSTANCE_TYPES[index % 3],
                "topology.kubernetes.io/region": "eu-central-1",
                "topology.kubernetes.io/zone": ZONES[index % 3],
            },
        },
        "spec": {"providerID": format!("aws:///{}/i-{index:017x}", ZONES[index % 3])},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "allocatable": resources,
            "capacity": resources,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady"),
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "osImage": "Linux 2023", "kernelVersion": "6.12.40",
                "kubeletVersion": "v1.36.3", "kubeProxyVersion": "v1.36.3", "containerRuntimeVersion": "containerd://2.1.4",
                "machineID": format!("{index:032x}"), "systemUUID": format!("{index:032x}"), "bootID": format!("{index:032x}"),
            },
        },
    })
}

/// A DaemonSet with the apiserver's defaults, with `nodes` ready pods in its status.
pub(super) fn daemon_set(name: &str, uid: &str, nodes: usize) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": uid, "resourceVersion": "1000", "generation": 1,
            "creationTimestamp": CREATED, "labels": {"app": name},
            "annotations": {"deprecated.daemonset.template.generation": "1"},
        },
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [{
                        "name": "agent", "image": "registry.example/agent:1", "imagePullPolicy": "IfNotPresent",
                        "args": ["--path.rootfs=/host/root", "--web.listen-address=:9100"],
                        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}],
                        "ports": [{"name": "metrics", "containerPort": 9100, "protocol": "TCP"}],
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
                        "volumeMounts": [{"name": "root", "mountPath": "/host/root", "readOnly": true}],
                        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    }],
                    "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "securityContext": {}, "terminationGracePeriodSeconds": 30,
                    "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
                    "volumes": [{"name": "root", "hostPath": {"path": "/", "type": ""}}],
                },
            },
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            "revisionHistoryLimit": 10,
        },
        "status": {
            "currentNumberScheduled": nodes, "desiredNumberScheduled": nodes, "numberReady": nodes,
            "updatedNumberScheduled": nodes, "numberAvailable": nodes, "numberMisscheduled": 0, "observedGeneration": 1,
        },
    })
}

/// A ReplicaSet of a web application with `replicas` pods, of which its status counts `pods`, all available.
pub(super) fn replica_set(name: &str, replicas: usize, pods: usize) -> Value {
    let labels = json!({"app.kubernetes.io/name": "web", "pod-template-hash": "5d8c7f9b6d"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": REPLICA_SET_UID, "resourceVersion": "1004",
            "generation": 1, "creationTimestamp": CREATED, "labels": labels,
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{
                        "name": "web", "image": "registry.example/web:1", "imagePullPolicy": "IfNotPresent",
                        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
                        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    }],
                    "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                    "securityContext": {}, "terminationGracePeriodSeconds": 30,
                },
            },
        },
        "status": {
            "replicas": pods, "fullyLabeledReplicas": pods, "readyReplicas": pods, "availableReplicas": pods,
            "terminatingReplicas": 0, "observedGeneration": 1,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: HashSet<_> = (0..100_000).map(suffix).collect();
        assert_eq!(names.len(), 100_000);
        let names: HashSet<_> = (0..100_000).map(node_name).collect();
        assert_eq!(names.len(), 100_000);
    }
}
