const summary = (zone) => {
	const busiest = zone.busiest_never_refused, keys = count(zone.keys, "client");
	const refused = zone.refused
		? `${count(zone.refused, "request")} of ${number(zone.requests)} refused (${percent(zone.refused, zone.requests)}), the first at ` +
			`${exact(zone.first_refused)}; ${count(zone.keys_refused, "client")} of ${number(zone.keys)} ` +
			`(${percent(zone.keys_refused, zone.keys)}) refused at least once.`
		: `None of ${count(zone.requests, "request")} from ${keys} is refused.`;
	return [
		el("h2", {}, "Zone ", visible(zone.name)),
		el("p", {}, el("code", {}, zone.limit), " key ", el("code", {}, visible(zone.key || "none")),
			zone.dry_run ? ", not fully enforced" : ""),
		zone.unjudged ? note(visible(zone.unjudged, 1000)) : "",
		zone.requests ? el("p", {}, refused) : "",
		busiest ? note("The busiest client that is never refused: ", visible(busiest.key), ` with ${number(busiest.used)}`,
			zone.window ? ` in ${zone.length}.` : ".") : "",
	];
};

// verdict says what the zone that is affected most would have done. It is the first one.
const verdict = (zone) => zone.refused
	? ["Zone ", visible(zone.name),
		` would have refused ${percent(zone.refused, zone.requests)} of its requests, and ` +
		`${number(zone.keys_refused)} of ${count(zone.keys, "client")}.`]
	: "No request would have been refused.";

const box = (title, ...children) => el("div", { class: "unknown" }, el("strong", {}, title), children);

// showZone draws all of a zone, at the width of the moment.
const showZone = (zone) => {
	const curve = whatIf(zone);
	picked.replaceChildren(...nodes([summary(zone), day(zone), clients(zone, curve.moved), curve.element, who(zone)]));
	shown = zone;
};

let shown = data.zones[0], width;
const picked = el("div"), several = data.zones.length > 1, span = `${moment(data.from)} to ${moment(data.to)}`;
const logs = data.logs.map((log) => `${plain(log.name, 300)} (${log.format})`).join(", ");
document.title = `Replay of ${logs}` + (data.requests ? ", " + span : "");
const options = data.zones.map((zone, i) => el("option", { value: i },
	`${plain(zone.name)}: ${number(zone.refused)} refused`));
const select = el("select", { change: () => showZone(data.zones[select.value]) }, options);
const choose = (i) => {
	select.value = i;
	showZone(data.zones[i]);
	picked.scrollIntoView();
};
show(byId("report"),
	el("h1", {}, data.requests && data.zones.length ? verdict(data.zones[0]) : "No requests"),
	data.requests ? el("p", {}, span + ", ", el("bdi", {}, logs),
		data.config ? [", config ", visible(data.config, 300)] : "") : "",
	note(`${count(data.requests, "request")} of ${count(data.clients, "client")}; ${count(data.lines, "line")}`,
		data.no_requests ? `, ${number(data.no_requests)} not about requests` : ""),
	several ? list("zones", ["zone", "requests", "refused", "of its requests", "clients refused"],
		data.zones.map((zone, i) => [
		button(visible(zone.name), () => choose(i)), number(zone.requests), number(zone.refused),
		percent(zone.refused, zone.requests), number(zone.keys_refused)])) : "",
	data.not_understood ? el("div", { class: "note" }, data.not_understood * 100 > data.lines ? "WARNING: all figures are too low; " : "",
		count(data.not_understood, "line"), " not understood, such as:",
		el("ul", {}, data.first_not_understood.map((text) => el("li", {}, visible(text, 1000))))) : "",
	data.unknown.length ? box("Not known from the logs",
		el("ul", {}, data.unknown.map((text) => el("li", {}, visible(text, 1000))))) : "",
	several ? el("p", {}, el("label", {}, "Zone ", select)) : "", picked);
const again = () => {
	width = pictureWidth();
	if (shown) showZone(shown);
};
again();
addEventListener("resize", () => { if (pictureWidth() !== width) again(); });
