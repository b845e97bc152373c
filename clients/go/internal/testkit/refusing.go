package testkit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Refusing starts an apiserver that refuses every request, and returns its address. It ends with the test.
func Refusing(t testing.TB, code int, reason, message string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Refuse(w, code, reason, message)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Refuse answers a request with a Status, as an apiserver does.
func Refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}
