package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// JSON files of projects have the names of the API, and are read without any that it does not have.
type (
	// jsonProjects is a whole file.
	jsonProjects struct {
		Flows    []*structs.Flow
		Projects []*jsonProject
	}
	// jsonProject is a project with the weeks of its calendar that the file states.
	jsonProject struct {
		jsonProjectFields
		Throughput *jsonThroughput
		Calendar   []*jsonWeek
	}
	// jsonProjectFields are the fields of a project. The type has no methods: what the project's own method reads is not checked for
	// unknown keys.
	jsonProjectFields structs.Project
	jsonThroughput    struct {
		Jobs int
		Per  jsonDuration
	}
	// jsonWeek is all that a project has in a week.
	jsonWeek struct {
		Week string
		Rows []structs.CalendarRow
	}
	jsonDuration time.Duration
)

// UnmarshalJSON reads a duration that is a text such as "24h", or nanoseconds.
func (d *jsonDuration) UnmarshalJSON(b []byte) error {
	if !bytes.HasPrefix(b, []byte(`"`)) {
		return json.Unmarshal(b, (*int64)(d))
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q: write a duration as in \"24h\", or a number of nanoseconds", text)
	}
	*d = jsonDuration(v)
	return nil
}

// readJSON reads a project (or a flow), a list of some, or an object with the lists Flows and Projects.
func (f *projectFile) readJSON(src []byte, flows bool) error {
	var file jsonProjects
	var into any = &file
	switch isList := isJSONList(src); {
	case isList && flows:
		into = &file.Flows
	case isList:
		into = &file.Projects
	case hasKey(src, "Flows") || hasKey(src, "Projects"):
	case flows:
		file.Flows = []*structs.Flow{{}}
		into = file.Flows[0]
	default:
		file.Projects = []*jsonProject{{}}
		into = file.Projects[0]
	}
	known := append(jsonKeys(reflect.TypeFor[structs.Project](), reflect.TypeFor[structs.Throughput](), reflect.TypeFor[structs.Flow](), reflect.TypeFor[structs.CalendarRow]()),
		"Flows", "Projects", "Calendar", "Week", "Rows")
	if err := decodeStrictJSON(f.path, src, into, known); err != nil {
		return err
	}
	if len(file.Flows)+len(file.Projects) == 0 {
		return fmt.Errorf("%s: it has no project and no flow", f.path)
	}
	return f.take(&file)
}

// hasKey reports whether a JSON object has a key, whatever its case.
func hasKey(src []byte, key string) bool {
	var object map[string]json.RawMessage
	if json.NewDecoder(bytes.NewReader(src)).Decode(&object) != nil {
		return false // what reads it reports it
	}
	for name := range object { // order does not matter: any will do
		if strings.EqualFold(name, key) {
			return true
		}
	}
	return false
}

// take takes over what a JSON file states.
func (f *projectFile) take(file *jsonProjects) error {
	null := fmt.Errorf("%s: null is no project, flow or week", f.path)
	for _, flow := range file.Flows {
		if flow == nil {
			return null
		}
		f.flows = append(f.flows, flow)
	}
	for _, one := range file.Projects {
		if one == nil {
			return null
		}
		p := &projectBlock{Project: structs.Project(one.jsonProjectFields)}
		if t := one.Throughput; t != nil {
			p.Throughput = &structs.Throughput{Jobs: t.Jobs, Per: time.Duration(t.Per)}
		}
		for _, w := range one.Calendar {
			if w == nil {
				return null
			}
			p.Calendar = append(p.Calendar, &calendarBlock{Week: w.Week, Slots: w.Rows})
		}
		f.projects = append(f.projects, p)
	}
	return nil
}
