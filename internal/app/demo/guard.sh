#!/bin/sh
# An extension: one JSON object a line in, one a line out. It may veto, never
# permit. This one refuses to publish the work.
while IFS= read -r request; do
	case $request in
	'{"event":"tool_call",'*'"command":"git push'*)
		echo '{"block":true,"reason":"publishing is not the agent'"'"'s business: leave the push to a person"}' ;;
	*)
		echo '{}' ;;
	esac
done
