"""What web3.py reads from a node over each of its transports, as one JSON object.

venv/bin/python web3_py.py '{"http", "ws", "ipc", "hash", "account", "contract", ...}'
"""

import asyncio
import inspect
import json
import sys

from web3 import AsyncHTTPProvider, AsyncIPCProvider, AsyncWeb3, HTTPProvider, IPCProvider, Web3
from web3 import WebSocketProvider

given = json.loads(sys.argv[1])
block_hash, slot = given["hash"], int(given["slot"], 16)
account = Web3.to_checksum_address(given["account"])
contract = Web3.to_checksum_address(given["contract"])


def block(found):
    names = ["number", "hash", "parentHash", "stateRoot", "miner", "timestamp", "gasUsed"]
    names += ["baseFeePerGas"]
    shown = [tx if isinstance(tx, bytes) else transaction(tx) for tx in found["transactions"]]
    return {**{name: found[name] for name in names}, "transactions": shown}


def transaction(tx):
    names = ["hash", "type", "from", "nonce", "gas", "input"]
    # What creates a contract goes to nobody.
    shown = {"to": tx.get("to"), "index": tx["transactionIndex"], "value": str(tx["value"])}
    return {**{name: tx[name] for name in names}, **shown}


def receipt(found):
    names = ["transactionHash", "type", "from", "to", "contractAddress", "status", "gasUsed"]
    names += ["cumulativeGasUsed", "effectiveGasPrice"]
    logs = [
        {**{name: log[name] for name in ["address", "topics", "data"]}, "index": log["logIndex"]}
        for log in found["logs"]
    ]
    blobs = {name: found.get(name, 0) for name in ["blobGasUsed", "blobGasPrice"]}
    shown = {name: found[name] for name in names}
    return {**shown, **blobs, "index": found["transactionIndex"], "logs": logs}


def proof(found):
    slots = [
        {"value": number(slot["value"]), "proof": slot["proof"]} for slot in found["storageProof"]
    ]
    shown = {name: found[name] for name in ["accountProof", "codeHash", "storageHash"]}
    numbers = {"nonce": number(found["nonce"]), "balance": str(number(found["balance"]))}
    return {**shown, **numbers, "storageProof": slots}


def number(found):
    """A number, which a proof has as one, as bytes, or in hex."""
    if isinstance(found, bytes):
        return int.from_bytes(found, "big")
    return int(found, 16) if isinstance(found, str) else found


async def now(found):
    """The value, which some providers give at once and the others when it is awaited."""
    return await found if inspect.isawaitable(found) else found


async def read(w3):
    eth = w3.eth
    head = await now(eth.block_number)

    async def raw(method, *params):
        return (await now(w3.provider.make_request(method, list(params))))["result"]

    call = {"to": contract, "data": given["data"]}
    # The asynchronous half has no get_proof.
    if isinstance(w3, AsyncWeb3):
        proven = await raw("eth_getProof", contract, [given["slot"]], "latest")
    else:
        proven = eth.get_proof(contract, [slot], "latest")
    receipts = await now(eth.get_block_receipts(block_hash))
    return {
        "chainId": await now(eth.chain_id),
        "blockNumber": head,
        "latest": block(await now(eth.get_block("latest"))),
        "latestFull": block(await now(eth.get_block("latest", True))),
        "byNumber": block(await now(eth.get_block(head))),
        "byHash": block(await now(eth.get_block(block_hash))),
        "byHashFull": block(await now(eth.get_block(block_hash, True))),
        "transactionCount": await now(eth.get_block_transaction_count(block_hash)),
        "transaction": transaction(await now(eth.get_transaction_by_block(block_hash, 1))),
        "transactionByNumber": transaction(await now(eth.get_transaction_by_block(head, 3))),
        "receipts": [receipt(found) for found in receipts],
        "balance": str(await now(eth.get_balance(account))),
        "nonce": await now(eth.get_transaction_count(account)),
        "code": await now(eth.get_code(contract)),
        "storage": await now(eth.get_storage_at(contract, slot)),
        "call": await now(eth.call(call)),
        "proof": proof(proven),
        "syncing": await now(eth.syncing),
        "client": await now(w3.client_version),
        "witness": await raw("debug_executionWitness", "latest"),
        "batch": await batch(w3),
    }


async def batch(w3):
    calls = [
        lambda: w3.eth.get_balance(account),
        lambda: w3.eth.get_transaction_count(account),
        lambda: w3.eth.get_code(contract),
    ]
    if isinstance(w3, AsyncWeb3):
        async with w3.batch_requests() as requests:
            for call in calls:
                requests.add(call())
            balance, nonce, code = await requests.async_execute()
    else:
        with w3.batch_requests() as requests:
            for call in calls:
                requests.add(call())
            balance, nonce, code = requests.execute()
    return [str(balance), nonce, code]


async def main():
    found = {
        "http": await read(Web3(HTTPProvider(given["http"]))),
        "ipc": await read(Web3(IPCProvider(given["ipc"]))),
    }
    over_http = AsyncWeb3(AsyncHTTPProvider(given["http"]))
    found["http async"] = await read(over_http)
    await over_http.provider.disconnect()
    async with AsyncWeb3(WebSocketProvider(given["ws"])) as w3:
        found["ws"] = await read(w3)
    async with AsyncWeb3(AsyncIPCProvider(given["ipc"])) as w3:
        found["ipc async"] = await read(w3)
    print(json.dumps(found, default=lambda value: "0x" + bytes(value).hex()))


asyncio.run(main())
