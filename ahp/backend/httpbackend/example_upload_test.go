package httpbackend_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// A backend that looks into the attachments of a prompt, and a harness that has them
// uploaded to it before it asks. The receiver has a credential and a path of its own.
func ExampleNewUploads() {
	uploads, err := httpbackend.NewUploads(httpbackend.UploadOptions{Scope: httpbackend.TokenScopes(map[string]string{"upload-token": "harness-1"})})
	if err != nil {
		panic(err)
	}
	defer uploads.Close()
	judge := backend.Func(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		for _, m := range q.Event.Items.Messages {
			for _, p := range m.Parts {
				if p.Body == nil {
					continue
				}
				in, receipt, err := uploads.Open("harness-1", p.Body.Ref)
				if err != nil {
					return nil, err
				}
				body, err := io.ReadAll(in)
				in.Close()
				if err != nil {
					return nil, err
				}
				if bytes.Contains(body, []byte("SECRET")) {
					return []ahp.Effect{&ahp.Deny{Reason: fmt.Sprintf("%d bytes of %s hold a secret", receipt.Size, p.MediaType)}}, nil
				}
			}
		}
		return nil, nil
	})
	mux := http.NewServeMux()
	mux.Handle("/ahp", httpbackend.Handler(backend.New(judge, backend.Options{}), httpbackend.Options{Token: "event-token"}))
	mux.Handle("/upload", uploads)
	server := httptest.NewServer(mux)
	defer server.Close()

	h := uploadingHarness(server.URL, map[string]string{"local:screenshot": "\x89PNG SECRET"})
	defer h.Close()
	shot := ahp.Part{ID: "p1", Kind: ahp.KindAttachment, MediaType: "image/png", Selection: ahp.SelectBody, Body: &ahp.BodyRef{Ref: "local:screenshot"}}
	e := &ahp.Event{ID: "e1", Source: "urn:example:harness", Type: ahp.TurnStart, Time: ahp.Timestamp(time.Now()), Turn: &ahp.Turn{ID: "t1"}, Trigger: "user",
		Items: ahp.MessageItems(ahp.Message{ID: "m1", Role: ahp.RoleUser, Parts: []ahp.Part{ahp.TextPart("p0", "what is this?"), shot}})}
	out, err := h.Dispatch(context.Background(), e, &ahp.Capabilities{Effects: []ahp.EffectType{ahp.EffectDeny}}, nil, harness.DispatchOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Println(out.MayExecute(), out.Denial().Reason)
	// Output: false 11 bytes of image/png hold a secret
}

// uploadingHarness returns a harness with one backend, and with attachments that it
// knows by names of its own.
func uploadingHarness(url string, files map[string]string) *harness.Harness {
	timeout := int64(2000)
	reg := &ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{{
		ID: "com.example.scanner", Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: url + "/ahp"},
		Authentication: &ahp.Authentication{Type: "bearer", TokenEnv: "EVENT_TOKEN"},
		Subscriptions: []ahp.Subscription{{Events: []string{"turn.start"}, Mode: ahp.ModeIntercept, TimeoutMs: &timeout, FailurePolicy: ahp.FailClosed,
			Content: map[string]ahp.Selection{"default": ahp.SelectBody},
			Upload: &ahp.Upload{Endpoint: url + "/upload", TimeoutMs: 5000, MaxBytes: 1 << 20,
				Auth: &ahp.Authentication{Type: "bearer", TokenEnv: "UPLOAD_TOKEN"}}}},
	}}}
	opts := httptransport.Options{LookupEnv: func(name string) (string, bool) {
		return map[string]string{"EVENT_TOKEN": "event-token", "UPLOAD_TOKEN": "upload-token"}[name], true
	}}
	h, err := harness.New(reg, harness.Options{
		Manifest: &ahp.Manifest{Events: []ahp.ManifestEvent{{Event: ahp.TurnStart, Modes: []ahp.Mode{ahp.ModeIntercept}, Capabilities: &ahp.Capabilities{Effects: []ahp.EffectType{ahp.EffectDeny}}}},
			Gaps: []ahp.Gap{}, Transports: []string{"http"}, Authentication: []string{"bearer"}, ToolPaths: []string{}, ContentCategories: []string{"text", "images"}, CorrelationIdentityFields: []string{},
			ManagedPolicy: ahp.ManagedPolicy{Scopes: []string{"user"}}},
		Open: func(b *ahp.Backend) (transport.Transport, error) { return httptransport.New(b, opts) },
		Content: &harness.Content{
			Open: func(_ context.Context, _ *ahp.Event, p *ahp.Part) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(files[p.Body.Ref])), nil
			},
			Receiver: func(_ ahp.SubscriptionID, u *ahp.Upload) (harness.Receiver, error) {
				return httptransport.NewUploader(u, opts)
			},
		},
	})
	if err != nil {
		panic(err)
	}
	return h
}
