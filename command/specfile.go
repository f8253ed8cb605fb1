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
