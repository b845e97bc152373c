package planclient

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/internal/brief"
)

var (
	// nested is the prefix of a message that a proxy made from a whole gRPC error. The code of the error is printed anyway.
	nested = regexp.MustCompile(`rpc error: code = \w+ desc = `)
	// connection matches how gRPC-Go wraps the error of a connection.
	connection = regexp.MustCompile(`^connection error: desc = (".*")$`)
)

// describe says in one sentence which replica failed a call, how, and what to change if that is known.
func describe(replica *replica, err error) string {
	failed, isStatus := status.FromError(err)
	message := nested.ReplaceAllString(failed.Message(), "")
	if quoted := connection.FindStringSubmatch(message); quoted != nil {
		if unquoted, err := strconv.Unquote(quoted[1]); err == nil {
			message = unquoted
		}
	}
	message = brief.Text(message)
	if isStatus {
		message = failed.Code().String() + ": " + message
	}
	if advice := replica.advice(failed); advice != "" {
		message += "; " + advice
	}
	return replica.address + ": " + message
}

// advice says what may be wrong with the address, and what to write instead; empty if that is not known.
func (r *replica) advice(failed *status.Status) string {
	isAway, message := failed.Code() == codes.Unavailable, failed.Message()
	switch {
	case failed.Code() == codes.Unimplemented:
		return "what listens there is no nodewise-server, or one of another version: check the address, and the version of the server"
	case isAway && strings.Contains(message, "server preface"):
		return "what listens there does not speak gRPC in plain text: check the port, and if it speaks TLS, " + r.of.secured()
	case isAway && strings.Contains(message, "does not look like a TLS handshake"):
		return "what listens there does not speak TLS: check the port, and if it speaks plain text, " + r.of.unsecured()
	case isAway && r.of.hasDefaultPort:
		return "no port was written, so this was " + r.of.port + ": write that of the planning service, which is 7443 where nothing else was set"
	default:
		return ""
	}
}
