// What can be done to a key: each with a confirmation, and the command that does the same.

import { call, zonePath } from './api.js'
import { byId, closeMenus, el, holdFocus, setText, show } from './dom.js'
import { idOf, nameKey, queryOf, showKey } from './key.js'
import { news } from './news.js'
import { command, word } from './shell.js'
import { noteDone, state, zoneNamed } from './state.js'
import { count, number, plain, visible } from './text.js'

const lengths = [['2h', '2 hours'], ['1h', '1 hour'], ['1d', '1 day'], ['7d', '7 days'], ['', 'until it is cleared']]

const most = 1024 // bytes of a note
const few = 5, mostKeys = 100 // keys that a dialog names, and those of one action

const needsOverrides = z => z.overrides ? '' : 'This zone has no overrides: add the option overrides to it.'

// rule makes the body of a call that sets a rule, and flagsOf the flags of its command.
const rule = (f, more) => ({ ...more, ...f.for ? { for: f.for } : {}, ...f.note ? { note: f.note } : {} })
const flagsOf = (f, ...more) => [...f.for ? ['--for', f.for] : [], ...f.note ? ['--note', word(f.note)] : [], ...more]

// actions are what can be done, by name. Fields are asked for; request makes the call from their
// values, and flags and last the command.
const actions = {
  reset: {
    label: 'Let through', title: 'Let this key through now?', yes: 'Let it through',
    text: 'Forgets what the key has used, its refusals, and a ban by the zone. It starts again with its full limit.',
    cannot: () => '', command: 'reset', request: () => ['DELETE', '/key'], done: 'Let through', mark: 'let through',
  },
  raise: {
    label: 'Raise', title: 'Give this key a limit of its own?', yes: 'Raise the limit', fields: ['limit', 'for', 'note'], for: '2h',
    text: 'Replaces any other override of the key. What it has used so far still counts.',
    cannot: needsOverrides, command: 'set', flags: f => flagsOf(f), last: f => [f.limit],
    request: f => ['PUT', '/key/override', rule(f, { limit: f.limit })], done: 'Raised', mark: 'raised',
  },
  exempt: {
    label: 'Exempt', title: 'Exempt this key?', yes: 'Exempt it', fields: ['for', 'note'], for: '',
    text: 'The zone no longer limits the key, and does not ban it. Replaces any other override of the key.',
    cannot: needsOverrides, command: 'set', flags: f => flagsOf(f, '--exempt'),
    request: f => ['PUT', '/key/override', rule(f, { exempt: true })], done: 'Exempted', mark: 'exempted',
  },
  ban: {
    label: 'Ban', title: 'Ban this key?', yes: 'Ban it', fields: ['for', 'note'], for: '1h', danger: true,
    text: 'The zone refuses all requests of the key. Replaces any other override of the key.',
    cannot: needsOverrides, command: 'ban', flags: f => flagsOf(f),
    request: f => ['PUT', '/key/ban', rule(f)], done: 'Banned',
  },
  unban: {
    label: 'Unban', title: 'End the ban of this key?', yes: 'End the ban',
    text: 'Ends a ban by an operator or by the zone, and forgets refusals. What the key has used so far still counts, so its limit may still refuse it.',
    cannot: z => z.overrides || z.bans ? '' : 'This zone has neither overrides nor bans.', command: 'unban', request: () => ['DELETE', '/key/ban'], done: 'Unbanned', mark: 'unbanned',
  },
  clear: {
    label: 'Clear', title: 'Clear the override of this key?', yes: 'Clear it',
    text: 'From the next request on, the key has the limit of the zone again.',
    cannot: needsOverrides, command: 'set', flags: () => ['--clear'], request: () => ['DELETE', '/key/override'], done: 'Cleared the override of',
  },
}

// after is called when something has been done.
const after = []
export const onDone = f => after.push(f)

// buttons returns a button for each action on a key, and one that says why it is refused.
export function buttons(names, z, k, why) {
  const first = why && !k.key_truncated ? el('button', { type: 'button', 'aria-label': `Why? ${nameKey(k, z)} in zone ${plain(z.name, 40)}`, click: () => why(z, k) }, 'Why?') : null
  return el('div', { class: 'actions', role: 'group', 'aria-label': 'Actions for ' + nameKey(k, z) }, first, names.map(name => button(name, [{ z, k }])))
}

// button returns a button for an action on a key in one zone or in several.
export function button(name, targets) {
  const action = actions[name], { z, k } = targets[0], why = targets.map(t => reasonAgainst(action, t.z, t.k)).find(Boolean)
  const what = `${nameKey(k, z)} in ${targets.length > 1 ? count(targets.length, 'zone') : 'zone ' + plain(z.name, 40)}`
  return el('button', {
    type: 'button', class: action.danger ? 'danger' : '', 'aria-disabled': why ? 'true' : null, title: why || null,
    'aria-label': `${action.label}: ${what}${why ? '. ' + why : ''}`,
    click: () => why ? news(why) : ask({ name, targets, what }),
  }, action.label + (k.network ? ' the network' : ''))
}

// banAgent returns a button that bans the refused keys of a zone whose last request had the user agent of one of them. It
// is not for zones without overrides.
export function banAgent(refused) {
  const { zone: z, key } = refused
  return el('button', {
    type: 'button', class: 'danger', 'aria-label': `Ban all with the user agent of ${nameKey(key, z)} in zone ${plain(z.name, 40)}`,
    click() {
      const agent = refused.last.user_agent
      const of = [...z.refusing.values()].filter(r => r.last?.user_agent === agent && !r.done && !reasonAgainst(actions.ban, z, r.key)).slice(0, mostKeys)
      if (!of.length) return news('No client that is refused has this user agent any more.')
      const text = 'These are the clients on this page whose last refused request had the user agent '
      ask({ name: 'ban', targets: of.map(r => ({ z, k: r.key })), what: `${count(of.length, 'client')} in zone ${plain(z.name, 40)}`, about: [text, visible(agent, 100), '. Other clients with it are not banned. '] })
    },
  }, 'Ban all with its user agent')
}

function reasonAgainst(action, z, k) {
  if (k.key_truncated) return 'Only the beginning of this key is known, so it cannot be named.'
  if (k.unknown) return 'The store keeps only a hash of this key, so it cannot be named.'
  return action.cannot(z)
}

let current = null, giveBack = null

// inputs make the fields of the dialog. Changed is called with each change of a value.
const inputs = {
  limit: (action, values, changed) => el('label', {}, 'Limit ', el('input', { id: 'field-limit', value: values.limit, required: true, autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'limit-help', input: e => { values.limit = e.target.value; changed() } }),
    el('span', { class: 'note', id: 'limit-help' }, 'A number of events in the window of the zone, or a limit such as 500/1m.')),
  for: (action, values, changed) => el('label', {}, 'For ', el('select', { id: 'field-for', change: e => { values.for = e.target.value; changed() } },
    lengths.map(([value, text]) => el('option', { value, selected: value === action.for }, action.command === 'ban' && !value ? 'until it is unbanned' : text)))),
  note: (_, values, changed) => el('label', {}, 'Note ', el('input', { id: 'field-note', maxlength: most, autocomplete: 'off', 'aria-describedby': 'note-help', input: e => { values.note = e.target.value; changed() } }),
    el('span', { class: 'note', id: 'note-help' }, 'Why, for others who read the list. It may be empty.')),
}

// ask opens the dialog for an action: its name, its targets, what these are, and more about them.
function ask({ name, targets, what, about }) {
  const action = actions[name], { z, k } = targets[0], several = new Set(targets.map(t => idOf(t.k))).size, thing = k.network ? 'network' : 'key'
  const values = { for: action.for, note: '', limit: z.events ? String(2 * z.events) : '' }
  const draw = () => setText(byId('dialog-command'), targets.map(t => command(state.start.address, action.command, t.z, t.k, action.flags?.(values) ?? [], action.last?.(values) ?? [])).join('\n'))
  const zones = [...new Set(targets.map(t => t.z.name))]
  setText(byId('dialog-title'), several > 1 ? action.title.replace('this key', `these ${number(several)} keys`) : action.title.replace('this key', 'this ' + thing))
  show(byId('dialog-text'), several > 1 ? [targets.slice(0, few).map(t => [showKey(t.k, t.z), ' ']), several > few ? `and ${number(several - few)} more` : ''] : showKey(k, z),
    zones.length > 1 ? ' in zones ' : ' in zone ', zones.map((name, i) => [i ? ', ' : '', visible(name, 48)]), '. ', about, several > 1 ? action.text.replaceAll('the key', 'each key') : action.text.replaceAll('the key', 'the ' + thing))
  show(byId('dialog-fields'), (action.fields ?? []).map(field => inputs[field](action, values, draw)))
  setText(byId('dialog-error'), '')
  setText(byId('dialog-yes'), action.yes)
  byId('dialog-yes').classList.toggle('danger', Boolean(action.danger))
  byId('dialog-yes').disabled = false
  draw()
  current = { name, targets, values, what }
  giveBack = holdFocus()
  byId('dialog').showModal()
}

// end closes the dialog, and the menu from which it was opened. The event close comes with a later frame, when another menu
// or dialog may be open, so that it counts only if the browser has closed the dialog by itself.
function end() {
  byId('dialog').close()
  if (!current) return
  current = null
  giveBack() // what had the focus may have been drawn again
  closeMenus()
}
byId('dialog-no').addEventListener('click', end)
byId('dialog').addEventListener('cancel', e => {
  e.preventDefault()
  end()
})
byId('dialog').addEventListener('close', () => { if (!byId('dialog').open) end() })
byId('dialog-copy').addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText(byId('dialog-command').textContent)
    setText(byId('dialog-copy'), 'Copied')
  } catch {
    getSelection().selectAllChildren(byId('dialog-command'))
    setText(byId('dialog-copy'), 'Selected: copy it')
  }
  setTimeout(() => setText(byId('dialog-copy'), 'Copy the command'), 2000)
})

byId('dialog-form').addEventListener('submit', async e => {
  e.preventDefault()
  const doing = current
  if (!doing) return
  byId('dialog-yes').disabled = true
  try {
    await carryOut(doing, () => { if (current === doing) end() })
  } catch (error) {
    if (current !== doing) return
    setText(byId('dialog-error'), plain(error.message, 400))
    byId('dialog-yes').disabled = false
  }
})

// carryOut does what was confirmed, in one zone after the other.
async function carryOut({ name, targets, values, what }, done) {
  const action = actions[name], [method, path, body] = action.request(values)
  let warning = '', changed = false
  for (const { z, k } of targets) {
    const answer = await call(method, zonePath(z, path) + queryOf(k), body)
    if (answer?.warning) warning = ' Warning: ' + answer.warning
    if (answer?.unchanged && name !== 'reset') continue // a key that has used nothing is let through, too
    changed = true
    noteDone(zoneNamed(z.name) ?? z, k, action.mark)
  }
  done()
  news(`${changed ? action.done : 'Nothing has changed for'} ${what}.${warning}`)
  after.forEach(f => f())
}
