// All texts of the log come into the page as text nodes and attributes, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);

const build = (element, attributes, children) => {
	for (const [name, value] of Object.entries(attributes || {})) {
		if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
		else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
	}
	element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== ""));
	return element;
};
const html = (name, attributes, ...children) => build(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => build(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

const number = (n) => n.toLocaleString();
const percent = (part, whole) => {
	const share = whole ? (part / whole) * 100 : 0;
	if (part > 0 && share < 0.01) return "< " + (0.01).toLocaleString() + " %";
	return share.toLocaleString(undefined, { maximumFractionDigits: share < 1 ? 2 : 1 }) + " %";
};
const plural = (n, what) => number(n) + " " + what + (n === 1 ? "" : "s");
const sameDay = new Date(data.from).toDateString() === new Date(data.to).toDateString();
const clock = (ms) => new Date(ms).toLocaleString(undefined, sameDay ? { timeStyle: "medium" } : { dateStyle: "short", timeStyle: "medium" });
const moment = (ms) => new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

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
const hatch = () => svg("defs", {}, svg("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
	svg("line", { class: "hatch", x1: 0, y1: 0, x2: 0, y2: 7 })));

// pictureWidth is that of the place for pictures, so that their texts have the size of other texts.
const pictureWidth = () => Math.min(1088, Math.max(320, document.documentElement.clientWidth - 32));
