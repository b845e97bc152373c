package planclient

import (
	"context"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/nodewisev1"
)

// sharing builds a request of one node bucket, in which nodes share labels if the replica reads that.
func sharing(receiver Receiver) (*nodewisev1.PlanRequest, error) {
	content := []byte("plain")
	if receiver.ReadsSharedLabels() {
		content = []byte("shared")
	}
	digest := sha256.Sum256(content)
	bucket := &nodewisev1.Bucket{Digest: digest[:]}
	switch {
	case receiver.Has(digest):
	case receiver.ReadsSharedLabels():
		bucket.DataWithSharedLabels = content
	default:
		bucket.Data = content
	}
	return &nodewisev1.PlanRequest{Snapshot: &nodewisev1.Snapshot{NodeBuckets: []*nodewisev1.Bucket{bucket}}}, nil
}

// forms are the forms in which the bucket was sent.
func forms(replica *fakeReplica) []string {
	var forms []string
	for _, request := range replica.asked() {
		switch bucket := request.GetSnapshot().GetNodeBuckets()[0]; {
		case bucket.DataWithSharedLabels != nil:
			forms = append(forms, "shared")
		case bucket.Data != nil:
			forms = append(forms, "plain")
		default:
			forms = append(forms, "digest")
		}
	}
	return forms
}

// earlier answers as a version that does not know shared labels and has cached nothing: a bucket without data is missing.
func earlier(_ context.Context, request *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
	missing := &nodewisev1.MissingBuckets{}
	for i, bucket := range request.GetSnapshot().GetNodeBuckets() {
		if bucket.Data == nil {
			missing.NodeBucketIndices = append(missing.NodeBucketIndices, uint32(i))
		}
	}
	if len(missing.GetNodeBucketIndices()) == 0 {
		return planned("earlier"), nil
	}
	lacks, err := status.New(codes.FailedPrecondition, "it lacks buckets").WithDetails(missing)
	if err != nil {
		return nil, err
	}
	return nil, lacks.Err()
}

func requirePlans(t *testing.T, client *Client, build BuildRequest, count int) {
	t.Helper()
	for range count {
		if _, err := client.Plan(t.Context(), "u1", build); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnlyAReplicaThatAnnouncesItGetsSharedLabels(t *testing.T) {
	for _, test := range []struct {
		features []string
		want     []string
	}{
		{nil, []string{"plain", "digest"}},
		{[]string{"RolloutPolicies", "SharedLabels"}, []string{"shared", "digest"}},
	} {
		replica := startReplica(t, "127.0.0.1:0")
		replica.setFeatures(test.features...)
		requirePlans(t, newClient(t, []*fakeReplica{replica}, WithTimeout(10*time.Second)), sharing, 2)
		if got := forms(replica); !slices.Equal(got, test.want) {
			t.Errorf("with the features %v it got %v, want %v", test.features, got, test.want)
		}
		if asked := replica.askedForKinds(); asked != 1 {
			t.Errorf("it was asked %d times what it knows", asked)
		}
	}
}

// Every version reads the plain form, so a gateway that refuses the question stops nothing.
func TestAReplicaThatMayNotBeAskedGetsThePlainForm(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	replica.hideCapabilities()
	requirePlans(t, newClient(t, []*fakeReplica{replica}, WithTimeout(10*time.Second)), sharing, 2)
	if got, want := forms(replica), []string{"plain", "digest"}; !slices.Equal(got, want) {
		t.Errorf("it got %v, want %v", got, want)
	}
}

// During an upgrade an earlier version may answer behind the address of a newer one.
func TestAReplicaThatDoesNotReadSharedLabelsGetsThePlainForm(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	replica.setFeatures("SharedLabels")
	replica.answers(earlier)
	client := newClient(t, []*fakeReplica{replica}, WithTimeout(10*time.Second))
	requirePlans(t, client, sharing, 1)
	if got, want := forms(replica), []string{"shared", "plain"}; !slices.Equal(got, want) {
		t.Fatalf("it got %v, want %v", got, want)
	}
	// What was announced is forgotten.
	replica.setFeatures()
	requirePlans(t, client, sharing, 1)
	if got, want := forms(replica)[2:], []string{"digest", "plain"}; !slices.Equal(got, want) {
		t.Errorf("then it got %v, want %v", got, want)
	}
	if asked := replica.askedForKinds(); asked != 2 {
		t.Errorf("it was asked %d times what it knows", asked)
	}
}

// Buckets that were evicted do not mean that another version answers.
func TestAReplicaThatLacksOtherBucketsStillGetsSharedLabels(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	replica.setFeatures("SharedLabels")
	client := newClient(t, []*fakeReplica{replica}, WithTimeout(10*time.Second))
	requirePlans(t, client, sharing, 1)
	replica.answers(func(_ context.Context, request *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		if request.GetSnapshot().GetNodeBuckets()[0].DataWithSharedLabels != nil {
			return planned("again"), nil
		}
		lacks, err := status.New(codes.FailedPrecondition, "evicted").WithDetails(&nodewisev1.MissingBuckets{NodeBucketIndices: []uint32{0}})
		if err != nil {
			return nil, err
		}
		return nil, lacks.Err()
	})
	requirePlans(t, client, sharing, 1)
	if got, want := forms(replica), []string{"shared", "digest", "shared"}; !slices.Equal(got, want) {
		t.Errorf("it got %v, want %v", got, want)
	}
	if asked := replica.askedForKinds(); asked != 1 {
		t.Errorf("it was asked %d times what it knows", asked)
	}
}

func TestRequestsWithoutNodesDoNotAskForCapabilities(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	requirePlans(t, newClient(t, []*fakeReplica{replica}, WithTimeout(10*time.Second)), request("a"), 1)
	if asked := replica.askedForKinds(); asked != 0 {
		t.Errorf("it was asked %d times what it knows", asked)
	}
}
