// Package brief bounds what the service and apiservers say in words before it goes into logs, errors, spans and Events: a wrong service may say
// anything, at any length, and so may a webhook that an apiserver repeats.
package brief

import (
	"fmt"
	"strings"
	"unicode"
)

// most is the most bytes of a text.
const most = 1000

// Text is the text on one line, without control characters, cut to 1,000 bytes.
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

// Error is an error with that text. What it was made from can be asked as before. Of none it is nil.
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
