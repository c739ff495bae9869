// Prints Till.json: interface and code of Till.sol, by the compiler of npm's `solc`.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const solc = createRequire(process.cwd() + '/')('solc')
const content = readFileSync(new URL('Till.sol', import.meta.url), 'utf8')
const input = {
  language: 'Solidity',
  sources: { 'Till.sol': { content } },
  settings: {
    evmVersion: 'cancun',
    optimizer: { enabled: true },
    metadata: { bytecodeHash: 'none' },
    outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
  },
}
const { errors, contracts } = JSON.parse(solc.compile(JSON.stringify(input)))
if (errors) throw new Error(errors.map((error) => error.formattedMessage).join('\n'))
const { abi, evm } = contracts['Till.sol'].Till
console.log(JSON.stringify({ compiler: solc.version(), abi, bytecode: '0x' + evm.bytecode.object }, null, 1))
