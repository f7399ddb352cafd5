// day draws the requests of all clients over time.
const day = (zone) => {
	const { start, step, admitted, refused } = zone.series, end = start + step * admitted.length;
	const height = 270, high = height - below - 10, most = Math.max(1, ...totals(zone.series));
	const x = (at) => left + (at - start) / (end - start) * shownWidth(), y = (n) => 10 + high - n / most * high;
	const names = times(start, end, shownWidth() / 70).map((at) => [x(at), hour(at)]);
	const picture = chart(dayLabel(zone), height, figures(most), y, names, "the time, in the time zone of this browser",
		svg("g", { class: "day", transform: `translate(${left} 10)` }, stack(zone.series, most, shownWidth(), high)));
	const tip = tipOf();
	picture.addEventListener("pointermove", (event) => {
		const i = Math.floor((placeOf(event, picture)[0] - left) / shownWidth() * admitted.length);
		if (i in admitted) setText(tip, `${exact(start + i * step)}: ${number(admitted[i])} admitted, ${number(refused[i])} refused`);
	});
	return el("section", {},
		el("h3", {}, "The day"),
		note(`Across: the time; up: the requests of all clients in each step of ${duration(step / 1000)}. Striped: what is refused.`),
		picture, tip);
};

const dayLabel = (zone) => {
	const most = zone.series.refused.reduce((best, n, i, all) => (n > all[best] ? i : best), 0);
	const worst = zone.refused ? "; most were refused at " + exact(zone.series.start + most * zone.series.step) : "";
	return "Requests over time: " + number(zone.requests - zone.refused) + " admitted, " + number(zone.refused) +
		" refused" + worst;
};

const totals = ({ admitted, refused }) => admitted.map((n, i) => n + refused[i]);

// stack draws requests over time, and on top what is refused. What is there is seen: it has two pixels at least.
const stack = ({ admitted, refused }, most, width, height) => {
	const x = (i) => (i / admitted.length * width).toFixed(1);
	const y = (n) => n ? Math.min(height - 2, height - n / most * height) : height;
	let plain = `M0 ${height}`, striped = "";
	admitted.forEach((n, i) => {
		const top = y(n + refused[i]), edge = n && refused[i] ? Math.max(y(n), top + 2) : y(n);
		plain += `V${edge.toFixed(1)}H${x(i + 1)}`;
		if (refused[i]) striped += `M${x(i)} ${top.toFixed(1)}H${x(i + 1)}V${edge.toFixed(1)}H${x(i)}z`;
	});
	return [svg("path", { class: "plain", d: plain + `V${height}z` }), svg("path", { class: "above", d: striped }),
		svg("path", { class: "hatched", d: striped })];
};

// figures are 0 and at most five round numbers up to most.
const figures = (most) => {
	const power = 10 ** Math.floor(Math.log10(Math.max(most / 5, 1)));
	const step = [1, 2, 5, 10].map((n) => n * power).find((n) => most / n <= 5);
	return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
};

// times are round moments of the reader's time zone, not more than most.
const times = (start, end, most) => {
	const all = [], at = new Date(start), minutes = (end - start) / 60_000;
	const step = [1, 5, 15, 60, 180, 360, 720].find((n) => minutes / n <= most) ?? 1440 * Math.ceil(minutes / 1440 / most);
	for (at.setHours(0, 0, 0, 0); at < end; at.setMinutes(at.getMinutes() + step)) {
		if (at >= start) all.push(Number(at));
	}
	return all;
};

// hour is a time of the day, or the date where a day begins.
const hour = (when) => {
	const at = new Date(when);
	return at.getHours() || at.getMinutes()
		? at.toLocaleTimeString(undefined, { timeStyle: "short" })
		: at.toLocaleDateString(undefined, { month: "short", day: "numeric" });
};
