// Makes elements. Text becomes text nodes, and never markup.

const svgSpace = 'http://www.w3.org/2000/svg'

// el makes an element: attributes by name, listeners as functions, and children.
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children)
}

// svg makes an element of a picture.
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(svgSpace, tag), attributes, children)
}

function fill(e, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') e.addEventListener(name, value)
    else if (value === true) e.setAttribute(name, '')
    else if (value !== false && value != null) e.setAttribute(name, value)
  }
  e.append(...children.flat(Infinity).filter(c => c != null && c !== false))
  return e
}

export const byId = id => document.getElementById(id)

// setText changes a text only where it differs, so that nothing is drawn or read out again.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text
}

// show replaces the children of an element.
export function show(e, ...children) {
  keepFocus(e, () => e.replaceChildren(...children.flat(Infinity).filter(c => c != null && c !== false)))
}

const stops = 'a[href], button, input, select, textarea, summary, [tabindex]'
const nameOf = e => e.id || e.getAttribute('aria-label') || e.textContent

// keepFocus changes what is in an element. If the focus was there and is lost, what has the same name gets it, or else
// what has its place, or the title of the section: otherwise the keyboard would begin again at the top of the page.
function keepFocus(at, change) {
  if (at === document.activeElement || !at.contains(document.activeElement)) return change()
  const giveBack = holdFocus(at)
  change()
  giveBack()
}

// holdFocus returns a function that gives the focus back to what has it now, or to what has come in its place.
export function holdFocus(at = document.activeElement.closest('section')) {
  const had = document.activeElement, name = nameOf(had), all = () => at ? [...at.querySelectorAll(stops)].filter(e => e.checkVisibility()) : [], i = all().indexOf(had)
  return () => {
    if (document.activeElement !== document.body) return
    const now = all()
    const next = had.isConnected && had.checkVisibility() ? had : now.find(e => nameOf(e) === name) ?? now[Math.min(i, now.length - 1)] ?? at?.closest('section')?.querySelector('h2')
    next?.focus({ preventScroll: true })
  }
}

// goTo shows a section, and puts the focus on its title.
export function goTo(id) {
  byId(id).scrollIntoView()
  byId(id).querySelector('h2').focus({ preventScroll: true })
}

// pill is a short word with a color. The word alone says all.
export const pill = (text, kind) => el('span', { class: 'pill ' + (kind ?? '') }, text)

// outcomePill is an outcome with its color: what a limit refuses, what is banned and what the config rejects differ.
const kinds = { limited: 'limited', shed: 'limited', banned: 'banned', rejected: 'blocked', dry_run: 'dry', allowed: 'good', exempt: 'good' }
export const outcomePill = o => pill(o.replaceAll('_', ' '), kinds[o] ?? 'odd')

// place puts children into an element in this order. It moves as few as it can, because what moves is laid out again.
export function place(e, list) {
  const all = new Set(list)
  keepFocus(e, () => {
    for (const child of [...e.children]) if (!all.has(child)) child.remove()
    const at = new Map([...e.children].map((child, i) => [child, i])), stay = rising(list.map(child => at.get(child) ?? -1))
    list.reduceRight((next, child, i) => {
      if (!stay.has(i)) e.insertBefore(child, next)
      return child
    }, null)
  })
}

// rising returns the places of the most numbers that rise from each to the next, without those below 0.
function rising(list) {
  const ends = [], before = [] // the place of the lowest number with which so many end, and that of the number before each
  list.forEach((n, i) => {
    if (n < 0) return
    let low = 0, high = ends.length
    while (low < high) {
      const middle = low + high >> 1
      if (list[ends[middle]] < n) low = middle + 1
      else high = middle
    }
    before[i] = ends[low - 1]
    ends[low] = i
  })
  const stay = new Set()
  for (let i = ends.at(-1); i !== undefined; i = before[i]) stay.add(i)
  return stay
}

// menu hides less frequent actions behind a button. It closes with Escape, and when the focus leaves it.
export function menu(label, ...children) {
  const all = el('details', { class: 'menu' }, el('summary', { 'aria-label': label }, 'More'), el('div', { class: 'choices' }, children))
  all.addEventListener('keydown', e => { if (e.key === 'Escape') closeMenus() })
  all.addEventListener('focusout', e => { if (e.relatedTarget && !all.contains(e.relatedTarget) && !e.relatedTarget.closest('dialog')) all.open = false })
  return all
}

// closeMenus closes all menus but one that has an element. The focus stays where a menu was.
export function closeMenus(but) {
  for (const open of document.querySelectorAll('details.menu[open]')) {
    if (but && open.contains(but)) continue
    if (open.contains(document.activeElement)) open.firstChild.focus()
    open.open = false
  }
}
addEventListener('click', e => { if (!e.target.closest?.('dialog')) closeMenus(e.target) })
