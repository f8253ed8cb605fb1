package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// namespaceInput returns the namespace of a file or, by its name, an existing or a new one with another description.
func (e *env) namespaceInput(ctx context.Context, input string, isJSON, described bool, description string) (*structs.Namespace, error) {
	if input == "-" {
		return readNamespace(e.in, input, isJSON)
	}
	if !described {
		_, err := os.Stat(input)
		switch {
		case err == nil:
			return readNamespace(e.in, input, isJSON)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		case isJSON || !structs.ValidNamespace(input):
			return nil, fmt.Errorf("%s: there is no such file, and no namespace may have that name", input)
		}
	}
	n, _, err := e.client.Namespaces().Info(ctx, input, e.query())
	if err != nil && !api.IsNotFound(err) {
		return nil, err
	}
	if err != nil || n == nil {
		n = &structs.Namespace{Name: input}
	}
	if described {
		n.Description = description
	}
	return n, n.Validate()
}

// readNamespace reads the namespace of a file; "-" is standard input.
func readNamespace(stdin io.Reader, path string, isJSON bool) (*structs.Namespace, error) {
	src, err := readSpecFile(stdin, path, "namespace", "namespaces")
	if err != nil {
		return nil, err
	}
	read := namespaceOfHCL
	if isJSON {
		read = namespaceOfJSON
	}
	n, err := read(path, src)
	if err != nil {
		return nil, otherLanguage(path, src, isJSON, err)
	}
	if err := n.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// namespaceOfHCL reads a file of which the top level is the namespace.
func namespaceOfHCL(path string, src []byte) (*structs.Namespace, error) {
	f, problems := hclfile.Parse(path, src, hclfile.Limits{FileBytes: maxSpecFile})
	if len(problems) > 0 {
		return nil, problems.Err()
	}
	scope, blocks, problems := hclfile.NewScope(f, hclfile.Options{})
	if len(problems) > 0 {
		return nil, problems.Err()
	}
	body := *f.Body
	body.Blocks = blocks
	d, n := hclfile.NewDecoder(f, scope), &structs.Namespace{}
	d.Block(&hclsyntax.Block{Type: "namespace", Body: &body}, n, "")
	return n, d.Problems().Err()
}

// namespaceOfJSON reads a namespace as the API has it.
func namespaceOfJSON(path string, src []byte) (*structs.Namespace, error) {
	n := &structs.Namespace{}
	known := jsonKeys(reflect.TypeFor[structs.Namespace](), reflect.TypeFor[structs.NamespaceCapabilities](),
		reflect.TypeFor[structs.NamespaceNodePoolConfiguration]())
	return n, decodeStrictJSON(path, src, n, known)
}
