package plancheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// object is an object of JSON.
type object = map[string]any

// maxWritten is the most bytes of an object or a patch that a plan has written: an apiserver takes no longer request. A plan may have each of a
// burst of pods made from one manifest.
const maxWritten = 3 << 20

// parseWritten reads JSON that is to be written to the cluster.
func parseWritten(text []byte, what string) (any, error) {
	if len(text) > maxWritten {
		return nil, fmt.Errorf("%s has %d bytes, and %d are the most", what, len(text), maxWritten)
	}
	return parse(text, what)
}

// parse reads JSON; the error says what is wrong with it. Numbers stay as they are written. What a plan carries is sent as it is written,
// so every reader has to see the same in it: of a key that an object has twice, parsers take one or the other value.
func parse(text []byte, what string) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, errors.New(what + " is not JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New(what + " is not JSON")
	}
	if key, repeats := repeatedKey(text); repeats {
		return nil, fmt.Errorf("%s has the key %q twice in one object", what, key)
	}
	return value, nil
}

// repeatedKey is the first key that an object of this JSON has twice, if there is one.
func repeatedKey(text []byte) (key string, repeats bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	// The keys of the objects and lists that have begun; nil for a list.
	var within []map[string]bool
	isKey := false
	for {
		token, err := decoder.Token()
		if err != nil {
			return "", false
		}
		switch token {
		case json.Delim('{'):
			within = append(within, map[string]bool{})
		case json.Delim('['):
			within = append(within, nil)
		case json.Delim('}'), json.Delim(']'):
			within = within[:len(within)-1]
		default:
			if isKey {
				key, _ := token.(string)
				keys := within[len(within)-1]
				if keys[key] {
					return key, true
				}
				keys[key] = true
				isKey = false
				continue
			}
		}
		isKey = len(within) > 0 && within[len(within)-1] != nil
	}
}

// at is what a path of members leads to; nil where it leads nowhere.
func at(value any, path ...string) any {
	for _, member := range path {
		members, _ := value.(object)
		value = members[member]
	}
	return value
}

// objectAt is the object that a path leads to; nil if there is none.
func objectAt(value any, path ...string) object {
	members, _ := at(value, path...).(object)
	return members
}

// first is the first item of a list; nil if there is none.
func first(value any) any {
	if items, _ := value.([]any); len(items) > 0 {
		return items[0]
	}
	return nil
}

// otherThan is a member that is not among these; empty if there is none.
func otherThan(members object, allowed ...string) string {
	var others []string
	for member := range members {
		if !slices.Contains(allowed, member) {
			others = append(others, member)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return slices.Min(others)
}

// isInteger tells whether a value is a whole number.
func isInteger(value any) bool {
	number, isNumber := value.(json.Number)
	if !isNumber {
		return false
	}
	_, err := number.Int64()
	return err == nil
}

// text is a value as JSON, with <, > and & as they are.
func text(value any) string {
	var written strings.Builder
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(written.String(), "\n")
}
