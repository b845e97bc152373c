package nodewise

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
	"nodewise.dev/clients/go/served"
)

// revisionOf is a revision of a size. The workload controls it, or it is an orphan that the selector matches.
func revisionOf(t *testing.T, name string, owned bool, number, size int) *served.Object {
	t.Helper()
	owners := ""
	if owned {
		owners = `{"kind":"DaemonSet","name":"agent","uid":"d1","controller":true}`
	}
	object := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"namespace":"ns","name":%q,"uid":"u-%s",
		"resourceVersion":"1","labels":{"app":"agent"},"ownerReferences":[%s]},"revision":%d,"data":""}`, name, name, owners, number)
	object = strings.Replace(object, `"data":""`, `"data":"`+strings.Repeat("x", size-len(object))+`"`, 1)
	parsed, err := served.Parse([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// The workload's own revisions come before orphans, and newer ones before older ones.
func TestRevisionsThatFit(t *testing.T) {
	all := []*cluster.Revision{
		cluster.NewRevision(revisionOf(t, "a", false, 9, 1000)),
		cluster.NewRevision(revisionOf(t, "b", true, 1, 1000)),
		cluster.NewRevision(revisionOf(t, "c", true, 10, 1000)),
		cluster.NewRevision(revisionOf(t, "d", false, 8, 1000)),
		cluster.NewRevision(revisionOf(t, "e", false, 8, 500)),
	}
	for room, want := range map[int]string{
		4500: "abcde",
		4499: "abcd",
		3999: "abc", // Nor is e, which would fit.
		2999: "bc",
		1999: "c",
		1:    "c",
		-1:   "c",
	} {
		var names []string
		for _, revision := range fittingRevisions(all, room) {
			names = append(names, revision.Name)
		}
		if got := strings.Join(names, ""); got != want {
			t.Errorf("into %d: got %s, want %s", room, got, want)
		}
	}
	if got := fittingRevisions(nil, -1); len(got) != 0 {
		t.Errorf("got %v of none", got)
	}
}

// askingTwice is a planner that builds each request twice.
type askingTwice struct{ *scripted }

func (a askingTwice) Plan(ctx context.Context, uid string, build planclient.BuildRequest) (*planclient.Answer, error) {
	if _, err := build(planclient.Receiver{}); err != nil {
		return nil, err
	}
	return a.scripted.Plan(ctx, uid, build)
}

// Left out revisions are logged once for each plan.
func TestRevisionsThatAreTooLargeTogetherAreLeftOut(t *testing.T) {
	const mebibyte = 1 << 20
	for _, test := range []struct {
		name          string
		cached        []*served.Object
		live          []*served.Object
		want, collide []string
		leftOut       int
	}{
		{
			name:   "they fit exactly",
			cached: []*served.Object{revisionOf(t, "a", false, 1, 8*mebibyte), revisionOf(t, "b", true, 2, 8*mebibyte)},
			want:   []string{"a", "b"},
		},
		{
			name: "orphans do not fit",
			cached: []*served.Object{
				revisionOf(t, "a", false, 5, 8*mebibyte), revisionOf(t, "b", true, 2, 8*mebibyte), revisionOf(t, "c", false, 6, 8*mebibyte+1),
			},
			want:    []string{"b"},
			leftOut: 2,
		},
		{
			name:    "what was read live comes first",
			cached:  []*served.Object{revisionOf(t, "a", true, 5, 8*mebibyte), revisionOf(t, "b", true, 6, 8*mebibyte)},
			live:    []*served.Object{revisionOf(t, "live", false, 0, mebibyte)},
			want:    []string{"b", "live"},
			collide: []string{"live"},
			leftOut: 1,
		},
		{
			name:    "one is sent however large the others are",
			cached:  []*served.Object{revisionOf(t, "a", true, 5, mebibyte), revisionOf(t, "live", true, 9, mebibyte)},
			live:    []*served.Object{revisionOf(t, "live", true, 9, 16*mebibyte)},
			want:    []string{"a", "live"},
			collide: []string{"live"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			planner := &scripted{plan: noop}
			r := newRig(t, askingTwice{planner})
			r.apply("agent:1")
			for _, revision := range test.cached {
				if err := r.feed(revisions).Add(revision); err != nil {
					t.Fatal(err)
				}
			}
			var live []*cluster.Revision
			for _, revision := range test.live {
				live = append(live, cluster.NewRevision(revision))
			}
			r.state.keepLive(key, "d1", &liveObjects{revisions: live})
			var said []string
			logger := funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})
			if err := r.Reconcile(klog.NewContext(t.Context(), logger), key); err != nil {
				t.Fatal(err)
			}
			names, collide := sentRevisions(t, planner.asked[0])
			if !slices.Equal(names, test.want) || !slices.Equal(collide, test.collide) {
				t.Errorf("sent %v, of which %v were read live", names, collide)
			}
			said = slices.DeleteFunc(said, func(line string) bool { return !strings.Contains(line, "too large together") })
			switch {
			case test.leftOut == 0 && len(said) > 0:
				t.Errorf("said %v", said)
			case test.leftOut > 0 && (len(said) != 1 || !strings.Contains(said[0], fmt.Sprintf(`"namespace"="ns" "leftOut"=%d`, test.leftOut))):
				t.Errorf("said %v", said)
			}
		})
	}
}

// sentRevisions returns the names of the revisions in a request, and those of them that are marked as read after a name collision.
func sentRevisions(t *testing.T, request *nodewisev1.PlanRequest) (names, collide []string) {
	t.Helper()
	for _, revision := range request.GetSnapshot().GetRevisions() {
		object, err := served.Parse(revision.GetObject())
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, object.Name)
		if revision.GetReadAfterNameCollision() {
			collide = append(collide, object.Name)
		}
	}
	return names, collide
}
