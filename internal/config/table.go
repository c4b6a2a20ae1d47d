package config

// settingsSpec is the table of every setting that exists (abhed.md,
// Configuration; extensions.md, Configuration).
func settingsSpec() *spec {
	return &spec{shape: shapeObject, doc: "Settings of Abhed.", fields: []field{
		{name: "$schema", spec: spec{doc: "Where the JSON Schema of this file is; for editors only."}},
		{name: "model", spec: spec{doc: "The model to use, as provider/model.", check: modelName}},
		{name: "sampling", spec: samplingSpec()},
		{name: "custom_providers", spec: spec{shape: shapeList, merge: mergeNamed, doc: "Model endpoints beside the built-in ones.", elem: providerSpec()}},
		{name: "permissions", spec: permissionsSpec()},
		{name: "extensions", spec: spec{shape: shapeList, merge: mergeUnion, doc: "Extensions, in the order they are started.", elem: extensionSpec()}},
		{name: "ahp", spec: spec{shape: shapeObject, doc: "Agent Hooks Protocol.", fields: []field{
			{name: "registration", spec: spec{doc: "The file that registers AHP backends.", path: true, check: filePath}},
		}}},
		{name: "mcp", spec: spec{shape: shapeMap, merge: mergeNamed, doc: "MCP servers by name.", anyKey: serverName, elem: mcpSpec()}},
		{name: "sandbox", spec: sandboxSpec()},
		{name: "limits", spec: limitsSpec()},
		{name: "secrets", spec: spec{shape: shapeObject, doc: "What must never enter the record or a log.", fields: []field{
			{name: "env", spec: listOf(mergeUnion, "Names of variables whose values are secret.", spec{check: variableName, quiet: true})},
			{name: "files", spec: listOf(mergeUnion, "Files whose contents are secret.", spec{path: true, check: filePath})},
		}}},
		{name: "record", spec: spec{shape: shapeObject, doc: "The session record.", fields: []field{
			{name: "anchor", spec: spec{doc: "A program or URL that receives each signed head.", prog: true, check: anchorTarget}},
		}}},
		{name: "models", spec: spec{shape: shapeMap, merge: mergeNamed, doc: "What is known of models, by provider/model.", anyKey: qualifiedModel, elem: modelSpec()}},
		{name: "context", spec: contextSpec()},
		{name: "tools", spec: spec{shape: shapeObject, doc: "Which tools the model is offered.", fields: []field{
			{name: "disabled", spec: listOf(mergeUnion, "Tools that are neither offered nor run; every source may add some and none takes one back.", spec{check: toolName})},
		}}},
		{name: "skills", spec: spec{shape: shapeObject, doc: "Instructions that the model loads when it needs them.", fields: []field{
			{name: "paths", spec: listOf(mergeUnion, "Folders that hold skills.", spec{path: true, check: filePath})},
		}}},
		{name: "mcp_budget_tokens", spec: spec{shape: shapeInt, max: 1e9, def: "10000", doc: "How many tokens the descriptions of MCP tools may take in a prompt; tools beyond it are loaded on demand."}},
		{name: "http", spec: httpSpec()},
		{name: "telemetry", spec: spec{shape: shapeObject, doc: "Spans and measurements by OpenTelemetry; off without an endpoint.", fields: []field{
			{name: "otlp_endpoint", spec: spec{check: endpointURL, quiet: true, doc: "The collector's OTLP address over HTTP, without /v1/traces."}},
			{name: "headers_env", spec: spec{shape: shapeMap, anyKey: headerName, elem: &spec{check: variableName, quiet: true}, doc: "Headers to send, and the variable that holds each one's value."}},
		}}},
	}}
}

func listOf(m merge, doc string, elem spec) spec {
	return spec{shape: shapeList, merge: m, doc: doc, elem: &elem}
}

func samplingSpec() spec {
	return spec{shape: shapeObject, doc: "Sampling parameters. One that is absent is never sent.", fields: []field{
		{name: "temperature", spec: spec{shape: shapeNumber, max: 10}},
		{name: "top_p", spec: spec{shape: shapeNumber, max: 1}},
		{name: "top_k", spec: spec{shape: shapeInt, max: 1e9}},
		{name: "min_p", spec: spec{shape: shapeNumber, max: 1}},
		{name: "seed", spec: spec{shape: shapeInt, min: -1 << 53, max: 1 << 53}},
		{name: "frequency_penalty", spec: spec{shape: shapeNumber, min: -10, max: 10}},
		{name: "presence_penalty", spec: spec{shape: shapeNumber, min: -10, max: 10}},
		{name: "repetition_penalty", spec: spec{shape: shapeNumber, max: 10}},
		{name: "max_tokens", spec: spec{shape: shapeInt, min: 1, max: 1e9, doc: "The most tokens of one reply."}},
		{name: "stop", spec: listOf(mergeHighest, "Texts that end a reply.", spec{check: nonEmpty})},
		{name: "effort", spec: spec{check: plainName, doc: "How hard a reasoning model thinks, in the endpoint's own word."}},
		{name: "thinking_budget", spec: spec{shape: shapeInt, max: 1e9, doc: "The most tokens spent on thinking."}},
	}}
}

func providerSpec() *spec {
	return &spec{shape: shapeObject, fields: []field{
		{name: "name", required: true, spec: spec{check: providerName, doc: "The part before the / of a model's name."}},
		{name: "api", required: true, spec: spec{enum: APIs(), doc: "The API it speaks; never guessed."}},
		{name: "base_url", spec: spec{check: nonEmpty, quiet: true, doc: "The API's base URL; for the script API the script's file."}},
		{name: "api_key_env", spec: spec{check: variableName, quiet: true, doc: "The variable that holds the key."}},
		{name: "headers_env", spec: spec{shape: shapeMap, anyKey: headerName, elem: &spec{check: variableName, quiet: true}, doc: "Headers to send, and the variable that holds each one's value."}},
		{name: "sampling", spec: listOf(mergeHighest, "The sampling parameters that the endpoint honours.", spec{enum: SamplingNames()})},
		{name: "models", spec: spec{shape: shapeMap, anyKey: modelName, elem: modelSpec(), doc: "What is known of its models, by name."}},
		{name: "description", spec: spec{}},
	}}
}

func modelSpec() *spec {
	price := spec{shape: shapeNumber, max: 1e6}
	return &spec{shape: shapeObject, fields: []field{
		{name: "context_window", spec: spec{shape: shapeInt, min: 1, max: 1e9, doc: "Tokens of prompt and reply together."}},
		{name: "output_limit", spec: spec{shape: shapeInt, min: 1, max: 1e9, doc: "Tokens of one reply."}},
		{name: "images", spec: spec{shape: shapeBool, doc: "Whether it sees images."}},
		{name: "price", spec: spec{shape: shapeObject, doc: "US dollars for a million tokens.", fields: []field{
			{name: "input", spec: price}, {name: "output", spec: price}, {name: "cache_read", spec: price}, {name: "cache_write", spec: price},
		}}},
	}}
}

func permissionsSpec() spec {
	rule := spec{check: ruleShape}
	return spec{shape: shapeObject, doc: "What may run without a question.", fields: []field{
		{name: "mode", spec: spec{enum: Modes(), def: `"default"`, merge: mergeBound, strict: byOrder(Modes(), false), doc: "The permission mode; managed and project values only make it stricter."}},
		{name: "max_mode", spec: spec{enum: Modes(), def: `"bypass"`, merge: mergeStrictest, strict: byOrder(Modes(), false), doc: "The least strict mode that may ever be in force."}},
		{name: "allow", spec: listOf(mergeUnion, "Rules that allow.", rule)},
		{name: "ask", spec: listOf(mergeUnion, "Rules that ask.", rule)},
		{name: "deny", spec: listOf(mergeUnion, "Rules that deny.", rule)},
		{name: "runners", spec: listOf(mergeUnion, "Programs that run the command in their arguments, as ssh does.", spec{check: nonEmpty})},
		{name: "env_harmless", spec: listOf(mergeHighest, "Variables whose assignment before a command changes no judgement.", spec{check: variableName})},
	}}
}

func extensionSpec() *spec {
	return &spec{shape: shapeObject, fields: []field{
		{name: "name", required: true, spec: spec{check: plainName, doc: "Its identity."}},
		{name: "command", required: true, spec: spec{prog: true, check: filePath, doc: "The program; never run through a shell."}},
		{name: "args", spec: listOf(mergeHighest, "Its arguments.", spec{})},
		{name: "env", spec: spec{shape: shapeMap, anyKey: settableVariable, elem: &spec{hidden: true}, doc: "Variables added to the allow-listed ones."}},
		{name: "cwd", spec: spec{path: true, check: filePath, doc: "Its working directory."}},
		{name: "events", spec: listOf(mergeHighest, "The events it is asked about; none means all.", spec{enum: ExtensionEvents()})},
		{name: "match", spec: listOf(mergeHighest, "Rules that narrow tool_call and permission_request.", spec{check: ruleShape})},
		{name: "timeout_ms", spec: spec{shape: shapeInt, min: 1, max: 86_400_000, def: "5000"}},
		{name: "invoke_timeout_ms", spec: spec{shape: shapeInt, min: 1, max: 86_400_000, def: "120000"}},
		{name: "sandbox", spec: spec{shape: shapeBool, def: "false", doc: "Run the extension itself confined."}},
		{name: "on_failure", spec: spec{enum: []string{"skip", "ask", "block"}, def: `"skip"`, doc: "What a dead extension means for what it would have judged."}},
	}}
}

func contextSpec() spec {
	return spec{shape: shapeObject, doc: "What of a long conversation the model is sent.", fields: []field{
		{name: "compaction", spec: spec{enum: Compactions(), def: `"auto"`, doc: "Whether a conversation that gets too long for the model is summed up."}},
		{name: "threshold", spec: spec{shape: shapeNumber, min: 0.1, max: 0.99, def: "0.8", doc: "The share of the context window from which on that is done."}},
		{name: "keep_results", spec: spec{shape: shapeInt, max: 1e6, def: "20", doc: "How many of the newest tool results are always sent whole."}},
		{name: "stub_bytes", spec: spec{shape: shapeInt, max: 1e9, def: "4096", doc: "Older results of more bytes are sent as a stub; 0 means never."}},
	}}
}

func httpSpec() spec {
	return spec{shape: shapeObject, doc: "Requests to model APIs.", fields: []field{
		{name: "ca_file", spec: spec{path: true, check: filePath, doc: "A PEM file of certificate authorities to trust beside the system's."}},
		{name: "stall_seconds", spec: spec{shape: shapeInt, min: 1, max: 86400, def: "60", doc: "The longest wait for the next byte of a reply."}},
		{name: "retries", spec: spec{shape: shapeInt, max: 100, def: "5", doc: "How often a request is tried again after a failure that may pass."}},
	}}
}

func sandboxSpec() spec {
	return spec{shape: shapeObject, doc: "How tools are confined.", fields: []field{
		{name: "min_tier", spec: spec{enum: Tiers(), def: `"process"`, merge: mergeBound, strict: byOrder(Tiers(), true), doc: "The least confinement that will do."}},
		{name: "network", spec: spec{shape: shapeBool, def: "false", merge: mergeBound, strict: byFalse, doc: "Whether tools may use the network."}},
		{name: "home_paths", spec: listOf(mergeHighest, "Paths under the home folder that tools may read.", spec{path: true, check: filePath})},
	}}
}

func limitsSpec() spec {
	limit := func(shape shape, def, doc string) spec {
		return spec{shape: shape, max: 1e12, def: def, merge: mergeBound, strict: byLimit, doc: doc}
	}
	seconds := limit(shapeInt, "0", "The most seconds of a run; 0 is no limit.")
	seconds.max = 1e9
	return spec{shape: shapeObject, doc: "Bounds of one run; managed and project values only lower them.", fields: []field{
		{name: "max_turns", spec: limit(shapeInt, "100", "The most model calls of a run; 0 is no limit.")},
		{name: "max_tokens", spec: limit(shapeInt, "0", "The most tokens of a run; 0 is no limit.")},
		{name: "max_cost_usd", spec: limit(shapeNumber, "0", "The most US dollars of a run; 0 is no limit.")},
		{name: "max_seconds", spec: seconds},
	}}
}
