package structs

// AlgorithmES256 is ECDSA with the curve P-256 and SHA-256 (RFC 7518).
const AlgorithmES256 = "ES256"

// SigningKey is a key with which the region's servers sign. The first one is made when a cluster is formed. It must not
// leave the servers: what others may see of it is Public.
type SigningKey struct {
	KeyID string
	// PrivateKey is in PKCS #8 (DER).
	PrivateKey  []byte
	Public      JSONWebKey
	CreateTime  int64 // Unix nanoseconds
	CreateIndex uint64
}

// JSONWebKey is the public part of an ECDSA key (RFC 7517); the names are the RFC's.
type JSONWebKey struct {
	KeyType   string `json:"kty"`
	KeyID     string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	Curve     string `json:"crv"`
	X         string `json:"x"` // base64url without padding, as Y
	Y         string `json:"y"`
}

// JSONWebKeySet is what /.well-known/jwks.json answers.
type JSONWebKeySet struct {
	Keys []JSONWebKey `json:"keys"`
}

// SigningKeysReply answers which keys the servers sign with.
type SigningKeysReply struct {
	Keys []JSONWebKey
	QueryMeta
}
