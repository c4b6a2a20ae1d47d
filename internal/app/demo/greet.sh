#!/bin/sh
# greet NAME: say hello.
greet() {
	printf 'Helo, %s!\n' "$1"
}
