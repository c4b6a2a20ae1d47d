// Package schema holds the JSON Schemas of the Agent Hooks Protocol, in Draft
// 2020-12: one per kind of message, and the definitions that they share.
//
// It guarantees that they are generated from the types and tables that package ahp
// decodes by, and that a schema and the decoder give the same verdict on a message
// but for the rules that JSON Schema can't express; docs/protocol/schemas.md lists
// those. The schemas refer to each other by relative file names; each has a stable
// $id that ends in its own.
//
// Do not assume that a message which satisfies its schema is valid: an id that
// isn't the event's, an effect that was not advertised or a repeated member name
// passes. Where the decoder can be called, call it.
package schema

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/abhed/abhed/ahp"
)

//go:generate go run ./gen

//go:embed draft/*.json
var files embed.FS

// Names of the schemas, one per kind of message. Definitions is what they share.
const (
	InterceptRequest          = "intercept-request"
	InterceptResponse         = "intercept-response"
	InterceptDenyResponse     = "intercept-deny-response"
	InterceptNoEffectResponse = "intercept-no-effect-response"
	ObserveNotification       = "observe-notification"
	CapabilitiesRequest       = "capabilities-request"
	CapabilitiesResponse      = "capabilities-response"
	UploadReceipt             = "upload-receipt"
	Registration              = "registration"
	ErrorResponse             = "error-response"
	JSONRPCMessage            = "json-rpc-message"
	Definitions               = "definitions"
)

// Names returns the names of all schemas of this revision in alphabetical order.
func Names() []string {
	return []string{
		CapabilitiesRequest, CapabilitiesResponse, Definitions, ErrorResponse, InterceptDenyResponse, InterceptNoEffectResponse,
		InterceptRequest, InterceptResponse, JSONRPCMessage, ObserveNotification, Registration, UploadReceipt,
	}
}

// Read returns the named schema as JSON text. The error says that there is none of
// that name.
func Read(name string) ([]byte, error) {
	data, err := files.ReadFile(ahp.Version + "/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("schema: no schema %q; see Names", name)
	}
	return data, nil
}

// FS returns the schemas as files, "intercept-request.json" and so on.
func FS() fs.FS {
	sub, err := fs.Sub(files, ahp.Version)
	if err != nil {
		panic("bug: " + err.Error()) // the name is a valid path
	}
	return sub
}
