package served_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/served"
)

var daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}

// Only metadata.managedFields is removed, and no other member of that name.
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
}

// The number of a revision only ranks it. An object whose number cannot be read is read all the same.
func TestTheNumberOfARevision(t *testing.T) {
	for text, want := range map[string]int64{
		`{"revision":7}`:                    7,
		`{"data":{"revision":3}}`:           0,
		`{"revision":"7"}`:                  0,
		`{"revision":99999999999999999999}`: 0,
		`{"revision":null}`:                 0,
	} {
		object, err := served.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		copied, isObject := object.DeepCopyObject().(*served.Object)
		if object.Revision != want || !isObject || copied.Revision != want {
			t.Errorf("%s: got %d, and copied %v", text, object.Revision, copied)
		}
	}
}

func TestWhatIsNoObjectIsNotRead(t *testing.T) {
	for _, text := range []string{
		``, ` `, `null`, `7`, `"{}"`, `["managedFields"]`, `{`, `{"a"`, `{"a"}`, `{"a":`, `{"a":}`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a":[}`,
		`{"a":"b`, `{"a":"b\"}`, `{"a":{"b":1}`, `{"a":1}}`, `{"a":1} {}`, `{a:1}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"metadata":7}`,
		`{"metadata":{"managedFields":[}`,
	} {
		if object, err := served.Parse([]byte(text)); err == nil {
			t.Errorf("%s was read as %s", text, object.JSON)
		}
	}
	for _, text := range []string{`{}`, ` { } `, `{"a":null}`, `{"a":[],"b":{}}`, "{\n\t\"a\" : [ 1 , \"]\" , \"\\\"\" ] , \"b\":\"{\" }\n"} {
		if object, err := served.Parse([]byte(text)); err != nil || string(object.JSON) != text {
			t.Errorf("%s: got %v, %v", text, object, err)
		}
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

// serving is an apiserver that lists and watches the given objects, and a client of it. The channel has the requested lists.
func serving(t *testing.T, items, events []string) (client *served.Client, listed <-chan string) {
	t.Helper()
	queries := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			testkit.Refuse(w, http.StatusUnprocessableEntity, "Invalid", "not known")
		case query.Get("watch") != "":
			for _, event := range events {
				_, _ = fmt.Fprintln(w, event)
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			queries <- r.URL.Path + "?" + query.Get("resourceVersion")
			_, _ = fmt.Fprintf(w, `{"kind":"DaemonSetList","apiVersion":"apps/v1","metadata":{"resourceVersion":"5"},"items":[%s]}`,
				strings.Join(items, ","))
		}
	}))
	t.Cleanup(server.Close)
	client, err := served.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return client, queries
}

func event(kind, object string) string { return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object) }

// followed runs an informer, and waits until its store has these objects.
func followed(t *testing.T, client *served.Client, want map[string]string) {
	t.Helper()
	informer := cache.NewSharedInformer(client.ListWatch(daemonSets, "ns", nil), &served.Object{}, 0)
	go informer.RunWithContext(t.Context())
	for name, text := range want {
		var got string
		testkit.Eventually(t, "all of "+name, func() bool {
			object, exists, err := informer.GetStore().GetByKey("ns/" + name)
			if exists && err == nil {
				got = string(object.(*served.Object).JSON)
			}
			return got == text
		})
	}
	if got := informer.GetStore().ListKeys(); len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}

// A reflector of client-go keeps objects as they were served, from a list and then a watch. First lists are most-recent reads. Objects that
// cannot be read do not hide the others.
func TestListsAndWatches(t *testing.T) {
	const (
		first   = `{"metadata":{"namespace":"ns","name":"a","resourceVersion":"1"},"spec":{"later":1.50}}`
		second  = `{"metadata":{"namespace":"ns","name":"b","resourceVersion":"6"},"spec":{"later":2.50}}`
		changed = `{"metadata":{"namespace":"ns","name":"a","resourceVersion":"8"},"spec":{"later":3.50}}`
		odd     = `{"metadata":{"namespace":"ns","name":"odd","resourceVersion":"7","labels":7}}`
		gone    = `{"metadata":{"namespace":"ns","name":"gone","resourceVersion":"2"}}`
		mark    = `{"metadata":{"resourceVersion":"9"}}`
	)
	client, listed := serving(t, []string{first, odd, `{"metadata":7}`, gone}, []string{
		event("ADDED", second), event("MODIFIED", odd), event("DELETED", gone), event("BOOKMARK", mark), event("MODIFIED", changed),
	})
	followed(t, client, map[string]string{"a": changed, "b": second})
	if got := <-listed; got != "/apis/apps/v1/namespaces/ns/daemonsets?" {
		t.Errorf("listed %s", got)
	}
	if len(listed) > 0 {
		t.Error("it was listed again: the watch was not followed")
	}
}

// The data of a revision is kept byte for byte, whatever it is, and does not affect other objects.
func TestDataIsNotLookedInto(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	want := map[string]string{}
	var items, events []string
	for i, data := range []string{`{"a":"\ud800"}`, `{"\udfff":1}`, `{"a":1e999}`, deep} {
		for verb, texts := range map[string]*[]string{"listed": &items, "shown": &events} {
			name := fmt.Sprint(verb, i)
			served := fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q,"resourceVersion":"7"%%s},"data":%s,"revision":1}`, name, data)
			want[name] = fmt.Sprintf(served, "")
			*texts = append(*texts, fmt.Sprintf(served, `,"managedFields":[{"manager":"m"}]`))
		}
	}
	for i, text := range events {
		events[i] = event("ADDED", text)
	}
	client, _ := serving(t, items, events)
	followed(t, client, want)
}

// The errors of a watch are those of the API.
func TestErrorsOfAWatchAreThoseOfTheAPI(t *testing.T) {
	const gone = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
	for event, want := range map[string]int32{event("ERROR", gone): 410, event("UPDATED", "{}"): 500, "{": 500} {
		client, _ := serving(t, nil, []string{event})
		watching, err := client.ListWatch(daemonSets, "ns", nil).(cache.WatcherWithContext).WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got watch.Event
		select {
		case got = <-watching.ResultChan():
		case <-time.After(20 * time.Second):
		}
		watching.Stop()
		if status, isStatus := got.Object.(*metav1.Status); got.Type != watch.Error || !isStatus || status.Code != want {
			t.Errorf("%s: got %v", event, got)
		}
	}
}

func TestRefusalsAreThoseOfTheAPI(t *testing.T) {
	url := testkit.Refusing(t, http.StatusForbidden, "Forbidden", "not yours")
	client, err := served.NewClient(&rest.Config{Host: url}, http.DefaultClient)
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
