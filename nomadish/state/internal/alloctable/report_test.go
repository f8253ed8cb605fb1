package alloctable

import (
	"reflect"
	"testing"
	"time"

	msgpack "github.com/hashicorp/go-msgpack/v2/codec"
	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// anyValue returns a random value of any type that is said of tasks: a field that is new,
// and forgotten where they are packed, shows.
func anyValue(t *rapid.T, v reflect.Value) {
	some := func() bool { return rapid.Bool().Draw(t, "some") }
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		at := time.Unix(rapid.Int64().Draw(t, "sec")>>rapid.IntRange(0, 60).Draw(t, "near"), rapid.Int64Range(0, 999_999_999).Draw(t, "nsec")).UTC()
		if some() && at.Year() >= 0 && at.Year() < 10_000 {
			v.Set(reflect.ValueOf(at))
		}
		return
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			anyValue(t, v.Field(i))
		}
		return
	case !some():
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.StringN(0, 5, 200).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "integer"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "number"))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		anyValue(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 3).Draw(t, "long"), 3))
		for i := range v.Len() {
			anyValue(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, 3).Draw(t, "many") {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			anyValue(t, key)
			anyValue(t, value)
			v.SetMapIndex(key, value)
		}
	default:
		t.Fatalf("a value of type %s", v.Type())
	}
}

// TestReport sees to it that what clients say is kept as they said it, and once for all
// that say the same at other times.
func TestReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a structs.Allocation
		anyValue(t, reflect.ValueOf(&a.TaskStates).Elem())
		anyValue(t, reflect.ValueOf(&a.DeploymentStatus).Elem())
		anyValue(t, reflect.ValueOf(&a.ClientDescription).Elem())
		a.NetworkStatus = &structs.AllocNetworkStatus{Address: "10.0.0.1"}
		var got structs.Allocation
		reported := new(packer).pack(&a)
		reported.applyTo(&got, false)
		if !reflect.DeepEqual(got, a) {
			t.Fatalf("%+v became %+v", a, got)
		}
		var brief structs.Allocation
		reported.applyTo(&brief, true)
		for _, task := range a.TaskStates {
			if task != nil && task.State != structs.TaskStateDead {
				task.Events = nil
			}
		}
		if !reflect.DeepEqual(brief, a) {
			t.Fatalf("in brief, %+v became %+v", a, brief)
		}
		if again := new(packer).pack(&got); again.form != reported.form || again.times != reported.times {
			t.Fatal("the same is packed otherwise")
		}
	})
	if reported := new(packer).pack(&structs.Allocation{}); reported != nil {
		t.Fatalf("nothing was said, and %+v is kept", reported)
	}
}

// untagged is what a version reads with that knows nothing of the tag wire.
var untagged = func() *msgpack.MsgpackHandle {
	h := &msgpack.MsgpackHandle{WriteExt: true}
	h.RawToString, h.Canonical = true, true
	h.MapType = reflect.TypeFor[map[string]any]()
	return h
}()

// TestReportTravels sees to it that a version which writes fields without a value reads what
// is sent to it without them.
func TestReportTravels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sent, got, here structs.AllocClientUpdate
		anyValue(t, reflect.ValueOf(&sent).Elem())
		data, err := codec.Encode(&sent)
		if err == nil {
			err = msgpack.NewDecoderBytes(data, untagged).Decode(&got)
		}
		if err == nil {
			err = codec.Decode(data, &here)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, sent) || !reflect.DeepEqual(here, sent) {
			t.Fatalf("%+v became %+v for another, and %+v", sent, got, here)
		}
	})
}

// started is what clients say of a task that runs.
func started(at time.Time) map[string]*structs.TaskState {
	event := func(kind, text string, after time.Duration) *structs.TaskEvent {
		return &structs.TaskEvent{Type: kind, Time: at.Add(after).UnixNano(), DisplayMessage: text, Details: map[string]string{}}
	}
	return map[string]*structs.TaskState{"t": {State: structs.TaskStateRunning, StartedAt: at, Events: []*structs.TaskEvent{
		event(structs.TaskReceived, "Task received by client", -time.Millisecond),
		event(structs.TaskSetup, "Building Task Directory", -time.Microsecond),
		event(structs.TaskStarted, "Task started by client", 0),
	}}}
}

// TestReportShared sees to it that what differs in its times only stands once.
func TestReportShared(t *testing.T) {
	one := new(packer).pack(&structs.Allocation{TaskStates: started(time.Unix(100, 5)), DeploymentStatus: &structs.AllocDeploymentStatus{ModifyIndex: 7}})
	other := new(packer).pack(&structs.Allocation{TaskStates: started(time.Unix(200, 10)), DeploymentStatus: &structs.AllocDeploymentStatus{ModifyIndex: 9}})
	if other.form != one.form {
		t.Error("the forms differ")
	}
	if len(one.times) > 32 {
		t.Errorf("the times of a task that runs take %d bytes", len(one.times))
	}
}

func BenchmarkReport(b *testing.B) {
	a := &structs.Allocation{TaskStates: started(time.Unix(1_700_000_000, 123_456_789))}
	b.Run("pack", func(b *testing.B) {
		b.ReportAllocs()
		var p packer
		for b.Loop() {
			p.pack(a)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		s := new(packer).pack(a)
		var to structs.Allocation
		for b.Loop() {
			s.applyTo(&to, false)
		}
	})
}
