package nodewise_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/planclient"
)

// errors.Is, errors.As and status.Code find the cause in an error of Reconcile, however deep it is.
func TestErrorsOfReconcileCanBeTold(t *testing.T) {
	forbidden := func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods")
	}
	away := &planclient.UnreachableError{Reason: "as told", Err: status.Error(codes.ResourceExhausted, "as told")}
	refused := &planclient.RefusedError{Reason: "as told", Err: status.Error(codes.InvalidArgument, "as told")}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	answers := func(err error) func(context.Context, planclient.BuildRequest) (*planclient.Answer, error) {
		return func(context.Context, planclient.BuildRequest) (*planclient.Answer, error) { return nil, err }
	}
	for _, test := range []struct {
		name    string
		ctx     context.Context
		refuses func(*http.Request) bool
		planner *service
		isIt    func(error) bool
		notYet  bool
	}{
		{"forbidden by the apiserver", t.Context(), forbidden, &service{}, apierrors.IsForbidden, false},
		{
			"the service is away", t.Context(), nil, &service{plan: answers(away)},
			func(err error) bool { return status.Code(err) == codes.ResourceExhausted }, true,
		},
		{
			"refused by the service", t.Context(), nil, &service{plan: answers(refused)},
			func(err error) bool { return status.Code(err) == codes.InvalidArgument }, false,
		},
		{
			"the report is not delivered", t.Context(), nil, &service{report: func() error { return away }},
			func(err error) bool { return status.Code(err) == codes.ResourceExhausted }, false,
		},
		{
			"the context has ended", ended, nil, &service{},
			func(err error) bool { return errors.Is(err, context.Canceled) }, true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := testkit.NewCluster(t)
			cluster.Refuses = test.refuses
			cluster.Put(t, "daemonsets", daemonSet(""))
			r, _ := started(t, cluster, test.planner)
			if err := r.Reconcile(test.ctx, agent); !test.isIt(err) || errors.Is(err, nodewise.ErrNotYet) != test.notYet {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A plan with actions is one line in the logger of the context. At verbosity 1 each action is another line.
func TestPlansAreLogged(t *testing.T) {
	for verbosity, want := range map[int][]string{
		0: {`"msg"="Applying a plan" "daemonSet"={"name"="agent" "namespace"="ns"} "planId"="plan-7" "verdict"="APPLY" "createPod"=2`},
		1: {
			`"msg"="Applying a plan"`,
			`"kind"="createPod" "reason"="NODE_WITHOUT_POD" "why"="node n1 has no pod" "result"="SUCCEEDED"`,
			`"kind"="createPod" "reason"="NODE_WITHOUT_POD" "why"="node n2 has no pod" "result"="SUCCEEDED"`,
		},
	} {
		var lines []string
		logger := funcr.New(func(_, text string) { lines = append(lines, text) }, funcr.Options{Verbosity: verbosity})
		cluster := testkit.NewCluster(t)
		cluster.Put(t, "daemonsets", daemonSet(""))
		r, _ := started(t, cluster, &service{})
		if err := r.Reconcile(logr.NewContext(t.Context(), logger), agent); err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(lines, want, strings.Contains) {
			t.Errorf("at verbosity %d: got %q", verbosity, lines)
		}
	}
}
