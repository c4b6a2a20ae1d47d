package httptransport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/abhed/abhed/ahp"
)

const (
	octets = "application/octet-stream"
	// maxReceiptBytes bounds the body that confirms an upload.
	maxReceiptBytes = 64 << 10
	// maxUploadTimeout stands for every longer timeoutMs: the clock has a bound.
	maxUploadTimeout = 10 * 365 * 24 * time.Hour
)

// hashHeader is spelled as the protocol does; header names have no case.
const hashHeader = "AHP-Content-SHA256"

// Uploader sends the bytes of attachments to the receiver of one subscription
// (§19). Its methods may be called from any goroutine.
type Uploader struct {
	link *Transport
	cfg  ahp.Upload
}

// NewUploader returns an uploader to the endpoint of u. It authenticates by u.Auth
// alone: without it, nothing is sent to prove who the harness is, whatever the
// events of the same backend are sent with, and opts.Trust isn't used. It refuses
// what New refuses.
func NewUploader(u *ahp.Upload, opts Options) (*Uploader, error) {
	if u.TimeoutMs < 1 || u.MaxBytes < 0 {
		return nil, errors.New("upload: timeoutMs must be 1 or more, and maxBytes 0 or more")
	}
	opts.Trust = nil
	link, err := newTransport(u.Endpoint, u.Auth, opts)
	if err != nil {
		return nil, fmt.Errorf("upload: %w", err)
	}
	return &Uploader{link: link, cfg: *u}, nil
}

// Ready reports why the configured credential can't be had now, or nil.
func (u *Uploader) Ready(ctx context.Context) error { return u.link.Ready(ctx) }

// Upload sends body and returns the receiver's confirmation, which is that of
// exactly these bytes. It takes no longer than the timeoutMs of the configuration,
// authentication included, nor than ctx, and sends no more than maxBytes. Nothing
// is sent again, but for a credential that was renewed. body must not change before
// the return.
//
// The error is an *ahp.Failure, or wraps context.Canceled if the caller gave up.
func (u *Uploader) Upload(ctx context.Context, body []byte) (*ahp.Receipt, error) {
	if int64(len(body)) > u.cfg.MaxBytes {
		return nil, &ahp.Failure{Class: ahp.FailContent, Detail: fmt.Sprintf("the content has %d bytes, the receiver takes %d", len(body), u.cfg.MaxBytes)}
	}
	budget := time.Duration(min(u.cfg.TimeoutMs, maxUploadTimeout.Milliseconds())) * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	sum := sha256.Sum256(body)
	want := ahp.Receipt{Size: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}
	var got *ahp.Receipt
	err := u.link.call(ctx, func(ctx context.Context) (err error) {
		got, err = u.send(ctx, body, want)
		return err
	})
	return got, err
}

func (u *Uploader) send(ctx context.Context, body []byte, want ahp.Receipt) (*ahp.Receipt, error) {
	resp, err := sendAs(ctx, &u.link.client, u.link.cred, func(ctx context.Context) (*http.Request, error) {
		// A bytes.Reader gives the request an exact length, also of nothing.
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.link.url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", octets)
		req.Header.Set("Accept", mediaType)
		req.Header.Set("User-Agent", "ahp")
		req.Header[hashHeader] = []string{want.SHA256}
		return req, nil
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return nil, statusFailure(resp, "201")
	}
	got, err := readReceipt(resp)
	switch {
	case err != nil:
		return nil, err
	case got.Size != want.Size || got.SHA256 != want.SHA256:
		return nil, &ahp.Failure{Class: ahp.FailMalformed, Detail: fmt.Sprintf("the receipt is for %d other bytes, %d were sent", got.Size, want.Size)}
	}
	return got, nil
}

func readReceipt(resp *http.Response) (*ahp.Receipt, error) {
	if err := checkMediaType(resp.Header.Values("Content-Type")); err != nil {
		return nil, err
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, &ahp.Failure{Class: ahp.FailMalformed, Detail: fmt.Sprintf("content encoding %.40q, expected none", enc)}
	}
	data, err := readBody(resp.Body, maxReceiptBytes)
	if err != nil {
		return nil, err
	}
	receipt, err := ahp.DecodeReceipt(data)
	if err != nil {
		return nil, &ahp.Failure{Class: ahp.FailMalformed, Detail: "the receipt: " + err.Error(), Err: err}
	}
	return receipt, nil
}

// Close cancels what is pending, waits for it and closes the connections.
func (u *Uploader) Close() error { return u.link.Close() }
