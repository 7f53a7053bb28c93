package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of the text. The parser's time grows with the square of a map's length and of the depth of nesting, so both
// are bounded before it sees them.
const (
	maxTokens = 100_000
	maxDepth  = 20
)

// quoteHint is the remedy of most syntax errors.
const quoteHint = `put a text in quotes if it begins with * & ! %% @ [ { > | or holds ": " or " #", such as "* * * * *"`

// readTree turns the source into a tree. On a fault that leaves nothing to read it returns nil.
func (r *reader) readTree(src []byte) *node {
	src, ok := r.cleanSource(src)
	if !ok {
		return nil
	}
	text := string(src)
	r.lines = strings.Split(text, "\n")
	tokens, ok := r.tokens(text)
	if !ok {
		return nil
	}
	file, err := parseTokens(tokens)
	if err != nil {
		r.syntax(err)
		return nil
	}
	var root *node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		n := r.tree(doc.Body, 0)
		if root != nil {
			r.fault(n.pos, daybook.Invalid("a second YAML document begins here").WithHint("keep one document: remove the --- before it, or what follows"))
			break
		}
		root = n
	}
	if root == nil && r.count() == 0 {
		r.fault(pos{1, 1}, daybook.Invalid("the file is empty").WithHint("daybook init writes a file to start from"))
	}
	return root
}

// cleanSource takes the byte order mark and carriage returns away and refuses what cannot be text.
func (r *reader) cleanSource(src []byte) ([]byte, bool) {
	if len(src) > MaxFileBytes {
		r.fault(pos{}, daybook.Invalid("the file has more than %d MB", MaxFileBytes>>20).WithHint("a file of jobs is small: move data out of it"))
		return nil, false
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	r.lines = strings.Split(strings.ToValidUTF8(string(src), "�"), "\n")
	line, column := 1, 1
	for i := 0; i < len(src); {
		c, size := utf8.DecodeRune(src[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			err := daybook.Invalid("byte 0x%02x is not UTF-8", src[i]).WithHint("save the file as UTF-8")
			if i < 2 && (bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff"))) {
				_ = err.WithHint("the file is UTF-16: save it as UTF-8")
			}
			r.fault(pos{line, column}, err)
			return nil, false
		case c == 0:
			r.fault(pos{line, column}, daybook.Invalid("a NUL byte").WithHint("remove it; the file may be damaged or not be text"))
			return nil, false
		case c == '\r':
			r.fault(pos{line, column}, daybook.Invalid("a carriage return without a line feed").WithHint("end lines with LF or CRLF"))
			return nil, false
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f, c >= 0x80 && c < 0xa0, c == 0xfeff, c == 0x2028, c == 0x2029:
			r.fault(pos{line, column}, daybook.Invalid("control character U+%04X", c).WithHint("remove it"))
			return nil, false
		}
		if c == '\n' {
			line, column = line+1, 0
		}
		column++
		i += size
	}
	return src, true
}

// tokens splits the text and refuses, before the parser builds anything, what this file has no use for: names and
// repetitions of nodes, types, directives, and nesting without end.
func (r *reader) tokens(text string) (toks token.Tokens, ok bool) {
	defer func() {
		if p := recover(); p != nil { // a fault of the scanner on odd input must not end the daemon that reloads
			r.fault(pos{1, 1}, daybook.Invalid("the file is not YAML that can be read: %v", p).WithHint(quoteHint))
			ok = false
		}
	}()
	toks = lexer.Tokenize(text)
	if len(toks) > maxTokens {
		r.fault(pos{}, daybook.Invalid("the file has more than %d words and signs", maxTokens).WithHint("split it into several ledgers"))
		return nil, false
	}
	before := r.count()
	depth, dashes, last, colon := 0, 0, 0, 0
	for _, t := range toks {
		at := positionOf(t)
		if t.Type == token.SequenceEntryType {
			dashes++
		} else {
			dashes = 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.AnchorType, token.AliasType:
			if at.line == last { // once a line: five stars are one slip
				continue
			}
			last = at.line
			r.fault(at, daybook.Invalid("anchors and aliases (& and *) are not used in this file").WithHint("put a text that begins with %s in quotes; for what all jobs share use defaults", t.Value))
		case token.MergeKeyType:
			last = at.line
			r.fault(at, daybook.Invalid("merge keys (<<) are not used in this file").WithHint("use defaults for what all jobs share"))
		case token.TagType:
			r.fault(at, daybook.Invalid("tags (!) are not used in this file").WithHint(`remove it; a text that begins with ! is put in quotes`))
		case token.DirectiveType:
			r.fault(at, daybook.Invalid("directives (%%) are not used in this file").WithHint("remove the line; a text that begins with %% is put in quotes"))
		case token.MappingKeyType:
			r.fault(at, daybook.Invalid("keys written with ? are not used in this file").WithHint("write name: value; a text that begins with ? is put in quotes"))
		}
		if t.Type == token.MappingValueType && depth == 0 {
			if at.line == colon { // the parser would find it as well, in time that grows with the square
				r.fault(at, errColon)
				return nil, false
			}
			colon = at.line
		}
		if depth > maxDepth || dashes > maxDepth || t.Type == token.MappingValueType && t.Position.IndentNum > 10*maxDepth {
			r.fault(at, daybook.Invalid("more than %d levels of nesting", maxDepth).WithHint("nothing in this file needs it"))
			return nil, false
		}
	}
	return toks, r.count() == before
}

func parseTokens(toks token.Tokens) (f *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil { // as above
			err = fmt.Errorf("the file is not YAML that can be read: %v", p)
		}
	}()
	return parser.Parse(toks, 0, parser.AllowDuplicateMapKey())
}

func positionOf(t *token.Token) pos {
	if t == nil || t.Position == nil {
		return pos{1, 1}
	}
	return pos{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// tree copies a node of the parser into one of ours: the kinds this file uses, each with its position.
func (r *reader) tree(n ast.Node, depth int) *node {
	if n == nil || depth > 10*maxDepth {
		return &node{kind: isNull, pos: pos{1, 1}}
	}
	t := n.GetToken()
	out := &node{pos: positionOf(t)}
	if t != nil {
		out.text = t.Value
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		out.kind = isMap
		for _, value := range v.Values {
			r.entry(out, value, depth)
		}
		if len(out.pairs) > 0 && !v.IsFlowStyle { // the parser gives the place of the first ':'
			out.pos = out.pairs[0].key.pos
		}
	case *ast.MappingValueNode:
		out.kind = isMap
		r.entry(out, v, depth)
		if len(out.pairs) > 0 {
			out.pos = out.pairs[0].key.pos
		}
	case *ast.SequenceNode:
		out.kind = isList
		for _, item := range v.Values {
			out.items = append(out.items, r.tree(item, depth+1))
		}
	case *ast.StringNode:
		out.kind, out.text = isText, v.Value
		out.quoted = t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
	case *ast.LiteralNode:
		out.kind, out.quoted = isText, true
		if v.Value != nil {
			out.text = v.Value.Value
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.kind = isNumber
	case *ast.BoolNode:
		out.kind = isBool
	case *ast.NullNode:
		out.kind = isNull
	default:
		out.kind = isNull
		r.fault(out.pos, daybook.Invalid("not valid here").WithHint(quoteHint))
	}
	return out
}

func (r *reader) entry(out *node, v *ast.MappingValueNode, depth int) {
	key := &node{kind: isText, pos: positionOf(v.Key.GetToken())}
	if t := v.Key.GetToken(); t != nil {
		key.text = t.Value
	}
	switch v.Key.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
	default:
		r.fault(key.pos, daybook.Invalid("a list or a map stands where a name is needed").WithHint("a name is a plain text"))
		return
	}
	value := r.tree(v.Value, depth+1)
	if value.kind == isNull && v.Value.GetToken().Type == token.ImplicitNullType {
		value.pos, value.text = key.pos, ""
	}
	out.pairs = append(out.pairs, pair{key, value})
}
