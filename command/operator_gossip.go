package command

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"flag"
)

// gossipKeySize is the longest key that the gossip protocol takes, in bytes: AES-256.
const gossipKeySize = 32

func gossipKeyringGenerate() spec {
	return spec{
		synopsis: "Print a new key for the encryption of gossip",
		usage:    "", example: "", local: true,
		details: `The key is 32 random bytes in base64, for "encrypt" in the server block. All servers have
the same key; clients gossip among themselves with another.`,
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
