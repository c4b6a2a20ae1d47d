module github.com/abhed/abhed

go 1.26.0

// What the programs link; docs/dependencies.md says why each is here.
require (
	github.com/bmatcuk/doublestar/v4 v4.10.4 // globs of the file tools
	github.com/go-json-experiment/json v1.27.2 // strict JSON, behind internal/strictjson
	github.com/google/jsonschema-go v0.4.3 // tool arguments
	github.com/google/uuid v1.6.0 // UUIDv7
	github.com/modelcontextprotocol/go-sdk v1.8.0 // MCP servers as tools
	github.com/pelletier/go-toml/v2 v2.4.3 // configuration of agents: is it valid, and where is what
	github.com/spf13/cobra v1.10.2 // command line of abhed and ahp
	github.com/tailscale/hujson v0.0.0-20260727124030-b80ff77dac4f // likewise, JSON with comments, which it keeps
	go.opentelemetry.io/otel v1.47.0 // telemetry, off unless configured
	go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp v1.47.0 // likewise
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp v1.47.0 // likewise
	go.opentelemetry.io/otel/metric v1.47.0 // likewise
	go.opentelemetry.io/otel/sdk v1.47.0 // likewise
	go.opentelemetry.io/otel/sdk/metric v1.47.0 // likewise
	go.opentelemetry.io/otel/trace v1.47.0 // likewise
	golang.org/x/net v0.61.0 // the HTML of fetch
	golang.org/x/sys v0.50.0 // openat2, flock
	golang.org/x/text v0.44.0 // Unicode normal form of paths
	mvdan.cc/sh/v3 v3.14.1 // shell parser of the rules
)

// What only tests need.
require (
	github.com/google/go-cmp v0.7.0
	github.com/rogpeppe/go-internal v1.16.0 // testscript
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // the published schemas against the decoders
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0 // properties
)

require (
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.30.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/proto/otlp v1.11.0 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/grpc v1.83.2 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
