package command

import (
	"context"
	"flag"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
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
	b := build{Version: semantic(), GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

// nextVersion is the version that builds lead to which state none themselves.
const nextVersion = "0.1.0-dev"

// semanticVersion matches the versions that a release states.
var semanticVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`)
})

// semantic returns the build's semantic version, without a v. A build of a commit is one of nextVersion.
func semantic() string {
	switch {
	case semanticVersion().MatchString(Version):
		return strings.TrimPrefix(Version, "v")
	case Version == "dev" || Version == "":
		return nextVersion
	}
	return nextVersion + "+" + Version
}

// VersionString is what -version prints, and the first line of `version`. Programs parse it: a name, a space, and a
// semantic version after a v.
func VersionString() string { return "Nomadish v" + semantic() }

func version() spec {
	return spec{
		synopsis: "Print the version", example: "-json", local: true, output: true,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return withoutArgs(func(_ context.Context, e *env) int {
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
			})
		},
	}
}
