package planclient

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/internal/brief"
)

// opinionsNeeded is how many replicas a request may fail at, when it may be the request that fails, and how many have to find it
// too large. A request that fails everywhere must not cost the other workloads their replicas.
const opinionsNeeded = 2

// UnreachableError says that no replica answered in time: the same request may succeed later. Nothing may be written to the
// cluster.
type UnreachableError struct {
	// Reason is a sentence for people.
	Reason string
	// Err is the error of the last call, which has a gRPC status, or of the context; nil where no call was made.
	Err error
}

// Error says who did not answer, and how.
func (e *UnreachableError) Error() string {
	return "no replica of the planning service answered: " + e.Reason
}

// Unwrap is what it was made from, so that errors.Is and status.Code see it.
func (e *UnreachableError) Unwrap() error { return e.Err }

// RefusedError says that a replica refused the request itself. Nothing may be written to the cluster.
type RefusedError struct {
	// Reason is a sentence for people.
	Reason string
	// Err is the error of the call, which has a gRPC status.
	Err error
}

// Error says who refused it, and why.
func (e *RefusedError) Error() string {
	return "the planning service refused the request: " + e.Reason
}

// Unwrap is what it was made from, so that errors.Is and status.Code see it.
func (e *RefusedError) Unwrap() error { return e.Err }

// fault is where the fault of a failed call lies.
type fault int

const (
	// faultRequest: the request is wrong, whoever is asked.
	faultRequest fault = iota
	// faultSize: the request, or its answer, is too large for this replica; another may be set up to take more.
	faultSize
	// faultMoment: the replica is well, and cannot take this now: it is saturated, or loses buckets while they are sent.
	faultMoment
	// faultReplica: the replica, or the way to it: nothing answers there, or something that is no replica.
	faultReplica
	// faultUnclear: the replica, or the request, if it fails at others, too.
	faultUnclear
)

// failure is why a replica did not do as it was asked.
type failure struct {
	reason string
	// err is the error of the call.
	err   error
	fault fault
	// retryAfter is when it asked to come back; 0 when it did not.
	retryAfter time.Duration
}

func newFailure(replica *replica, err error) failure {
	said, reason := status.Convert(err), describe(replica, err)
	if violations := violations(said); violations != "" {
		reason += " (" + violations + ")"
	}
	retryAfter := time.Duration(0)
	for _, detail := range said.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			retryAfter = max(info.GetRetryDelay().AsDuration(), time.Nanosecond)
		}
	}
	return failure{reason: reason, err: err, fault: faultOf(said.Code(), retryAfter > 0), retryAfter: retryAfter}
}

// violations are the fields that a refusal names.
func violations(said *status.Status) string {
	var fields []string
	for _, detail := range said.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, violation := range bad.GetFieldViolations() {
				fields = append(fields, violation.GetField()+": "+violation.GetDescription())
			}
		}
	}
	return brief.Text(strings.Join(fields, "; "))
}

func faultOf(code codes.Code, hasRetryInfo bool) fault {
	switch code {
	case codes.InvalidArgument:
		return faultRequest
	case codes.ResourceExhausted:
		if hasRetryInfo {
			return faultMoment
		}
		return faultSize
	case codes.OutOfRange:
		return faultSize
	case codes.FailedPrecondition:
		return faultMoment
	// No replica says the last three. A server that has taken over the address of one does, or a proxy: as HTTP's 404, 403
	// and 401.
	case codes.Unavailable, codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated:
		return faultReplica
	default:
		return faultUnclear
	}
}

// judge draws the consequences of a failed call that are certain by now.
func (r *replicas) judge(uid string, replica *replica, failure failure) {
	switch failure.fault {
	case faultRequest, faultSize, faultMoment:
		// An answer all the same: it is there. One that has too much to do has not failed, and would not have less to do if
		// all of its workloads went elsewhere with cold caches.
		r.answered(replica)
	case faultReplica:
		r.failed(replica, failure.reason)
	case faultUnclear:
		if replica.failsAnother(uid) {
			r.failed(replica, failure.reason)
		}
	}
}

// opinions are what the replicas that were asked have said to one request.
type opinions struct {
	replicas *replicas
	// suspects are those that may be to blame, each once.
	suspects []*replica
	reasons  []string
	tooLarge int
	last     *failure
}

func (o *opinions) failed(replica *replica, failure failure) {
	switch failure.fault {
	case faultSize:
		o.tooLarge++
	case faultUnclear:
		if !slices.Contains(o.suspects, replica) {
			o.suspects, o.reasons = append(o.suspects, replica), append(o.reasons, failure.reason)
		}
	default:
	}
	o.last = &failure
}

// answered notes that this one answered: the fault is not the request's, but of those that failed before.
func (o *opinions) answered(by *replica) {
	for i, suspect := range o.suspects {
		if suspect != by {
			o.replicas.failed(suspect, o.reasons[i])
		}
	}
}

// verdict is an error when it is of no use to ask on, when there are so many replicas.
func (o *opinions) verdict(replicas int) error {
	switch {
	case o.last == nil:
		return nil
	case o.last.fault == faultRequest || o.tooLarge >= min(opinionsNeeded, max(replicas, 1)):
		return &RefusedError{Reason: o.last.reason, Err: o.last.err}
	case len(o.suspects) >= opinionsNeeded:
		return &UnreachableError{Reason: o.last.reason, Err: o.last.err}
	default:
		return nil
	}
}

func (o *opinions) retryAfter() time.Duration {
	if o.last == nil {
		return 0
	}
	return o.last.retryAfter
}

// unreachable is the error when nobody answered, or nobody was asked.
func (o *opinions) unreachable(ctx context.Context) error {
	var last error
	if o.last != nil {
		last = o.last.err
	}
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &UnreachableError{Reason: context.Cause(ctx).Error(), Err: errors.Join(ctx.Err(), context.Cause(ctx), last)}
	case o.last != nil:
		return &UnreachableError{Reason: o.last.reason, Err: last}
	default:
		reason := "there was no time to ask"
		if away := o.replicas.away(); away != nil {
			// That nobody answered is said already.
			reason = cmp.Or(away.reason, away.Error())
		}
		return &UnreachableError{Reason: reason, Err: ctx.Err()}
	}
}
