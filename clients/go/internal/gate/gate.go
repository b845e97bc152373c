// Package gate holds a workload back while a cache is older than the executor's last write to the workload or its pods.
//
// Only the highest resourceVersion of the own writes matters, per workload and resource (D-109). It is kept in memory only: after a start the
// first lists are most-recent reads, which cannot be older than earlier writes. Nothing here is safe for concurrent use.
//
// Versions only grow, unless etcd is restored from a backup. Then the watch may never reach the version of a write. So all records are dropped
// as soon as a list of any resource shows that (D-112).
package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/internal/cluster"
)

// Reached returns the version that the watch of a resource has reached.
type Reached func(cluster.Resource) string

// Gate keeps the versions of own writes, by workload.
type Gate struct {
	records map[types.NamespacedName]*record
	// waiting are the workloads that [Gate.Check] holds back.
	waiting sets.Set[types.NamespacedName]
	// restarts is how often the versions have restarted.
	restarts int
}

type record struct {
	uid     types.UID
	written map[cluster.Resource]string
	// created are the pods that were created by name. They are its pods before the cache shows them. The workload waits
	// for them only if a plan could not create its pods because of them.
	created []createdPod
}

type createdPod struct {
	name string
	// version is the resourceVersion that the create returned.
	version string
}

// Behind says which cache does not show an own write yet.
type Behind struct {
	Resource         cluster.Resource
	Written, Reached string
}

// Error names the cache and the version that the workload waits for.
func (b *Behind) Error() string {
	return fmt.Sprintf("the cache of %s is at resourceVersion %s, our own write at %s: waiting for the watch",
		b.Resource, b.Reached, b.Written)
}

// New makes a Gate without records.
func New() *Gate {
	return &Gate{records: map[types.NamespacedName]*record{}, waiting: sets.New[types.NamespacedName]()}
}

// Record records the resourceVersion that a write to the workload or one of its pods has returned. A record of another uid of the same name is
// replaced (D-112).
func (g *Gate) Record(key types.NamespacedName, uid types.UID, resource cluster.Resource, version string) {
	known := g.recordOf(key, uid)
	order, ok := Compare(known.written[resource], version)
	if !ok || order <= 0 {
		known.written[resource] = version
	}
}

// RecordCreate records the create of a pod by name, and the resourceVersion that it has returned. It replaces a record as [Gate.Record] does.
func (g *Gate) RecordCreate(key types.NamespacedName, uid types.UID, podName, version string) {
	known := g.recordOf(key, uid)
	known.created = append(known.created, createdPod{podName, version})
}

// AwaitCreates makes a workload wait until the cache shows all pods that were created for it by name.
func (g *Gate) AwaitCreates(key types.NamespacedName, uid types.UID) {
	known := g.records[key]
	if known == nil || known.uid != uid {
		return
	}
	for _, pod := range known.created {
		g.Record(key, uid, cluster.Pods, pod.version)
	}
}

func (g *Gate) recordOf(key types.NamespacedName, uid types.UID) *record {
	known := g.records[key]
	if known == nil || known.uid != uid {
		known = &record{uid: uid, written: map[cluster.Resource]string{}}
		g.records[key] = known
	}
	return known
}

// UnseenCreates returns the names of the pods that were created for a workload and that the cache does not show yet.
func (g *Gate) UnseenCreates(key types.NamespacedName, uid types.UID, reached Reached) []string {
	known := g.records[key]
	if known == nil || known.uid != uid {
		return nil
	}
	known.forgetSeen(reached)
	names := make([]string, len(known.created))
	for i, pod := range known.created {
		names[i] = pod.name
	}
	return names
}

// forgetSeen forgets the created pods that the cache shows.
func (r *record) forgetSeen(reached Reached) {
	r.created = slices.DeleteFunc(r.created, func(pod createdPod) bool { return !IsBehind(pod.version, reached(cluster.Pods)) })
}

// Check returns nil when every cache shows the own writes, and drops the record then (D-110). Otherwise the workload waits until [Gate.Opened]
// returns it.
func (g *Gate) Check(key types.NamespacedName, reached Reached) *Behind {
	known := g.records[key]
	if known != nil {
		known.forgetSeen(reached)
	}
	if behind := g.behind(key, reached); behind != nil {
		g.waiting.Insert(key)
		return behind
	}
	if known != nil && len(known.created) > 0 {
		clear(known.written)
	} else {
		delete(g.records, key)
	}
	g.waiting.Delete(key)
	return nil
}

// Opened returns the workloads that no longer have to wait. It is called whenever a cache has advanced, so no retries are needed, which would
// come too early or too late.
func (g *Gate) Opened(reached Reached) []types.NamespacedName {
	var opened []types.NamespacedName
	for key := range g.waiting {
		if g.behind(key, reached) == nil {
			opened = append(opened, key)
			g.waiting.Delete(key)
		}
	}
	return opened
}

// Waits reports whether any workload waits.
func (g *Gate) Waits() bool { return len(g.waiting) > 0 }

// BeginAnew drops all records, after etcd was restored: the versions of earlier writes mean nothing any more (D-112).
func (g *Gate) BeginAnew() {
	clear(g.records)
	g.restarts++
}

// Restarts returns how often the versions have restarted. The version of a write that began before the last restart must not be recorded: no
// cache may ever reach it.
func (g *Gate) Restarts() int { return g.restarts }

// Clear drops the record of a workload with any uid.
func (g *Gate) Clear(key types.NamespacedName) {
	delete(g.records, key)
}

// ClearOf drops the record of a workload if it has this uid (D-112).
func (g *Gate) ClearOf(key types.NamespacedName, uid types.UID) {
	if known := g.records[key]; known != nil && known.uid == uid {
		delete(g.records, key)
	}
}

func (g *Gate) behind(key types.NamespacedName, reached Reached) *Behind {
	known := g.records[key]
	if known == nil {
		return nil
	}
	for _, resource := range cluster.Resources {
		written := known.written[resource]
		if IsBehind(written, reached(resource)) {
			return &Behind{Resource: resource, Written: written, Reached: reached(resource)}
		}
	}
	return nil
}

// IsBehind reports whether a cache that has reached a version is older than the written version.
func IsBehind(written, reached string) bool {
	order, ok := Compare(written, reached)
	return ok && order > 0
}

// Compare compares two resourceVersions. They are decimal numbers without leading zeros, of any length. Anything else cannot be compared, and
// must not hold a workload back (D-111).
func Compare(a, b string) (order int, ok bool) {
	if !isDecimal(a) || !isDecimal(b) {
		return 0, false
	}
	if order := cmp.Compare(len(a), len(b)); order != 0 {
		return order, true
	}
	return strings.Compare(a, b), true
}

func isDecimal(version string) bool {
	if version == "" || version[0] == '0' {
		return false
	}
	return strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
