// One form for what different libraries make of the same answer: numbers as numbers, amounts as
// decimal digits. For Node.js, and for geth's console, which loads it before attach.js.

function block(block) {
  const { hash, parentHash, stateRoot, miner } = block;
  return {
    number: Number(block.number),
    hash,
    parentHash,
    stateRoot,
    miner,
    timestamp: Number(block.timestamp),
    gasUsed: Number(block.gasUsed),
    baseFeePerGas: Number(block.baseFeePerGas),
    transactions: block.transactions.map((tx) => (typeof tx === 'string' ? tx : transaction(tx))),
  };
}

function transaction(tx) {
  const { hash, from, to, input } = tx;
  return {
    hash,
    type: Number(tx.type),
    index: Number(tx.transactionIndex),
    from,
    to,
    nonce: Number(tx.nonce),
    value: amount(tx.value),
    gas: Number(tx.gas),
    input,
  };
}

function receipt(receipt) {
  const { transactionHash, from, to, contractAddress } = receipt;
  return {
    transactionHash,
    type: Number(receipt.type),
    index: Number(receipt.transactionIndex),
    from,
    to,
    contractAddress,
    status: Number(receipt.status),
    gasUsed: Number(receipt.gasUsed),
    cumulativeGasUsed: Number(receipt.cumulativeGasUsed),
    effectiveGasPrice: Number(receipt.effectiveGasPrice),
    blobGasUsed: Number(receipt.blobGasUsed || 0),
    blobGasPrice: Number(receipt.blobGasPrice || 0),
    logs: receipt.logs.map((log) => {
      const { address, topics, data } = log;
      return { address, topics, data, index: Number(log.logIndex) };
    }),
  };
}

function proof(proof) {
  const { accountProof, codeHash, storageHash } = proof;
  return {
    accountProof,
    balance: amount(proof.balance),
    nonce: Number(proof.nonce),
    codeHash,
    storageHash,
    storageProof: proof.storageProof.map((slot) => ({
      value: Number(slot.value),
      proof: slot.proof,
    })),
  };
}

// geth's console has no BigInt.
function amount(value) {
  return typeof BigInt === 'function' ? String(BigInt(value)) : web3.toBigNumber(value).toFixed();
}

if (typeof module === 'object') module.exports = { block, transaction, receipt, proof, amount };
