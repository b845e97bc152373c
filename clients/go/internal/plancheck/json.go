package plancheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nodewise.dev/clients/go/internal/rawjson"
)

// object is an object of JSON.
type object = map[string]any

// maxWritten is the largest object or patch that a plan may write, in bytes. It is the largest request that an apiserver accepts. A plan may
// create a whole burst of pods from one manifest.
const maxWritten = 3 << 20

// parseWritten reads JSON that is to be written to the cluster.
func parseWritten(text []byte, what string) (any, error) {
	if len(text) > maxWritten {
		return nil, fmt.Errorf("%s has %d bytes, and %d are the most", what, len(text), maxWritten)
	}
	return parse(text, what)
}

// parse reads JSON; the error says what is wrong with it. A plan's JSON is sent to the apiserver as it is written, so it must mean the
// same to every reader: of a key that an object has twice, some parsers take the first value and some the last.
func parse(text []byte, what string) (any, error) {
	value, err := rawjson.Parse(text)
	if err != nil {
		return nil, errors.New(what + " is not JSON")
	}
	if key, repeats := repeatedKey(text); repeats {
		return nil, fmt.Errorf("%s has the key %q twice in one object", what, key)
	}
	return value, nil
}

// repeatedKey returns the first key that an object of this JSON has twice, if there is one.
func repeatedKey(text []byte) (key string, repeats bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	// within are the keys of the enclosing objects; nil for an enclosing list.
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

// otherThan returns a member that is not allowed; empty if there is none.
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

// integer returns a value that is an integer.
func integer(value any) (number int64, isInteger bool) {
	written, isNumber := value.(json.Number)
	if !isNumber {
		return 0, false
	}
	number, err := written.Int64()
	return number, err == nil
}

// isInteger reports whether a value is an integer.
func isInteger(value any) bool {
	_, is := integer(value)
	return is
}

// text returns a value as JSON, without escaping <, > and &.
func text(value any) string {
	var written strings.Builder
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(written.String(), "\n")
}
