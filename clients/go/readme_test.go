package nodewise

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)#]+)\)`)
	program = regexp.MustCompile(`go (?:run|build -o \S+) (\./[a-z/]+)`)
	file    = regexp.MustCompile(`-f (\S+)`)
)

// The files that the README names exist. Its commands are compiled with the examples, and the conformance kit runs the last of them.
func TestWhatTheREADMENamesIsThere(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := func(path string) {
		t.Helper()
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	found := 0
	for _, match := range link.FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(match[1], "://") {
			exists(match[1])
			found++
		}
	}
	for _, match := range program.FindAllStringSubmatch(string(text), -1) {
		exists(filepath.Join(match[1], "main.go"))
		found++
	}
	for _, match := range file.FindAllStringSubmatch(string(text), -1) {
		exists(filepath.Join("..", "..", match[1]))
		found++
	}
	if found < 12 {
		t.Errorf("only %d names were found", found)
	}
}

// The examples stay short.
func TestExamplesAreShort(t *testing.T) {
	for path, most := range map[string]int{"examples/controller/main.go": 150, "examples/plan/main.go": 50} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")); lines > most {
			t.Errorf("%s has %d lines, more than %d", path, lines, most)
		}
	}
}
