// Package gate holds a workload back while a cache is older than our last write to the workload or its pods.
//
// Of our own writes only the highest resourceVersion matters, per workload and resource (D-109). Records live in memory; after
// a start the first lists are most-recent reads, which cannot be older than what was written before them. Nothing here is
// safe for concurrent use.
//
// Versions only grow, unless etcd is restored from a backup. Then a version that was written may never be reached: once a list of any resource
// shows that, all records are forgotten (D-112).
package gate

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/internal/cluster"
)

// Reached tells the version that the watch of a resource has reached.
type Reached func(cluster.Resource) string

// Gate keeps the highest own writes by workload.
type Gate struct {
	records map[types.NamespacedName]*record
	// waiting are workloads that were refused.
	waiting sets.Set[types.NamespacedName]
}

type record struct {
	uid     types.UID
	written map[cluster.Resource]string
}

// Behind says which cache has not seen one of our own writes yet.
type Behind struct {
	Resource         cluster.Resource
	Written, Reached string
}

// Error says what is waited for.
func (b *Behind) Error() string {
	return fmt.Sprintf("the cache of %s is at resourceVersion %s, our own write at %s: waiting for the watch",
		b.Resource, b.Reached, b.Written)
}

// New remembers nothing yet.
func New() *Gate {
	return &Gate{records: map[types.NamespacedName]*record{}, waiting: sets.New[types.NamespacedName]()}
}

// Record notes that a write of ours to the workload or one of its pods returned this resourceVersion. A record of another uid
// of the same name is replaced (D-112).
func (g *Gate) Record(key types.NamespacedName, uid types.UID, resource cluster.Resource, version string) {
	known := g.records[key]
	if known == nil || known.uid != uid {
		known = &record{uid: uid, written: map[cluster.Resource]string{}}
		g.records[key] = known
	}
	order, ok := Compare(known.written[resource], version)
	if !ok || order <= 0 {
		known.written[resource] = version
	}
}

// Check passes, with nil, when every cache has reached our own writes; the record is then forgotten (D-110). Else the workload
// waits, until Opened names it.
func (g *Gate) Check(key types.NamespacedName, reached Reached) *Behind {
	if behind := g.behind(key, reached); behind != nil {
		g.waiting.Insert(key)
		return behind
	}
	delete(g.records, key)
	g.waiting.Delete(key)
	return nil
}

// Opened are the workloads that waited and need not any more. It is asked whenever a cache moved on: that is exact, while
// retries would come too early or, after some, much too late.
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

// Waits tells whether any workload waits.
func (g *Gate) Waits() bool { return len(g.waiting) > 0 }

// BeginAnew forgets what was written: versions have begun anew, and those say nothing any more (D-112).
func (g *Gate) BeginAnew() { clear(g.records) }

// Clear clears the record of a workload, whatever its uid.
func (g *Gate) Clear(key types.NamespacedName) {
	delete(g.records, key)
}

// ClearOf clears the record of a workload if it is of this uid (D-112).
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

// IsBehind tells whether a cache that has reached one version is behind the other.
func IsBehind(written, reached string) bool {
	order, ok := Compare(written, reached)
	return ok && order > 0
}

// Compare compares two resourceVersions: decimals without leading zero, the longer is greater; anything else cannot be compared
// and must not block (D-111).
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
