package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// errTrailing says that a text has more than one value.
var errTrailing = errors.New("there is more than one JSON value")

// Parse reads one value. Numbers are a [json.Number], objects a map[string]any and lists a []any.
func Parse(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	return value, nil
}

// At is the value at a path of members; nil if there is none.
func At(value any, path ...string) any {
	for _, member := range path {
		members, _ := value.(map[string]any)
		value = members[member]
	}
	return value
}

// Object is the object at a path of members; nil if there is none.
func Object(value any, path ...string) map[string]any {
	members, _ := At(value, path...).(map[string]any)
	return members
}

// List is the list at a path of members; nil if there is none.
func List(value any, path ...string) []any {
	items, _ := At(value, path...).([]any)
	return items
}

// First is the first item of a list; nil if there is none.
func First(list any) any {
	if items := List(list); len(items) > 0 {
		return items[0]
	}
	return nil
}
