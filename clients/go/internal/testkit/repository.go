// Package testkit has helpers for the tests of several packages: an apiserver in memory, an apiserver that refuses every request, a gRPC server for
// a planning service, and waiting for a condition. From the repository it has the vectors that all clients share, the real planning service,
// and the tools that the testbed builds.
package testkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Root is the folder of the repository.
func Root(t testing.TB) string {
	t.Helper()
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("it is not known where the sources are")
	}
	return filepath.Join(filepath.Dir(here), "..", "..", "..", "..")
}

// Vectors reads a file of proto/testdata.
func Vectors[V any](t testing.TB, name string) V {
	t.Helper()
	var vectors V
	text, err := os.ReadFile(filepath.Join(Root(t), "proto", "testdata", name))
	if err != nil {
		t.Fatalf("reading vectors: %v", err)
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return vectors
}

// VectorFiles returns the names of the files in a folder of proto/testdata.
func VectorFiles(t testing.TB, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(Root(t), "proto", "testdata", folder, "*.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("proto/testdata/%s has no vectors: %v", folder, err)
	}
	for i, path := range found {
		found[i] = filepath.Join(folder, filepath.Base(path))
	}
	return found
}

// Tool returns the path of a program that the testbed builds.
func Tool(t testing.TB, name string) string {
	t.Helper()
	printed := run(t, filepath.Join(Root(t), "testbed", "run.sh"), "tool", name)
	return strings.TrimSpace(string(printed))
}

// Server returns the path of the planning service's program: $NODEWISE_SERVER_BIN, or else the one that cargo builds.
func Server(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("NODEWISE_SERVER_BIN"); path != "" {
		return path
	}
	printed := run(t, "cargo", "build", "--locked", "--quiet", "-p", "nodewise-server", "--bin", "nodewise-server", "--message-format=json")
	for line := range bytes.Lines(printed) {
		var message struct {
			Executable string `json:"executable"`
		}
		if json.Unmarshal(line, &message) == nil && message.Executable != "" {
			return message.Executable
		}
	}
	t.Fatal("cargo told of no program")
	return ""
}

func run(t testing.TB, program string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = Root(t)
	printed, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, failed.Stderr)
	}
	if err != nil {
		t.Fatalf("running %s, which builds what this test needs: %v", program, err)
	}
	return printed
}
