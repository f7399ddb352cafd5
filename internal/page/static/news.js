// What has happened, for a while.

import { byId, setText } from './dom.js'

const shown = 8000 // milliseconds

let hiding

// news says what has happened.
export function news(text) {
  const at = byId('news')
  at.hidden = false
  setText(at, text)
  clearTimeout(hiding)
  const hide = () => {
    if (at.matches(':hover')) hiding = setTimeout(hide, 1000)
    else at.hidden = true
  }
  hiding = setTimeout(hide, shown)
}
