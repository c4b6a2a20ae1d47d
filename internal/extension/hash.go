package extension

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/abhed/abhed/internal/proc"
)

// maxHashed is the size in bytes of the largest file that is hashed whole.
const maxHashed = 256 << 20

// hash identifies the program in the record: the SHA-256, in lower-case hex, over
// the command and each argument with the bytes of the file that it names, if any.
// It is taken at start, and doesn't prove what the process then did. digests
// remembers the files that were read for other extensions.
func (c *Config) hash(digests map[string][]byte) string {
	h := sha256.New()
	field := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	file := func(path string) {
		sum, known := digests[path]
		if !known {
			sum = fileDigest(path)
			digests[path] = sum
		}
		field(sum)
	}
	field([]byte(c.Command))
	file(c.program())
	for _, arg := range c.Args {
		field([]byte(arg))
		file(c.path(arg))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// program returns where the command lies, as proc.Start finds it.
func (c *Config) program() string {
	if strings.ContainsRune(c.Command, '/') {
		return c.path(c.Command)
	}
	for _, entry := range proc.Environ(c.Env) {
		list, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			file := filepath.Join(dir, c.Command)
			if info, err := os.Stat(file); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return file
			}
		}
	}
	return ""
}

func (c *Config) path(name string) string {
	if filepath.IsAbs(name) || c.Dir == "" {
		return name
	}
	return filepath.Join(c.Dir, name)
}

// fileDigest returns the SHA-256 of a regular file, nil if there is no such file
// or it can't be read whole.
func fileDigest(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxHashed {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxHashed)); err != nil {
		return nil
	}
	return h.Sum(nil)
}
