// The verdict-service program is an example of a VerdictService: it lets a rollout go on while an HTTP endpoint answers well.
//
//	verdict-service --listen :9000 --url http://agents.monitoring:8080/healthz
//
// A RolloutPolicy names it in a check, and the executor must allow its host:
//
//	analysis:
//	- { name: agents, grpc: { address: checks.monitoring:9000, tls: false }, interval: 30s, count: 5 }
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"nodewise.dev/clients/go/nodewisev1"
)

// checker is the VerdictService.
type checker struct {
	nodewisev1.UnimplementedVerdictServiceServer

	url    string
	client *http.Client
}

// GetVerdict asks the endpoint: a status of 200 to 299 lets the rollout go on, and any other rejects the new revision. Without an answer there is
// no verdict: the network may be at fault, so the rollout waits.
func (c *checker) GetVerdict(ctx context.Context, asked *nodewisev1.GetVerdictRequest) (*nodewisev1.GetVerdictResponse, error) {
	const pass, fail = nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_PASS, nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_FAIL
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", c.url, err)
	}
	verdict := nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_INCONCLUSIVE
	var message string
	response, err := c.client.Do(request)
	if err != nil {
		message = err.Error()
	} else {
		_ = response.Body.Close()
		verdict, message = fail, "the endpoint answered "+response.Status
		if response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusMultipleChoices {
			verdict = pass
		}
	}
	log.Printf("%s/%s, revision %s, stage %s: %s (%s)", asked.GetWorkload().GetNamespace(), asked.GetWorkload().GetName(),
		asked.GetId().GetRevisionHash(), asked.GetId().GetStage(), verdict, message)
	return &nodewisev1.GetVerdictResponse{Verdict: verdict, Message: message}, nil
}

// serve serves until the context ends.
func serve(ctx context.Context, listener net.Listener, url string) error {
	server := grpc.NewServer()
	nodewisev1.RegisterVerdictServiceServer(server, &checker{url: url, client: &http.Client{Timeout: 5 * time.Second}})
	defer context.AfterFunc(ctx, server.GracefulStop)()
	return server.Serve(listener)
}

func run() error {
	listen := flag.String("listen", ":9000", "address to listen on")
	url := flag.String("url", "", "the HTTP endpoint that must answer well")
	flag.Parse()
	if *url == "" {
		return errors.New("there is no --url")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", *listen, err)
	}
	log.Printf("listening on %s", listener.Addr())
	return serve(ctx, listener, *url)
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
