package jobspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/structs"
)

// specTypes gives every struct type reachable from a job, by name.
func specTypes(t reflect.Type, into map[string]reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || into[t.Name()] != nil {
		return
	}
	into[t.Name()] = t
	for _, f := range structs.Fields(t) {
		specTypes(f.Type, into)
	}
}

func TestEveryDocumentedFieldHasATag(t *testing.T) {
	types := map[string]reflect.Type{}
	specTypes(reflect.TypeFor[structs.Job](), types)
	text, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(text)) {
		name, fields, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		typ := types[name]
		if typ == nil {
			t.Errorf("no struct %s", name)
			continue
		}
		for _, field := range strings.Fields(fields) {
			count++
			if !slices.ContainsFunc(structs.Fields(typ), func(f structs.Field) bool { return f.HCL == field }) {
				t.Errorf("%s has no field %s", name, field)
			}
		}
	}
	if count < 400 {
		t.Errorf("only %d fields were looked for", count)
	}
}

// writer writes a job file in which every field is stated, each with a value
// that is not its default.
type writer struct {
	b      bytes.Buffer
	fields int
}

func (w *writer) body(t reflect.Type, depth int) {
	in := strings.Repeat("  ", depth)
	for _, f := range structs.Fields(t) {
		// the others hold nothing of interest here.
		//exhaustive:ignore
		switch f.Kind {
		case structs.FieldAttr, structs.FieldOptLabel:
			w.fields++
			fmt.Fprintf(&w.b, "%s%s = %s\n", in, f.HCL, w.value(f, f.Type))
		case structs.FieldBlock:
			w.fields++
			w.block(f, depth)
		}
	}
}

func (w *writer) block(f structs.Field, depth int) {
	in := strings.Repeat("  ", depth)
	elem := f.Type
	if elem.Kind() == reflect.Slice || elem.Kind() == reflect.Map {
		elem = elem.Elem()
	}
	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	label := ""
	if elem.Kind() == reflect.Struct {
		for _, sub := range structs.Fields(elem) {
			if sub.Kind == structs.FieldLabel {
				label = ` "one"`
			}
		}
	}
	fmt.Fprintf(&w.b, "%s%s%s {\n", in, f.HCL, label)
	if elem.Kind() == reflect.Struct {
		w.body(elem, depth+1)
	} else {
		fmt.Fprintf(&w.b, "%s  key = %s\n", in, w.value(structs.Field{}, elem))
	}
	fmt.Fprintf(&w.b, "%s}\n", in)
}

func (w *writer) value(f structs.Field, t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[time.Duration]() {
		return `"7s"`
	}
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch t.Kind() {
	case reflect.String:
		if one := f.OneOf(); len(one) > 0 {
			return fmt.Sprintf("%q", one[len(one)-1])
		}
		return fmt.Sprintf("%q", "some "+f.HCL)
	case reflect.Bool:
		probe := map[string]bool{"replace": true, "enabled": true}
		return fmt.Sprint(!probe[f.HCL])
	case reflect.Slice:
		return "[" + w.value(structs.Field{}, t.Elem()) + "]"
	case reflect.Interface:
		return `{ list = [1, 2.5, "x", true, { deep = "er" }] }`
	default:
		return "13"
	}
}

func everyField(t *testing.T) (*structs.Job, int) {
	t.Helper()
	var w writer
	w.b.WriteString("job \"all\" {\n")
	w.body(reflect.TypeFor[structs.Job](), 1)
	w.b.WriteString("}\n")
	job, _, err := Parse("all.hcl", w.b.Bytes(), Options{SkipValidate: true})
	if err != nil {
		t.Fatalf("%v\n%s", err, w.b.String())
	}
	return job, w.fields
}

// unset lists fields with an HCL name that hold nothing.
func unset(v reflect.Value, path string) []string {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return []string{path}
		}
		v = v.Elem()
	}
	var out []string
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range structs.Fields(v.Type()) {
			if f.Kind != structs.FieldHidden {
				out = append(out, unset(v.FieldByIndex(f.Index), path+"."+f.Name)...)
			}
		}
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 {
			return []string{path}
		}
		if v.Kind() == reflect.Slice && v.Index(0).Kind() != reflect.Interface {
			return unset(v.Index(0), path+"[0]")
		}
	case reflect.Bool:
		// Fields whose default is true are stated false.
	default:
		if v.IsZero() {
			return []string{path}
		}
	}
	return out
}

func TestEveryFieldIsReadFromHCL(t *testing.T) {
	job, fields := everyField(t)
	if missing := unset(reflect.ValueOf(job), "Job"); len(missing) > 0 {
		t.Errorf("stated, but not read: %v", missing)
	}
	if fields < 450 {
		t.Errorf("only %d fields were written", fields)
	}
}

func TestEveryFieldSurvivesJSONAndMsgpack(t *testing.T) {
	job, _ := everyField(t)
	raw, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON structs.Job
	if err := json.Unmarshal(raw, &fromJSON); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(job, &fromJSON) {
		t.Errorf("JSON: have %+v, want %+v", fromJSON, job)
	}

	handle := &codec.MsgpackHandle{WriteExt: true}
	handle.RawToString = true
	handle.MapType = reflect.TypeFor[map[string]any]()
	var packed []byte
	if err := codec.NewEncoderBytes(&packed, handle).Encode(job); err != nil {
		t.Fatal(err)
	}
	var unpacked structs.Job
	if err := codec.NewDecoderBytes(packed, handle).Decode(&unpacked); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(job, &unpacked) {
		t.Errorf("msgpack: have %+v, want %+v", unpacked.TaskGroups[0].Tasks[0].Config, job.TaskGroups[0].Tasks[0].Config)
	}
	if unpacked.SpecChanged(job) {
		t.Error("msgpack changed the specification")
	}
}

// fillAPI sets every field of the official client's job to something.
func fillAPI(v reflect.Value, depth int) {
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAPI(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Tag.Get("json") != "-" && !apiExempt[v.Type().Name()+"."+f.Name] {
				fillAPI(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("payload"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillAPI(v.Index(0), depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		elem := reflect.New(v.Type().Elem()).Elem()
		fillAPI(elem, depth+1)
		v.SetMapIndex(reflect.ValueOf("key"), elem)
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{"s": "x", "l": []any{1.5, true}}))
	case reflect.String:
		v.SetString("some")
	case reflect.Bool:
		v.SetBool(true)
	default:
		switch {
		case v.CanInt():
			v.SetInt(7)
		case v.CanUint():
			v.SetUint(7)
		}
	}
}

// apiExempt are fields of the official client that we do not have.
var apiExempt = map[string]bool{
	"ConsulProxy.ExposeConfig": true, // its own older name of Expose
	"ConsulExposeConfig.Path":  true, // its own older name of Paths
}

func TestTheOfficialClientsJobGoesThroughOurs(t *testing.T) {
	var sent api.Job
	fillAPI(reflect.ValueOf(&sent).Elem(), 0)
	raw, err := json.Marshal(&sent)
	if err != nil {
		t.Fatal(err)
	}
	var ours structs.Job
	if err := json.Unmarshal(raw, &ours); err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(&ours)
	if err != nil {
		t.Fatal(err)
	}
	var got api.Job
	if err := json.Unmarshal(back, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(sent, got) {
		again, _ := json.MarshalIndent(&got, "", " ")
		want, _ := json.MarshalIndent(&sent, "", " ")
		t.Errorf("have %s\nwant %s", again, want)
	}
}
