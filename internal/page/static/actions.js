// What can be done to a key: each with a confirmation, and the command that does the same.

import { call, zonePath } from './api.js'
import { byId, el, setText, show } from './dom.js'
import { nameKey, queryOf, showKey } from './key.js'
import { command } from './shell.js'
import { noteDone, state, zoneNamed } from './state.js'
import { plain, visible } from './text.js'

const lengths = [['2h', '2 hours'], ['1h', '1 hour'], ['1d', '1 day'], ['7d', '7 days'], ['', 'until it is cleared']]

const needsOverrides = z => z.overrides ? '' : 'This zone has no overrides: add the option overrides to it.'

// actions are what can be done, by name. Fields are asked for; request makes the call from their
// values, and flags and last the command.
const actions = {
  reset: {
    label: 'Let through', title: 'Let this key through now?', yes: 'Let it through',
    text: 'Forgets what the key has used, its refusals, and a ban by the zone. It starts again with its full limit.',
    cannot: () => '', command: 'reset', request: () => ['DELETE', '/key'], done: 'Let through', mark: 'let through',
  },
  raise: {
    label: 'Raise', title: 'Give this key a limit of its own?', yes: 'Raise the limit', fields: ['limit', 'for'], for: '2h',
    text: 'Replaces any other override of the key. What it has used so far still counts.',
    cannot: needsOverrides, command: 'set', flags: f => f.for ? ['--for', f.for] : [], last: f => [f.limit],
    request: f => ['PUT', '/key/override', f.for ? { limit: f.limit, for: f.for } : { limit: f.limit }], done: 'Raised', mark: 'raised',
  },
  exempt: {
    label: 'Exempt', title: 'Exempt this key?', yes: 'Exempt it', fields: ['for'], for: '',
    text: 'The zone no longer limits the key, and does not ban it. Replaces any other override of the key.',
    cannot: needsOverrides, command: 'set', flags: f => f.for ? ['--for', f.for, '--exempt'] : ['--exempt'],
    request: f => ['PUT', '/key/override', f.for ? { exempt: true, for: f.for } : { exempt: true }], done: 'Exempted', mark: 'exempted',
  },
  ban: {
    label: 'Ban', title: 'Ban this key?', yes: 'Ban it', fields: ['for'], for: '1h', danger: true,
    text: 'The zone refuses all requests of the key. Replaces any other override of the key.',
    cannot: needsOverrides, command: 'ban', flags: f => f.for ? ['--for', f.for] : [],
    request: f => ['PUT', '/key/ban', f.for ? { for: f.for } : {}], done: 'Banned',
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
  return el('div', { class: 'actions', role: 'group', 'aria-label': 'Actions for ' + nameKey(k, z) }, first, names.map(name => {
    const action = actions[name], why = reasonAgainst(action, z, k)
    return el('button', {
      type: 'button', class: action.danger ? 'danger' : '', 'aria-disabled': why ? 'true' : null, title: why || null,
      'aria-label': `${action.label}: ${nameKey(k, z)} in zone ${plain(z.name, 40)}${why && '. ' + why}`,
      click: () => why ? news(why) : ask(action, z, k),
    }, action.label)
  }))
}

function reasonAgainst(action, z, k) {
  if (k.key_truncated) return 'Only the beginning of this key is known, so it cannot be named.'
  if (k.unknown) return 'The store keeps only a hash of this key, so it cannot be named.'
  return action.cannot(z)
}

let current = null

// ask opens the dialog for an action.
function ask(action, z, k) {
  const values = { for: action.for, limit: z.events ? String(2 * z.events) : '' }
  const fields = (action.fields ?? []).map(name => name === 'limit'
    ? el('label', {}, 'Limit ', el('input', { id: 'field-limit', value: values.limit, required: true, autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'limit-help', input: e => { values.limit = e.target.value; draw() } }),
      el('span', { class: 'note', id: 'limit-help' }, 'A number of events in the window of the zone, or a limit such as 500/1m.'))
    : el('label', {}, 'For ', el('select', { id: 'field-for', change: e => { values.for = e.target.value; draw() } },
      lengths.map(([value, text]) => el('option', { value, selected: value === action.for }, action.command === 'ban' && !value ? 'until it is unbanned' : text)))))
  const draw = () => setText(byId('dialog-command'), command(state.start.address, action.command, z, k, action.flags?.(values) ?? [], action.last?.(values) ?? []))
  setText(byId('dialog-title'), action.title)
  show(byId('dialog-text'), showKey(k, z), ' in zone ', visible(z.name, 48), '. ', action.text)
  show(byId('dialog-fields'), fields)
  setText(byId('dialog-error'), '')
  setText(byId('dialog-yes'), action.yes)
  byId('dialog-yes').classList.toggle('danger', Boolean(action.danger))
  byId('dialog-yes').disabled = false
  draw()
  current = { action, z, k, values }
  byId('dialog').showModal()
}

byId('dialog-no').addEventListener('click', () => byId('dialog').close())
byId('dialog').addEventListener('close', () => { // which comes later: the next one may be open by now
  if (!byId('dialog').open) current = null
})
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
  const { action, z, k, values } = doing, [method, path, body] = action.request(values)
  byId('dialog-yes').disabled = true
  try {
    const answer = await call(method, zonePath(z, path) + queryOf(k), body)
    if (current === doing) byId('dialog').close()
    news(`${action.done} ${nameKey(k, z)} in zone ${plain(z.name, 40)}.${answer?.warning ? ' Warning: ' + answer.warning : ''}`)
    noteDone(zoneNamed(z.name) ?? z, k, action.mark)
    after.forEach(f => f(z, k))
  } catch (error) {
    if (current !== doing) return
    setText(byId('dialog-error'), plain(error.message, 400))
    byId('dialog-yes').disabled = false
  }
})

let hiding

// news says what has happened, for a while.
export function news(text) {
  const at = byId('news')
  at.hidden = false
  setText(at, text)
  clearTimeout(hiding)
  hiding = setTimeout(() => { at.hidden = true }, 8000)
}
