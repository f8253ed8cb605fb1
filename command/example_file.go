package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/nomadish/nomadish/command/ui"
)

// exampleDetails is what the help of the commands says that write an example file.
const exampleDetails = "\"-\" writes to standard output. A file that is there already is not overwritten."

// initFile is an example of what, written to path unless the command line names another file.
type initFile struct{ path, text, what string }

// write writes the example to the file that the command line names. "-" is standard output, as it is standard
// input for the commands that read such files; there the example stands alone, so that it can be piped into them.
func (x initFile) write(e *env, args []string) int {
	path := x.path
	if len(args) > 1 {
		return e.usage("at most one file name is taken, %d given", len(args))
	}
	if len(args) == 1 {
		path = args[0]
	}
	if path == "-" {
		if _, err := io.WriteString(ui.Raw(e.out), x.text); err != nil {
			return e.fail(err)
		}
		return exitDone
	}
	if err := createFile(path, x.text); err != nil {
		return e.fail(err)
	}
	e.printf("Example %s written to %s\n", x.what, path)
	return exitDone
}

// initBoth is the command that writes an example of what, in HCL or in JSON, to the file base with the language's ending.
func initBoth(synopsis, example, what, base, inHCL, inJSON string, ignored ...string) spec {
	return spec{
		synopsis: synopsis,
		usage:    "[<file>]", example: example, local: true,
		details: exampleDetails,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			asJSON := fs.Bool("json", false, "write JSON, not HCL")
			for _, name := range ignored {
				fs.Bool(name, false, "accepted, for scripts made for Nomad")
			}
			return func(_ context.Context, e *env, args []string) int {
				x := initFile{base + ".hcl", inHCL, what}
				if *asJSON {
					x = initFile{base + ".json", inJSON, what}
				}
				return x.write(e, args)
			}
		},
	}
}

// createFile writes a file that must not be there yet.
func createFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) // a file for its owner to share
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w (it is not overwritten)", err)
	}
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.Close()
}
