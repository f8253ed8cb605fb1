package httpapi

import (
	"bytes"

	"github.com/nomadish/nomadish/structs"
)

// A body of many small values takes a hundred times its size in memory once it is read. The greatest job has a tenth of these.
const (
	maxJSONContainers = 200_000   // objects and lists
	maxJSONValues     = 2_000_000 // values of all kinds
)

// checkValues refuses a body of more values than any request needs, or with more of them within each other, before it is read into anything.
func checkValues(body []byte) error {
	if bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) <= structs.MaxJSONDepth && len(body) < maxJSONValues {
		return nil // as nearly all
	}
	containers, values, depth, deepest, quoted := 0, 0, 0, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			containers++
			depth++
			deepest = max(deepest, depth)
		case c == '}', c == ']':
			depth--
		case c == ',':
			values++
		}
	}
	if deepest > structs.MaxJSONDepth {
		return badRequest("request body: %d objects and lists are within each other, at most %d are allowed", deepest, structs.MaxJSONDepth)
	}
	if containers > maxJSONContainers || values > maxJSONValues {
		return badRequest("request body: more than %d objects and lists, or than %d values", maxJSONContainers, maxJSONValues)
	}
	return nil
}
