package chain

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Head is where a log stands: the name of the log (a session's id), the number
// and the hash of its last line.
type Head struct {
	Log  string
	Seq  int64
	Hash string
}

// signed returns the bytes that a signature of h is over. The first line keeps a
// signature for one purpose from serving another.
func (h Head) signed() []byte {
	return []byte("abhed chain head v1\n" + strconv.Quote(h.Log) + "\n" + strconv.FormatInt(h.Seq, 10) + "\n" + h.Hash + "\n")
}

// PublicKey is what a signature is verified with.
type PublicKey = ed25519.PublicKey

// KeyID returns the name of a public key: the SHA-256 of its 32 bytes in hex.
func KeyID(k PublicKey) string {
	sum := sha256.Sum256(k)
	return hex.EncodeToString(sum[:])
}

// VerifyHead reports whether signature, in base64, is k's over h.
func VerifyHead(k PublicKey, h Head, signature string) bool {
	// The decoder passes over line breaks; the length leaves room for none.
	if len(signature) != base64.StdEncoding.EncodedLen(ed25519.SignatureSize) {
		return false
	}
	sig, err := base64.StdEncoding.Strict().DecodeString(signature)
	return err == nil && len(k) == ed25519.PublicKeySize && ed25519.Verify(k, h.signed(), sig)
}

// Key is the signing key of an installation. It is immutable and safe for
// concurrent use.
type Key struct {
	private ed25519.PrivateKey
	id      string
}

// ID returns the key's name, as KeyID.
func (k *Key) ID() string { return k.id }

// Public returns the public half.
func (k *Key) Public() PublicKey { return k.private.Public().(ed25519.PublicKey) }

// Sign returns the signature over h in base64.
func (k *Key) Sign(h Head) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, h.signed()))
}

const pemType = "PRIVATE KEY"

// LoadKey reads the Ed25519 key (PEM, PKCS #8) in the file at path. If there is
// none it makes one: the file appears at once and whole with mode 0600, and of
// several processes that start together all get the same key. A file that others
// can read is refused: its signatures would prove nothing.
func LoadKey(path string) (*Key, error) {
	k, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := makeKey(path); err != nil {
		return nil, fmt.Errorf("the signing key %s can't be made: %w", path, err)
	}
	return readKey(path)
}

func readKey(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("the signing key can't be read: %w", err)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return nil, fmt.Errorf("the signing key %s has mode %04o, so others may know it: expected 0600; if nobody else could read it, run chmod 600 on it, else move it away and a new one is made", path, perm)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the signing key can't be read: %w", err)
	}
	bad := func(why string) error {
		return fmt.Errorf("the signing key %s is damaged (%s): expected a PEM block %q with an Ed25519 key; restore it, or move it away and a new one is made", path, why, pemType)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return nil, bad("no such block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, bad("the block can't be parsed")
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, bad(fmt.Sprintf("it is a %T", parsed))
	}
	return &Key{private: private, id: KeyID(private.Public().(ed25519.PublicKey))}, nil
}

// makeKey writes a new key beside path and links it there, which fails if
// somebody else was faster; then theirs counts.
func makeKey(path string) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".key-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}))
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// A key that is lost with the power would leave its records unsigned.
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
