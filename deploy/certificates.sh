#!/bin/sh
# Prints the Secrets with the certificates of the service and of the executor, for clusters without cert-manager:
#
#   deploy/certificates.sh | kubectl apply -f -
#
# The authority's key is not kept: the next run makes another authority, and both Secrets with it. Connections that begin before
# both have come to all pods, in a minute or two, fail then; those that stand go on. Takes the namespace (nodewise-system), what
# names begin with (nodewise) and how many days they are good for (365). Needs openssl 3.0 or newer.
set -eu
namespace=${1:-nodewise-system} name=${2:-nodewise} days=${3:-365}
umask 077
# One by one: in `cd "$(mktemp -d)"` nobody would notice that there is no folder, and keys would land in this one.
dir=$(mktemp -d)
cd "$dir"
dir=$PWD
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# openssl tells its progress on standard error, and what is wrong.
quietly() {
    "$@" 2>log || { cat log >&2; exit 1; }
}

new_key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'

# shellcheck disable=SC2086 # several arguments
quietly openssl req -x509 $new_key -keyout ca.key -out ca.crt -subj "/CN=$name-ca" -days "$days" \
    -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign'

# PART NAMES USAGE: the Secret of a part.
secret() {
    # shellcheck disable=SC2086
    quietly openssl req $new_key -keyout tls.key -out request -subj "/CN=$name-$1"
    printf 'subjectAltName=%s\nextendedKeyUsage=%s\nkeyUsage=critical,digitalSignature\nbasicConstraints=critical,CA:FALSE\n' \
        "$2" "$3" >extensions
    quietly openssl x509 -req -in request -CA ca.crt -CAkey ca.key -CAcreateserial -out tls.crt -days "$days" -sha256 -extfile extensions
    printf -- '---\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata:\n  name: %s-%s-tls\n  namespace: %s\ndata:\n' \
        "$name" "$1" "$namespace"
    for file in ca.crt tls.crt tls.key; do
        printf '  %s: %s\n' "$file" "$(openssl base64 -A -in "$file")"
    done
}

service="$name-server.$namespace.svc" headless="$name-server-headless.$namespace.svc"
secret server "DNS:$service,DNS:$service.cluster.local,DNS:$headless,DNS:$headless.cluster.local" serverAuth
secret executor "URI:spiffe://cluster.local/ns/$namespace/sa/$name-executor" clientAuth
