#!/bin/sh
# The test of greet.sh: it needs nothing but sh.
. ./greet.sh
want='Hello, Ada!'
got=$(greet Ada)
if [ "$got" != "$want" ]; then
	echo "FAIL: greet Ada"
	echo "  got:  $got"
	echo "  want: $want"
	exit 1
fi
echo "PASS: all tests passed"
