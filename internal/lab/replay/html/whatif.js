// whatIf draws how many clients and requests each limit refuses.
const whatIf = (zone) => {
	const limits = zone.what_if.filter((w) => w.window === zone.window && w.events > 0);
	const moved = (w) => {
		for (const name of ["x1", "x2"]) marker.setAttribute(name, place(w));
	};
	const width = pictureWidth(), height = 300, top = 34, bottom = height - below;
	const marker = svg("line", { class: "limit", "stroke-dasharray": "1 4", y1: top, y2: bottom });
	const least = limits.length ? limits[0].events : 1, most = limits.length ? limits[limits.length - 1].events : 1;
	const high = Math.max(10, ...limits.map((w) => Math.max(w.refused, w.keys_refused)));
	const up = logarithmic(high, bottom - top - 14, 14), y = (n) => bottom - 14 - up(n);
	const place = (w) => left +
		(most > least ? (Math.log(w.events / least) / Math.log(most / least)) * shownWidth() : 0);
	const curve = (pick) => limits.map((w, i) => (i ? "L" : "M") + place(w).toFixed(1) + " " +
		y(pick(w)).toFixed(1)).join("");
	// Of two marks that are close, each has its text on its own side, as long as that is in the picture.
	const mark = (w, kind, text, above, other) => {
		const at = place(w), before = other ? at < place(other) : at > width / 2;
		const late = before ? at > 120 : at > width - 120;
		return [svg("line", { class: kind, x1: at, x2: at, y1: top - (above ? 16 : 0), y2: bottom }),
			svg("text", { class: "strong", x: at + (late ? -6 : 6), y: top - (above ? 6 : -10),
				"text-anchor": late ? "end" : "start" }, text)];
	};
	const now = limits.find((w) => w.configured), knee = limits.find((w) => w.suggested);
	const ticks = limits.filter((w, i) => i === 0 || i === limits.length - 1 || /^[125]0*$/.test(String(w.events)));
	const shown = ticks.filter((w, i) => i === 0 || place(w) - place(ticks[i - 1]) > 40);
	const picture = limits.length < 2 ? ""
		: chart(whatIfLabel(zone, now, knee), height, [0, ...decades(high)], y,
		shown.map((w) => [place(w), number(w.events)]), zone.window ? "limit per " + zone.length : "limit",
		svg("path", { class: "curve requests", d: curve((w) => w.refused) }),
			svg("path", { class: "curve clients", d: curve((w) => w.keys_refused) }),
		now ? mark(now, "now", "now " + now.limit, false, knee) : "",
			knee ? [mark(knee, "knee", "suggested " + knee.limit, true, now),
			svg("circle", { class: "knee-dot", cx: place(knee), cy: y(knee.keys_refused), r: 6 })] : "",
		marker);
	const s = zone.suggestion, reasons = s
		? [el("p", {}, el("strong", {},
		s.limit ? "Suggested: " + s.limit : visible("no suggestion: " + s.failure, 1000))),
		el("ul", {}, s.reasons.map((reason) => el("li", {}, visible(reason, 1000))))] : "";
	const rows = zone.what_if.map((w) => [w.limit + (w.configured ? " (now)" : w.suggested ? " (suggested)" : ""),
		zone.requests ? number(w.refused) : "–", zone.requests ? number(w.keys_refused) : "–"]);
	const element = rows.length < 2 ? reasons : el("section", {},
		el("h3", {}, "What if"),
		note("Across: the limit; up: how many it refuses. Both axes are logarithmic. Solid: clients refused. Dashed: requests refused. ",
			"Dotted: the limit chosen above. ",
			several ? "What other zones refuse is not counted here. The suggestion counts everything that a client sends." : ""),
		picture, reasons,
		el("details", {}, el("summary", {}, count(rows.length, "limit") + " in numbers"),
			list("limits", ["limit", "requests refused", "clients refused"], rows)));
	return { element, moved };
};

const whatIfLabel = (zone, now, knee) =>
	"Clients and requests refused by limit" +
		(now ? `; now ${now.limit}: ${count(now.keys_refused, "client")}` : "") +
		(knee ? `; suggested ${knee.limit}: ${count(knee.keys_refused, "client")}` : "; none suggested");
