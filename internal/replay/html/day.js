// day draws admitted and refused requests over time, one on top of the other.
const day = (zone) => {
	const { start, step, admitted, refused } = zone.day;
	const times = admitted.map((_, i) => (start + i * step) / 1000);
	times.push((start + admitted.length * step) / 1000);
	const again = (list) => list.concat(list.slice(-1));
	const all = again(admitted.map((n, i) => n + refused[i]));
	const box = html("div", { class: "chart", tabindex: 0, role: "group", "aria-label": dayLabel(zone) });
	const first = times[0], last = times[times.length - 1];
	let plot, from = first, to = last;

	const show = (a, b) => {
		const length = Math.min(Math.max(b - a, (5 * step) / 1000), last - first);
		from = Math.min(Math.max(a, first), last - length);
		to = from + length;
		plot.setScale("x", { min: from, max: to });
	};
	const move = (by) => show(from + by * (to - from), to + by * (to - from));
	const zoom = (by) => show((from + to - (to - from) * by) / 2, (from + to + (to - from) * by) / 2);
	const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), 0: () => show(first, last), Escape: () => show(first, last) };
	box.addEventListener("keydown", (event) => {
		if (!keys[event.key]) return;
		event.preventDefault();
		keys[event.key]();
	});

	const stripes = () => {
		const tile = document.createElement("canvas");
		tile.width = tile.height = 8;
		const c = tile.getContext("2d");
		c.fillStyle = color("refused-back");
		c.fillRect(0, 0, 8, 8);
		c.strokeStyle = color("refused");
		c.lineWidth = 2;
		for (const at of [-8, 0, 8]) {
			c.beginPath();
			c.moveTo(at, 8);
			c.lineTo(at + 8, 0);
			c.stroke();
		}
		return c.createPattern(tile, "repeat");
	};
	const draw = () => {
		if (plot) plot.destroy();
		const axis = { stroke: color("dim"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 } };
		const stepped = uPlot.paths.stepped({ align: 1 });
		plot = new uPlot({
			width: box.clientWidth || 1000, height: 240,
			cursor: { drag: { x: true, y: false } },
			scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(high, 1) * 1.05] } },
			axes: [{ ...axis, space: 70, values: (_, splits) => splits.map(hour) }, { ...axis, size: 70, values: (_, values) => values.map((v) => (Number.isInteger(v) ? number(v) : "")) }],
			series: [
				{ value: (_, v) => (v === null ? "" : clock(v * 1000)) },
				{ label: "refused (striped)", stroke: color("refused"), fill: stripes(), width: 1.5, paths: stepped, points: { show: false },
					value: (u, v, _, i) => (i === null ? "" : number(all[i] - again(admitted)[i])) },
				{ label: "admitted (plain)", stroke: color("admitted-edge"), fill: color("admitted"), width: 1.5, paths: stepped, points: { show: false },
					value: (_, v) => (v === null ? "" : number(v)) },
			],
			hooks: { setScale: [(u, key) => { if (key === "x") [from, to] = [u.scales.x.min, u.scales.x.max]; }] },
		}, [times, all, again(admitted)], box);
	};
	const button = (label, sign, act) => html("button", { type: "button", "aria-label": label, title: label, onclick: act }, sign);
	return {
		element: html("section", {},
			html("h3", {}, "The day"),
			html("p", { class: "note" }, "Across: the time; up: the requests of all clients in each step of " + duration(step) + ". Times are in the time zone of this browser. Drag to zoom in; double-click to show all. With the keyboard: + − ← → 0."),
			html("div", { class: "tools" },
				button("Zoom in", "+", () => zoom(0.5)), button("Zoom out", "−", () => zoom(2)),
				button("Earlier", "←", () => move(-0.25)), button("Later", "→", () => move(0.25)), button("Show all", "all", () => show(first, last))),
			box),
		draw,
	};
};

const duration = (ms) => {
	for (const [unit, length] of [["day", 864e5], ["hour", 36e5], ["minute", 6e4]]) {
		if (ms % length === 0) return plural(ms / length, unit);
	}
	return plural(ms / 1000, "second");
};

const dayLabel = (zone) => {
	const most = zone.day.refused.reduce((best, n, i, all) => (n > all[best] ? i : best), 0);
	const worst = zone.refused ? "; most were refused at " + clock(zone.day.start + most * zone.day.step) : "";
	return "Requests over time: " + number(zone.requests - zone.refused) + " admitted, " + number(zone.refused) + " refused" + worst;
};

// hour is a time of the day, or the date where a day begins.
const hour = (seconds) => {
	const at = new Date(seconds * 1000);
	return at.getHours() || at.getMinutes() || at.getSeconds() ? at.toLocaleTimeString(undefined, { timeStyle: "short" }) : at.toLocaleDateString(undefined, { month: "short", day: "numeric" });
};
