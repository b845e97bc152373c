package plancheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// object is an object of JSON.
type object = map[string]any

// parse reads JSON. Numbers stay as they are written.
func parse(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return value, nil
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

// text is a value as JSON.
func text(value any) string {
	written, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(written)
}
