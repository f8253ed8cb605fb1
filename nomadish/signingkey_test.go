package nomadish

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// TestSigningKey: a new cluster has one key to sign with. What a server answers of it verifies what the private key
// signs, and holds nothing of that key.
func TestSigningKey(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, func(int, *Config) {})
	s := f.all[0]
	var reply structs.SigningKeysReply
	within(t, time.Minute, "a key", func(ctx context.Context) error {
		reply = structs.SigningKeysReply{}
		if err := s.Call(ctx, wire.MethodSigningKeys, &structs.EmptyRequest{}, &reply); err != nil {
			return err
		}
		if len(reply.Keys) == 0 {
			return errors.New("no key yet")
		}
		return nil
	})
	all := s.store.Snapshot().SigningKeys(nil)
	if len(all) != 1 || len(reply.Keys) != 1 || reply.Keys[0] != all[0].Public || all[0].Public.KeyID != all[0].KeyID {
		t.Fatalf("answered %+v of %d keys", reply.Keys, len(all))
	}
	parsed, err := x509.ParsePKCS8PrivateKey(all[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("claims"))
	signature, err := ecdsa.SignASN1(nil, parsed.(*ecdsa.PrivateKey), sum[:])
	if err != nil {
		t.Fatal(err)
	}
	point := []byte{4}
	for _, text := range []string{reply.Keys[0].X, reply.Keys[0].Y} {
		coordinate, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		point = append(point, coordinate...)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	if !ecdsa.VerifyASN1(public, sum[:], signature) {
		t.Error("the public key does not verify what the private key signed")
	}
}
