package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// licenseFile is what a file states about licenses.
type licenseFile struct {
	path     string
	licenses []*structs.License
	ranges   *hclfile.Decoder // where; nil: the file is JSON
}

// readLicenses reads the licenses of a file, in which there is at least one; "-" is standard input.
func readLicenses(stdin io.Reader, path string, isJSON bool) (*licenseFile, error) {
	if path != "-" {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: no such file; state -count to apply the license of that name without one", path)
		}
	}
	src, err := readSpecFile(stdin, path, "license", "licenses")
	if err != nil {
		return nil, err
	}
	f := &licenseFile{path: path}
	read := f.readHCL
	if isJSON {
		read = f.readJSON
	}
	if err := read(src); err != nil {
		return nil, otherLanguage(path, src, isJSON, err)
	}
	return f, checkEach(f.licenses, "license", func(l *structs.License) string { return l.Name }, f.placed)
}

// readHCL reads license "NAME" { … }, the only block of a file.
func (f *licenseFile) readHCL(src []byte) error {
	blocks, decoder, err := specBlocks{
		types:   []string{"license"},
		unnamed: `a %[1]s needs a name: write %[1]s "NAME" { … }`,
		none:    `the file has no license: write license "NAME" { … }`,
	}.read(f.path, src)
	if err != nil {
		return err
	}
	var problems hclfile.Problems
	for _, b := range blocks {
		if b.Body.Attributes["count"] == nil {
			problems = append(problems, hclfile.At(b.DefRange(), "license %q: count is missing: state how many there are", b.Labels[0]))
		}
	}
	if len(problems) > 0 {
		return problems.Err()
	}
	f.ranges = decoder
	for _, b := range blocks {
		l := &structs.License{}
		f.ranges.Block(b, l, licensePath(b.Labels[0]))
		l.Name = b.Labels[0]
		f.licenses = append(f.licenses, l)
	}
	return f.ranges.Problems().Err()
}

func licensePath(name string) string { return structs.ChildPath("", "license", name, -1) }

// readJSON reads a license as the API has it, or a list of some.
func (f *licenseFile) readJSON(src []byte) (err error) {
	f.licenses, err = readJSONList[structs.License](f.path, src, "license", jsonKeys(reflect.TypeFor[structs.License]()))
	return err
}

// placed puts the place in the file before an error about a license, as [structs.License.Validate] writes it.
func (f *licenseFile) placed(l *structs.License, err error) error {
	if f.ranges == nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	_, about, _ := strings.Cut(err.Error(), strconv.Quote(l.Name)+": ")
	field, _, _ := strings.Cut(about, ": ")
	rng, ok := f.ranges.Range(licensePath(l.Name), field)
	if !ok {
		rng, ok = f.ranges.Range(licensePath(l.Name), "")
	}
	if !ok {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return fmt.Errorf("%s:%d:%d: %w", f.path, rng.Start.Line, rng.Start.Column, err)
}
