package rawjson_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"nodewise.dev/clients/go/internal/rawjson"
)

// Only the requested fields are decoded. A raw field may contain anything.
func TestFields(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	for _, raw := range []string{`{"a":1.50, "a": 2}`, `"\ud800"`, `1e999`, `null`, deep} {
		var kind string
		var data []byte
		var absent int
		text := ` { "kind" : "K", "data":` + raw + `, "skipped":` + deep + `, "numbers":[1] } `
		err := rawjson.Fields([]byte(text), map[string]any{"kind": &kind, "data": &data, "absent": &absent})
		if err != nil || kind != "K" || string(data) != raw || absent != 0 {
			t.Errorf("got %q, %.20s, %d, %v", kind, data, absent, err)
		}
	}
	var kind string
	for _, text := range []string{``, `null`, `[]`, `{"kind":7}`, `{"kind":"K"`, `{"kind":"K",}`, `{"kind":"K"} {}`, `{"other":}`} {
		if err := rawjson.Fields([]byte(text), map[string]any{"kind": &kind}); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string][]string{
		``: nil, `null`: nil, `[]`: nil, `[1]`: {"1"}, `[ 1 , "]", {"a":[2]} ]`: {"1", `"]"`, `{"a":[2]}`},
	} {
		var got []string
		err := rawjson.Elements([]byte(text), func(value []byte) error {
			got = append(got, string(value))
			return nil
		})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{`{}`, `[1`, `[1,]`, `[1 2]`, `[1]]`, `[,]`} {
		if err := rawjson.Elements([]byte(text), func([]byte) error { return nil }); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

func TestRewrite(t *testing.T) {
	text := `{ "b" : 1.50 , "gone":{"x":[]}, "a\"" : "<" }`
	got, err := rawjson.Rewrite([]byte(text), func(name string, value []byte) ([]byte, error) {
		if name == "gone" {
			return nil, nil
		}
		return value, nil
	})
	if want := `{"b":1.50,"a\"":"<"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestValues(t *testing.T) {
	value, err := rawjson.Parse([]byte(`{"a":{"b":[1.50,1e999,"c"]},"n":null}`))
	if err != nil {
		t.Fatal(err)
	}
	items := rawjson.List(value, "a", "b")
	if want := []any{json.Number("1.50"), json.Number("1e999"), "c"}; !reflect.DeepEqual(items, want) {
		t.Errorf("got %v", items)
	}
	if first := rawjson.First(items); first != json.Number("1.50") {
		t.Errorf("got %v", first)
	}
	if len(rawjson.Object(value, "a")) != 1 || rawjson.Object(value, "a", "b") != nil || rawjson.List(value, "a") != nil ||
		rawjson.At(value, "a", "b", "c") != nil || rawjson.At(value, "n", "x") != nil || rawjson.First(nil) != nil {
		t.Error("a path that leads nowhere leads somewhere")
	}
	for _, text := range []string{``, `{`, `{} {}`, `{}]`, strings.Repeat("[", 20_000)} {
		if value, err := rawjson.Parse([]byte(text)); err == nil {
			t.Errorf("%.10s was read as %v", text, value)
		}
	}
}
