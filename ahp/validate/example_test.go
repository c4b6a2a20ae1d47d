package validate_test

import (
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/validate"
)

// A backend's author asks whether an edit fits where it is to be made.
func ExampleMessage() {
	reply := []byte(`{"jsonrpc":"2.0","id":"evt-1","result":{"protocolVersion":"draft","effects":[
		{"type":"modify","target":"output","operation":"replace","value":{}}]}}`)
	at := &validate.ResponseContext{Event: ahp.ToolAfter}
	report, err := validate.Message(reply, validate.Any, validate.Options{Response: at})
	if err != nil {
		panic(err) // the context can't be used
	}
	fmt.Println(report.Kind, report.Valid())
	for _, f := range report.Findings {
		fmt.Println(&f)
	}
	// Output:
	// intercept-response false
	// /result/effects/0/value (byte 145): found an object, expected a list [AHP-CONTENT-001]
}

// A recorded connection is judged message by message.
func ExampleStream() {
	notification := `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":{"id":%q,"parentEventId":%q,"source":"urn:a",` +
		`"type":"file.changed","time":"2026-01-01T00:00:00Z","changes":[{"path":"a","operation":"update","agentCaused":true}]}}}`
	s := validate.NewStream(ahp.LineageOptions{})
	for _, ids := range [][2]string{{"2", "1"}, {"1", "2"}} {
		v := s.Judge(fmt.Appendf(nil, notification, ids[0], ids[1]))
		fmt.Println(v.Accepted)
		if v.Finding != nil {
			fmt.Println(*v.ErrorKind, v.Finding.Found)
		}
	}
	// Output:
	// true
	// false
	// lineage a parent that descends from this event
}
