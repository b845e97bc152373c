package apply_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

var workload = &nodewisev1.WorkloadReference{Kind: "DaemonSet", Namespace: "ns", Name: "agent", Uid: "d1"}

const (
	podPath      = "/api/v1/namespaces/ns/pods"
	revisionPath = "/apis/apps/v1/namespaces/ns/controllerrevisions"
	workloadPath = "/apis/apps/v1/namespaces/ns/daemonsets/agent"
	manifest     = `{"metadata":{"labels":{"controller-revision-hash":"h"}},"spec":{"nodeName":"?","n":9007199254740993}}`
	object       = `{"metadata":{"name":"agent","uid":"d1","resourceVersion":"5"},"spec":{"x":1.50},"status":{"numberReady":1,"later":2.50}}`
)

func create(name, node string) *nodewisev1.Action {
	return &nodewisev1.Action{Kind: &nodewisev1.Action_CreatePod{CreatePod: &nodewisev1.CreatePod{PodName: name, NodeName: node}}}
}

func remove(name string) *nodewisev1.Action {
	return &nodewisev1.Action{Kind: &nodewisev1.Action_DeletePod{DeletePod: &nodewisev1.DeletePod{
		Pod: &nodewisev1.ObjectReference{Name: name, Uid: "u-" + name}, UidPrecondition: true,
	}}}
}

func adopt(name string) *nodewisev1.Action {
	return &nodewisev1.Action{Kind: &nodewisev1.Action_AdoptPod{AdoptPod: &nodewisev1.AdoptPod{
		Pod: &nodewisev1.ObjectReference{Name: name}, Patch: []byte(`{"a":1}`),
	}}}
}

func emit(reason string) *nodewisev1.Action {
	return &nodewisev1.Action{Kind: &nodewisev1.Action_EmitEvent{
		EmitEvent: &nodewisev1.EmitEvent{Type: "Normal", Reason: reason, Message: "m"},
	}}
}

func status(update *nodewisev1.UpdateStatus) *nodewisev1.Action {
	return &nodewisev1.Action{Kind: &nodewisev1.Action_UpdateStatus{UpdateStatus: update}}
}

// phase has one batch for each list of actions.
func phase(batches ...[]*nodewisev1.Action) *nodewisev1.Phase {
	made := &nodewisev1.Phase{Kind: nodewisev1.PhaseKind_PHASE_KIND_CREATES}
	for _, actions := range batches {
		made.Batches = append(made.Batches, &nodewisev1.Batch{Actions: actions})
	}
	return made
}

func one(actions ...*nodewisev1.Action) []*nodewisev1.Action { return actions }

func run(t *testing.T, writer write.Writer, phases ...*nodewisev1.Phase) *apply.Applied {
	t.Helper()
	plan := &nodewisev1.Plan{
		Workload: workload, Phases: phases, PodManifest: []byte(manifest), NodeNamePointers: []string{"/spec/nodeName"},
	}
	return apply.Apply(t.Context(), writer, plan, cluster.DaemonSet, []byte(object), apply.Settings{Concurrency: 8})
}

func results(applied *apply.Applied) string {
	var names []string
	for _, outcome := range applied.Outcomes {
		names = append(names, strings.TrimPrefix(outcome.GetResult().String(), "RESULT_"))
	}
	return strings.Join(names, " ")
}

// managed adds a managed field with this member to an object, as any client that may write the object can.
func managed(object answer, member string, value any) answer {
	object.body.(map[string]any)["metadata"].(map[string]any)["managedFields"] = []any{
		map[string]any{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", member: value},
	}
	return object
}

// fiveDigits is the time that an apiserver serves for 9999-12-31T23:59:59-23:00. No typed object can have its year.
const fiveDigits = "10000-01-01T22:59:59Z"

// livePod is the answer to a read of the pod p.
func livePod(uid, node, hash string) answer {
	return answer{200, map[string]any{
		"metadata": map[string]any{
			"name": "p", "uid": "u", "labels": map[string]any{"controller-revision-hash": hash},
			"ownerReferences": []any{map[string]any{"kind": "DaemonSet", "name": "agent", "uid": uid, "controller": true}},
		},
		"spec": map[string]any{"nodeName": node},
	}}
}

// controlledBy is the answer to a read of the pod p, whose controller has the uid of the workload.
func controlledBy(kind, name string) answer {
	live := livePod("d1", "n1", "h")
	owner := live.body.(map[string]any)["metadata"].(map[string]any)["ownerReferences"].([]any)[0].(map[string]any)
	owner["kind"], owner["name"] = kind, name
	return live
}

// A pod that is for no node is the workload's own if the workload controls it, whatever its node and its hash are.
func TestCreatesForNoNode(t *testing.T) {
	exists := refusal(409, "AlreadyExists", "it exists")
	for uid, want := range map[string]string{"d1": "ALREADY_EXISTS", "d2": "NAME_TAKEN"} {
		_, kube := start(t, map[string][]answer{"POST " + podPath: {exists}, "GET " + podPath + "/p": {livePod(uid, "n2", "x")}})
		if got := results(run(t, kube, phase(one(create("p", ""))))); got != want {
			t.Errorf("controlled by %s: got %s, want %s", uid, got, want)
		}
	}
}

// The meaning of each response to a create (D-80 to D-82), and the Events.
func TestCreates(t *testing.T) {
	exists := refusal(409, "AlreadyExists", "it exists")
	deep := json.RawMessage(strings.Repeat(`{"f:a":`, 8000) + "{}" + strings.Repeat("}", 8000))
	for _, test := range []struct {
		name          string
		said, read    answer
		want          string
		event         string
		writes, abort bool
	}{
		{name: "created", said: ok("p", "7"), want: "SUCCEEDED", event: "Normal SuccessfulCreate Created pod: p", writes: true},
		{name: "ours", said: exists, read: livePod("d1", "n1", "h"), want: "ALREADY_EXISTS"},
		{name: "another workload's", said: exists, read: livePod("d2", "n1", "h"), want: "NAME_TAKEN"},
		{name: "of another kind", said: exists, read: controlledBy("ReplicaSet", "agent"), want: "NAME_TAKEN"},
		{name: "of another workload", said: exists, read: controlledBy("DaemonSet", "other"), want: "NAME_TAKEN"},
		{name: "of another node", said: exists, read: livePod("d1", "n2", "h"), want: "NAME_TAKEN"},
		{name: "of another revision", said: exists, read: livePod("d1", "n1", "x"), want: "NAME_TAKEN"},
		{name: "another's with an odd time", said: exists, read: managed(livePod("d2", "n1", "h"), "time", fiveDigits), want: "NAME_TAKEN"},
		{name: "ours with an odd time", said: exists, read: managed(livePod("d1", "n1", "h"), "time", fiveDigits), want: "ALREADY_EXISTS"},
		{name: "another's with deep fields", said: exists, read: managed(livePod("d2", "n1", "h"), "fieldsV1", deep), want: "NAME_TAKEN"},
		{name: "it cannot be read", said: exists, read: refusal(500, "InternalError", "no"), want: "FAILED",
			event: "Warning FailedCreate Error creating: it exists"},
		{name: "it is gone by now", said: exists, read: refusal(404, "NotFound", "gone"), want: "FAILED",
			event: "Warning FailedCreate Error creating: it exists"},
		{name: "it is no object", said: exists, read: answer{200, "?"}, want: "FAILED",
			event: "Warning FailedCreate Error creating: it exists"},
		{name: "it has no uid", said: exists, read: answer{200, map[string]any{"metadata": map[string]any{"name": "p"}}}, want: "FAILED",
			event: "Warning FailedCreate Error creating: it exists"},
		{name: "the namespace ends", said: refusal(403, "Forbidden", "it ends", "NamespaceTerminating"), want: "NAMESPACE_TERMINATING"},
		{name: "refused", said: refusal(403, "Forbidden", "a quota"), want: "FAILED", event: "Warning FailedCreate Error creating: a quota"},
		{name: "no answer", said: answer{}, want: "FAILED", event: "Warning FailedCreate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, kube := start(t, map[string][]answer{"POST " + podPath: {test.said}, "GET " + podPath + "/p": {test.read}})
			applied := run(t, kube, phase(one(create("p", "n1"))))
			if got := results(applied); got != test.want {
				t.Errorf("got %s, want %s: %v", got, test.want, applied.Outcomes)
			}
			if taken := test.want == "NAME_TAKEN"; slices.Equal(applied.TakenNames, []string{"p"}) != taken {
				t.Errorf("names that are taken: %v", applied.TakenNames)
			}
			if applied.Failed != (test.want == "FAILED") {
				t.Errorf("failed: %t", applied.Failed)
			}
			want := []apply.OwnWrite(nil)
			if test.writes {
				want = []apply.OwnWrite{{Resource: cluster.Pods, ResourceVersion: "7", CreatedPod: "p"}}
			}
			if diff := cmp.Diff(want, applied.Writes); diff != "" {
				t.Error(diff)
			}
			if events := strings.Join(server.said(), ";"); !strings.HasPrefix(events, test.event) || (test.event == "") != (events == "") {
				t.Errorf("said %q, want %q", events, test.event)
			}
			if posts := slices.DeleteFunc(server.lines(), func(line string) bool { return !strings.HasPrefix(line, "POST") }); len(posts) != 1 {
				t.Errorf("a create that may have happened was tried again: %v", posts)
			}
		})
	}
}

// The meaning of each response to a delete. A delete that was done must not be reported as failed.
func TestDeletes(t *testing.T) {
	live := func(metadata map[string]any) answer { return answer{200, map[string]any{"metadata": metadata}} }
	conflict, broken := refusal(409, "Conflict", "another uid"), answer{}
	for _, test := range []struct {
		name       string
		said, read answer
		want       string
	}{
		{"deleted", ok("p", "8"), answer{}, "SUCCEEDED"},
		{"gone", refusal(404, "NotFound", "gone"), answer{}, "NOT_FOUND"},
		{"another pod has the name", conflict, live(map[string]any{"uid": "other"}), "NOT_FOUND"},
		{"no answer, and gone", broken, refusal(404, "NotFound", "gone"), "NOT_FOUND"},
		{"no answer, and going", broken, live(map[string]any{"uid": "u-p", "deletionTimestamp": "2026-01-01T00:00:00Z"}), "SUCCEEDED"},
		{"no answer, and as before", broken, live(map[string]any{"uid": "u-p"}), "FAILED"},
		{"a server in trouble, and going", refusal(500, "InternalError", "x"),
			live(map[string]any{"uid": "u-p", "deletionTimestamp": "2026-01-01T00:00:00Z"}), "SUCCEEDED"},
		{"refused", refusal(403, "Forbidden", "no"), answer{}, "FAILED"},
	} {
		t.Run(test.name, func(t *testing.T) {
			at := podPath + "/p"
			server, kube := start(t, map[string][]answer{"DELETE " + at: {test.said}, "GET " + at: {test.read}})
			applied := run(t, kube, phase(one(remove("p"))))
			if got := results(applied); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if !strings.Contains(server.body("DELETE "+at), `"preconditions":{"uid":"u-p"}`) {
				t.Errorf("sent %s", server.body("DELETE "+at))
			}
			if applied.Outcomes[0].GetDeletedPodUid() != "u-p" {
				t.Errorf("told of %v", applied.Outcomes[0])
			}
		})
	}
}

// Which phases and batches run, and which are skipped.
func TestPhases(t *testing.T) {
	says := func() map[string][]answer {
		return map[string][]answer{
			"POST " + podPath:            {ok("p", "7")},
			"DELETE " + podPath + "/ok":  {ok("p", "8")},
			"DELETE " + podPath + "/bad": {refusal(403, "Forbidden", "no")},
		}
	}
	aborting := func(phase *nodewisev1.Phase) *nodewisev1.Phase { phase.AbortsOnFailure = true; return phase }
	requiring := func(phase *nodewisev1.Phase) *nodewisev1.Phase { phase.RequiresSuccess = true; return phase }
	events := func(phase *nodewisev1.Phase) *nodewisev1.Phase {
		phase.Kind = nodewisev1.PhaseKind_PHASE_KIND_EVENTS
		return phase
	}
	good, bad := func() []*nodewisev1.Action { return one(remove("ok")) }, func() []*nodewisev1.Action { return one(remove("bad")) }
	for _, test := range []struct {
		name   string
		phases []*nodewisev1.Phase
		want   string
		failed bool
		abort  bool
	}{
		{"a failed batch ends its phase", []*nodewisev1.Phase{phase(bad(), good()), phase(good())}, "FAILED SKIPPED SUCCEEDED", true, false},
		{"and the plan, if so", []*nodewisev1.Phase{aborting(phase(bad())), phase(good())}, "FAILED SKIPPED", true, true},
		{"what requires success", []*nodewisev1.Phase{phase(bad()), phase(good()), requiring(phase(good()))}, "FAILED SUCCEEDED SKIPPED", true, false},
		{"events never count", []*nodewisev1.Phase{events(phase(bad())), requiring(phase(good()))}, "FAILED SUCCEEDED", false, false},
		{"the rest of a batch runs", []*nodewisev1.Phase{phase(one(remove("bad"), remove("ok"), create("p", "n")))}, "FAILED SUCCEEDED SUCCEEDED", true, false},
		{"what is not known", []*nodewisev1.Phase{phase(one(&nodewisev1.Action{}))}, "FAILED", true, false},
		{"said", []*nodewisev1.Phase{events(phase(one(emit("R"))))}, "SUCCEEDED", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, kube := start(t, says())
			applied := run(t, kube, test.phases...)
			if got := results(applied); got != test.want || applied.Failed != test.failed || applied.Aborted != test.abort {
				t.Errorf("got %s, failed %t, aborted %t", got, applied.Failed, applied.Aborted)
			}
		})
	}
}

// An action that is left out is not tried, and stops nothing. Its outcome says why.
func TestWhatIsLeftOutIsNotTried(t *testing.T) {
	server, kube := start(t, map[string][]answer{"DELETE " + podPath + "/ok": {ok("ok", "9")}})
	adoptions, deletes := phase(one(adopt("orphan"))), phase(one(remove("changed"), remove("ok")))
	adoptions.AbortsOnFailure, deletes.RequiresSuccess = true, true
	for i, action := range slices.Concat(adoptions.GetBatches()[0].GetActions(), deletes.GetBatches()[0].GetActions()) {
		action.Id = uint32(i + 1)
	}
	plan := &nodewisev1.Plan{Workload: workload, Phases: []*nodewisev1.Phase{adoptions, deletes}}
	leftOut := map[uint32]string{1: "the one", 2: "the other"}
	applied := apply.Apply(t.Context(), kube, plan, cluster.DaemonSet, []byte(object), apply.Settings{Concurrency: 8, LeftOut: leftOut})
	if got := results(applied); got != "SKIPPED SKIPPED SUCCEEDED" || applied.Failed || applied.Aborted {
		t.Errorf("got %s, failed %t, aborted %t", got, applied.Failed, applied.Aborted)
	}
	if asked := server.lines(); len(asked) != 1 || applied.Outcomes[0].GetMessage() != "the one" || applied.Outcomes[1].GetMessage() != "the other" {
		t.Errorf("asked %v: %v", asked, applied.Outcomes)
	}
}

// A taken name stops no batch, phase or plan, and the other creates of the batch count as usual.
func TestATakenNameStopsNothing(t *testing.T) {
	server, kube := start(t, map[string][]answer{
		"POST " + podPath:           {refusal(409, "AlreadyExists", "it exists"), ok("other", "7"), ok("made", "8")},
		"GET " + podPath + "/p":     {{200, map[string]any{"metadata": map[string]any{"name": "p", "uid": "theirs"}}}},
		"DELETE " + podPath + "/ok": {ok("ok", "9")},
	})
	creates, deletes := phase(one(create("p", "n1")), one(create("q", "n2")), one(create("", "n3"))), phase(one(remove("ok")))
	creates.AbortsOnFailure, deletes.RequiresSuccess = true, true
	applied := run(t, kube, creates, deletes)
	if got := results(applied); got != "NAME_TAKEN SUCCEEDED SUCCEEDED SUCCEEDED" || applied.Failed || applied.Aborted {
		t.Errorf("got %s, failed %t, aborted %t", got, applied.Failed, applied.Aborted)
	}
	if !slices.Equal(applied.TakenNames, []string{"p"}) {
		t.Errorf("names that are taken: %v", applied.TakenNames)
	}
	want := []apply.OwnWrite{
		{Resource: cluster.Pods, ResourceVersion: "7", CreatedPod: "q"}, {Resource: cluster.Pods, ResourceVersion: "8"},
	}
	if diff := cmp.Diff(want, applied.Writes); diff != "" {
		t.Error(diff)
	}
	for _, event := range server.said() {
		if strings.Contains(event, "FailedCreate") {
			t.Errorf("said %q", event)
		}
	}
}

// D-27, D-23: which objects are adopted, and by which workload.
func TestAdoptions(t *testing.T) {
	confirmed := answer{200, map[string]any{"metadata": map[string]any{"uid": "d1"}}}
	for _, test := range []struct {
		name     string
		workload answer
		said     answer
		want     string
		vanished int
	}{
		{"adopted", confirmed, ok("o", "9"), "SUCCEEDED SUCCEEDED", 0},
		{"an orphan with an odd time", confirmed, managed(ok("o", "9"), "time", fiveDigits), "SUCCEEDED SUCCEEDED", 0},
		{
			"a workload with an odd time", managed(answer{200, map[string]any{"metadata": map[string]any{"uid": "d1"}}}, "time", fiveDigits),
			ok("o", "9"), "SUCCEEDED SUCCEEDED", 0,
		},
		{"the orphan is gone", confirmed, refusal(404, "NotFound", "gone"), "NOT_FOUND SKIPPED", 1},
		{"the workload is another one", answer{200, map[string]any{"metadata": map[string]any{"uid": "d2"}}}, ok("o", "9"), "FAILED SKIPPED", 0},
		{"the workload ends", answer{200, map[string]any{"metadata": map[string]any{
			"uid": "d1", "deletionTimestamp": "2026-01-01T00:00:00Z",
		}}}, ok("o", "9"), "FAILED SKIPPED", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, kube := start(t, map[string][]answer{
				"GET " + workloadPath: {test.workload}, "PATCH " + podPath + "/o": {test.said}, "POST " + podPath: {ok("p", "7")},
			})
			claims := phase(one(adopt("o")), one(create("p", "n")))
			claims.Batches[0].ConfirmWorkload = true
			applied := run(t, kube, claims)
			if got := results(applied); got != test.want || len(applied.Vanished) != test.vanished {
				t.Errorf("got %s, vanished %v", got, applied.Vanished)
			}
			if test.vanished > 0 && (applied.Failed || !applied.Aborted) {
				t.Error("it is no failure, and ends the plan")
			}
		})
	}
}

// A revision that is refused because of its data cannot be changed by any plan.
func TestSealedRevisions(t *testing.T) {
	update := func() *nodewisev1.Action {
		return &nodewisev1.Action{Kind: &nodewisev1.Action_UpdateRevision{UpdateRevision: &nodewisev1.UpdateRevision{
			Revision: &nodewisev1.ObjectReference{Name: "r"}, Patch: []byte(`{"revision":2}`),
		}}}
	}
	release := func() *nodewisev1.Action {
		return &nodewisev1.Action{Kind: &nodewisev1.Action_ReleaseRevision{ReleaseRevision: &nodewisev1.ReleaseRevision{
			Revision: &nodewisev1.ObjectReference{Name: "r"}, Patch: []byte(`{}`),
		}}}
	}
	for message, sealed := range map[string]bool{
		`ControllerRevision "r" is invalid: data: Forbidden: field is immutable`:                 true,
		`ControllerRevision "r" is invalid: [revision: x, data: Forbidden: field is immutable]`:  true,
		`ControllerRevision "r" is invalid: metadata.labels: Invalid value: "data: is no label"`: false,
	} {
		for _, action := range []*nodewisev1.Action{update(), release()} {
			server, kube := start(t, map[string][]answer{"PATCH " + revisionPath + "/r": {refusal(422, "Invalid", message)}})
			applied := run(t, kube, phase(one(action)))
			// A release that is refused for another reason finds another revision of the name, which is no failure.
			isFailure := !sealed && action.GetUpdateRevision() != nil
			if (len(applied.Sealed) == 1) != sealed || applied.Failed != isFailure {
				t.Errorf("%v, %s: got %+v", action, message, applied)
			}
			if said := server.said(); (len(said) == 1) != sealed {
				t.Errorf("%v, %s: said %v", action, message, said)
			}
		}
	}
}

// A client may create pods and revisions that are so large that nothing can be added to them. A plan without them is possible.
func TestTooLarge(t *testing.T) {
	reference, patch := &nodewisev1.ObjectReference{Name: "r"}, []byte(`{}`)
	adoptRevision := &nodewisev1.Action{Kind: &nodewisev1.Action_AdoptRevision{AdoptRevision: &nodewisev1.AdoptRevision{
		Revision: reference, Patch: patch,
	}}}
	adoptPod := &nodewisev1.Action{Kind: &nodewisev1.Action_AdoptPod{AdoptPod: &nodewisev1.AdoptPod{Pod: reference, Patch: patch}}}
	relabelPod := &nodewisev1.Action{Kind: &nodewisev1.Action_RelabelPod{RelabelPod: &nodewisev1.RelabelPod{Pod: reference, Patch: patch}}}
	for _, test := range []struct {
		code     int
		message  string
		tooLarge bool
	}{
		{413, "Request entity too large: limit is 3145728", true},
		{500, "etcdserver: request is too large", true},
		{500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097153 vs. 2097152)", true},
		{422, `Pod "r" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes`, true},
		{422, `Pod "r" is invalid: metadata.uid: Invalid value: "u": field is immutable`, false},
		{500, "etcdserver: leader changed", false},
	} {
		for path, action := range map[string]*nodewisev1.Action{
			revisionPath: adoptRevision, podPath: adoptPod,
			// The pod is the workload's own: it keeps its label, and the plan goes on.
			podPath + "/": relabelPod,
		} {
			path, isOwn := strings.CutSuffix(path, "/")
			server, kube := start(t, map[string][]answer{"PATCH " + path + "/r": {refusal(test.code, "", test.message)}})
			applied := run(t, kube, phase(one(action)))
			isLeftOut := test.tooLarge && !isOwn
			if (len(applied.Sealed) == 1) != isLeftOut || applied.Failed == test.tooLarge || applied.IsOutdated() != isLeftOut {
				t.Errorf("%v, %s: got %+v", action, test.message, applied)
			}
			if isLeftOut && !strings.HasSuffix(path, string(applied.Sealed[0].Resource)) {
				t.Errorf("%v: got %v", action, applied.Sealed)
			}
			said := strings.Join(server.said(), "\n")
			isTold := strings.Contains(said, "Warning ObjectTooLarge") && strings.Contains(said, "/r ") && strings.Contains(said, test.message)
			if isTold != test.tooLarge {
				t.Errorf("%v, %s: said %s", action, test.message, said)
			}
		}
	}
}

// D-91: other fields stay. After a failed write the object is read and written once more.
func TestStatus(t *testing.T) {
	put := "PUT " + workloadPath + "/status"
	update := &nodewisev1.UpdateStatus{Status: &nodewisev1.DaemonSetStatus{NumberReady: 3}, UidPrecondition: true}
	newer := strings.Replace(object, `"resourceVersion":"5"`, `"resourceVersion":"6"`, 1)
	server, kube := start(t, map[string][]answer{
		put: {refusal(409, "Conflict", "stale"), ok("agent", "7")}, "GET " + workloadPath: {{200, json.RawMessage(newer)}},
	})
	applied := run(t, kube, phase(one(status(update))))
	if results(applied) != "SUCCEEDED" || applied.Writes[0].Resource != cluster.DaemonSets {
		t.Fatalf("got %+v", applied)
	}
	body := server.body(put)
	for _, part := range []string{`"resourceVersion":"6"`, `"numberReady":3`, `"later":2.50`, `{"x":1.50}`, `"numberAvailable":0`} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
	collisions := func(present string, expected *int32) string {
		live := strings.Replace(object, `"later"`, present+`"later"`, 1)
		_, kube := start(t, map[string][]answer{put: {ok("agent", "7")}, "GET " + workloadPath: {{200, json.RawMessage(live)}}})
		two := int32(2)
		applied := run(t, kube, phase(one(status(&nodewisev1.UpdateStatus{CollisionCount: &two, ExpectedCollisionCount: expected}))))
		if len(applied.Writes) > 0 {
			t.Error("the write of a collision count is not remembered")
		}
		return results(applied)
	}
	zero, won := int32(1), `"collisionCount":1,`
	if got := []string{collisions(won, &zero), collisions("", nil), collisions(won, nil), collisions("", &zero)}; !slices.Equal(got,
		[]string{"SUCCEEDED", "SUCCEEDED", "FAILED", "FAILED"}) {
		t.Errorf("got %v", got)
	}
}

// A workload that was created again under its name gets no status and no collision count of its predecessor.
func TestStatusOfAReplacedWorkload(t *testing.T) {
	put, count := "PUT "+workloadPath+"/status", int32(1)
	replaced := strings.Replace(object, `"uid":"`, `"uid":"another-`, 1)
	for _, update := range []*nodewisev1.UpdateStatus{
		{Status: &nodewisev1.DaemonSetStatus{NumberReady: 3}}, {CollisionCount: &count},
	} {
		server, kube := start(t, map[string][]answer{
			put: {refusal(409, "Conflict", "stale"), ok("agent", "7")}, "GET " + workloadPath: {{200, json.RawMessage(replaced)}},
		})
		applied := run(t, kube, phase(one(status(update))))
		asked := server.lines()
		if results(applied) != "FAILED" || asked[len(asked)-1] != "GET "+workloadPath {
			t.Errorf("%v: got %s after %v", update, results(applied), asked)
		}
	}
}

// D-56, D-59, D-62, D-63: a revision is written byte for byte, and an existing one of the same name is returned.
func TestRevisions(t *testing.T) {
	raw := `{"metadata":{"name":"r"},"data":{"z":"\u003c","a":1.50}}`
	action := func() *nodewisev1.Action {
		return &nodewisev1.Action{Kind: &nodewisev1.Action_CreateRevision{
			CreateRevision: &nodewisev1.CreateRevision{Name: "r", Manifest: []byte(raw)},
		}}
	}
	server, kube := start(t, map[string][]answer{"POST " + revisionPath: {ok("r", "7")}})
	if applied := run(t, kube, phase(one(action()))); len(applied.Created) != 1 || server.body("POST "+revisionPath) != raw {
		t.Errorf("sent %s, %+v", server.body("POST "+revisionPath), applied)
	}
	_, kube = start(t, map[string][]answer{
		"POST " + revisionPath: {refusal(409, "AlreadyExists", "x")}, "GET " + revisionPath + "/r": {{200, json.RawMessage(raw)}},
	})
	if applied := run(t, kube, phase(one(action()))); len(applied.Colliding) != 1 || !applied.Failed {
		t.Errorf("got %+v", applied)
	}
	_, kube = start(t, map[string][]answer{"DELETE " + revisionPath + "/r": {refusal(404, "NotFound", "gone")}})
	gone := &nodewisev1.Action{Kind: &nodewisev1.Action_DeleteRevision{
		DeleteRevision: &nodewisev1.DeleteRevision{Revision: &nodewisev1.ObjectReference{Name: "r"}},
	}}
	if applied := run(t, kube, phase(one(gone))); results(applied) != "FAILED" {
		t.Errorf("one that is gone shows that the cache is behind, got %+v", applied)
	}
}

// A batch runs concurrently, and its results are in order.
func TestBatchesRunConcurrently(t *testing.T) {
	server, kube := start(t, map[string][]answer{"POST " + podPath: {ok("p", "7")}})
	var actions []*nodewisev1.Action
	for i := range 20 {
		actions = append(actions, create(fmt.Sprint("p", i), fmt.Sprint("n", i)))
	}
	applied := run(t, kube, phase(actions))
	nodes := map[string]bool{}
	for i, outcome := range applied.Outcomes {
		nodes[outcome.GetCreatedPod().GetNodeName()] = true
		if outcome.GetCreatedPod().GetPodName() != fmt.Sprint("p", i) {
			t.Errorf("%d is %v", i, outcome)
		}
	}
	if len(nodes) != 20 || len(server.lines()) != 20 {
		t.Errorf("got %v", slices.Collect(maps.Keys(nodes)))
	}
}
