package nodewise

import (
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"nodewise.dev/clients/go/internal/cluster"
)

// selects reports whether a workload is owned.
type selects func(workload *cluster.Workload) (bool, error)

// errNotSelected says that a workload is not selected, or not any more.
var errNotSelected = errors.New("the workload is not selected")

// WithSelector owns only workloads whose labels match the selector. It is evaluated with the same object that the service plans for. A filter
// in front of [Reconciler.Reconcile] sees an older or newer object: it saves work, but does not limit what is owned.
//
// For a workload that is not selected the Reconciler requests no plan and writes nothing, and it drops the state of the workload. When the
// labels change so that the workload is selected, the Reconciler takes it over. When they change so that it is no longer selected, a plan
// whose writes have begun is completed. With several selectors and predicates a workload must be selected by all of them.
func WithSelector(selector labels.Selector) Option {
	return func(c *config) {
		if selector == nil {
			c.mistakes = append(c.mistakes, errors.New("WithSelector was given nil: give a selector, or leave the option out to own all DaemonSets"))
			return
		}
		c.selection = append(c.selection, func(workload *cluster.Workload) (bool, error) {
			return selector.Matches(workload.Labels), nil
		})
	}
}

// WithPredicate owns only DaemonSets for which the function returns true; see [WithSelector]. The function gets a copy of the object that the
// service plans for. It is called concurrently, and whenever the DaemonSet, its pods or the nodes change. If its result depends on anything
// else, add the DaemonSet to the queue when that changes, or wait for [WithResync]. Workloads of other kinds are not limited by the function.
func WithPredicate(owns func(*appsv1.DaemonSet) bool) Option {
	return func(c *config) {
		if owns == nil {
			c.mistakes = append(c.mistakes, errors.New("WithPredicate was given nil: give a function, or leave the option out to own all DaemonSets"))
			return
		}
		c.selection = append(c.selection, func(workload *cluster.Workload) (bool, error) {
			if workload.Kind != cluster.DaemonSet {
				return true, nil
			}
			object := new(appsv1.DaemonSet)
			if err := json.Unmarshal(workload.JSON, object); err != nil {
				return false, fmt.Errorf("reading the DaemonSet for the function of WithPredicate: %w", err)
			}
			return owns(object), nil
		})
	}
}

// requireSelected returns [errNotSelected] for a workload that is not owned. No lock is held, because the user's function may be slow.
func (r *controller) requireSelected(workload *cluster.Workload) error {
	for _, selects := range r.config.selection {
		selected, err := selects(workload)
		if err != nil {
			return &failure{reason: err}
		}
		if !selected {
			return errNotSelected
		}
	}
	return nil
}

// newest returns the workload as the caches show it now, or the same object if it was replaced or is gone.
func (r *controller) newest(workload *cluster.Workload) *cluster.Workload {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	if newer := r.state.store.Workload(r.kind.Kind, workload.Key); newer != nil && newer.UID == workload.UID {
		return newer
	}
	return workload
}

// forgetUnselected drops the state of a workload that is not selected.
func (r *controller) forgetUnselected(workload *cluster.Workload) {
	r.prefetched.forget(workload.Key)
	r.requeues.forget(workload.Key)
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	r.state.forget(workload.Key)
}
