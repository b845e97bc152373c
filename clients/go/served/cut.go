package served

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// What is cut here is JSON that an apiserver wrote. Values are told from each other and not looked into: what one holds, such as the
// data of a ControllerRevision, which is what some client wrote, must not spoil a list, and encoding/json reads nothing that is
// nested more than 10,000 deep.

var errCut = errors.New("it is cut off, or no JSON")

// cut splits the value off with which a text begins.
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

// stringSize is the size of the string with which a text begins, with its quotes; 0 if it does not end.
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

// members tells of the members of an object, in order.
func members(object []byte, tell func(name string, value []byte) error) error {
	return each(object, '{', '}', func(text []byte) ([]byte, error) {
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
		return text, tell(name, value)
	})
}

// elements tells of the elements of a list, in order. The API writes an empty one as null, or not at all.
func elements(list []byte, tell func(value []byte) error) error {
	if len(list) == 0 || string(list) == "null" {
		return nil
	}
	return each(list, '[', ']', func(text []byte) ([]byte, error) {
		value, text, err := cut(text)
		if err != nil {
			return nil, err
		}
		return text, tell(value)
	})
}

// each lets take read one after the other what stands between two brackets, separated by commas. It answers with what is left.
func each(text []byte, opens, closes byte, take func(text []byte) ([]byte, error)) error {
	text = bytes.TrimLeft(text, blanks)
	if len(text) == 0 || text[0] != opens {
		return fmt.Errorf("it begins with %.10q, not with %q", text, opens)
	}
	text = bytes.TrimLeft(text[1:], blanks)
	for isFirst := true; len(text) > 0 && (!isFirst || text[0] != closes); isFirst = false {
		rest, err := take(text)
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
