package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lead calls work while it holds the Lease, and returns an error when it loses the Lease, so that the program restarts with empty state.
func lead(ctx context.Context, cluster *rest.Config, work func(context.Context) error) error {
	clients, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("making a client of the cluster: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding a name to lead by: %w", err)
	}
	// The Lease is kept after the stop until work has returned.
	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	ended := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: cmp.Or(os.Getenv("POD_NAMESPACE"), "kube-system"), Name: "nodewise-executor"},
			Client:     clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s_%d", host, os.Getpid())},
		},
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				working, stop := context.WithCancel(leading)
				defer context.AfterFunc(ctx, stop)()
				ended <- work(working)
				release()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	// A replica that does not lead ends at once.
	defer context.AfterFunc(ctx, func() {
		if !elector.IsLeader() {
			release()
		}
	})()
	elector.Run(holding)
	select {
	case err := <-ended:
		return err
	default:
	}
	if ctx.Err() != nil && !elector.IsLeader() {
		return nil
	}
	return errors.New("the lease was lost")
}
