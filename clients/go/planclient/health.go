package planclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"nodewise.dev/clients/go/nodewisev1"
)

const (
	connectTimeout = 3 * time.Second
	// probePause is the pause after the first failed probe. It doubles with each further one, with jitter.
	probePause    = 250 * time.Millisecond
	maxProbePause = 5 * time.Second
)

// followHealth follows a replica's health until the context ends. A replica that shuts down reports NOT_SERVING first, and then drains. An
// evicted replica becomes ready again by a successful probe, so that no reconcile has to try it. A probe is a new health watch: its first
// response decides, and later responses are followed as they come.
func (r *replicas) followHealth(ctx context.Context, replica *replica) {
	pause := probePause
	for {
		began := time.Now()
		err := r.watchHealth(ctx, replica)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.probeFailed(replica, describe(replica, err))
		}
		if time.Since(began) > maxProbePause {
			pause = probePause
		}
		if !sleep(ctx, max(jitter(pause), replica.probeDelay())) {
			return
		}
		pause = min(2*pause, maxProbePause)
	}
}

// watchHealth watches the health of a replica until the watch ends or a failed call evicts the replica. The latter is no error.
func (r *replicas) watchHealth(ctx context.Context, replica *replica) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := replica.beginProbe()
	// Only the first response has a deadline.
	first := time.AfterFunc(connectTimeout, cancel)
	defer first.Stop()
	client := grpc_health_v1.NewHealthClient(replica.conn)
	request := &grpc_health_v1.HealthCheckRequest{Service: nodewisev1.ReconcileService_ServiceDesc.ServiceName}
	// UNIMPLEMENTED is an error like any other. gRPC's own health check takes it for a healthy server without a health service, but
	// every nodewise-server has one.
	watch, err := client.Watch(ctx, request, grpc.WaitForReady(false))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		for {
			health, err := watch.Recv()
			if err != nil {
				ended <- err
				return
			}
			if !first.Stop() && ctx.Err() != nil {
				ended <- ctx.Err()
				return
			}
			if health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
				r.drains(replica)
			} else if !r.serves(replica, failures) {
				ended <- nil
				return
			}
		}
	}()
	select {
	case err := <-ended:
		if errors.Is(err, io.EOF) {
			return errors.New("the health watch ended")
		}
		if ctx.Err() != nil {
			return fmt.Errorf("no answer within %s", connectTimeout)
		}
		return err
	case <-replica.evictedByCall:
		cancel()
		if err := <-ended; err != nil {
			r.logger.V(4).Info("A call has failed; probing", "replica", replica.address, "watch", err.Error())
		}
		return nil
	}
}

func jitter(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause/2+1)
}
