// What has happened, for a while, and a button that takes it back.

import { byId, el, show } from './dom.js'
import { plain } from './text.js'

const shown = 8000 // milliseconds

let hiding

// news says what has happened. With undo it offers to take it back.
export function news(text, undo) {
  const at = byId('news')
  const button = undo && el('button', {
    type: 'button', async click() {
      button.disabled = true
      try { news(await undo()) } catch (e) { news('That cannot be taken back: ' + plain(e.message, 300)) }
    },
  }, 'Undo')
  at.hidden = false
  show(at, el('span', {}, text), button)
  clearTimeout(hiding)
  const hide = () => {
    if (at.matches(':hover, :focus-within')) hiding = setTimeout(hide, 1000)
    else at.hidden = true
  }
  hiding = setTimeout(hide, shown)
}
