package structs

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

func TestNodeMetaChange(t *testing.T) {
	val := func(s string) *string { return &s }
	for key, ok := range map[string]bool{
		"rack": true, "connect.log_level": true, "_a-b.c9": true, "größe": true,
		"": false, "some/path": false, "9a": false, "a..b": false, ".a": false, "a.": false, "-a": false, "a b": false, "a\n": false, "a.9": false,
		strings.Repeat("k", MaxNodeKey): true, strings.Repeat("k", MaxNodeKey+1): false,
	} {
		if err := CheckNodeMetaChange(map[string]*string{key: nil}); (err == nil) != ok || !ok && CodeOf(err) != CodeBadRequest {
			t.Errorf("%q: %v", key, err)
		}
	}
	many := map[string]*string{}
	for i := range MaxNodePairs + 1 {
		many[fmt.Sprint("k", i)] = nil
	}
	for what, bad := range map[string]map[string]*string{"nothing": {}, "too many": many, "too long": {"k": val(strings.Repeat("v", MaxNodeValue+1))}} {
		if err := CheckNodeMetaChange(bad); CodeOf(err) != CodeBadRequest {
			t.Errorf("%s: %v", what, err)
		}
	}
	static := map[string]string{"a": "1", "b": "2"}
	got := MergeNodeMeta(static, map[string]*string{"a": nil, "b": val(""), "c": val("3"), "d": nil})
	if want := map[string]string{"b": "", "c": "3"}; !maps.Equal(got, want) || len(static) != 2 {
		t.Errorf("merged: %v, want %v", got, want)
	}
}
