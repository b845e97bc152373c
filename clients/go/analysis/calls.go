package analysis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/nodewisev1"
)

const (
	// maxAnswer is the largest answer in bytes, and maxHeader its largest header.
	maxAnswer, maxHeader = 1 << 20, 64 << 10
	// maxToken is the largest token in bytes. Servers take headers of this size.
	maxToken = 16 << 10
	// defaultTimeout is the longest time of a call, if the settings have none.
	defaultTimeout = 10 * time.Second
)

// Settings say whom the executor may call, and how.
type Settings struct {
	// Hosts are the hosts that may be called: HOST[:PORT][=CREDENTIAL]. Without a port, every port of the host is allowed. The credential is the
	// name of a file in Credentials, whose token the host may get.
	Hosts []string
	// Credentials is the folder with the files that the operator mounts; empty for none.
	Credentials string
	// Timeout is the longest time of a call: 10 seconds if not set. The interval of the check limits it as well.
	Timeout time.Duration
	// TLS is the configuration of connections with TLS. Without it the certificate authorities of the system count.
	TLS *tls.Config
}

// Calls makes measurements by calls to Prometheus, webhooks and VerdictServices.
type Calls struct {
	settings Settings
	hosts    []allowedHost
	http     *http.Client
	turns    *turns
}

var _ Measurer = (*Calls)(nil)

// New makes a Measurer. The error says which host cannot be understood.
func New(settings Settings) (*Calls, error) {
	made := &Calls{settings: settings, turns: newTurns()}
	if made.settings.Timeout <= 0 {
		made.settings.Timeout = defaultTimeout
	}
	for _, text := range settings.Hosts {
		host, err := parseHost(text)
		if err != nil {
			return nil, err
		}
		made.hosts = append(made.hosts, host)
	}
	if made.settings.TLS == nil {
		made.settings.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	made.http = &http.Client{
		// Without a proxy: it would be called with the name of the host, and nobody allowed the proxy itself.
		Transport: &http.Transport{
			TLSClientConfig: made.settings.TLS, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
		// A redirect could lead to any host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return made, nil
}

// Hosts implements [Measurer].
func (c *Calls) Hosts() []string {
	var hosts []string
	for _, host := range c.hosts {
		hosts = append(hosts, host.String())
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// Measure implements [Measurer].
func (c *Calls) Measure(ctx context.Context, request *Request) (*nodewisev1.Measurement, error) {
	var name string
	var to *address
	var err error
	switch provider := request.GetProvider().(type) {
	case *nodewisev1.Measure_Prometheus:
		name = "Prometheus"
		to, err = addressOfURL(provider.Prometheus.GetAddress())
	case *nodewisev1.Measure_Webhook:
		name = "the webhook"
		to, err = addressOfURL(provider.Webhook.GetUrl())
	case *nodewisev1.Measure_VerdictService:
		name = "the VerdictService"
		to, err = addressOfHostPort(provider.VerdictService.GetAddress(), provider.VerdictService.GetTls())
	default:
		return nil, errors.New("the measurement has no provider")
	}
	if err == nil {
		err = checkHost(c.hosts, to)
	}
	if err != nil {
		return nil, err
	}
	end, err := c.turns.take(ctx, request.Workload.GetNamespace(), request.GetId())
	if err != nil {
		return nil, err
	}
	defer end()
	limit := c.settings.Timeout
	if request.Interval > 0 {
		limit = min(limit, request.Interval)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, err := c.ask(ctx, request, to, limit)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", name, to, err)
	}
	return result, nil
}

// ask makes the call, which the context ends after the limit.
func (c *Calls) ask(ctx context.Context, request *Request, to *address, limit time.Duration) (*nodewisev1.Measurement, error) {
	token, err := c.token(to, request.GetCredential())
	if err != nil {
		return nil, err
	}
	switch provider := request.GetProvider().(type) {
	case *nodewisev1.Measure_Prometheus:
		return c.askPrometheus(ctx, to, provider.Prometheus.GetQuery(), token, limit)
	case *nodewisev1.Measure_Webhook:
		return c.askWebhook(ctx, to, request.Status, token)
	default:
		return c.askVerdictService(ctx, to, request, token)
	}
}

// token returns the token that a check names, if it may be sent to this address; empty for none. The file is read each time, because the kubelet
// replaces it when a Secret changes. An error tells nothing of the content.
func (c *Calls) token(to *address, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if err := checkCredential(c.hosts, to, name); err != nil {
		return "", err
	}
	if c.settings.Credentials == "" {
		return "", errors.New("this executor has no folder with credentials")
	}
	// The name is one that the operator has given, and has no slash.
	path := filepath.Join(c.settings.Credentials, name)
	if found, err := os.Stat(path); err != nil || !found.Mode().IsRegular() {
		return "", fmt.Errorf("credential %q cannot be used: there is no such file", name)
	}
	file, err := os.Open(path) //nolint:gosec // the operator has given the folder and the name
	if err != nil {
		return "", fmt.Errorf("credential %q cannot be used: it cannot be opened", name)
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	token := strings.TrimSpace(string(content))
	isOdd := strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
	if err != nil || len(content) > maxToken || token == "" || isOdd {
		return "", fmt.Errorf("credential %q cannot be used: it is no token of at most %d bytes", name, maxToken)
	}
	return "Bearer " + token, nil
}

// post makes a POST, and returns the status and the body of the answer. Of a long answer no more is read than is needed to know that it is too
// long.
func (c *Calls) post(ctx context.Context, to *address, path, contentType, body, token string) (status int, answer []byte, err error) {
	scheme := map[bool]string{false: "http", true: "https"}[to.tls]
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://"+to.String()+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("no request can be made of its path")
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "nodewise-go")
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		// The error of http.Client has the URL, whose query may have a secret.
		return 0, nil, fmt.Errorf("no answer: %w", cause(err))
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("reading its answer: %w", err)
	case len(answer) > maxAnswer:
		return 0, nil, fmt.Errorf("its answer is longer than %d bytes", maxAnswer)
	default:
		return response.StatusCode, answer, nil
	}
}

// cause is the innermost error but one of an HTTP call, without the URL.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

func isSuccess(status int) bool { return status >= 200 && status < 300 }

// refused says that a status is none of success.
func refused(status int) error {
	if status >= 300 && status < 400 {
		return fmt.Errorf("it answered %d %s, and no redirect is followed", status, http.StatusText(status))
	}
	return fmt.Errorf("it answered %d %s", status, http.StatusText(status))
}

func value(json string) (*nodewisev1.Measurement, error) {
	if err := CheckValue(json); err != nil {
		return nil, err
	}
	return &nodewisev1.Measurement{Result: &nodewisev1.Measurement_Value{Value: json}}, nil
}

// verdict is a verdict as a result. One that is not known is none, as one that is not set.
func verdict(of nodewisev1.AnalysisVerdict, message string) *nodewisev1.Measurement {
	if of != nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_PASS && of != nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_FAIL {
		of = nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_INCONCLUSIVE
	}
	return &nodewisev1.Measurement{Result: &nodewisev1.Measurement_Verdict{
		Verdict: &nodewisev1.MeasuredVerdict{Verdict: of, Message: brief.Text(message)},
	}}
}
