const summary = (zone) => {
	const head = html("h2", {}, "Zone ", html("bdi", {}, zone.name));
	const what = html("p", {}, html("code", {}, zone.limit), " key ", html("code", {}, html("bdi", {}, zone.key || "none")), zone.dry_run ? ", not fully enforced" : "");
	const refused = zone.refused
		? `${plural(zone.refused, "request")} of ${number(zone.requests)} refused (${percent(zone.refused, zone.requests)}), the first at ${clock(zone.first_refused)}; ` +
			`${plural(zone.keys_refused, "client")} of ${number(zone.keys)} (${percent(zone.keys_refused, zone.keys)}) refused at least once.`
		: `None of ${plural(zone.requests, "request")} from ${plural(zone.keys, "client")} is refused.`;
	const unjudged = zone.not_judged ? html("p", { class: "note" }, html("bdi", {}, zone.not_judged)) : "";
	const busiest = zone.busiest ? html("p", { class: "dim" }, "The busiest client that is never refused: ", html("bdi", {}, zone.busiest.key), ` with ${number(zone.busiest.used)}` + (zone.window ? ` in ${zone.length}` : "") + (zone.headroom ? `: a headroom of ${zone.headroom}.` : ".")) : "";
	return [head, what, unjudged, zone.requests ? html("p", {}, refused) : "", busiest];
};

// verdict says what the zone that is affected most would have done. It is the first one.
const verdict = (zone) => zone.refused
	? ["Zone ", html("bdi", {}, zone.name), ` would have refused ${percent(zone.refused, zone.requests)} of its requests, and ${number(zone.keys_refused)} of ${plural(zone.keys, "client")}.`]
	: "No request would have been refused.";

// overview has a line for each zone. The zone that is affected most comes first.
const overview = (choose) => html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "all zones" }, html("table", { class: "list" },
	html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "zone"), html("th", { scope: "col", class: "number" }, "requests"), html("th", { scope: "col", class: "number" }, "refused"),
		html("th", { scope: "col", class: "number" }, "of its requests"), html("th", { scope: "col", class: "number" }, "clients refused"))),
	html("tbody", {}, data.zones.map((zone, i) => html("tr", {},
		html("td", {}, html("button", { type: "button", onclick: () => choose(i) }, html("bdi", {}, zone.name))),
		html("td", { class: "number" }, number(zone.requests)), html("td", { class: "number" }, number(zone.refused)),
		html("td", { class: "number" }, percent(zone.refused, zone.requests)), html("td", { class: "number" }, number(zone.keys_refused)))))));

// showZone draws all of a zone, at the width and in the colors of the moment.
const showZone = (place, zone) => {
	const time = day(zone), curve = whatIf(zone);
	place.replaceChildren(...summary(zone), time.element, clients(zone, curve.moved), ...[curve.element].flat().filter(Boolean), who(zone));
	time.draw();
	shown = zone;
};

let shown, width;
const main = document.getElementById("report");
const place = html("div", {});
const networks = data.networks ? html("div", { class: "unknown" }, html("strong", {}, "Many clients, one agent"),
	": probably a program that changes its address; a zone with ", html("code", {}, "ipv4_prefix 24"), " or ", html("code", {}, "ipv6_prefix 48"), " limits it.",
	html("ul", {}, data.networks.map((n) => html("li", {}, `${n.network}: ${plural(n.clients, "client")}, ${plural(n.requests, "request")}, `, html("bdi", {}, n.agent))))) : "";
const lines = plural(data.lines, "line") + (data.no_requests ? `, ${number(data.no_requests)} not about requests` : "") + (data.not_understood ? `, ${number(data.not_understood)} not understood` : "");
const span = `${moment(data.from)} to ${moment(data.to)}`;
document.title = `Replay of ${data.logs.join(", ")}` + (data.requests ? ", " + span : "");
const select = html("select", { onchange: () => showZone(place, data.zones[select.value]) }, data.zones.map((zone, i) => html("option", { value: i }, `${zone.name}: ${number(zone.refused)} refused`)));
const choose = (i) => {
	select.value = i;
	showZone(place, data.zones[i]);
	place.scrollIntoView();
};
main.replaceChildren(
	html("h1", {}, data.requests && data.zones.length ? verdict(data.zones[0]) : "No requests"),
	data.requests ? html("p", {}, span + ", ", html("bdi", {}, data.logs.join(", ")), data.config ? [", config ", html("bdi", {}, data.config)] : "") : "",
	html("p", { class: "dim" }, `${plural(data.requests, "request")} of ${plural(data.clients, "client")}; ${lines}`),
	data.zones.length > 1 ? overview(choose) : "",
	data.first_bad ? html("div", { class: "note" }, data.bad_lines + ", such as:", html("ul", {}, data.first_bad.map((text) => html("li", {}, html("bdi", {}, text))))) : "",
	data.unknown.length ? html("div", { class: "unknown" }, html("strong", {}, "Not known from the logs"), html("ul", {}, data.unknown.map((text) => html("li", {}, html("bdi", {}, text))))) : "",
	networks,
	data.zones.length > 1 ? html("p", {}, html("label", {}, "Zone ", select)) : "",
	place);
const again = () => {
	width = pictureWidth();
	if (shown) showZone(place, shown);
};
shown = data.zones[0];
again();
addEventListener("resize", () => { if (pictureWidth() !== width) again(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
