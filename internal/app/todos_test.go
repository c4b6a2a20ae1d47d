package app_test

import (
	"github.com/abhed/abhed/internal/model/modeltest"
)

// listing writes a task list beside the marker.
func listing() *scene {
	want, closed := well(), well()
	want.sent = []string{"1. [ ] MAKE it"}
	closed.sent, closed.unsent = []string{"The list was not changed: refused by backend org.test.judge"}, []string{"1. [ ] MAKE it"}
	return &scene{
		turns: []modeltest.Turn{{Calls: []modeltest.Call{
			{ID: "call_0", Name: "todo", Args: `{"items":[{"content":"MAKE it","status":"pending"}]}`}, {ID: "call_1", Name: "write", Args: markerArgs},
		}}, done()},
		want: want, closed: closed,
	}
}
