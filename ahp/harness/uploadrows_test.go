package harness_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport/httptransport"
	"github.com/abhed/abhed/internal/strictjson"
)

// uploadRow is a row of lifecycle-scenarios.json with uploads.
type uploadRow struct {
	ID        string             `json:"id"`
	Requests  map[string]ahp.Raw `json:"requests"`
	Responses map[string]ahp.Raw `json:"responses"`
	Steps     []uploadStep       `json:"steps"`
	Expected  want               `json:"expected"`
}

type uploadStep struct {
	Op           string      `json:"op"`
	Subscription string      `json:"subscription"`
	Ref          string      `json:"ref"`
	Body         string      `json:"bodyBase64"`
	Size         int64       `json:"size"`
	SHA256       string      `json:"sha256"`
	Upload       *ahp.Upload `json:"upload"`
	Items        []ahp.Raw   `json:"items"`
}

// The credentials of the rows; the second is none that the receiver knows.
const (
	goodUploadToken = "AHP_INTEROP_UPLOAD_TOKEN"
	badUploadToken  = "AHP_INTEROP_UNAUTHORIZED_UPLOAD_TOKEN"
)

// TestUploadRows plays the rows with uploads against a real receiver: first the
// uploads as they are written, then the boundary, whose attachments the harness
// uploads by itself.
func TestUploadRows(t *testing.T) {
	var file struct {
		Scenarios []ahp.Raw `json:"scenarios"`
	}
	readShared(t, "interop/lifecycle-scenarios.json", &file)
	played := 0
	for _, raw := range file.Scenarios {
		if !bytes.Contains(raw, []byte(`"upload"`)) {
			continue
		}
		var row uploadRow
		if err := strictjson.Unmarshal(raw, &row, strictjson.Options{}); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(row.Steps, func(s uploadStep) bool { return s.Op == "upload" }) {
			continue
		}
		played++
		t.Run(row.ID, func(t *testing.T) { playUploads(t, &row) })
	}
	if played != 4 {
		t.Errorf("%d rows with uploads, want 4", played)
	}
}

func playUploads(t *testing.T, row *uploadRow) {
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{Tokens: map[string]string{"good": "body"}})
	tokens := map[string]string{goodUploadToken: "good", badUploadToken: "bad"}
	files := map[string]string{} // by the row's refs
	refs := map[string]string{}  // the receiver's, by the row's
	var statuses []int
	for _, step := range row.Steps {
		if step.Op != "upload" {
			continue
		}
		body, err := base64.StdEncoding.DecodeString(step.Body)
		if err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, uploadAsWritten(t, s, tokens, &step, body, refs))
		if statuses[len(statuses)-1] == http.StatusCreated {
			files[step.Ref] = string(body)
		}
	}
	if !slices.Equal(statuses, row.Expected.Uploads) {
		t.Errorf("statuses %v, want %v", statuses, row.Expected.Uploads)
	}
	for name, ref := range refs {
		if got := stored(t, s, "body", ref); got != files[name] {
			t.Errorf("%s holds %q, want %q", name, got, files[name])
		}
	}
	if len(row.Expected.Observations) > 0 {
		observeRow(t, row, s, newLibrary(files, tokens))
	}
}

// uploadAsWritten plays one upload and returns the status. What no sender of ours
// would say is written to the connection.
func uploadAsWritten(t *testing.T, s *ahptest.UploadServer, tokens map[string]string, step *uploadStep, body []byte, refs map[string]string) int {
	env := goodUploadToken
	if step.Upload != nil && step.Upload.Auth != nil {
		env = step.Upload.Auth.TokenEnv
	}
	if int64(len(body)) != step.Size || fmt.Sprintf("%x", sha256.Sum256(body)) != step.SHA256 {
		at, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\nAHP-Content-SHA256: %s\r\n\r\n%s",
			tokens[env], step.Size, step.SHA256, body)
		c.(*net.TCPConn).CloseWrite()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	u, err := httptransport.NewUploader(s.Config(env), httptransport.Options{LookupEnv: func(name string) (string, bool) { v, ok := tokens[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	receipt, err := u.Upload(t.Context(), body)
	last := s.Requests()[len(s.Requests())-1]
	if (err == nil) != (last.Status == http.StatusCreated) {
		t.Errorf("%s: status %d, and %v", step.Ref, last.Status, err)
	}
	if err == nil {
		refs[step.Ref] = receipt.Ref
	}
	return last.Status
}

// observeRow plays the boundary of the row, and compares what the two subscriptions
// observe: one has the bytes, the other isn't permitted to.
func observeRow(t *testing.T, row *uploadRow, s *ahptest.UploadServer, lib *library) {
	m, err := ahp.DecodeRequest(row.Requests["a"])
	if err != nil {
		t.Fatal(err)
	}
	q := m.(*ahp.Intercept)
	effects, err := ahp.DecodeEffectsReply(row.Responses["a"], ahp.StringID(q.Event.ID))
	if err != nil {
		t.Fatal(err)
	}
	subs := map[string]ahp.Subscription{}
	var names []string
	for _, step := range row.Steps {
		if step.Op != "observe" {
			continue
		}
		sub := ahptest.Observe("tool.before")
		sub.Upload = s.Config(goodUploadToken)
		subs[step.Subscription] = sub
		names = append(names, step.Subscription)
		if step.Subscription == "body" {
			q.Event.Items = itemsOf(t, step.Items)
		}
	}
	lib.content.Authorize = func(by ahp.SubscriptionID, _ *ahp.Event, _ *ahp.Part) bool {
		return by.Backend == "test.b0" || names[backendIndex(by)-1] == "body"
	}
	parties := []party{intercepts(ahptest.NewFake(ahptest.Says(effects...)), ahp.FailClosed)}
	watchers := map[string]*ahptest.Fake{}
	for _, name := range names {
		watchers[name] = ahptest.NewFake(nil)
		parties = append(parties, party{watchers[name], []ahp.Subscription{subs[name]}})
	}
	h := newHarness(t, harness.Options{Content: &lib.content}, parties...)
	out, err := h.Dispatch(t.Context(), q.Event, &q.Capabilities, q.State, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := out.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	for _, want := range row.Expected.Observations {
		seen := watchers[want.Subscription].Observed()
		if len(seen) != 1 || seen[0].ID != want.EventID || !seen[0].Tool.Input.Equal(want.Input) {
			t.Fatalf("%s observed %+v", want.Subscription, seen)
		}
		for i := range seen[0].Items.Parts {
			compareObserved(t, want.Subscription, &seen[0].Items.Parts[i], &q.Event.Items.Parts[i], s, lib)
		}
	}
}

// compareObserved holds that a part was shown with the host's bytes, or not at all.
func compareObserved(t *testing.T, subscription string, shown, own *ahp.Part, s *ahptest.UploadServer, lib *library) {
	if subscription != "body" {
		if shown.Body != nil || shown.Gap == nil || shown.Gap.Reason != "content permission denied" || shown.Selection != ahp.SelectBody {
			t.Errorf("%+v", shown)
		}
		return
	}
	if n := lib.opens(own.Body.Ref); n != 1 {
		t.Errorf("%s was opened %d times", own.Body.Ref, n)
	}
	if got := stored(t, s, "body", refOf(shown)); got != lib.files[own.Body.Ref] {
		t.Errorf("%s: %q, want %q", own.Body.Ref, got, lib.files[own.Body.Ref])
	}
}

func backendIndex(by ahp.SubscriptionID) int { return int(by.Backend[len(by.Backend)-1] - '0') }

// itemsOf decodes bare parts.
func itemsOf(t *testing.T, list []ahp.Raw) ahp.Items {
	var raw [][]byte
	for _, item := range list {
		raw = append(raw, item)
	}
	e, err := ahptest.ToolBefore("items", "{}").Encode()
	if err != nil {
		t.Fatal(err)
	}
	e = slices.Concat(e[:len(e)-1], []byte(`,"items":[`), bytes.Join(raw, []byte(",")), []byte("]}"))
	out, err := ahp.DecodeEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	return out.Items
}
