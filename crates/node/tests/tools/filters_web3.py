"""web3.py's filters against a chain for tests, as one JSON object.

venv/bin/python filters_web3.py URL
"""

import json
import sys

from web3 import HTTPProvider, Web3

w3 = Web3(HTTPProvider(sys.argv[1]))
logger = Web3.to_checksum_address("0x" + "55" * 20)
sender = w3.eth.accounts[0]
call = lambda method, *params: w3.provider.make_request(method, list(params))["result"]
# Logs the first word of the input as a topic.
call("anvil_setCode", logger, "0x5f355f5fa1")

blocks = w3.eth.filter("latest")
pending = w3.eth.filter("pending")
start = w3.eth.block_number + 1
logs = w3.eth.filter({"address": logger, "fromBlock": start})
snapshot = call("evm_snapshot")


def say(word):
    data = "0x" + word.to_bytes(32, "big").hex()
    return w3.eth.send_transaction({"from": sender, "to": logger, "data": data})


first = say(1)
(log,) = logs.get_new_entries()
assert (log["transactionHash"], log["removed"]) == (first, False), log
assert blocks.get_new_entries() == [log["blockHash"]]
call("evm_revert", snapshot)
(gone,) = logs.get_new_entries()
assert (gone["transactionHash"], gone["removed"]) == (first, True), gone
# The head is the one before.
assert blocks.get_new_entries() == [w3.eth.get_block("latest")["hash"]]

hashes = [say(2), say(3)]
assert pending.get_new_entries() == [first] + hashes
found = logs.get_new_entries()
assert [log["transactionHash"] for log in found] == hashes
assert [log["transactionHash"] for log in logs.get_all_entries()] == hashes
headers = blocks.get_new_entries()
assert headers == [log["blockHash"] for log in found]
assert w3.eth.uninstall_filter(logs.filter_id)
print(json.dumps({"done": ["blocks", "logs", "pending"]}))
