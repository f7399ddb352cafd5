// All texts of the log come into the page as text nodes and attributes, never as HTML. visible shows what a reader would not see.
const data = JSON.parse(document.getElementById("data").textContent);
data.zones.sort((a, b) => b.refused - a.refused || b.requests - a.requests);

const percent = (part, whole) => share(part, whole, 1);
const sameDay = new Date(data.from).toDateString() === new Date(data.to).toDateString();
const moment = (when) => new Date(when).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
const momentStyle = sameDay ? { timeStyle: "medium" } : { dateStyle: "short", timeStyle: "medium" };
const exact = (when) => new Date(when).toLocaleString(undefined, momentStyle);

// list makes a table of rows, in which the cells after the first are numbers. One that is too wide scrolls by itself.
const list = (name, titles, rows) => el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name },
	table("list " + name, titles,
		el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value) => el("td", {}, value)))))));

// logarithmic maps a value from 1 up to most to a length. What is below 1 is at floor.
const logarithmic = (most, length, floor) => (value) =>
	value < 1 ? -floor : (Math.log10(value) / Math.log10(Math.max(most, 10))) * length;

// decades are the powers of ten up to most.
const decades = (most) => {
	const all = [];
	for (let n = 1; n <= Math.max(most, 10); n *= 10) all.push(n);
	return all;
};

// hatch is the pattern of what is refused, for pictures without colors too.
const hatch = () => svg("defs", {},
	svg("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
	svg("line", { class: "hatch", x1: 0, y1: 0, x2: 0, y2: 7 })));

// pictureWidth is that of the place for pictures, so that their texts have the size of other texts.
const pictureWidth = () => Math.min(1088, Math.max(320, document.documentElement.clientWidth - 32));

// A chart has figures at its left, and below it names and a title. shownWidth is what remains for what it shows.
const left = 70, right = 24, below = 48;
const shownWidth = () => pictureWidth() - left - right;

// chart makes a picture. Figures are at the places that y has for them, and each name comes with its place.
const chart = (label, height, figures, y, names, title, ...parts) => {
	const width = pictureWidth(), middle = left + shownWidth() / 2;
	return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
		figures.map((n) => [svg("line", { class: "grid", x1: left, x2: width - right, y1: y(n), y2: y(n) }),
			svg("text", { x: left - 8, y: y(n) + 4, "text-anchor": "end" }, number(n))]),
		names.map(([x, name]) => svg("text", { x, y: height - below + 18, "text-anchor": "middle" }, name)),
		svg("text", { x: middle, y: height - 8, "text-anchor": "middle" }, title), parts);
};

// placeOf is the place of an event in a picture.
const placeOf = (event, picture) => {
	const box = picture.getBoundingClientRect(), scale = pictureWidth() / box.width;
	return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
};

// tipOf is a line that says what is under the mouse.
const tipOf = () => el("p", { class: "note tip", "aria-live": "off" });
