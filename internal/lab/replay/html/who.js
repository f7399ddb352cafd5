// who lists the clients that are refused most, each with a strip of its requests over time.
const who = (zone) => {
	const title = el("h3", {}, "Clients that would be refused");
	if (!zone.top.length) return el("section", {}, title, el("p", {}, "Nobody would be refused."));
	const { start, step, admitted } = zone.top[0].series, end = start + step * admitted.length;
	const most = Math.max(...zone.top.flatMap(({ series }) => totals(series)));
	return el("section", {}, title,
		note(`Each strip covers the whole time, and each bar the requests in ${duration(step / 1000)}, all on one scale. The striped part is what is `,
			"refused: a bar here and there is a burst, a full strip is a scraper."),
		list("clients", ["client", "refused", "of its requests", `from ${moment(start)} to ${moment(end)}`],
			zone.top.map((key) => [
			[el("span", { class: "key" }, visible(key.key || "(no key)")),
				note(`first ${exact(key.first_refused)}; in the log: ${key.about}`),
				key.agent ? note(visible(key.agent, 200)) : ""],
			number(key.refused), percent(key.refused, key.requests), strip(key, most)])),
		zone.keys_refused > zone.top.length
			? note("and " + count(zone.keys_refused - zone.top.length, "other client")) : "");
};

// strip draws the requests of a client over time.
const strip = (key, most) => svg("svg", { class: "strip", viewBox: "0 0 576 26", preserveAspectRatio: "none", role: "img",
	"aria-label": `${number(key.refused)} of ${count(key.requests, "request")} refused` },
	stack(key.series, most, 576, 26));
