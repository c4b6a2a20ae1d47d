#!/bin/bash
# What an extension can do, in bash. The other examples do the same.
source "${BASH_SOURCE[0]%/*}/extension.bash"

on_user_prompt_submit() {
  case $(field .content) in
  *AKIA*) block "the message holds an access key; take it out and send it again" ;;
  esac
}

on_before_agent_start() { append_system "Run the tests before you say that you are done."; }

on_context() {
  # Leave out whatever holds a private key.
  if [[ $1 == *"PRIVATE KEY"* ]]; then
    keep "$(field '[.messages[] | select(.content | contains("PRIVATE KEY") | not) | .index] | tojson')"
  fi
}

on_tool_call() {
  [ "$(field .tool)" = bash ] || return 0
  local command
  command=$(field .args.command)
  case $command in
  *'rm -rf'*) block "rm -rf isn't run here; name what is to go" ;;
  *'git push'*) ask "it publishes" ;;
  *http://*) replace_args "$(field '.args | .command |= gsub("http://"; "https://") | tojson')" ;;
  esac
}

on_tool_result() {
  if [[ $1 =~ AKIA[A-Z0-9]{16} ]]; then
    reply "$(field '{content: (.content | gsub("AKIA[A-Z0-9]{16}"; "[redacted]"))} | tojson')"
  fi
}

on_before_compact() {
  case $1 in
  *'keep the history'*) cancel ;;
  *) summary "$(field '"What the person asked for:" + ([.messages[] | select(.role == "user") | "\n- " + .content] | add // "")')" ;;
  esac
}

on_turn_end() { log_line "a turn has ended"; }

provide word_count "Count the words of a text" \
  '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}' false

tool_word_count() {
  local text
  text=$(field .text "$1")
  if [ -z "$text" ]; then
    printf 'there is no text to count in'
    return 1
  fi
  printf '%s' "$text" | wc -w | tr -d ' \n'
}

extension_run
