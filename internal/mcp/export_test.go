package mcp

// What the tests of package mcp_test look into.
var (
	AssignNames  = assignNames
	Segment      = segment
	RepairSchema = repairSchema
	Screen       = screen
)
