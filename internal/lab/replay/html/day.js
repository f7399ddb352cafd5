// day draws admitted and refused requests over time, one on top of the other.
const day = (zone) => {
	const { start, step, admitted, refused } = zone.series;
	const times = admitted.map((_, i) => (start + i * step) / 1000);
	times.push((start + admitted.length * step) / 1000);
	const again = (list) => list.concat(list.slice(-1));
	const all = again(admitted.map((n, i) => n + refused[i]));
	const box = el("div", { class: "chart", tabindex: 0, role: "group", "aria-label": dayLabel(zone) });
	const first = times[0], last = times[times.length - 1];
	let plot, from = first, to = last;

	const scale = (a, b) => {
		const length = Math.min(Math.max(b - a, (5 * step) / 1000), last - first);
		from = Math.min(Math.max(a, first), last - length);
		to = from + length;
		plot.setScale("x", { min: from, max: to });
	};
	const move = (by) => scale(from + by * (to - from), to + by * (to - from));
	const zoom = (by) => scale((from + to - (to - from) * by) / 2, (from + to + (to - from) * by) / 2);
	const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-0.25),
		ArrowRight: () => move(0.25), 0: () => scale(first, last), Escape: () => scale(first, last) };
	box.addEventListener("keydown", (event) => {
		if (!keys[event.key]) return;
		event.preventDefault();
		keys[event.key]();
	});

	const stripes = () => {
		const tile = document.createElement("canvas");
		tile.width = tile.height = 8;
		const c = tile.getContext("2d");
		c.fillStyle = color("refused-soft");
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
		const axis = { stroke: color("muted"), grid: { stroke: color("line"), width: 1 },
			ticks: { stroke: color("line"), width: 1 } };
		const stepped = uPlot.paths.stepped({ align: 1 });
		plot = new uPlot({
			width: box.clientWidth || 1000, height: 240,
			cursor: { drag: { x: true, y: false } },
			scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(high, 1) * 1.05] } },
			axes: [{ ...axis, space: 70, values: (_, splits) => splits.map(hour) },
				{ ...axis, size: 70,
				values: (_, values) => values.map((v) => (Number.isInteger(v) ? number(v) : "")) }],
			series: [
				{ value: (_, v) => (v === null ? "" : exact(v * 1000)) },
				{ label: "refused (striped)", stroke: color("refused"), fill: stripes(), width: 1.5, paths: stepped,
					points: { show: false },
					value: (u, v, _, i) => (i === null ? "" : number(all[i] - again(admitted)[i])) },
				{ label: "admitted (plain)", stroke: color("admitted-edge"), fill: color("admitted"), width: 1.5,
					paths: stepped, points: { show: false },
					value: (_, v) => (v === null ? "" : number(v)) },
			],
			hooks: { setScale: [(u, key) => { if (key === "x") [from, to] = [u.scales.x.min, u.scales.x.max]; }] },
		}, [times, all, again(admitted)], box);
	};
	const tool = (label, sign, act) => button(sign, act, { "aria-label": label, title: label });
	return {
		element: el("section", {},
			el("h3", {}, "The day"),
			note(`Across: the time; up: the requests of all clients in each step of ${duration(step / 1000)}. Times are in the time zone of this `,
				"browser. Drag to zoom in; double-click to show all. With the keyboard: + − ← → 0."),
			el("div", { class: "tools" },
				tool("Zoom in", "+", () => zoom(0.5)), tool("Zoom out", "−", () => zoom(2)),
					tool("Earlier", "←", () => move(-0.25)),
				tool("Later", "→", () => move(0.25)), tool("Show all", "all", () => scale(first, last))),
			box),
		draw,
	};
};

const dayLabel = (zone) => {
	const most = zone.series.refused.reduce((best, n, i, all) => (n > all[best] ? i : best), 0);
	const worst = zone.refused ? "; most were refused at " + exact(zone.series.start + most * zone.series.step) : "";
	return "Requests over time: " + number(zone.requests - zone.refused) + " admitted, " + number(zone.refused) +
		" refused" + worst;
};

// hour is a time of the day, or the date where a day begins.
const hour = (seconds) => {
	const at = new Date(seconds * 1000);
	return at.getHours() || at.getMinutes() || at.getSeconds()
		? at.toLocaleTimeString(undefined, { timeStyle: "short" })
		: at.toLocaleDateString(undefined, { month: "short", day: "numeric" });
};
