#!/bin/sh
# Prints the Secrets with the certificates of the service and of the executor, for clusters without cert-manager:
#
#   deploy/certificates.sh | kubectl apply -f -
#
# Arguments, all optional: the namespace (nodewise-system), the prefix of all names (nodewise), the validity in days (365).
# Needs openssl 3.0 or newer.
#
# The authority's key is not kept, so each run makes a new authority and both Secrets. Until both Secrets have reached all
# pods (a minute or two), new connections fail; existing connections continue.
set -eu
namespace=${1:-nodewise-system} name=${2:-nodewise} days=${3:-365}
umask 077
# Two commands: if mktemp failed, `cd "$(mktemp -d)"` would stay in the current folder, and the keys would be written there.
dir=$(mktemp -d)
cd "$dir"
dir=$PWD
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# openssl writes its progress and its errors to standard error: show them only if it fails.
quietly() {
    "$@" 2>log || { cat log >&2; exit 1; }
}

new_key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'

# shellcheck disable=SC2086 # several arguments
quietly openssl req -x509 $new_key -keyout ca.key -out ca.crt -subj "/CN=$name-ca" -days "$days" \
    -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign'

# Prints a Secret. Arguments: COMPONENT SUBJECT_ALTERNATIVE_NAMES EXTENDED_KEY_USAGE.
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
