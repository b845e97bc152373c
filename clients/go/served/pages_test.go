package served_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"nodewise.dev/clients/go/served"
)

// paging serves objects of these sizes in pages, and records the requested pages: their start and their number of objects.
func paging(t *testing.T, sizes ...int) (client *served.Client, asked func() []string) {
	t.Helper()
	var pages []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		pages = append(pages, fmt.Sprintf("%d+%d%s", from, limit, r.URL.Query().Get("resourceVersion")))
		end, goesOn := len(sizes), ""
		if limit > 0 && from+limit < end {
			end, goesOn = from+limit, strconv.Itoa(from+limit)
		}
		_, _ = fmt.Fprintf(w, `{"kind":"DaemonSetList","apiVersion":"apps/v1","metadata":{"resourceVersion":"5","continue":%q},"items":[`, goesOn)
		for i, size := range sizes[from:end] {
			if i > 0 {
				_, _ = fmt.Fprint(w, ",")
			}
			_, _ = fmt.Fprintf(w, `{"metadata":{"namespace":"ns","name":"%d"},"data":"%s"}`, from+i, strings.Repeat(`\u003c`, size/6))
		}
		_, _ = fmt.Fprint(w, "]}")
	}))
	t.Cleanup(server.Close)
	client, err := served.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return client, func() []string { return pages }
}

const mebibyte = 1 << 20

// A page that is too long is requested again with fewer objects. Pages grow again after short ones.
func TestPagesAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		sizes []int
		want  []string
	}{
		"all fit":   {slices.Repeat([]int{10}, 120), []string{"0+50", "50+50", "100+50"}},
		"large":     {slices.Repeat([]int{9 * mebibyte}, 5), []string{"0+50", "0+12", "0+3", "3+3"}},
		"very":      {slices.Repeat([]int{20 * mebibyte}, 2), []string{"0+50", "0+12", "0+3", "0+1", "1+1"}},
		"and small": {append([]int{33 * mebibyte / 2, 33 * mebibyte / 2}, slices.Repeat([]int{10}, 30)...), []string{"0+50", "0+12", "0+3", "0+1", "1+1", "2+1", "3+2", "5+4", "9+8", "17+16"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, asked := paging(t, test.sizes...)
			var names []string
			err := client.Each(t.Context(), daemonSets, "ns", time.Minute, func(object *served.Object) { names = append(names, object.Name) })
			if err != nil {
				t.Fatal(err)
			}
			for i, name := range names {
				if name != strconv.Itoa(i) {
					t.Errorf("the object %d is %s", i, name)
				}
			}
			if len(names) != len(test.sizes) || !slices.Equal(asked(), test.want) {
				t.Errorf("%d objects, of the pages %v", len(names), asked())
			}
		})
	}
}

// One object that is larger than an apiserver stores ends the list.
func TestAnObjectIsBounded(t *testing.T) {
	client, _ := paging(t, 33*mebibyte)
	if _, err := client.List(t.Context(), daemonSets, "ns"); err == nil || !strings.Contains(err.Error(), "1 objects take more than") {
		t.Errorf("got %v", err)
	}
}

// A request for a page gets one page. A request for all objects gets all, page by page, of the most recent version. The list has the reduced
// objects.
func TestListsHaveWhatIsLeftOfObjects(t *testing.T) {
	client, asked := paging(t, slices.Repeat([]int{10}, 60)...)
	listWatch := cache.ToListerWithContext(client.ListWatch(daemonSets, "ns", func(object *served.Object) runtime.Object {
		object.JSON = nil
		return object
	}))
	for _, test := range []struct {
		options metav1.ListOptions
		count   int
		goesOn  string
		pages   []string
	}{
		{metav1.ListOptions{Limit: 1}, 1, "1", []string{"0+1"}},
		{metav1.ListOptions{Limit: 500, ResourceVersion: "0"}, 50, "50", []string{"0+50"}},
		{metav1.ListOptions{Limit: 500, Continue: "50"}, 10, "", []string{"50+50"}},
		{metav1.ListOptions{ResourceVersion: "3"}, 60, "", []string{"0+50", "50+50"}},
	} {
		before := len(asked())
		list, err := listWatch.ListWithContext(t.Context(), test.options)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		of, err := meta.ListAccessor(list)
		if err != nil || of.GetResourceVersion() != "5" || of.GetContinue() != test.goesOn {
			t.Errorf("%v: got %v, %v", test.options, of, err)
		}
		if len(objects) != test.count || objects[0].(*served.Object).JSON != nil || !slices.Equal(asked()[before:], test.pages) {
			t.Errorf("%v: %d objects, of the pages %v", test.options, len(objects), asked()[before:])
		}
	}
}
