package plancheck

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// checkReplicaSet checks a ReplicaSet that the plan of a Deployment creates: it is of the Deployment's template, with the label of the template's
// hash.
func checkReplicaSet(create *nodewisev1.CreateObject, workload any, owner *cluster.Workload) error {
	const what = "its manifest"
	set, err := parseWritten(create.GetManifest(), what)
	if err != nil {
		return err
	}
	if err := checkObject(what, set, "apps/v1", "ReplicaSet", "spec"); err != nil {
		return err
	}
	if err := checkMetadata(what, set, owner, []string{"annotations", "labels", "name", "namespace", "ownerReferences"}); err != nil {
		return err
	}
	if err := checkAnnotations(rawjson.Object(set, "metadata"), workload, what); err != nil {
		return err
	}
	hash, isDerived := templateHash(create.GetName(), owner.Key.Name)
	if !isDerived || rawjson.At(set, "metadata", "name") != create.GetName() {
		return fmt.Errorf("the name %q of the ReplicaSet is not the one of %s, or not derived from the workload's name %q",
			create.GetName(), what, owner.Key.Name)
	}
	spec := rawjson.Object(set, "spec")
	if other := otherThan(spec, "minReadySeconds", "replicas", "selector", "template"); other != "" {
		return fmt.Errorf("%s has spec.%s, which a plan may not set", what, other)
	}
	if err := checkReplicas(spec["replicas"], what); err != nil {
		return err
	}
	size, _ := integer(spec["replicas"])
	if most := maxSize(workload); size > most {
		return fmt.Errorf("%s sets spec.replicas to %d, and %d is the most", what, size, most)
	}
	if err := checkMinReadySeconds(spec["minReadySeconds"], workload, what); err != nil {
		return err
	}
	return checkTemplateAndSelector(what, set, workload, hash)
}

// checkTemplateAndSelector checks that template, selector and labels are the workload's, with the label of the hash.
func checkTemplateAndSelector(what string, set, workload any, hash string) error {
	selector, ownSelector := rawjson.At(set, "spec", "selector"), rawjson.At(workload, "spec", "selector")
	if other := otherThan(rawjson.Object(selector), "matchExpressions", "matchLabels"); other != "" {
		return fmt.Errorf("%s has spec.selector.%s, which a plan may not set", what, other)
	}
	template, ownTemplate := rawjson.At(set, "spec", "template"), rawjson.At(workload, "spec", "template")
	ownLabels := rawjson.Object(ownTemplate, "metadata", "labels")
	for _, labels := range []struct {
		found, own object
		of         string
	}{
		{rawjson.Object(set, "metadata", "labels"), ownLabels, "labels"},
		{rawjson.Object(template, "metadata", "labels"), ownLabels, "labels in its template"},
		{rawjson.Object(selector, "matchLabels"), rawjson.Object(ownSelector, "matchLabels"), "labels in its selector"},
	} {
		if err := checkLabelsWithHash(labels.found, labels.own, hash); err != nil {
			return fmt.Errorf("%s has %w %s", what, err, labels.of)
		}
	}
	if !reflect.DeepEqual(rawjson.At(selector, "matchExpressions"), rawjson.At(ownSelector, "matchExpressions")) {
		return fmt.Errorf("%s has another selector than the workload", what)
	}
	if !reflect.DeepEqual(withoutHash(template), withoutHash(ownTemplate)) {
		return fmt.Errorf("%s has another template than the workload", what)
	}
	return nil
}

var (
	errNoHash      = errors.New("not the hash of its name among the")
	errOtherLabels = errors.New("other than the workload's")
)

// checkLabelsWithHash checks that labels are the workload's and that of the hash.
func checkLabelsWithHash(labels, own object, hash string) error {
	labels, own = maps.Clone(labels), maps.Clone(own)
	delete(own, appsv1.DefaultDeploymentUniqueLabelKey)
	if labels[appsv1.DefaultDeploymentUniqueLabelKey] != hash {
		return errNoHash
	}
	delete(labels, appsv1.DefaultDeploymentUniqueLabelKey)
	if !equal(labels, own) {
		return errOtherLabels
	}
	return nil
}
