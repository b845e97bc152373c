#!/bin/sh
# Cargo's runner of test programs in the Makefile. The first argument names packages, separated by spaces: only their tests run, or, after
# a first word `not`, only those of all other packages. The others end at once, as passed. Cargo sets CARGO_PKG_NAME.
set -eu
packages=$1
shift
case " $packages " in
" not "*) case " $packages " in *" $CARGO_PKG_NAME "*) exit 0 ;; esac ;;
*" $CARGO_PKG_NAME "*) ;;
*) exit 0 ;;
esac
exec "$@"
