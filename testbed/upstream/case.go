package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// hashMark is, in any string of a case or an outcome, the placeholder for the hash that a new revision of the DaemonSet,
// or a new ReplicaSet of the Deployment, would get.
const hashMark = "@hash"

// request asks for the outcomes of a number of syncs of a case.
type request struct {
	Case  spec   `json:"case"`
	Runs  int    `json:"runs"`
	Order string `json:"order"`
}

// spec is the JSON of a case.
type spec struct {
	Kind            string            `json:"kind"`
	Seed            uint64            `json:"seed"`
	Now             time.Time         `json:"now"`
	DaemonSets      []json.RawMessage `json:"daemonSets"`
	ReplicaSets     []json.RawMessage `json:"replicaSets"`
	Deployments     []json.RawMessage `json:"deployments"`
	Nodes           []json.RawMessage `json:"nodes"`
	Pods            []json.RawMessage `json:"pods"`
	Revisions       []revisionSpec    `json:"revisions"`
	Live            liveSpec          `json:"live"`
	Expectations    *expectationsSpec `json:"expectations"`
	OwnWrites       []ownWrite        `json:"ownWrites"`
	Backoff         []backoffEntry    `json:"backoff"`
	Retries         int               `json:"retries"`
	Burst           int               `json:"burst"`
	FeatureGates    []string          `json:"featureGates"`
	FeatureGatesOff []string          `json:"featureGatesOff"`
	Echo            bool              `json:"echo"`
	Faults          []fault           `json:"faults"`
}

// revisionSpec has the data of a revision as text, because upstream compares its bytes.
type revisionSpec struct {
	Object json.RawMessage `json:"object"`
	Data   string          `json:"data"`
}

// liveSpec describes the differences between the API and the caches.
type liveSpec struct {
	// The workload that is synced. Absent: as in the cache. null: does not exist.
	Subject   json.RawMessage `json:"subject,omitempty"`
	Gone      []string        `json:"gone"`
	Revisions []revisionSpec  `json:"revisions"`
	// Objects that are missing in the cache or different there.
	Pods        []json.RawMessage `json:"pods"`
	ReplicaSets []json.RawMessage `json:"replicaSets"`
}

type expectationsSpec struct {
	Adds       int   `json:"adds"`
	Dels       int   `json:"dels"`
	AgeSeconds int64 `json:"ageSeconds"`
}

// ownWrite is a write of the controller before the sync, and the version that its cache of the resource has reached.
type ownWrite struct {
	Resource string `json:"resource"`
	Written  string `json:"written"`
	Observed string `json:"observed"`
}

// fault is an error response of the API in a case.
type fault struct {
	Op     string `json:"op"`
	Name   string `json:"name"`
	Code   int    `json:"code"`
	Reason string `json:"reason"`
	Cause  string `json:"cause"`
	Times  int    `json:"times"`
}

// cluster is a decoded case. All runs share its objects, so they must not be modified.
type cluster struct {
	spec
	kind *kind
	// hash is the value of hashMark, or empty.
	hash        string
	daemonSets  []*apps.DaemonSet
	replicaSets []*apps.ReplicaSet
	deployments []*apps.Deployment
	nodes       []*core.Node
	pods        []*core.Pod
	revisions   []*apps.ControllerRevision
	// live is the subject in the API, or nil if it does not exist.
	live apiObject
	// unseen has the revisions that are in the API and not in the cache.
	unseen []*apps.ControllerRevision
	// changed has the objects that are in the API and not, or different, in the cache, by resource.
	changed map[string][]apiObject
}

// subject returns the workload that is synced.
func (c *cluster) subject() apiObject { return c.kind.workloads(c)[0] }

// readRequest decodes a line and replaces hashMark by the hash.
func readRequest(line []byte) (*request, *cluster, error) {
	asked, err := decodeRequest(line)
	if err != nil {
		return nil, nil, err
	}
	hash, err := asked.Case.hash()
	if err != nil {
		return nil, nil, err
	}
	if hash != "" && bytes.Contains(line, []byte(hashMark)) {
		if asked, err = decodeRequest(bytes.ReplaceAll(line, []byte(hashMark), []byte(hash))); err != nil {
			return nil, nil, err
		}
		if again, err := asked.Case.hash(); err != nil || again != hash {
			return nil, nil, fmt.Errorf("spec.template: it cannot contain its own hash (%s)", hashMark)
		}
	}
	cluster, err := newCluster(&asked.Case, hash)
	return asked, cluster, err
}

func decodeRequest(line []byte) (*request, error) {
	asked := &request{Runs: 1, Order: orderGiven}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(asked); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{orderGiven, orderShuffled}, asked.Order) {
		return nil, fmt.Errorf("order: %q is neither %q nor %q", asked.Order, orderGiven, orderShuffled)
	}
	if asked.Runs < 1 {
		return nil, fmt.Errorf("runs: %d is no number of runs", asked.Runs)
	}
	return asked, nil
}

// kind returns the kind of the workload that is synced.
func (s *spec) kind() (*kind, error) {
	kind, ok := kinds[cmp.Or(s.Kind, "daemonset")]
	if !ok {
		return nil, fmt.Errorf("kind: %q is none of %s", s.Kind, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	return kind, nil
}

// hash returns the value of hashMark.
func (s *spec) hash() (string, error) {
	kind, err := s.kind()
	if err != nil {
		return "", err
	}
	texts := kind.texts(s)
	if len(texts) == 0 {
		return "", fmt.Errorf("%s: there is none to sync", kind.member)
	}
	return kind.hash(kind.member+"[0]", texts[0])
}

func newCluster(spec *spec, hash string) (*cluster, error) {
	c := &cluster{spec: *spec, hash: hash, changed: map[string][]apiObject{}}
	var err error
	if c.kind, err = spec.kind(); err != nil {
		return nil, err
	}
	if c.daemonSets, err = decodeAll[apps.DaemonSet]("daemonSets", spec.DaemonSets); err != nil {
		return nil, err
	}
	if c.replicaSets, err = decodeAll[apps.ReplicaSet]("replicaSets", spec.ReplicaSets); err != nil {
		return nil, err
	}
	if c.deployments, err = decodeAll[apps.Deployment]("deployments", spec.Deployments); err != nil {
		return nil, err
	}
	if c.nodes, err = decodeAll[core.Node]("nodes", spec.Nodes); err != nil {
		return nil, err
	}
	if c.pods, err = decodeAll[core.Pod]("pods", spec.Pods); err != nil {
		return nil, err
	}
	if c.revisions, err = decodeRevisions("revisions", spec.Revisions); err != nil {
		return nil, err
	}
	if c.unseen, err = decodeRevisions("live.revisions", spec.Live.Revisions); err != nil {
		return nil, err
	}
	pods, err := decodeAll[core.Pod]("live.pods", spec.Live.Pods)
	if err != nil {
		return nil, err
	}
	replicaSets, err := decodeAll[apps.ReplicaSet]("live.replicaSets", spec.Live.ReplicaSets)
	if err != nil {
		return nil, err
	}
	c.changed[podResource], c.changed[replicaSetResource] = asObjects(pods), asObjects(replicaSets)
	if c.live, err = c.decodeLive(); err != nil {
		return nil, err
	}
	return c, c.check()
}

// check rejects members that would have no effect, or not the effect that the case describes.
func (c *cluster) check() error {
	for i, fault := range c.Faults {
		if !slices.Contains(operations, fault.Op) {
			return fmt.Errorf("faults[%d].op: %q is none of %s", i, fault.Op, strings.Join(operations, ", "))
		}
		if fault.Code < 400 {
			return fmt.Errorf("faults[%d].code: %d refuses nothing", i, fault.Code)
		}
	}
	for i, gone := range c.Live.Gone {
		resource, _, _ := strings.Cut(gone, "/")
		if !slices.Contains([]string{podResource, revisionResource, replicaSetResource}, resource) {
			return fmt.Errorf("live.gone[%d]: %q is neither %s/NAME nor %s/NAME nor %s/NAME", i, gone,
				podResource, revisionResource, replicaSetResource)
		}
	}
	for i, entry := range c.Backoff {
		if entry.steps() == 0 {
			return fmt.Errorf("backoff[%d].delaySeconds: %d is not 1, 2, 4, … 512 or 900", i, entry.DelaySeconds)
		}
	}
	return nil
}

// decodeLive returns the subject in the API.
func (c *cluster) decodeLive() (apiObject, error) {
	switch {
	case c.Live.Subject == nil:
		return c.subject(), nil
	case string(c.Live.Subject) == "null":
		return nil, nil
	default:
		return decoders[c.kind.resource]("live.subject", c.Live.Subject)
	}
}

func decodeRevisions(what string, specs []revisionSpec) ([]*apps.ControllerRevision, error) {
	revisions := make([]*apps.ControllerRevision, len(specs))
	seen := map[string]bool{}
	for i, spec := range specs {
		what := fmt.Sprintf("%s[%d]", what, i)
		revision, err := decode[apps.ControllerRevision](what+".object", spec.Object)
		if err != nil {
			return nil, err
		}
		if err := unique(what, revision, seen); err != nil {
			return nil, err
		}
		if !json.Valid([]byte(spec.Data)) {
			return nil, fmt.Errorf("%s.data: it is not JSON", what)
		}
		// Escaped as by an apiserver.
		var escaped bytes.Buffer
		json.HTMLEscape(&escaped, []byte(spec.Data))
		revision.Data.Raw = escaped.Bytes()
		revisions[i] = revision
	}
	return revisions, nil
}

// object is a pointer to a Kubernetes API type.
type object[T any] interface {
	*T
	meta.Object
	runtime.Object
}

func decodeAll[T any, O object[T]](what string, texts []json.RawMessage) ([]*T, error) {
	objects := make([]*T, len(texts))
	seen := map[string]bool{}
	for i, text := range texts {
		what := fmt.Sprintf("%s[%d]", what, i)
		object, err := decode[T, O](what, text)
		if err != nil {
			return nil, err
		}
		if err := unique(what, O(object), seen); err != nil {
			return nil, err
		}
		objects[i] = object
	}
	return objects, nil
}

// decode decodes an object as a real client does: case-sensitively, without unknown fields, and without the kind.
func decode[T any, O object[T]](what string, text []byte) (*T, error) {
	decoded := new(T)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, decoded); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	O(decoded).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return decoded, nil
}

// decoders decode the objects of a resource.
var decoders = map[string]func(what string, text []byte) (apiObject, error){
	daemonSetResource:  decodeObject[apps.DaemonSet],
	replicaSetResource: decodeObject[apps.ReplicaSet],
	deploymentResource: decodeObject[apps.Deployment],
	podResource:        decodeObject[core.Pod],
	revisionResource:   decodeObject[apps.ControllerRevision],
}

// decodeObject is decode for any type. An error comes without an object.
func decodeObject[T any, O object[T]](what string, text []byte) (apiObject, error) {
	decoded, err := decode[T, O](what, text)
	if err != nil {
		return nil, err
	}
	return O(decoded), nil
}

// asObjects converts a list of one type.
func asObjects[O apiObject](objects []O) []apiObject {
	converted := make([]apiObject, len(objects))
	for i, object := range objects {
		converted[i] = object
	}
	return converted
}

// unique rejects a second object with the same name, because a cache cannot contain both.
func unique(what string, object meta.Object, seen map[string]bool) error {
	key := object.GetNamespace() + "/" + object.GetName()
	if seen[key] {
		return fmt.Errorf("%s: there is another %s", what, key)
	}
	seen[key] = true
	return nil
}

// gone returns the keys of the objects that the API no longer has.
func (c *cluster) gone() []objectKey {
	keys := make([]objectKey, len(c.Live.Gone))
	for i, gone := range c.Live.Gone {
		resource, name, _ := strings.Cut(gone, "/")
		keys[i] = objectKey{resource, c.subject().GetNamespace(), name}
	}
	return keys
}
