package rpc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// A filter by a field that is not there names those that are.
func TestFilterByAnUnknownField(t *testing.T) {
	f := func(expression string, want ...string) {
		t.Helper()
		keep, err := filter[*structs.NodeListStub](expression)
		if err == nil {
			_, err = keep(&structs.NodeListStub{ID: "x", Attributes: map[string]string{"a": "b"}, Drivers: map[string]*structs.DriverInfo{"d": {}}})
		}
		text := fmt.Sprint(err)
		if structs.CodeOf(err) != structs.CodeBadRequest || len(text) > structs.MaxErrorBytes {
			t.Errorf("%s: %d bytes: %v", expression, len(text), err)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q, which lacks %q", expression, text, w)
			}
		}
	}
	f(`Foo == 1`, `filter "Foo == 1": there is no field "Foo"; there are Address, ID, `, " Status,")
	f(`stauts == "ready"`, `no field "stauts"; did you mean Status?`)
	f(`ID == "x" and not (Nope == 1 or Name == "")`, `no field "Nope"`)
	f(`Drivers.d.Sound == true`, `no field "Sound" in "Drivers.d"`, "Healthy")
	f(`"/Foo" == 1`, `no field "Foo"`)
	f(`any Foo as x { x == "a" }`, `no field "Foo"`)
	f(strings.Repeat("F", 5000)+` == 1`, "there are Address, ID, ")
	f(`Name.x == 1`, "filter")
	f(`Drain == "maybe"`, "filter") // a field that there is
}

func TestFilterNamesABoundedNumberOfFields(t *testing.T) {
	type wide struct {
		A0, A1, A2, A3, A4, A5, A6, A7, A8, A9 int
		B0, B1, B2, B3, B4, B5, B6, B7, B8, B9 int
		C0, C1, C2, C3, C4, C5, C6, C7, C8, C9 int
		D0, D1, D2, D3, D4, D5, D6, D7, D8, D9 int
		E0, E1                                 int
	}
	keep, err := filter[wide]("Zulu == 1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keep(wide{}); err == nil || !strings.HasSuffix(err.Error(), "D8, D9 and 2 more") {
		t.Errorf("%v", err)
	}
}
