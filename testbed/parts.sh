#!/bin/sh
# Runs targets of the Makefile one after the other, and prints how many seconds each took. Stops at the first that fails.
set -u
cd "$(dirname "$0")/.."
began=$(date +%s)
status=0
table=
for part; do
	start=$(date +%s)
	${MAKE:-make} --no-print-directory "$part" || status=$?
	word=passed
	[ $status -eq 0 ] || word=FAILED
	table="$table$(printf '%-8s %6d s  %s' $word $(($(date +%s) - start)) "$part")
"
	[ $status -eq 0 ] || break
done
printf '\n==> %s\n%s' "$(date +%T)" "$table"
printf '%-8s %6d s\n' together $(($(date +%s) - began))
exit $status
