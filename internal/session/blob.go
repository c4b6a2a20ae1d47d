package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/abhed/abhed/internal/event"
)

// maxBlob bounds what is read of one blob, in bytes.
const maxBlob = 64 << 20

// blobDir returns where the blobs of the record at path lie.
func blobDir(path string) string { return strings.TrimSuffix(path, fileSuffix) + ".blobs" }

// writeBlob puts b beside the record at path, durably, before an event refers to
// it. A blob of the same name is the same text.
func (s *Store) writeBlob(path string, b event.Blob) error {
	dir := blobDir(path)
	name := filepath.Join(dir, b.SHA256)
	if _, err := readBlob(dir, b.SHA256, int64(len(b.Text))); err == nil {
		return nil
	}
	if err := privateDir(dir); err != nil {
		return fmt.Errorf("the folder for long texts can't be made: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return fmt.Errorf("a long text can't be stored: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(b.Text)
	if err == nil && !s.opts.NoSync {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err == nil {
		err = errors.Join(s.syncDir(dir), s.syncDir(filepath.Dir(dir)))
	}
	if err != nil {
		return fmt.Errorf("a long text can't be stored: %w", err)
	}
	return nil
}

// readBlob returns a blob if it is what its name says. sum is 64 hexadecimal
// digits.
func readBlob(dir, sum string, size int64) (string, error) {
	path := filepath.Join(dir, sum)
	info, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("the stored text is missing: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() != size || size > maxBlob {
		return "", fmt.Errorf("the stored text %s has %d bytes (%s), expected a regular file of %d, %d at most", path, info.Size(), info.Mode(), size, maxBlob)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the stored text can't be read: %w", err)
	}
	if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != sum {
		return "", fmt.Errorf("the stored text %s was changed: its content has the hash %s", path, hex.EncodeToString(got[:]))
	}
	return string(text), nil
}
