package nodewise

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"k8s.io/client-go/rest"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

// The snapshot has the objects of the workload, the orphans that it selects, and the workload as it was served, and nothing of others.
func TestPlansOnce(t *testing.T) {
	const daemonSet = `{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"namespace":"ns","name":"agent","uid":"d1"},"spec":{"later":1.50,"selector":{"matchLabels":{"app":"x"}}}}`
	owned := func(name, app, uid string) string {
		return fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q,"uid":"uid-%s","labels":{"app":%q,"unnamed":"y"},"ownerReferences":
			[{"kind":"DaemonSet","uid":%q,"controller":%t}]}}`, name, name, app, uid, uid != "")
	}
	four := strings.Join([]string{
		owned("mine", "z", "d1"), owned("other", "x", "d2"), owned("orphan", "x", ""), owned("another-orphan", "z", ""),
	}, ",")
	list := func(kind, version, items string) string {
		return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{},"items":[%s]}`, kind, version, items)
	}
	answers := map[string]string{
		"/apis/apps/v1/namespaces/ns/daemonsets/agent":    daemonSet,
		"/apis/apps/v1/namespaces/ns/controllerrevisions": list("ControllerRevisionList", "apps/v1", four),
		"/api/v1/namespaces/ns/pods":                      list("PodList", "v1", four),
		"/apis/nodewise.dev/v1alpha1/namespaces/ns/rolloutpolicies": list("RolloutPolicyList", "nodewise.dev/v1alpha1",
			policyText("p", "7", `{"targets":{"names":["agent"]},"stages":[{"name":"s","groupBy":"zone"}]}`)+","+
				policyText("of-another", "8", `{"targets":{"names":["other"]}}`)),
		"/api/v1/nodes": list("NodeList", "v1", `{"metadata":{"name":"n1","labels":{"unnamed":"y","zone":"a"}}}`),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet || answers[r.URL.Path] == "" {
			t.Errorf("asked for %s %s", r.Method, r.URL.Path)
		}
		_, _ = fmt.Fprint(w, answers[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		return &nodewisev1.Plan{Verdict: nodewisev1.Verdict_VERDICT_NOOP, RolloutPolicyUids: []string{"uid-p"}}, nil
	}}
	now := time.Unix(7, 0)
	plan, err := PlanOnce(t.Context(), &rest.Config{Host: server.URL}, planner, "ns", "agent", WithClock(func() time.Time { return now }))
	if err != nil || plan.GetVerdict() != nodewisev1.Verdict_VERDICT_NOOP {
		t.Fatalf("got %v, %v", plan, err)
	}
	snapshot := planner.asked[0].GetSnapshot()
	pods, nodes := &nodewisev1.PodBucket{}, &nodewisev1.NodeBucket{}
	for data, into := range map[string]proto.Message{
		string(snapshot.GetPodBuckets()[0].GetData()): pods, string(snapshot.GetNodeBuckets()[0].GetData()): nodes,
	} {
		if err := proto.Unmarshal([]byte(data), into); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, pod := range pods.GetPods() {
		names = append(names, pod.GetName())
	}
	revisions := fmt.Sprint(snapshot.GetRevisions())
	switch {
	case string(snapshot.GetWorkload().GetDaemonSet().GetObject()) != daemonSet, !snapshot.GetCachesSynced():
		t.Errorf("sent %s", snapshot.GetWorkload().GetDaemonSet().GetObject())
	case strings.Contains(fmt.Sprint(pods, nodes), "unnamed"):
		t.Errorf("sent a label that the DaemonSet does not name: %v, %v", pods, nodes)
	case !slices.Equal(names, []string{"mine", "orphan"}), len(nodes.GetNodes()) != 1:
		t.Errorf("sent the pods %v and %d nodes", names, len(nodes.GetNodes()))
	case len(sentPolicies(planner.asked[0])) != 1, nodes.GetNodes()[0].GetLabels()[0].GetKey() != "zone":
		t.Errorf("sent the policies %v and %v", sentPolicies(planner.asked[0]), nodes)
	case len(snapshot.GetRevisions()) != 2, strings.Contains(revisions, "other"), !snapshot.GetNow().AsTime().Equal(now):
		t.Errorf("sent %s at %s", revisions, snapshot.GetNow().AsTime())
	}
}

func TestPlansOnceSayWhatIsMissing(t *testing.T) {
	url := testkit.Refusing(t, http.StatusNotFound, "NotFound", "no such thing")
	_, err := PlanOnce(t.Context(), &rest.Config{Host: url}, &scripted{plan: noop}, "ns", "agent")
	if err == nil || !strings.Contains(err.Error(), "DaemonSet ns/agent") || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("got %v", err)
	}
}

// L-2: a plan without the policies that cannot be read would be wrong.
func TestPlansOnceNeedThePolicies(t *testing.T) {
	apiserver := testkit.NewCluster(t)
	apiserver.Put(t, "daemonsets", `{"metadata":{"namespace":"ns","name":"agent","uid":"d1"},"spec":{}}`)
	apiserver.InstallAs(t, "v1beta1")
	planner := &scripted{plan: noop}
	_, err := PlanOnce(t.Context(), apiserver.Config(), planner, "ns", "agent")
	if err == nil || !strings.Contains(err.Error(), "but as nodewise.dev/v1beta1") || len(planner.asked) > 0 {
		t.Errorf("got %v", err)
	}
	apiserver.InstallAs(t, "")
	if _, err := PlanOnce(t.Context(), apiserver.Config(), planner, "ns", "agent"); err != nil {
		t.Errorf("without policies: %v", err)
	}
}
