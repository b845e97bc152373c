// Command plan prints what would happen for one DaemonSet, and why. For each node that is named it prints whether the DaemonSet runs there,
// and why. It changes nothing. It takes KUBECONFIG and NODEWISE_SERVER from the environment.
//
//	go run ./examples/plan NAMESPACE NAME [NODE...]
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/planclient"

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cluster, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	service, err := planclient.New(ctx, []string{os.Getenv("NODEWISE_SERVER")})
	check(err)
	plan, err := nodewise.PlanOnce(ctx, cluster, service, os.Args[1], os.Args[2])
	check(err)
	fmt.Println("verdict:", plan.GetVerdict())
	for _, phase := range plan.GetPhases() {
		for _, batch := range phase.GetBatches() {
			for _, action := range batch.GetActions() {
				fmt.Printf("%s: %s\n", phase.GetKind(), action.GetMessage())
			}
		}
	}
	for _, node := range os.Args[3:] {
		explained, err := nodewise.ExplainOnce(ctx, cluster, service, os.Args[1], os.Args[2], node)
		check(err)
		for _, on := range explained.GetNodes() {
			fmt.Printf("%s: %s, %s: %s\n", on.GetNodeName(), on.GetState(), on.GetRule(), on.GetMessage())
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
