package planclient

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

// question builds a request for an explanation of the node n1, from node buckets with these bytes.
func question(buckets ...string) BuildExplainRequest {
	return func(receiver Receiver) (*nodewisev1.ExplainRequest, error) {
		plan, err := request(buckets...)(receiver)
		return &nodewisev1.ExplainRequest{Snapshot: plan.GetSnapshot(), NodeName: "n1"}, err
	}
}

// Replicas, attempts, deadlines and errors are those of Plan.
func TestExplanationsAreAskedForAsPlansAre(t *testing.T) {
	type script = func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error)
	for _, test := range []struct {
		name string
		// first is what the workload's own replica does, and other what the two others do; nil: they answer.
		first, other script
		options      []Option
		// by is who answers: first, other, or nobody.
		by string
		// code is that of the error, and isRefused is true for a RefusedError.
		code      codes.Code
		isRefused bool
		// asked is how many requests there are in total.
		asked     int
		isEvicted bool
		// isHedged is true if the others answer only when first has been asked.
		isHedged bool
	}{
		{name: "the workload's own replica answers", by: "first", asked: 1},
		{name: "it drains", first: refuses(codes.Unavailable), by: "other", asked: 2, isEvicted: true},
		{name: "it is saturated", first: busy(t), by: "other", asked: 2},
		{name: "all are saturated", first: busy(t), other: busy(t), code: codes.ResourceExhausted, asked: 4,
			options: []Option{WithMinAttempts(4)}},
		{name: "it has a defect", first: refuses(codes.Internal), by: "other", asked: 2, isEvicted: true},
		{name: "it hangs", first: hangs, by: "other", asked: 2, isEvicted: true, options: []Option{WithTimeout(9 * time.Second)}},
		{name: "it hangs, with hedging", first: hangs, by: "other", asked: 2, isHedged: true,
			options: []Option{WithHedging(10 * time.Millisecond)}},
		{name: "all hang", first: hangs, other: hangs, code: codes.DeadlineExceeded, asked: 2, options: []Option{WithTimeout(9 * time.Second)}},
		{name: "a wrong request", first: refuses(codes.InvalidArgument), code: codes.InvalidArgument, isRefused: true, asked: 1},
		{name: "a server of something else", first: refuses(codes.Unimplemented), other: refuses(codes.Unimplemented),
			code: codes.Unimplemented, asked: 3, isEvicted: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			replicas := three(t)
			client := newClient(t, replicas, test.options...)
			first, others := home(replicas)
			testkit.Eventually(t, "all are known to serve", func() bool { return countReady(client) == 3 })
			first.answers(test.first)
			for _, other := range others {
				answers := test.other
				if test.isHedged {
					answers = func(ctx context.Context, _ *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
						for len(first.asked()) == 0 && ctx.Err() == nil {
							time.Sleep(time.Millisecond)
						}
						return planned(other.address), nil
					}
				}
				other.answers(answers)
			}
			answer, err := client.Explain(t.Context(), "u1", question("a"))

			var refused *RefusedError
			var unreachable *UnreachableError
			by := ""
			switch {
			case err == nil && answer.GetNodes()[0].GetNodeName() == first.address:
				by = "first"
			case err == nil:
				by = "other"
			case errors.As(err, &refused) != test.isRefused, errors.As(err, &unreachable) == test.isRefused:
				t.Errorf("got %v", err)
			}
			if by != test.by || status.Code(err) != test.code {
				t.Errorf("answered by %q: %v", by, err)
			}
			asked := 0
			for _, replica := range replicas {
				asked += len(replica.asked())
			}
			if asked != test.asked {
				t.Errorf("%d requests", asked)
			}
			if isEvicted := replicaOf(client, first).probeDelay() > 0; isEvicted != test.isEvicted {
				t.Errorf("evicted: %t", isEvicted)
			}
		})
	}
}

// Plans and explanations share what is known of a replica's buckets. Requests that lack buckets or are too large are handled alike.
func TestBucketsOfExplanations(t *testing.T) {
	for _, test := range []struct {
		name string
		// keeps is how many buckets the replica keeps.
		keeps int
		// planned are the buckets of a plan that was asked for before.
		planned string
		options []Option
		// want are the buckets that come inline, request by request, from the one that asks for the plan.
		want []string
	}{
		{name: "a replica that knows nothing", keeps: 9, want: []string{"abcd"}},
		{name: "a plan was made from the same buckets", keeps: 9, planned: "abcd", want: []string{"abcd", ""}},
		{name: "a plan was made from some of them", keeps: 9, planned: "ab", want: []string{"ab", "cd"}},
		{name: "the replica has lost some of them", keeps: 2, planned: "abcd", want: []string{"abcd", "", "ab"}},
		{name: "too large for one message", keeps: 9, options: []Option{piecesOf(2)}, want: []string{"ab", "cd"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			replica := startReplica(t, "127.0.0.1:0")
			keeps(t, replica, test.keeps, 1<<20)
			client := newClient(t, []*fakeReplica{replica}, test.options...)
			if test.planned != "" {
				if _, err := ask(t, client, named(test.planned)...); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := client.Explain(t.Context(), "u1", question(named("abcd")...)); err != nil {
				t.Fatal(err)
			}
			if got := sent(replica); !slices.Equal(got, test.want) {
				t.Errorf("sent %q", got)
			}
			// Also of a request whose buckets come in pieces.
			for _, request := range replica.explained {
				if request.GetNodeName() != "n1" {
					t.Errorf("asked about the node %q", request.GetNodeName())
				}
			}
		})
	}
}

func TestExplainRequestsThatCannotBeBuiltAreNotSent(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	broken := errors.New("broken")
	_, err := newClient(t, []*fakeReplica{replica}).Explain(t.Context(), "u1", func(Receiver) (*nodewisev1.ExplainRequest, error) {
		return nil, broken
	})
	if !errors.Is(err, broken) || len(replica.asked()) > 0 {
		t.Errorf("got %v", err)
	}
}
