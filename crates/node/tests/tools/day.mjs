// What the days of libraries on a chain for tests share.
import { connect, createServer } from 'node:net'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

// The folder of the libraries (docs/transports.md, "With other libraries").
export const require = createRequire(process.env.DEPONENT_TOOLS + '/node_modules/')

// The contract of Till.sol: its interface and its code.
export const till = JSON.parse(readFileSync(new URL('Till.json', import.meta.url)))

// The phrase of the accounts.
export const phrase = 'test test test test test test test test test test test junk'

// Does something again and again until `check` finds something, within two minutes, however slow
// the machine is.
export async function until(name, check, act = pause) {
  for (const end = Date.now() + 120_000; Date.now() < end; await act()) {
    const found = await check()
    if (found) return found
  }
  throw new Error(`${name}: not within two minutes`)
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 10))

// A stretch of network that can be cut: `drop` ends the connections that go through it.
export async function droppable(url) {
  const { hostname, port } = new URL(url)
  const open = new Set()
  const server = createServer((near) => {
    const far = connect(port, hostname)
    for (const [from, to] of [[near, far], [far, near]]) {
      open.add(from)
      from.on('close', () => (open.delete(from), to.destroy())).on('error', () => {}).pipe(to)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    host: `127.0.0.1:${server.address().port}`,
    drop: () => open.forEach((socket) => socket.destroy()),
    close: () => server.close(),
  }
}
