package nodewise

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/gate"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/served"
)

// clusterInMemory keeps objects as an apiserver does, and acts as the kubelets: pods run as soon as they are created, and are gone as soon as
// they are deleted.
type clusterInMemory struct {
	t       *testing.T
	rig     *rig
	mu      sync.Mutex
	version int
	objects map[write.Key]map[string]any
	writes  []string
	reads   int
	events  []write.Event
	// refuse returns the error of a write; nil lets the write succeed.
	refuse func(verb string, key write.Key) error
	// protects returns why a pod must not be evicted; nil lets the eviction succeed.
	protects func(pod string) *write.Blocked
	// unseen holds the events of the watches back.
	unseen bool
	fewest int
}

func (c *clusterInMemory) next() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	return strconv.Itoa(c.version)
}

// pods returns all pods, in the order in which they were written.
func (c *clusterInMemory) pods() []*corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	var live []*corev1.Pod
	for key, object := range c.objects {
		if key.Resource == cluster.Pods {
			pod := new(corev1.Pod)
			convertTo(c.t, object, pod)
			live = append(live, pod)
		}
	}
	slices.SortFunc(live, func(a, b *corev1.Pod) int {
		order, _ := gate.Compare(a.ResourceVersion, b.ResourceVersion)
		return order
	})
	return live
}

// keep stores an object under a new version, and shows it to the watch.
func (c *clusterInMemory) keep(at write.Key, object map[string]any) write.Written {
	c.version++
	version := strconv.Itoa(c.version)
	object["metadata"].(map[string]any)["resourceVersion"] = version
	c.objects[at] = object
	c.show(at, object, (*feed).Update)
	return write.Written{Name: at.Name, ResourceVersion: version}
}

func (c *clusterInMemory) show(at write.Key, object map[string]any, how func(*feed, any) error) {
	if c.unseen {
		return
	}
	text, err := json.Marshal(object)
	if err != nil {
		c.t.Error(err)
	}
	var seen any
	var of resourceCache
	switch at.Resource {
	case cluster.Pods:
		pod := new(corev1.Pod)
		convertTo(c.t, object, pod)
		seen, of = pod, pods
	case cluster.Nodes:
		c.t.Errorf("nobody writes %s", at)
	default:
		if seen, err = served.Parse(text); err != nil {
			c.t.Error(err)
		}
		of = cacheOf(at.Resource)
	}
	if err := how(c.rig.feed(of), seen); err != nil {
		c.t.Error(err)
	}
}

func (c *clusterInMemory) begin(verb string, at write.Key) error {
	c.writes = append(c.writes, verb+" "+string(at.Resource))
	if c.refuse != nil {
		return c.refuse(verb, at)
	}
	return nil
}

func (c *clusterInMemory) Writes() bool { return true }

func (c *clusterInMemory) Create(
	_ context.Context, resource cluster.Resource, namespace string, manifest []byte,
) (write.Written, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var object map[string]any
	if err := json.Unmarshal(manifest, &object); err != nil {
		return write.Written{}, err
	}
	meta := object["metadata"].(map[string]any)
	if meta["name"] == nil {
		meta["name"] = fmt.Sprintf("generated-%d", c.version)
	}
	at := write.Key{Resource: resource, Namespace: namespace, Name: meta["name"].(string)}
	if err := c.begin("create", at); err != nil {
		return write.Written{}, err
	}
	if c.objects[at] != nil {
		return write.Written{}, &write.Error{Refusal: write.AlreadyExists, Status: 409, Message: "it exists"}
	}
	meta["namespace"], meta["uid"] = namespace, fmt.Sprintf("uid-%d", c.version)
	if resource == cluster.Pods {
		pod := new(corev1.Pod)
		convertTo(c.t, object, pod)
		pod.UID = types.UID(meta["uid"].(string))
		projected, err := convert.Pod(pod)
		if err != nil {
			return write.Written{}, err
		}
		object["spec"].(map[string]any)["nodeName"] = projected.GetTargetNodeName()
		object["status"] = map[string]any{
			"phase": "Running",
			"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
			}},
		}
	}
	return c.keep(at, object), nil
}

func (c *clusterInMemory) Patch(_ context.Context, at write.Key, _ string, _ types.PatchType, patch []byte) (write.Written, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin("patch", at); err != nil {
		return write.Written{}, err
	}
	object := c.objects[at]
	if object == nil {
		return write.Written{}, &write.Error{Refusal: write.NotFound, Status: 404, Message: "it is gone"}
	}
	var changes map[string]any
	if err := json.Unmarshal(patch, &changes); err != nil {
		return write.Written{}, err
	}
	merge(object, changes)
	return c.keep(at, object), nil
}

func (c *clusterInMemory) Evict(ctx context.Context, at write.Key, uid types.UID) (*write.Blocked, error) {
	if c.protects != nil {
		if blocked := c.protects(at.Name); blocked != nil {
			return blocked, nil
		}
	}
	return nil, c.Delete(ctx, at, write.Preconditions{UID: uid})
}

func (c *clusterInMemory) Delete(_ context.Context, at write.Key, _ write.Preconditions) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin("delete", at); err != nil {
		return err
	}
	object := c.objects[at]
	if object == nil {
		return &write.Error{Refusal: write.NotFound, Status: 404, Message: "it is gone"}
	}
	c.version++
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(c.version)
	delete(c.objects, at)
	c.show(at, object, (*feed).Delete)
	left := 0
	for key := range c.objects {
		if key.Resource == cluster.Pods {
			left++
		}
	}
	c.fewest = min(c.fewest, left)
	return nil
}

func (c *clusterInMemory) ReplaceStatus(_ context.Context, at write.Key, body []byte) (write.Written, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin("update", at); err != nil {
		return write.Written{}, err
	}
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return write.Written{}, err
	}
	live := c.objects[at]
	if live["metadata"].(map[string]any)["resourceVersion"] != object["metadata"].(map[string]any)["resourceVersion"] {
		return write.Written{}, &write.Error{Refusal: write.Conflict, Status: 409, Message: "it has changed"}
	}
	live["status"] = object["status"]
	return c.keep(at, live), nil
}

func (c *clusterInMemory) Read(_ context.Context, at write.Key) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	if c.refuse != nil {
		if err := c.refuse("read", at); err != nil {
			return nil, err
		}
	}
	if c.objects[at] == nil {
		return nil, &write.Error{Refusal: write.NotFound, Status: 404, Message: "it is gone"}
	}
	return json.Marshal(c.objects[at])
}

func (c *clusterInMemory) EachRevision(_ context.Context, namespace string, take func(*served.Object)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin("list", write.Key{Resource: cluster.Revisions, Namespace: namespace}); err != nil {
		return err
	}
	for at, object := range c.objects {
		if at.Resource == cluster.Revisions && at.Namespace == namespace {
			text, err := json.Marshal(object)
			if err != nil {
				return err
			}
			read, err := served.Parse(text)
			if err != nil {
				return err
			}
			take(read)
		}
	}
	return nil
}

func (c *clusterInMemory) Emit(_ context.Context, event write.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, event)
}

func (c *clusterInMemory) count(writes string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, write := range c.writes {
		if write == writes {
			count++
		}
	}
	return count
}

func merge(object, changes map[string]any) {
	for name, value := range changes {
		inner, isObject := value.(map[string]any)
		present, hasObject := object[name].(map[string]any)
		switch {
		case isObject && hasObject:
			merge(present, inner)
		case value == nil:
			delete(object, name)
		default:
			object[name] = value
		}
	}
}

func convertTo(t *testing.T, object map[string]any, into any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
