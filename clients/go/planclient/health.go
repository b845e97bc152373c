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
	// probePause is the pause after the first failed probe; it doubles with each further one, with jitter.
	probePause    = 250 * time.Millisecond
	maxProbePause = 5 * time.Second
)

// lookAfter follows a replica's health until the context ends. A replica that ends says so beforehand, and is asked no more. One
// that failed comes back by a probe, so that no reconcile is spent on finding out. A probe is a new watch: its first answer
// tells, and later ones are followed as they come.
func (r *replicas) lookAfter(ctx context.Context, replica *replica) {
	pause := probePause
	for {
		began := time.Now()
		err := r.follow(ctx, replica)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.unwell(replica, describe(replica, err))
		}
		if time.Since(began) > maxProbePause {
			pause = probePause
		}
		if !sleep(ctx, max(jitter(pause), replica.rest())) {
			return
		}
		pause = min(2*pause, maxProbePause)
	}
}

// follow watches the health of a replica until a call fails, which is no error, or the watch ends.
func (r *replicas) follow(ctx context.Context, replica *replica) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := replica.probed()
	// Only the first answer is bounded in time.
	first := time.AfterFunc(connectTimeout, cancel)
	defer first.Stop()
	client := grpc_health_v1.NewHealthClient(replica.conn)
	request := &grpc_health_v1.HealthCheckRequest{Service: nodewisev1.ReconcileService_ServiceDesc.ServiceName}
	// UNIMPLEMENTED is an error like any other, though gRPC takes it for a server that tells nothing of its health: a replica
	// tells, so this is none.
	watch, err := client.Watch(ctx, request, grpc.WaitForReady(false))
	if err != nil {
		return err
	}
	told := make(chan error, 1)
	go func() {
		for {
			health, err := watch.Recv()
			if err != nil {
				told <- err
				return
			}
			if !first.Stop() && ctx.Err() != nil {
				told <- ctx.Err()
				return
			}
			if health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
				r.drains(replica)
			} else if !r.serves(replica, failures) {
				told <- nil
				return
			}
		}
	}()
	select {
	case err := <-told:
		if errors.Is(err, io.EOF) {
			return errors.New("its health is told no more")
		}
		if ctx.Err() != nil {
			return fmt.Errorf("no answer within %s", connectTimeout)
		}
		return err
	case <-replica.callFailed:
		cancel()
		if err := <-told; err != nil {
			r.logger.V(4).Info("A call has failed; probing", "replica", replica.address, "watch", err.Error())
		}
		return nil
	}
}

func jitter(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause/2+1)
}
