// clients draws the peaks of all clients, the largest first, and a limit that can be dragged. The limits
// are those that were tried, so what is shown beside them is exact.
const clients = (zone, moved) => {
	const limits = zone.what_if.filter((w) => w.window === zone.window);
	const height = 390, high = height - 30 - below, total = zone.keys, peaks = zone.peaks;
	const most = Math.max(peaks.length ? peaks[0][1] : 1, ...limits.map((w) => w.events));
	const across = logarithmic(total, shownWidth(), 0), up = logarithmic(most * 1.15, high, 0);
	const x = (rank) => left + across(rank), y = (peak) => height - below - up(peak), edge = left + shownWidth();

	let path = "M" + left + " " + (height - below);
	for (const [i, [rank, peak]] of peaks.entries()) {
		const next = i + 1 < peaks.length ? peaks[i + 1][0] : total + 1;
		path += `V${y(peak).toFixed(1)}H${x(Math.min(next, Math.max(total, 2))).toFixed(1)}`;
	}
	path += "V" + (height - below) + "Z";
	const clip = svg("rect", { x: 0, y: 0, width: pictureWidth(), height: 0 });
	const line = svg("line", { class: "limit", x1: left, x2: edge });
	const handle = svg("rect", { class: "handle", x: edge - 34, width: 34, height: 16, rx: 8 });
	const label = svg("text", { class: "limit-label", x: edge - 42, "text-anchor": "end" });
	const picture = chart(clientsLabel(zone), height, decades(most * 1.15), y, decades(total).map((n) => [x(n), number(n)]),
		"clients, the busiest first",
		hatch(), svg("clipPath", { id: "above" }, clip),
		decades(total).map((n) => svg("line", { class: "grid", x1: x(n), x2: x(n), y1: height - below - high, y2: height - below })),
		svg("text", { x: left, y: 16 }, zone.window ? "the most in any " + zone.length : "the most at the same time"),
		svg("path", { class: "below", d: path }),
		limits.length ? [svg("g", { "clip-path": "url(#above)" }, svg("path", { class: "above", d: path }),
			svg("path", { class: "hatched", d: path })), line, handle, label] : "");
	if (limits.length) picture.classList.add("drag");

	const requests = el("output", {}), keys = el("output", {}), named = el("output", {});
	const shares = [el("span", { class: "note" }), el("span", { class: "note" })];
	const config = el("code", {});
	const range = el("input", { type: "range", min: 0, max: Math.max(limits.length - 1, 0), step: 1,
		"aria-label": "limit of the zone " + plain(zone.name) });
	const set = (i) => {
		const w = limits[i], at = y(w.events);
		range.value = i;
		range.setAttribute("aria-valuetext",
			`${w.limit}: ${count(w.refused, "request")} of ${count(w.keys_refused, "client")} refused`);
		clip.setAttribute("height", Math.max(at, 0));
		for (const name of ["y1", "y2"]) line.setAttribute(name, at);
		handle.setAttribute("y", at - 8);
		label.setAttribute("y", at < 40 ? at + 20 : at - 8);
		label.textContent = "limit " + w.limit;
		named.textContent = w.limit + (w.configured ? " (now)" : w.suggested ? " (suggested)" : "");
		requests.textContent = number(w.refused);
		shares[0].textContent = percent(w.refused, zone.requests) + " of " + count(zone.requests, "request");
		keys.textContent = number(w.keys_refused);
		shares[1].textContent = percent(w.keys_refused, total) + " of " + count(total, "client");
		config.textContent = zone.window ? "rate " + w.limit : "events " + w.events;
		zone.chosen = i;
		moved(w);
	};
	range.addEventListener("input", () => set(Number(range.value)));

	const tip = tipOf();
	const drag = (event) => {
		const [, at] = placeOf(event, picture);
		let best = 0;
		for (const i of limits.keys()) if (Math.abs(y(limits[i].events) - at) < Math.abs(y(limits[best].events) - at)) best = i;
		set(best);
	};
	const hover = (event) => {
		const rank = Math.round(10 ** (((placeOf(event, picture)[0] - left) / shownWidth()) * Math.log10(Math.max(total, 10))));
		if (rank < 1 || rank > total) return;
		const entry = peaks.findLast(([from]) => from <= rank);
		if (!entry) return;
		const name = zone.names[rank - 1];
		tip.replaceChildren(`client ${number(rank)} of ${number(total)}: `,
			name === undefined ? "" : el("span", {}, visible(name), ", "),
			`at most ${number(entry[1])}` + (zone.window ? ` in ${zone.length}` : " at a time"));
	};
	let dragging = false;
	picture.addEventListener("pointerdown", (event) => {
		if (!limits.length) return;
		dragging = true;
		picture.setPointerCapture(event.pointerId);
		drag(event);
	});
	picture.addEventListener("pointermove", (event) => {
		hover(event);
		if (dragging) drag(event);
	});
	for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => { dragging = false; });

	const how = limits.length > 1
		? " Drag the limit, or move the slider with the arrow keys. Clients above the line (striped) are refused at least once." : "";
	const element = el("section", {},
		el("h3", {}, "The line and the clients"),
		note("The most that each client would have used had nothing been refused: across, the clients by rank; up, what each has ",
			"used. Both axes are logarithmic: a step is ten times as much.", how),
		limits.length ? el("div", { class: "live", "aria-live": "polite" }, el("div", {}, "limit", named),
			el("div", {}, "requests refused", requests, shares[0]), el("div", {}, "clients refused", keys, shares[1]))
				: "",
		picture, limits.length > 1 ? range : "", tip,
		limits.length ? note("To set this limit, write in the zone: ", config, " ", copyOf(config)) : "");
	if (limits.length) set(zone.chosen ?? Math.max(0, limits.findIndex((w) => w.configured)));
	return element;
};

// copyOf is a button that copies the text of an element, or selects it where a page may not copy.
const copyOf = (element) => button("Copy", async (event) => {
	const done = await copy(element.textContent);
	if (!done) return getSelection().selectAllChildren(element);
	event.target.textContent = "Copied";
	setTimeout(() => { event.target.textContent = "Copy"; }, 2000);
});

const clientsLabel = (zone) => {
	const busiest = zone.peaks.length ? ", the busiest at most " + number(zone.peaks[0][1]) : "";
	return "Peaks of " + count(zone.keys, "client") + busiest + (zone.window ? " in " + zone.length : " at a time");
};
