package nodewise_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/internal/testkit"
)

// An informer that hides pods of a DaemonSet is detected before more pods are created, for old and for new pods. An informer that shows all
// pods is accepted.
func TestAnInformerThatHidesPodsIsFoundOut(t *testing.T) {
	const before = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"ns","name":"agent-n9","uid":"p9","labels":{"app":"agent"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"agent","uid":"d1","controller":true}]}}`
	for _, test := range []struct {
		name, selector string
		isThereBefore  bool
		creates        int
		isHidden       bool
	}{
		{name: "hidden, and there before", selector: "team=other", isThereBefore: true, isHidden: true},
		{name: "hidden, and new", selector: "team=other", creates: 2, isHidden: true},
		{name: "hidden, though not from this DaemonSet", selector: "app=agent", isThereBefore: true, creates: 4},
		{name: "shown", isThereBefore: true, creates: 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster, planner := testkit.NewCluster(t), &service{}
			cluster.Put(t, "daemonsets", daemonSet(""))
			if test.isThereBefore {
				cluster.Put(t, "pods", before)
			}
			clients, err := kubernetes.NewForConfig(cluster.Config())
			if err != nil {
				t.Fatal(err)
			}
			tweak := informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = test.selector })
			informer := informers.NewSharedInformerFactoryWithOptions(clients, 0, tweak).Core().V1().Pods().Informer()
			go informer.RunWithContext(t.Context())
			r, _ := started(t, cluster, planner, nodewise.WithPodInformer(informer))
			var failed error
			for range 2 {
				live, err := clients.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				testkit.Eventually(t, "the informer has come so far", func() bool {
					reached := informer.GetStore().LastStoreSyncResourceVersion()
					return len(live.Items) == 0 || live.Items[len(live.Items)-1].ResourceVersion <= reached
				})
				testkit.Eventually(t, "the caches have come so far", func() bool {
					failed = r.Reconcile(t.Context(), agent)
					return !errors.Is(failed, nodewise.ErrNotYet)
				})
			}
			if got := len(cluster.Written()); got != test.creates {
				t.Errorf("created %d pods, want %d", got, test.creates)
			}
			if isFound := failed != nil && strings.Contains(failed.Error(), "give one without a label or field selector"); isFound != test.isHidden {
				t.Errorf("got %v", failed)
			}
		})
	}
}
