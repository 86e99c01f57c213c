package interpreter

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// mostMessage is how many bytes of one text from a cell are passed on. The text may be
	// a whole stack trace, and it is stored once for each cell.
	mostMessage = 1024
	// mostListed is how many cells a condition's message speaks of. What else there is, is
	// in the status of the cells.
	mostListed = 8
)

// Clip cuts a text to at most so many bytes, between characters.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// firstLine is a text without what follows its first line: Lua's errors bring a stack trace.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// sentence joins what there is to say of several cells.
func sentence(parts []string) string {
	if len(parts) <= mostListed {
		return strings.Join(parts, "; ")
	}
	return fmt.Sprintf("%s; and %d more cells", strings.Join(parts[:mostListed], "; "), len(parts)-mostListed)
}

// named lists cells by name.
func named(cells []string) string {
	switch {
	case len(cells) == 1:
		return "cell " + cells[0]
	case len(cells) <= mostListed:
		return "cells " + strings.Join(cells, ", ")
	}
	return fmt.Sprintf("cells %s and %d more", strings.Join(cells[:mostListed], ", "), len(cells)-mostListed)
}
