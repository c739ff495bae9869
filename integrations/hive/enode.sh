#!/bin/bash
# Prints the enode URL of the node in this container. Nothing listens at it: there are no peers.
set -euo pipefail
url=http://127.0.0.1:${DEPONENT_TEST_PORT:-8545}
call='{"jsonrpc":"2.0","id":1,"method":"admin_nodeInfo","params":[]}'
curl -sf -H 'content-type: application/json' -d "$call" "$url" | jq -er .result.enode
