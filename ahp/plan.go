package ahp

import (
	"reflect"
	"strings"
	"sync"
)

// The Go types of this package are its schema: a struct field's json tag names
// the member, its ahp tag holds the rules. A plan is what reader and writer need
// of one struct type, made from the tags once.
//
// Rules: req (must be present), min1 (a text or list that isn't empty), each1 (a
// list of such texts), closed (a list of objects that are open elsewhere), enum=a|b,
// uniq (no repeated item), pos and nonneg (bounds of integers), obj (a JSON
// object), num (a number of 0 or more), strint (a text or an integer), text (a
// list of text parts), null (may be null), and the grammars uri, time, rdns,
// sha256, httpurl, https, env, currency.

// plan describes one struct type.
type plan struct {
	fields []field
	byName map[string]int
	need   bits
	// unknown is the index of the struct's field of that type, -1 for none.
	unknown int
	info
}

// info is what the tags can't say of a type.
type info struct {
	// open objects ignore unknown members.
	open bool
	// rule is the requirement that a fault in this object is cited with.
	rule string
	// check holds rules that span members; nil if there are none.
	check func(any) *fault
}

// field describes one member.
type field struct {
	name  string
	index int
	kind  fieldKind
	enum  []string
	// format is one of the grammars, or "".
	format                              string
	req, min1, uniq, pos, nonneg, null_ bool
	each1, closed                       bool
	elem                                reflect.Type
}

type fieldKind uint8

const (
	isString fieldKind = iota + 1
	isStringPtr
	isBool
	isBoolPtr
	isInt
	isIntPtr
	isRaw
	isRaws
	isStrings
	isObject
	isObjectPtr
	isObjects
	isIntMap
	isStringMap
	isObjectMap
	isExtensions
	isItems
	isEffects
)

// bits is a set of member indexes; Event has some 64 members.
type bits [2]uint64

func (b *bits) set(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b *bits) has(i int) bool { return b[i>>6]&(1<<(i&63)) != 0 }

// fault is a breach that a check function found; at is a pointer relative to the
// object, without the leading slash.
type fault struct {
	at, found, expected string
}

// plans memoises planOf, which is a pure function of the type.
var plans sync.Map // reflect.Type to *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{byName: make(map[string]int, t.NumField()), unknown: -1, info: infoOf(t)}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == reflect.TypeFor[Unknown]() {
			p.unknown = i
			continue
		}
		name, ok := f.Tag.Lookup("json")
		if !ok || !f.IsExported() {
			continue
		}
		fp := newField(name, i, f)
		p.byName[name] = len(p.fields)
		if fp.req {
			p.need.set(len(p.fields))
		}
		p.fields = append(p.fields, fp)
	}
	got, _ := plans.LoadOrStore(t, p)
	return got.(*plan)
}

func newField(name string, index int, f reflect.StructField) field {
	fp := field{name: name, index: index, elem: f.Type}
	fp.kind, fp.elem = kindOf(f.Type)
	for rule := range strings.SplitSeq(f.Tag.Get("ahp"), ",") {
		switch rule {
		case "":
		case "req":
			fp.req = true
		case "min1":
			fp.min1 = true
		case "each1":
			fp.each1 = true
		case "closed":
			fp.closed = true
		case "uniq":
			fp.uniq = true
		case "pos":
			fp.pos = true
		case "nonneg":
			fp.nonneg = true
		case "null":
			fp.null_ = true
		default:
			if list, ok := strings.CutPrefix(rule, "enum="); ok {
				fp.enum = strings.Split(list, "|")
			} else {
				fp.format = rule
			}
		}
	}
	return fp
}

func kindOf(t reflect.Type) (fieldKind, reflect.Type) {
	switch t {
	case reflect.TypeFor[Raw]():
		return isRaw, nil
	case reflect.TypeFor[[]Raw]():
		return isRaws, nil
	case reflect.TypeFor[Extensions]():
		return isExtensions, nil
	case reflect.TypeFor[Items]():
		return isItems, nil
	case reflect.TypeFor[[]Effect]():
		return isEffects, nil
	case reflect.TypeFor[map[string]int64]():
		return isIntMap, nil
	case reflect.TypeFor[*string]():
		return isStringPtr, nil
	case reflect.TypeFor[*bool]():
		return isBoolPtr, nil
	case reflect.TypeFor[*int64]():
		return isIntPtr, nil
	}
	switch t.Kind() {
	case reflect.String:
		return isString, nil
	case reflect.Bool:
		return isBool, nil
	case reflect.Int64:
		return isInt, nil
	case reflect.Struct:
		return isObject, t
	case reflect.Pointer:
		return isObjectPtr, t.Elem()
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return isStrings, nil
		}
		return isObjects, t.Elem()
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return isStringMap, nil
		}
		return isObjectMap, t.Elem()
	}
	panic("ahp: no rule for the type " + t.String())
}

// check adapts a typed check function.
func check[T any](f func(*T) *fault) func(any) *fault {
	return func(p any) *fault { return f(p.(*T)) }
}

// infoOf is the table of what tags can't say. Objects are closed unless said
// otherwise (§4).
func infoOf(t reflect.Type) info {
	switch reflect.New(t).Interface().(type) {
	case *Message:
		return info{rule: "AHP-CONTENT-001"}
	case *Part:
		return info{rule: "AHP-CONTENT-001", check: check(checkPart)}
	case *BodyRef, *PartGap:
		return info{rule: "AHP-CONTENT-001"}
	case *Event:
		return info{open: true, rule: "AHP-CORE-003"}
	case *Gap, *Session, *Agent, *Turn:
		return info{open: true, rule: "AHP-CORE-003"}
	case *Tool:
		return info{rule: "AHP-TB-001", check: check(checkTool)}
	case *Connection:
		return info{rule: "AHP-TB-001", check: check(checkConnection)}
	case *Identity, *MCP, *MCPServer, *Batch:
		return info{rule: "AHP-TB-001"}
	case *Execution:
		return info{rule: "AHP-CORE-003", check: check(checkExecution)}
	case *FileChange:
		return info{rule: "AHP-CORE-003", check: check(checkFileChange)}
	case *BatchCall:
		return info{rule: "AHP-CORE-003", check: check(checkBatchCall)}
	case *WorkspaceState:
		return info{rule: "AHP-CORE-003", check: check(checkWorkspaceState)}
	case *Elicitation:
		return info{rule: "AHP-CORE-003", check: check(checkElicitation)}
	case *wireEffect:
		return info{rule: "AHP-DEC-001", check: nil}
	case *Capabilities:
		return info{open: true, rule: "AHP-CAP-001", check: check(checkCapabilities)}
	case *ModifyCapability:
		return info{open: true, rule: "AHP-CAP-001", check: check(checkModifyCapability)}
	case *FlowCapability:
		return info{open: true, rule: "AHP-CAP-001", check: check(checkFlowCapability)}
	case *InjectCapability, *ContextInjection, *ElicitationCapability, *ElicitationMode:
		return info{open: true, rule: "AHP-CAP-001"}
	case *State, *Candidate:
		return info{open: true, rule: "AHP-CORE-003"}
	case *Manifest:
		return info{open: true, rule: "AHP-CAP-001", check: check(checkManifest)}
	case *ManifestEvent:
		return info{open: true, rule: "AHP-CAP-001", check: check(checkManifestEvent)}
	case *Limits:
		return info{open: true, rule: "AHP-CAP-001"}
	case *ManagedPolicy:
		return info{open: true, rule: "AHP-CAP-001", check: check(checkManagedPolicy)}
	}
	return documentInfo(t)
}

// documentInfo is infoOf for registrations and for what stands alone.
func documentInfo(t reflect.Type) info {
	switch reflect.New(t).Interface().(type) {
	case *Registration:
		return info{open: true, rule: "AHP-REG-001", check: check(checkRegistration)}
	case *Backend:
		return info{open: true, rule: "AHP-REG-001", check: check(checkBackend)}
	case *TransportConfig:
		return info{open: true, rule: "AHP-REG-001", check: check(checkTransport)}
	case *Authentication:
		return info{open: true, rule: "AHP-AUTH-001", check: check(checkAuthentication)}
	case *Subscription:
		return info{open: true, rule: "AHP-REG-001", check: check(checkSubscription)}
	case *Filters:
		return info{open: true, rule: "AHP-REG-002"}
	case *Receipt:
		return info{rule: "AHP-CONTENT-002"}
	case *Upload:
		return info{open: true, rule: "AHP-CONTENT-002", check: check(checkUpload)}
	case *RPCError:
		return info{open: true, rule: "AHP-RPC-001"}
	}
	return info{rule: "AHP-CORE-003"}
}
