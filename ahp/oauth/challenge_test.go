package oauth

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

func TestParseChallenges(t *testing.T) {
	p := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	for in, want := range map[string][]challenge{
		"":                             nil,
		" , ,, ":                       nil,
		"Bearer":                       {{"bearer", "", p()}},
		"BEARER  ":                     {{"bearer", "", p()}},
		`Bearer realm="x"`:             {{"bearer", "", p("realm", "x")}},
		`Bearer Realm = "x" , scope=y`: {{"bearer", "", p("realm", "x", "scope", "y")}},
		`Bearer scope="a \"b\" c\\"`:   {{"bearer", "", p("scope", `a "b" c\`)}},
		`Basic, Bearer a=1, Digest b=2,c="3, d=4"`:   {{"basic", "", p()}, {"bearer", "", p("a", "1")}, {"digest", "", p("b", "2", "c", "3, d=4")}},
		`Negotiate YWJj==, Bearer x=y`:               {{"negotiate", "YWJj==", p()}, {"bearer", "", p("x", "y")}},
		`Negotiate abc`:                              {{"negotiate", "abc", p()}},
		`Bearer x=y,,`:                               {{"bearer", "", p("x", "y")}},
		`Bearer x="", Basic realm="Bearer evil=\"1"`: {{"bearer", "", p("x", "")}, {"basic", "", p("realm", `Bearer evil="1`)}},
	} {
		got, err := parseChallenges([]string{in})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{
		`Bearer x="`, `Bearer x="\`, `Bearer x="a"b`, `Bearer x=` + "\"\x00\"", `Bearer x=1 y=2`, `Bearer x=1, X=2`, `=x`, `"x"`, `Bearer/x`, `Bearer x=y z`, `Bearer ` + "\x7f",
		strings.Repeat("x", maxChallengeBytes+1), strings.Repeat("Bearer, ", maxChallenges+1), "Bearer " + func() string {
			var all []string
			for i := range maxParams + 1 {
				all = append(all, fmt.Sprintf("a%d=1", i))
			}
			return strings.Join(all, ",")
		}(),
	} {
		if got, err := parseChallenges([]string{in}); err == nil {
			t.Errorf("%.40q is read as %+v", in, got)
		}
	}
	if got, err := parseChallenges([]string{"Basic realm=x", `Bearer scope="a"`}); err != nil || len(got) != 2 || got[1].params["scope"] != "a" {
		t.Errorf("two lines: %+v, %v", got, err)
	}
}

func TestReadWants(t *testing.T) {
	for _, tt := range []struct {
		in       []string
		metadata string
		scopes   []string
		fails    bool
	}{
		{nil, "", nil, false},
		{[]string{"Bearer"}, "", nil, false},
		{[]string{`Basic realm="x"`, `Bearer resource_metadata="https://a.example/m", scope="a  b"`}, "https://a.example/m", []string{"a", "b"}, false},
		{[]string{`Bearer scope=""`}, "", []string{}, false},
		{[]string{`Basic realm="x"`}, "", nil, true},
		{[]string{`DPoP resource_metadata="https://a.example/m"`}, "", nil, true},
		{[]string{`Bearer "`}, "", nil, true},
	} {
		w, err := readWants(tt.in)
		if tt.fails {
			if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailAuth {
				t.Errorf("%q: %+v, %v", tt.in, w, err)
			}
			continue
		}
		if err != nil || w.metadata != tt.metadata || !slices.Equal(w.scopes, tt.scopes) || (w.scopes == nil) != (tt.scopes == nil) {
			t.Errorf("%q: %+v, %v", tt.in, w, err)
		}
	}
}

// TestNarrowed holds that a token is asked for with scopes that are both wanted and
// permitted, and never with the issuer's own choice instead.
func TestNarrowed(t *testing.T) {
	for _, tt := range []struct {
		permitted, supported, challenged, want []string
		fails                                  bool
	}{
		{[]string{"a", "b"}, nil, nil, []string{"a", "b"}, false},
		{[]string{"a", "b"}, []string{"b", "c"}, nil, []string{"b"}, false},
		{[]string{"a", "b"}, []string{"b", "c"}, []string{"a", "admin"}, []string{"a"}, false},
		{[]string{"a"}, nil, []string{"admin"}, nil, true},
		{nil, []string{"admin"}, []string{"admin"}, nil, false},
		{[]string{"a"}, []string{"b"}, []string{}, []string{"a"}, false},
	} {
		c, err := Client{Scopes: tt.permitted}.narrowed(tt.supported, tt.challenged)
		if tt.fails != (err != nil) || err == nil && !slices.Equal(c.Scopes, tt.want) {
			t.Errorf("%+v: %+v, %v", tt, c, err)
		}
	}
}

// FuzzChallenges holds that the reader ends, stays within its bounds, and reads what
// it would write.
func FuzzChallenges(f *testing.F) {
	for _, s := range []string{
		"", "Bearer", `Bearer realm="x", resource_metadata="https://a.example/m"`, `Basic, Bearer a=1`, `Negotiate YQ==`, `Bearer x="\"", Y=z`, `Bearer x="a"b`, ",,", "Bearer x=1, X=1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseChallenges([]string{s})
		if err != nil {
			if got != nil {
				t.Error("an error with challenges")
			}
			return
		}
		if len(got) > maxChallenges {
			t.Errorf("%d challenges", len(got))
		}
		var again []string
		for _, c := range got {
			line := c.scheme
			if c.token68 != "" {
				line += " " + c.token68
			}
			var params []string
			for name, value := range c.params {
				params = append(params, name+`="`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)+`"`)
			}
			if len(params) > 0 {
				line += " " + strings.Join(params, ", ")
			}
			again = append(again, line)
		}
		if strings.Join(again, ", ") == "" || len(strings.Join(again, ", ")) > maxChallengeBytes {
			return
		}
		back, err := parseChallenges(again)
		if err != nil || !reflect.DeepEqual(back, got) {
			t.Errorf("%q is read as %+v, which is read as %+v, %v", s, got, back, err)
		}
	})
}
