package main

import (
	"context"
	"fmt"
	_ "unsafe" // for go:linkname

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
)

// startReplicaSets creates the controller, replaces its queue and event recorder, and reads its expectations.
func startReplicaSets(ctx context.Context, t *trial, client kubernetes.Interface, caches *caches) error {
	rsc := replicaset.NewReplicaSetController(
		ctx,
		replicaSetInformer{caches.replicaSets},
		podInformer{caches.pods},
		client,
		t.cluster.Burst,
	)
	if err := t.takeQueue(rsc, "queue"); err != nil {
		return err
	}
	if err := t.takePodControl(rsc); err != nil {
		return err
	}
	expectations, err := field[*controller.UIDTrackingControllerExpectations](rsc, "expectations")
	if err != nil {
		return err
	}
	t.expectations = (*expectations).ControllerExpectationsInterface
	if err := t.tellOwnWrites(rsc); err != nil {
		return err
	}
	return t.takeSync(rsc, func(ctx context.Context) { nextReplicaSet(rsc, ctx) })
}

//go:linkname nextReplicaSet k8s.io/kubernetes/pkg/controller/replicaset.(*ReplicaSetController).processNextWorkItem
func nextReplicaSet(rsc *replicaset.ReplicaSetController, ctx context.Context) bool

// tellOwnWrites records the writes that the controller made before.
func (t *trial) tellOwnWrites(rsc *replicaset.ReplicaSetController) error {
	store, err := field[consistency.ConsistencyStore](rsc, "consistencyStore")
	if err != nil {
		return err
	}
	subject := t.cluster.subject()
	owner := types.NamespacedName{Namespace: subject.GetNamespace(), Name: subject.GetName()}
	groups := map[string]string{podResource: "", replicaSetResource: "apps"}
	for i, own := range t.cluster.OwnWrites {
		group, ok := groups[own.Resource]
		if !ok {
			return fmt.Errorf("ownWrites[%d].resource: %q is neither %s nor %s", i, own.Resource, podResource, replicaSetResource)
		}
		(*store).WroteAt(owner, subject.GetUID(), schema.GroupResource{Group: group, Resource: own.Resource}, own.Written)
	}
	return nil
}
