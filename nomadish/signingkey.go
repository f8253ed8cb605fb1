package nomadish

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// signingKeyRetry is the time between tries to give a cluster its first signing key. The entry is refused until all
// servers of the region can read it.
const signingKeyRetry = 30 * time.Second

// makeSigningKey makes the cluster's signing key if it has none. It ends then, or with ctx. A cluster that is not new
// has none because it is being upgraded, or has just been set back to an earlier state: it gets one a while later.
func (l *leaderParts) makeSigningKey(ctx context.Context, isNew bool) {
	retry := time.NewTicker(signingKeyRetry)
	defer retry.Stop()
	for now := isNew; len(l.store.Snapshot().SigningKeys(nil)) == 0; now = true {
		if now {
			if err := l.tryMakeSigningKey(ctx); err != nil && ctx.Err() == nil {
				l.logger.Debug("the cluster has no signing key yet", "error", err)
			} else if err == nil {
				return
			}
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return
		}
	}
}

func (l *leaderParts) tryMakeSigningKey(ctx context.Context) error {
	key, err := newSigningKey(NewID())
	if err != nil {
		return err
	}
	_, err = l.raft.Apply(ctx, structs.LogSigningKey, &structs.SigningKeyEntry{Key: *key, First: true, Time: time.Now().UnixNano()})
	return err
}

// newSigningKey returns a new ECDSA key of the curve P-256: quickly made, and known to all that verify tokens.
func newSigningKey(id string) (*structs.SigningKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a signing key: %w", err)
	}
	point, err := key.PublicKey.Bytes() // 4, X and Y of 32 bytes each
	if err != nil {
		return nil, fmt.Errorf("encode a public key: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString
	return &structs.SigningKey{KeyID: id, PrivateKey: private, Public: structs.JSONWebKey{
		KeyType: "EC", KeyID: id, Use: "sig", Algorithm: structs.AlgorithmES256, Curve: "P-256", X: text(point[1:33]), Y: text(point[33:]),
	}}, nil
}
