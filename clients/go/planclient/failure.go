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

// enoughReplicas is at how many replicas a request fails before the client gives up on the request: replicas that find it too large, or
// that fail in a way that the request itself may cause. A request that fails at every replica must not evict them all.
const enoughReplicas = 2

// UnreachableError says that no replica answered in time. The same request may succeed later. The caller must write nothing to the
// cluster.
type UnreachableError struct {
	// Reason is a sentence for people.
	Reason string
	// Err is the error of the last call, which has a gRPC status, or of the context; nil where no call was made.
	Err error
}

// Error names the replica that failed last, and how.
func (e *UnreachableError) Error() string {
	return "no replica of the planning service answered: " + e.Reason
}

// Unwrap returns the cause, so that errors.Is and status.Code find it.
func (e *UnreachableError) Unwrap() error { return e.Err }

// RefusedError says that a replica refused the request itself. The caller must write nothing to the cluster.
type RefusedError struct {
	// Reason is a sentence for people.
	Reason string
	// Err is the error of the call, which has a gRPC status.
	Err error
}

// Error names the replica that refused the request, and why.
func (e *RefusedError) Error() string {
	return "the planning service refused the request: " + e.Reason
}

// Unwrap returns the cause, so that errors.Is and status.Code find it.
func (e *RefusedError) Unwrap() error { return e.Err }

// fault is what a failed call is attributed to.
type fault int

const (
	// faultRequest: the request is wrong. Every replica would refuse it.
	faultRequest fault = iota
	// faultSize: the request or its response is too large for this replica. Another replica may be configured to accept it.
	faultSize
	// faultMoment: the replica is healthy, but cannot answer now: it is saturated, or it evicts buckets while they are sent.
	faultMoment
	// faultReplica: the replica or the network: nothing answers at the address, or something that is no nodewise-server.
	faultReplica
	// faultTooOld: the replica is healthy, and too old: it does not plan for the kind of workload, or does not know a
	// feature that the snapshot needs, or does not have the method.
	faultTooOld
	// faultUnclear: the replica or the request. It is the request if it fails at other replicas, too.
	faultUnclear
)

// failure is a failed call to one replica.
type failure struct {
	// reason is a sentence for people.
	reason string
	// err is the error of the call.
	err   error
	fault fault
	// retryAfter is the delay of the RetryInfo detail; 0 without one.
	retryAfter time.Duration
}

func newFailure(replica *replica, err error) failure {
	failed, reason := status.Convert(err), describe(replica, err)
	if violations := violations(failed); violations != "" {
		reason += " (" + violations + ")"
	}
	retryAfter := time.Duration(0)
	for _, detail := range failed.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			retryAfter = max(info.GetRetryDelay().AsDuration(), time.Nanosecond)
		}
	}
	fault := faultOf(failed.Code(), retryAfter > 0)
	var old *UnsupportedMethodError
	if errors.As(err, &old) {
		fault = faultTooOld
	}
	return failure{reason: reason, err: err, fault: fault, retryAfter: retryAfter}
}

// violations lists the fields that the BadRequest detail names.
func violations(failed *status.Status) string {
	var fields []string
	for _, detail := range failed.Details() {
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
	// A replica never answers with the last three codes. Another server at the address does, or a proxy that answers with HTTP status
	// 404, 403 or 401.
	case codes.Unavailable, codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated:
		return faultReplica
	default:
		return faultUnclear
	}
}

// callFailed records a failed call, and evicts the replica if the failure is certainly its own.
func (r *replicas) callFailed(uid string, replica *replica, failure failure) {
	switch failure.fault {
	case faultRequest, faultSize, faultMoment, faultTooOld:
		// The replica did answer, so it is reachable. A saturated replica is not evicted: its workloads would move to replicas
		// without their buckets, which makes more work in total.
		r.answered(replica)
	case faultReplica:
		r.failed(replica, failure.reason)
	case faultUnclear:
		if replica.failsAnother(uid) {
			r.failed(replica, failure.reason)
		}
	}
}

// callFailures collects the failures of the replicas that were asked in one call.
type callFailures struct {
	replicas *replicas
	// suspects are the replicas whose failure may be theirs or the request's. Each is listed once.
	suspects []*replica
	// reasons are those of the suspects, in the same order.
	reasons  []string
	tooLarge int
	// tooOld are the replicas that are too old for the request.
	tooOld []*replica
	last   *failure
}

func (f *callFailures) add(replica *replica, failure failure) {
	switch failure.fault {
	case faultSize:
		f.tooLarge++
	case faultTooOld:
		if !slices.Contains(f.tooOld, replica) {
			f.tooOld = append(f.tooOld, replica)
		}
	case faultUnclear:
		if !slices.Contains(f.suspects, replica) {
			f.suspects, f.reasons = append(f.suspects, replica), append(f.reasons, failure.reason)
		}
	default:
	}
	f.last = &failure
}

// answeredBy records that a replica answered the request. So the request is right, and the suspects that failed before are evicted.
func (f *callFailures) answeredBy(replica *replica) {
	for i, suspect := range f.suspects {
		if suspect != replica {
			f.replicas.failed(suspect, f.reasons[i])
		}
	}
}

// final returns the error of the call if another attempt would not help, and nil otherwise. The argument is how many replicas there are.
func (f *callFailures) final(replicas int) error {
	switch {
	case f.last == nil:
		return nil
	case f.last.fault == faultRequest || f.tooLarge >= min(enoughReplicas, max(replicas, 1)):
		return &RefusedError{Reason: f.last.reason, Err: f.last.err}
	case f.last.fault == faultTooOld && len(f.tooOld) >= max(replicas, 1):
		return f.last.err
	case len(f.suspects) >= enoughReplicas:
		return &UnreachableError{Reason: f.last.reason, Err: f.last.err}
	default:
		return nil
	}
}

func (f *callFailures) retryAfter() time.Duration {
	if f.last == nil {
		return 0
	}
	return f.last.retryAfter
}

// unreachable returns the error of a call that no replica answered, or for which no replica could be asked.
func (f *callFailures) unreachable(ctx context.Context) error {
	var last error
	if f.last != nil {
		last = f.last.err
	}
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &UnreachableError{Reason: context.Cause(ctx).Error(), Err: errors.Join(ctx.Err(), context.Cause(ctx), last)}
	case f.last != nil:
		return &UnreachableError{Reason: f.last.reason, Err: last}
	default:
		reason := "the deadline passed before a replica could be asked"
		if away := f.replicas.away(); away != nil {
			// The message of UnreachableError already says that no replica answered.
			reason = cmp.Or(away.reason, away.Error())
		}
		return &UnreachableError{Reason: reason, Err: ctx.Err()}
	}
}
