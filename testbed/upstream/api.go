package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apps "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxName is the longest object name that an apiserver accepts.
	maxName = 253
	// firstVersion is the resource version of the first write. The objects of a case have lower ones.
	firstVersion = 1_000_000
)

// api is the fake API of one run: the objects of the case's caches, changed by its `live`, and the calls so far.
type api struct {
	mutex sync.Mutex
	// The cache shares these objects, so they are replaced and never modified.
	objects map[objectKey]apiObject
	// deleting has the revisions that are in deletion according to the case's caches.
	deleting map[objectKey]bool
	faults   []activeFault
	// created has the names of created pods.
	created map[string]bool
	// numbersPods is whether the names of created pods in outcomes and faults are their numbers, not their nodes.
	numbersPods bool
	// pods counts the creates of pods.
	pods    int
	version int
	calls   []recordedCall
	// before has the objects at the start, which a write of this run changed; nil for those that did not exist.
	before map[objectKey]apiObject
	// repeats is whether a write with the version at the start succeeds although another write of this run came between.
	repeats bool
	// turns is in which order concurrent calls are answered. Without it, Go's scheduler decides.
	turns *turns
	// onPatch is called with each patched object. It may be nil.
	onPatch func(resource string, object apiObject)
}

type objectKey struct{ resource, namespace, name string }

type apiObject interface {
	meta.Object
	runtime.Object
}

type activeFault struct {
	fault
	// hits counts the calls that this fault has rejected.
	hits int
}

// recordedCall is a write in an outcome.
type recordedCall struct {
	Op   string `json:"op"`
	Name string `json:"name"`
	Body string `json:"body"`
	Code int    `json:"code"`
}

func (a recordedCall) compare(b recordedCall) int {
	return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Body, b.Body), cmp.Compare(a.Code, b.Code))
}

// newAPI returns the API that the case describes.
func newAPI(c *cluster) *api {
	a := &api{
		objects:     map[objectKey]apiObject{},
		deleting:    map[objectKey]bool{},
		created:     map[string]bool{},
		version:     firstVersion,
		before:      map[objectKey]apiObject{},
		repeats:     c.kind.writesTwice,
		numbersPods: c.kind.resource == replicaSetResource,
	}
	a.putAll(daemonSetResource, asObjects(c.daemonSets))
	a.putAll(replicaSetResource, asObjects(c.replicaSets))
	a.putAll(deploymentResource, asObjects(c.deployments))
	a.putAll(podResource, asObjects(c.pods))
	a.putAll(revisionResource, asObjects(slices.Concat(c.revisions, c.unseen)))
	for resource, objects := range c.changed {
		a.putAll(resource, objects)
	}
	subject := c.subject()
	delete(a.objects, objectKey{c.kind.resource, subject.GetNamespace(), subject.GetName()})
	if c.live != nil {
		a.put(c.kind.resource, c.live)
	}
	for _, revision := range c.revisions {
		a.deleting[objectKey{revisionResource, revision.Namespace, revision.Name}] = revision.DeletionTimestamp != nil
	}
	for _, gone := range c.gone() {
		delete(a.objects, gone)
	}
	for _, fault := range c.Faults {
		a.faults = append(a.faults, activeFault{fault: fault})
	}
	return a
}

func (a *api) putAll(resource string, objects []apiObject) {
	for _, object := range objects {
		a.put(resource, object)
	}
}

func (a *api) put(resource string, object apiObject) {
	a.objects[objectKey{resource, object.GetNamespace(), object.GetName()}] = object
}

// serve answers a call and records it unless it is a read. A repeated delete of an object in deletion changes nothing,
// and Nodewise does not make it. So it always succeeds and is not recorded.
func (a *api) serve(c call) (code int, answer []byte) {
	if a.turns != nil {
		a.turns.wait()
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	op, name := c.operation()
	if op == "create-pod" && a.numbersPods {
		a.pods++
		name = strconv.Itoa(a.pods)
	}
	isRepeated := c.method == http.MethodDelete && a.deleting[objectKey{c.resource, c.namespace, c.name}]
	var object any = success
	code, err := http.StatusOK, error(nil)
	if !isRepeated {
		object, code, err = a.answer(op, name, &c)
	}
	if err != nil {
		var refusal *apierrors.StatusError
		if !errors.As(err, &refusal) {
			refusal = refuse(http.StatusBadRequest, meta.StatusReasonBadRequest, err.Error())
		}
		object, code = refusal.ErrStatus, int(refusal.ErrStatus.Code)
	}
	if c.method != http.MethodGet && !isRepeated {
		a.calls = append(a.calls, recordedCall{Op: op, Name: name, Body: string(c.body), Code: code})
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("encoding the answer to %s %s: %v", op, name, err))
	}
	return code, text
}

func (a *api) answer(op, name string, c *call) (object any, code int, err error) {
	if err := a.fault(op, name); err != nil {
		return nil, 0, err
	}
	switch c.method {
	case http.MethodPost:
		object, err = a.create(c, name)
		return object, http.StatusCreated, err
	case http.MethodGet:
		object, err = a.get(c)
	case http.MethodPatch:
		object, err = a.patch(c)
	case http.MethodPut:
		object, err = a.replace(c)
	case http.MethodDelete:
		object, err = a.delete(c)
	default:
		err = refuse(http.StatusMethodNotAllowed, meta.StatusReasonMethodNotAllowed, "")
	}
	return object, http.StatusOK, err
}

// fault returns the error of the first fault of the case that matches a call.
func (a *api) fault(op, name string) error {
	for i := range a.faults {
		fault := &a.faults[i]
		if fault.Op != op || (fault.Name != "" && fault.Name != name) || (fault.Times > 0 && fault.hits >= fault.Times) {
			continue
		}
		fault.hits++
		refusal := refuse(fault.Code, meta.StatusReason(fault.Reason), "")
		if fault.Cause != "" {
			refusal.ErrStatus.Details = &meta.StatusDetails{Causes: []meta.StatusCause{{Type: meta.CauseType(fault.Cause)}}}
		}
		return refusal
	}
	return nil
}

func (a *api) find(c *call) (apiObject, error) {
	object, ok := a.objects[objectKey{c.resource, c.namespace, c.name}]
	if !ok {
		return nil, refuse(http.StatusNotFound, meta.StatusReasonNotFound, "")
	}
	return object, nil
}

func (a *api) get(c *call) (any, error) {
	found, err := a.find(c)
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (a *api) create(c *call, name string) (any, error) {
	if c.resource == podResource {
		return a.createPod(c, name)
	}
	decode, ok := decoders[c.resource]
	if !ok {
		return nil, refuse(http.StatusNotFound, meta.StatusReasonNotFound, "")
	}
	created, err := decode("the body", c.body)
	if err != nil {
		return nil, err
	}
	if len(created.GetName()) > maxName {
		return nil, refuse(http.StatusUnprocessableEntity, meta.StatusReasonInvalid, "")
	}
	if _, taken := a.objects[objectKey{c.resource, c.namespace, created.GetName()}]; taken {
		return nil, refuse(http.StatusConflict, meta.StatusReasonAlreadyExists, "")
	}
	a.complete(created)
	if c.resource == replicaSetResource {
		created.SetGeneration(1)
	}
	a.store(c.resource, created)
	return created, nil
}

// store replaces an object, and remembers the one at the start.
func (a *api) store(resource string, object apiObject) {
	a.remember(objectKey{resource, object.GetNamespace(), object.GetName()})
	a.put(resource, object)
}

func (a *api) remember(key objectKey) {
	if _, known := a.before[key]; !known {
		a.before[key] = a.objects[key]
	}
}

// createPod names a pod without a name after its node or number, so that outcomes of several runs are comparable.
func (a *api) createPod(c *call, node string) (any, error) {
	created := c.pod
	if created == nil {
		return nil, errors.New("the body is no pod")
	}
	if created.Name == "" {
		created.Name = created.GenerateName + "@" + node
		for n := 2; a.created[created.Name]; n++ {
			created.Name = fmt.Sprintf("%s@%s@%d", created.GenerateName, node, n)
		}
	}
	a.created[created.Name] = true
	a.complete(created)
	return created, nil
}

// complete sets uid and resource version, as an apiserver does for a new object.
func (a *api) complete(object apiObject) {
	version := a.nextVersion()
	object.SetUID(types.UID("uid-" + version))
	object.SetResourceVersion(version)
}

func (a *api) nextVersion() string {
	a.version++
	return strconv.Itoa(a.version)
}

func (a *api) patch(c *call) (any, error) {
	found, err := a.find(c)
	if err != nil {
		return nil, err
	}
	var patch patchBody
	if err := json.Unmarshal(c.body, &patch); err != nil {
		return nil, fmt.Errorf("the patch: %w", err)
	}
	if uid := patch.Metadata.UID; uid != "" && uid != string(found.GetUID()) {
		return nil, refuse(http.StatusConflict, meta.StatusReasonConflict, "")
	}
	patched, err := applyPatch(c.contentType, c.body, c.resource, found)
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, meta.StatusReasonInvalid, err.Error())
	}
	patched.SetResourceVersion(a.nextVersion())
	a.store(c.resource, patched)
	if a.onPatch != nil {
		a.onPatch(c.resource, patched)
	}
	return patched, nil
}

func (a *api) replace(c *call) (any, error) {
	found, err := a.find(c)
	if err != nil {
		return nil, err
	}
	decode, ok := decoders[c.resource]
	if !ok {
		return nil, refuse(http.StatusMethodNotAllowed, meta.StatusReasonMethodNotAllowed, "")
	}
	body, err := decode("the body", c.body)
	if err != nil {
		return nil, err
	}
	if c.resource != revisionResource && !a.isCurrent(c, body, found) {
		return nil, refuse(http.StatusConflict, meta.StatusReasonConflict, "")
	}
	replaced, err := replacement(c, body, found)
	if err != nil {
		return nil, err
	}
	replaced.SetResourceVersion(a.nextVersion())
	a.store(c.resource, replaced)
	return replaced, nil
}

// isCurrent returns whether a body has the version of the stored object.
func (a *api) isCurrent(c *call, body, stored apiObject) bool {
	before, written := a.before[objectKey{c.resource, c.namespace, c.name}]
	return body.GetResourceVersion() == stored.GetResourceVersion() ||
		a.repeats && written && before != nil && body.GetResourceVersion() == before.GetResourceVersion()
}

// replacement returns what is stored: of a write of the status the status and the annotations, of other writes all but
// the status.
func replacement(c *call, body, stored apiObject) (apiObject, error) {
	isStatus := c.subresource == "status"
	switch body := body.(type) {
	case *apps.ControllerRevision:
		return body, nil
	case *apps.DaemonSet:
		if isStatus {
			replaced := *stored.(*apps.DaemonSet)
			replaced.Status = body.Status
			return &replaced, nil
		}
	case *apps.ReplicaSet:
		stored := stored.(*apps.ReplicaSet)
		if isStatus {
			replaced := *stored
			replaced.Status, replaced.Annotations = body.Status, body.Annotations
			return &replaced, nil
		}
		body.Status, body.Generation = stored.Status, stored.Generation+1
		return body, nil
	case *apps.Deployment:
		stored := stored.(*apps.Deployment)
		if isStatus {
			replaced := *stored
			replaced.Status, replaced.Annotations = body.Status, body.Annotations
			return &replaced, nil
		}
		body.Status, body.Generation = stored.Status, stored.Generation+1
		return body, nil
	}
	return nil, refuse(http.StatusMethodNotAllowed, meta.StatusReasonMethodNotAllowed, "")
}

// delete removes an object. A pod stays, as during its grace period.
func (a *api) delete(c *call) (any, error) {
	if _, err := a.find(c); err != nil {
		return nil, err
	}
	if c.resource != podResource {
		key := objectKey{c.resource, c.namespace, c.name}
		a.remember(key)
		delete(a.objects, key)
	}
	return success, nil
}

// stored returns what the run changed of the ReplicaSets and Deployments that it wrote. The writes of other objects are
// told by the calls alone.
func (a *api) stored() ([]storedObject, error) {
	stored := []storedObject{}
	for key, before := range a.before {
		if key.resource != replicaSetResource && key.resource != deploymentResource {
			continue
		}
		changes, err := changes(before, a.objects[key])
		if err != nil {
			return nil, fmt.Errorf("what changed of %s/%s: %w", key.resource, key.name, err)
		}
		stored = append(stored, storedObject{Resource: key.resource, Name: key.name, Changes: changes})
	}
	return stored, nil
}

// changes returns a JSON merge patch from one object to another; either may be nil.
func changes(before, after apiObject) (json.RawMessage, error) {
	if after == nil {
		return json.RawMessage("null"), nil
	}
	to, err := json.Marshal(after)
	if err != nil || before == nil {
		return to, err
	}
	from, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(from, to)
}

// refuse returns the error of an apiserver.
func refuse(code int, reason meta.StatusReason, detail string) *apierrors.StatusError {
	message := fmt.Sprintf("%s (%d)", reason, code)
	if detail != "" {
		message += ": " + detail
	}
	return &apierrors.StatusError{ErrStatus: meta.Status{
		TypeMeta: statusKind,
		Status:   meta.StatusFailure,
		Code:     int32(code),
		Reason:   reason,
		Message:  message,
	}}
}

// success is the response to a delete.
var success = &meta.Status{TypeMeta: statusKind, Status: meta.StatusSuccess}

// statusKind is how a client recognizes a Status. Other objects need no kind, because a typed client knows it.
var statusKind = meta.TypeMeta{APIVersion: "v1", Kind: "Status"}
