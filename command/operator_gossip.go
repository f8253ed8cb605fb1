package command

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// gossipKeySize is the longest key that the gossip protocol takes, in bytes: AES-256.
const gossipKeySize = 32

func gossipKeyringGenerate() spec {
	return spec{
		synopsis: "Print a new key for the encryption of gossip",
		usage:    "", example: "", local: true,
		details: `The key is 32 random bytes in base64, for "encrypt" in the server block. All servers have
the same key; clients gossip among themselves with another. "operator gossip keyring install"
brings a new one to servers that run.`,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(_ context.Context, e *env, args []string) int {
				if len(args) > 0 {
					return e.usage("no arguments are taken, %d given", len(args))
				}
				var key [gossipKeySize]byte
				_, _ = rand.Read(key[:]) // never fails since Go 1.24
				e.printf("%s\n", base64.StdEncoding.EncodeToString(key[:]))
				return exitDone
			}
		},
	}
}

func gossipKeyringInstall() spec {
	return gossipKeyringChange(structs.KeyInstall, "Installing new gossip encryption key...", "Bring a new key to all servers, without using it yet",
		"The servers then understand gossip that is encrypted with it. \"operator gossip keyring use\" is the\nnext step, once all have it.")
}

func gossipKeyringUse() spec {
	return gossipKeyringChange(structs.KeyUse, "Changing primary gossip encryption key...", "Encrypt gossip with another of the keys that are installed",
		"It is refused while a server lacks the key, or has failed. The key before it stays installed until it is\nremoved.")
}

func gossipKeyringRemove() spec {
	return gossipKeyringChange(structs.KeyRemove, "Removing gossip encryption key...", "Take a key off all servers",
		"It is refused for the key in use, and while a server has failed. One that left, and knows that key alone,\ncannot come back with it: "+
			"remove server/serf.keyring from its data_dir and put the new key into its configuration.")
}

// gossipKeyringChange is a command that does something with one key.
func gossipKeyringChange(op, doing, synopsis, details string) spec {
	return spec{
		synopsis: synopsis,
		usage:    "KEY", example: "'T6HRv0Wc1ruHkNqcLlU5bWqOwbzrfZJ+9wQYkzyDd2A='",
		details: details + "\n\nKEY is in base64; \"-\" reads it from the input, so that no list of processes shows it. Each server\n" +
			"keeps its keys in server/serf.keyring of its data_dir; \"encrypt\" in the configuration is only the first one. Those\n" +
			"that did not do it are named; to do it again is safe.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			clients := clientsFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) != 1 {
					return e.usage("one key is needed, %d given", len(args))
				}
				key, err := e.key(args[0])
				if err != nil {
					return e.fail(err)
				}
				e.printf("==> %s\n", doing)
				reply, err := e.client.Keyring(ctx, op, key, pool(*clients))
				if err != nil {
					return e.fail(err)
				}
				for _, name := range slices.Sorted(maps.Keys(reply.Messages)) {
					_, _ = fmt.Fprintf(e.err, "Warning: %s: %s\n", name, reply.Messages[name])
				}
				e.printf("Done by %d members\n", reply.NumNodes)
				return exitDone
			}
		},
	}
}

func clientsFlag(fs *flag.FlagSet) *bool {
	return fs.Bool("clients", false, "the keys of the clients' gossip in place of the servers'")
}

func pool(clients bool) string {
	if clients {
		return structs.PoolClients
	}
	return ""
}

// key is a key as it was given, or the first line of the input.
func (e *env) key(arg string) (string, error) {
	if arg != "-" {
		return strings.TrimSpace(arg), nil
	}
	line, err := bufio.NewReader(io.LimitReader(e.in, 1024)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the key: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", errors.New("the input is empty: the key was expected there")
	}
	return line, nil
}

func gossipKeyringList() spec {
	return spec{
		synopsis: "Show the keys that gossip is encrypted with",
		usage:    "", example: "", output: true,
		details: "The keys are secrets. Members counts the servers that have a key, Primary those that encrypt with it.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			clients := clientsFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) > 0 {
					return e.usage("no arguments are taken, %d given", len(args))
				}
				reply, err := e.client.Keyring(ctx, structs.KeyList, "", pool(*clients))
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(reply); done {
					return code
				}
				e.printf("==> Gathering installed encryption keys...\n")
				rows := [][]string{{"Key", "Members", "Primary"}}
				keys := slices.SortedFunc(maps.Keys(reply.Keys), func(a, b string) int {
					return cmp.Or(cmp.Compare(reply.PrimaryKeys[b], reply.PrimaryKeys[a]), cmp.Compare(a, b))
				})
				for _, key := range keys {
					rows = append(rows, []string{
						key, fmt.Sprintf("%d/%d", reply.Keys[key], reply.NumNodes), fmt.Sprintf("%d/%d", reply.PrimaryKeys[key], reply.NumNodes),
					})
				}
				ui.Table(e.out, rows)
				return exitDone
			}
		},
	}
}
