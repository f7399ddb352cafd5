// who lists the clients that are refused most, each with a strip of its requests over time.
const who = (zone) => {
	if (!zone.top.length) {
		return html("section", {}, html("h3", {}, "Clients that would be refused"), html("p", {}, "Nobody would be refused."));
	}
	const { start, step, cells } = zone.strip;
	return html("section", {},
		html("h3", {}, "Clients that would be refused"),
		html("p", { class: "note" }, `Each strip covers the whole time, and each bar ${duration(step)}. The striped part is the share of requests that are refused: a bar here and there is a burst, a full strip is a scraper.`),
		html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "clients that would be refused" }, html("table", { class: "list" },
			html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "client"), html("th", { scope: "col", class: "number" }, "refused"), html("th", { scope: "col", class: "number" }, "of its requests"),
				html("th", { scope: "col" }, `from ${moment(start)} to ${moment(start + step * cells)}`))),
			html("tbody", {}, zone.top.map((key) => html("tr", {},
				html("td", { class: "who" }, html("bdi", { class: "key" }, key.key), html("div", { class: "note" }, "first " + clock(key.first) + "; in the log: " + key.status),
					key.looks ? html("div", { class: "note" }, key.looks) : "", key.agent ? html("div", { class: "note" }, html("bdi", {}, key.agent)) : ""),
				html("td", { class: "number" }, number(key.refused)), html("td", { class: "number" }, percent(key.refused, key.requests)),
				html("td", { class: "strip" }, strip(key, cells))))))),
		zone.keys_refused > zone.top.length ? html("p", { class: "note" }, "and " + plural(zone.keys_refused - zone.top.length, "other client")) : "",
		zone.networks ? networksOf(zone) : "");
};

// networksOf lists the networks in which several clients are refused.
const networksOf = (zone) => [
	html("h3", {}, "Networks with several of them"),
	html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "networks with several clients that would be refused" }, html("table", { class: "list networks" },
		html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "network"), ["refused", "of its requests", "clients refused"].map((text) => html("th", { scope: "col", class: "number" }, text)))),
		html("tbody", {}, zone.networks.map((n) => html("tr", {}, html("td", {}, html("bdi", { class: "key" }, n.network)), html("td", { class: "number" }, number(n.refused)),
			html("td", { class: "number" }, percent(n.refused, n.requests)), html("td", { class: "number" }, `${number(n.keys_refused)} of ${number(n.keys)}`)))))),
];

const strip = (key, cells) => {
	const width = 576, height = 26, cell = width / cells;
	const bar = (i, from) => `M${(i * cell).toFixed(1)} ${from.toFixed(1)}h${cell.toFixed(1)}V${height}h-${cell.toFixed(1)}z`;
	let all = "", refused = "";
	key.admitted.forEach((n, i) => {
		const sum = n + key.refused_in[i];
		if (!sum) return;
		all += bar(i, 0);
		if (key.refused_in[i]) refused += bar(i, Math.min(height - 4, (height * n) / sum));
	});
	return svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${number(key.refused)} of ${plural(key.requests, "request")} refused` },
		svg("path", { class: "plain", d: all }), svg("path", { class: "above", d: refused }), svg("path", { class: "hatched", d: refused }));
};
