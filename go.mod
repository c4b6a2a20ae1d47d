module github.com/abhed/abhed

go 1.26.0

// What the programs link; docs/dependencies.md says why each is here.
require (
	github.com/bmatcuk/doublestar/v4 v4.10.4 // globs of the file tools
	github.com/go-json-experiment/json v1.27.2 // strict JSON, behind internal/strictjson
	github.com/google/jsonschema-go v0.4.3 // tool arguments
	github.com/google/uuid v1.6.0 // UUIDv7
	github.com/spf13/cobra v1.10.2 // command line of abhed
	golang.org/x/sys v0.50.0 // openat2, flock
	golang.org/x/text v0.44.0 // Unicode normal form of paths
	mvdan.cc/sh/v3 v3.14.1 // shell parser of the rules
)

// What only tests need.
require (
	github.com/google/go-cmp v0.7.0
	github.com/rogpeppe/go-internal v1.16.0 // testscript
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0 // properties
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	golang.org/x/tools v0.52.0 // indirect
)
