package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/daemon"
)

// startDaemonSets creates the controller, replaces its queue and event recorders, sets its burst, and reads its
// expectations and sync handler.
func startDaemonSets(ctx context.Context, t *trial, client kubernetes.Interface, caches *caches) error {
	t.backoff = newBackoff(t.cluster)
	dsc, err := daemon.NewDaemonSetsController(
		ctx,
		daemonSetInformer{caches.daemonSets},
		revisionInformer{caches.revisions},
		podInformer{caches.pods},
		nodeInformer{caches.nodes},
		client,
		t.backoff,
	)
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	if err := t.takeQueue(dsc, "queue"); err != nil {
		return err
	}
	nodes, err := field[queues](dsc, "nodeUpdateQueue")
	if err != nil {
		return err
	}
	(*nodes).ShutDown()
	if err := setField[record.EventRecorder](dsc, "eventRecorder", t.recorder); err != nil {
		return err
	}
	if err := t.takePodControl(dsc); err != nil {
		return err
	}
	if err := setField(dsc, "burstReplicas", t.cluster.Burst); err != nil {
		return err
	}
	expectations, err := field[controller.ControllerExpectationsInterface](dsc, "expectations")
	if err != nil {
		return err
	}
	t.expectations = *expectations
	handler, err := field[func(ctx context.Context, key string) error](dsc, "syncHandler")
	if err != nil {
		return err
	}
	t.sync = *handler
	return nil
}
