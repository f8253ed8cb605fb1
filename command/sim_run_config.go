package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/structs"
)

// readSchedulerConfig reads the scheduler's configuration; that of a new cluster if no
// file is named. A file that states nothing about the scheduler is refused: it is hardly the
// one that was meant.
func readSchedulerConfig(path string) (structs.SchedulerConfiguration, error) {
	if path == "" {
		return structs.DefaultSchedulerConfiguration(), nil
	}
	if strings.HasSuffix(path, ".json") {
		c := structs.DefaultSchedulerConfiguration()
		src, err := os.ReadFile(path) // the user names the file
		if err == nil {
			src = configWithin(src)
			err = json.Unmarshal(src, &c)
		}
		if err == nil {
			err = knownKeys(src, reflect.TypeFor[structs.SchedulerConfiguration](), "")
		}
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			return c, fmt.Errorf("-config %s: %w", path, err)
		}
		return c, nil
	}
	agent := config.Default()
	if _, err := agent.Load(path); err != nil {
		return structs.SchedulerConfiguration{}, fmt.Errorf("-config: %w", err)
	}
	has, none := &agent.Server, &config.Default().Server
	if reflect.DeepEqual(has.Scheduling, none.Scheduling) && reflect.DeepEqual(has.DefaultScheduler, none.DefaultScheduler) &&
		reflect.DeepEqual(has.Topology, none.Topology) {
		return structs.SchedulerConfiguration{}, fmt.Errorf("-config %s: has no configuration of the scheduler; it needs server { scheduling { … } }, "+
			"default_scheduler_config or topology; leave -config out for a new cluster's configuration", path)
	}
	c, err := agent.Server.SchedulerConfig()
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return c, fmt.Errorf("-config %s: server.scheduling: %w", path, err)
	}
	return c, nil
}

// configWithin returns the configuration that the API's answer has, which get-config -json prints. Anything else is
// returned as it is.
func configWithin(src []byte) []byte {
	var answer struct{ SchedulerConfig json.RawMessage }
	if json.Unmarshal(src, &answer) == nil && len(answer.SchedulerConfig) > 0 {
		return answer.SchedulerConfig
	}
	return src
}

// knownKeys refuses an object that is empty, or has keys that a struct does not.
func knownKeys(src []byte, t reflect.Type, path string) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(src, &object); err != nil {
		return nil //nolint:nilerr // no object: what reads it into the struct reports it
	}
	if len(object) == 0 && path == "" {
		return errors.New("has no configuration of the scheduler; write it as `nomadish operator scheduler get-config -json` prints it, " +
			"or leave -config out for a new cluster's configuration")
	}
	var known []string
	for f := range t.Fields() {
		known = append(known, f.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		at := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, key) })
		if at < 0 {
			near := ""
			if word := structs.Nearest(key, known); word != "" {
				near = fmt.Sprintf("; did you mean %q?", word)
			}
			return fmt.Errorf("%s%s: is not known%s (there are %s)", path, key, near, strings.Join(known, ", "))
		}
		inner := t.Field(at).Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			if err := knownKeys(object[key], inner, path+known[at]+"."); err != nil {
				return err
			}
		}
	}
	return nil
}
