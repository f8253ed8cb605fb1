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
	"time"

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
				var key [gossipKeySize]byte
				_, _ = rand.Read(key[:]) // never fails since Go 1.24
				e.printf("%s\n", base64.StdEncoding.EncodeToString(key[:]))
				return exitDone
			}
		},
	}
}

func gossipKeyringInstall() spec {
	return gossipKeyringChange(structs.KeyInstall, "Installing new gossip encryption key...", "Install a new key on all servers, without using it yet",
		"The servers then understand gossip that is encrypted with it. \"operator gossip keyring use\" is the\nnext step, once all have it.")
}

func gossipKeyringUse() spec {
	return gossipKeyringChange(structs.KeyUse, "Changing primary gossip encryption key...", "Encrypt gossip with another installed key",
		"It is refused while a server or, with -clients, a client lacks the key, or a server has failed. The key before it stays installed until it is\nremoved.")
}

func gossipKeyringRemove() spec {
	return gossipKeyringChange(structs.KeyRemove, "Removing gossip encryption key...", "Remove a key from all servers",
		"It is refused for the key in use, and while a server has failed. One that left, and knows that key alone,\ncannot come back with it: "+
			"remove server/serf.keyring from its data_dir and put the new key into its configuration.")
}

// gossipKeyringChange is a command that does something with one key.
func gossipKeyringChange(op, doing, synopsis, details string) spec {
	return spec{
		synopsis: synopsis,
		takes:    "key", usage: "KEY", example: "'T6HRv0Wc1ruHkNqcLlU5bWqOwbzrfZJ+9wQYkzyDd2A='",
		details: details + "\n\nKEY is in base64; \"-\" reads it from the input, so that no list of processes shows it. Each server\n" +
			"keeps its keys in server/serf.keyring of its data_dir; \"encrypt\" in the configuration is only the first one. Those\n" +
			"that did not do it are named; to do it again is safe. With -clients servers keep them in server/clients.keyring and\n" +
			"clients in client/gossip.keyring.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			clients := clientsFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				key, err := e.key(args[0])
				if err != nil {
					return e.fail(err)
				}
				e.printf("==> %s\n", doing)
				reply, err := e.keyring(ctx, op, key, *clients)
				if err != nil {
					return e.fail(err)
				}
				if !*clients {
					e.printf("Done by %d members\n", reply.NumNodes)
					return exitDone
				}
				e.printf("Done by %d servers\n", reply.NumNodes-reply.Clients)
				return e.clientsFollow(ctx)
			}
		},
	}
}

const (
	// keyringQuiet is how long members are waited for silently, keyringRepeat is the time between two lines.
	keyringQuiet  = 2 * time.Second
	keyringRepeat = 5 * time.Second
	// clientsLook is how often it is looked how many clients have followed, clientsWait how long.
	clientsLook = 500 * time.Millisecond
	clientsWait = 30 * time.Second
)

// keyring does something with keys. It prints a line now and then while it waits.
func (e *env) keyring(ctx context.Context, op, key string, clients bool) (*structs.KeyringReply, error) {
	var reply *structs.KeyringReply
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		reply, err = e.client.Agent().Keyring(ctx, op, key, pool(clients))
	}()
	begun, wait := time.Now(), keyringQuiet
	for {
		select {
		case <-done:
			if err == nil {
				for _, name := range slices.Sorted(maps.Keys(reply.Messages)) {
					e.eprintf("Warning: %s: %s\n", name, reply.Messages[name])
				}
			}
			return reply, err
		case <-time.After(wait):
			e.eprintf("    %.0f s: waiting for servers to answer; those that do not will be named\n", time.Since(begun).Seconds())
			wait = keyringRepeat
		}
	}
}

// clientsFollow waits for the clients, which have their keys from their heartbeats, to do what the servers have done.
func (e *env) clientsFollow(ctx context.Context) int {
	begun, reportAt := time.Now(), keyringQuiet
	for {
		reply, err := e.client.Agent().Keyring(ctx, structs.KeyList, "", structs.PoolClients)
		if err != nil {
			return e.fail(fmt.Errorf("the servers have done it; what the clients have is not known: %w", err))
		}
		waited := time.Since(begun)
		if reply.Behind == 0 && reply.Messages["clients"] == "" {
			e.printf("Done by %d clients\n", reply.Clients)
			return exitDone
		}
		if waited >= clientsWait {
			e.eprintf("Warning: %d of %d clients have not confirmed yet that they have done it: they confirm it with their next heartbeats (`operator gossip keyring list -clients`)\n",
				reply.Behind, reply.Clients)
			return exitDone
		}
		if waited >= reportAt {
			e.eprintf("    %.0f s: waiting for %d of %d clients, which follow with their next heartbeats\n", waited.Seconds(), reply.Behind, reply.Clients)
			reportAt += keyringRepeat
		}
		select {
		case <-ctx.Done():
			return e.fail(ctx.Err())
		case <-time.After(clientsLook):
		}
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
		details: "The keys are secrets. Members counts the members that have a key, Primary those that encrypt with it: servers, and\n" +
			"with -clients the clients that are ready, as far as they have confirmed it with a heartbeat.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			clients := clientsFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				reply, err := e.keyring(ctx, structs.KeyList, "", *clients)
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
