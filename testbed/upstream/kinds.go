package main

import (
	"context"
	"encoding/json"

	apps "k8s.io/api/apps/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller"
)

// kind is a kind of workload, with its controller.
type kind struct {
	// member is the member of a case with the workloads. The first one is synced.
	member string
	// resource is the API's name for them.
	resource string
	// texts are the workloads of a case as JSON.
	texts func(*spec) []json.RawMessage
	// workloads are the decoded workloads of a case.
	workloads func(*cluster) []apiObject
	// hash returns the value of hashMark for a workload, or nothing.
	hash func(what string, text []byte) (string, error)
	// writesTwice is whether the controller writes one object several times in one sync with the version that it read at
	// first. A real apiserver answers such a write with a conflict, and the next sync goes on. The fake one accepts it, so
	// that one sync shows everything that the controller wants.
	writesTwice bool
	// inOrder is whether the order of the calls is part of the outcome: the controller makes none of them concurrently.
	inOrder bool
	// start makes upstream's controller for a run.
	start func(ctx context.Context, t *trial, client kubernetes.Interface, caches *caches) error
	// syncPath has the functions of upstream that a sync can reach; see coverage.
	syncPath map[string][]string
}

// kinds are the kinds of workloads, by the member `kind` of a case.
var kinds = map[string]*kind{
	"daemonset": {
		member:    "daemonSets",
		resource:  daemonSetResource,
		texts:     func(s *spec) []json.RawMessage { return s.DaemonSets },
		workloads: func(c *cluster) []apiObject { return asObjects(c.daemonSets) },
		hash: func(what string, text []byte) (string, error) {
			ds, err := decode[apps.DaemonSet](what, text)
			if err != nil {
				return "", err
			}
			return controller.ComputeHash(&ds.Spec.Template, ds.Status.CollisionCount), nil
		},
		start:    startDaemonSets,
		syncPath: daemonSetPath,
	},
	"replicaset": {
		member:    "replicaSets",
		resource:  replicaSetResource,
		texts:     func(s *spec) []json.RawMessage { return s.ReplicaSets },
		workloads: func(c *cluster) []apiObject { return asObjects(c.replicaSets) },
		hash: func(what string, text []byte) (string, error) {
			_, err := decode[apps.ReplicaSet](what, text)
			return "", err
		},
		start:    startReplicaSets,
		syncPath: replicaSetPath,
	},
	"deployment": {
		member:    "deployments",
		resource:  deploymentResource,
		texts:     func(s *spec) []json.RawMessage { return s.Deployments },
		workloads: func(c *cluster) []apiObject { return asObjects(c.deployments) },
		hash: func(what string, text []byte) (string, error) {
			d, err := decode[apps.Deployment](what, text)
			if err != nil {
				return "", err
			}
			return controller.ComputeHash(&d.Spec.Template, d.Status.CollisionCount), nil
		},
		writesTwice: true,
		inOrder:     true,
		start:       startDeployments,
		syncPath:    deploymentPath,
	},
}
