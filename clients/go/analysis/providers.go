package analysis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"nodewise.dev/clients/go/nodewisev1"
)

// infoPrefix begins what Prometheus reports as worth knowing among the warnings, if it is older than version 3.
const infoPrefix = "PromQL info:"

// askPrometheus makes an instant query. Others speak the same API.
func (c *Calls) askPrometheus(
	ctx context.Context, to *address, query, token string, limit time.Duration,
) (*nodewisev1.Measurement, error) {
	if strings.Contains(to.path, "?") {
		return nil, errors.New("the address of a Prometheus has no query")
	}
	path := strings.TrimRight(to.path, "/") + "/api/v1/query"
	form := url.Values{"query": {query}, "timeout": {strconv.FormatInt(limit.Milliseconds(), 10) + "ms"}}
	status, answer, err := c.post(ctx, to, path, "application/x-www-form-urlencoded", form.Encode(), token)
	if err != nil {
		return nil, err
	}
	measured, err := samples(status, answer)
	if err != nil {
		return nil, err
	}
	var single any = measured
	if len(measured) == 1 {
		single = measured[0]
	}
	text, err := json.Marshal(single)
	if err != nil {
		return nil, fmt.Errorf("writing the value: %w", err)
	}
	return value(string(text))
}

// series is one entry of a vector. One that is a histogram has no value.
type series struct {
	Metric json.RawMessage `json:"metric"`
	Value  []any           `json:"value"`
}

// samples reads the answer of Prometheus: the values of an instant vector, of which there is at least one, or of a scalar.
func samples(status int, answer []byte) ([]float64, error) {
	var response struct {
		Status    string   `json:"status"`
		ErrorType string   `json:"errorType"`
		Error     string   `json:"error"`
		Warnings  []string `json:"warnings"`
		Data      struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		} `json:"data"`
	}
	err := json.Unmarshal(answer, &response)
	switch {
	case err == nil && response.Status == "error":
		return nil, fmt.Errorf("%s: %s", response.ErrorType, response.Error)
	case !isSuccess(status):
		return nil, refused(status)
	case err != nil || response.Status != "success":
		return nil, errors.New("its answer is not that of a Prometheus")
	}
	for _, warning := range response.Warnings {
		// With a warning the result may be a part of what there is, and what is missing may be the bad part.
		if !strings.HasPrefix(warning, infoPrefix) {
			return nil, fmt.Errorf("it warns that %q", warning)
		}
	}
	all := []series{{}}
	switch response.Data.ResultType {
	case "scalar":
		err = json.Unmarshal(response.Data.Result, &all[0].Value)
	case "vector":
		err = json.Unmarshal(response.Data.Result, &all)
	default:
		return nil, fmt.Errorf("the query gives a %s, and an instant vector or a scalar is needed", response.Data.ResultType)
	}
	if err != nil {
		return nil, errors.New("its result cannot be read")
	}
	if len(all) == 0 {
		return nil, errors.New("the query has no result: no series matches")
	}
	numbers := make([]float64, 0, len(all))
	for _, one := range all {
		number, err := one.number()
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// number is the value of a sample. JSON has none for NaN and infinity, and a condition would be false for NaN, which is no measurement of anything:
// often nothing was counted yet.
func (s *series) number() (float64, error) {
	if len(s.Value) != 2 {
		return 0, fmt.Errorf("%s is a histogram, and a number is needed", s.Metric)
	}
	text, _ := s.Value[1].(string)
	number, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !math.IsInf(number, 0):
		return 0, fmt.Errorf("the value is %q, which is no number", text)
	case math.IsNaN(number) || math.IsInf(number, 0):
		return 0, fmt.Errorf("the value is %s, about which no condition can decide: change the query so that it gives a number", text)
	default:
		return number, nil
	}
}

// askWebhook posts the policy's status of the workload.
func (c *Calls) askWebhook(ctx context.Context, to *address, status []byte, token string) (*nodewisev1.Measurement, error) {
	code, answer, err := c.post(ctx, to, to.path, "application/json", string(status), token)
	if err != nil {
		return nil, err
	}
	return webhookResult(code, answer)
}

var verdicts = map[string]nodewisev1.AnalysisVerdict{
	"pass":         nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_PASS,
	"fail":         nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_FAIL,
	"inconclusive": nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_INCONCLUSIVE,
}

// webhookResult is the verdict of an answer, or its value as JSON: null if it is empty, and its text if it is no JSON.
func webhookResult(code int, answer []byte) (*nodewisev1.Measurement, error) {
	if !isSuccess(code) {
		return nil, refused(code)
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(answer), "\uFFFD"))
	// Before it is parsed, which may take many times its size.
	if err := CheckValue(text); err != nil {
		return nil, err
	}
	if text == "" {
		text = "null"
	} else if !json.Valid([]byte(text)) {
		quoted, err := json.Marshal(text)
		if err != nil {
			return nil, fmt.Errorf("its answer cannot be read: %w", err)
		}
		text = string(quoted)
	}
	var members map[string]any
	if json.Unmarshal([]byte(text), &members) == nil {
		if name, isVerdict := members["verdict"].(string); isVerdict {
			of, isKnown := verdicts[name]
			if !isKnown {
				return nil, fmt.Errorf("its verdict is %q, and not pass, fail or inconclusive", name)
			}
			message, _ := members["message"].(string)
			return verdict(of, message), nil
		}
	}
	return value(text)
}

// askVerdictService asks over a connection of its own.
func (c *Calls) askVerdictService(ctx context.Context, to *address, request *Request, token string) (*nodewisev1.Measurement, error) {
	secured := insecure.NewCredentials()
	if to.tls {
		secured = credentials.NewTLS(c.settings.TLS.Clone())
	}
	connection, err := grpc.NewClient("passthrough:///"+to.String(),
		grpc.WithTransportCredentials(secured), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithUserAgent("nodewise-go"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("no connection: %w", err)
	}
	defer func() { _ = connection.Close() }()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", token)
	}
	answer, err := nodewisev1.NewVerdictServiceClient(connection).GetVerdict(ctx, &nodewisev1.GetVerdictRequest{
		Id: request.GetId(), PolicyName: request.GetPolicyName(), Workload: request.Workload, Status: request.Status,
	})
	if err != nil {
		return nil, err
	}
	return verdict(answer.GetVerdict(), answer.GetMessage()), nil
}
