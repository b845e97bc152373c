// Command controller owns the DaemonSets of a cluster: a complete controller on top of package nodewise.
//
// It takes its settings from the environment:
//
//	KUBECONFIG             the cluster; without it the one that it runs in
//	NODEWISE_SERVER        where the planning service is, separated by commas: http://HOST:PORT or dns:///HOST:PORT
//	NODEWISE_TLS_CA        the authorities of https://HOST:PORT, and of dns:/// then; with the certificate and key to show to them, if
//	NODEWISE_TLS_CERT      they want to see one: files in PEM form
//	NODEWISE_TLS_KEY
//	NODEWISE_PLAINTEXT     true: speak plain text to a planning service that is not on loopback
//	NODEWISE_LEADER_ELECT  false: work at once, without a Lease
//	POD_NAMESPACE          the namespace of the Lease; kube-system if not set
//	OTEL_...               the standard ones of OpenTelemetry: where OTEL_EXPORTER_OTLP_ENDPOINT is set, traces go there over gRPC
//
// On SIGTERM it finishes what it has in hand and ends.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/planclient"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	klog.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	flush, err := trace(ctx)
	if err != nil {
		return err
	}
	defer flush()
	cluster, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	cluster.UserAgent = "nodewise-go-example"
	servers := os.Getenv("NODEWISE_SERVER")
	if servers == "" {
		return errors.New("NODEWISE_SERVER must say where the planning service is, for example http://127.0.0.1:7443")
	}
	secured, err := secure()
	if err != nil {
		return err
	}
	// The planner must outlast the stop: what is in hand is finished with it.
	planner, err := planclient.New(context.WithoutCancel(ctx), strings.Split(servers, ","), secured...)
	if err != nil {
		return err
	}
	defer func() { _ = planner.Close() }()

	own := func(ctx context.Context) error {
		// A new one for each leadership: what an earlier one remembers is not true any more.
		reconciler, err := nodewise.New(cluster, planner)
		if err != nil {
			return err
		}
		return reconciler.Run(ctx)
	}
	if os.Getenv("NODEWISE_LEADER_ELECT") == "false" {
		return own(ctx)
	}
	return lead(ctx, cluster, own)
}

// lead works while it holds the Lease, and ends when it loses it: whoever starts it anew starts with an empty memory.
func lead(ctx context.Context, cluster *rest.Config, work func(context.Context) error) error {
	clients, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("making a client of the cluster: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding a name to lead by: %w", err)
	}
	// The Lease is kept while the work is brought to its end.
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
	// Who does not lead has nothing to bring to an end.
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
