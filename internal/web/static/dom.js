// Makes elements of values, and shows them instead of others. Text becomes text nodes, and never markup.

// el makes an element: attributes and listeners by name, and children. One with a key stays itself when drawn again.
export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children)

// svg makes an element of a picture.
export const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children)

const nodes = children => children.flat(Infinity).filter(c => c != null && c !== false && c !== '')

function fill(e, attributes, children) {
  e.listens = []
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === 'key') e.key = value
    else if (typeof value === 'function') {
      e.listens.push(name)
      e['on' + name] = value
    }
    else if (value === true) e.setAttribute(name, '')
    else if (value !== false && value != null) e.setAttribute(name, value)
  }
  e.append(...nodes(children))
  return e
}

export const byId = id => document.getElementById(id)

// setText changes a text only where it differs, so that nothing is drawn or read out again.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text
}

// show has an element show other children. What stays the same is not touched, so that it keeps its focus, what is
// selected in it, and what is about to be pressed. If the focus goes with its element, the title of the section gets
// it: otherwise the keyboard would begin again at the top of the page.
export function show(at, ...children) {
  const had = document.activeElement, section = had.closest('section')
  place(at, nodes(children).map(c => c.nodeType ? c : document.createTextNode(c)))
  if (document.activeElement === document.body && had !== document.body) refocus(had, section)
}

// refocus gives the focus back to an element, or to its section if it is gone.
export function refocus(had, section) {
  const next = had.isConnected && had.checkVisibility() ? had : section?.querySelector('h2')
  next?.focus({ preventScroll: true })
}

function place(at, children) {
  const wanted = new Set(children.map(c => c.key)), keyed = new Map()
  for (const c of [...at.childNodes]) {
    if (c.key && wanted.has(c.key)) keyed.set(c.key, c)
    else if (c.key) c.remove()
  }
  let next = at.firstChild
  for (const c of children) {
    const old = c.key ? keyed.get(c.key) : next
    if (!old || old.key !== c.key || old.nodeName !== c.nodeName) at.insertBefore(c, next)
    else {
      if (old === next) next = next.nextSibling
      else if (at.moveBefore) at.moveBefore(old, next) // keeps the focus
      else at.insertBefore(old, next)
      become(old, c)
    }
  }
  while (next) {
    const gone = next
    next = next.nextSibling
    gone.remove()
  }
}

// become makes an element as another one is.
function become(old, wanted) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data
    return
  }
  for (const name of wanted.listens ?? []) old['on' + name] = wanted['on' + name]
  for (const { name } of [...old.attributes]) {
    // whether a menu is open is the reader's
    if (!wanted.hasAttribute(name) && name !== 'open') old.removeAttribute(name)
  }
  for (const { name, value } of wanted.attributes) {
    if (old.getAttribute(name) === value) continue
    if (name === 'style') old.style.cssText = wanted.style.cssText
    else old.setAttribute(name, value)
  }
  place(old, [...wanted.childNodes])
}

// bar is a share of a whole as a bar. It says nothing that is not in words beside it.
export function bar(part, all) {
  const full = el('span', { class: 'fill' })
  full.style.width = (all ? part / all * 100 : 0) + '%'
  return el('span', { class: 'track', 'aria-hidden': 'true' }, full)
}

// table makes a table: the titles of its columns, and its rows.
export const table = (name, titles, ...rows) => el('table', { class: name },
  el('thead', {}, el('tr', {}, titles.map(title => el('th', { scope: 'col' }, title)))), rows)

// cell is one of a table that becomes a list in a narrow window, where it has its title beside it.
export const cell = (title, ...children) => el('td', { 'data-label': title }, children)

// facts lists names with their values.
export const facts = (name, pairs) => el('dl', { class: name },
  pairs.map(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]))

export const para = (name, ...children) => el('p', { class: name }, children)
export const empty = (...children) => para('empty', children)
export const note = (...children) => para('note', children)
export const problem = (...children) => para('error', children)

// button is one with a label, and perhaps a longer one for people who do not see what it is beside.
export const button = (label, press, more) => el('button', { type: 'button', click: press, ...more }, label)

// pill is a short word with a color. The word alone says all.
export const pill = (text, kind) => el('span', { class: 'pill ' + (kind ?? '') }, text)

// copy copies a text, and reports whether the browser has let it.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}
