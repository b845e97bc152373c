// Package rawjson reads JSON that the apiserver or a plan contains, without losing how it is written.
//
// [Fields], [Elements] and [Rewrite] split a text into its values and do not look into these. The data of a ControllerRevision is written
// by any client: whatever it contains must not make a list unreadable, and encoding/json rejects values that are nested more than 10,000
// deep. [Parse], [At], [Object], [List] and [First] read a whole value, whose numbers stay as they are written.
//
// Which fields of an object are read, and with which types, is not decided here.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

var errCut = errors.New("it is cut off, or no JSON")

// Fields decodes some members of an object. The keys of into are their names, and the values are pointers for encoding/json. A *[]byte
// receives the value as it is written, and its content is not checked. Other members are skipped. The object must not change afterwards.
func Fields(object []byte, into map[string]any) error {
	return members(object, func(name string, value []byte) error {
		switch target := into[name].(type) {
		case nil:
			return nil
		case *[]byte:
			*target = value
			return nil
		default:
			return json.Unmarshal(value, target)
		}
	})
}

// Elements calls each with the elements of a list, in order. The API writes an empty list as null, or not at all.
func Elements(list []byte, each func(value []byte) error) error {
	if len(list) == 0 || string(list) == "null" {
		return nil
	}
	return between(list, '[', ']', func(text []byte) ([]byte, error) {
		value, text, err := cut(text)
		if err != nil {
			return nil, err
		}
		return text, each(value)
	})
}

// Rewrite writes the members of an object again, in order, each with the value that edit returns. A member for which edit returns nil is
// left out.
func Rewrite(object []byte, edit func(name string, value []byte) ([]byte, error)) ([]byte, error) {
	out := append(make([]byte, 0, len(object)), '{')
	err := members(object, func(name string, value []byte) error {
		edited, err := edit(name, value)
		if edited == nil || err != nil {
			return err
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted...), ':'), edited...)
		return nil
	})
	return append(out, '}'), err
}

// cut splits off the first value of a text.
func cut(text []byte) (value, rest []byte, err error) {
	text = bytes.TrimLeft(text, blanks)
	depth := 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			size := stringSize(text[at:])
			if size == 0 {
				return nil, nil, errCut
			}
			at += size - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth > 0 {
				continue
			}
			// A number or a word.
			if size := bytes.IndexAny(text[at:], blanks+",:]}"); size > 0 {
				at += size - 1
			} else if size < 0 {
				at = len(text) - 1
			} else {
				return nil, nil, errCut
			}
		}
		if depth < 0 {
			return nil, nil, errCut
		}
		if depth == 0 {
			return text[:at+1], text[at+1:], nil
		}
	}
	return nil, nil, errCut
}

const blanks = " \t\r\n"

// stringSize is the size of the string at the start of a text, with its quotes; 0 if the string does not end.
func stringSize(text []byte) int {
	for at := 1; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return 0
}

// members calls each with the members of an object, in order.
func members(object []byte, each func(name string, value []byte) error) error {
	return between(object, '{', '}', func(text []byte) ([]byte, error) {
		quoted, text, err := cut(text)
		if err != nil {
			return nil, err
		}
		var name string
		if err := json.Unmarshal(quoted, &name); err != nil {
			return nil, fmt.Errorf("the name of a member: %w", err)
		}
		text, hasValue := bytes.CutPrefix(bytes.TrimLeft(text, blanks), []byte(":"))
		if !hasValue {
			return nil, errCut
		}
		value, text, err := cut(text)
		if err != nil {
			return nil, err
		}
		return text, each(name, value)
	})
}

// between reads the entries between two brackets, which commas separate. The function read reads one entry from the start of a text, and
// returns the rest of the text.
func between(text []byte, opens, closes byte, read func(text []byte) ([]byte, error)) error {
	text = bytes.TrimLeft(text, blanks)
	if len(text) == 0 || text[0] != opens {
		return fmt.Errorf("it begins with %.10q, not with %q", text, opens)
	}
	text = bytes.TrimLeft(text[1:], blanks)
	for isFirst := true; len(text) > 0 && (!isFirst || text[0] != closes); isFirst = false {
		rest, err := read(text)
		if err != nil {
			return err
		}
		text = bytes.TrimLeft(rest, blanks)
		if len(text) > 0 && text[0] == closes {
			break
		}
		if len(text) == 0 || text[0] != ',' {
			return errCut
		}
		text = text[1:]
	}
	if len(text) == 0 || len(bytes.TrimLeft(text[1:], blanks)) > 0 {
		return errCut
	}
	return nil
}
