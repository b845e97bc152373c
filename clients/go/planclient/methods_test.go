package planclient

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/nodewisev1"
)

// evaluating is a replica that has the method EvaluateNodes.
func evaluating(_ context.Context, request *nodewisev1.EvaluateNodesRequest) (*nodewisev1.EvaluateNodesResponse, error) {
	return &nodewisev1.EvaluateNodesResponse{NodeEvaluations: make([]uint32, len(request.GetNodes()))}, nil
}

// A replica that does not have the method is healthy and stays in use for other methods. If no replica has it, the error says so.
func TestReplicasWithoutTheMethodAreTooOld(t *testing.T) {
	replicas := three(t)
	request := &nodewisev1.EvaluateNodesRequest{Nodes: make([]*nodewisev1.NodeShape, 2)}
	old := newClient(t, replicas, WithTimeout(10*time.Second))
	_, err := old.EvaluateNodes(t.Context(), request)
	var unsupported *UnsupportedMethodError
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "does not have the method EvaluateNodes") ||
		status.Code(unsupported.Err) != codes.Unimplemented {
		t.Fatalf("got %v", err)
	}
	if _, err := ask(t, old, "a"); err != nil {
		t.Errorf("they plan: %v", err)
	}
	if err := old.Health(); err != nil {
		t.Errorf("they are healthy: %v", err)
	}
	replicas[1].setEvaluate(evaluating)
	response, err := old.EvaluateNodes(t.Context(), request)
	if err != nil || len(response.GetNodeEvaluations()) != 2 {
		t.Fatalf("got %v, %v", response, err)
	}
}

// A program that simulates shares its client with plans.
func TestReplicasWithoutSimulationsStayInUse(t *testing.T) {
	client := newClient(t, three(t), WithTimeout(10*time.Second))
	build := func(Receiver) (*nodewisev1.SimulateRequest, error) {
		return &nodewisev1.SimulateRequest{Snapshot: &nodewisev1.Snapshot{}}, nil
	}
	err := client.Simulate(t.Context(), "u1", build, func(*nodewisev1.SimulateResponse) error { return nil })
	var unsupported *UnsupportedMethodError
	if !errors.As(err, &unsupported) || unsupported.Method != "Simulate" {
		t.Fatalf("got %v", err)
	}
	if err := client.Health(); err != nil {
		t.Errorf("they are healthy: %v", err)
	}
	if _, err := ask(t, client, "a"); err != nil {
		t.Errorf("they plan: %v", err)
	}
}
