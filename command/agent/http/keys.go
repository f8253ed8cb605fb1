package httpapi

import (
	"encoding/json"
	"reflect"

	"github.com/nomadish/nomadish/structs"
)

// decodeKnown reads the body of a request into v, as decode does, and refuses keys that v does not have: what replaces the whole of
// something would else remove what a mistyped key was to state. Keys of shown, by which the same is read, are ignored, so that what was
// read may be written. Bodies of Nomad's own requests are read by decode, as Nomad ignores keys that it does not know.
func (r *request) decodeKnown(v any, shown ...any) error {
	r.s.takes(r, v)
	body, err := r.readBody()
	if err != nil {
		return err
	}
	if err := decodeJSON(body, v); err != nil {
		return err
	}
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return jsonError(err, len(body))
	}
	types := []reflect.Type{reflect.TypeOf(v)}
	for _, s := range shown {
		types = append(types, reflect.TypeOf(s))
	}
	return structs.CheckJSONKeys("request body", tree, types...)
}
