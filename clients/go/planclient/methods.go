package planclient

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/nodewisev1"
)

// UnsupportedMethodError says that the planning service does not have a method: all replicas have an older version. Other methods are answered.
type UnsupportedMethodError struct {
	// Method is the name of the method, for example EvaluateNodes.
	Method string
	// Err is the error of the call, which has a gRPC status.
	Err error
}

// Error names the method, and what to do.
func (e *UnsupportedMethodError) Error() string {
	return "the planning service is too old: it does not have the method " + e.Method + "; upgrade it"
}

// Unwrap returns the cause, so that errors.Is and status.Code find it.
func (e *UnsupportedMethodError) Unwrap() error { return e.Err }

// EvaluateNodes asks which DaemonSets would run on nodes that need not exist, and what their pods request there in sum. The package overhead builds
// the request from Kubernetes objects, and reads the response. Each replica is asked once. The error is an [*UnsupportedMethodError] where every
// replica is too old, else an [*UnreachableError] or a [*RefusedError].
func (c *Client) EvaluateNodes(
	ctx context.Context, request *nodewisev1.EvaluateNodesRequest,
) (*nodewisev1.EvaluateNodesResponse, error) {
	evaluate := func(
		client nodewisev1.ReconcileServiceClient, ctx context.Context, request *nodewisev1.EvaluateNodesRequest, options ...grpc.CallOption,
	) (*nodewisev1.EvaluateNodesResponse, error) {
		response, err := client.EvaluateNodes(ctx, request, options...)
		if status.Code(err) == codes.Unimplemented {
			return nil, &UnsupportedMethodError{Method: "EvaluateNodes", Err: err}
		}
		return response, err
	}
	return askEachOnce(ctx, c, "", request, evaluate)
}
