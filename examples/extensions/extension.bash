# Extensions in bash: source this file, write functions, call extension_run.
#
#   on_EVENT    is called for the event EVENT with the request as $1. It answers by
#               calling block, ask, replace_args, result, keep, append_system,
#               cancel, summary or reply; if it calls none it has no opinion.
#   tool_NAME   runs the tool NAME with its arguments, a JSON object, as $1. What it
#               prints is the result; a status other than 0 makes it an error.
#
# Both may use field. What an on_ function prints goes to standard error, and so to
# the log: standard output belongs to the protocol. A function that doesn't know how
# to go on must end the extension (die): its on_failure then decides. Needs jq.
#
# bash reads a pipe byte by byte, about 1 MB a second: name the events that you need
# in the configuration, and leave `context` to another language.

extension_tools='[]'
extension_reply='{}'

# field PATH [JSON] prints what jq finds at PATH in the request, or in JSON, and
# nothing if it is absent. $(…) cuts line ends off its end.
field() { jq -rj "$1 // empty" <<<"${2:-$extension_request}"; }

# reply JSON answers with an object of your own.
reply() { extension_reply=$1; }

# log_line TEXT puts a line into the log and the record, beside any answer.
log_line() { extension_text "$1" '.log = $v'; }

block() { extension_text "${1:-}" '.block = true | .reason = $v'; }
ask() { extension_text "${1:-}" '.ask = true | .reason = $v'; }
# replace_args JSON: the whole new arguments, as in
#   replace_args "$(field '.args | .command |= gsub("http:"; "https:") | tojson')"
replace_args() { extension_json "$1" '.args = $v[0]'; }
# result TEXT replaces a result in on_tool_result.
result() { extension_text "$1" '.content = $v'; }
# keep JSON: a list of the indices of the messages to send.
keep() { extension_json "$1" '.keep = $v[0]'; }
append_system() { extension_text "$1" '.system = $v'; }
cancel() { extension_text '' '.cancel = true'; }
summary() { extension_text "$1" '.summary = $v'; }

# die TEXT ends the extension; TEXT is recorded with its death.
die() {
  printf '%s\n' "$1" >&2
  exit 1
}

# provide NAME DESCRIPTION SCHEMA [MUTATES] announces a tool. MUTATES is true unless
# you say false.
provide() {
  extension_tools=$(jq -cn --argjson list "$extension_tools" --arg name "$1" --arg description "$2" --argjson schema "$3" \
    --argjson mutates "${4:-true}" '$list + [{$name, $description, $schema, $mutates}]') || die "provide $1: SCHEMA and MUTATES must be JSON"
}

# Values go through files: an argument of a program has a limit of 128 KiB.
extension_text() {
  extension_reply=$(jq -c --rawfile v <(printf '%s' "$1") "$2" <<<"$extension_reply") || die "jq can't make a reply: $2"
}
extension_json() {
  extension_reply=$(jq -c --slurpfile v <(printf '%s' "$1") "$2" <<<"$extension_reply") || die "jq can't make a reply: $2"
}

extension_invoke() {
  local name text status=0
  name=$(field .tool)
  if ! declare -F "tool_$name" >/dev/null; then
    die "there is no function tool_$name"
  fi
  # The x keeps the line ends that the result ends with.
  text=$("tool_$name" "$(field '.args | tojson')" && printf x) || status=$?
  if [ "$status" -eq 0 ]; then
    extension_text "${text%x}" '.result = $v'
  else
    extension_text "${text:-the tool ended with status $status}" '.result = $v | .is_error = true'
  fi
}

# A function for an event that there isn't would never be called.
extension_check() {
  local name
  for name in $(compgen -A function on_); do
    case ${name#on_} in
    session_start | session_end | user_prompt_submit | before_agent_start | context | tool_call | permission_request | tool_result | \
      before_compact | turn_end | subagent_end | notification) ;;
    *) die "$name: there is no event ${name#on_}" ;;
    esac
  done
}

# extension_run answers until the input ends.
extension_run() {
  extension_check
  # What a function starts must neither read requests nor write replies.
  exec 3>&1 >&2 4<&0 </dev/null
  while IFS= read -r -u 4 extension_request; do
    extension_reply='{}'
    # `event` is the first member of a request.
    local event=${extension_request#'{"event":"'}
    event=${event%%'"'*}
    case $event in
    list_tools) extension_json "$extension_tools" '.tools = $v[0]' ;;
    invoke_tool) extension_invoke ;;
    *) if declare -F "on_$event" >/dev/null; then "on_$event" "$extension_request"; fi ;;
    esac
    printf '%s\n' "$extension_reply" >&3
  done
}
