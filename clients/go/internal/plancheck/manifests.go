package plancheck

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

const (
	// nodeName is the JSON pointer to the name of the node in the manifest of a pod.
	nodeName = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0"

	podManifest      = "the plan's pod_manifest"
	revisionManifest = "its manifest"
)

// checkManifests checks everything that a plan creates: pods of the workload's template or of one of its revisions, and revisions of its
// template.
func checkManifests(plan *nodewisev1.Plan, actions []*nodewisev1.Action, asked *Asked, caches Caches) error {
	var workload any
	var isPodChecked bool
	for _, action := range actions {
		pod, revision := action.GetCreatePod(), action.GetCreateRevision()
		if pod == nil && revision == nil {
			continue
		}
		var err error
		if workload == nil {
			if workload, err = parse(asked.Workload.JSON, "the workload"); err != nil {
				return violationOf(action, "%v", err)
			}
		}
		if revision != nil {
			err = checkRevision(revision, workload, asked.Workload)
		} else {
			err = checkPodName(pod.GetPodName(), asked)
			if err == nil && !isPodChecked {
				isPodChecked = true
				err = checkPod(plan, actions, workload, asked, caches)
			}
		}
		if err != nil {
			return violationOf(action, "%v", err)
		}
	}
	return nil
}

func checkPodName(name string, asked *Asked) error {
	workload := asked.Workload.Key.Name
	if name == "" || isPodName(name, workload, asked.rules().podHash) {
		return nil
	}
	return fmt.Errorf("the pod name %q is not derived from the workload's name %q", name, workload)
}

// checkPod checks the manifest of the plan's pods.
func checkPod(plan *nodewisev1.Plan, actions []*nodewisev1.Action, workload any, asked *Asked, caches Caches) error {
	pod, err := parseWritten(plan.GetPodManifest(), podManifest)
	if err != nil {
		return err
	}
	if !asked.rules().hasNodes {
		err = checkNoPointers(plan.GetNodeNamePointers())
	} else {
		err = checkNodeName(plan.GetNodeNamePointers(), pod)
	}
	if err != nil {
		return err
	}
	if err := checkObject(podManifest, pod, "v1", "Pod", "spec"); err != nil {
		return err
	}
	allowed := []string{"annotations", "finalizers", "generateName", "labels", "name", "namespace", "ownerReferences"}
	if err := checkMetadata(podManifest, pod, asked.Workload, allowed); err != nil {
		return err
	}
	if err := checkGenerateName(rawjson.At(pod, "metadata", "generateName"), asked.Workload.Key.Name); err != nil {
		return err
	}
	if !asked.rules().hasNodes {
		return checkForAnyNode(actions, pod, workload)
	}
	difference := differenceFrom(pod, rawjson.At(workload, "spec", "template"))
	if difference == "" || slices.ContainsFunc(revisionsOf(asked, caches), func(revision []byte) bool {
		// A revision whose data cannot be read has no template to compare with.
		parsed, err := parse(revision, "a revision")
		template, isObject := rawjson.At(parsed, "data", "spec", "template").(object)
		return err == nil && isObject && differenceFrom(pod, template) == ""
	}) {
		return nil
	}
	return fmt.Errorf("%s has other %s than the workload's template and its revisions", podManifest, difference)
}

// checkForAnyNode checks pods that are for no node: they are exactly what the template says, and no more than there should be.
func checkForAnyNode(actions []*nodewisev1.Action, pod, workload any) error {
	creates := int64(0)
	for range created(actions) {
		creates++
	}
	replicas := replicasIn(workload)
	if replicas >= 0 && creates > replicas {
		return fmt.Errorf("the plan creates %d pods, and spec.replicas is %d", creates, replicas)
	}
	ofPod, ofTemplate := normal(pod), normal(rawjson.At(workload, "spec", "template"))
	for _, member := range []string{"labels", "annotations", "finalizers"} {
		if !equal(rawjson.At(ofPod, "metadata", member), rawjson.At(ofTemplate, "metadata", member)) {
			return fmt.Errorf("%s has other %s than the workload's template", podManifest, member)
		}
	}
	if !reflect.DeepEqual(ofPod["spec"], ofTemplate["spec"]) {
		return fmt.Errorf("%s has other spec than the workload's template", podManifest)
	}
	return nil
}

func quotedList(list []string) string {
	quoted := make([]string, len(list))
	for i, entry := range list {
		quoted[i] = strconv.Quote(entry)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// checkNoPointers checks that the name of no node is written into the pods.
func checkNoPointers(pointers []string) error {
	if len(pointers) > 0 {
		return fmt.Errorf("node_name_pointers is %s, where none belongs", quotedList(pointers))
	}
	return nil
}

// checkNodeName checks that each pod can run only on the node that its action names: the one required node selector term is that node's name.
func checkNodeName(pointers []string, pod any) error {
	if !slices.Equal(pointers, []string{nodeName}) {
		return fmt.Errorf("node_name_pointers is %s, where %q alone belongs", quotedList(pointers), nodeName)
	}
	terms := rawjson.At(pod, append([]string{"spec"}, nodeTerms...)...)
	name := rawjson.First(rawjson.At(rawjson.First(rawjson.At(rawjson.First(terms), "matchFields")), "values"))
	oneNode := object{"key": metav1.ObjectNameField, "operator": string(corev1.NodeSelectorOpIn), "values": []any{name}}
	if reflect.DeepEqual(terms, []any{object{"matchFields": []any{oneNode}}}) {
		return nil
	}
	return fmt.Errorf("%s requires of its node %s, where only the name of its action's node belongs", podManifest, text(terms))
}

// revisionsOf returns the revisions that the workload controls.
func revisionsOf(asked *Asked, caches Caches) [][]byte {
	revisions := caches.OwnRevisions()
	for _, revision := range asked.Live {
		if revision.Controller.GetUid() == string(asked.Workload.UID) {
			revisions = append(revisions, revision.JSON)
		}
	}
	return revisions
}

// differenceFrom returns the first field of a pod that differs from a template; empty if none does.
func differenceFrom(pod, template any) string {
	ofPod, ofTemplate := normal(pod), normal(template)
	switch {
	case !equal(labelsOf(ofPod["metadata"]), labelsOf(ofTemplate["metadata"])):
		return "labels"
	case !equal(rawjson.At(ofPod, "metadata", "annotations"), rawjson.At(ofTemplate, "metadata", "annotations")):
		return "annotations"
	case !equal(rawjson.At(ofPod, "metadata", "finalizers"), rawjson.At(ofTemplate, "metadata", "finalizers")):
		return "finalizers"
	case !toleratesAs(rawjson.At(ofPod, "spec", "tolerations"), rawjson.At(ofTemplate, "spec", "tolerations")):
		return "tolerations"
	case !equal(forAnyNode(rawjson.Object(ofPod, "spec")), forAnyNode(rawjson.Object(ofTemplate, "spec"))):
		return "spec"
	default:
		return ""
	}
}

func checkGenerateName(value any, workload string) error {
	// It is the name alone if the dash would make it too long.
	if value == nil || value == workload+"-" || len(workload) >= maxName && value == workload {
		return nil
	}
	return fmt.Errorf("%s has the metadata.generateName %s, which is not %q and a dash", podManifest, text(value), workload)
}

// checkRevision checks a revision to be created.
func checkRevision(create *nodewisev1.CreateRevision, workload any, asked *cluster.Workload) error {
	revision, err := parseWritten(create.GetManifest(), revisionManifest)
	if err != nil {
		return err
	}
	if err := checkObject(revisionManifest, revision, "apps/v1", "ControllerRevision", "data", "revision"); err != nil {
		return err
	}
	if !isInteger(rawjson.At(revision, "revision")) {
		return errors.New(revisionManifest + " has no number at revision")
	}
	allowed := []string{"annotations", "labels", "name", "namespace", "ownerReferences"}
	if err := checkMetadata(revisionManifest, revision, asked, allowed); err != nil {
		return err
	}
	if rawjson.At(revision, "metadata", "name") != create.GetName() || !isRevisionName(create.GetName(), asked.Key.Name) {
		return fmt.Errorf("the name %q of the revision is not the one of %s, or not derived from the workload's name %q",
			create.GetName(), revisionManifest, asked.Key.Name)
	}
	own := normal(rawjson.At(workload, "spec", "template"))
	if !equal(labelsOf(rawjson.At(revision, "metadata")), labelsOf(own["metadata"])) {
		return errors.New(revisionManifest + " has other labels than the workload's template")
	}
	annotations := rawjson.Object(workload, "metadata", "annotations")
	for key, value := range rawjson.Object(revision, "metadata", "annotations") {
		if own, has := annotations[key]; !has || !reflect.DeepEqual(own, value) {
			return errors.New(revisionManifest + " has other annotations than the workload")
		}
	}
	return checkData(rawjson.At(revision, "data"), own)
}

// checkData checks the data of a revision, which replaces the template by this one.
func checkData(data any, own object) error {
	for _, level := range []struct {
		path    string
		members object
		allowed string
	}{{"data.", rawjson.Object(data), "spec"}, {"data.spec.", rawjson.Object(data, "spec"), "template"}} {
		if other := otherThan(level.members, level.allowed); other != "" {
			return fmt.Errorf("%s has %s%s, which a plan may not set", revisionManifest, level.path, other)
		}
	}
	template := normal(rawjson.At(data, "spec", "template"))
	patch := template["$patch"]
	delete(template, "$patch")
	// If the workload's template has the member $patch, upstream writes the template into the revision without it.
	delete(own, "$patch")
	if patch != "replace" || !reflect.DeepEqual(template, own) {
		return errors.New(revisionManifest + " has other data than the workload's template")
	}
	return nil
}

// checkObject checks the apiVersion and kind of a manifest, and that it has no other members than these.
func checkObject(what string, manifest any, version, kind string, members ...string) error {
	members = append([]string{"apiVersion", "kind", "metadata"}, members...)
	if other := otherThan(rawjson.Object(manifest), members...); other != "" {
		return fmt.Errorf("%s has %s, which a plan may not set", what, other)
	}
	for _, expected := range [][2]string{{"apiVersion", version}, {"kind", kind}} {
		if value := rawjson.At(manifest, expected[0]); value != expected[1] {
			return fmt.Errorf("%s has %s %s, where %s belongs", what, expected[0], text(value), expected[1])
		}
	}
	return nil
}

// checkMetadata checks that an object is in the workload's namespace, that the workload is its controller and only owner, and that labels are
// strings.
func checkMetadata(what string, manifest any, workload *cluster.Workload, allowed []string) error {
	metadata := rawjson.Object(manifest, "metadata")
	if other := otherThan(metadata, allowed...); other != "" {
		return fmt.Errorf("%s has metadata.%s, which a plan may not set", what, other)
	}
	if namespace := metadata["namespace"]; namespace != nil && namespace != workload.Key.Namespace {
		return fmt.Errorf("%s is for namespace %s, and the workload is in %q", what, text(namespace), workload.Key.Namespace)
	}
	owners := rawjson.List(metadata, "ownerReferences")
	if len(owners) != 1 || !isOwner(owners[0], workload) {
		return fmt.Errorf("%s does not have the workload as its controller and only owner", what)
	}
	for key, value := range rawjson.Object(metadata, "labels") {
		if _, isString := value.(string); !isString {
			return fmt.Errorf("%s has label %s %s, which is no string", what, key, text(value))
		}
	}
	return nil
}
