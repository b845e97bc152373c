package planclient

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/nodewisev1"
)

// named are buckets of 1,000 bytes: a of a's, b of b's, and so on.
func named(letters string) []string {
	var buckets []string
	for _, letter := range letters {
		buckets = append(buckets, strings.Repeat(string(letter), 1_000))
	}
	return buckets
}

// piecesOf sets the size of a piece to this many of them.
func piecesOf(buckets int) Option { return WithMaxPieceBytes(buckets*1_000 + 500) }

// sent returns the letters of the buckets that came inline, request by request.
func sent(replica *fakeReplica) []string {
	var all []string
	for _, request := range replica.asked() {
		var letters []byte
		for _, bucket := range request.GetSnapshot().GetNodeBuckets() {
			if data := bucket.GetData(); len(data) > 0 {
				letters = append(letters, data[0])
			}
		}
		all = append(all, string(letters))
	}
	return all
}

// keeps makes a replica keep this many buckets, those that came last, and accept messages of this many bytes.
func keeps(t *testing.T, replica *fakeReplica, most, maxMessage int) {
	t.Helper()
	var mu sync.Mutex
	var kept []string
	replica.answers(func(_ context.Context, request *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		if proto.Size(request) > maxMessage {
			return nil, status.Error(codes.ResourceExhausted, "a message is too large")
		}
		var indices []uint32
		before := slices.Clone(kept)
		for i, bucket := range request.GetSnapshot().GetNodeBuckets() {
			if digest := string(bucket.GetDigest()); bucket.Data != nil {
				kept = append(kept, digest)
			} else if !slices.Contains(before, digest) {
				indices = append(indices, uint32(i))
			}
		}
		kept = kept[max(len(kept)-most, 0):]
		if indices != nil {
			return nil, lacks(t, indices...)
		}
		return planned("whole"), nil
	})
}

func TestWhatIsTooLargeForOneMessageComesInPieces(t *testing.T) {
	for name, test := range map[string]struct {
		// pieces is how many buckets a piece has.
		pieces int
		// keeps is how many buckets the replica keeps, and takes is how many a message may have.
		keeps, takes int
		want         []string
		fails        bool
	}{
		"more pieces than corrections":      {pieces: 2, keeps: 10, takes: 3, want: []string{"ab", "cd", "ef", "gh", "ij"}},
		"buckets larger than a piece":       {pieces: 0, keeps: 10, takes: 3, want: strings.Split("abcdefghij", "")},
		"nothing is kept":                   {pieces: 4, keeps: 0, takes: 11, want: []string{"abcd", "efgh", "abcdefghij"}},
		"no room for all in cache or call":  {pieces: 4, keeps: 5, takes: 6, want: []string{"abcd", "efgh", "ij", "abci", "abcdefghij"}, fails: true},
		"as much as fits into a piece":      {pieces: 10, keeps: 0, takes: 11, want: []string{"abcdefghij"}},
		"the cache has room for all by one": {pieces: 3, keeps: 9, takes: 4, want: []string{"abc", "def", "ghi", "j"}},
	} {
		t.Run(name, func(t *testing.T) {
			replica := startReplica(t, "127.0.0.1:0")
			keeps(t, replica, test.keeps, 1_000*test.takes+700)
			answer, err := ask(t, newClient(t, []*fakeReplica{replica}, piecesOf(test.pieces)), named("abcdefghij")...)
			if got := sent(replica); !slices.Equal(got, test.want) {
				t.Errorf("sent %q", got)
			}
			if !test.fails {
				if err != nil || answer.Request != len(test.want)-1 {
					t.Errorf("got %v, %v", answer, err)
				}
				return
			}
			var refused *RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v", err)
			}
			for _, said := range []string{
				"a message is too large (all buckets take 10", "pieces of 4500 bytes", "--bucket-cache-size", "--max-message-size",
			} {
				if !strings.Contains(refused.Reason, said) {
					t.Errorf("not said: %s: %s", said, refused.Reason)
				}
			}
		})
	}
}

// Pieces that a replica has are sent again neither by the next attempt nor for another workload.
func TestAnAttemptGoesOnWhereTheLastOneEnded(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	client := newClient(t, []*fakeReplica{replica}, piecesOf(2))
	script := []error{lacks(t, 2, 3, 4, 5), status.Error(codes.Internal, "a defect"), lacks(t, 4, 5)}
	replica.answers(func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		if len(script) == 0 {
			return planned("whole"), nil
		}
		err := script[0]
		script = script[1:]
		return nil, err
	})
	if _, err := ask(t, client, named("abcdef")...); err != nil {
		t.Fatal(err)
	}
	if got := sent(replica); !slices.Equal(got, []string{"ab", "cd", "cd", "ef"}) {
		t.Errorf("sent %q", got)
	}
}

// All workloads have the same nodes, and ask a replica without buckets at the same time.
func TestCallsDoNotSendTheSamePieces(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	client := newClient(t, []*fakeReplica{replica}, piecesOf(2))
	asked := make(chan struct{}, 10)
	goesOn := make(chan struct{})
	script := []error{lacks(t, 2, 3, 4, 5), lacks(t, 4, 5)}
	replica.answers(func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		asked <- struct{}{}
		<-goesOn
		if len(script) == 0 {
			return planned("whole"), nil
		}
		err := script[0]
		script = script[1:]
		return nil, err
	})
	answers, built := make(chan error, 2), make(chan struct{}, 20)
	build := func(receiver Receiver) (*nodewisev1.PlanRequest, error) {
		defer func() { built <- struct{}{} }()
		return request(named("abcdef")...)(receiver)
	}
	plan := func(uid string) {
		_, err := client.Plan(t.Context(), uid, build)
		answers <- err
	}
	go plan("u1")
	<-built
	<-asked
	go plan("u2")
	<-built
	close(goesOn)
	for range 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if got := sent(replica); !slices.Equal(got, []string{"ab", "cd", "ef", ""}) {
		t.Errorf("sent %q", got)
	}
}

func TestACallThatWaitsInVainForAnotherOneSaysSo(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	client := newClient(t, []*fakeReplica{replica}, piecesOf(2), WithTimeout(300*time.Millisecond))
	members, _ := client.replicas.now()
	members[0].pieces <- struct{}{}
	_, err := ask(t, client, named("abcdef")...)
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "another call sends it buckets") {
		t.Errorf("got %v", err)
	}
	if len(replica.asked()) > 0 || !members[0].isEligible() {
		t.Error("it was asked, or shunned")
	}
}

// The caller may build its next request from the same messages.
func TestTheRequestOfTheCallerStaysAsItIs(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	keeps(t, replica, 0, 1<<20)
	whole, err := request(named("abcd")...)(Receiver{})
	if err != nil {
		t.Fatal(err)
	}
	before := proto.Clone(whole)
	client := newClient(t, []*fakeReplica{replica}, piecesOf(2))
	build := func(Receiver) (*nodewisev1.PlanRequest, error) { return whole, nil }
	if _, err := client.Plan(t.Context(), "u1", build); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(whole, before) {
		t.Error("it has changed")
	}
	if got := sent(replica); got[0] != "ab" || got[len(got)-1] != "abcd" {
		t.Errorf("sent %q", got)
	}
}

// A bucket without a digest is never sent by digest alone.
func TestBucketsWithoutDigestsComeInOneMessage(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	client := newClient(t, []*fakeReplica{replica}, piecesOf(2))
	_, err := client.Plan(t.Context(), "u1", func(Receiver) (*nodewisev1.PlanRequest, error) {
		whole, err := request(named("abcd")...)(Receiver{})
		for _, bucket := range whole.GetSnapshot().GetNodeBuckets() {
			bucket.Digest = nil
		}
		return whole, err
	})
	if got := sent(replica); err != nil || !slices.Equal(got, []string{"abcd"}) {
		t.Errorf("sent %q, %v", got, err)
	}
}
