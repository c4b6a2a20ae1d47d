package install

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// Seen is what held at an installation, for the doctor to compare with.
type Seen struct {
	// Call is how the lines start ahp; host, event and limit differ from line to line.
	Call Call `json:"call"`
	// BinarySHA256 is of the program that they start, "" if it could not be read.
	BinarySHA256 string `json:"binarySha256,omitempty"`
	// Registrations are those that were in force.
	Registrations []Sum `json:"registrations,omitempty"`
}

// Sum is which content of a file was there.
type Sum struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Record is what is remembered of an installation.
type Record struct {
	// File is where that is.
	File string
	// Files are those that were written.
	Files []string
	// Seen is nil if an older ahp made the installation.
	Seen *Seen
}

// ReadRecord returns what is remembered of a host's installation; nil if there was none.
func ReadRecord(host string, o Options) (*Record, error) {
	dir := recordDir(host, o)
	m, err := readManifest(dir)
	if m == nil || err != nil {
		return nil, err
	}
	r := &Record{File: dir + "/" + manifestName, Seen: m.Seen}
	for _, f := range m.Files {
		r.Files = append(r.Files, f.Path)
	}
	return r, nil
}

// SumFile returns the SHA-256 of a file's content.
func SumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
