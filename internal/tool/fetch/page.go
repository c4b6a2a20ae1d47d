package fetch

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

const (
	maxLists = 50   // lists in lists whose items are told apart
	maxLink  = 2000 // bytes of the URL of a link
)

// pageText returns the text of an HTML page, at most limit bytes, and whether there is
// more. It goes through the page's tags once, so a page in disorder, or one nested
// without end, costs no more than another.
func pageText(base *url.URL, content string, limit int) (text string, more bool) {
	p := &page{base: base, limit: limit}
	z := html.NewTokenizer(strings.NewReader(content))
	for p.out.Len() <= limit {
		switch z.Next() {
		case html.ErrorToken: // the end
			p.closeLink()
			return p.end()
		case html.TextToken:
			p.text(string(z.Text()))
		case html.StartTagToken:
			name, attrs := z.TagName()
			p.start(string(name), attributes(z, attrs), false)
		case html.SelfClosingTagToken:
			name, attrs := z.TagName()
			p.start(string(name), attributes(z, attrs), true)
		case html.EndTagToken:
			name, _ := z.TagName()
			p.stop(string(name))
		}
	}
	return p.end()
}

// attributes returns those that count.
func attributes(z *html.Tokenizer, more bool) map[string]string {
	var out map[string]string
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "href", "alt":
			if out == nil {
				out = map[string]string{}
			}
			out[string(key)] = string(value)
		}
	}
	return out
}

// page is a page on its way to text.
type page struct {
	base  *url.URL
	limit int
	out   strings.Builder
	title string

	breaks int    // newlines to write before the next text
	space  bool   // a space to write before it
	mark   string // what begins the next line of text
	pre    bool
	fresh  bool // nothing but a newline was written in a pre
	cell   bool // a cell of this row has been written

	skip    string // the element whose content is dropped, "" for none
	depth   int    // how often it is open
	inTitle bool
	lists   []int // the last number of each open list, -1 for one without numbers
	deeper  int   // lists beyond those
	ticks   int   // pieces of code that are open
	link    string
	linkAt  int // where its text began
}

func (p *page) end() (text string, more bool) {
	if p.pre {
		p.stop("pre")
	}
	head := ""
	if p.title != "" {
		head = "Title: " + p.title + "\n\n"
	}
	return clip(head+p.out.String(), p.limit)
}

// dropped are the elements of which nothing is shown.
func dropped(name string) bool {
	switch name {
	case "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas", "audio", "video", "textarea", "select", "noembed", "noframes":
		return true
	}
	return false
}

// space around an element, in newlines; 0 is none.
func spaceAround(name string) int {
	switch name {
	case "p", "ul", "ol", "dl", "table", "blockquote", "pre", "section", "article", "header", "footer", "nav", "aside", "main", "form", "figure", "details":
		return 2
	case "div", "li", "dt", "dd", "tr", "address", "figcaption", "summary", "fieldset", "legend", "caption", "option", "hr", "body", "center":
		return 1
	}
	return 0
}

func (p *page) start(name string, attrs map[string]string, closed bool) {
	if p.skip != "" {
		if name == p.skip && !closed {
			p.depth++
		}
		return
	}
	if dropped(name) {
		if !closed {
			p.skip, p.depth = name, 1
		}
		return
	}
	p.block(spaceAround(name))
	switch name {
	case "title":
		p.inTitle = !closed
	case "base":
		if u, err := p.base.Parse(strings.TrimSpace(attrs["href"])); err == nil && len(attrs["href"]) <= maxLink {
			p.base = u
		}
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.block(2)
		p.mark = strings.Repeat("#", int(name[1]-'0')) + " "
	case "br":
		p.newline()
	case "hr":
		p.emit("---")
		p.block(1)
	case "ul", "ol":
		p.list(name == "ol")
	case "li":
		p.mark = p.bullet()
	case "tr":
		p.cell = false
	case "td", "th":
		if p.cell {
			p.emit(" |")
			p.space = true
		}
		p.cell = true
	case "pre":
		if !p.pre {
			p.emit("```\n")
			p.pre, p.fresh = true, true
		}
	case "code", "kbd", "samp":
		p.tick()
	case "img":
		if alt := strings.TrimSpace(attrs["alt"]); alt != "" {
			p.space = true
			p.text("[image: " + alt + "] ")
		}
	case "a":
		p.closeLink()
		p.link, p.linkAt = strings.TrimSpace(attrs["href"]), p.out.Len()
	}
}

func (p *page) stop(name string) {
	if p.skip != "" {
		if name == p.skip {
			if p.depth--; p.depth == 0 {
				p.skip = ""
			}
		}
		return
	}
	switch name {
	case "title":
		p.inTitle = false
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.mark = ""
		p.block(2)
	case "li":
		p.mark = ""
	case "ul", "ol":
		if p.deeper > 0 {
			p.deeper--
		} else if len(p.lists) > 0 {
			p.lists = p.lists[:len(p.lists)-1]
		}
		if len(p.lists) > 0 {
			p.block(1)
			return
		}
	case "pre":
		if p.pre {
			if !strings.HasSuffix(p.out.String(), "\n") {
				p.out.WriteByte('\n')
			}
			p.out.WriteString("```")
			p.pre = false
		}
	case "code", "kbd", "samp":
		if !p.pre && p.ticks > 0 {
			p.ticks--
			p.out.WriteByte('`')
		}
	case "a":
		p.closeLink()
	}
	p.block(spaceAround(name))
}

func (p *page) list(ordered bool) {
	if len(p.lists) >= maxLists {
		p.deeper++
		return
	}
	if len(p.lists) > 0 {
		p.breaks = min(p.breaks, 1)
	}
	p.lists = append(p.lists, -1)
	if ordered {
		p.lists[len(p.lists)-1] = 0
	}
}

// bullet returns what begins an item of the innermost list.
func (p *page) bullet() string {
	if len(p.lists) == 0 {
		return "- "
	}
	last := &p.lists[len(p.lists)-1]
	indent := strings.Repeat("  ", len(p.lists)-1)
	if *last < 0 {
		return indent + "- "
	}
	*last++
	return fmt.Sprintf("%s%d. ", indent, *last)
}

// block asks for newlines before the next text.
func (p *page) block(newlines int) {
	if newlines > 0 && !p.pre {
		p.breaks, p.space = max(p.breaks, newlines), false
	}
}

func (p *page) newline() {
	if p.pre {
		p.out.WriteByte('\n')
		return
	}
	p.breaks, p.space = min(p.breaks+1, 2), false
}

// tick begins a piece of code in a line.
func (p *page) tick() {
	if !p.pre {
		p.ticks++
		p.emit("`")
	}
}

func (p *page) text(s string) {
	switch {
	case p.inTitle:
		if p.skip == "" && p.title == "" {
			p.title, _ = clip(visible(strings.Join(strings.Fields(s), " ")), 500)
		}
		return
	case p.skip != "":
		return
	}
	s = visible(s)
	if p.pre {
		if p.fresh {
			s = strings.TrimPrefix(s, "\n") // HTML drops it
		}
		p.fresh = false
		p.out.WriteString(s)
		return
	}
	if first, _ := utf8.DecodeRuneInString(s); unicode.IsSpace(first) {
		p.space = true
	}
	for word := range strings.FieldsSeq(s) {
		p.emit(word)
		p.space = true
	}
	if last, _ := utf8.DecodeLastRuneInString(s); s != "" && !unicode.IsSpace(last) {
		p.space = false
	}
}

// emit writes text with what is due before it.
func (p *page) emit(s string) {
	empty := p.out.Len() == 0
	switch {
	case p.breaks > 0 && !empty:
		p.out.WriteString("\n\n"[:p.breaks])
	case p.space && !empty && p.mark == "":
		p.out.WriteByte(' ')
	}
	p.out.WriteString(p.mark)
	p.out.WriteString(s)
	p.breaks, p.space, p.mark = 0, false, ""
}

// closeLink writes where a link leads behind its text.
func (p *page) closeLink() {
	link := p.link
	p.link = ""
	if link == "" || link[0] == '#' || p.out.Len() >= p.limit {
		return
	}
	u, err := p.base.Parse(link)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" && u.Scheme != "ftp" {
		return
	}
	target := u.Redacted()
	if len(target) > maxLink {
		return
	}
	text := strings.TrimSpace(p.out.String()[min(p.linkAt, p.out.Len()):])
	if text == target || text == link {
		return
	}
	after := p.space
	p.space = true
	breaks := p.breaks // of blocks that ended in the link
	p.breaks = 0
	p.emit("(" + target + ")")
	p.space, p.breaks = after, breaks
}
