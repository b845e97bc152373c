package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	nodewise "nodewise.dev/clients/go"
)

const daemonSetController = "daemonset-controller"

// namedController is a controller by its names in kube-controller-manager.
type namedController struct {
	name, alias string
	kind        nodewise.Kind
}

// isNamedBy reports whether an entry of a list names the controller, with or without a dash.
func (c namedController) isNamedBy(entry string) bool {
	name := strings.TrimPrefix(entry, "-")
	return name == c.name || name == c.alias
}

// allControllers are the controllers that this program has.
var allControllers = []namedController{
	{daemonSetController, "daemonset", nodewise.DaemonSets},
	{"deployment-controller", "deployment", nodewise.Deployments},
	{"replicaset-controller", "replicaset", nodewise.ReplicaSets},
}

// kindsOf returns the kinds whose controllers a list enables. The first entry with the name of a controller decides; without one, * does.
func kindsOf(list string) ([]nodewise.Kind, error) {
	entries := strings.Split(list, ",")
	for _, entry := range entries {
		isKnown := slices.ContainsFunc(allControllers, func(known namedController) bool { return known.isNamedBy(entry) })
		if entry != "*" && !isKnown {
			return nil, fmt.Errorf("there is no controller %q; there are daemonset-controller, deployment-controller and replicaset-controller", entry)
		}
	}
	var kinds []nodewise.Kind
	for _, known := range allControllers {
		named := slices.IndexFunc(entries, known.isNamedBy)
		isEnabled := slices.Contains(entries, "*")
		if named >= 0 {
			isEnabled = !strings.HasPrefix(entries[named], "-")
		}
		if isEnabled {
			kinds = append(kinds, known.kind)
		}
	}
	if len(kinds) == 0 {
		return nil, errors.New("the list enables no controller")
	}
	return kinds, nil
}
