// Sends requests to an API with rate limits, and obeys them. Runs in browsers and in Node.js.

const tries = 4; // how often a request is sent at most
const longest = 60; // seconds; a longer wait is left to the caller

// The methods of requests that do no harm when they are sent twice.
const repeatable = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];

const refused = (response) => response.status === 429 || response.status === 503;

// A Client sends requests not before the API wants them. Use one for all requests of a key.
export class Client {
	#notBefore = 0;

	// fetch sends a request. If the API refuses it for now, fetch waits and sends it again.
	async fetch(url, options = {}) {
		const method = (options.method ?? "GET").toUpperCase();
		const again = repeatable.includes(method) && !(options.body instanceof ReadableStream);
		for (let attempt = 1; ; attempt++) {
			for (let left; (left = this.#notBefore - Date.now()) > 0; ) {
				await new Promise((resolve) => setTimeout(resolve, left));
			}
			const response = await fetch(url, options);
			const wait = waitAfter(response, attempt);
			this.#pause(wait);
			if (!refused(response) || !again || attempt === tries || wait > longest) return response;
			await response.body?.cancel();
		}
	}

	// #pause delays the next requests, a little longer than asked for, so that not all clients come back at once.
	#pause(wait) {
		if (wait <= 0 || wait > longest) return;
		const at = Date.now() + wait * 1000 * (1.05 + 0.15 * Math.random());
		this.#notBefore = Math.max(this.#notBefore, at);
	}
}

// waitAfter returns how many seconds to wait before the next request: 0 if there is no need to.
function waitAfter(response, attempt) {
	const header = (name) => response.headers.get(name) ?? "";
	const after = header("Retry-After");
	if (/^\d+$/.test(after)) return Number(after);
	const date = Date.parse(after);
	if (!Number.isNaN(date)) {
		const now = Date.parse(header("Date")); // by the clock of the API
		return (date - (Number.isNaN(now) ? Date.now() : now)) / 1000;
	}
	const used = /;r=0;t=(\d+)/.exec(header("RateLimit"));
	if (used) return Number(used[1]);
	return refused(response) ? 2 ** (attempt - 1) : 0; // it does not say when
}
