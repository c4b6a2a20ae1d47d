package mcp

import "time"

// What the tests of package mcp_test look into.
var (
	AssignNames  = assignNames
	Segment      = segment
	RepairSchema = repairSchema
	Screen       = screen
)

// Age makes the present conversation with the first server older.
func (h *Host) Age(by time.Duration) {
	s := h.servers[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link.born = s.link.born.Add(-by)
}
