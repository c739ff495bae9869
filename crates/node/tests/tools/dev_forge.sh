#!/usr/bin/env bash
# A script of Foundry's forge on a chain for tests. The compiler is that of npm, since forge would
# fetch one.
#
# DEPONENT_TOOLS=folder bash dev_forge.sh http://127.0.0.1:8545
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export ETH_RPC_TIMEOUT=300 NO_COLOR=1
for programs in "$DEPONENT_TOOLS"/node_modules/@foundry-rs/{cast,forge}-*/bin; do
  PATH=$programs:$PATH
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/src" "$work/script"
cp "$here/Till.sol" "$work/src"
cp "$here/forge/Day.s.sol" "$work/script"
printf '#!/bin/sh\nexec node "%s/forge/solc.cjs" "$@"\n' "$here" >"$work/solc"
chmod +x "$work/solc"
cd "$work"

key=0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80
day() {
  forge script script/Day.s.sol --use "$work/solc" --offline --rpc-url "$1" --private-key $key \
    --broadcast "${@:2}"
}

day "$1" >said || { cat said >&2; exit 1; }
python3 - broadcast/Day.s.sol/31337/run-latest.json >deployed <<'END'
import json, sys

run = json.load(open(sys.argv[1]))
assert [receipt["status"] for receipt in run["receipts"]] == ["0x1"] * 5, run["receipts"]
for transaction in run["transactions"]:
    if transaction["transactionType"].startswith("CREATE"):
        print(transaction["contractAddress"])
END
{ read -r till; read -r second; } <deployed
call() {
  cast call --rpc-url "$1" "$2" 'least()(uint256)'
}
[ "$(call "$1" "$till") $(call "$1" "$second")" = '5 7' ]

height=$(cast block-number --rpc-url "$1")
if day "$1" --sig 'refused(address)' "$till" >said 2>&1; then cat said >&2; exit 1; fi
grep -q 'TooLittle(1, 5)' said || { cat said >&2; exit 1; }
[ "$(cast block-number --rpc-url "$1")" = "$height" ]
echo '{"done": ["forge"]}'
