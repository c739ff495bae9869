# python3 envelope.py params.json > envelope.ssz: the parameters of engine_newPayloadV4 in SSZ
import json, sys

p, _, root, requests = json.load(open(sys.argv[1]))
data = lambda text: bytes.fromhex(text[2:])
number = lambda text, size=8: int(text, 16).to_bytes(size, "little")

def container(*fields):  # bytes stand in place, and a list of byte strings behind an offset
    fixed, tail = b"", b""
    start = sum(len(f) if isinstance(f, bytes) else 4 for f in fields)
    for f in fields:
        if not isinstance(f, bytes):
            f, tail = (start + len(tail)).to_bytes(4, "little"), tail + b"".join(f)
        fixed += f
    return fixed + tail

many = lambda items: [container(*([i] for i in items))]
data_of = lambda *names: [data(p[n]) for n in names]
withdrawal = lambda w: (number(w["index"]) + number(w["validatorIndex"])
                        + data(w["address"]) + number(w["amount"]))
payload = container(
    *data_of("parentHash", "feeRecipient", "stateRoot", "receiptsRoot", "logsBloom", "prevRandao"),
    *(number(p[n]) for n in ("blockNumber", "gasLimit", "gasUsed", "timestamp")),
    data_of("extraData"), number(p["baseFeePerGas"], 32), data(p["blockHash"]),
    many(map(data, p["transactions"])), [withdrawal(w) for w in p["withdrawals"]],
    number(p["blobGasUsed"]), number(p["excessBlobGas"]))
sys.stdout.buffer.write(container([payload], data(root), many(map(data, requests))))
