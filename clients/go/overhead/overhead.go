// Package overhead asks the planning service which DaemonSets would run on nodes that need not exist, and what their pods request there. An
// autoscaler subtracts that from what a new node offers.
//
// The answer is that of the DaemonSet controller: it looks at every term of an affinity, at the operators of tolerations, and at the tolerations
// that every daemon pod gets. The requests are those of Kubernetes' PodRequests, after the defaults that the apiserver sets in a pod.
//
//	client, err := planclient.New(ctx, []string{"http://127.0.0.1:7443"})
//	...
//	answer, err := overhead.Evaluate(ctx, client, []overhead.Shape{{Labels: labels, Taints: taints}}, daemonSets)
//	...
//	requests := answer.Nodes[0].Requests // {"cpu": "250m", "memory": "384Mi", "pods": "3"}
package overhead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodewise.dev/clients/go/nodewisev1"
)

// Client calls the planning service. A [planclient.Client] is one.
//
// [planclient.Client]: https://pkg.go.dev/nodewise.dev/clients/go/planclient#Client
type Client interface {
	EvaluateNodes(ctx context.Context, request *nodewisev1.EvaluateNodesRequest) (*nodewisev1.EvaluateNodesResponse, error)
}

// Shape is what the DaemonSet controller would see of a node.
type Shape struct {
	// Name is the name of the node; empty if it is not known. Only templates that name nodes depend on it.
	Name string
	// Labels are those that the node will have, with those that the kubelet and the cloud provider set.
	Labels map[string]string
	// Taints are those that stay. Leave out the ones that are removed once the node has started.
	Taints []corev1.Taint
}

// ShapeOf is the shape of an existing node.
func ShapeOf(node *corev1.Node) Shape {
	return Shape{Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints}
}

// Answer is the answer about all nodes.
type Answer struct {
	// Nodes has an entry for each shape, in order. Nodes on which the DaemonSets behave alike share it: do not change it.
	Nodes []*Node
	// DaemonSets has an entry for each DaemonSet, in order.
	DaemonSets []DaemonSet
}

// Node says what runs on a node.
type Node struct {
	// Requests is the sum of the requests of all pods that would run. It always has `pods`, their number.
	Requests corev1.ResourceList
	// Incomplete is true if Requests is too small because a DaemonSet could not be read: its Err says why.
	Incomplete bool
	// Decisions has an entry for each DaemonSet, in order.
	Decisions []*Decision
}

// Decision says whether a DaemonSet would run on a node, and why.
type Decision struct {
	// Runs is true if the DaemonSet controller would create a pod.
	Runs bool
	// Rule is the rule that decides; RULE_UNSPECIFIED if the DaemonSet could not be read.
	Rule nodewisev1.Rule
	// Message is a sentence for people.
	Message string
	// MissingLabels are the labels that the node does not have, and that could turn the decision around.
	MissingLabels []string
}

// DaemonSet is what one pod of a DaemonSet requests.
type DaemonSet struct {
	// Requests are the requests of one pod.
	Requests corev1.ResourceList
	// Err says why the DaemonSet or its requests could not be read; nil if they could.
	Err error
	// Notes say what the template does not tell, for people.
	Notes []string
}

// Evaluate asks about all shapes and DaemonSets in one call. The error is that of the client, or says that a DaemonSet cannot be written as JSON.
// A DaemonSet that the service cannot read has an error of its own.
func Evaluate(ctx context.Context, client Client, shapes []Shape, daemonSets []*appsv1.DaemonSet) (*Answer, error) {
	request := &nodewisev1.EvaluateNodesRequest{}
	for _, shape := range shapes {
		request.Nodes = append(request.Nodes, shape.message())
	}
	for _, set := range daemonSets {
		message, err := message(set)
		if err != nil {
			return nil, err
		}
		request.DaemonSets = append(request.DaemonSets, message)
	}
	response, err := client.EvaluateNodes(ctx, request)
	if err != nil {
		return nil, err
	}
	return answer(response, len(shapes), len(daemonSets))
}

func (s Shape) message() *nodewisev1.NodeShape {
	shape := &nodewisev1.NodeShape{Name: s.Name}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		shape.Labels = append(shape.Labels, &nodewisev1.Label{Key: key, Value: s.Labels[key]})
	}
	for _, taint := range s.Taints {
		shape.Taints = append(shape.Taints, &nodewisev1.Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)})
	}
	return shape
}

func message(set *appsv1.DaemonSet) (*nodewisev1.DaemonSet, error) {
	written := *set
	written.ManagedFields = nil
	object, err := json.Marshal(&written)
	if err != nil {
		return nil, fmt.Errorf("writing DaemonSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return &nodewisev1.DaemonSet{Object: object}, nil
}

// errForeign says that a response does not fit its request.
var errForeign = errors.New("the planning service answered about other nodes or DaemonSets than it was asked about")

// answer resolves the indices of a response.
func answer(response *nodewisev1.EvaluateNodesResponse, shapes, daemonSets int) (*Answer, error) {
	if len(response.GetNodeEvaluations()) != shapes || len(response.GetDaemonSets()) != daemonSets {
		return nil, errForeign
	}
	answer := &Answer{}
	for _, set := range response.GetDaemonSets() {
		requests, err := list(set.GetRequests())
		if err != nil {
			return nil, err
		}
		if said := set.GetError(); said != "" {
			err = fmt.Errorf("DaemonSet %s/%s: %s", set.GetNamespace(), set.GetName(), said)
		}
		answer.DaemonSets = append(answer.DaemonSets, DaemonSet{Requests: requests, Err: err, Notes: set.GetNotes()})
	}
	decisions := make([]*Decision, 0, len(response.GetDecisions()))
	for _, decision := range response.GetDecisions() {
		decisions = append(decisions, &Decision{
			Runs: decision.GetRuns(), Rule: decision.GetRule(), Message: decision.GetMessage(), MissingLabels: decision.GetMissingLabels(),
		})
	}
	nodes := make([]*Node, 0, len(response.GetEvaluations()))
	for _, evaluation := range response.GetEvaluations() {
		node, err := read(evaluation, decisions, daemonSets)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	for _, index := range response.GetNodeEvaluations() {
		if int(index) >= len(nodes) {
			return nil, errForeign
		}
		answer.Nodes = append(answer.Nodes, nodes[index])
	}
	return answer, nil
}

func read(evaluation *nodewisev1.NodeEvaluation, decisions []*Decision, daemonSets int) (*Node, error) {
	requests, err := list(evaluation.GetRequests())
	if err != nil {
		return nil, err
	}
	if len(evaluation.GetDecisions()) != daemonSets {
		return nil, errForeign
	}
	node := &Node{Requests: requests, Incomplete: evaluation.GetIsIncomplete()}
	for _, index := range evaluation.GetDecisions() {
		if int(index) >= len(decisions) {
			return nil, errForeign
		}
		node.Decisions = append(node.Decisions, decisions[index])
	}
	return node, nil
}

func list(quantities []*nodewisev1.ResourceQuantity) (corev1.ResourceList, error) {
	list := make(corev1.ResourceList, len(quantities))
	for _, one := range quantities {
		quantity, err := resource.ParseQuantity(one.GetQuantity())
		if err != nil {
			return nil, fmt.Errorf("the planning service answered with %s of %q: %w", one.GetName(), one.GetQuantity(), err)
		}
		list[corev1.ResourceName(one.GetName())] = quantity
	}
	return list, nil
}
