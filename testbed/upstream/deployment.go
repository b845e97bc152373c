package main

import (
	"context"
	"fmt"
	_ "unsafe" // for go:linkname

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller/deployment"
)

// startDeployments creates the controller, and replaces its queue and event recorder.
func startDeployments(ctx context.Context, t *trial, client kubernetes.Interface, caches *caches) error {
	dc, err := deployment.NewDeploymentController(
		ctx,
		deploymentInformer{caches.deployments},
		replicaSetInformer{caches.replicaSets},
		podInformer{caches.pods},
		client,
	)
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	if err := t.takeQueue(dc, "queue"); err != nil {
		return err
	}
	if err := setField[record.EventRecorder](dc, "eventRecorder", t.recorder); err != nil {
		return err
	}
	return t.takeSync(dc, func(ctx context.Context) { nextDeployment(dc, ctx) })
}

//go:linkname nextDeployment k8s.io/kubernetes/pkg/controller/deployment.(*DeploymentController).processNextWorkItem
func nextDeployment(dc *deployment.DeploymentController, ctx context.Context) bool
