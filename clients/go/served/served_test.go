package served_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"nodewise.dev/clients/go/served"
)

var daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}

// Only the managed fields of the metadata are dropped; what is called so elsewhere is somebody's.
func TestNothingIsLostButManagedFields(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{
			`{"metadata":{"name":"n","managedFields":[{"fieldsV1":{"f:a":{}}}],"uid":"u"},"spec":{ "a": [1.50, "é<"], "b":9007199254740993 }}`,
			`{"metadata":{"name":"n","uid":"u"},"spec":{ "a": [1.50, "é<"], "b":9007199254740993 }}`,
		},
		{`{"a\"b":1,"metadata":{"managedFields":[]}}`, `{"a\"b":1,"metadata":{}}`},
		{
			`{"spec":{"managedFields":1},"managedFields":2,"metadata":{"labels":{"managedFields":"4"}}}`,
			`{"spec":{"managedFields":1},"managedFields":2,"metadata":{"labels":{"managedFields":"4"}}}`,
		},
		{`{ "metadata": {"name":"n"} }`, `{ "metadata": {"name":"n"} }`},
		{"{\"metadata\":{\"name\":\"n\"},\"data\":\"\xff\"}", "{\"metadata\":{\"name\":\"n\"},\"data\":\"\ufffd\"}"},
	} {
		object, err := served.Parse([]byte(test.text))
		if err != nil || string(object.JSON) != test.want {
			t.Errorf("%s: got %s, %v", test.text, object.JSON, err)
		}
	}
	if _, err := served.Parse([]byte(`["managedFields"]`)); err == nil {
		t.Error("a list is no object")
	}
}

func TestTheMetadataIsRead(t *testing.T) {
	object, err := served.Parse([]byte(`{"kind":"X","metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7",
		"labels":{"a":"b"},"ownerReferences":[{"uid":"o","controller":true}],"deletionTimestamp":"2026-01-01T00:00:00Z"}}`))
	if err != nil {
		t.Fatal(err)
	}
	read := fmt.Sprint(object.Kind, object.Namespace, object.Name, object.UID, object.ResourceVersion, object.Labels,
		object.OwnerReferences[0].UID, object.DeletionTimestamp.Unix())
	if want := "Xnsnu7map[a:b]o1767225600"; read != want {
		t.Errorf("got %s, want %s", read, want)
	}
	clone := object.DeepCopyObject().(*served.Object)
	clone.Labels["a"] = "c"
	if object.Labels["a"] != "b" {
		t.Error("a copy shares its labels")
	}
}

// A reflector of client-go keeps a store of objects as they were served, from a list and then a watch. First lists are most-recent
// reads; one object that cannot be read does not hide the others.
func TestListsAndWatches(t *testing.T) {
	const (
		first   = `{"metadata":{"namespace":"ns","name":"a","resourceVersion":"1"},"spec":{"later":1.50}}`
		second  = `{"metadata":{"namespace":"ns","name":"b","resourceVersion":"6"},"spec":{"later":2.50}}`
		changed = `{"metadata":{"namespace":"ns","name":"a","resourceVersion":"7"},"spec":{"later":3.50}}`
	)
	queries := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case query.Get("watch") != "":
			for kind, object := range map[string]string{"ADDED": second} {
				_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, object)
			}
			_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", changed)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			queries <- r.URL.Path + "?" + query.Get("resourceVersion")
			_, _ = fmt.Fprintf(w, `{"kind":"DaemonSetList","apiVersion":"apps/v1","metadata":{"resourceVersion":"5"},"items":[%s,{"metadata":7}]}`, first)
		}
	}))
	t.Cleanup(server.Close)
	client, err := served.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	informer := cache.NewSharedInformer(client.ListWatch(daemonSets, "ns"), &served.Object{}, 0)
	updated := make(chan string, 10)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) { updated <- string(object.(*served.Object).JSON) },
	}); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	if got := <-updated; got != changed {
		t.Errorf("got %s", got)
	}
	if got := <-queries; got != "/apis/apps/v1/namespaces/ns/daemonsets?" {
		t.Errorf("listed %s", got)
	}
	for name, want := range map[string]string{"ns/a": changed, "ns/b": second} {
		object, exists, err := informer.GetStore().GetByKey(name)
		if err != nil || !exists || string(object.(*served.Object).JSON) != want {
			t.Errorf("%s: got %v, %v", name, object, err)
		}
	}
}

func TestRefusalsAreThoseOfTheAPI(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not yours","reason":"Forbidden","code":403}`)
	}))
	t.Cleanup(server.Close)
	client, err := served.NewClient(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), daemonSets, types.NamespacedName{Namespace: "ns", Name: "a"}); err == nil ||
		!strings.Contains(err.Error(), "not yours") {
		t.Errorf("got %v", err)
	}
	if _, err := client.List(t.Context(), daemonSets, metav1.NamespaceAll); err == nil {
		t.Error("it was listed")
	}
}
