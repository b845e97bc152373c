package wake_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/wake"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

func policy(t *testing.T, version, targets string) *cluster.Policy {
	t.Helper()
	object, err := served.Parse(fmt.Appendf(nil, `{"metadata":{"namespace":"ns","name":"p","uid":"uid-p","resourceVersion":%q},
		"spec":{"targets":%s}}`, version, targets))
	if err != nil {
		t.Fatal(err)
	}
	return cluster.NewPolicy(object)
}

func toldOf(made *cluster.Store, transition *cluster.Transition) string {
	if transition == nil {
		return ""
	}
	return told(wake.React(cluster.DaemonSet, made, transition, mended))
}

func TestAPolicyEnqueuesItsOldAndItsNewTargets(t *testing.T) {
	made := store(t)
	for _, test := range []struct{ version, targets, want string }{
		{"1", `{"names":["foo"]}`, "foo"},
		{"1", `{"names":["foo"]}`, ""},
		{"2", `{"names":["foo"]}`, "foo, foo"},
		{"3", `{"names":["bar"]}`, "foo, bar"},
		{"4", `{"selector":{"matchLabels":{"none":"has"}}}`, "bar"},
		// L-2: where it cannot be told, any may be meant.
		{"5", `7`, "bar, foo"},
		{"6", `{"names":["gone"]}`, "bar, foo"},
		{"7", `{"names":["bar"]}`, "bar"},
	} {
		if got := toldOf(made, made.PutPolicy(policy(t, test.version, test.targets))); got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.version, test.targets, got, test.want)
		}
	}
	// L-3
	if got := toldOf(made, made.RemovePolicy(policy(t, "7", "{}").Key, nil)); got != "bar" {
		t.Errorf("a policy that is gone: got %q", got)
	}
}

// L-20 to L-23: without a policy, the readiness of a node enqueues nothing.
func TestTheStateOfANodeConcernsOnlyRolloutsWithAPolicy(t *testing.T) {
	node := func(change func(*nodewisev1.Node)) *cluster.Node {
		made := &nodewisev1.Node{
			Name: "n1", Ready: nodewisev1.ConditionStatus_CONDITION_STATUS_TRUE, ReadyTransitionTime: &timestamppb.Timestamp{Seconds: 1},
		}
		change(made)
		return &cluster.Node{Node: made}
	}
	for name, change := range map[string]func(*nodewisev1.Node){
		"not ready":           func(n *nodewisev1.Node) { n.Ready = nodewisev1.ConditionStatus_CONDITION_STATUS_FALSE },
		"again, since later":  func(n *nodewisev1.Node) { n.ReadyTransitionTime = &timestamppb.Timestamp{Seconds: 2} },
		"cordoned":            func(n *nodewisev1.Node) { n.Unschedulable = true },
		"maintenance":         func(n *nodewisev1.Node) { n.MaintenanceInProgress = true },
		"nothing has changed": func(*nodewisev1.Node) {},
	} {
		for _, hasPolicy := range []bool{false, true} {
			made := store(t)
			want := ""
			if hasPolicy {
				made.PutPolicy(policy(t, "1", `{"names":["foo"]}`))
				if name != "nothing has changed" {
					want = "foo"
				}
			}
			made.PutNode(node(func(*nodewisev1.Node) {}))
			// The store keeps all fields that are compared.
			if got := toldOf(made, made.PutNode(node(change))); got != want {
				t.Errorf("%s, with a policy %t: got %q, want %q", name, hasPolicy, got, want)
			}
		}
	}
}

// L-25: a pod that restarts too often has failed.
func TestARestartConcernsOnlyRolloutsWithAPolicy(t *testing.T) {
	restarted := func(p *cluster.Pod) { p.Restarts = 1 }
	for _, test := range []struct {
		targets string
		next    *cluster.Pod
		want    string
	}{
		{`{"names":["bar"]}`, pod(restarted), ""},
		{`{"names":["foo"]}`, pod(restarted), "foo"},
		{`{"names":["bar"]}`, pod(restarted, ready), "foo, foo in 31s"},
	} {
		made := store(t)
		made.PutPolicy(policy(t, "1", test.targets))
		got := toldOf(made, &cluster.Transition{Pod: &cluster.Change[cluster.Pod]{Old: pod(), New: test.next}})
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.targets, got, test.want)
		}
	}
}
