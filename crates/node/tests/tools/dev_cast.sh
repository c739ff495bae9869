#!/usr/bin/env bash
# A day with Foundry's cast on a chain for tests: a contract, its errors and events, each type of
# transaction, the node's own accounts, a snapshot, a reorganisation.
#
# DEPONENT_TOOLS=folder bash dev_cast.sh http://127.0.0.1:8545
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
export ETH_RPC_URL=$1 ETH_RPC_TIMEOUT=300 NO_COLOR=1
# The program itself, since what npm puts before it has no exit status.
for programs in "${DEPONENT_TOOLS:-}"/node_modules/@foundry-rs/cast-*/bin; do
  PATH=$programs:$PATH
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

owner=0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266
owner_key=0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80
payer=0x70997970C51812dc3A010C7d01b50e0d17dc79C8
payer_key=0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d
other=0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC
saver=0x90F79bf6EB2c4f870365E785982E1f101E93b906
saver_key=0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6

# is EXPECTED FOUND; a number's short form in brackets is left out.
is() {
  [ "$1" = "${2%% \[*}" ] || { echo "expected $1, not $2" >&2; exit 1; }
}
# fails WORDS COMMAND..
fails() {
  local words=$1 found
  shift
  if found=$("$@" 2>&1); then echo "it did not fail: $*" >&2; exit 1; fi
  [[ $found == *$words* ]] || { echo "expected $words, not $found" >&2; exit 1; }
}
# pay NOTE VALUE [FLAG..] prints the receipt.
pay() {
  cast send "$till" 'pay(string)' "$1" --value "$2" --private-key $payer_key --json "${@:3}"
}
member() {
  python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# A contract: deployed, called, its event found.
code=$(member bytecode <"$here/Till.json")
arguments=$(cast abi-encode 'f(uint256)' 100)
till=$(cast send --private-key $owner_key --json --create "$code${arguments#0x}" | member contractAddress)
is 100 "$(cast call "$till" 'least()(uint256)')"
is $owner "$(cast call "$till" 'owner()(address)')"
block=$(pay coffee 150 | member blockNumber)
is 150 "$(cast call "$till" 'paid(address)(uint256)' $payer)"
is 0 "$(cast call "$till" 'paid(address)(uint256)' $payer --block $((block - 1)))"
is 150 "$(cast balance "$till")"
is 150 "$(cast storage "$till" "$(cast index address $payer 2)" | cast to-dec)"
event='Paid(address indexed from, uint256 amount, string note)'
logs=$(cast logs --from-block 0 --address "$till" "$event" $payer --json)
is 1 "$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)))' <<<"$logs")"
is '[]' "$(cast logs --from-block 0 --address "$till" "$event" $other --json)"

# Errors: custom ones by their data, reasons and panics in words.
too_little=$(cast sig 'TooLittle(uint256,uint256)')
fails "$too_little" cast call "$till" 'pay(string)' tea --value 1
fails "$too_little" cast estimate "$till" 'pay(string)' tea --value 1
fails 'only the owner' cast send "$till" 'setLeast(uint256)' 1 --private-key $payer_key
fails 'division or modulo by zero' cast call "$till" 'share(uint256)(uint256)' 0
is 0x0 "$(pay tea 1 --gas-limit 100000 | member status)"
fails 'nonce too low' cast send $other --value 1 --nonce 0 --private-key $payer_key --gas-limit 21000

# Types of transactions: 0, 1, 2, 3 with a blob, 4 with an authorization.
price=$(cast gas-price)
is 0x0 "$(pay tea 200 --legacy --gas-price "$price" | member type)"
is 0x1 "$(pay tea 200 --access-list --gas-price "$price" --legacy | member type)"
is 0x2 "$(pay tea 200 --gas-price $((2 * price)) --priority-gas-price 1 | member type)"
head -c 1000 /dev/zero | tr '\0' x >"$work/blob"
blob=$(cast send $other --blob --path "$work/blob" --blob-gas-price 1000000000 \
  --private-key $saver_key --json)
is 0x3 "$(member type <<<"$blob")"
is 0x20000 "$(member blobGasUsed <<<"$blob")"
order=$(cast wallet sign-auth "$till" --private-key $saver_key)
is 0x4 "$(cast send $other --auth "$order" --private-key $owner_key --json | member type)"
is "$(cast concat-hex 0xef0100 "$till" | tr A-F a-f)" "$(cast code $saver)"

# The node's own accounts.
is 0x1 "$(cast send $other --value 1 --unlocked --from $payer --json | member status)"
is "$(cast wallet sign hello --private-key $payer_key)" \
  "$(cast rpc personal_sign "$(cast from-utf8 hello)" $payer | tr -d '"')"

# What blocks and accounts are is asked in all ways.
is "$(cast block-number)" "$(cast block latest -f number)"
cast proof "$till" 0 >/dev/null
cast access-list "$till" 'pay(string)' tea --value 200 --from $payer >/dev/null
cast run "$(cast send $other --value 1 --unlocked --from $payer --json | member transactionHash)" \
  --quick >/dev/null

# A snapshot is come back to, and a block replaced.
snapshot=$(cast rpc evm_snapshot | tr -d '"')
before=$(cast call "$till" 'paid(address)(uint256)' $payer)
for back in "evm_revert $snapshot" 'anvil_reorg 1 []'; do
  hash=$(pay tea 200 | member transactionHash)
  # shellcheck disable=SC2086
  cast rpc $back >/dev/null
  is "$before" "$(cast call "$till" 'paid(address)(uint256)' $payer)"
  is null "$(cast rpc eth_getTransactionReceipt "$hash")"
done
echo '{"done": ["cast"]}'
