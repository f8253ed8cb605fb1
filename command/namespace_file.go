package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// maxNamespaceFile bounds a namespace's file, in bytes.
const maxNamespaceFile = 1 << 20

// namespaceInput returns the namespace of a file or, by its name, an existing or a new one with another description.
func (e *env) namespaceInput(ctx context.Context, input string, isJSON, described bool, description string) (*structs.Namespace, error) {
	if input == "-" {
		return readNamespace(e.in, input, isJSON)
	}
	if !described {
		f, err := os.Open(input) // the user names the file
		switch {
		case err == nil:
			defer f.Close() //nolint:errcheck // read only
			return readNamespace(f, input, isJSON)
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

// readNamespace reads the namespace of a file.
func readNamespace(from io.Reader, path string, isJSON bool) (*structs.Namespace, error) {
	src, err := io.ReadAll(io.LimitReader(from, maxNamespaceFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(src) > maxNamespaceFile {
		return nil, fmt.Errorf("%s: over %d bytes: the file of a namespace may have at most that many", path, maxNamespaceFile)
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
	f, problems := hclfile.Parse(path, src, hclfile.Limits{FileBytes: maxNamespaceFile})
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
	n, dec := &structs.Namespace{}, json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	if err := dec.Decode(n); err != nil {
		return nil, fmt.Errorf("%s: bad JSON: %w", path, err)
	}
	return n, nil
}
