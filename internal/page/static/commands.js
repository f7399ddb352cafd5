// The command that shows the same as a section, to copy.

import { el } from './dom.js'
import { news } from './news.js'
import { word } from './shell.js'
import { state } from './state.js'

const commands = { refused: 'top --refused', zones: 'zones', stores: 'stores', decisions: 'watch', rules: 'overrides', changes: 'changes' }

// offerCommands puts a button into the head of each section that has a command.
export function offerCommands() {
  for (const [id, name] of Object.entries(commands)) {
    const head = document.querySelector(`#${id} .head`), text = `caddy rate-limit ${name}`
    head.querySelector('.terminal')?.remove()
    head.append(el('button', { type: 'button', class: 'terminal', title: 'Copy the command that shows the same', 'aria-label': 'Copy the command: ' + text, click: () => copy(name) }, el('code', {}, text)))
  }
}

async function copy(name) {
  const [first, ...flags] = name.split(' ')
  const text = ['caddy', 'rate-limit', first, ...state.start.address ? ['--address', word(state.start.address)] : [], ...flags].join(' ')
  try {
    await navigator.clipboard.writeText(text)
    news('Copied: ' + text)
  } catch {
    news(text)
  }
}
