package main

import (
	"cmp"
	"math/rand/v2"
	"slices"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// The orders in which caches list objects.
const (
	orderGiven    = "given"
	orderShuffled = "shuffled"
)

// caches are the controller's caches, filled from a case.
type caches struct {
	daemonSets, replicaSets, deployments, nodes, pods, revisions informer
}

// newCaches fills caches from a case. With a nil `chance` they list objects in the order of the case, otherwise in a
// new random order at each call, like a real cache.
func newCaches(c *cluster, chance *rand.Rand) *caches {
	observed := map[string]string{}
	for _, own := range c.OwnWrites {
		observed[own.Resource] = own.Observed
	}
	return &caches{
		daemonSets:  newOrderedInformer(c.daemonSets, chance, ""),
		replicaSets: newOrderedInformer(c.replicaSets, chance, observed[replicaSetResource]),
		deployments: newOrderedInformer(c.deployments, chance, ""),
		nodes:       newOrderedInformer(c.nodes, chance, ""),
		pods:        newOrderedInformer(c.pods, chance, observed[podResource]),
		revisions:   newOrderedInformer(c.revisions, chance, ""),
	}
}

// of returns the cache of a resource whose objects the controller patches.
func (c *caches) of(resource string) (informer, bool) {
	switch resource {
	case podResource:
		return c.pods, true
	case replicaSetResource:
		return c.replicaSets, true
	default:
		return informer{}, false
	}
}

// newPlainCaches fills caches of the type that a real controller has, for measurements.
func newPlainCaches(c *cluster) *caches {
	return &caches{
		daemonSets:  newInformer(newIndexer(), c.daemonSets),
		replicaSets: newInformer(newIndexer(), c.replicaSets),
		deployments: newInformer(newIndexer(), c.deployments),
		nodes:       newInformer(newIndexer(), c.nodes),
		pods:        newInformer(newIndexer(), c.pods),
		revisions:   newInformer(newIndexer(), c.revisions),
	}
}

// informer is a shared informer without a watch. It has only the methods that the constructor of the controller calls.
// The other methods of the interface are nil and would panic.
type informer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

func newInformer[O apiObject](indexer cache.Indexer, objects []O) informer {
	for _, object := range objects {
		// Add fails only for objects without a key.
		utilruntime.Must(indexer.Add(object))
	}
	return informer{indexer: indexer}
}

func newOrderedInformer[O apiObject](objects []O, chance *rand.Rand, observed string) informer {
	indexer := &orderedIndexer{Indexer: newIndexer(), rank: map[string]int{}, chance: chance, observed: observed}
	for rank, object := range objects {
		indexer.rank[keyOf(object)] = rank
	}
	return newInformer(indexer, objects)
}

// newIndexer returns the store of a shared informer.
func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

func keyOf(object any) string { return cache.MetaObjectToName(object.(apiObject)).String() }

func (i informer) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, nil
}
func (i informer) HasSynced() bool                           { return true }
func (i informer) GetStore() cache.Store                     { return i.indexer }
func (i informer) GetIndexer() cache.Indexer                 { return i.indexer }
func (i informer) AddIndexers(indexers cache.Indexers) error { return i.indexer.AddIndexers(indexers) }

type (
	daemonSetInformer  struct{ informer }
	replicaSetInformer struct{ informer }
	deploymentInformer struct{ informer }
	revisionInformer   struct{ informer }
	podInformer        struct{ informer }
	nodeInformer       struct{ informer }
)

var (
	_ appsinformers.DaemonSetInformer          = daemonSetInformer{}
	_ appsinformers.ReplicaSetInformer         = replicaSetInformer{}
	_ appsinformers.DeploymentInformer         = deploymentInformer{}
	_ appsinformers.ControllerRevisionInformer = revisionInformer{}
	_ coreinformers.PodInformer                = podInformer{}
	_ coreinformers.NodeInformer               = nodeInformer{}
)

func (i informer) Informer() cache.SharedIndexInformer { return i }

func (i daemonSetInformer) Lister() appslisters.DaemonSetLister {
	return appslisters.NewDaemonSetLister(i.indexer)
}

func (i replicaSetInformer) Lister() appslisters.ReplicaSetLister {
	return appslisters.NewReplicaSetLister(i.indexer)
}

func (i deploymentInformer) Lister() appslisters.DeploymentLister {
	return appslisters.NewDeploymentLister(i.indexer)
}

func (i revisionInformer) Lister() appslisters.ControllerRevisionLister {
	return appslisters.NewControllerRevisionLister(i.indexer)
}

func (i podInformer) Lister() corelisters.PodLister { return corelisters.NewPodLister(i.indexer) }

func (i nodeInformer) Lister() corelisters.NodeLister { return corelisters.NewNodeLister(i.indexer) }

// orderedIndexer is a cache whose lists have a defined order. An ordinary cache lists in Go's map order, which is not
// reproducible.
type orderedIndexer struct {
	cache.Indexer
	// rank is the index of an object in the case's list.
	rank map[string]int
	// chance shuffles every list. If nil, lists have the order of the case.
	chance *rand.Rand
	// observed is the newest resource version that the cache has seen. If empty, it does not tell one.
	observed string
}

func (o *orderedIndexer) LastStoreSyncResourceVersion() string { return o.observed }

func (o *orderedIndexer) List() []any { return o.ordered(o.Indexer.List()) }

func (o *orderedIndexer) Index(name string, object any) ([]any, error) {
	objects, err := o.Indexer.Index(name, object)
	return o.ordered(objects), err
}

func (o *orderedIndexer) ByIndex(name, value string) ([]any, error) {
	objects, err := o.Indexer.ByIndex(name, value)
	return o.ordered(objects), err
}

// ordered sorts, and shuffles if there is a `chance`. Only the sync lists objects, so no lock is needed.
func (o *orderedIndexer) ordered(objects []any) []any {
	slices.SortFunc(objects, func(a, b any) int { return cmp.Compare(o.rank[keyOf(a)], o.rank[keyOf(b)]) })
	if o.chance != nil {
		o.chance.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	}
	return objects
}
