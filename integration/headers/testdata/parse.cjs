// Reads answers from standard input and writes what two parsers make of their header
// fields: those of npm's ratelimit-header-parser and structured-headers.
const { parseRateLimit } = require("ratelimit-header-parser");
const { parseList } = require("structured-headers");

const items = (text) =>
	parseList(text).map(([name, params]) => ({ name, ...Object.fromEntries(params) }));

const answers = JSON.parse(require("fs").readFileSync(0, "utf8"));
const parsed = answers.map(({ header }) => {
	const lower = Object.fromEntries(Object.entries(header).map(([name, values]) => [name.toLowerCase(), values.join(", ")]));
	if (lower["ratelimit"]) {
		return { limits: items(lower["ratelimit"]), policies: items(lower["ratelimit-policy"]) };
	}
	const { limit, remaining, reset } = parseRateLimit({ headers: new Headers(lower) });
	return { limit, remaining, seconds: (reset.getTime() - Date.now()) / 1000 };
});
process.stdout.write(JSON.stringify(parsed));
