// What has happened: in a line for a while, and in the tab of the page.

import { byId, setText } from './dom.js'
import { number } from './text.js'

let hiding

// news says what has happened, for eight seconds.
export function news(text) {
  const at = byId('news')
  at.hidden = false
  setText(at, text)
  clearTimeout(hiding)
  const hide = () => {
    if (at.matches(':hover')) hiding = setTimeout(hide, 1000)
    else at.hidden = true
  }
  hiding = setTimeout(hide, 8000)
}

const name = 'Rate limits'
const colors = { good: '%230b57d0', warn: '%23b3261e', bad: '%23b3261e', '': '%2359636e' }
const calm = byId('icon').href

// showInTab shows in the title and the icon that somebody is refused, or that something is wrong.
export function showInTab(kind, refused) {
  const title = kind === 'bad' ? `No answer – ${name}` : refused ? `${number(refused)} refused – ${name}` : name
  if (document.title !== title) document.title = title
  const circle = (r, fill) => `%3Ccircle cx='24' cy='8' r='${r}' fill='${fill}'/%3E`
  const mark = kind === 'good' ? '' : circle(7, 'white') + circle(5, kind === 'bad' ? 'black' : '%23e8710a')
  const icon = calm.replace(colors.good, colors[kind] ?? colors['']).replace('%3C/svg%3E', mark + '%3C/svg%3E')
  if (byId('icon').href !== icon) byId('icon').href = icon
}
