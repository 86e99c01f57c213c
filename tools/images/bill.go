package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
)

// bill is a software bill of materials: an SPDX 2.3 document, https://spdx.github.io/spdx-spec/v2.3.
type bill struct {
	SPDXVersion       string         `json:"spdxVersion"`
	DataLicense       string         `json:"dataLicense"`
	SPDXID            string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	CreationInfo      creation       `json:"creationInfo"`
	Packages          []material     `json:"packages"`
	Relationships     []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type material struct {
	SPDXID           string      `json:"SPDXID"`
	Name             string      `json:"name"`
	VersionInfo      string      `json:"versionInfo"`
	DownloadLocation string      `json:"downloadLocation"`
	FilesAnalyzed    bool        `json:"filesAnalyzed"`
	LicenseConcluded string      `json:"licenseConcluded"`
	LicenseDeclared  string      `json:"licenseDeclared"`
	CopyrightText    string      `json:"copyrightText"`
	ExternalRefs     []reference `json:"externalRefs"`
}

type reference struct {
	ReferenceCategory string `json:"referenceCategory"`
	ReferenceType     string `json:"referenceType"`
	ReferenceLocator  string `json:"referenceLocator"`
}

type relationship struct {
	SPDXElementID      string `json:"spdxElementId"`
	RelationshipType   string `json:"relationshipType"`
	RelatedSPDXElement string `json:"relatedSpdxElement"`
}

const (
	document    = "SPDXRef-DOCUMENT"
	noAssertion = "NOASSERTION"
)

// writeBill writes what a Go binary is made of, as the binary itself tells.
func writeBill(binary, name, version, file string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read what %s is made of: %w", name, err)
	}
	sum := sha256.Sum256(content)
	b := bill{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: document, Name: name + " " + version,
		DocumentNamespace: fmt.Sprintf("https://go.datum.net/network-presence/spdx/%s-%s", name, hex.EncodeToString(sum[:])),
		CreationInfo:      creation{Created: made.Format("2006-01-02T15:04:05Z"), Creators: []string{"Tool: network-presence-images"}},
	}
	root := b.add(0, &debug.Module{Path: info.Main.Path, Version: version})
	b.relate(document, "DESCRIBES", root)
	b.relate(root, "DEPENDS_ON", b.add(1, &debug.Module{Path: "stdlib", Version: info.GoVersion}))
	for n, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		b.relate(root, "DEPENDS_ON", b.add(n+2, module))
	}
	written, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(written, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the bill of materials: %w", err)
	}
	return nil
}

// add adds a module and returns its identifier.
func (b *bill) add(number int, module *debug.Module) string {
	identifier := fmt.Sprintf("SPDXRef-%d", number)
	b.Packages = append(b.Packages, material{
		SPDXID: identifier, Name: module.Path, VersionInfo: module.Version,
		DownloadLocation: noAssertion, LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, CopyrightText: noAssertion,
		ExternalRefs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + module.Path + "@" + module.Version}},
	})
	return identifier
}

func (b *bill) relate(one, how, other string) {
	b.Relationships = append(b.Relationships, relationship{one, how, other})
}
