package ahp

import "slices"

// LineageOptions bounds what a Lineage remembers.
type LineageOptions struct {
	// MaxEvents is how many events are remembered; zero means 16384.
	MaxEvents int
	// MaxBytes bounds the ids and texts that are remembered of them, in bytes, with
	// a fixed share for each event; zero means 8 MiB.
	MaxBytes int
}

// Lineage judges the parents of the events of one connection (§20). It is the only
// type of this package with a state of its own, and not safe for concurrent use.
//
// It refuses an event that is its own ancestor, an event that names another parent
// than before, an actual task change whose known proposal has another task or
// operation, an answer whose known elicitation has another server, mode or
// session, and an actual update that changes nothing. A parent that was never seen
// is fine, since views are filtered and parents may come late; when it does come,
// it is held against the events that named it.
//
// At a bound the oldest events are forgotten, one after the other: an event whose
// parent is forgotten is judged as if the parent had never been seen. A forgotten
// event refuses nothing, so the bounds cost findings and never a valid event.
type Lineage struct {
	maxEvents, maxBytes int
	bytes               int
	nodes               map[lineageKey]*lineageNode
	// order holds the remembered events, oldest first.
	order []*lineageNode
}

// lineageKey identifies an event (§5).
type lineageKey struct{ source, id string }

// lineageNode is an event that was seen, or that others named as their parent.
type lineageNode struct {
	key  lineageKey
	seen bool
	size int
	// parent is nil where none is known.
	parent *lineageNode
	// children names those that are remembered.
	children []*lineageNode
	lineageFacts
}

// lineageFacts are what is compared between an event and its parent.
type lineageFacts struct {
	kind            EventType
	task, operation string
	server, mode    string
	session         string
}

// nodeBytes is the fixed share of one remembered event.
const nodeBytes = 256

// NewLineage returns a Lineage that has seen nothing.
func NewLineage(opts LineageOptions) *Lineage {
	l := &Lineage{maxEvents: opts.MaxEvents, maxBytes: opts.MaxBytes, nodes: map[lineageKey]*lineageNode{}}
	if l.maxEvents <= 0 {
		l.maxEvents = 16384
	}
	if l.maxBytes <= 0 {
		l.maxBytes = 8 << 20
	}
	return l
}

// Add judges e, which is valid, and remembers it. The error is an *Error of
// KindLineage with a pointer relative to the event; then nothing of e is
// remembered. The same event may come again, as an interception and an observation
// do.
func (l *Lineage) Add(e *Event) error {
	if err := noChange(e); err != nil {
		return err
	}
	key := lineageKey{e.Source, e.ID}
	if e.ParentEventID == e.ID {
		return lineageError("/parentEventId", "the event's own id", "the id of an earlier event")
	}
	node, facts := l.nodes[key], factsOf(e)
	if err := l.checkParent(node, e, &facts); err != nil {
		return err
	}
	if node != nil {
		for _, child := range node.children {
			if err := compatible(&facts, &child.lineageFacts, "/"+facts.member()); err != nil {
				return err
			}
		}
	}
	l.remember(node, key, e.ParentEventID, facts)
	return nil
}

// Len returns how many events are remembered.
func (l *Lineage) Len() int { return len(l.order) }

func lineageError(pointer, found, expected string) error {
	return &Error{Kind: KindLineage, Pointer: pointer, Offset: -1, Found: found, Expected: expected}
}

// noChange refuses an actual update that changes nothing.
func noChange(e *Event) error {
	const found, expected = "a change that equals prior", "what was really changed; without a change there is no event"
	switch {
	case e.Type == TaskChangeAfter && e.Task.Operation == "update" && e.Task.Prior != nil && e.Task.Change.Equal(e.Task.Prior):
		return lineageError("/task/change", found, expected)
	case e.Type == WorkspaceChangeAfter && e.Workspace.Prior != nil && e.Workspace.Change.equal(e.Workspace.Prior):
		return lineageError("/workspace/change", found, expected)
	}
	return nil
}

func (s *WorkspaceState) equal(other *WorkspaceState) bool {
	return (s.Cwd == nil) == (other.Cwd == nil) && (s.Cwd == nil || *s.Cwd == *other.Cwd) &&
		(s.WorkspaceRoots == nil) == (other.WorkspaceRoots == nil) && slices.Equal(s.WorkspaceRoots, other.WorkspaceRoots)
}

func factsOf(e *Event) lineageFacts {
	f := lineageFacts{kind: e.Type}
	if e.Session != nil {
		f.session = e.Session.ID
	}
	switch e.Type {
	case TaskChangeBefore, TaskChangeAfter:
		f.task, f.operation = e.Task.ID, e.Task.Operation
	case UserElicitationRequest, UserElicitationResult:
		f.server, f.mode = e.Elicitation.Server, e.Elicitation.Mode
	}
	return f
}

func (f *lineageFacts) member() string {
	if f.task != "" {
		return "task"
	}
	return "elicitation"
}

// checkParent judges the parent that e names. node is e's own, nil if nobody knows
// of e yet.
func (l *Lineage) checkParent(node *lineageNode, e *Event, facts *lineageFacts) error {
	if e.ParentEventID == "" {
		return nil
	}
	if node != nil && node.parent != nil && node.parent.key.id != e.ParentEventID {
		return lineageError("/parentEventId", "another parent than before", "the parent "+quote(node.parent.key.id))
	}
	parent := l.nodes[lineageKey{e.Source, e.ParentEventID}]
	if parent == nil {
		return nil
	}
	if node != nil && len(node.children) > 0 { // else it is nobody's ancestor
		for a := parent; a != nil; a = a.parent {
			if a == node {
				return lineageError("/parentEventId", "a parent that descends from this event", "an ancestry without a cycle")
			}
		}
	}
	if !parent.seen {
		return nil
	}
	return compatible(&parent.lineageFacts, facts, "/parentEventId")
}

// compatible holds what an event and the proposal or request that it follows from
// have in common.
func compatible(parent, child *lineageFacts, pointer string) error {
	refuse := func(what, expected string) error {
		return lineageError(pointer, "a proposal or request with another "+what, "the same "+what+", "+quote(expected))
	}
	switch {
	case parent.kind == TaskChangeBefore && child.kind == TaskChangeAfter:
		switch {
		case parent.task != child.task:
			return refuse("task", child.task)
		case parent.operation != child.operation:
			return refuse("operation", child.operation)
		}
	case parent.kind == UserElicitationRequest && child.kind == UserElicitationResult:
		switch {
		case parent.server != child.server:
			return refuse("server", child.server)
		case parent.mode != child.mode:
			return refuse("mode", child.mode)
		case parent.session != "" && child.session != "" && parent.session != child.session:
			return refuse("session", child.session)
		}
	}
	return nil
}

// remember keeps an event that was accepted.
func (l *Lineage) remember(node *lineageNode, key lineageKey, parentID string, facts lineageFacts) {
	size := nodeBytes + 2*len(key.source) + len(key.id) + len(parentID) + len(facts.task) + len(facts.server) + len(facts.session)
	if size > l.maxBytes {
		return // it would make everything else be forgotten
	}
	if node == nil {
		node = &lineageNode{key: key}
		l.nodes[key] = node
	}
	if !node.seen {
		l.order = append(l.order, node)
	}
	// An event that comes again may have more than before, or less.
	l.bytes += size - node.size
	node.seen, node.size, node.lineageFacts = true, size, facts
	if parentID != "" && node.parent == nil {
		l.adopt(node, parentID)
	}
	l.forget()
}

// adopt makes node a child of the event of that id.
func (l *Lineage) adopt(node *lineageNode, parentID string) {
	key := lineageKey{node.key.source, parentID}
	parent := l.nodes[key]
	if parent == nil {
		parent = &lineageNode{key: key}
		l.nodes[key] = parent
	}
	node.parent = parent
	parent.children = append(parent.children, node)
}

// forget drops the oldest events until the bounds hold.
func (l *Lineage) forget() {
	for len(l.order) > l.maxEvents || l.bytes > l.maxBytes {
		old := l.order[0]
		l.order[0] = nil
		l.order = l.order[1:]
		l.bytes -= old.size
		old.seen, old.size, old.lineageFacts = false, 0, lineageFacts{}
		if p := old.parent; p != nil {
			old.parent = nil
			if i := slices.Index(p.children, old); i >= 0 {
				p.children = slices.Delete(p.children, i, i+1)
			}
			l.release(p)
		}
		l.release(old)
	}
}

// release drops a node that nothing refers to any more.
func (l *Lineage) release(n *lineageNode) {
	if !n.seen && len(n.children) == 0 {
		delete(l.nodes, n.key)
	}
}
