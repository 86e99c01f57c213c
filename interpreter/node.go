package interpreter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// node is one value in a JSON document: its text, which is valid JSON as it has come through
// a decoder. Of text that is none, something is read, and nothing panics. The zero node is
// absent.
//
// A context's reports are all read again whenever one of its cells changes. Decoding them
// into anything takes several times as long as walking the text.
type node string

// document is JSON as it comes, in valid UTF-8: a decoder of JSON reads each byte that is
// part of no character as U+FFFD.
func document(raw []byte) node {
	text := string(bytes.TrimSpace(raw))
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	return node(text)
}

// absent tells a value that is null or not there. Lua knows no difference.
func (n node) absent() bool   { return n == "" || n[0] == 'n' }
func (n node) isText() bool   { return n != "" && n[0] == '"' }
func (n node) isObject() bool { return n != "" && n[0] == '{' }
func (n node) isList() bool   { return n != "" && n[0] == '[' }
func (n node) isTruth() bool  { return n == "true" || n == "false" }
func (n node) isNumber() bool { return n != "" && (n[0] == '-' || isDigit(n[0])) }

// isEmpty tells a list or object that has nothing in it but null.
func (n node) isEmpty() bool {
	empty := n.isObject() || n.isList()
	n.each(func(_ string, item node) bool {
		empty = item.absent()
		return empty
	})
	return empty
}

// describe names a value in a fault, as the Lua form can as well: it does not know an empty
// list from an empty object.
func (n node) describe() string {
	switch {
	case n.absent():
		return "missing"
	case n.isText():
		return `the text "` + Clip(n.text(), 64) + `"`
	case n.isNumber():
		return fmt.Sprintf("%.15g", n.number())
	case n.isTruth():
		return string(n)
	case n.isEmpty():
		return "empty"
	case n.isList():
		return "a list"
	}
	return "an object"
}

// text is what a string says; "" where the value is none.
func (n node) text() string {
	if !n.isText() || len(n) < 2 || n[len(n)-1] != '"' {
		return ""
	}
	if text, plain := unescaped(string(n[1 : len(n)-1])); plain {
		return text
	}
	if text, err := strconv.Unquote(string(n)); err == nil && utf8.ValidString(text) {
		return text
	}
	// It has an escape that Go and JSON do not share. Where it is no JSON either, there
	// is no text to be read.
	var text string
	_ = json.Unmarshal([]byte(n), &text)
	return text
}

// unescaped undoes the escapes of single characters, which nearly all are; false where there
// are others.
func unescaped(quoted string) (string, bool) {
	at := strings.IndexByte(quoted, '\\')
	if at < 0 {
		return quoted, true
	}
	var text strings.Builder
	text.Grow(len(quoted))
	for ; at >= 0; at = strings.IndexByte(quoted, '\\') {
		if at+1 == len(quoted) || strings.IndexByte(`"\/`, quoted[at+1]) < 0 {
			return "", false
		}
		text.WriteString(quoted[:at])
		text.WriteByte(quoted[at+1])
		quoted = quoted[at+2:]
	}
	text.WriteString(quoted)
	return text.String(), true
}

// number is a number as a float, which is all that Lua has; 0 where the value is none.
func (n node) number() float64 {
	number, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return 0
	}
	return number
}

// each visits the fields of an object, or the items of a list with "" for a key, until
// visit returns false.
func (n node) each(visit func(key string, item node) bool) {
	if !n.isObject() && !n.isList() {
		return
	}
	rest := string(n[1:])
	for {
		rest = skip(rest, ',')
		var key string
		if n.isObject() {
			quoted := first(rest)
			rest = skip(rest[len(quoted):], ':')
			key = quoted.text()
		}
		item := first(rest)
		if item == "" || !visit(key, item) {
			return
		}
		rest = rest[len(item):]
	}
}

// skip is a text without the blanks and separators that it begins with.
func skip(text string, separator byte) string {
	for at := range len(text) {
		switch text[at] {
		case separator, ' ', '\t', '\r', '\n':
		default:
			return text[at:]
		}
	}
	return ""
}

// first is the value that a text begins with; "" where it begins with none.
func first(text string) node {
	if text == "" {
		return ""
	}
	switch text[0] {
	case '"':
		return node(text[:quotedLength(text)])
	case '{', '[':
		return node(text[:nestedLength(text)])
	}
	for at := range len(text) {
		switch text[at] {
		case ',', ':', ']', '}', ' ', '\t', '\r', '\n':
			return node(text[:at])
		}
	}
	return node(text)
}

// quotedLength is the length of the string that a text begins with.
func quotedLength(text string) int {
	for at := 1; ; {
		end := strings.IndexByte(text[at:], '"')
		if end < 0 {
			return len(text)
		}
		at += end + 1
		escapes := 0
		for text[at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}

// nestedLength is the length of the list or object that a text begins with.
func nestedLength(text string) int {
	depth := 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			at += quotedLength(text[at:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return len(text)
}
