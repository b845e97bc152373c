package nodewise

import (
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"nodewise.dev/clients/go/internal/cluster"
)

// selects tells whether a DaemonSet is one that is owned.
type selects func(workload *cluster.DaemonSet) (bool, error)

// errNotSelected ends the building of a request about a DaemonSet that is not selected any more.
var errNotSelected = errors.New("the DaemonSet is not selected")

// WithSelector owns only DaemonSets whose labels the selector matches. It is read from the very object that the service plans for:
// what a filter in front of [Reconciler.Reconcile] sees may be older or newer, so such a filter saves work, and does not limit what is
// owned.
//
// A DaemonSet that is not selected is left alone: nothing is planned for it or written, and what was remembered of it is forgotten. It is
// taken up when its labels change so that it is selected. A plan whose writes have begun by then is brought to its end. With several
// selectors and predicates a DaemonSet must be selected by all of them.
func WithSelector(selector labels.Selector) Option {
	return func(c *config) {
		if selector == nil {
			c.mistakes = append(c.mistakes, errors.New("WithSelector was given nil: give a selector, or leave the option out to own all DaemonSets"))
			return
		}
		c.selection = append(c.selection, func(workload *cluster.DaemonSet) (bool, error) {
			return selector.Matches(workload.Labels), nil
		})
	}
}

// WithPredicate owns only DaemonSets for which the function answers true; see [WithSelector]. The function is given a copy of the very
// object that the service plans for. It is called from several goroutines, whenever the DaemonSet, its pods or the nodes change: when its
// answer depends on something else, add the DaemonSet to the queue once that changes, or wait for [WithResync].
func WithPredicate(owns func(*appsv1.DaemonSet) bool) Option {
	return func(c *config) {
		if owns == nil {
			c.mistakes = append(c.mistakes, errors.New("WithPredicate was given nil: give a function, or leave the option out to own all DaemonSets"))
			return
		}
		c.selection = append(c.selection, func(workload *cluster.DaemonSet) (bool, error) {
			object := new(appsv1.DaemonSet)
			if err := json.Unmarshal(workload.JSON, object); err != nil {
				return false, fmt.Errorf("reading the DaemonSet for the function of WithPredicate: %w", err)
			}
			return owns(object), nil
		})
	}
}

// requireSelected is [errNotSelected] for a DaemonSet that is not owned. What the user gave may take its time: no lock is held.
func (r *Reconciler) requireSelected(workload *cluster.DaemonSet) error {
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

// newest is the DaemonSet as the caches show it now, or as it was if it was replaced or is gone.
func (r *Reconciler) newest(workload *cluster.DaemonSet) *cluster.DaemonSet {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	if newer := r.state.store.DaemonSet(workload.Key); newer != nil && newer.UID == workload.UID {
		return newer
	}
	return workload
}

// leaveAlone forgets all that is remembered of a DaemonSet that is not selected.
func (r *Reconciler) leaveAlone(workload *cluster.DaemonSet) {
	r.next.forget(workload.Key)
	r.pace.forget(workload.Key)
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	r.state.forget(workload.Key)
}
