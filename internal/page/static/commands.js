// The command that shows the same as a figure, to copy.

import { el } from './dom.js'
import { news } from './news.js'
import { word } from './shell.js'
import { state } from './state.js'

const commands = {
  refused: ['top', ['--refused']], zones: ['zones'], stores: ['stores'], decisions: ['watch'], rules: ['overrides'],
}

// offerCommands puts a button into the head of each section that has a command.
export function offerCommands() {
  for (const [id, command] of Object.entries(commands)) offer(id, ...command)
}

// offer puts a button for a command into the head of a section.
export function offer(id, ...command) {
  const head = document.querySelector(`#${id} .head`)
  head.querySelector('.terminal')?.remove()
  head.append(terminal(...command))
}

// terminal returns a button that copies a command.
export function terminal(name, flags = [], args = []) {
  const line = address => ['caddy', 'rate-limit', name, ...address ? ['--address', word(address)] : [], ...flags, ...args.some(a => a.startsWith('-')) ? ['--'] : [], ...args.map(word)].join(' ')
  return copies(line(''), line(state.start.address))
}

// titled returns a title with such a button.
export const titled = (text, ...command) => el('div', { class: 'title' }, el('h3', {}, text), terminal(...command))

// copies returns a button that copies a command, of which it shows another form.
export function copies(shown, command) {
  return el('button', { type: 'button', class: 'terminal', title: command, 'aria-label': 'Copy the command: ' + shown, click: () => copy(command) }, el('code', {}, shown))
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    news('Copied: ' + text)
  } catch {
    news(text)
  }
}
