package main

import (
	"flag"
	"strings"

	"nodewise.dev/clients/go/analysis"
)

// analysisFlags adds the flags that say whom the controller may call for the checks of RolloutPolicies.
func analysisFlags() *analysis.Settings {
	settings := &analysis.Settings{}
	flag.Func("analysis-host", "hosts that may be called for the checks of RolloutPolicies: HOST[:PORT][=CREDENTIAL], separated by commas",
		func(hosts string) error {
			settings.Hosts = append(settings.Hosts, strings.Split(hosts, ",")...)
			return nil
		})
	flag.StringVar(&settings.Credentials, "analysis-credentials", "", "folder with the files of the credentials")
	flag.DurationVar(&settings.Timeout, "analysis-timeout", 0, "longest time of a call; 10s if not set")
	return settings
}
