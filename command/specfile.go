package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// maxSpecFile bounds a file of virtual clusters or projects, in bytes.
const maxSpecFile = 4 << 20

// readSpecFile reads the file of a command that applies such files; "-" is standard input. noun is the command's, as in `nomadish NOUN init`,
// what describes the content.
func readSpecFile(stdin io.Reader, path, noun, what string) ([]byte, error) {
	from := stdin
	if path != "-" {
		f, err := os.Open(path) // the user names the file
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: no such file (`nomadish %s init` writes an example)", path, noun)
		}
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // read only
		from = f
	}
	src, err := io.ReadAll(io.LimitReader(from, maxSpecFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(src) > maxSpecFile {
		return nil, fmt.Errorf("%s: over %d bytes: a file of %s may have at most that many", path, maxSpecFile, what)
	}
	return src, nil
}

// specBlocks is what stands at the top of a file: blocks, each with a name.
type specBlocks struct {
	types   []string // of blocks, as ["license"]
	unnamed string   // the error about a block without a name; its verbs %[1]s are the type
	none    string   // the error about a file without a block
}

// read returns the blocks of a file, of which there is at least one, and the decoder of what stands in them.
func (s specBlocks) read(path string, src []byte) ([]*hclsyntax.Block, *hclfile.Decoder, error) {
	file, problems := hclfile.Parse(path, src, hclfile.Limits{FileBytes: maxSpecFile})
	if len(problems) > 0 {
		return nil, nil, problems.Err()
	}
	scope, blocks, problems := hclfile.NewScope(file, hclfile.Options{})
	only := "at the top of the file stand only blocks " + strings.Join(s.types, " and ")
	for _, a := range file.Attributes() {
		problems = append(problems, hclfile.At(a.NameRange, "unknown attribute %q: %s", a.Name, only))
	}
	for _, b := range blocks {
		switch {
		case !slices.Contains(s.types, b.Type):
			problems = append(problems, hclfile.At(b.DefRange(), "unknown block %q: %s", b.Type, only))
		case len(b.Labels) != 1 || b.Labels[0] == "":
			problems = append(problems, hclfile.At(b.DefRange(), s.unnamed, b.Type))
		}
	}
	if len(blocks) == 0 && len(problems) == 0 {
		problems = append(problems, hclfile.Problem{File: path, Text: s.none})
	}
	return blocks, hclfile.NewDecoder(file, scope), problems.Err()
}

// checkEach returns the first error about what a file states, in its place: none may be invalid, and no two have one name. what describes one.
func checkEach[T interface{ Validate() error }](all []T, what string, name func(T) string, placed func(T, error) error) error {
	seen := map[string]bool{}
	for _, it := range all {
		if err := it.Validate(); err != nil {
			return placed(it, err)
		}
		if seen[name(it)] {
			return placed(it, fmt.Errorf("the file states the %s %q twice", what, name(it)))
		}
		seen[name(it)] = true
	}
	return nil
}

// readJSONList reads one value, or a list of some, with none of them null. what describes one.
func readJSONList[T any](path string, src []byte, what string, known []string) ([]*T, error) {
	list := []*T{new(T)}
	var into any = list[0]
	if isJSONList(src) {
		into = &list
	}
	if err := decodeStrictJSON(path, src, into, known); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: the list is empty", path)
	}
	if slices.Contains(list, nil) {
		return nil, fmt.Errorf("%s: a %s of the list is null", path, what)
	}
	return list, nil
}

// isJSONList reports whether a text is a JSON list, if it is JSON at all.
func isJSONList(src []byte) bool {
	text := bytes.TrimSpace(src)
	return len(text) > 0 && text[0] == '['
}

// decodeStrictJSON decodes a file of one JSON value, without keys that its types do not have. Errors state the line; known are the keys that
// one about an unknown key proposes.
func decodeStrictJSON(path string, src []byte, into any, known []string) error {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%s:%d: bad JSON: %w", path, lineOf(src, dec, err), nearestKey(err, known))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s:%d: something follows the JSON value", path, lineOf(src, dec, nil))
	}
	return nil
}

// lineOf returns the line on which an error of a decoder lies, or else the one on which it stopped.
func lineOf(src []byte, dec *json.Decoder, err error) int {
	at := dec.InputOffset()
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	}
	return 1 + bytes.Count(src[:min(int64(len(src)), at)], []byte("\n"))
}

// jsonKeys returns the keys of types, each once.
func jsonKeys(types ...reflect.Type) (keys []string) {
	for _, t := range types {
		for _, f := range structs.Fields(t) {
			if f.Kind != structs.FieldHidden && !slices.Contains(keys, f.Name) {
				keys = append(keys, f.Name)
			}
		}
	}
	return keys
}

// nearestKey adds to an error that names an unknown key the one that was most likely meant.
func nearestKey(err error, known []string) error {
	quoted, found := strings.CutPrefix(err.Error(), "json: unknown field ") // encoding/json has no type for it
	if !found {
		return err
	}
	key, unquoted := strconv.Unquote(quoted)
	if unquoted != nil {
		return err
	}
	if near := structs.Nearest(key, known); near != "" {
		return fmt.Errorf("unknown key %q; did you mean %q?", key, near)
	}
	return fmt.Errorf("unknown key %q; known are %s", key, strings.Join(known, ", "))
}
