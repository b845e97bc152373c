// Package brief shortens messages of the service and of apiservers for logs, errors, spans and Events. A wrong service may send a message of
// any content and length, and so may an admission webhook, whose message the apiserver passes on.
package brief

import (
	"fmt"
	"strings"
	"unicode"
)

// most is the largest size of a text, in bytes.
const most = 1000

// Text returns the text on one line: control characters are escaped, and it is cut to 1,000 bytes.
func Text(text string) string {
	var short strings.Builder
	for _, character := range text {
		written := string(character)
		if unicode.IsControl(character) {
			written = escape(character)
		}
		if short.Len()+len(written) > most {
			return short.String() + "…"
		}
		short.WriteString(written)
	}
	return short.String()
}

// Error wraps an error, and shortens its text. The error of nil is nil.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return &shortened{err}
}

type shortened struct{ error }

func (s *shortened) Error() string { return Text(s.error.Error()) }

func (s *shortened) Unwrap() error { return s.error }

func escape(character rune) string {
	switch character {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	default:
		return fmt.Sprintf(`\u{%x}`, character)
	}
}
