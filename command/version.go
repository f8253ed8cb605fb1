package command

import (
	"context"
	"flag"
	"runtime"
	"runtime/debug"
)

// Version is set by the build (-ldflags -X).
var Version = "dev"

// build describes the binary.
type build struct {
	Version   string
	Revision  string
	BuildDate string
	GoVersion string
	Platform  string
}

func thisBuild() build {
	b := build{Version: Version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.BuildDate = s.Value
		}
	}
	return b
}

// VersionString is what -version prints.
func VersionString() string { return "Nomadish " + Version }

func version() spec {
	return spec{
		synopsis: "Print what this binary is", example: "-json", local: true, output: true,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(_ context.Context, e *env, _ []string) int {
				b := thisBuild()
				if done, code := e.formatted(b); done {
					return code
				}
				e.printf("%s\n", VersionString())
				if b.BuildDate != "" {
					e.printf("BuildDate %s\n", b.BuildDate)
				}
				if b.Revision != "" {
					e.printf("Revision %s\n", b.Revision)
				}
				e.printf("%s %s\n", b.GoVersion, b.Platform)
				return exitDone
			}
		},
	}
}
