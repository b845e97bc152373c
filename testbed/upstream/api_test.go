package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/daemon/util"
)

// caller makes calls with a real client, and describes each response in a sentence.
type caller struct {
	ctx    context.Context
	client kubernetes.Interface
}

func (c caller) createPod(node string) string {
	pod := newPod("", "")
	pod.GenerateName = "logs-"
	pod.Spec.Affinity = util.ReplaceDaemonSetPodNodeNameNodeAffinity(nil, node)
	created, err := c.client.CoreV1().Pods("default").Create(c.ctx, pod, meta.CreateOptions{})
	return sentence(err, func() string { return created.Name + " " + string(created.UID) + " " + created.ResourceVersion })
}

func (c caller) patchPod(name string, kind types.PatchType, patch string) string {
	patched, err := c.client.CoreV1().Pods("default").Patch(c.ctx, name, kind, []byte(patch), meta.PatchOptions{})
	return sentence(err, func() string {
		return words(len(patched.OwnerReferences), patched.Labels["app"], patched.ResourceVersion)
	})
}

func (c caller) deletePod(name string) string {
	return sentence(c.client.CoreV1().Pods("default").Delete(c.ctx, name, meta.DeleteOptions{}), func() string { return "ok" })
}

func (c caller) getPod(name string) string {
	pod, err := c.client.CoreV1().Pods("default").Get(c.ctx, name, meta.GetOptions{})
	return sentence(err, func() string { return pod.Name })
}

func (c caller) createRevision(name string) string {
	revision := &apps.ControllerRevision{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"}}
	created, err := c.client.AppsV1().ControllerRevisions("default").Create(c.ctx, revision, meta.CreateOptions{})
	return sentence(err, func() string { return created.Name })
}

func (c caller) renumber(name string, number int64) string {
	revision := &apps.ControllerRevision{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"}, Revision: number}
	put, err := c.client.AppsV1().ControllerRevisions("default").Update(c.ctx, revision, meta.UpdateOptions{})
	return sentence(err, func() string { return words(put.Revision, put.ResourceVersion) })
}

func (c caller) deleteRevision(name string) string {
	err := c.client.AppsV1().ControllerRevisions("default").Delete(c.ctx, name, meta.DeleteOptions{})
	return sentence(err, func() string { return "ok" })
}

func (c caller) getRevision(name string) string {
	revision, err := c.client.AppsV1().ControllerRevisions("default").Get(c.ctx, name, meta.GetOptions{})
	return sentence(err, func() string { return words(revision.Revision, string(revision.Data.Raw)) })
}

func (c caller) putStatus(version string, desired int32) string {
	ds := newDaemonSet(func(ds *apps.DaemonSet) {
		ds.ResourceVersion, ds.Status.DesiredNumberScheduled, ds.Spec.MinReadySeconds = version, desired, 99
	})
	put, err := c.client.AppsV1().DaemonSets("default").UpdateStatus(c.ctx, ds, meta.UpdateOptions{})
	return sentence(err, func() string {
		return words(put.Status.DesiredNumberScheduled, put.Spec.MinReadySeconds, put.ResourceVersion)
	})
}

func (c caller) getDaemonSet(name string) string {
	ds, err := c.client.AppsV1().DaemonSets("default").Get(c.ctx, name, meta.GetOptions{})
	return sentence(err, func() string { return ds.Name + " " + ds.ResourceVersion })
}

func sentence(err error, good func() string) string {
	if err == nil {
		return good()
	}
	if status, ok := err.(apierrors.APIStatus); ok {
		return words(status.Status().Code, status.Status().Reason)
	}
	return err.Error()
}

func words(words ...any) string { return strings.TrimSpace(fmt.Sprintln(words...)) }

func TestAPI(t *testing.T) {
	adopt := `{"metadata":{"uid":"a1","ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"logs","uid":"other"}]}}`
	release := `{"metadata":{"uid":"a1","ownerReferences":[{"$patch":"delete","uid":"ds"}]}}`
	relabel := `{"metadata":{"labels":{"app":"new"}}}`
	revisions := func(s *spec) { s.Revisions = []revisionSpec{newRevision(t, newDaemonSet(), "logs-1", 3)} }
	faults := func(faults ...fault) func(*spec) { return func(s *spec) { s.Faults = faults } }
	type calls = func(caller) string
	tests := []struct {
		name   string
		change func(*spec)
		calls  []calls
		want   []string
		record string
	}{
		{
			"a created pod is named after its node", nil,
			[]calls{
				func(c caller) string { return c.createPod("a") }, func(c caller) string { return c.createPod("b") },
				func(c caller) string { return c.createPod("a") }, func(c caller) string { return c.createPod("a") },
			},
			[]string{
				"logs-@a uid-1000001 1000001", "logs-@b uid-1000002 1000002", "logs-@a@2 uid-1000003 1000003",
				"logs-@a@3 uid-1000004 1000004",
			},
			"create-pod a 201, create-pod b 201, create-pod a 201, create-pod a 201",
		},
		{
			"patches change what is stored", nil,
			[]calls{
				func(c caller) string { return c.patchPod("a1", types.StrategicMergePatchType, adopt) },
				func(c caller) string { return c.patchPod("a1", types.StrategicMergePatchType, release) },
				func(c caller) string { return c.patchPod("a1", types.MergePatchType, relabel) },
			},
			[]string{"2 logs 1000001", "1 logs 1000002", "1 new 1000003"},
			"adopt-pod a1 200, release-pod a1 200, relabel-pod a1 200",
		},
		{
			"a patch of something else under the same name is a conflict", nil,
			[]calls{
				func(c caller) string {
					return c.patchPod("a1", types.StrategicMergePatchType, strings.Replace(release, "a1", "a0", 1))
				},
				func(c caller) string { return c.patchPod("a0", types.StrategicMergePatchType, release) },
			},
			[]string{"409 Conflict", "404 NotFound"},
			"release-pod a1 409, release-pod a0 404",
		},
		{
			"a deleted pod stays in its time of grace", nil,
			[]calls{
				func(c caller) string { return c.deletePod("a1") }, func(c caller) string { return c.getPod("a1") },
				func(c caller) string { return c.deletePod("a0") },
			},
			[]string{"ok", "a1", "404 NotFound"},
			"delete-pod a1 200, delete-pod a0 404",
		},
		{
			"what is gone is gone only from the API", func(s *spec) { s.Live.Gone = []string{"pods/a1"} },
			[]calls{func(c caller) string { return c.deletePod("a1") }},
			[]string{"404 NotFound"},
			"delete-pod a1 404",
		},
		{
			"revisions", revisions,
			[]calls{
				func(c caller) string { return c.createRevision("logs-1") },
				func(c caller) string { return c.createRevision(strings.Repeat("a", 254)) },
				func(c caller) string { return c.createRevision("logs-2") },
				func(c caller) string { return c.createRevision("logs-2") },
				func(c caller) string { return c.renumber("logs-1", 4) },
				func(c caller) string { return c.renumber("logs-3", 4) },
				func(c caller) string { return c.deleteRevision("logs-1") },
				func(c caller) string { return c.deleteRevision("logs-1") },
			},
			[]string{
				"409 AlreadyExists", "422 Invalid", "logs-2", "409 AlreadyExists", "4 1000002", "404 NotFound", "ok",
				"404 NotFound",
			},
			"create-revision logs-1 409, create-revision " + strings.Repeat("a", 254) + " 422, create-revision logs-2 201, " +
				"create-revision logs-2 409, update-revision logs-1 200, update-revision logs-3 404, " +
				"delete-revision logs-1 200, delete-revision logs-1 404",
		},
		{
			"a revision that is being deleted is not deleted again",
			func(s *spec) {
				revisions(s)
				s.Revisions[0].Object = bytes.Replace(
					s.Revisions[0].Object, []byte(`"metadata":{`), []byte(`"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",`), 1)
				s.Faults = []fault{{Op: "delete-revision", Code: 500, Reason: "InternalError"}}
			},
			[]calls{
				func(c caller) string { return c.deleteRevision("logs-1") },
				func(c caller) string { return c.deleteRevision("logs-2") },
				func(c caller) string { return c.renumber("logs-1", 4) },
			},
			[]string{"ok", "500 InternalError", "4 1000001"},
			"delete-revision logs-2 500, update-revision logs-1 200",
		},
		{
			"a revision's data is escaped as by an apiserver",
			func(s *spec) {
				s.Live.Revisions = []revisionSpec{{
					Object: encoded(t, &apps.ControllerRevision{ObjectMeta: meta.ObjectMeta{Name: "r", Namespace: "default"}}),
					Data:   `{"a":"<&>"}`,
				}}
			},
			[]calls{func(c caller) string { return c.getRevision("r") }},
			[]string{`0 {"a":"\u003c\u0026\u003e"}`},
			"",
		},
		{
			"a status is stored when the version is right, and nothing else is", nil,
			[]calls{
				func(c caller) string { return c.putStatus("4", 1) }, func(c caller) string { return c.putStatus("5", 2) },
				func(c caller) string { return c.putStatus("5", 3) }, func(c caller) string { return c.getDaemonSet("logs") },
			},
			[]string{"409 Conflict", "2 0 1000001", "409 Conflict", "logs 1000001"},
			"update-status logs 409, update-status logs 200, update-status logs 409",
		},
		{
			"a DaemonSet that is gone", func(s *spec) { s.Live.Subject = []byte("null") },
			[]calls{
				func(c caller) string { return c.putStatus("5", 1) }, func(c caller) string { return c.getDaemonSet("logs") },
			},
			[]string{"404 NotFound", "404 NotFound"},
			"update-status logs 404",
		},
		{
			"the first fault that matches answers, so often as it says",
			faults(
				fault{Op: "create-pod", Name: "b", Code: 403, Reason: "Forbidden"},
				fault{Op: "create-pod", Code: 500, Reason: "InternalError", Times: 2},
				fault{Op: "create-pod", Name: "a", Code: 409, Reason: "AlreadyExists", Times: 1},
			),
			[]calls{
				func(c caller) string { return c.createPod("a") }, func(c caller) string { return c.createPod("b") },
				func(c caller) string { return c.createPod("c") }, func(c caller) string { return c.createPod("a") },
				func(c caller) string { return c.createPod("a") }, func(c caller) string { return c.createPod("b") },
			},
			[]string{
				"500 InternalError", "403 Forbidden", "500 InternalError", "409 AlreadyExists", "logs-@a uid-1000001 1000001",
				"403 Forbidden",
			},
			"create-pod a 500, create-pod b 403, create-pod c 500, create-pod a 409, create-pod a 201, create-pod b 403",
		},
		{
			"reads can fail too", faults(fault{Op: "get-daemonset", Code: 503, Reason: "ServiceUnavailable"}),
			[]calls{func(c caller) string { return c.getDaemonSet("logs") }},
			[]string{"503 ServiceUnavailable"},
			"",
		},
	}
	client, err := newClient()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			f := fixture{pods: []*core.Pod{newPod("a1", "a")}, change: test.change}
			_, cluster, err := readRequest(f.request(t, 1, orderGiven))
			if err != nil {
				t.Fatal(err)
			}
			a := newAPI(cluster)
			inUse.Store(a)
			caller := caller{t.Context(), client}
			for i, call := range test.calls {
				if got := call(caller); got != test.want[i] {
					t.Errorf("call %d: %q, want %q", i, got, test.want[i])
				}
			}
			var record []string
			for _, call := range a.calls {
				record = append(record, words(call.Op, call.Name, call.Code))
			}
			if got := strings.Join(record, ", "); got != test.record {
				t.Errorf("recorded %q, want %q", got, test.record)
			}
		})
	}
}

func TestTheCauseOfARefusalArrives(t *testing.T) {
	f := fixture{change: func(s *spec) {
		s.Faults = []fault{{Op: "delete-pod", Code: 403, Reason: "Forbidden", Cause: string(core.NamespaceTerminatingCause)}}
	}}
	_, cluster, err := readRequest(f.request(t, 1, orderGiven))
	if err != nil {
		t.Fatal(err)
	}
	client, err := newClient()
	if err != nil {
		t.Fatal(err)
	}
	inUse.Store(newAPI(cluster))
	err = client.CoreV1().Pods("default").Delete(t.Context(), "a1", meta.DeleteOptions{})
	if !apierrors.HasStatusCause(err, core.NamespaceTerminatingCause) {
		t.Errorf("%v has not that cause", err)
	}
}
