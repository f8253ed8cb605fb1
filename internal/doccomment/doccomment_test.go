package doccomment

import (
	"reflect"
	"testing"
)

// Outer has comments
// of each form.
type outer struct {
	Inner
	// First and Second are shared.
	First, Second int
	Third         *Inner // beside it
	Fourth        int
}

// Inner is embedded.
type Inner struct {
	// Deep is below.
	Deep int
}

const maxThings = 3 << 10 // bytes of things

func TestComments(t *testing.T) {
	p := &pkg{types: map[string]*structDoc{}}
	if err := p.parse("doccomment_test.go"); err != nil {
		t.Fatal(err)
	}
	s := New(".", reflect.TypeFor[outer]().PkgPath())
	s.packages[reflect.TypeFor[outer]().PkgPath()], s.packages[reflect.TypeFor[outer]().PkgPath()+"/"] = p, p
	field := func(name, want string) {
		t.Helper()
		f, _ := reflect.TypeFor[outer]().FieldByName(name)
		if got, err := s.Field(reflect.TypeFor[outer](), f.Index); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	field("First", "First and Second are shared.")
	field("Second", "First and Second are shared.")
	field("Third", "beside it")
	field("Fourth", "")
	field("Deep", "Deep is below.")
	if got, err := s.Consts("", func(name string) bool { return name == "maxThings" }); err != nil || len(got) != 1 || got[0] != (Const{"maxThings", "bytes of things", "3 << 10"}) {
		t.Errorf("%v, %v", got, err)
	}
	_ = maxThings
	if got, err := s.Type(reflect.TypeFor[outer]()); err != nil || got != "Outer has comments of each form." {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := s.Type(reflect.TypeFor[testing.T]()); err != nil || got != "" {
		t.Errorf("a type of another module: %q, %v", got, err)
	}
}
