// Asks the admin API. Addresses are relative, so that the page works behind a path of a proxy, too.

const base = new URL('../', document.baseURI)

// call sends a request and returns the answer, or null if it is empty.
export async function call(method, path, body) {
  let response
  try {
    response = await fetch(new URL(path, base),
      { method, body: body && JSON.stringify(body), cache: 'no-store', credentials: 'same-origin' })
  } catch {
    throw new Error('Caddy does not answer')
  }
  const text = await response.text()
  let answer = null
  try { answer = text ? JSON.parse(text) : null } catch { /* not from Caddy */ }
  if (!response.ok) throw new Error(answer?.error ?? `HTTP ${response.status}`)
  return answer
}

// zonePath is the path of a zone.
export const zonePath = (zone, rest = '') => 'zones/' + encodeURIComponent(zone.name) + rest
