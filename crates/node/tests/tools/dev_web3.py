"""A day with web3.py on a chain for tests.

Contracts, their events and errors, each type of transaction, the node's own accounts, a connection
that drops, a snapshot, a reorganisation.

venv/bin/python dev_web3.py http://127.0.0.1:8545
"""

import asyncio
import json
import sys
from pathlib import Path

from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data
from web3 import AsyncWeb3, Web3, WebSocketProvider
from web3.exceptions import ContractCustomError, ContractLogicError, ContractPanicError
from web3.exceptions import TransactionNotFound, Web3RPCError
from web3.middleware import SignAndSendRawMiddlewareBuilder

url = sys.argv[1]
till_source = json.loads(Path(__file__).with_name("Till.json").read_text())
w3 = Web3(Web3.HTTPProvider(url, request_kwargs={"timeout": 300}))
send = w3.provider.make_request

Account.enable_unaudited_hdwallet_features()
phrase = "test test test test test test test test test test test junk"
owner, payer, other, saver = [
    Account.from_mnemonic(phrase, account_path=f"m/44'/60'/0'/0/{index}") for index in range(4)
]
# Transactions of these accounts are signed here; those of the other ones by the node.
for account in [owner, payer]:
    w3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)


def mined(tx_hash):
    return w3.eth.wait_for_transaction_receipt(tx_hash)


def pay(till, note, value=200, **fields):
    call = till.functions.pay(note)
    return mined(call.transact({"from": payer.address, "value": value, **fields}))


def contracts():
    factory = w3.eth.contract(abi=till_source["abi"], bytecode=till_source["bytecode"])
    receipt = mined(factory.constructor(100).transact({"from": owner.address}))
    till = w3.eth.contract(address=receipt.contractAddress, abi=till_source["abi"])
    assert till.functions.least().call() == 100

    # The receipt has the event.
    receipt = pay(till, "coffee", 150)
    (event,) = till.events.Paid().process_receipt(receipt)
    assert dict(event.args) == {"from": payer.address, "amount": 150, "note": "coffee"}
    assert till.functions.paid(payer.address).call() == 150
    assert w3.eth.get_balance(till.address) == 150
    before = receipt.blockNumber - 1
    assert till.functions.paid(payer.address).call(block_identifier=before) == 0
    return till


def errors(till):
    def fails(kind, act):
        try:
            act()
        except kind as error:
            return error
        raise AssertionError(f"no {kind}")

    # The estimate of gas fails before anything is sent, in the same way as a call.
    poor = {"from": payer.address, "value": 1}
    for act in [till.functions.pay("tea").call, till.functions.pay("tea").transact]:
        error = fails(ContractCustomError, lambda: act(poor))
        (declared,) = [item for item in till.abi if item["type"] == "error"]
        inputs = [item["type"] for item in declared["inputs"]]
        values = w3.codec.decode(inputs, bytes.fromhex(error.data[10:]))
        assert (declared["name"], values) == ("TooLittle", (1, 100)), (error, values)
    change = till.functions.setLeast(1)
    error = fails(ContractLogicError, lambda: change.transact({"from": payer.address}))
    assert "only the owner" in str(error), error
    error = fails(ContractPanicError, till.functions.share(0).call)
    assert "zero" in str(error), error
    # With a gas limit of its own it is mined, and fails there.
    assert pay(till, "tea", 1, gas=100_000).status == 0
    rich = {"from": payer.address, "to": other.address, "value": 2 * 10**22, "gas": 21_000}
    again = {**rich, "value": 1, "nonce": 0}
    for fields, words in [(rich, "insufficient funds"), (again, "nonce too low")]:
        error = fails(Web3RPCError, lambda: w3.eth.send_transaction(fields))
        assert words in str(error).lower(), error


def events(till):
    start = w3.eth.block_number + 1
    by_filter = till.events.Paid.create_filter(
        from_block="latest", argument_filters={"from": payer.address}
    )
    blocks = w3.eth.filter("latest")
    receipts = [pay(till, note) for note in ["tea", "milk"]]
    news = by_filter.get_new_entries()
    assert [event.args.note for event in news] == ["tea", "milk"], news
    assert by_filter.get_new_entries() == []
    of_all_time = till.events.Paid.create_filter(from_block=0)
    assert [event.args.note for event in of_all_time.get_all_entries()][-2:] == ["tea", "milk"]
    assert blocks.get_new_entries() == [receipt.blockHash for receipt in receipts]
    assert w3.eth.uninstall_filter(by_filter.filter_id)

    found = till.events.Paid().get_logs(from_block=start)
    assert [event.args.note for event in found] == ["tea", "milk"]
    absent = {"from": other.address}
    assert list(till.events.Paid().get_logs(from_block=0, argument_filters=absent)) == []


def transactions(till):
    price = w3.eth.gas_price
    to = {"from": payer.address, "to": other.address, "value": 1}
    access = [{"address": other.address, "storageKeys": ["0x" + "00" * 32]}]
    fees = {"maxFeePerGas": 2 * price, "maxPriorityFeePerGas": 1}
    for kind, fields in enumerate(
        [{"gasPrice": price}, {"gasPrice": price, "accessList": access}, fees]
    ):
        receipt = mined(w3.eth.send_transaction({**to, **fields}))
        sent = w3.eth.get_transaction(receipt.transactionHash)
        assert (receipt.type, receipt.status, sent.type) == (kind, 1, kind)

    def signed(account, fields, **more):
        filled = {"chainId": w3.eth.chain_id, "nonce": w3.eth.get_transaction_count(account.address)}
        filled.update({"to": other.address, "value": 0, "gas": 100_000, **fees, **fields})
        raw = account.sign_transaction(filled, **more).raw_transaction
        return mined(w3.eth.send_raw_transaction(raw))

    # EIP-4844, with a blob.
    blob = signed(saver, {"maxFeePerBlobGas": 10**10}, blobs=[b"\x01" * 131_072])
    assert (blob.type, blob.status, blob.blobGasUsed) == (3, 1, 131_072)
    assert len(w3.eth.get_transaction(blob.transactionHash).blobVersionedHashes) == 1

    # EIP-7702: an account has the code of the till, until it takes that back.
    def become(address):
        nonce = w3.eth.get_transaction_count(saver.address)
        order = {"chainId": w3.eth.chain_id, "address": address, "nonce": nonce}
        return signed(owner, {"authorizationList": [saver.sign_authorization(order)]})

    assert become(till.address).type == 4
    assert w3.eth.get_code(saver.address) == bytes.fromhex("ef0100" + till.address[2:])
    delegated = w3.eth.contract(address=saver.address, abi=till.abi)
    pay(delegated, "to a person", 5)
    assert delegated.functions.paid(payer.address).call() == 5
    become("0x" + "00" * 20)
    assert w3.eth.get_code(saver.address) == b""


def accounts(till):
    """The node signs for its accounts."""
    assert w3.eth.accounts[2] == other.address
    receipt = mined(w3.eth.send_transaction({"from": other.address, "to": payer.address, "value": 1}))
    assert receipt.status == 1
    message = encode_defunct(text="hello")
    assert w3.eth.sign(other.address, text="hello") == other.sign_message(message).signature
    data = {
        "types": {
            "EIP712Domain": [{"name": "name", "type": "string"}, {"name": "chainId", "type": "uint256"}],
            "Person": [{"name": "name", "type": "string"}, {"name": "wallets", "type": "address[]"}],
            "Bill": [{"name": "to", "type": "Person"}, {"name": "amount", "type": "uint256"}],
        },
        "primaryType": "Bill",
        "domain": {"name": "Till", "chainId": 31337},
        "message": {"to": {"name": "Bob", "wallets": [other.address, owner.address]}, "amount": 5},
    }
    by_account = other.sign_message(encode_typed_data(full_message=data)).signature
    assert w3.eth.sign_typed_data(other.address, json.dumps(data)) == by_account


async def turns(till):
    """A snapshot is come back to, and a block replaced by another one: logs are taken back."""
    seen = w3.eth.filter({"address": till.address})
    async with AsyncWeb3(WebSocketProvider(url.replace("http", "ws"), request_timeout=300)) as over:
        await over.eth.subscribe("logs", {"address": till.address})
        messages = over.socket.process_subscriptions()

        async def turn(back):
            before = till.functions.paid(payer.address).call()
            receipt = await asyncio.to_thread(pay, till, "for nothing")
            for removed in [False, True]:
                (log,) = await asyncio.to_thread(seen.get_new_entries)
                assert (log.removed, log.blockHash) == (removed, receipt.blockHash), log
                log = (await anext(messages))["result"]
                assert (log.removed, log.blockHash) == (removed, receipt.blockHash), log
                if not removed:
                    await asyncio.to_thread(*back)
            assert till.functions.paid(payer.address).call() == before
            try:
                w3.eth.get_transaction_receipt(receipt.transactionHash)
                raise AssertionError("a receipt of a block that has left")
            except TransactionNotFound:
                pass

        snapshot = send("evm_snapshot", [])["result"]
        await turn([send, "evm_revert", [snapshot]])
        await turn([send, "anvil_reorg", [1, []]])


async def dropped(till):
    """A connection that drops: the next one asks for what was missed."""
    host, port = url.removeprefix("http://").split(":")
    open_ends = set()

    async def pipe(reader, writer):
        open_ends.add(writer)
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def through(reader, writer):
        there, back = await asyncio.open_connection(host, port)
        ends = [pipe(reader, back), pipe(there, writer)]
        await asyncio.gather(*ends, return_exceptions=True)

    server = await asyncio.start_server(through, "127.0.0.1", 0)
    place = "ws://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
    heard = []

    async def listen(until, act):
        """Pays until a subscription hears of it."""
        topic = till.events.Paid().topic
        async with AsyncWeb3(WebSocketProvider(place, request_timeout=300)) as over:
            await over.eth.subscribe("logs", {"address": till.address, "topics": [topic]})
            messages = over.socket.process_subscriptions()
            await asyncio.to_thread(pay, till, until)
            async for message in messages:
                event = till.events.Paid().process_log(message["result"])
                heard.append(event)
                if event.args.note == until:
                    return await act(over, messages)

    async def drop(over, messages):
        for writer in open_ends:
            writer.transport.abort()
        try:
            await asyncio.wait_for(anext(messages), 120)
        except Exception as end:
            return type(end).__name__

    assert await listen("before", drop) == "ConnectionClosedError"
    await asyncio.to_thread(pay, till, "meanwhile")

    async def missed(over, _):
        contract = over.eth.contract(address=till.address, abi=till.abi)
        logs = await contract.events.Paid().get_logs(from_block=heard[0].blockNumber + 1)
        assert [log.args.note for log in logs] == ["meanwhile", "after"], logs

    await listen("after", missed)
    # The payment meanwhile may still be on its way to subscriptions when the second one begins.
    notes = [event.args.note for event in heard if event.args.note != "meanwhile"]
    assert notes == ["before", "after"], heard
    server.close()


till = contracts()
done = []
for part in [errors, events, transactions, accounts]:
    part(till)
    done.append(part.__name__)
for part in [turns, dropped]:
    asyncio.run(asyncio.wait_for(part(till), 300))
    done.append(part.__name__)
print(json.dumps({"done": done}))
