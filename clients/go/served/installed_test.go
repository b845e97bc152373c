package served_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"nodewise.dev/clients/go/served"
)

// L-2: a custom resource that is served only in other versions is installed.
func TestWhetherAResourceIsInstalled(t *testing.T) {
	policies := schema.GroupVersionResource{Group: "nodewise.dev", Version: "v1alpha1", Resource: "rolloutpolicies"}
	const (
		named   = `{"resources":[{"name":"rolloutpolicies"},{"name":"rolloutpolicies/status"}]}`
		unnamed = `{"resources":[{"name":"others"}]}`
		both    = `{"versions":[{"version":"v1alpha1"},{"version":"v1"},{"version":"v1beta1"}]}`
	)
	for name, test := range map[string]struct {
		// answers are by path below /apis/nodewise.dev. Without an answer it is 404, and "error" is 503.
		answers map[string]string
		want    bool
		others  []string
		isError bool
	}{
		"in this version":         {answers: map[string]string{"/v1alpha1": named}, want: true},
		"no such group":           {},
		"not in this version":     {answers: map[string]string{"/v1alpha1": unnamed, "": `{"versions":[{"version":"v1alpha1"}]}`}},
		"in others":               {answers: map[string]string{"": both, "/v1": named, "/v1beta1": named}, others: []string{"nodewise.dev/v1", "nodewise.dev/v1beta1"}},
		"in another beside":       {answers: map[string]string{"/v1alpha1": unnamed, "": both, "/v1": named}, others: []string{"nodewise.dev/v1"}},
		"others without it":       {answers: map[string]string{"": both, "/v1": unnamed}},
		"unknown":                 {answers: map[string]string{"/v1alpha1": "error"}, isError: true},
		"unknown group":           {answers: map[string]string{"": "error"}, isError: true},
		"unreadable group":        {answers: map[string]string{"": "{"}, isError: true},
		"unknown in another":      {answers: map[string]string{"": both, "/v1": "error"}, isError: true},
		"unreadable in a version": {answers: map[string]string{"/v1alpha1": "7"}, isError: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer, isThere := test.answers[r.URL.Path[len("/apis/nodewise.dev"):]]
				switch {
				case !isThere:
					http.NotFound(w, r)
				case answer == "error":
					http.Error(w, "not now", http.StatusServiceUnavailable)
				default:
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(answer))
				}
			}))
			t.Cleanup(server.Close)
			client, err := served.NewClient(&rest.Config{Host: server.URL}, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			got, err := client.IsInstalled(t.Context(), policies)
			var other *served.OtherVersionError
			isOther := errors.As(err, &other)
			if got != test.want || (err != nil) != (test.isError || len(test.others) > 0) || isOther != (len(test.others) > 0) {
				t.Fatalf("got %v, %v", got, err)
			}
			if isOther && !slices.Equal(other.Served, test.others) {
				t.Errorf("got %v", other)
			}
		})
	}
}
