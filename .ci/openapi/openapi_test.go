// Package openapi checks docs/reference/openapi.json, which is generated from the program, against what is not the program's: the schema of OpenAPI 3.1.
package openapi

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi/datamodel"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	file     = "openapi.json"
	standard = "https://spec.openapis.org/oas/3.1/schema/2022-10-07"
)

// TestOpenAPI: the document is one of OpenAPI 3.1, its schemas are JSON schemas, and every reference in it leads somewhere.
func TestOpenAPI(t *testing.T) {
	text, err := os.Open("../../docs/reference/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close() //nolint:errcheck // it is only read
	doc, err := jsonschema.UnmarshalJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(datamodel.OpenAPI31SchemaData))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	for url, resource := range map[string]any{standard: schema, file: doc} {
		if err := c.AddResource(url, resource); err != nil {
			t.Fatal(err)
		}
	}
	document, err := c.Compile(standard)
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(doc); err != nil {
		t.Errorf("%#v", err)
	}
	schemas := at(doc, "components", "schemas")
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if _, err := c.Compile(file + "#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	references := 0
	eachReference(doc, func(to string) {
		references++
		path, ok := strings.CutPrefix(to, "#/components/")
		kind, name, _ := strings.Cut(path, "/")
		if !ok || at(doc, "components", kind)[name] == nil {
			t.Errorf("%s leads nowhere", to)
		}
	})
	if paths := at(doc, "paths"); len(paths) < 100 || len(schemas) < 100 || references < 100 {
		t.Errorf("%d paths, %d schemas, %d references: this test does not find them", len(paths), len(schemas), references)
	}
}

// at returns the object below names, nil if there is none.
func at(doc any, names ...string) map[string]any {
	object, _ := doc.(map[string]any)
	for _, name := range names {
		object, _ = object[name].(map[string]any)
	}
	return object
}

// eachReference calls f with each $ref in a document.
func eachReference(doc any, f func(to string)) {
	switch v := doc.(type) {
	case map[string]any:
		for name, value := range v {
			if to, ok := value.(string); ok && name == "$ref" {
				f(to)
			}
			eachReference(value, f)
		}
	case []any:
		for _, value := range v {
			eachReference(value, f)
		}
	}
}
