package structs

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// FromJSON reads a request by the rules of encoding/json and [Job.UnmarshalJSON], at about a quarter of their cost. false: something
// about it is unusual or wrong, nothing was read, and they are to be used.
func (r *JobRegisterRequest) FromJSON(body []byte) bool { return readRequest(body, r, &r.Job) }

// FromJSON reads a request as [JobRegisterRequest.FromJSON] does.
func (r *JobPlanRequest) FromJSON(body []byte) bool { return readRequest(body, r, &r.Job) }

// readRequest reads a request whose member Job, which is most of it, goes into job.
func readRequest[R any](body []byte, into *R, job **Job) bool {
	r := jsonReader{text: body}
	var read *Job
	start, end := 0, 0
	ok := r.object(func(key []byte) bool {
		if string(key) != "Job" {
			_, ok := r.free()
			return ok && !strings.EqualFold(string(key), "Job")
		}
		if end > 0 {
			return false
		}
		r.space()
		start = r.at
		ok := r.value(reflect.ValueOf(&read).Elem())
		end = r.at
		return ok
	})
	if !ok || !r.over() {
		return false
	}
	if end > 0 {
		body = append(append(append(make([]byte, 0, len(body)-(end-start)+4), body[:start]...), "null"...), body[end:]...)
	}
	var rest R
	if json.Unmarshal(body, &rest) != nil {
		return false
	}
	*into = rest
	*job = read
	return true
}

// readFast reads a value into what is still empty, without a tree between. false: as of [JobRegisterRequest.FromJSON].
func readFast(text []byte, v reflect.Value) bool {
	r := jsonReader{text: text}
	r.space()
	if r.peek() != '{' || !v.IsZero() {
		return false
	}
	prepare(v)
	if r.value(v) && r.over() {
		return true
	}
	v.SetZero()
	return false
}

// jsonReader reads JSON straight into values, which fillJSON does with a tree of it. What it reads it takes for what that would;
// at whatever is wrong, or is written in a way that hardly anybody does, it gives up: fillJSON reports what is wrong.
type jsonReader struct {
	text  []byte
	at    int
	depth int
}

// MaxJSONDepth bounds how deep lists and objects lie within each other: in the body of a request, in each config of a job, and in meta.
// The decoder of the log takes 1024.
const MaxJSONDepth = 200

// DeeperThan reports whether more than limit lists and objects lie within each other in a value without a type.
func DeeperThan(limit int, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if limit == 0 {
			return true
		}
		for _, in := range v {
			if DeeperThan(limit-1, in) {
				return true
			}
		}
	case []any:
		return limit == 0 || slices.ContainsFunc(v, func(in any) bool { return DeeperThan(limit-1, in) })
	}
	return false
}

func (r *jsonReader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

// peek is the next byte; 0: there is none.
func (r *jsonReader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *jsonReader) take(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.at++
	return true
}

func (r *jsonReader) word(w string) bool {
	if len(r.text)-r.at < len(w) || string(r.text[r.at:r.at+len(w)]) != w {
		return false
	}
	r.at += len(w)
	return true
}

// over reports whether nothing follows.
func (r *jsonReader) over() bool {
	r.space()
	return r.at == len(r.text)
}

// object reads an object. member is called with each key, to read its value; it must not keep the key.
func (r *jsonReader) object(member func(key []byte) bool) bool {
	r.space()
	if r.depth++; r.depth > MaxJSONDepth || !r.take('{') {
		return false
	}
	defer func() { r.depth-- }()
	if r.space(); r.take('}') {
		return true
	}
	for {
		r.space()
		key, ok := r.chars()
		if !ok {
			return false
		}
		if r.space(); !r.take(':') || !member(key) {
			return false
		}
		if r.space(); r.take('}') {
			return true
		}
		if !r.take(',') {
			return false
		}
	}
}

// list reads a list. element is called for each, to read it.
func (r *jsonReader) list(element func(i int) bool) bool {
	r.space()
	if r.depth++; r.depth > MaxJSONDepth || !r.take('[') {
		return false
	}
	defer func() { r.depth-- }()
	if r.space(); r.take(']') {
		return true
	}
	for i := 0; ; i++ {
		if !element(i) {
			return false
		}
		if r.space(); r.take(']') {
			return true
		}
		if !r.take(',') {
			return false
		}
	}
}

// chars reads a string. What it returns may be part of the text.
func (r *jsonReader) chars() ([]byte, bool) {
	start, plain := r.at, true
	if !r.take('"') {
		return nil, false
	}
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			if plain {
				return r.text[start+1 : r.at-1], true
			}
			var s string
			err := json.Unmarshal(r.text[start:r.at], &s)
			return []byte(s), err == nil
		case c < ' ':
			return nil, false
		case c == '\\':
			plain = false
			r.at++
		case c >= 0x80:
			plain = false
		}
	}
	return nil, false
}

// number reads a number as JSON writes it.
func (r *jsonReader) number() (json.Number, bool) {
	start := r.at
	digits := func() bool {
		from := r.at
		for c := r.peek(); c >= '0' && c <= '9'; c = r.peek() {
			r.at++
		}
		return r.at > from
	}
	r.take('-')
	if !r.take('0') && !digits() {
		return "", false
	}
	if r.take('.') && !digits() {
		return "", false
	}
	if r.take('e') || r.take('E') {
		if !r.take('+') {
			r.take('-')
		}
		if !digits() {
			return "", false
		}
	}
	return json.Number(r.text[start:r.at]), true
}

// free reads what goes into an any, as freeValue has it.
func (r *jsonReader) free() (any, bool) {
	r.space()
	switch r.peek() {
	case '{':
		out := map[string]any{}
		ok := r.object(func(key []byte) bool {
			name := string(key)
			value, ok := r.free()
			out[name] = value
			return ok
		})
		return out, ok
	case '[':
		out := []any{}
		ok := r.list(func(int) bool {
			value, ok := r.free()
			out = append(out, value)
			return ok
		})
		return out, ok
	case '"':
		s, ok := r.chars()
		return string(s), ok
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	case 'n':
		return nil, r.word("null")
	}
	n, ok := r.number()
	if !ok {
		return nil, false
	}
	return freeValue(n), true
}

// value is fillJSON of what comes next.
func (r *jsonReader) value(v reflect.Value) bool {
	r.space()
	if r.peek() == 'n' {
		return r.word("null")
	}
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Pointer:
		elem := reflect.New(v.Type().Elem())
		prepare(elem.Elem())
		v.Set(elem)
		return r.value(elem.Elem())
	case reflect.Struct:
		return r.fields(v)
	case reflect.Slice:
		return r.slice(v)
	case reflect.Map:
		return r.entries(v)
	case reflect.Interface:
		free, ok := r.free()
		if ok && free != nil {
			v.Set(reflect.ValueOf(free))
		}
		return ok
	case reflect.Bool:
		on := r.peek() == 't'
		v.SetBool(on)
		return on && r.word("true") || r.word("false")
	case reflect.String:
		s, ok := r.chars()
		v.SetString(string(s))
		return ok
	}
	if r.peek() == '"' { // a duration may be one
		s, ok := r.chars()
		return ok && v.Type() == durationType && fillDuration(v, string(s), "") == nil
	}
	n, ok := r.number()
	return ok && fillJSON(v, n, "") == nil
}

func (r *jsonReader) slice(v reflect.Value) bool {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		s, ok := r.chars()
		return ok && fillSlice(v, string(s), "") == nil
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	return r.list(func(i int) bool {
		v.Grow(1)
		v.SetLen(i + 1)
		elem := v.Index(i)
		if elem.Kind() == reflect.Struct {
			prepare(elem)
		}
		return r.value(elem) && (elem.Kind() != reflect.Pointer || !elem.IsNil())
	})
}

func (r *jsonReader) entries(v reflect.Value) bool {
	v.Set(reflect.MakeMap(v.Type()))
	return r.object(func(key []byte) bool {
		name := string(key)
		elem := reflect.New(v.Type().Elem()).Elem()
		if !r.value(elem) || elem.Kind() == reflect.Pointer && elem.IsNil() {
			return false
		}
		v.SetMapIndex(reflect.ValueOf(name), elem)
		return true
	})
}

func (r *jsonReader) fields(v reflect.Value) bool {
	t := tableOf(v.Type())
	var seen [4]uint64
	if len(t.fields) > 64*len(seen) {
		return false
	}
	ok := r.object(func(key []byte) bool {
		i, known := t.at[string(key)]
		if !known {
			_, ok := r.free()
			return ok && len(t.names.lower[strings.ToLower(string(key))]) == 0 // in another case: it may be stated twice
		}
		bit := uint64(1) << (i % 64)
		if seen[i/64]&bit != 0 {
			return false
		}
		seen[i/64] |= bit
		return r.value(v.FieldByIndex(t.fields[i].Index))
	})
	if a, is := v.Addr().Interface().(AfterDecoder); ok && is {
		a.AfterDecode()
	}
	return ok
}

// fieldTable finds a struct type's fields by name.
type fieldTable struct {
	fields []Field
	at     map[string]int
	names  *fieldNames
}

var tableCache sync.Map // reflect.Type → *fieldTable

func tableOf(t reflect.Type) *fieldTable {
	if known, ok := tableCache.Load(t); ok {
		return known.(*fieldTable) // nothing else is put there
	}
	table := &fieldTable{fields: Fields(t), at: map[string]int{}, names: namesOf(t)}
	for i, f := range table.fields {
		table.at[f.Name] = i
	}
	tableCache.Store(t, table)
	return table
}
