// Command controller owns the DaemonSets, ReplicaSets and Deployments of a cluster: a complete controller on top of package nodewise.
//
//	controller [--controllers LIST] [--selector LABELS] [--analysis-host HOST[:PORT][=CREDENTIAL],...] [-v 1]
//
// With --controllers it runs the controllers of a list, with the names and the syntax of kube-controller-manager: daemonset-controller,
// replicaset-controller and deployment-controller, * for all, and -NAME for all but this one. Without the flag it runs the daemonset-controller.
//
// With --selector it owns only the workloads whose labels match, in the syntax of kubectl's -l, such as team=storage,tier!=test. With -v 1
// it logs each action and why it was planned. With --analysis-host it calls these hosts for the checks of RolloutPolicies. The other settings are environment variables:
//
//	KUBECONFIG             the cluster; if not set, the one in which the program runs
//	NODEWISE_SERVER        the planning service, as a list separated by commas: http://HOST:PORT, https://HOST:PORT or dns:///HOST:PORT
//	NODEWISE_TLS_CA        a PEM file with the certificate authorities of the planning service
//	NODEWISE_TLS_CERT      a PEM file with the client certificate
//	NODEWISE_TLS_KEY       a PEM file with the key of the client certificate
//	NODEWISE_PLAINTEXT     true: allow plain text to a planning service that is not on loopback
//	NODEWISE_LEADER_ELECT  false: start without leader election
//	POD_NAMESPACE          the namespace of the Lease; kube-system if not set
//	OTEL_...               the standard variables of OpenTelemetry: if OTEL_EXPORTER_OTLP_ENDPOINT is set, traces go there over gRPC
//
// On SIGTERM it completes the plans that it is applying, and ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/analysis"
	"nodewise.dev/clients/go/planclient"
)

func main() {
	owned := flag.String("selector", "", "own only workloads whose labels match, as in kubectl -l")
	controllers := flag.String("controllers", daemonSetController, "the controllers to run, as in kube-controller-manager")
	analyzed := analysisFlags()
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *controllers, *owned, analyzed)
	stop()
	klog.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, controllers, owned string, analyzed *analysis.Settings) error {
	kinds, err := kindsOf(controllers)
	if err != nil {
		return fmt.Errorf("--controllers: %w", err)
	}
	selector, err := labels.Parse(owned)
	if err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	measurer, err := analysis.New(*analyzed)
	if err != nil {
		return fmt.Errorf("--analysis-host: %w", err)
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("%q is not a flag; a selector is one argument, such as --selector team=storage,tier!=test", flag.Arg(0))
	}
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
	// The client must live longer than ctx: plans that are being applied at the stop are still reported.
	planner, err := planclient.New(context.WithoutCancel(ctx), strings.Split(servers, ","), secured...)
	if err != nil {
		return err
	}
	defer func() { _ = planner.Close() }()

	own := func(ctx context.Context) error {
		// Each leadership needs a new Reconciler: the state of an earlier one is outdated.
		reconciler, err := nodewise.New(cluster, planner,
			nodewise.WithKinds(kinds...), nodewise.WithSelector(selector), nodewise.WithMeasurer(measurer))
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
