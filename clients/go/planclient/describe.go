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
	// nested is what a message begins with that some proxy made from a whole error, whose code is told besides.
	nested = regexp.MustCompile(`rpc error: code = \w+ desc = `)
	// connection is what gRPC puts around the error of a connection.
	connection = regexp.MustCompile(`^connection error: desc = (".*")$`)
)

// describe says in one sentence which replica failed a call, how, and what to change if that can be told.
func describe(replica *replica, err error) string {
	said, isStatus := status.FromError(err)
	message := nested.ReplaceAllString(said.Message(), "")
	if quoted := connection.FindStringSubmatch(message); quoted != nil {
		if unquoted, err := strconv.Unquote(quoted[1]); err == nil {
			message = unquoted
		}
	}
	message = brief.Text(message)
	if isStatus {
		message = said.Code().String() + ": " + message
	}
	if advice := replica.advice(said); advice != "" {
		message += "; " + advice
	}
	return replica.address + ": " + message
}

// advice says what may be wrong with the address, and what to write instead; empty where that cannot be told.
func (r *replica) advice(said *status.Status) string {
	isAway, message := said.Code() == codes.Unavailable, said.Message()
	switch {
	case said.Code() == codes.Unimplemented:
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
