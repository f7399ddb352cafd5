// What has happened, for a while, and a button that takes it back.

import { byId, el, show } from './dom.js'
import { plain } from './text.js'

const shown = 8000 // milliseconds

let hiding, before // before: what had the focus

// news says what has happened. With undo it offers to take it back.
export function news(text, undo) {
  const at = byId('news')
  const button = undo && el('button', {
    type: 'button', title: 'Control+Z', 'aria-keyshortcuts': 'Control+Z', async click() {
      if (at.contains(document.activeElement)) before?.focus()
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

addEventListener('focusin', e => { if (!byId('news').contains(e.target)) before = e.target })
addEventListener('keydown', e => {
  const button = byId('news').hidden ? null : byId('news').querySelector('button')
  if (!button || e.key !== 'z' || !(e.ctrlKey || e.metaKey) || e.shiftKey || byId('dialog').open || e.target.closest?.('input, textarea')) return
  e.preventDefault()
  button.click()
})
