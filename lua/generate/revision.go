package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/scanner"
	"go/token"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// notRules are the files of package interpreter that change no answer.
var notRules = []string{"doc.go", "handler.go", "zz_generated.revision.go"}

// revision is a hash of the rules in both forms, the Go files in one folder and the scripts
// in another: of their statements, so that a comment does not have every context written.
func revision(interpreter, scripts string) (string, error) {
	sum := sha256.New()
	sources, err := filepath.Glob(filepath.Join(interpreter, "*.go"))
	if err != nil {
		return "", fmt.Errorf("find the rules in %s: %w", interpreter, err)
	}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") || slices.Contains(notRules, filepath.Base(path)) {
			continue
		}
		if err := hashFile(sum, path, hashGo); err != nil {
			return "", err
		}
	}
	lua, err := filepath.Glob(filepath.Join(scripts, "*.lua"))
	if err != nil {
		return "", fmt.Errorf("find the scripts in %s: %w", scripts, err)
	}
	for _, path := range lua {
		if err := hashFile(sum, path, hashLua); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

func hashFile(sum hash.Hash, path string, add func(hash.Hash, []byte)) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	add(sum, source)
	return nil
}

// hashGo adds a file's tokens, of which a file that does not compile has some as well.
func hashGo(sum hash.Hash, source []byte) {
	var tokens scanner.Scanner
	files := token.NewFileSet()
	tokens.Init(files.AddFile("", files.Base(), len(source)), source, nil, 0)
	for {
		_, kind, text := tokens.Scan()
		switch {
		case kind == token.EOF:
			return
		case kind == token.SEMICOLON && text == "\n":
			continue // the end of a line
		}
		_, _ = fmt.Fprintln(sum, kind, text) // a hash takes everything
	}
}

// hashLua adds a script's lines without those that are empty or a comment.
func hashLua(sum hash.Hash, source []byte) {
	for line := range strings.Lines(string(source)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "--") {
			continue
		}
		// A hash does not fail to take what is written to it.
		_, _ = io.WriteString(sum, line+"\n")
	}
}
