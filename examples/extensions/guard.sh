#!/bin/sh
# A guard without any helper program: it refuses a bash call whose command fits
# one of the shell patterns given as arguments, or of the few below.
#
#   {"name": "guard", "command": "sh", "args": ["guard.sh", "*curl*|*sh*"], "events": ["tool_call"]}
#
# It looks at the command alone. A description that only talks about "rm -rf" must
# not trip it, so matching the whole line would be wrong. This is an example of an
# extension, not of a bound: a command can be written in many ways, and the rules
# of the harness take it apart where a pattern can't.

[ $# -gt 0 ] || set -- '*rm -rf*' '*rm -fr*' '*git push*--force*' '*mkfs*'

# json_string prints the rest of a JSON string, as it is written, up to its closing
# quote: the first one before which the number of backslashes is even.
json_string() {
  rest=$1 text=
  while :; do
    case $rest in *\"*) ;; *) break ;; esac
    part=${rest%%\"*}
    rest=${rest#*\"}
    text=$text$part
    slashes=${part##*[!\\]}
    [ $((${#slashes} % 2)) -eq 1 ] || break
    text=$text\"
  done
  printf '%s' "$text"
}

while IFS= read -r line; do
  reply='{}'
  # Of the line's own members, "tool" stands before "args", and in a JSON text
  # ,"name": and {"name": are always members: inside a string the quotes would have
  # backslashes before them.
  head=${line%%,\"args\":*}
  case $head in
  '{"event":"tool_call",'*',"tool":"bash"')
    args=${line#*,\"args\":}
    case $args in
    *[{,]\"command\":\"*)
      command=$(json_string "${args#*[\{,]\"command\":\"}")
      for pattern; do
        case $command in
        $pattern)
          reply='{"block":true,"reason":"the guard does not let this command run; do the work in another way, or ask the person to run it"}'
          ;;
        esac
      done
      ;;
    esac
    ;;
  esac
  printf '%s\n' "$reply"
done
