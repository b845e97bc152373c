package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

func policyOf(t *testing.T, name, created, spec string) *Policy {
	t.Helper()
	object, err := served.Parse(fmt.Appendf(nil, `{"metadata":{"namespace":"ns","name":%q,"uid":"uid-%s","resourceVersion":"1",
		"creationTimestamp":%q},"spec":%s}`, name, name, created, spec))
	if err != nil {
		t.Fatal(err)
	}
	return NewPolicy(object)
}

func targeted(t *testing.T, namespace, name, labels string) *Workload {
	t.Helper()
	object, err := served.Parse(fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q,"uid":"u","labels":%s},"spec":{}}`, namespace, name, labels))
	if err != nil {
		t.Fatal(err)
	}
	workload, err := NewWorkload(DaemonSet, object)
	if err != nil {
		t.Fatal(err)
	}
	return workload
}

// L-2: where the targets cannot be told, every workload of the namespace may be meant.
func TestAPolicyTargetsWhatItNamesOrSelects(t *testing.T) {
	workloads := []*Workload{
		targeted(t, "ns", "agent", `{"tier":"a"}`), targeted(t, "ns", "proxy", "null"), targeted(t, "elsewhere", "agent", `{"tier":"a"}`),
	}
	for spec, want := range map[string][]bool{
		`{"targets":{"names":["agent"]}}`:                                                            {true, false, false},
		`{"targets":{"names":["x","proxy"]}}`:                                                        {false, true, false},
		`{"targets":{"selector":{"matchLabels":{"tier":"a"}}}}`:                                      {true, false, false},
		`{"targets":{"selector":{}}}`:                                                                {true, true, false},
		`{"targets":{"names":["agent"],"selector":{}}}`:                                              {true, true, false},
		`{"targets":{"selector":{"matchExpressions":[{"key":"tier","operator":"Like"}]}}}`:           {true, true, false},
		`{"targets":{"names":"agent"}}`:                                                              {true, true, false},
		`{"targets":{"names":["agent",7]}}`:                                                          {true, true, false},
		`{"targets":{"names":["agent"],"newer":1}}`:                                                  {true, true, false},
		`{"targets":{"names":["agent"],"newer":null}}`:                                               {true, true, false},
		`{"targets":{"selector":{"matchLabels":{"tier":"a"}},"newer":["proxy"]}}`:                    {true, true, false},
		`{"targets":{"names":["agent"],"selector":null},"newer":1}`:                                  {true, false, false},
		`{"targets":{"names":[],"selector":{"matchExpressions":[{"key":"t","operator":"Exists"}]}}}`: {false, false, false},
		`{"targets":{}}`: {true, true, false},
		`7`:              {true, true, false},
	} {
		policy, got := policyOf(t, "p", "2026-01-01T00:00:00Z", spec), []bool{}
		for _, workload := range workloads {
			got = append(got, policy.mayTarget(workload))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", spec, got, want)
		}
	}
}

// The oldest policies come first, then the first by name. Those of which it cannot be told come last, as for the service.
func TestTheOldestPoliciesComeFirst(t *testing.T) {
	store := NewStore(1, DaemonSet)
	workload := targeted(t, "ns", "agent", "null")
	store.PutWorkload(workload)
	if store.HasPolicy(workload) || len(store.Policies(workload)) > 0 {
		t.Error("there is no policy yet")
	}
	const own = `{"targets":{"names":["agent"]}}`
	for _, policy := range []*Policy{
		policyOf(t, "late", "2026-01-09T00:00:00Z", own), policyOf(t, "b", "2026-01-03T00:00:00Z", own),
		policyOf(t, "a", "2026-01-03T00:00:00Z", own), policyOf(t, "odd", "2026-01-01T00:00:00Z", "7"),
		policyOf(t, "of-another", "2026-01-01T00:00:00Z", `{"targets":{"names":["bar"]}}`),
	} {
		store.PutPolicy(policy)
	}
	if got := namesOf(store.Policies(workload)); got != "a b late odd" {
		t.Errorf("sent %s", got)
	}
	if with := store.WithPolicies(DaemonSet); len(with) != 1 || with[0] != workload {
		t.Errorf("with policies are %v", with)
	}
}

func namesOf(policies []*Policy) string {
	var names []string
	for _, policy := range policies {
		names = append(names, policy.Key.Name)
	}
	return strings.Join(names, " ")
}

// Whoever may create policies may create many, and large ones. The one that counts is always sent.
func TestThePoliciesOfASnapshotAreLimited(t *testing.T) {
	workload := targeted(t, "ns", "agent", "null")
	store := NewStore(1, DaemonSet)
	for i := range 150 {
		store.PutPolicy(policyOf(t, fmt.Sprintf("p%03d", i), "2026-01-01T00:00:00Z", `{"targets":{"selector":{}}}`))
	}
	if sent := store.Policies(workload); len(sent) != 100 || sent[99].Key.Name != "p099" {
		t.Errorf("sent %s", namesOf(sent))
	}
	for want, sizes := range map[string][]int{"a": {maxPolicyBytes + 1, 1, 1}, "a b": {maxPolicyBytes / 2, maxPolicyBytes / 2, 1}} {
		store := NewStore(1, DaemonSet)
		for i, size := range sizes {
			policy := policyOf(t, string(rune('a'+i)), "2026-01-01T00:00:00Z", `{"targets":{"selector":{}}}`)
			policy.JSON = make([]byte, size)
			store.PutPolicy(policy)
		}
		if got := namesOf(store.Policies(workload)); got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
	}
}

// Stages select nodes by labels that no workload may name.
func TestLabelsThatAPolicyNamesAreSent(t *testing.T) {
	store := NewStore(1, DaemonSet)
	workload := targeted(t, "ns", "agent", "null")
	store.PutWorkload(workload)
	var all []*nodewisev1.Label
	for _, key := range []string{"gpu", "other", "pool", "rack", "zone"} {
		all = append(all, &nodewisev1.Label{Key: key})
	}
	store.PutNode(&Node{Node: &nodewisev1.Node{Name: "n1", Labels: all, MaintenanceInProgress: true}})
	sent := func() string {
		var keys []string
		node := store.nodes.get(0, "n1").sentNode(store.nodeKeys.keys())
		for _, label := range node.GetLabels() {
			keys = append(keys, label.GetKey())
		}
		if !node.GetMaintenanceInProgress() {
			t.Error("a field of the node is lost")
		}
		return strings.Join(keys, " ")
	}
	if got := sent(); got != "" {
		t.Errorf("sent %s", got)
	}
	store.PutPolicy(policyOf(t, "p", "2026-01-01T00:00:00Z", `{"targets":{},"stages":[
		{"name":"canary","nodeSelector":{"matchLabels":{"pool":"canary"}},"spreadBy":"zone"},
		{"name":"rest","groupBy":"rack","nodeSelector":{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}}, 7]}`))
	if got := sent(); got != "gpu pool rack zone" {
		t.Errorf("sent %s", got)
	}
}

// A policy whose targets cannot be told may still target all that exist.
func TestEntriesOfAStatusThatAreNoTargetsAnyMoreAreTold(t *testing.T) {
	store := NewStore(1, DaemonSet)
	store.PutWorkload(targeted(t, "ns", "agent", "null"))
	const entries = `[{"name":"agent","uid":"u"},{"name":"agent","uid":"before"},{"name":"gone","uid":"x"},{"name":7}]`
	for _, test := range []struct {
		spec, entries string
		want          []string
	}{
		{`{"names":["agent"]}`, entries, []string{"before", "x"}},
		{`{"names":["other"]}`, entries, []string{"u", "before", "x"}},
		{`{"selector":{"matchLabels":{"tier":"a"}}}`, entries, []string{"u", "before", "x"}},
		{`7`, entries, []string{"before", "x"}},
		{`7`, `7`, nil},
	} {
		object, err := served.Parse(fmt.Appendf(nil, `{"metadata":{"namespace":"ns","name":"p","uid":"p"},"spec":{"targets":%s},
			"status":{"targets":%s}}`, test.spec, test.entries))
		if err != nil {
			t.Fatal(err)
		}
		if got := store.FormerTargets(DaemonSet, NewPolicy(object)); !slices.Equal(got, test.want) {
			t.Errorf("%s of %s: got %v, want %v", test.entries, test.spec, got, test.want)
		}
	}
}
