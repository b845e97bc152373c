// Package analysis makes the measurements that plans ask for, for the checks of RolloutPolicies.
//
// A policy is written by whoever owns a namespace, and the executor makes the call, with its own place in the network. So it calls only the hosts
// that its operator allows, follows no redirect, and limits the time and the size of an answer. Credentials are files that the operator mounts.
//
// [New] makes a [Measurer] that asks Prometheus, webhooks and VerdictServices. A controller may have another one.
package analysis

import (
	"context"
	"fmt"
	"time"

	"nodewise.dev/clients/go/nodewisev1"
)

// MaxValue is how many bytes the value of a measurement has at most.
const MaxValue = 64 << 10

// CheckValue returns an error if a value has more than [MaxValue] bytes. The service takes no longer ones.
func CheckValue(value string) error {
	if len(value) <= MaxValue {
		return nil
	}
	return fmt.Errorf("the value has %d bytes, and %d are allowed", len(value), MaxValue)
}

// Request is a measurement that a plan asks for.
type Request struct {
	// Measure says which measurement, and who is asked. That is as the policy says: the executor has checked it.
	*nodewisev1.Measure

	// Workload is the workload whose rollout is asked about.
	Workload *nodewisev1.WorkloadReference
	// Status is the policy's status of the workload, as JSON; an empty object if there is none yet.
	Status []byte
	// Interval is the time between two measurements of the check. A call that takes longer is of no use, and would keep others waiting. 0 if it is not
	// known.
	Interval time.Duration
}

// Measurer makes measurements.
type Measurer interface {
	// Measure makes a measurement. Of the result only the oneof `result` counts: the executor sets the id and the time. An error says that the
	// measurement could not be made, which is not that the check failed. The call must end when the context ends, and must end by itself. It is
	// called concurrently.
	Measure(ctx context.Context, request *Request) (*nodewisev1.Measurement, error)
	// Hosts are the hosts that may be called, as in the field analysis_hosts of a snapshot: HOST or HOST:PORT, in lower case. A policy that
	// names another host is not accepted. It is called once.
	Hosts() []string
}
