#!/bin/bash
# The entry point of the container: makes a chain of what hive has put into it, and starts the
# node. README.md says which files and variables of hive are read.
set -euo pipefail

# Our test runs this script in a folder of its own, on free ports of 127.0.0.1.
root=${DEPONENT_TEST_ROOT:-}
if [ -n "$root" ]; then
  address=127.0.0.1 http_port=0 ws_port=0 engine_port=0
else
  address=0.0.0.0 http_port=8545 ws_port=8546 engine_port=8551
fi

fail() {
  echo "deponent.sh: $*" >&2
  exit 1
}

case "${HIVE_LOGLEVEL:-3}" in
  0 | 1) level=error ;;
  2) level=warn ;;
  3) level=info ;;
  4) level=debug ;;
  5) level=trace ;;
  *) fail "HIVE_LOGLEVEL=$HIVE_LOGLEVEL is not one of 0 to 5" ;;
esac

# All blocks of a test are kept, also those that an archive has.
storage=(--history.retain-blocks 1000000 --witness.retain-blocks 1000000)
case "${HIVE_NODETYPE:-}" in
  "" | full | archive) ;;
  *) fail "HIVE_NODETYPE=$HIVE_NODETYPE: this client is full or archive, and finds no peers" ;;
esac
for name in HIVE_CLIQUE_PERIOD HIVE_CLIQUE_PRIVATEKEY HIVE_MINER; do
  [ -z "${!name:-}" ] || fail "$name is set: this client neither mines nor signs blocks"
done

# The chain's rules are those of the variables.
jq -f "$root/mapper.jq" "$root/genesis.json" > "$root/genesis-mapped.json"
chain=(--chain "$root/genesis-mapped.json" --datadir "$root/deponent-data")

# Blocks that a test wants refused are an error of the import, and no reason not to start.
import() {
  deponent import --log.level "$level" "${storage[@]}" "${chain[@]}" "$1" || echo "not all of $1 is valid"
}
[ ! -f "$root/chain.rlp" ] || import "$root/chain.rlp"
if [ -d "$root/blocks" ]; then
  # One by one, in the order of their numbers: what comes after a refused block is tried, too.
  find "$root/blocks" -name '*.rlp' -printf '%f\n' | sort -n | while read -r name; do
    import "$root/blocks/$name"
  done
fi

# The secret that all simulators know: "secret" again and again, 32 bytes.
printf '7365637265747365637265747365637265747365637265747365637265747365' > "$root/jwt.hex"
chmod 600 "$root/jwt.hex"

peers=()
[ -z "${HIVE_BOOTNODE:-}" ] || peers+=(--bootnodes "$HIVE_BOOTNODE")
[ -z "${HIVE_NETWORK_ID:-}" ] || peers+=(--networkid "$HIVE_NETWORK_ID")

# Many clients run at once, on disks that are nearly full.
exec deponent node --log.level "$level" "${storage[@]}" "${chain[@]}" "${peers[@]}" \
  --memory 4GiB --datadir.min-free 0 --testing \
  --http --http.addr "$address" --http.port "$http_port" \
  --http.api admin,debug,eth,net,rpc,txpool,web3 \
  --http.vhosts '*' --http.corsdomain '*' \
  --ws --ws.addr "$address" --ws.port "$ws_port" --ws.origins '*' \
  --authrpc.addr "$address" --authrpc.port "$engine_port" --authrpc.jwtsecret "$root/jwt.hex"
